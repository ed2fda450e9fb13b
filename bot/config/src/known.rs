//! Values that stand for something outside: a time zone, a language, an account. Their type alone does not tell whether
//! they are right.

use jiff::tz::{TimeZone, db};

use crate::Config;
use crate::matrix::MatrixInvites;
use crate::read::closest_name;

/// Returns the keys whose values name nothing, each with what is wrong and the nearest right value.
pub(crate) fn unknown(config: &Config) -> Vec<(&'static str, &'static str, String)> {
    let mut found = Vec::new();
    if let Some(why) = unknown_time_zone(&config.gardener.time_zone) {
        found.push(("gardener", "time_zone", why));
    }
    if let Some(locale) = config.chat.locale.as_deref().filter(|locale| !is_locale(locale)) {
        let why = format!("`chat.locale` must be a language and a country, such as `en-GB` or `de`, not {locale:?}");
        found.push(("chat", "locale", why));
    }
    if let Some(id) = config.discord.operators.iter().find(|id| id.parse::<u64>().is_err()) {
        let why = format!("`discord.operators` must be user ids, which are whole numbers, not {id:?}");
        found.push(("discord", "operators", why));
    }
    if config.matrix.invites == MatrixInvites::Users
        && let Some(account) = config.matrix.invites_from.iter().find(|account| !is_account(account))
    {
        let why = format!("`matrix.invites_from` must be accounts, such as `@ann:example.org`, not {account:?}");
        found.push(("matrix", "invites_from", why));
    }
    let collection = &config.vector_server.collection;
    if !collection.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
        let why = format!("`vector_server.collection` may have only letters, digits, - and _, not {collection:?}");
        found.push(("vector_server", "collection", why));
    }
    let prefix = &config.working_server.prefix;
    if !prefix.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:".contains(c)) {
        let why = format!("`working_server.prefix` may have only letters, digits and -_.:, not {prefix:?}");
        found.push(("working_server", "prefix", why));
    }
    if let Some(url) = config.working_server.url.as_deref()
        && !["redis://", "rediss://"].iter().any(|scheme| url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
    {
        let why = "`working_server.url` must begin with redis:// or rediss://, with a server behind it".to_owned();
        found.push(("working_server", "url", why));
    }
    found
}

/// Returns what is wrong with a time zone, or `None` if this machine knows it.
fn unknown_time_zone(name: &str) -> Option<String> {
    if TimeZone::get(name).is_ok() {
        return None;
    }
    let known: Vec<String> = db().available().map(|name| name.to_string()).collect();
    if known.is_empty() {
        return Some(format!(
            "`gardener.time_zone` cannot be {name:?}: this machine has no list of time zones; install tzdata, or use \"UTC\""
        ));
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    // People also write the city alone.
    let city =
        || names.iter().find(|known| known.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name)));
    let hint = match closest_name(name, &names).or_else(|| city().copied()) {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None => "a name is like \"Europe/Lisbon\"".to_owned(),
    };
    Some(format!("`gardener.time_zone` is no time zone: {name:?}; {hint}"))
}

/// Returns true for a language with parts such as a script and a country, also as systems write it: `de_AT.UTF-8`.
fn is_locale(locale: &str) -> bool {
    let tags = locale.split(['.', '@']).next().unwrap_or_default();
    let mut parts = tags.split(['-', '_']);
    let language = parts.next().is_some_and(|part| matches!(part.len(), 2..=3) && all_letters(part));
    language && parts.all(|part| matches!(part.len(), 2..=8) && part.chars().all(|c| c.is_ascii_alphanumeric()))
}

fn all_letters(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphabetic())
}

fn is_account(account: &str) -> bool {
    account
        .strip_prefix('@')
        .and_then(|rest| rest.split_once(':'))
        .is_some_and(|(name, server)| !name.is_empty() && !server.is_empty() && !account.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_begins_with_a_language() {
        for right in ["en-GB", "de", "de_AT.UTF-8", "zh-Hant-NZ", "es-419", "DE-de@euro"] {
            assert!(is_locale(right), "{right}");
        }
        for wrong in ["english", "E", "en-", "en GB", "1n-GB", ".UTF-8"] {
            assert!(!is_locale(wrong), "{wrong}");
        }
    }
}
