//! The section *Example interaction*.

use crate::limits::MAX_EXAMPLES;
use crate::lines::{Line, settle};
use crate::parts::{check_inline, label_of, split_at_headings};
use crate::persona::{ExampleInteraction, ExampleTurn, PersonaKind, Speaker};
use crate::problem::Problems;

/// Labels of the person's turns; the normal form uses the first.
const PERSON_LABELS: [&str; 5] = ["User", "{{user}}", "You", "Person", "Human"];
/// Labels of the persona's turns, besides its name.
const PERSONA_LABELS: [&str; 4] = ["Persona", "{{char}}", "Assistant", "Character"];
/// Labels of recalled memories.
const MEMORY_LABELS: [&str; 2] = ["Remembered", "Memory"];

/// Name and kind of the persona whose file contains the examples. In a user persona's file, the name is that of the
/// person.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cast<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: PersonaKind,
}

impl Cast<'_> {
    /// Returns the speaker of a label.
    pub(crate) fn speaker(&self, label: &str) -> Option<Speaker> {
        let is = |labels: &[&str]| labels.iter().any(|known| known.eq_ignore_ascii_case(label));
        if is(&MEMORY_LABELS) {
            Some(Speaker::Memory)
        } else if is(&PERSON_LABELS) {
            Some(Speaker::Person)
        } else if is(&PERSONA_LABELS) {
            Some(Speaker::Persona)
        } else if label.to_lowercase() == self.name.to_lowercase() {
            Some(match self.kind {
                PersonaKind::Assistant => Speaker::Persona,
                PersonaKind::User => Speaker::Person,
            })
        } else {
            None
        }
    }

    /// Returns the label of a speaker in the normal form.
    pub(crate) fn label(&self, speaker: Speaker) -> &str {
        match speaker {
            Speaker::Memory => MEMORY_LABELS[0],
            Speaker::Person => PERSON_LABELS[0],
            Speaker::Persona => {
                let readable =
                    !self.name.is_empty() && self.name.chars().all(|c| c.is_alphanumeric() || " -'.".contains(c));
                let own = readable && self.speaker(self.name) == Some(Speaker::Persona);
                if own { self.name } else { PERSONA_LABELS[0] }
            }
        }
    }
}

/// Reads the section's lines. The text before the first `###` may contain examples, too, separated by `---`, `***` or
/// `<START>` lines.
pub(crate) fn read_examples(lines: &[Line<'_>], cast: Cast<'_>, problems: &mut Problems) -> Vec<ExampleInteraction> {
    let (lead, blocks) = split_at_headings(lines, 3, problems);
    let mut examples = Vec::new();
    for group in lead.split(|line| !line.code && is_separator(line.text)) {
        let turns = read_turns(group, cast, problems);
        if !turns.is_empty() {
            examples.push(ExampleInteraction { title: format!("Example {}", examples.len() + 1), turns });
        }
    }
    for block in blocks {
        let turns = read_turns(&block.lines, cast, problems);
        if turns.is_empty() {
            problems.error(block.line, "this example has no turns; begin them with `**User:**` and the persona's name");
        } else {
            examples.push(ExampleInteraction { title: block.title.to_owned(), turns });
        }
    }
    if examples.len() > MAX_EXAMPLES {
        let line = lines.first().map_or(1, |line| line.number);
        problems.error(line, format!("there are {} examples; at most {MAX_EXAMPLES} are allowed", examples.len()));
    }
    examples
}

fn is_separator(text: &str) -> bool {
    let text = text.trim();
    text.eq_ignore_ascii_case("<START>")
        || (text.len() >= 3 && ["-", "*"].iter().any(|c| text.replace(c, "").is_empty()))
}

/// Reads the turns of one example.
pub(crate) fn read_turns(lines: &[Line<'_>], cast: Cast<'_>, problems: &mut Problems) -> Vec<ExampleTurn> {
    let mut turns: Vec<(Speaker, usize, String)> = Vec::new();
    for line in lines {
        let found = label_of(line).and_then(|label| Some((cast.speaker(label.name)?, label.rest)));
        match (found, turns.last_mut()) {
            (Some((speaker, rest)), _) => {
                check_inline(rest, line.number, problems);
                turns.push((speaker, line.number, rest.to_owned()));
            }
            (None, Some((_, _, text))) => {
                text.push('\n');
                text.push_str(line.text);
            }
            (None, None) if line.text.trim().is_empty() => {}
            (None, None) => {
                let message =
                    format!("nobody says this; begin it with `**User:**` or `**{}:**`", cast.label(Speaker::Persona));
                problems.error(line.number, message);
                break;
            }
        }
    }
    let mut read = Vec::with_capacity(turns.len());
    for (speaker, line, text) in turns {
        let text = settle(&text, 3);
        if text.is_empty() {
            problems.error(line, "this turn says nothing; write it or remove its label");
        }
        read.push(ExampleTurn { speaker, text });
    }
    read
}
