//! Reads the example conversations of a card.

use serde_json::{Map, Value};

use super::convert::Conversion;
use super::fields::text_of;
use crate::examples::{Cast, read_turns};
use crate::limits::{MAX_CARD_FIELD_BYTES, MAX_EXAMPLES, MAX_FILE_BYTES};
use crate::lines::{Line, fence_delimiter, scan, settle};
use crate::parts::label_of;
use crate::persona::{ExampleInteraction, Persona};
use crate::problem::Problems;

/// Moves `mes_example` of a card into the persona.
pub(super) fn read_examples(conversion: &mut Conversion, card: &mut Map<String, Value>, persona: &mut Persona) {
    const FIELD: &str = "mes_example";
    let Some(value) = card.remove(FIELD) else { return };
    let Some(given) = text_of(&value) else {
        if !value.is_null() {
            conversion.note(FIELD, "is not text; kept for export");
        }
        return;
    };
    let text = conversion.clean(FIELD, &given);
    let text = conversion.cut(FIELD, &text, MAX_CARD_FIELD_BYTES).to_owned();
    for block in split_examples(&text) {
        let block = settle(&with_labels(block, persona.cast()), 3);
        let lines = scan(&block, 1).lines;
        let mut turns = read_turns(&lines, persona.cast(), &mut Problems::default());
        turns.retain(|turn| !turn.text.is_empty());
        for turn in &mut turns {
            turn.text = settle(&turn.text.replace("{{char}}", &persona.name), 3);
        }
        if !turns.is_empty() {
            let title = format!("Example {}", persona.examples.len() + 1);
            persona.examples.push(ExampleInteraction { title, turns });
        }
    }
    let read = persona.examples.len();
    persona.examples.truncate(MAX_EXAMPLES);
    while persona.to_markdown().len() > MAX_FILE_BYTES && persona.examples.pop().is_some() {}
    if read > persona.examples.len() {
        let message = format!("{} of {read} examples had to go; the whole is kept", read - persona.examples.len());
        conversion.note(FIELD, message);
    }
    if !persona.examples.is_empty() {
        conversion.note(FIELD, format!("became {} example(s)", persona.examples.len()));
    }
}

/// Splits a text at `<START>` marks, in any case.
fn split_examples(text: &str) -> Vec<&str> {
    const MARK: &str = "<start>";
    let lower = text.to_ascii_lowercase();
    let mut from = 0;
    let mut blocks = Vec::new();
    for (at, _) in lower.match_indices(MARK) {
        blocks.extend(text.get(from..at));
        from = at + MARK.len();
    }
    blocks.extend(text.get(from..));
    blocks
}

/// Gives the first line of a block a speaker if it has none, and moves code after a label to a line of its own.
fn with_labels(block: &str, cast: Cast<'_>) -> String {
    let mut out = String::with_capacity(block.len());
    for text in block.split('\n') {
        let line = Line { number: 1, text, code: false };
        let label = label_of(&line).filter(|label| cast.speaker(label.name).is_some());
        if out.is_empty() && text.trim().is_empty() {
            continue;
        }
        if out.is_empty() && label.is_none() {
            out.push_str("{{char}}:\n");
        }
        match label {
            Some(label) if fence_delimiter(label.rest).is_some() || label.rest.starts_with("<!--") => {
                out.push_str(label.name);
                out.push_str(":\n");
                out.push_str(label.rest);
            }
            _ => out.push_str(text),
        }
        out.push('\n');
    }
    out
}
