//! Labelled sentences, a JSON object a line: `{"text": ..., "label": ...}` or `{"text": ..., "labels": [...]}`.

use serde::Deserialize;

use crate::classify::Error;

/// A sentence and what a careful reader calls it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Line")]
pub struct Labelled {
    /// The sentence.
    pub text: String,
    /// Its labels: one where only one can be, none or several elsewhere.
    pub labels: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: String,
    label: Option<String>,
    labels: Option<Vec<String>>,
}

impl TryFrom<Line> for Labelled {
    type Error = &'static str;

    fn try_from(line: Line) -> Result<Self, Self::Error> {
        let labels = match (line.label, line.labels) {
            (Some(label), None) => vec![label],
            (None, Some(labels)) => labels,
            _ => return Err("either `label` or `labels` is needed"),
        };
        Ok(Self { text: line.text, labels })
    }
}

impl std::fmt::Debug for Labelled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Labelled[{} bytes, {:?}]", self.text.len(), self.labels)
    }
}

/// Reads labelled sentences.
///
/// # Errors
///
/// [`Error::Line`] names the line that is none.
pub fn labelled(lines: &str) -> Result<Vec<Labelled>, Error> {
    let lines = lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| Error::Line { line: index + 1, why: error.to_string() })
        })
        .collect()
}
