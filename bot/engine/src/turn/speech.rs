//! Splits a message into words and the marks between them, as far as calls by name need it. This module does no I/O.

use azera_personas::plain_name;

/// Pairs of quotation marks around words of somebody else.
const QUOTES: [(char, char); 7] =
    [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」'), ('『', '』'), ('`', '`')];

/// What stands in the place of a quotation.
const GAP: &str = " … ";

/// A message as words, without accents, and the marks between them.
#[derive(Debug)]
pub(super) struct Speech {
    /// The words in their own case.
    pub(super) words: Vec<String>,
    /// The words in lower case.
    pub(super) lower: Vec<String>,
    /// The marks before each word, and those after the last one; so it is one longer than `words`.
    pub(super) gaps: Vec<String>,
}

impl Speech {
    pub(super) fn of(text: &str) -> Self {
        let (mut words, mut gaps) = (Vec::new(), vec![String::new()]);
        let mut inside = false;
        for c in plain_name(text).chars() {
            if c.is_alphanumeric() {
                if !inside {
                    words.push(String::new());
                    gaps.push(String::new());
                }
                words.last_mut().expect("a word was begun").push(c);
            } else {
                gaps.last_mut().expect("it begins with one").push(c);
            }
            inside = c.is_alphanumeric();
        }
        let lower = words.iter().map(|word: &String| word.to_lowercase()).collect();
        Self { words, lower, gaps }
    }

    /// The marks before a word; those after the last word for the number of words.
    pub(super) fn gap(&self, at: usize) -> &str {
        self.gaps.get(at).map_or("", String::as_str)
    }
}

/// Returns a message without quoted lines (`> ...`, and all after `>>> `) and without emoji of a server (`<:wave:1>`).
pub(super) fn own_words(text: &str) -> String {
    let mut own = String::with_capacity(text.len());
    for line in text.lines() {
        let start = line.trim_start();
        if start.starts_with(">>> ") {
            break;
        }
        if !start.starts_with('>') {
            own.push_str(line);
            own.push('\n');
        }
    }
    without_server_emoji(&own)
}

fn without_server_emoji(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let emoji = after.split_once('>').filter(|(name, _)| {
            let name = name.strip_prefix('a').unwrap_or(name);
            name.starts_with(':') && !name.contains(char::is_whitespace)
        });
        match emoji {
            Some((_, after)) => rest = after,
            None => {
                out.push('<');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns a message with a gap in the place of each quotation. A mark that is not closed quotes nothing.
pub(super) fn without_quotations(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, open)) = rest.char_indices().find(|(_, c)| QUOTES.iter().any(|(open, _)| open == c)) {
        let (before, quoted) = rest.split_at(at);
        let quoted = quoted.get(open.len_utf8()..).unwrap_or_default();
        out.push_str(before);
        let end = QUOTES.iter().filter(|(found, _)| *found == open).find_map(|(_, close)| quoted.split_once(*close));
        match end {
            Some((_, after)) => {
                out.push_str(GAP);
                rest = after;
            }
            None => {
                out.push(' ');
                rest = quoted;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns the quotation that a message begins with, without its marks.
pub(super) fn leading_quotation(text: &str) -> Option<&str> {
    let mut chars = text.trim_start().chars();
    let open = chars.next()?;
    let closes = QUOTES.iter().filter(|(found, _)| *found == open);
    closes.map(|(_, close)| chars.as_str().split_once(*close)).find_map(|found| Some(found?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_marks_alternate() {
        let speech = Speech::of("  Héllo, wörld's end!");
        assert_eq!(speech.words, ["Hello", "world", "s", "end"]);
        assert_eq!(speech.lower, ["hello", "world", "s", "end"]);
        assert_eq!(speech.gaps, ["  ", ", ", "'", " ", "!"]);
        assert_eq!(Speech::of("").gaps, [""]);
    }

    #[test]
    fn what_others_said_is_left_out() {
        assert_eq!(own_words("> Nova is late\nmine\n>>> all\nof this"), "mine\n");
        assert_eq!(own_words("<:wave:123> hi <a:b:1>a < b <@5>"), " hi a < b <@5>\n");
        assert_eq!(without_quotations("\"Is it?\" Nova, say"), " …  Nova, say");
        assert_eq!(without_quotations("5\" wide"), "5  wide");
    }
}
