//! Sentiments: styles that a style blend mixes in, as short directives.

use std::sync::LazyLock;

use crate::limits::{MAX_BLEND_NAME_CHARS, MAX_DIRECTIVE_CHARS, MAX_DIRECTIVES, MAX_SENTIMENTS};
use crate::lines::{Line, scan};
use crate::parts::split_at_headings;
use crate::persona::{BlendLayer, Persona};
use crate::problem::Problems;

/// The sentiment that changes nothing.
pub(crate) const PLAIN: &str = "plain";

const FILE: &str = include_str!("../builtin/sentiments.md");

/// A style and its directives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentiment {
    /// Its name, in lower case.
    pub name: String,
    /// The directives, one line each, mildest first; they are mixed in from the front.
    pub directives: Vec<String>,
}

static BUILT_IN: LazyLock<Vec<Sentiment>> = LazyLock::new(|| built_in(&mut Problems::default()));

fn built_in(problems: &mut Problems) -> Vec<Sentiment> {
    read_sentiments(&scan(FILE, 1).lines, problems)
}

/// Reads the section's lines: `### name` blocks with one directive per line.
pub(crate) fn read_sentiments(lines: &[Line<'_>], problems: &mut Problems) -> Vec<Sentiment> {
    let (lead, blocks) = split_at_headings(lines, 3, problems);
    if let Some(line) = lead.iter().find(|line| !line.text.trim().is_empty()) {
        problems.error(line.number, "this belongs to no sentiment; begin it with `### terse` or the like");
    }
    if let Some(block) = blocks.get(MAX_SENTIMENTS) {
        problems
            .error(block.line, format!("there are {} sentiments; at most {MAX_SENTIMENTS} are allowed", blocks.len()));
    }
    let mut sentiments: Vec<Sentiment> = Vec::new();
    for block in blocks.iter().take(MAX_SENTIMENTS) {
        let name = block.title.to_lowercase();
        if !is_name(&name) {
            let message = format!(
                "a sentiment's name is 1 to {MAX_BLEND_NAME_CHARS} letters, digits, `_` and `-`, as in `### terse`"
            );
            problems.error(block.line, message);
        } else if name == PLAIN {
            problems.error(block.line, "`plain` is the persona as it is; give this sentiment another name");
        } else if sentiments.iter().any(|known| known.name == name) {
            problems.error(block.line, format!("the sentiment `{name}` is given twice; join the two"));
        } else {
            let directives = directives(&block.lines, problems);
            if directives.is_empty() {
                problems.error(block.line, format!("the sentiment `{name}` says nothing; give it a line or two"));
            }
            sentiments.push(Sentiment { name, directives });
        }
    }
    sentiments
}

fn is_name(name: &str) -> bool {
    (1..=MAX_BLEND_NAME_CHARS).contains(&name.chars().count())
        && name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c))
}

fn directives(lines: &[Line<'_>], problems: &mut Problems) -> Vec<String> {
    let mut directives = Vec::new();
    for line in lines {
        let text = without_bullet(line.text);
        let chars = text.chars().count();
        if line.code {
            problems.error(line.number, "a sentiment is told in sentences; take the code out");
        } else if chars > MAX_DIRECTIVE_CHARS {
            let message = format!("this line has {chars} characters; at most {MAX_DIRECTIVE_CHARS} are allowed");
            problems.error(line.number, message);
        } else if directives.len() == MAX_DIRECTIVES && !text.is_empty() {
            problems.error(line.number, format!("a sentiment has {MAX_DIRECTIVES} lines at most"));
        } else if !text.is_empty() {
            directives.push(text.to_owned());
        }
    }
    directives
}

/// Returns a line without list marks.
pub(crate) fn without_bullet(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(rest) = ["- ", "* ", "+ "].iter().find_map(|mark| text.strip_prefix(mark)) {
        text = rest.trim_start();
    }
    text
}

/// Checks that a layer's sentiments exist; `line` is the line of the layer.
pub(crate) fn check_layer(persona: &Persona, layer: &BlendLayer, line: usize, problems: &mut Problems) {
    for name in [&layer.primary, &layer.secondary] {
        if persona.sentiment(name).is_none() {
            let own = persona.sentiments.iter();
            let known: Vec<&str> = own.chain(BUILT_IN.iter()).map(|sentiment| sentiment.name.as_str()).collect();
            let message = format!(
                "there is no sentiment `{name}`; there are {PLAIN}, {}. Add a section `## Sentiments` with a part `### {name}` for \
                 one of your own",
                known.join(", ")
            );
            problems.error(line, message);
        }
    }
}

impl Persona {
    /// Returns the directives of a sentiment in a style blend, by name in any case: the persona's own, or a built-in
    /// one; none for `plain`. `None` if it does not exist.
    pub fn sentiment(&self, name: &str) -> Option<&[String]> {
        let name = name.to_lowercase();
        if name == PLAIN {
            return Some(&[]);
        }
        let mut known = self.sentiments.iter().chain(BUILT_IN.iter());
        known.find(|sentiment| sentiment.name == name).map(|sentiment| sentiment.directives.as_slice())
    }

    /// Returns the persona's style as short directives, for another persona's style blend: its tone, the lines of
    /// *Interface & Presence*, then its quirks; at most [`MAX_DIRECTIVES`], none longer than [`MAX_DIRECTIVE_CHARS`].
    pub fn directives(&self) -> Vec<String> {
        let texts = [&self.prime_directive.tone, &self.interface_and_presence, &self.quirks];
        let lines = texts.into_iter().flat_map(|text| text.lines()).map(without_bullet);
        let short = lines.filter(|line| (1..=MAX_DIRECTIVE_CHARS).contains(&line.chars().count()));
        short.take(MAX_DIRECTIVES).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_sentiments_have_no_problem() {
        let mut problems = Problems::default();
        let sentiments = built_in(&mut problems);
        assert_eq!(problems.into_sorted(), []);
        assert!(sentiments.iter().all(|sentiment| sentiment.directives.len() >= 3));
    }
}
