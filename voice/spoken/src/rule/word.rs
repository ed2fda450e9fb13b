//! Words that are not said as they are written.

use super::link::spell;
use super::{group, pattern};
use crate::number::{cardinal, ordinal, roman};
use crate::scan::{Input, Said};
use crate::table::{longest, tables};

/// "p. 5", "No. 5", "#1", "~5": a sign or short word before a number.
pub fn before_number(input: &Input<'_>) -> Option<Said> {
    let lower: String = input.rest.chars().take(8).flat_map(char::to_lowercase).collect();
    let (key, words) = longest(&tables().before_number, &lower)?;
    let fits = pattern!(r"^ ?[\d$€£.]").is_match(input.after(key.len())) && input.is_fresh();
    // "2 + 3" is a sum.
    let sum = key == "+"
        && (input.after(1).starts_with(' ') || input.before.trim_end().ends_with(|c: char| c.is_ascii_digit()));
    let counted = key == "sec." && input.word_before().starts_with(|c: char| c.is_ascii_digit());
    if fits && !sum && !counted { Said::new(key.len(), format!("{words} ")) } else { None }
}

/// MP3, GPT-4, COVID-19, H2O.
pub fn letters_then_digits(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^([A-Za-z]+)(-?)\d[A-Za-z0-9]*").captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    let name = group(&found, 1).chars().any(char::is_uppercase);
    if (!group(&found, 2).is_empty() && !name) || !input.ends_at(len) {
        return None;
    }
    Said::new(len, super::figure::mixed(group(&found, 0)))
}

/// Ctrl+C, Cmd-V, Alt+F4: keys that are pressed together.
pub fn keys(input: &Input<'_>) -> Option<Said> {
    if !input.is_fresh() {
        return None;
    }
    let found = pattern!(r"^([A-Za-z]+)(?:(?: ?\+ ?|-)[A-Za-z0-9]+)*").captures(input.rest)?;
    let tables = tables();
    let first = group(&found, 1).to_lowercase();
    if !tables.modifiers.has(&first) {
        return None;
    }
    let mut said = String::new();
    let mut len = 0;
    for part in pattern!(r"(?: ?\+ ?|-)?([A-Za-z0-9]+)").captures_iter(group(&found, 0)) {
        let key = group(&part, 1);
        let Some(words) = key_name(key) else { break };
        if !said.is_empty() {
            said.push(' ');
        }
        said.push_str(&words);
        len += group(&part, 0).len();
    }
    // "Shift" and "option" alone are words; "Ctrl" is none.
    let alone = len == group(&found, 1).len();
    if !input.ends_at(len) || (alone && !matches!(first.as_str(), "ctrl" | "cmd")) {
        return None;
    }
    Said::new(len, said)
}

/// Says a key: its name, a letter or digit, or a function key.
fn key_name(key: &str) -> Option<String> {
    if let Some(name) = tables().keys.get(&key.to_lowercase()) {
        return Some(name.clone());
    }
    let number = |digits: &str| digits.parse().ok().map(cardinal);
    match key.chars().count() {
        1 => number(key).or_else(|| Some(key.to_uppercase())),
        2 | 3 => number(key.strip_prefix(['F', 'f'])?).map(|number| format!("F {number}")),
        _ => None,
    }
}

/// btw, idk, w/o.
pub fn chat(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^([A-Za-z]+)(/[A-Za-z]*)?").captures(input.rest).filter(|_| input.is_fresh())?;
    let table = &tables().chat;
    [group(&found, 0), group(&found, 1)].into_iter().find_map(|written| {
        let words = table.get(&written.to_lowercase())?;
        let fits = input.ends_at(written.len())
            && !matches!(written, "RN" | "JK" | "PPL")
            && !input.after(written.len()).starts_with('/');
        if fits { Said::new(written.len(), format!("{words} ")).map(|said| trim(said, input)) } else { None }
    })
}

/// A space after the words is wanted only if a letter follows directly.
fn trim(mut said: Said, input: &Input<'_>) -> Said {
    if input.ends_at(said.len) {
        said.words.truncate(said.words.trim_end().len());
    }
    said
}

/// "Doctor" or "Drive", "Saint" or "Street", by what stands around it.
fn doctor_or_saint(input: &Input<'_>, short: &str) -> &'static str {
    let name_follows = input.after(short.len()).trim_start_matches('.').trim_start().starts_with(char::is_uppercase);
    let word = input.before.trim_end().rsplit(char::is_whitespace).next().unwrap_or_default();
    let starts = word.len() >= input.before.trim().len();
    let street = input.before.ends_with(' ')
        && word.starts_with(char::is_uppercase)
        && word.ends_with(char::is_alphanumeric)
        && word.len() > 1;
    match (short, !name_follows || (street && !starts)) {
        ("Dr", true) => "Drive",
        ("Dr", false) => "Doctor",
        (_, true) => "Street",
        (_, false) => "Saint",
    }
}

pub fn abbreviation(input: &Input<'_>) -> Option<Said> {
    const TITLES: [&str; 11] = ["gen.", "col.", "capt.", "lt.", "sgt.", "sen.", "rep.", "gov.", "rev.", "hon.", "mt."];
    const ENDS: [&str; 11] = ["etc.", "inc.", "ltd.", "corp.", "jr.", "sr.", "ave.", "blvd.", "rd.", "ph.d.", "et al."];
    let found = pattern!(r"^(?:et al\.|\p{L}+(?:\.\p{L}+)*\.?)").find(input.rest).filter(|_| input.is_fresh())?;
    let written = found.as_str();
    let ends_text = input.after(written.len()).trim_matches(['"', '”', ')', '*', '.', ' ']).is_empty();
    let name_follows = pattern!(r"^ \p{Lu}").is_match(input.after(written.len()));
    let stem = written.trim_end_matches('.');
    if matches!(stem, "Dr" | "St") && (written.ends_with('.') || name_follows) {
        let stop = if ends_text { "." } else { "" };
        return Said::new(written.len(), format!("{}{stop}", doctor_or_saint(input, stem)));
    }
    let lower = format!("{}.", stem.to_lowercase());
    if !(written.ends_with('.') || stem == "etc" || (name_follows && matches!(stem, "Mr" | "Mrs" | "Ms" | "Prof"))) {
        return None;
    }
    let words = tables().abbreviations.get(&lower)?;
    let title = TITLES.contains(&lower.as_str()) && !(name_follows && written.starts_with(char::is_uppercase));
    let small =
        matches!(lower.as_str(), "max." | "est." | "resp." | "incl.") && written.starts_with(char::is_uppercase);
    if title || small || (ends_text && !ENDS.contains(&lower.as_str())) {
        return None;
    }
    Said::new(written.len(), if ends_text { format!("{words}.") } else { words.clone() })
}

/// U.S., a.m., and initials: J. R. R.
pub fn dotted_letters(input: &Input<'_>) -> Option<Said> {
    if !input.is_fresh() {
        return None;
    }
    if let Some(found) = pattern!(r"^(?:\p{L}\.){2,}").find(input.rest).filter(|found| input.ends_at(found.len())) {
        let stop = if input.after(found.len()).is_empty() { "." } else { "" };
        return Said::new(found.len(), format!("{}{stop}", spell(found.as_str())));
    }
    let found = pattern!(r"^(\p{Lu})\. ?\p{Lu}").captures(input.rest)?;
    let letter = group(&found, 1);
    if letter == "I" { None } else { Said::new(letter.len() + 1, format!("{letter} ")) }
}

/// Henry VIII, Chapter IV, World War II.
pub fn numeral(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^[IVXLCDM]+").find(input.rest).filter(|_| input.is_fresh())?;
    let number = roman(found.as_str()).filter(|_| input.ends_at(found.len()) && !input.shouts)?;
    let written = input.before.trim_end().rsplit(char::is_whitespace).next().unwrap_or_default();
    let tables = tables();
    let after = input.after(found.len());
    let single = found.len() == 1;
    if tables.counted.has(&written.to_lowercase()) {
        let capital = written.starts_with(char::is_uppercase);
        let pronoun = found.as_str() == "I" && !capital;
        return if pronoun { None } else { Said::new(found.len(), cardinal(number)) };
    }
    if tables.monarchs.has(written) {
        // "James I think" is no king.
        let ends = pattern!(r"^(?:$|[.,!?;:)]|['’]s| (?:of|and|was|is|had)\b)").is_match(after);
        return if single && !ends { None } else { Said::new(found.len(), format!("the {}", ordinal(number))) };
    }
    let small = found.as_str().chars().all(|c| matches!(c, 'I' | 'V' | 'X'));
    let bowl = written == "Bowl";
    let named = written.starts_with(char::is_uppercase) && written.chars().count() > 1;
    if named && !single && (small || bowl) { Said::new(found.len(), cardinal(number)) } else { None }
}

/// Says capitals: a known word, or letter by letter.
pub fn capitals(letters: &str) -> String {
    tables().acronym_words.get(letters).cloned().unwrap_or_else(|| spell(letters))
}

/// NASA, HTML, APIs.
pub fn acronym(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\p{Lu}{2,})(s?)").captures(input.rest).filter(|_| input.is_fresh())?;
    let (letters, plural) = (group(&found, 1), group(&found, 2));
    let len = letters.len() + plural.len();
    let tables = tables();
    if !input.ends_at(len) {
        return None;
    }
    if let Some(word) = tables.acronym_words.get(letters) {
        return Said::new(len, format!("{word}{plural}"));
    }
    if input.shouts && !has_no_vowel(letters) || tables.shouted.has(letters) {
        return None;
    }
    let known = tables.spelled.has(letters);
    let spelled = known || has_no_vowel(letters) || letters.chars().count() <= 3;
    if !spelled || letters.chars().count() > 6 {
        return None;
    }
    let said = spell(letters);
    Said::new(len, if plural.is_empty() { said } else { format!("{said}'s") })
}

fn has_no_vowel(letters: &str) -> bool {
    letters.is_ascii() && !letters.contains(['A', 'E', 'I', 'O', 'U', 'Y'])
}

/// Other words in capitals are words.
pub fn shouted(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^\p{Lu}{2,}(?:['’]\p{Lu}+)*").find(input.rest).filter(|_| input.is_fresh())?;
    let lower = found.as_str().to_lowercase().replace('’', "'");
    if !input.ends_at(found.len()) {
        return None;
    }
    if longest_run(&lower) >= 3 { Said::new(found.len(), shorten(&lower)) } else { Said::new(found.len(), lower) }
}

fn longest_run(word: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    let mut last = None;
    for c in word.chars() {
        run = if last == Some(c) { run + 1 } else { 1 };
        last = Some(c);
        longest = longest.max(run);
    }
    longest
}

/// Brings a stretched word to its usual form: the double letter where a known word has it, else the single one.
fn shorten(word: &str) -> String {
    let squeeze = |most: usize| {
        let mut out = String::new();
        let mut run = 0;
        let chars: Vec<char> = word.chars().collect();
        for (at, c) in chars.iter().enumerate() {
            run = if at > 0 && chars.get(at - 1) == Some(c) { run + 1 } else { 1 };
            let total = run + chars.iter().skip(at + 1).take_while(|next| *next == c).count();
            if run <= if total >= 3 { most } else { 2 } {
                out.push(*c);
            }
        }
        out
    };
    let double = squeeze(2);
    if tables().doubled.has(&double.to_lowercase()) { double } else { squeeze(1) }
}

/// Sooooo, hahahaha.
pub fn stretched(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^\p{L}+").find(input.rest).filter(|_| input.is_fresh())?;
    let word = found.as_str();
    if pattern!(r"^(?i:(?:ha){3,}h?|a?(?:ha){3,}h?)$").is_match(word) {
        return Said::new(word.len(), "haha");
    }
    if word.eq_ignore_ascii_case("www") || longest_run(&word.to_lowercase()) < 3 {
        None
    } else {
        Said::new(word.len(), shorten(word))
    }
}

/// Any other word, as it is.
pub fn plain(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^\p{L}[\p{L}\p{M}]*(?:['’]\p{L}+)*").find(input.rest)?;
    let word: String = found.as_str().replace('’', "'").chars().filter(|c| !c.is_numeric()).collect();
    Said::new(found.len(), word)
}
