//! The two placeholders of persona texts, and the macros of character cards that are converted to them or removed.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

static PLACEHOLDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\{\{(user|char)\}\}").expect("the pattern is constant and a test runs it"));

static MACRO: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\{\{([^{}]*)\}\}|<(user|char|bot)>").expect("the pattern is constant and a test runs it")
});

/// Replaces `{{user}}` and `{{char}}` with the names of the person and the persona. Placeholders inside a name are not
/// replaced.
pub fn fill_placeholders<'a>(text: &'a str, person: &str, persona: &str) -> Cow<'a, str> {
    PLACEHOLDER.replace_all(text, |found: &Captures<'_>| {
        if found[1].eq_ignore_ascii_case("user") { person.to_owned() } else { persona.to_owned() }
    })
}

/// Reduces a card's macros to `{{user}}` and `{{char}}`. Comments and `{{original}}` are removed. A random choice
/// becomes its first option, because a persona's prompt must be the same each time. Returns the unknown macros, which
/// stay as text.
pub(crate) fn reduce_macros(text: &str) -> (String, Vec<String>) {
    let mut unknown = Vec::new();
    let reduced = MACRO.replace_all(text, |found: &Captures<'_>| {
        let inner = found.get(1).or_else(|| found.get(2)).map_or("", |inner| inner.as_str()).trim();
        let (name, argument) = inner.split_once(':').unwrap_or((inner, ""));
        match name.trim().to_lowercase().as_str() {
            "user" => "{{user}}".to_owned(),
            "char" | "bot" => "{{char}}".to_owned(),
            "original" | "comment" | "hidden_key" | "trim" | "noop" => String::new(),
            "newline" => "\n".to_owned(),
            "random" | "pick" => {
                let options = argument.trim_start_matches(':');
                options.split(',').map(str::trim).find(|option| !option.is_empty()).unwrap_or_default().to_owned()
            }
            name if name.starts_with("//") => String::new(),
            _ => {
                unknown.push(found[0].to_owned());
                found[0].to_owned()
            }
        }
    });
    (reduced.into_owned(), unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_once() {
        assert_eq!(fill_placeholders("{{user}} meets {{CHAR}}", "{{char}}", "Ann"), "{{char}} meets Ann");
        assert!(matches!(fill_placeholders("plain", "a", "b"), Cow::Borrowed("plain")));
    }

    #[test]
    fn macros_are_reduced() {
        fn check(text: &str, expected: &str, unknown: &[&str]) {
            let (reduced, found) = reduce_macros(text);
            assert_eq!(reduced, expected);
            assert_eq!(found, unknown);
        }
        check("{{User}} and <BOT>", "{{user}} and {{char}}", &[]);
        check("a{{// secret}}b{{comment: x}}{{original}}", "ab", &[]);
        check("{{random:red,blue}} {{pick::x,y}}", "red x", &[]);
        check("{{roll:d6}} {{time}}", "{{roll:d6}} {{time}}", &["{{roll:d6}}", "{{time}}"]);
        check("{{unclosed", "{{unclosed", &[]);
    }
}
