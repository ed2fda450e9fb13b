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

/// Returns a finite number, also one as text.
pub(crate) fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        other => other.as_f64(),
    }
}

/// Returns true or false, also as text or as 0 and 1.
pub(crate) fn flag_of(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => Some(number.as_f64() != Some(0.0)),
        Value::String(text) if text.trim().eq_ignore_ascii_case("true") || text.trim() == "1" => Some(true),
        Value::String(text) if text.trim().eq_ignore_ascii_case("false") || text.trim() == "0" => Some(false),
        _ => None,
    }
}

/// Returns true for null and for empty texts, lists and objects.
pub(crate) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
