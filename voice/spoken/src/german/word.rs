//! Addresses, names, abbreviations and signs.

use super::number::{Number, cardinal, digits};
use super::{starts_sentence, tables};
use crate::rule::{group, pattern};
use crate::scan::{Input, Said};
use crate::table::longest;

/// Says a part of a name: its words apart, and its numbers.
fn part(text: &str) -> String {
    let pieces = pattern!(r"\p{Lu}+(?:\p{Ll}+)?|\p{Ll}+|\p{L}+|[0-9]+").find_iter(text);
    let words: Vec<String> = pieces
        .map(|piece| match Number::parse(piece.as_str(), false) {
            Some(number) => number.words(),
            None => piece.as_str().to_owned(),
        })
        .collect();
    words.join(" ")
}

/// Says a name with dots: "example Punkt de".
fn dotted(text: &str) -> String {
    let parts: Vec<String> = text.split('.').map(part).filter(|said| !said.is_empty()).collect();
    parts.join(" Punkt ")
}

pub fn email(input: &Input<'_>) -> Option<Said> {
    let pattern =
        pattern!(r"^(?:mailto:)?([\p{L}\p{N}][\p{L}\p{N}._%+-]*)@([\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*\.\p{L}{2,})");
    let found = pattern.captures(input.rest).filter(|_| input.is_fresh())?;
    Said::new(group(&found, 0).len(), format!("{} ät {}", dotted(group(&found, 1)), dotted(group(&found, 2))))
}

/// A person or room of Matrix.
pub fn matrix_name(input: &Input<'_>) -> Option<Said> {
    let pattern = pattern!(r"^[@#!]([\p{L}\p{N}._=/-]+):[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*(?::\d+)?");
    let found = pattern.captures(input.rest).filter(|_| input.is_fresh())?;
    let whole = group(&found, 0).trim_end_matches('.');
    let name = input.options.names.get(whole).map(|name| part(name));
    let own = || if whole.starts_with('!') { "ein Raum".to_owned() } else { part(group(&found, 1)) };
    Said::new(whole.len(), name.unwrap_or_else(own))
}

/// A web address: "ein Link zu example Punkt de".
pub fn address(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(?i:[a-z][a-z0-9+.-]*://|www\.)[^\s<>]+").find(input.rest).filter(|_| input.is_fresh())?;
    let whole = found.as_str().trim_end_matches(['.', ',', '!', '?', ';', ':', '"', '\'', '”', '*', '_', '|', ')']);
    let host = dotted(host(whole));
    Said::new(whole.len(), if host.is_empty() { "ein Link".to_owned() } else { format!("ein Link zu {host}") })
}

/// Returns the host of an address, without `www.`.
pub fn host(address: &str) -> &str {
    let place = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = place.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    host.strip_prefix("www.").unwrap_or(host)
}

/// A host or a file without a scheme: wikipedia.de, Node.js, README.md.
pub fn name(input: &Input<'_>) -> Option<Said> {
    let pattern = pattern!(r"^\p{L}[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*\.([a-z][a-z0-9]{0,4})(/[^\s<>]*)?");
    let found = pattern.captures(input.rest).filter(|_| input.is_fresh())?;
    let english = crate::table::tables();
    let (ending, end) = (group(&found, 1), found.get(1)?.end());
    // Endings of one letter and words that German has are more likely the start of a sentence without a space.
    let is_known = english.hosts.has(ending)
        || english.extensions.contains_key(ending)
        || english.spelled_extensions.has(ending) && ending.len() > 1;
    let is_word = matches!(ending, "so" | "im" | "am" | "me");
    if !is_known || is_word || !input.ends_at(end) {
        return None;
    }
    let whole = group(&found, 0).trim_end_matches(['.', ',', '!', '?', ';', ':', ')']);
    Said::new(whole.len(), dotted(input.rest.get(..end)?))
}

pub fn mention(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^@([\p{L}\p{N}_][\p{L}\p{N}_.-]*)").captures(input.rest).filter(|_| input.is_fresh())?;
    let name = group(&found, 1).trim_end_matches(['.', '-']);
    Said::new(name.len() + 1, part(name))
}

pub fn hashtag(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^#([\p{L}_][\p{L}\p{N}_]*)").captures(input.rest).filter(|_| input.is_fresh())?;
    Said::new(group(&found, 0).len(), format!("Hashtag {}", part(group(&found, 1))))
}

/// v1.2.3, 1.2.3, 10.0.0.1.
pub fn version(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^([vV])?(\d+(?:\.\d+)+)").captures(input.rest).filter(|_| input.is_fresh())?;
    let numbers: Vec<&str> = group(&found, 2).split('.').collect();
    let len = group(&found, 0).len();
    let is_grouped = numbers.iter().skip(1).all(|number| number.len() == 3);
    let named = found.get(1).is_some();
    if !(named || numbers.len() > 2 && !is_grouped) || !input.ends_at(len) {
        return None;
    }
    let said: Vec<String> =
        numbers.iter().map(|number| number.parse().map_or_else(|_| digits(number), cardinal)).collect();
    Said::new(len, format!("{}{}", if named { "Version " } else { "" }, said.join(" Punkt ")))
}

/// A telephone number, its groups with a pause between them.
pub fn phone(input: &Input<'_>) -> Option<Said> {
    let pattern = pattern!(r"^(?:\+\d{1,3}(?:[ ./\-]?\(?\d{1,5}\)?){1,6}|0\d{2,4}(?:[ /\-]\d{2,8}){1,4})");
    let in_brackets = pattern!(r"^\(0\d{2,4}\) ?\d{2,8}(?:[ /\-]\d{2,8}){0,3}");
    let found = pattern.find(input.rest).or_else(|| in_brackets.find(input.rest)).filter(|_| input.is_fresh())?;
    let count = found.as_str().chars().filter(char::is_ascii_digit).count();
    if !(7..=15).contains(&count) || !input.ends_at(found.len()) {
        return None;
    }
    let plus = if found.as_str().starts_with('+') { "plus " } else { "" };
    let groups: Vec<String> =
        found.as_str().split(|c: char| !c.is_ascii_digit()).map(digits).filter(|said| !said.is_empty()).collect();
    Said::new(found.len(), format!("{plus}{}", groups.join(", ")))
}

/// A number of an emergency call, where somebody calls it: "Ruf die 112."
pub fn emergency(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(?:110|112|116117)\b").find(input.rest).filter(|_| input.is_fresh())?;
    let before = input.word_before();
    let is_called = matches!(before.as_str(), "die" | "der" | "notruf" | "unter" | "ruf" | "wähl" | "wähle");
    let counts = input.word_after(found.len()).starts_with(char::is_uppercase);
    (is_called && !counts).then_some(())?;
    Said::new(found.len(), digits(found.as_str()))
}

pub fn abbreviation(input: &Input<'_>) -> Option<Said> {
    input.is_fresh().then_some(())?;
    let known = longest(&tables().abbreviations, input.rest).map(|(key, words)| (key.len(), words.clone()));
    let (len, words) = known.or_else(|| uncapitalised(input.rest))?;
    Said::new(len, format!("{words}{}", stop_after(input, len)))
}

/// Returns the full stop of a sentence that ends with the stop of a short form.
pub fn stop_after(input: &Input<'_>, len: usize) -> &'static str {
    let is_end = input.after(len).trim().is_empty() || starts_sentence(input.word_after(len));
    if is_end && input.rest.get(..len).is_some_and(|written| written.ends_with('.')) { "." } else { "" }
}

/// Reads an abbreviation with a capital at the start of a sentence: "Z.B.". "Max." and "Min." are names, too.
pub fn uncapitalised(text: &str) -> Option<(usize, String)> {
    const LONGEST: usize = 14;
    let first = text.chars().next().filter(char::is_ascii_uppercase)?.to_ascii_lowercase();
    let head: String = std::iter::once(first).chain(text.chars().skip(1)).take(LONGEST).collect();
    let (key, words) = longest(&tables().abbreviations, &head)?;
    if matches!(key, "max." | "min.") {
        return None;
    }
    let mut letters = words.chars();
    let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    Some((key.len(), format!("{capital}{}", letters.as_str())))
}

/// Signs that mean something only between what they connect.
pub fn between(input: &Input<'_>) -> Option<Said> {
    let sign = input.rest.chars().next()?;
    let next = input.after(sign.len_utf8());
    let spaced = input.before.ends_with(char::is_whitespace) && next.starts_with(char::is_whitespace);
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    // "5 € - 10 €" is no difference.
    let is_after_number = input.before.trim_end().ends_with(|c: char| c.is_ascii_digit());
    let terms = is_after_number && is_number(&input.word_before()) && is_number(next.trim_start());
    let said = match sign {
        '-' | '−' if spaced && terms => " minus ",
        '*' | '⋅' if terms => " mal ",
        '/' if spaced && terms => " geteilt durch ",
        '/' => " ",
        '<' if spaced => " kleiner als ",
        '>' if spaced => " größer als ",
        _ => return None,
    };
    Said::new(sign.len_utf8(), said)
}

/// Other signs with a name. Rows of the same sign are ornaments and left out.
pub fn symbol(input: &Input<'_>) -> Option<Said> {
    let first = input.rest.chars().next()?;
    let row = input.rest.chars().take_while(|c| *c == first).count();
    if row >= 3 && !first.is_alphanumeric() && !matches!(first, '.' | '!' | '?') {
        return Said::new(row * first.len_utf8(), " ");
    }
    let (key, name) = longest(&tables().symbols, input.rest)?;
    Said::new(key.len(), format!(" {name} "))
}
