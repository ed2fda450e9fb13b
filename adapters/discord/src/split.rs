//! Splits a text into messages. Code fences and emphasis are closed at the end of a message and opened again in the
//! next. Emoji and mentions stay whole, and cuts are where a reader would pause.

use std::iter;

use unicode_segmentation::UnicodeSegmentation;

/// Longest message in characters (<https://discord.com/developers/docs/resources/message#create-message>).
pub(crate) const MESSAGE_CHARS: usize = 2_000;

/// Characters reserved for closing marks.
const CLOSING_CHARS: usize = 24;

/// Longest language of a code block that is repeated in the next message, in characters.
const LANGUAGE_CHARS: usize = 24;

/// Longest emoji, mention or similar tag (`<:name:42>`) that stays whole, in characters.
const TAG_CHARS: usize = 64;

/// Marks of emphasis; longer ones come before their prefixes.
const MARKS: [&str; 7] = ["**", "__", "~~", "||", "`", "*", "_"];

/// The open marks at a point in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Open {
    /// The language of an open code block.
    fence: Option<String>,
    /// Open emphasis, outermost first.
    marks: Vec<&'static str>,
}

impl Open {
    /// Returns the closing marks.
    fn closing(&self) -> String {
        match &self.fence {
            Some(_) => "\n```".to_owned(),
            None => self.marks.iter().rev().copied().collect(),
        }
    }

    /// Returns the marks that open everything again.
    fn opening(&self) -> String {
        match &self.fence {
            Some(language) => format!("```{language}\n"),
            None => self.marks.concat(),
        }
    }
}

/// Splits the text into messages of at most [`MESSAGE_CHARS`]; at least one.
pub(crate) fn split(text: &str) -> Vec<String> {
    split_at(text, MESSAGE_CHARS)
}

fn split_at(text: &str, limit: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut open = Open::default();
    let mut rest = text;
    loop {
        let opening = open.opening();
        let room = limit.saturating_sub(opening.chars().count());
        if rest.chars().count() <= room {
            parts.push(format!("{opening}{rest}"));
            return parts;
        }
        let cut = cut(rest, &open, room.saturating_sub(CLOSING_CHARS).max(1));
        let (body, after) = rest.split_at(cut);
        open = still_open(walk(&open, body), after);
        let body = if open.fence.is_some() { body.trim_end_matches('\n') } else { body.trim_end() };
        parts.push(format!("{opening}{body}{}", open.closing()));
        rest = match open.fence {
            Some(_) => after.strip_prefix('\n').unwrap_or(after),
            None => after.trim_start_matches('\n').trim_start_matches(' '),
        };
        if rest.trim().is_empty() {
            return parts;
        }
    }
}

/// Keeps only marks that the rest of the paragraph closes: a single asterisk is no emphasis.
fn still_open(open: Open, after: &str) -> Open {
    let paragraph = after.split("\n\n").next().unwrap_or_default();
    let marks = open.marks.into_iter().filter(|mark| paragraph.contains(mark)).collect();
    Open { fence: open.fence, marks }
}

/// Returns the byte position of the cut: at most `most` characters in, and never before the first character.
fn cut(text: &str, open: &Open, most: usize) -> usize {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    let whole: Vec<usize> = atoms(text).map(|(at, atom)| at + atom.len()).take_while(|at| *at <= end).collect();
    let latest = whole.last().copied().unwrap_or(end);
    let before = text.get(..latest).unwrap_or(text);
    let found = |separator: &str, least: usize, whole_marks: bool| {
        before.rmatch_indices(separator).map(|(at, found)| at + found.len()).take_while(|at| *at > least).find(|at| {
            let open =
                still_open(walk(open, before.get(..*at).unwrap_or_default()), text.get(*at..).unwrap_or_default());
            let begins_a_fence = open.fence.is_some() && last_line(before, *at).trim_start().starts_with("```");
            whole.binary_search(at).is_ok() && !begins_a_fence && (!whole_marks || open.marks.is_empty())
        })
    };
    let half = before.len() / 2;
    let quarter = before.len() / 4;
    let pauses = [("\n\n", half), ("\n", half), (". ", half), ("! ", half), ("? ", half), (" ", quarter)];
    let nice = pauses.iter().find_map(|(separator, least)| found(separator, *least, true));
    let usable = || pauses.iter().find_map(|(separator, least)| found(separator, *least, false));
    nice.or_else(usable).unwrap_or(latest)
}

/// Returns the last line that ends at a byte position.
fn last_line(text: &str, end: usize) -> &str {
    let before = text.get(..end).unwrap_or_default().trim_end_matches('\n');
    before.rsplit('\n').next().unwrap_or_default()
}

/// Returns the open marks after a text, from those before it.
fn walk(open: &Open, text: &str) -> Open {
    let mut open = open.clone();
    let mut at = 0;
    let mut previous = ' ';
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(behind) = rest.strip_prefix("```") {
            open.fence = match open.fence.take() {
                Some(_) => None,
                None => Some(language(behind)),
            };
            open.marks.clear();
            at += 3;
            previous = '`';
            continue;
        }
        let first = rest.chars().next().unwrap_or(' ');
        if open.fence.is_some() {
            at += first.len_utf8();
            continue;
        }
        if first == '\\' {
            at += first.len_utf8() + rest.chars().nth(1).map_or(0, char::len_utf8);
            previous = 'x';
            continue;
        }
        if rest.starts_with("\n\n") {
            open.marks.clear();
        }
        let in_code = open.marks.last() == Some(&"`");
        match MARKS.iter().find(|mark| rest.starts_with(**mark) && (!in_code || **mark == "`")) {
            Some(mark) => {
                let next = rest.get(mark.len()..).and_then(|behind| behind.chars().next()).unwrap_or(' ');
                mark_at(&mut open.marks, mark, previous, next);
                at += mark.len();
                previous = '*';
            }
            None => {
                at += first.len_utf8();
                previous = first;
            }
        }
    }
    open
}

/// Closes an open mark; otherwise opens one, if a word follows.
fn mark_at(marks: &mut Vec<&'static str>, mark: &'static str, previous: char, next: char) {
    let within_a_word = mark == "_" && previous.is_alphanumeric() && next.is_alphanumeric();
    if let Some(at) = marks.iter().position(|open| *open == mark) {
        if mark == "`" || (!previous.is_whitespace() && !within_a_word) {
            marks.truncate(at);
        }
    } else if !next.is_whitespace() && !within_a_word {
        marks.push(mark);
    }
}

/// Returns the language after an opening fence, if a line end follows.
fn language(behind: &str) -> String {
    let word: String = behind.chars().take_while(|c| c.is_ascii_alphanumeric() || "+-#._".contains(*c)).collect();
    let ends = behind.get(word.len()..).is_some_and(|rest| rest.starts_with('\n'));
    if ends && word.len() <= LANGUAGE_CHARS { word } else { String::new() }
}

/// Splits the text into parts that must not be cut: graphemes and Discord's tags.
fn atoms(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let atom = tag(rest).or_else(|| rest.graphemes(true).next())?;
        let begin = at;
        at += atom.len();
        Some((begin, atom))
    })
}

/// Returns a mention or a server's emoji at the beginning of a text.
fn tag(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?;
    inside.strip_prefix(['@', '#', ':', 'a', 't', '/'])?;
    let end = text.char_indices().take(TAG_CHARS).find(|(_, c)| matches!(c, '>' | '\n' | ' '))?;
    (end.1 == '>').then(|| text.get(..=end.0)).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(count: usize) -> String {
        (0..count).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_short_text_is_one_message() {
        assert_eq!(split("hello"), ["hello"]);
        assert_eq!(split(&"x".repeat(MESSAGE_CHARS)).len(), 1);
        assert_eq!(split(""), [""]);
    }

    #[test]
    fn cuts_are_where_a_reader_pauses() {
        #[track_caller]
        fn check(text: &str, limit: usize, want: &[&str]) {
            assert_eq!(split_at(text, limit), want);
        }
        check(
            "First paragraph is here. And more.\n\nSecond one is here, and is as long.",
            CLOSING_CHARS + 40,
            &["First paragraph is here. And more.", "Second one is here, and is as long."],
        );
        check(
            "One whole sentence is here. Another one follows it there, with more words.",
            CLOSING_CHARS + 40,
            &["One whole sentence is here.", "Another one follows it there, with more words."],
        );
        let word = "abcdefghijklmnopqrstuvwxyz".repeat(2);
        check(&word, CLOSING_CHARS + 10, &["abcdefghij", "klmnopqrst", "uvwxyzabcdefghijklmnopqrstuvwxyz"]);
    }

    #[test]
    fn a_code_block_continues_in_its_language() {
        let code: String = (0..40).map(|n| format!("    let x{n} = {n};\n")).collect();
        let parts = split_at(&format!("Look:\n```rust\n{code}```\nThat is it."), 300);
        assert!(parts.len() > 2);
        for (at, part) in parts.iter().enumerate() {
            assert_eq!(part.matches("```").count() % 2, 0, "{part}");
            assert!(part.chars().count() <= 300);
            if at > 0 && at + 1 < parts.len() {
                assert!(part.starts_with("```rust\n    let"), "{part}");
            }
        }
        let lines = parts.join("\n").lines().filter(|line| line.contains("let x")).count();
        assert_eq!(lines, 40);
    }

    #[test]
    fn emphasis_is_closed_and_opened_again() {
        let text = format!("**{}**", words(20));
        let parts = split_at(&text, 100);
        assert!(parts.iter().all(|part| part.starts_with("**") && part.ends_with("**")), "{parts:?}");
        let text = format!("2 * 3 is *six* and a lone * stays {}", words(20));
        assert!(split_at(&text, 100).iter().all(|part| !part.ends_with('*')));
    }

    #[test]
    fn emoji_stay_whole() {
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        let tag = "<:somebody:123456789012345678>";
        for text in [family.repeat(40), tag.repeat(40)] {
            for part in split_at(&text, 80) {
                let rest = part.replace(family, "").replace(tag, "");
                assert_eq!(rest, "", "{part}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_is_lost_and_every_message_fits(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    // These words cannot be part of a code block's language, which is repeated.
                    "wörd", " ", "\n", "\n\n", "```", "```rs\n", "**", "*", "_", "`", "||", "é", "\u{1f44d}\u{1f3fd}",
                    "<@42>", ". ", "löngerwördthatgöesönandön",
                ]),
                0..200,
            ),
            limit in 60_usize..200,
        ) {
            let text = pieces.concat();
            let parts = split_at(&text, limit);
            // Marks and whitespace may be added or dropped at a cut; everything else stays in order.
            let plain = |text: &str| -> String {
                text.chars().filter(|c| !c.is_whitespace() && !"`*_|".contains(*c)).collect()
            };
            let joined: String = parts.iter().map(|part| plain(part)).collect();
            let fences = |text: &str| text.replace("rs", "");
            prop_assert_eq!(fences(&joined), fences(&plain(&text)));
            for part in &parts {
                prop_assert!(part.chars().count() <= limit, "{} in {:?}", part.chars().count(), part);
            }
        }
    }
}
