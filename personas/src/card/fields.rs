//! Reads loosely typed JSON fields.

use serde_json::Value;

/// Returns a text, or a number as text; `None` for anything else.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns a list of texts; `None` if it is not a list, or an item is not a text.
pub(crate) fn texts_of(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(text_of).collect()
}
