//! Signs, emoji and emoticons.

use super::pattern;
use crate::number::digits;
use crate::scan::{Input, Said};
use crate::table::{longest, tables};

/// An emoticon between spaces. Beside words it is left out, except in "I <3 you".
pub fn emoticon(input: &Input<'_>) -> Option<Said> {
    let (key, name) = longest(&tables().emoticons, input.rest)?;
    let apart = input.char_before().is_none_or(|c| c.is_whitespace() || c == '(');
    if !apart || !pattern!(r"^(?:$|[\s.,!?)])").is_match(input.after(key.len())) {
        return None;
    }
    if !input.has_words {
        return Said::new(key.len(), if input.before.contains(key) { "" } else { name });
    }
    let loves = key == "<3"
        && matches!(input.word_before().as_str(), "i" | "we" | "they" | "you")
        && !input.word_after(2).is_empty();
    Said::new(key.len(), if loves { "love" } else { "" })
}

/// An emoji. Beside words it is left out; alone each one is said once.
pub fn emoji(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(
        r"^(?:\p{Regional_Indicator}{2}|\p{Extended_Pictographic}[\u{FE0F}\p{Emoji_Modifier}]*(?:\u{200D}\p{Extended_Pictographic}[\u{FE0F}\p{Emoji_Modifier}]*)*)"
    ).find(input.rest)?;
    let first = found.as_str().chars().next()?;
    let tables = tables();
    if tables.symbols.contains_key(first.encode_utf8(&mut [0; 4])) || first.is_ascii() {
        return None;
    }
    if input.has_words || input.before.contains(first) {
        return Said::new(found.len(), "");
    }
    let name = longest(&tables.emoji, found.as_str()).map(|(_, name)| name.as_str()).unwrap_or_default();
    let pause = if input.before.is_empty() || name.is_empty() { "" } else { ", " };
    Said::new(found.len(), format!("{pause}{name}"))
}

/// An emoticon in a German sentence: laughter is said, if it stands alone.
pub fn emoticon_in_german(input: &Input<'_>) -> Option<Said> {
    emoticon(input).map(only_laughter)
}

/// An emoji in a German sentence: laughter is said, if it stands alone.
pub fn emoji_in_german(input: &Input<'_>) -> Option<Said> {
    emoji(input).map(only_laughter)
}

fn only_laughter(said: Said) -> Said {
    let words = if said.words.contains("haha") { "haha" } else { "" };
    Said { words: words.to_owned(), ..said }
}

fn superscript_digit(c: char) -> Option<char> {
    Some(match c {
        '⁰' => '0',
        '¹' => '1',
        '²' => '2',
        '³' => '3',
        '⁴' => '4',
        '⁵' => '5',
        '⁶' => '6',
        '⁷' => '7',
        '⁸' => '8',
        '⁹' => '9',
        _ => return None,
    })
}

/// x², 10⁻³, x^2.
pub fn superscript(input: &Input<'_>) -> Option<Said> {
    let caret = input.rest.starts_with('^');
    let text = input.after(usize::from(caret));
    let negative = text.starts_with(['⁻', '-']) && (caret || text.starts_with('⁻'));
    let skip = if negative { text.chars().next().map_or(0, char::len_utf8) } else { 0 };
    let power: Vec<char> = text
        .get(skip..)?
        .chars()
        .map_while(|c| superscript_digit(c).or((caret && c.is_ascii_digit()).then_some(c)))
        .collect();
    if power.is_empty() {
        return None;
    }
    let taken: usize = text.chars().take(usize::from(negative) + power.len()).map(char::len_utf8).sum();
    let len = usize::from(caret) + taken;
    let power: String = power.into_iter().collect();
    let raised = input.char_before().is_some_and(|c| c.is_alphanumeric() || c == ')');
    match power.parse() {
        Ok(value) if raised => Said::new(len, format!(" {}", super::figure::exponent(value, negative))),
        _ => Said::new(len, digits(&power)),
    }
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// A term of a sum: a number or a single letter.
fn is_term(word: &str) -> bool {
    is_number(word)
        || (word.chars().count() == 1 && word.chars().all(char::is_alphabetic) && !matches!(word, "a" | "i"))
}

/// Signs that mean something only between what they connect.
pub fn between(input: &Input<'_>) -> Option<Said> {
    let sign = input.rest.chars().next()?;
    let len = sign.len_utf8();
    let next = input.after(len);
    let spaced = input.before.ends_with(char::is_whitespace) && next.starts_with(char::is_whitespace);
    let after = next.trim_start().split(|c: char| !c.is_alphanumeric() && c != '√').next().unwrap_or_default();
    let before = input.word_before();
    let touches = input.char_before().is_some_and(char::is_alphanumeric) && next.starts_with(char::is_alphanumeric);
    let terms = is_term(&before) && is_term(after);
    match sign {
        '/' if touches && before.chars().any(char::is_alphabetic) => Said::new(len, " or "),
        '/' if spaced && terms => Said::new(len, "divided by"),
        '/' if spaced => Said::new(len, "or"),
        '-' if spaced && terms => Said::new(len, "minus"),
        '-' if touches && is_number(&before) && is_number(after) => Said::new(len, " "),
        '−' if terms => Said::new(len, " minus "),
        '*' | '⋅' | '∙' if (spaced || touches) && terms => Said::new(len, " times "),
        '<' if spaced && !after.is_empty() => Said::new(len, "less than"),
        '>' if spaced && !after.is_empty() => Said::new(len, "greater than"),
        '<' | '>' if touches && terms => Said::new(len, if sign == '<' { " less than " } else { " greater than " }),
        '#' if matches!(before.as_str(), "c" | "f") && input.char_before().is_some_and(char::is_alphabetic) => {
            Said::new(len, " sharp")
        }
        '^' => Said::new(len, " "),
        _ => None,
    }
}

/// Other signs with a name. Rows of the same sign are ornaments and left out.
pub fn symbol(input: &Input<'_>) -> Option<Said> {
    let first = input.rest.chars().next()?;
    let row = input.rest.chars().take_while(|c| *c == first).count();
    if row >= 3 && !first.is_alphanumeric() && !matches!(first, '.' | '!' | '?') {
        return Said::new(row * first.len_utf8(), " ");
    }
    let (key, name) = longest(&tables().symbols, input.rest)?;
    Said::new(key.len(), if name.is_empty() { " ".to_owned() } else { format!(" {name} ") })
}
