//! Help lines: words that stand below a reply as they are, so that no model can get a number wrong.

use std::sync::LazyLock;

use serde::Deserialize;

const FILE: &str = include_str!("../rules/help_lines.toml");

/// Characters that a help text may have: it must fit below a reply on every platform.
pub const MAX_HELP_CHARS: usize = 600;

/// What help is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Help {
    /// Somebody may harm themselves: where to find somebody to talk to.
    Crisis,
    /// Somebody may come to harm: whom to call.
    Danger,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    directory: String,
    country: Vec<Country>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Country {
    code: String,
    name: String,
    emergency: String,
    lines: Vec<String>,
    /// Languages that alone tell the country, since most who speak them live there.
    #[serde(default)]
    languages: Vec<String>,
}

static LINES: LazyLock<Lines> = LazyLock::new(|| toml::from_str(FILE).expect("a test reads the file"));

impl Help {
    /// The text to show below a reply, word for word, for a person of a locale (`en-GB`, `pt_BR`, `de`). It names the country it
    /// is for, and what there is elsewhere: a locale is a guess. Of an unknown one only the latter. It is 1 to
    /// [`MAX_HELP_CHARS`] characters long.
    pub fn text(self, locale: Option<&str>) -> String {
        let country = locale.and_then(country);
        let directory = &LINES.directory;
        match (self, country) {
            (Self::Crisis, Some(Country { name, emergency, lines, .. })) => format!(
                "You do not have to be alone with this. In {name}: {}. In immediate danger: {emergency}. Elsewhere: {directory}, \
                 or the local emergency number.",
                lines.join("; ")
            ),
            (Self::Crisis, None) => format!(
                "You do not have to be alone with this. Help lines by country: {directory}. In immediate danger, call the local \
                 emergency number (112 or 911 in many countries)."
            ),
            (Self::Danger, Some(Country { name, emergency, .. })) => format!(
                "If anybody is in danger, call for help. In {name}: {emergency}. Elsewhere: the local emergency number."
            ),
            (Self::Danger, None) => {
                "If anybody is in danger, call the local emergency number (112 or 911 in many countries).".into()
            }
        }
    }
}

/// With what words somebody who asked to be looked in on is looked in on after they spoke of harming themselves, word for word. It says
/// nothing of what they told, asks how they are and whether they are safe, and names where to find somebody to talk to.
///
/// To ask, to follow up and to help somebody connect are steps of #BeThe1To, the campaign of the 988 Suicide & Crisis Lifeline
/// (bethe1to.com). That a program can do no more is said, so that nobody waits for it.
pub fn looking_in(name: &str, locale: Option<&str>) -> String {
    format!(
        "Hello {name}. You asked me to look in on you, and when we talked, things were hard. How are you now, and are you safe? I am a \
         program and cannot do much more than ask; people can.\n\n{}",
        Help::Crisis.text(locale)
    )
}

/// The name of the country whose help lines a locale brings; `None` where none are known.
pub fn helps_in(locale: &str) -> Option<&'static str> {
    country(locale).map(|country| country.name.as_str())
}

/// Every country whose help lines are known: its code, and its name.
pub fn helped_countries() -> impl Iterator<Item = (&'static str, &'static str)> {
    LINES.country.iter().map(|country| (country.code.as_str(), country.name.as_str()))
}

/// The country that a locale tells: its region, or its language where that is telling enough.
fn country(locale: &str) -> Option<&'static Country> {
    let mut parts = locale.split(['.', '@']).next().unwrap_or_default().split(['-', '_']);
    let language = parts.next()?.to_ascii_lowercase();
    // A region has two letters; what has four is a script, what has three digits is a part of the world.
    let rest: Vec<&str> = parts.collect();
    let region = rest.iter().find(|part| part.len() == 2 && part.chars().all(|c| c.is_ascii_alphabetic()));
    LINES.country.iter().find(|country| match region {
        Some(region) => country.code.eq_ignore_ascii_case(region),
        None => rest.is_empty() && country.languages.contains(&language),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_fits_and_names_a_way_out() {
        let locales = LINES.country.iter().map(|country| Some(format!("xx-{}", country.code))).chain([None]);
        for locale in locales {
            for help in [Help::Crisis, Help::Danger] {
                let text = help.text(locale.as_deref());
                assert!((1..=MAX_HELP_CHARS).contains(&text.chars().count()), "{text}");
                assert!(text.contains("local emergency number"), "{text}");
                assert_eq!(text.contains("findahelpline.com"), help == Help::Crisis, "{text}");
            }
        }
        for country in &LINES.country {
            assert!(!country.lines.is_empty() && country.code.len() == 2, "{}", country.name);
            for line in &country.lines {
                assert!(is_sourced(line), "{line}");
            }
        }
    }

    /// Whose it is, the number, and the public page it is from: `Name: number (page.org)`.
    fn is_sourced(line: &str) -> bool {
        let page = line.strip_suffix(')').and_then(|line| line.rsplit_once(" ("));
        let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        page.is_some_and(|(told, page)| {
            let named = told.split_once(": ").is_some_and(|(whose, number)| {
                whose.chars().any(char::is_alphabetic) && number.chars().any(|c| c.is_ascii_digit())
            });
            named && page.contains('.') && page.split('.').all(is_part)
        })
    }

    #[test]
    fn a_line_without_its_source_is_told_from_one_with_it() {
        assert!(is_sourced("Samaritans: 116 123 (samaritans.org)"));
        for line in
            ["Samaritans: 116 123", "116 123 (samaritans.org)", "Samaritans (samaritans.org)", "Some: 1 (ask us.)"]
        {
            assert!(!is_sourced(line), "{line}");
        }
    }

    #[test]
    fn where_no_line_is_known_the_directory_is_named_and_none_of_another_country() {
        let elsewhere = Help::Crisis.text(None);
        assert!(elsewhere.contains(&LINES.directory) && elsewhere.contains("112 or 911"), "{elsewhere}");
        for locale in ["pt-BR", "en", "es-419", "xx", "", "C.UTF-8"] {
            assert_eq!(Help::Crisis.text(Some(locale)), elsewhere, "{locale:?}");
        }
        for (number, country) in LINES.country.iter().enumerate() {
            let text = Help::Crisis.text(Some(&format!("en-{}", country.code)));
            assert!(text.contains(&country.lines[0]) && text.contains(&country.emergency), "{text}");
            let others = LINES.country.iter().take(number).filter(|other| other.lines != country.lines);
            assert!(others.into_iter().all(|other| !text.contains(&other.lines[0])), "{text}");
        }
    }

    #[test]
    fn who_is_looked_in_on_after_a_hard_time_is_asked_plainly_and_told_where_there_is_help() {
        for locale in [None, Some("de-AT"), Some("pt-BR")] {
            let text = looking_in("Ann", locale);
            assert!(text.starts_with("Hello Ann.") && text.contains("are you safe?"), "{text}");
            assert!(text.ends_with(&Help::Crisis.text(locale)), "{text}");
            assert!(text.chars().count() <= 2 * MAX_HELP_CHARS, "{text}");
        }
    }

    #[test]
    fn a_locale_tells_a_country_where_it_can() {
        fn check(locale: &str, code: Option<&str>) {
            assert_eq!(country(locale).map(|country| country.code.as_str()), code, "{locale:?}");
            let named = helped_countries().find(|(of, _)| Some(*of) == code).map(|(_, name)| name);
            assert_eq!(helps_in(locale), named, "{locale:?}");
        }
        check("en-US", Some("US"));
        check("en_GB.UTF-8", Some("GB"));
        check("de", Some("DE"));
        check("de-AT", Some("AT"));
        check("fr-CA", Some("CA"));
        check("DE-de@euro", Some("DE"));
        check("sv-SE", Some("SE"));
        check("zh-Hant-NZ", Some("NZ"));
        // Spoken in too many places, or nobody knows of.
        check("en", None);
        check("es-419", None);
        check("es", None);
        check("pt-BR", None);
        check("fr-419", None);
        check("", None);
        check("C", None);
        check("--_", None);
        check("\u{1f480}", None);
    }
}
