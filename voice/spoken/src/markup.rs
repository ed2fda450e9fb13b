//! Takes the markup of chats out of a text: Markdown, HTML, code, mentions and actions.

use crate::language::Phrases;
use crate::rule::{date, group, pattern};
use crate::table::tables;
use crate::{CodeNote, Language, Options, german};

/// Returns the text without markup. `code_noted` tells whether the code was mentioned before, and is set if it is now.
pub fn plain_text(text: &str, options: &Options, language: Language, code_noted: &mut bool) -> String {
    let marks = Marks { options, language, phrases: Phrases::of(language) };
    let text = without_code(text, marks.note(), code_noted);
    let lines: Vec<String> = text.split(['\n', '\r']).map(|line| block(line, &marks)).collect();
    let mut out = String::new();
    for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
        if !out.is_empty() {
            out.push_str(if out.ends_with(|c: char| c.is_alphanumeric()) { ". " } else { " " });
        }
        out.push_str(line);
    }
    out
}

/// How marks are read.
struct Marks<'a> {
    options: &'a Options,
    language: Language,
    phrases: &'static Phrases,
}

impl Marks<'_> {
    /// Returns what is said in place of code.
    fn note(&self) -> &'static str {
        match self.options.code {
            CodeNote::InChat => self.phrases.code_in_chat,
            CodeNote::InMessage => self.phrases.code_in_message,
            CodeNote::NotRead => self.phrases.code_not_read,
        }
    }
}

/// Puts the note in place of code blocks, once.
fn without_code(text: &str, note: &str, noted: &mut bool) -> String {
    let pattern = pattern!(r"(?s)```(.*?)(?:```+|$)|(?m:^[ \t]{0,3}~~~)(.*?)(?:~~~+|$)");
    let replaced = pattern.replace_all(text, |found: &regex::Captures<'_>| {
        let body = group(found, 1);
        // Nothing is sent or shown of a block without code.
        if body.trim().is_empty() && group(found, 2).trim().is_empty() {
            return " ".to_owned();
        }
        if group(found, 0).starts_with('`') && !body.contains('\n') {
            return format!("`{}`", body.trim());
        }
        let is_silent = std::mem::replace(noted, true) || note.is_empty();
        if is_silent { " ".to_owned() } else { format!("\n{note}.\n") }
    });
    replaced.into_owned()
}

/// Takes the marks off the start of a line, and the bars out of a row of a table.
fn block(line: &str, marks: &Marks<'_>) -> String {
    let mut rest = line.trim();
    if pattern!(r"^(?:[-*_=] ?){3,}$|^\|?(?: ?:?-{2,}:? ?\|)+(?: ?:?-{2,}:? ?)?$").is_match(rest) {
        return String::new();
    }
    while let Some(found) = pattern!(r"^(?:>{1,3} ?|#{1,6} +|-# +)").find(rest) {
        if rest.starts_with('>') && pattern!(r"^>[:;.]").is_match(rest) {
            break;
        }
        rest = rest.get(found.len()..).unwrap_or_default();
    }
    if let Some(found) = pattern!(r"^[-*+•] +").find(rest).filter(|found| found.len() < rest.len()) {
        rest = rest.get(found.len()..).unwrap_or_default();
    }
    let mut head = String::new();
    if let Some(found) = pattern!(r"^\[([ xX])\] +").captures(rest) {
        head = if group(&found, 1) == " " { marks.phrases.to_do } else { marks.phrases.done }.to_owned();
        rest = rest.get(group(&found, 0).len()..).unwrap_or_default();
    } else if let Some(found) = pattern!(r"^(\d{1,3})[.)] +(?:\D|\d+ )").captures(rest) {
        head = format!("{}, ", group(&found, 1));
        let skip = pattern!(r"^\d{1,3}[.)] +").find(rest).map_or(0, |found| found.len());
        rest = rest.get(skip..).unwrap_or_default();
    }
    if rest.len() > 1 && rest.starts_with('|') && !rest.starts_with("||") {
        let cells: Vec<String> = rest.trim_matches('|').split('|').map(|cell| inline(cell.trim(), marks)).collect();
        return cells.join(", ");
    }
    format!("{head}{}", inline(rest, marks))
}

/// Takes the markup inside a line out.
fn inline(line: &str, marks: &Marks<'_>) -> String {
    let text = platform_marks(line, marks);
    let text = pattern!(r"!\[([^\]]*)\]\([^)]*\)")
        .replace_all(&text, |found: &regex::Captures<'_>| format!("{}{}", marks.phrases.picture, group(found, 1)));
    let text = pattern!(r"\[([^\]]+)\]\((?:<[^>]*>|[^)]*)\)").replace_all(&text, "$1");
    let text = pattern!(r"</?[a-zA-Z][^<>]{0,200}>").replace_all(&text, |found: &regex::Captures<'_>| {
        let inner = group(found, 0).trim_matches(['<', '>']);
        if inner.contains("://") || inner.contains('@') { format!(" {inner} ") } else { String::new() }
    });
    let text = entities(&text);
    let text = pattern!(r"``?([^`]+)``?")
        .replace_all(&text, |found: &regex::Captures<'_>| code(group(found, 1), marks.phrases));
    let text = pattern!(r"\|\|(.+?)\|\|").replace_all(&text, "$1");
    // Struck words are taken back.
    let text = pattern!(r"~~(.+?)~~").replace_all(&text, "");
    let text = pattern!(r"(\*\*\*|\*\*|__)([^\s*_](?:.*?[^\s*_])?)(\*\*\*|\*\*|__)").replace_all(&text, "$2");
    let text = emphasis(&text, '*', marks.language);
    let text = emphasis(&text, '_', marks.language);
    pattern!(r"\\([\p{P}\p{S}])").replace_all(&text, "$1").into_owned()
}

/// Mentions, channels, own emoji and time stamps of Discord.
fn platform_marks(text: &str, marks: &Marks<'_>) -> String {
    let pattern =
        pattern!(r"<(@!?|@&|#)(\d+)>|<a?:\w+:\d+>|<t:(-?\d{1,12})(?::([tTdDfFR]))?>|<(?:/[^:<>]+):\d+>|<id:\w+>");
    let replaced = pattern.replace_all(text, |found: &regex::Captures<'_>| {
        let name = marks.options.names.get(group(found, 2)).map(String::as_str);
        match group(found, 1) {
            "@" | "@!" => name.unwrap_or(marks.phrases.someone).to_owned(),
            "@&" => name.unwrap_or(marks.phrases.role).to_owned(),
            "#" => name.unwrap_or(marks.phrases.channel).to_owned(),
            _ if found.get(3).is_some() => {
                let start = found.get(0).map_or(0, |whole| whole.start());
                stamp(group(found, 3), group(found, 4), &last_word(text.get(..start).unwrap_or_default()), marks)
            }
            _ => String::new(),
        }
    });
    replaced.into_owned()
}

/// Returns the last word of a text, in small letters.
fn last_word(text: &str) -> String {
    text.split_whitespace().next_back().unwrap_or_default().to_lowercase()
}

fn stamp(seconds: &str, style: &str, before: &str, marks: &Marks<'_>) -> String {
    let at = seconds.parse().ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    let Some(at) = at.map(|at| at.to_zoned(marks.options.zone.clone())) else { return String::new() };
    match (marks.language, style) {
        (Language::English, style) => date::moment(&at, style),
        (Language::German, style) => german::stamp(&at, style, before),
        (Language::Other, "t" | "T") => at.strftime("%H:%M").to_string(),
        (Language::Other, "d" | "D" | "R") => at.strftime("%Y-%m-%d").to_string(),
        (Language::Other, _) => at.strftime("%Y-%m-%d %H:%M").to_string(),
    }
}

/// Short names in code are read; other code is not.
fn code(code: &str, phrases: &Phrases) -> String {
    let short = code.chars().count() <= 40 && pattern!(r"^[\p{L}\p{N} ._/@:+#-]+$").is_match(code);
    if short { code.to_owned() } else { phrases.some_code.to_owned() }
}

fn entities(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (written, sign)| text.replace(written, sign))
}

/// Takes the marks off emphasis, and leaves out actions.
fn emphasis(text: &str, mark: char, language: Language) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(mark) {
        let inner_end = after.char_indices().find(|(at, c)| *c == mark && closes(after, *at, mark)).map(|(at, _)| at);
        let opens = !before.ends_with(|c: char| c.is_alphanumeric() || c == '\\')
            && (!before.is_empty() || !out.ends_with(char::is_alphanumeric))
            && !after.starts_with(char::is_whitespace);
        let Some((inner, tail)) = inner_end.filter(|at| *at > 0 && opens).and_then(|at| after.split_at_checked(at))
        else {
            out.push_str(before);
            out.push(mark);
            rest = after;
            continue;
        };
        out.push_str(before);
        let tail = tail.get(1..).unwrap_or_default();
        if is_action(inner, &out, tail, language) {
            out.push(' ');
        } else {
            out.push_str(inner);
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn closes(text: &str, at: usize, mark: char) -> bool {
    let (Some(before), Some(after)) = (text.get(..at), text.get(at + 1..)) else { return false };
    !before.ends_with(|c: char| c.is_whitespace() || c == '\\')
        && !after.starts_with(|c: char| c.is_alphanumeric() || c == mark)
}

/// Whether emphasised words tell what somebody does: "smiles", "She waves slowly."
fn is_action(inner: &str, before: &str, after: &str, language: Language) -> bool {
    let words: Vec<String> = inner
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let tables = tables();
    let Some(first) = words.first() else { return false };
    let subject = matches!(first.as_str(), "she" | "he" | "they" | "i");
    let verb = if subject { words.get(1).unwrap_or(first) } else { first };
    let is_known = tables.actions.has(verb) && (subject || inner.starts_with(char::is_lowercase) || words.len() > 1);
    // Personas act in one language and speak in another.
    match language {
        Language::Other => return false,
        _ if is_known || german::is_action(&words) => return true,
        Language::German => return false,
        Language::English => {}
    }
    let apart = |text: &str, start: bool| {
        let end = if start { text.trim_end().chars().next_back() } else { text.trim_start().chars().next() };
        end.is_none_or(
            |c| if start { !c.is_alphanumeric() && c != ',' } else { c.is_uppercase() || !c.is_alphanumeric() },
        )
    };
    let third_person = verb.len() > 3 && verb.ends_with('s') && !verb.ends_with("ss") && !tables.no_actions.has(verb);
    let going = verb.len() > 5 && verb.ends_with("ing") && words.len() > 1;
    apart(before, true) && apart(after, false) && (third_person || going)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        plain_text(text, &Options::default(), Language::English, &mut false)
    }

    #[test]
    fn names_with_underscores_and_products_keep_their_signs() {
        assert_eq!(plain("snake_case_name and 3 * 4 * 5"), "snake_case_name and 3 * 4 * 5");
    }

    #[test]
    fn an_escaped_sign_is_no_markup() {
        assert_eq!(plain(r"\*not an action\*"), "*not an action*");
    }

    #[test]
    fn code_is_mentioned_once() {
        let mut noted = false;
        let first = plain_text("```\na\n```", &Options::default(), Language::English, &mut noted);
        assert_eq!(first, "I've put the code in the chat.");
        assert_eq!(plain_text("```\nb\n```", &Options::default(), Language::English, &mut noted), "");
    }
}
