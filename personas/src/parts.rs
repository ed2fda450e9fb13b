//! The parts of a section: `### Title` blocks, and the shorter `- **Title:** text` bullets.

use crate::limits::MAX_TITLE_CHARS;
use crate::lines::{Line, fence_delimiter, heading, join, settle};
use crate::problem::Problems;

/// A titled part of a section.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) title: String,
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// A heading with the lines below it.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub(crate) title: &'a str,
    pub(crate) line: usize,
    pub(crate) lines: Vec<Line<'a>>,
}

/// Splits lines at headings of `level`; returns the lines before the first one separately.
pub(crate) fn split_at_headings<'a>(
    lines: &[Line<'a>],
    level: usize,
    problems: &mut Problems,
) -> (Vec<Line<'a>>, Vec<Block<'a>>) {
    let mut lead = Vec::new();
    let mut blocks: Vec<Block<'a>> = Vec::new();
    for line in lines {
        match heading(line.text).filter(|(found, _)| !line.code && *found == level) {
            Some((_, title)) => {
                check_title(title, line.number, problems);
                blocks.push(Block { title, line: line.number, lines: Vec::new() });
            }
            None => match blocks.last_mut() {
                Some(block) => block.lines.push(*line),
                None => lead.push(*line),
            },
        }
    }
    (lead, blocks)
}

fn check_title(title: &str, line: usize, problems: &mut Problems) {
    let chars = title.chars().count();
    if title.is_empty() {
        problems.error(line, "this heading has no title; write one or remove the line");
    } else if chars > MAX_TITLE_CHARS {
        let message = format!("this title has {chars} characters; at most {MAX_TITLE_CHARS} are allowed");
        problems.error(line, message);
    }
}

/// A label at the beginning of a line: `Tone: dry`, `**Tone:** dry`, `- **Tone**: dry`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Label<'a> {
    pub(crate) name: &'a str,
    pub(crate) rest: &'a str,
    bulleted: bool,
}

/// Takes the text under labels that `known` accepts out of `lines`; returns the rest as the lead.
pub(crate) fn take_labelled<'a>(
    lines: &[Line<'a>],
    known: impl Fn(&str) -> bool,
    problems: &mut Problems,
) -> (Vec<Line<'a>>, Vec<Part>) {
    let mut lead = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    // The current label, and the lines below it.
    let mut current: Option<(Label<'a>, usize, Vec<Line<'a>>)> = None;
    let mut after_blank = false;
    for line in lines {
        let found = label_of(line).filter(|label| known(label.name));
        let indented = line.text.starts_with([' ', '\t']);
        let blank = line.text.trim().is_empty();
        if let Some(label) = found {
            finish(current.take(), &mut parts, problems);
            current = Some((label, line.number, Vec::new()));
        } else if let Some((label, _, below)) = &mut current {
            let ends = label.bulleted && !line.code && !blank && !indented && (after_blank || is_bullet(line.text));
            if ends {
                finish(current.take(), &mut parts, problems);
                lead.push(*line);
            } else {
                below.push(*line);
            }
        } else {
            lead.push(*line);
        }
        after_blank = blank;
    }
    finish(current, &mut parts, problems);
    (lead, parts)
}

fn finish(current: Option<(Label<'_>, usize, Vec<Line<'_>>)>, parts: &mut Vec<Part>, problems: &mut Problems) {
    let Some((label, line, below)) = current else { return };
    check_inline(label.rest, line, problems);
    check_title(label.name, line, problems);
    let indent = below.iter().filter(|l| !l.text.trim().is_empty()).map(|l| indentation(l.text)).min().unwrap_or(0);
    let mut text = label.rest.to_owned();
    for below in &below {
        text.push('\n');
        text.extend(below.text.chars().skip(indentation(below.text).min(indent)));
    }
    parts.push(Part { title: label.name.to_owned(), line, text: settle(&text, 3) });
}

fn indentation(text: &str) -> usize {
    text.chars().take_while(|c| *c == ' ' || *c == '\t').count()
}

fn is_bullet(text: &str) -> bool {
    ["- ", "* ", "+ "].iter().any(|mark| text.starts_with(mark))
}

/// Reports a code fence or comment that begins on a label's own line; both need a line of their own.
pub(crate) fn check_inline(rest: &str, line: usize, problems: &mut Problems) {
    if fence_delimiter(rest).is_some() || rest.starts_with("<!--") {
        problems.error(line, "begin the code fence or comment on a line of its own, below this label");
    }
}

/// Returns the label at the beginning of a line outside code. The caller checks whether its name has a meaning.
pub(crate) fn label_of<'a>(line: &Line<'a>) -> Option<Label<'a>> {
    if line.code || indentation(line.text) > 3 {
        return None;
    }
    let mut text = line.text.trim_start();
    let bulleted = is_bullet(text);
    if bulleted {
        text = text.trim_start_matches(['-', '*', '+']).trim_start();
    }
    let (name, rest) = text.split_once(':')?;
    if name.chars().count() > MAX_TITLE_CHARS {
        return None;
    }
    let mark = ["**", "__", "*", "_"].into_iter().find(|mark| name.starts_with(mark));
    let rest = match mark {
        Some(mark) if !name.ends_with(mark) => rest.strip_prefix(mark).unwrap_or(rest),
        _ => rest,
    };
    let name = name.trim_matches(['*', '_', ' ', '\t']);
    (!name.is_empty()).then_some(Label { name, rest: rest.trim(), bulleted })
}

/// The parts of a section with known names, by the index of the name.
#[derive(Debug)]
pub(crate) struct Fields {
    pub(crate) lead: String,
    pub(crate) known: Vec<Option<Part>>,
    pub(crate) other: Vec<Part>,
}

impl Fields {
    /// Takes the text of the known part `index`.
    pub(crate) fn take(&mut self, index: usize) -> String {
        self.known.get_mut(index).and_then(Option::take).map(|part| part.text).unwrap_or_default()
    }
}

/// Reads a section whose parts have the given names: for each name all accepted spellings, in the form of
/// [`plain_title`].
pub(crate) fn read_fields(lines: &[Line<'_>], names: &[&[&str]], problems: &mut Problems) -> Fields {
    let index_of = |title: &str| {
        let title = plain_title(title);
        names.iter().position(|ways| ways.contains(&title.as_str()))
    };
    let (lead, blocks) = split_at_headings(lines, 3, problems);
    let (lead, mut parts) = take_labelled(&lead, |name| index_of(name).is_some(), problems);
    parts.extend(blocks.iter().map(|block| Part {
        title: block.title.to_owned(),
        line: block.line,
        text: join(&block.lines),
    }));
    let mut fields = Fields { lead: join(&lead), known: names.iter().map(|_| None).collect(), other: Vec::new() };
    for part in parts {
        match index_of(&part.title).and_then(|index| fields.known.get_mut(index)) {
            Some(Some(earlier)) => {
                let message = format!("`{}` is given twice, first in line {}; keep one", part.title, earlier.line);
                problems.error(part.line, message);
            }
            Some(slot) if part.text.is_empty() => {
                problems.warning(part.line, format!("`{}` is empty", part.title));
                *slot = Some(part);
            }
            Some(slot) => *slot = Some(part),
            None => fields.other.push(part),
        }
    }
    fields
}

/// Normalizes a title for comparison: lower case, `and` for `&`, British spelling, single spaces, no colon at its end.
pub(crate) fn plain_title(title: &str) -> String {
    let title = title.to_lowercase().replace('&', " and ").replace("behavior", "behaviour");
    title.trim_end_matches([':', ' ']).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line<'_> {
        Line { number: 1, text, code: false }
    }

    #[test]
    fn labels_are_read_in_every_form() {
        fn check(text: &str, expected: Option<(&str, &str)>) {
            assert_eq!(label_of(&line(text)).map(|label| (label.name, label.rest)), expected, "{text:?}");
        }
        check("- **Tone:** dry", Some(("Tone", "dry")));
        check("* **Tone**: dry", Some(("Tone", "dry")));
        check("**Tone:** **very** dry", Some(("Tone", "**very** dry")));
        check("Tone: dry: so dry", Some(("Tone", "dry: so dry")));
        check("- __Tone:__", Some(("Tone", "")));
        check("*Tone:* dry", Some(("Tone", "dry")));
        check("no label here", None);
        check(": nothing", None);
        check("     Tone: code", None);
    }

    #[test]
    fn labelled_text_is_taken_with_its_following_lines() {
        let text = "Before.\n- **Tone:** dry\n  and short\n\n  still tone\n- **Pace:** slow\n\nAfter.";
        let lines: Vec<_> = text.split('\n').map(line).collect();
        let (lead, parts) = take_labelled(&lines, |name| name == "Tone", &mut Problems::default());
        assert_eq!(join(&lead), "Before.\n- **Pace:** slow\n\nAfter.");
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].text, "dry\nand short\n\nstill tone");
    }
}
