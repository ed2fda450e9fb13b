//! Reading loosely typed JSON fields.

use serde_json::Value;

/// A text, or a number written out. `None` for anything else.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A list of texts. `None` when it is no list or an item is no text.
pub(crate) fn texts_of(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(text_of).collect()
}
