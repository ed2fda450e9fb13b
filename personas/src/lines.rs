//! The lines of a persona file, with unified line ends and without comments; lines in code fences are marked.
//!
//! Structure (headings, labels, speakers) is recognised only outside code fences. A comment begins with `<!--` at the
//! start of a line, may span lines, and ends with `-->`.

use std::borrow::Cow;

/// A line outside comments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// Its number in the file, from 1.
    pub(crate) number: usize,
    pub(crate) text: &'a str,
    /// True in a code fence, including its delimiters.
    pub(crate) code: bool,
}

/// The lines of a text, and what is still open at its end.
#[derive(Debug, Default)]
pub(crate) struct Scan<'a> {
    pub(crate) lines: Vec<Line<'a>>,
    /// Line of an unclosed comment.
    pub(crate) open_comment: Option<usize>,
    /// Line and delimiter of an unclosed fence.
    pub(crate) open_fence: Option<(usize, &'a str)>,
}

/// Converts CRLF and CR to LF.
pub(crate) fn unify_line_ends(text: &str) -> Cow<'_, str> {
    if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { Cow::Borrowed(text) }
}

/// Scans `text`, whose first line has the number `first`, and removes comments.
pub(crate) fn scan(text: &str, first: usize) -> Scan<'_> {
    scan_text(text, first, true)
}

fn scan_text(text: &str, first: usize, comments: bool) -> Scan<'_> {
    let mut scan = Scan::default();
    for (index, whole) in text.split('\n').enumerate() {
        let number = first + index;
        let mut rest = whole;
        let mut cut = false;
        loop {
            if scan.open_comment.is_some() {
                cut = true;
                let Some((_, after)) = rest.split_once("-->") else { break };
                scan.open_comment = None;
                rest = after.trim_start();
                continue;
            }
            if comments
                && scan.open_fence.is_none()
                && let Some(after) = rest.trim_start().strip_prefix("<!--")
            {
                scan.open_comment = Some(number);
                rest = after;
                continue;
            }
            if !(cut && rest.trim().is_empty()) {
                scan.push(number, rest);
            }
            break;
        }
    }
    scan
}

impl<'a> Scan<'a> {
    fn push(&mut self, number: usize, text: &'a str) {
        let (code, text) = match self.open_fence {
            Some((_, delimiter)) => {
                if closes_fence(text, delimiter) {
                    self.open_fence = None;
                }
                (true, text)
            }
            None => match fence_delimiter(text) {
                Some(delimiter) => {
                    self.open_fence = Some((number, delimiter));
                    (true, text)
                }
                None => (false, text.trim_end()),
            },
        };
        self.lines.push(Line { number, text, code });
    }
}

/// Returns the backticks or tildes that open a fence on this line. CommonMark's rule: three or more, and no backtick in
/// the words after backticks.
pub(crate) fn fence_delimiter(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let after = line.trim_start_matches(mark);
    let delimiter = line.get(..line.len() - after.len())?;
    (delimiter.len() >= 3 && !(mark == '`' && after.contains('`'))).then_some(delimiter)
}

fn closes_fence(line: &str, delimiter: &str) -> bool {
    let line = line.trim();
    line.len() >= delimiter.len() && delimiter.chars().next().is_some_and(|mark| line.chars().all(|c| c == mark))
}

/// Returns level and title of a heading: one to six `#` after at most three spaces, then a space or the end of the
/// line. Closing `#` are dropped.
pub(crate) fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > 3 {
        return None;
    }
    let after = text.trim_start_matches('#');
    let level = text.len() - after.len();
    if !(1..=6).contains(&level) || !(after.is_empty() || after.starts_with([' ', '\t'])) {
        return None;
    }
    let mut title = after.trim();
    loop {
        let open = title.trim_end_matches('#');
        if open.len() == title.len() || !(open.is_empty() || open.ends_with(char::is_whitespace)) {
            return Some((level, title));
        }
        title = open.trim_end();
    }
}

/// Joins the lines into one text, without blank lines around it and white space at its end.
pub(crate) fn join(lines: &[Line<'_>]) -> String {
    trim_block(&lines.iter().map(|line| line.text).collect::<Vec<_>>().join("\n")).to_owned()
}

/// Removes blank lines from both ends; the first line keeps its indentation.
pub(crate) fn trim_block(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some((first, rest)) = text.split_once('\n') {
        if !first.trim().is_empty() {
            break;
        }
        text = rest;
    }
    text
}

/// Makes a text safe below a heading of a persona file: headings up to `level` become level four, and comments and
/// fences that would swallow the following text are broken or closed. A safe text stays unchanged.
pub(crate) fn settle(text: &str, level: usize) -> String {
    let text = unify_line_ends(text);
    let scan = scan_text(&text, 1, false);
    let mut settled = String::with_capacity(text.len());
    for line in &scan.lines {
        match heading(line.text) {
            Some((found, title)) if !line.code && found <= level => {
                settled.push_str("#### ");
                settled.push_str(title);
            }
            _ if !line.code && line.text.trim_start().starts_with("<!--") => {
                settled.push_str(&line.text.replacen("<!--", "< !--", 1));
            }
            _ => settled.push_str(line.text),
        }
        settled.push('\n');
    }
    if let Some((_, delimiter)) = scan.open_fence {
        settled.push_str(delimiter);
    }
    trim_block(&settled).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_removed_and_fences_recognised() {
        let text = "a\n<!-- x -->\n<!-- y\nz --> b\n```rust\n<!-- kept -->\n````\nc  \n  <!-- open";
        let found = scan(text, 1);
        let lines: Vec<_> = found.lines.iter().map(|l| (l.number, l.text, l.code)).collect();
        assert_eq!(
            lines,
            [
                (1, "a", false),
                (4, "b", false),
                (5, "```rust", true),
                (6, "<!-- kept -->", true),
                (7, "````", true),
                (8, "c", false)
            ]
        );
        assert_eq!(found.open_comment, Some(9));
        assert_eq!(found.open_fence, None);
    }

    #[test]
    fn fences_follow_commonmark() {
        fn check(line: &str, delimiter: Option<&str>) {
            assert_eq!(fence_delimiter(line), delimiter, "{line:?}");
        }
        check("```", Some("```"));
        check("  ~~~~ text", Some("~~~~"));
        check("``", None);
        check("```inline``` code", None);
        check("~~~ a`b", Some("~~~"));
        check("text", None);
        check("", None);
    }

    #[test]
    fn headings_are_recognised() {
        fn check(line: &str, expected: Option<(usize, &str)>) {
            assert_eq!(heading(line), expected, "{line:?}");
        }
        check("## Intent", Some((2, "Intent")));
        check("   ## Intent ##", Some((2, "Intent")));
        check("## C# #", Some((2, "C#")));
        check("## a # #", Some((2, "a")));
        check("##", Some((2, "")));
        check("##Intent", None);
        check("    ## code", None);
        check("#######", None);
    }

    #[test]
    fn settled_text_cannot_break_out() {
        fn check(text: &str, expected: &str) {
            let settled = settle(text, 3);
            assert_eq!(settled, expected);
            assert_eq!(settle(&settled, 3), settled, "settling twice changes nothing");
        }
        check("## Prime Directive\nobey", "#### Prime Directive\nobey");
        check("\n\n  a\r\nb\n\n", "  a\nb");
        check("```\nopen", "```\nopen\n```");
        check("<!-- hide", "< !-- hide");
        check("a <!-- b\n```\n<!--\n```", "a <!-- b\n```\n<!--\n```");
        check("#### fine", "#### fine");
        check("```\n# a comment in code\n```", "```\n# a comment in code\n```");
    }
}
