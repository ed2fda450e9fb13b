//! Labelled sentences, one JSON object per line: `{"text": ..., "label": ...}` or `{"text": ..., "labels": [...]}`.

use serde::Deserialize;

use crate::classify::{Error, Example};

/// A sentence, and the labels that a careful reader gives it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Line")]
pub struct LabelledSentence {
    /// The sentence.
    pub text: String,
    /// Its labels: exactly one with `label`, any number with `labels`.
    pub labels: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: String,
    label: Option<String>,
    labels: Option<Vec<String>>,
}

impl TryFrom<Line> for LabelledSentence {
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

impl std::fmt::Debug for LabelledSentence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LabelledSentence[{} bytes, {:?}]", self.text.len(), self.labels)
    }
}

/// Reads labelled sentences.
///
/// # Errors
///
/// [`Error::Line`] names the line that is invalid.
pub fn labelled(lines: &str) -> Result<Vec<LabelledSentence>, Error> {
    let lines = lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| Error::Line { line: index + 1, why: error.to_string() })
        })
        .collect()
}

/// Returns only the sentences, to be embedded.
pub(crate) fn texts(lines: &str) -> Result<Vec<String>, Error> {
    Ok(labelled(lines)?.into_iter().map(|example| example.text).collect())
}

/// Returns the sentences with their vectors, in the same order, and with their labels as indexes into `known`.
///
/// # Errors
///
/// [`Error::Vectors`] or [`Error::Lengths`] if there is not one vector of the same length for each sentence, and
/// [`Error::Label`] if a label is not in `known`.
pub(crate) fn taught(lines: &str, known: &[&str], vectors: &[Vec<f32>]) -> Result<Vec<Example>, Error> {
    let examples = labelled(lines)?;
    if vectors.len() != examples.len() {
        return Err(Error::Vectors { got: vectors.len(), want: examples.len() });
    }
    if let [first, others @ ..] = vectors
        && let Some(other) = others.iter().find(|other| other.len() != first.len())
    {
        return Err(Error::Lengths { one: first.len(), other: other.len() });
    }
    let number = |line: usize, label: String| {
        let position = known.iter().position(|known| *known == label);
        position.ok_or_else(|| Error::Label { line, label, known: known.join(", ") })
    };
    let numbered =
        examples.into_iter().zip(vectors).enumerate().map(|(index, (LabelledSentence { text, labels }, vector))| {
            let labels: Result<_, _> = labels.into_iter().map(|label| number(index + 1, label)).collect();
            Ok(Example { text, vector: vector.clone(), labels: labels? })
        });
    numbered.collect()
}
