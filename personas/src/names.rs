//! The forms of a name by which people call a persona.
//!
//! A name in a card is decorated: `★Luna★`, `Nova ✨`, `Luna (v2)`, `Dr. Quill`. Only letters and digits count when
//! somebody calls it. A name that is also a common word, such as `Will`, needs clearer signs of a call.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::fold::{fold, plain};

/// Everyday words that are also names, folded.
static COMMON_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("common_words.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
});

/// Titles that people leave out when they call somebody.
const TITLES: [&str; 9] = ["mr", "mrs", "ms", "miss", "mx", "dr", "prof", "professor", "doctor"];

/// One form of a name that calls a persona.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpokenName {
    /// Its words as people see them, without accents and decoration, such as `["Dr", "Quill"]`.
    pub words: Vec<String>,
    /// The form as people write it, such as `Dr Quill` and `O'Neil`.
    pub shown: String,
    /// True if marks without spaces separate some of its words, as in `J.A.R.V.I.S.`; then it may be written as one
    /// word, too.
    pub joins: bool,
    /// True if the form is also a common word, a single letter, or a name without its title. Such a name alone does not
    /// call anybody: it needs a comma, a greeting or another sign.
    pub common: bool,
}

impl SpokenName {
    fn new(text: &str, shortened: bool) -> Option<Self> {
        let plain = plain(text);
        let words: Vec<String> =
            plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let joins = words.len() > plain.split_whitespace().count();
        let common = match words.as_slice() {
            [] => return None,
            [word] => shortened || is_common(word),
            _ => shortened || joins && is_common(&words.concat()),
        };
        let initials = words.len() > 1 && words.iter().all(|word| word.chars().count() == 1);
        let bare = plain.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        let shown = match joins && initials {
            true => words.concat(),
            false => bare.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "),
        };
        Some(Self { words, shown, joins, common })
    }
}

/// Returns the forms of a name that call a persona: the whole name, the name without a part in brackets, and the name
/// without a title. Returns none if the name has no letters and digits.
pub fn spoken_names(name: &str) -> Vec<SpokenName> {
    let bare = without_brackets(name);
    let mut forms: Vec<SpokenName> = Vec::new();
    let mut add = |form: Option<SpokenName>| {
        if let Some(form) = form.filter(|form| forms.iter().all(|known| known.words != form.words)) {
            forms.push(form);
        }
    };
    add(SpokenName::new(name, false));
    add(SpokenName::new(&bare, false));
    if let Some((title, rest)) = bare.trim_start().split_once([' ', '.'])
        && TITLES.contains(&fold(title.trim_end_matches('.')).as_str())
    {
        add(SpokenName::new(rest, true));
    }
    forms
}

/// Returns the forms of a name as people may write them, such as `Dr Quill` and `Quill`.
pub fn callable_as(name: &str) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    for form in spoken_names(name) {
        if !shown.contains(&form.shown) {
            shown.push(form.shown);
        }
    }
    shown
}

/// Returns the name without its parts in round, square, curly or wide brackets.
fn without_brackets(name: &str) -> String {
    let mut depth = 0usize;
    let kept: String = name
        .chars()
        .filter(|c| match c {
            '(' | '[' | '{' | '（' | '【' | '「' | '『' => {
                depth += 1;
                false
            }
            ')' | ']' | '}' | '）' | '】' | '」' | '』' => {
                depth = depth.saturating_sub(1);
                false
            }
            _ => depth == 0,
        })
        .collect();
    kept
}

/// Returns true if a word in any case is an everyday word or a single letter of a script with many-lettered words.
fn is_common(word: &str) -> bool {
    let word = fold(word);
    let mut chars = word.chars();
    let single = matches!((chars.next(), chars.next()), (Some(only), None) if only < '\u{2E80}');
    single || COMMON_WORDS.contains(word.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoration_is_no_part_of_a_spoken_name() {
        #[track_caller]
        fn check(name: &str, forms: &[&str]) {
            assert_eq!(callable_as(name), forms, "{name:?}");
        }
        check("Nova ✨", &["Nova"]);
        check("★Luna★", &["Luna"]);
        check("Luna (v2)", &["Luna v2", "Luna"]);
        check("Dr. Quill", &["Dr Quill", "Quill"]);
        check("Mr. O'Neil", &["Mr O'Neil", "O'Neil"]);
        check("J.A.R.V.I.S.", &["JARVIS"]);
        check("K!", &["K"]);
        check("Zoë", &["Zoe"]);
        check("澪", &["澪"]);
        check("✨", &[]);
        check("(v2)", &["v2"]);
    }

    #[test]
    fn common_words_are_known_in_any_case() {
        let common = |name: &str| spoken_names(name).iter().map(|form| form.common).collect::<Vec<_>>();
        assert_eq!(common("WILL"), [true]);
        assert_eq!(common("Azera"), [false]);
        assert_eq!(common("M."), [true]);
        assert_eq!(common("W.I.L.L."), [true]);
        assert_eq!(common("澪"), [false]);
        assert_eq!(common("Dr. Quill"), [false, true]);
        assert_eq!(common("Grace Hope"), [false]);
        assert!(COMMON_WORDS.iter().all(|word| *word == fold(word)), "the list is compared with folded words");
    }
}
