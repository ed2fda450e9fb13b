//! The two placeholders of persona texts.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

static PLACEHOLDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\{\{(user|char)\}\}").expect("the pattern is constant and a test runs it"));

/// Replaces `{{user}}` and `{{char}}` with the names of the person and the persona. Placeholders inside a name are not
/// replaced.
pub fn fill_placeholders<'a>(text: &'a str, person: &str, persona: &str) -> Cow<'a, str> {
    PLACEHOLDER.replace_all(text, |found: &Captures<'_>| {
        if found[1].eq_ignore_ascii_case("user") { person.to_owned() } else { persona.to_owned() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_once() {
        assert_eq!(fill_placeholders("{{user}} meets {{CHAR}}", "{{char}}", "Ann"), "{{char}} meets Ann");
        assert!(matches!(fill_placeholders("plain", "a", "b"), Cow::Borrowed("plain")));
    }
}
