//! Addresses, names of people and rooms, files and versions.

use super::{group, pattern};
use crate::number::{Number, cardinal, digits};
use crate::scan::{Input, Said};
use crate::table::tables;

/// Reads letters one by one, in capitals.
pub fn spell(letters: &str) -> String {
    let parts: Vec<String> =
        letters.chars().filter(|c| c.is_alphabetic()).map(|c| c.to_uppercase().collect()).collect();
    parts.join(" ")
}

/// Says one part of a name: words apart, digits as a number or one by one, capitals as an acronym.
fn part(text: &str) -> String {
    let upper = text.to_uppercase();
    if let Some(word) = tables().acronym_words.get(upper.as_str()).filter(|_| text == upper) {
        return word.clone();
    }
    let pieces = pattern!(r"\p{Lu}+(?:\p{Ll}+)?|\p{Ll}+|\p{L}+|[0-9]+").find_iter(text);
    let words: Vec<String> = pieces
        .map(|piece| match piece.as_str() {
            number if number.starts_with(|c: char| c.is_ascii_digit()) => {
                Number::parse(number, false).map_or_else(|| digits(number), |number| number.words())
            }
            letters => letters.to_owned(),
        })
        .collect();
    words.join(" ")
}

/// Says a name with dots: "example dot com".
fn dotted(text: &str) -> String {
    let parts: Vec<String> = text.split('.').map(part).filter(|said| !said.is_empty()).collect();
    parts.join(" dot ")
}

pub fn email(input: &Input<'_>) -> Option<Said> {
    let pattern =
        pattern!(r"^(?:mailto:)?([\p{L}\p{N}][\p{L}\p{N}._%+-]*)@([\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*\.\p{L}{2,})");
    let found = pattern.captures(input.rest).filter(|_| input.is_fresh())?;
    Said::new(group(&found, 0).len(), format!("{} at {}", dotted(group(&found, 1)), dotted(group(&found, 2))))
}

/// A person or room of Matrix: `@maria:example.org` is "maria".
pub fn matrix_name(input: &Input<'_>) -> Option<Said> {
    let pattern = pattern!(r"^[@#!]([\p{L}\p{N}._=/-]+):[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*(?::\d+)?");
    let found = pattern.captures(input.rest).filter(|_| input.is_fresh())?;
    let whole = group(&found, 0).trim_end_matches('.');
    if let Some(name) = input.options.names.get(whole) {
        return Said::new(whole.len(), part(name));
    }
    Said::new(whole.len(), if whole.starts_with('!') { "a room".to_owned() } else { part(group(&found, 1)) })
}

/// A web address: "a link to example dot com".
pub fn address(input: &Input<'_>) -> Option<Said> {
    let pattern = pattern!(r"^(?i:[a-z][a-z0-9+.-]*://|www\.)([^\s<>]+)");
    let found = pattern.captures(input.rest).filter(|_| input.is_fresh())?;
    let mut whole = group(&found, 0).trim_end_matches(['.', ',', '!', '?', ';', ':', '"', '\'', '”', '*', '_', '|']);
    if whole.ends_with(')') && !whole.contains('(') {
        whole = whole.trim_end_matches([')', '.', ',']);
    }
    let place = whole.split_once("://").map_or(whole, |(_, rest)| rest);
    if let Some(name) = place.strip_prefix("matrix.to/#/") {
        let name: String = name.chars().skip(1).take_while(|c| !matches!(c, ':' | '?' | '/')).collect();
        return Said::new(whole.len(), part(&name));
    }
    let host = place.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let host = dotted(host.strip_prefix("www.").unwrap_or(host));
    Said::new(whole.len(), if host.is_empty() { "a link".to_owned() } else { format!("a link to {host}") })
}

/// A host without a scheme: "github dot com". A path after it is left out.
pub fn host(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^((?:[\p{L}\p{N}-]+\.)+)([a-z]{2,4})(/[^\s<>]*)?").captures(input.rest)?;
    let name = found.get(2)?.end();
    let first = group(&found, 1);
    if !input.is_fresh() || !tables().hosts.has(group(&found, 2)) || !input.ends_at(name) {
        return None;
    }
    // "e.g.so" and "Hi.me" are no hosts: a host has a name of three letters or more in small letters.
    let named = first.split('.').any(|part| part.len() >= 3) && !first.starts_with(char::is_uppercase);
    let whole = group(&found, 0).trim_end_matches(['.', ',', '!', '?', ';', ':', ')']);
    if named { Said::new(whole.len(), dotted(input.rest.get(..name)?)) } else { None }
}

/// @maria, @everyone: the name alone.
pub fn mention(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^@([\p{L}\p{N}_][\p{L}\p{N}_.-]*)").captures(input.rest).filter(|_| input.is_fresh())?;
    let name = group(&found, 1).trim_end_matches(['.', '-']);
    Said::new(name.len() + 1, part(name))
}

pub fn hashtag(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^#([\p{L}_][\p{L}\p{N}_]*)").captures(input.rest).filter(|_| input.is_fresh())?;
    let said = match group(&found, 1) {
        tag if tag.chars().all(|c| !c.is_lowercase()) => tag.replace('_', " ").to_lowercase(),
        tag => part(tag),
    };
    let said: String = said.chars().filter(|c| !c.is_numeric()).collect();
    Said::new(group(&found, 0).len(), format!("hashtag {said}"))
}

/// Four numbers with dots, digit by digit.
pub fn ip(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^\d{1,3}(?:\.\d{1,3}){3}").find(input.rest).filter(|_| input.is_fresh())?;
    if !input.ends_at(found.len()) {
        return None;
    }
    let parts: Vec<String> = found.as_str().split('.').map(digits).collect();
    Said::new(found.len(), parts.join(" dot "))
}

/// v1.2.3, 1.2.3, and "Python 3.12": a second number of two digits after a name with a version.
pub fn version(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^([vV])?(\d+(?:\.\d+)*)").captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    let numbers: Vec<&str> = group(&found, 2).split('.').collect();
    let before = input.word_before();
    let named = matches!(
        before.as_str(),
        "version" | "python" | "ubuntu" | "release" | "rust" | "node" | "kernel" | "android" | "ios" | "macos" | "java"
    );
    let versioned = found.get(1).is_some() || numbers.len() > 2 || (named && numbers.len() == 2);
    if !versioned || !input.ends_at(len) || numbers.iter().any(|number| number.len() > 8) {
        return None;
    }
    let says_so = found.get(1).is_some() && before != "version";
    let said: Vec<String> =
        numbers.iter().map(|number| number.parse().map_or_else(|_| digits(number), cardinal)).collect();
    Said::new(len, format!("{}{}", if says_so { "version " } else { "" }, said.join(" point ")))
}

fn extension(name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    if let Some(said) = tables().extensions.get(&lower) {
        return Some(said.clone());
    }
    let pieces: Vec<String> = lower
        .chars()
        .map(|c| c.to_digit(10).map_or_else(|| c.to_uppercase().collect(), |digit| cardinal(u64::from(digit))))
        .collect();
    tables().spelled_extensions.has(&lower).then(|| pieces.join(" "))
}

/// Says the name of a file: "config dot toml", or `None` if it has no known extension.
fn file_name(name: &str) -> Option<String> {
    let (stem, end) = name.rsplit_once('.')?;
    let end = extension(end)?;
    let stem: Vec<String> = stem.split('.').map(stem_words).filter(|said| !said.is_empty()).collect();
    let dot = if stem.is_empty() { "dot" } else { " dot" };
    Some(format!("{}{dot} {end}", stem.join(" dot ")))
}

fn stem_words(stem: &str) -> String {
    let words: Vec<String> = stem.split(['_', '-', ' ']).map(part).filter(|said| !said.is_empty()).collect();
    words.join(" ")
}

pub fn file(input: &Input<'_>) -> Option<Said> {
    let found =
        pattern!(r"^[\p{L}\p{N}_.-]*\.[A-Za-z][A-Za-z0-9]{0,4}").find(input.rest).filter(|_| input.is_fresh())?;
    if !input.ends_at(found.len()) || input.after(found.len()).starts_with('@') {
        return None;
    }
    Said::new(found.len(), file_name(found.as_str())?)
}

/// /etc/hosts, src/main.rs, ~/notes, C:\files.
pub fn path(input: &Input<'_>) -> Option<Said> {
    let pattern = pattern!(r"^(?:~|\.\.?|[A-Za-z]:)?(?:[/\\]?[\p{L}\p{N}_.-]+)?(?:[/\\][\p{L}\p{N}_.-]+)+[/\\]?");
    let found = pattern.find(input.rest).filter(|_| input.is_fresh() || input.rest.starts_with(['/', '~', '.']))?;
    let whole = found.as_str().trim_end_matches('.');
    let rooted = whole.starts_with(['/', '~', '.']) || whole.contains('\\');
    let parts: Vec<&str> = whole.split(['/', '\\']).collect();
    let last = parts.last().copied().unwrap_or_default();
    let plain_root = whole.starts_with('/') && parts.len() == 2 && whole.len() < 4;
    // "he/she" and "3/4" are no paths.
    if (!rooted && file_name(last).is_none())
        || plain_root
        || !input.ends_at(whole.len())
        || input.before.ends_with(char::is_alphanumeric)
    {
        return None;
    }
    let mut said = Vec::new();
    for (index, name) in parts.iter().enumerate() {
        if index > 0 {
            said.push("slash".to_owned());
        }
        said.push(match *name {
            "~" => "home".to_owned(),
            "." => "dot".to_owned(),
            ".." => "dot dot".to_owned(),
            name => {
                file_name(name).unwrap_or_else(|| name.split('.').map(stem_words).collect::<Vec<_>>().join(" dot "))
            }
        });
    }
    said.retain(|word| !word.trim().is_empty());
    Said::new(whole.len(), said.join(" "))
}
