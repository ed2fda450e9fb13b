//! Telephone numbers.

use super::pattern;
use crate::number::digits;
use crate::scan::{Input, Said};
use crate::table::tables;

/// A telephone number, its groups with a pause between them.
pub fn phone(input: &Input<'_>) -> Option<Said> {
    const FORMS: &str = concat!(
        r"^(?:",
        r"\+\d{1,3}(?:[ .\-]?\(?\d{1,5}\)?){1,6}",
        r"|(?:1[ .\-])?\(\d{3}\) ?\d{3}[ .\-]\d{4}",
        r"|(?:\d{1,2}[.\-])?\d{3}[.\-]\d{3}[.\-]\d{4}",
        r"|\d{3}-\d{4}",
        r"|0\d{2,4}(?:[ /\-]\d{2,4}){1,4}",
        r")",
    );
    static FORM: std::sync::LazyLock<regex::Regex> =
        std::sync::LazyLock::new(|| regex::Regex::new(FORMS).expect("a test uses each pattern"));
    let found = FORM.find(input.rest).filter(|_| input.is_fresh())?;
    let count = found.as_str().chars().filter(char::is_ascii_digit).count();
    let after = input.after(found.len());
    if !(7..=15).contains(&count) || !input.ends_at(found.len()) || pattern!(r"^[.,]\d").is_match(after) {
        return None;
    }
    let plus = if found.as_str().starts_with('+') { "plus " } else { "" };
    let groups: Vec<String> =
        found.as_str().split(|c: char| !c.is_ascii_digit()).map(digits).filter(|said| !said.is_empty()).collect();
    Said::new(found.len(), format!("{plus}{}", groups.join(", ")))
}

/// Numbers of help lines and emergency services, digit by digit.
pub fn emergency(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^\d{2,3}(?:[ -]?\d{2,3}){0,2}").find(input.rest).filter(|_| input.is_fresh())?;
    let numbers = &tables().emergency;
    let whole: String = found.as_str().chars().filter(char::is_ascii_digit).collect();
    let called = input.words_before().take(3).any(|word| numbers.cues.contains(&word));
    let known = numbers.always.contains(&whole) || (called && numbers.called.contains(&whole));
    if !known || !input.ends_at(found.len()) || pattern!(r"^[.,:/]\d|^ ?[%°]").is_match(input.after(found.len())) {
        return None;
    }
    Said::new(found.len(), digits(&whole))
}
