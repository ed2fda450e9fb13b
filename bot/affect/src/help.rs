//! Where people in danger find help, word for word: no model writes or changes a word of it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

const LINES_FILE: &str = include_str!("../rules/help_lines.toml");
const TEXTS_FILE: &str = include_str!("../rules/help_texts.toml");

/// Characters that a help text may have: it must fit below a reply on every platform.
pub const MAX_HELP_CHARS: usize = 600;

/// The language of whoever wrote neither a locale nor a phrase that tells one.
const DEFAULT_LANGUAGE: &str = "en";

/// What help is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Help {
    /// Somebody may harm themselves: where to find somebody to talk to.
    Crisis,
    /// Somebody may come to harm: whom to call.
    Danger,
}

/// For whom a help text is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Listener<'a> {
    /// The locale of the place, such as `en-GB`, `pt_BR` or `de`. It tells the country, and the language unless `language` does.
    pub locale: Option<&'a str>,
    /// The language that the person writes in, where that is known: an ISO 639-1 code.
    pub language: Option<&'a str>,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextsFile {
    language: Vec<Texts>,
}

/// The texts of one language. `{country}`, `{lines}`, `{directory}` and `{emergency}` are filled in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    code: String,
    crisis: String,
    crisis_anywhere: String,
    crisis_short: String,
    danger: String,
    danger_anywhere: String,
    plain: String,
    no_means: String,
    minor: String,
    refusal: String,
    local_emergency: String,
    /// Names of countries in this language; English where one is missing.
    #[serde(default)]
    countries: BTreeMap<String, String>,
}

static LINES: LazyLock<Lines> = LazyLock::new(|| toml::from_str(LINES_FILE).expect("a test reads the file"));
static TEXTS: LazyLock<Vec<Texts>> = LazyLock::new(|| {
    let file: TextsFile = toml::from_str(TEXTS_FILE).expect("a test reads the file");
    file.language
});

impl Help {
    /// Returns the full text to show below a reply. It names the country it is for and what there is elsewhere, because a
    /// locale is a guess. It is 1 to [`MAX_HELP_CHARS`] characters long.
    pub fn text(self, to: Listener<'_>) -> String {
        let texts = to.texts();
        match (self, to.country()) {
            (Self::Crisis, Some(country)) => texts.filled(&texts.crisis, Some(country)),
            (Self::Crisis, None) => texts.filled(&texts.crisis_anywhere, None),
            (Self::Danger, Some(country)) => texts.filled(&texts.danger, Some(country)),
            (Self::Danger, None) => texts.filled(&texts.danger_anywhere, None),
        }
    }

    /// Returns one line for a conversation in which the full text stands already.
    pub fn short(self, to: Listener<'_>) -> String {
        match self {
            Self::Crisis => {
                let texts = to.texts();
                texts.filled(&texts.crisis_short, to.country())
            }
            Self::Danger => self.text(to),
        }
    }

    /// Returns true if help of this kind stands in a text, in any language and for any country.
    pub fn stands_in(self, text: &str) -> bool {
        let countries = || LINES.country.iter();
        match self {
            Self::Crisis => {
                text.contains(&LINES.directory)
                    || countries().any(|country| country.lines.iter().any(|line| text.contains(line)))
            }
            Self::Danger => TEXTS.iter().any(|texts| {
                let here = countries().map(|country| texts.filled(&texts.danger, Some(country)));
                here.chain([texts.danger_anywhere.clone()]).any(|help| text.contains(&help))
            }),
        }
    }
}

/// Returns true if a text holds the refusal of something sexual or romantic with a child, in any language.
pub fn refuses(text: &str) -> bool {
    TEXTS.iter().any(|texts| text.contains(&texts.refusal))
}

impl Listener<'_> {
    /// What stands above the help text where no model may answer: that an AI cannot do this alone.
    pub fn plainly(self) -> &'static str {
        &self.texts().plain
    }

    /// The answer to a question about means within a conversation about danger.
    pub fn no_means(self) -> &'static str {
        &self.texts().no_means
    }

    /// What somebody under 18 is told besides.
    pub fn under_age(self) -> &'static str {
        &self.texts().minor
    }

    /// The answer to whoever asks for something sexual with or about somebody under 18.
    pub fn refusal(self) -> &'static str {
        &self.texts().refusal
    }

    fn texts(self) -> &'static Texts {
        let of_locale = self.locale.map(|locale| language_and_region(locale).0);
        let named = [self.language.map(str::to_owned), of_locale];
        named
            .into_iter()
            .flatten()
            .find_map(|code| texts_of(&code))
            .unwrap_or_else(|| texts_of(DEFAULT_LANGUAGE).expect("a test looks for the default language"))
    }

    fn country(self) -> Option<&'static Country> {
        country(self.locale.or(self.language)?)
    }
}

fn texts_of(language: &str) -> Option<&'static Texts> {
    // Other codes of the same languages.
    let code = match language {
        "no" | "nn" => "nb",
        "fil" => "tl",
        other => other,
    };
    TEXTS.iter().find(|texts| texts.code == code)
}

impl Texts {
    fn filled(&self, text: &str, country: Option<&Country>) -> String {
        let name = country.map(|country| self.countries.get(&country.code).unwrap_or(&country.name).as_str());
        let lines = country.map_or_else(|| LINES.directory.clone(), |country| country.lines.join("; "));
        let emergency = country.map_or(self.local_emergency.as_str(), |country| &country.emergency);
        text.replace("{country}", name.unwrap_or_default())
            .replace("{lines}", &lines)
            .replace("{directory}", &LINES.directory)
            .replace("{emergency}", emergency)
    }
}

/// The check-in for somebody who spoke of harming themselves, word for word. It repeats nothing of what they said, asks how they are
/// and whether they are safe, and names where to find somebody to talk to.
///
/// To ask, to follow up and to help somebody connect are steps of #BeThe1To, the campaign of the 988 Suicide & Crisis Lifeline
/// (bethe1to.com). The text says that a program can do no more, so that nobody waits for it.
pub fn check_in_opening(name: &str, locale: Option<&str>) -> String {
    format!(
        "Hello {name}. You asked me to look in on you, and when we talked, things were hard. How are you now, and are you safe? I am a \
         program and cannot do much more than ask; people can.\n\n{}",
        Help::Crisis.text(Listener { locale, language: Some(DEFAULT_LANGUAGE) })
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

/// The language of a locale, and its other parts.
fn language_and_region(locale: &str) -> (String, Vec<&str>) {
    let mut parts = locale.split(['.', '@']).next().unwrap_or_default().split(['-', '_']);
    let language = parts.next().unwrap_or_default().to_ascii_lowercase();
    (language, parts.collect())
}

/// The country that a locale tells: its region, or its language where that is telling enough.
fn country(locale: &str) -> Option<&'static Country> {
    let (language, rest) = language_and_region(locale);
    // A region has two letters; what has four is a script, what has three digits is a part of the world.
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
        for (locale, texts) in locales.flat_map(|locale| TEXTS.iter().map(move |texts| (locale.clone(), texts))) {
            let to = Listener { locale: locale.as_deref(), language: Some(&texts.code) };
            for help in [Help::Crisis, Help::Danger] {
                for text in [help.text(to), help.short(to)] {
                    assert!((1..=MAX_HELP_CHARS).contains(&text.chars().count()), "{text}");
                    assert!(!text.contains(['{', '}']), "{text}");
                }
                let text = help.text(to);
                assert_eq!(text.contains("findahelpline.com"), help == Help::Crisis, "{text}");
                assert!(
                    text.contains(&texts.local_emergency) || to.country().is_some() || texts.code != "en",
                    "{text}"
                );
            }
            for text in [to.plainly(), to.no_means(), to.under_age(), to.refusal()] {
                assert!((1..=MAX_HELP_CHARS / 2).contains(&text.chars().count()) && !text.contains('{'), "{text}");
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
        page.is_some_and(|(described, page)| {
            let named = described.split_once(": ").is_some_and(|(whose, number)| {
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
        let crisis = |locale: Option<&str>| Help::Crisis.text(Listener { locale, language: Some("en") });
        let other_country = crisis(None);
        assert!(other_country.contains(&LINES.directory) && other_country.contains("112 or 911"), "{other_country}");
        for locale in ["pt-AO", "en", "es-419", "xx", "", "C.UTF-8"] {
            assert_eq!(crisis(Some(locale)), other_country, "{locale:?}");
        }
        for (number, country) in LINES.country.iter().enumerate() {
            let locale = format!("en-{}", country.code);
            let text = crisis(Some(&locale));
            assert!(text.contains(&country.lines[0]) && text.contains(&country.emergency), "{text}");
            let others = LINES.country.iter().take(number).filter(|other| other.lines != country.lines);
            assert!(others.into_iter().all(|other| !text.contains(&other.lines[0])), "{text}");
        }
    }

    #[test]
    fn who_is_looked_in_on_after_a_hard_time_is_asked_plainly_and_told_where_there_is_help() {
        for locale in [None, Some("de-AT"), Some("pt-AO")] {
            let text = check_in_opening("Ann", locale);
            assert!(text.starts_with("Hello Ann.") && text.contains("are you safe?"), "{text}");
            assert!(text.ends_with(&Help::Crisis.text(Listener { locale, language: Some("en") })), "{text}");
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
        check("pt-AO", None);
        check("fr-419", None);
        check("", None);
        check("C", None);
        check("--_", None);
        check("\u{1f480}", None);
    }

    #[test]
    fn help_is_found_in_a_reply_and_not_where_it_is_missing() {
        for texts in TEXTS.iter() {
            for locale in [None, Some("en-US"), Some("de-DE")] {
                let to = Listener { locale, language: Some(&texts.code) };
                for help in [Help::Crisis, Help::Danger] {
                    let reply = format!("I hear you.\n\n{}", help.text(to));
                    assert!(help.stands_in(&reply), "{reply}");
                }
                assert!(Help::Crisis.stands_in(&Help::Crisis.short(to)));
            }
        }
        assert!(!Help::Crisis.stands_in("Please call somebody.") && !Help::Danger.stands_in("Stop, call the police."));
    }

    #[test]
    fn help_comes_in_the_language_of_the_person() {
        #[track_caller]
        fn check(locale: Option<&str>, language: Option<&str>, code: &str, country: Option<&str>) {
            let to = Listener { locale, language };
            assert_eq!(to.texts().code, code, "{to:?}");
            assert_eq!(to.country().map(|country| country.code.as_str()), country, "{to:?}");
        }
        // What somebody writes in tells the language, the place tells the country.
        check(Some("en-GB"), Some("de"), "de", Some("GB"));
        check(Some("fr-CA"), None, "fr", Some("CA"));
        check(None, Some("de"), "de", Some("DE"));
        check(None, Some("es"), "es", None);
        check(Some("nn-NO"), None, "nb", country("nn-NO").map(|country| country.code.as_str()));
        check(Some("xx"), None, "en", None);
        check(None, None, "en", None);
    }
}
