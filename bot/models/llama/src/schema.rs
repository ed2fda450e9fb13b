//! Converts JSON schemas to grammars in GBNF, llama.cpp's notation.
//!
//! It supports the part of JSON Schema that Azera's own requests use: objects whose properties are all required,
//! arrays, strings with length limits, integers, numbers, booleans, null and `enum`. It rejects every other keyword, so
//! that no constraint is lost silently.

use azera_model_api::Error;
use serde_json::{Map, Value};

/// The rules that [`expression`] refers to. `space` allows only what models write between the parts of a value.
const RULES: &str = r#"
space ::= | " " | "\n"{1,2} [ \t]{0,20}
char ::= [^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt] | "u" [0-9a-fA-F]{4})
natural ::= [0] | [1-9] [0-9]{0,15}
integer ::= "-"? natural
number ::= integer ("." [0-9]{1,16})? ([eE] [-+]? natural)?
"#;

/// The most values of an integer with bounds, because they are all listed.
const MAX_INTEGERS: i64 = 1_000;

/// Returns a grammar whose rule `root` is one JSON value that satisfies the schema.
///
/// # Errors
/// [`Error::Invalid`] if the schema uses an unsupported keyword, or uses one wrongly.
pub(crate) fn grammar(schema: &Value) -> Result<String, Error> {
    Ok(format!("root ::= {}{RULES}", expression(schema)?))
}

fn expression(schema: &Value) -> Result<String, Error> {
    let Some(schema) = schema.as_object() else { return Err(invalid("it is no object")) };
    if let Some(values) = schema.get("enum") {
        allow(schema, &["enum", "type"])?;
        let values = values.as_array().filter(|values| !values.is_empty());
        let values = values.ok_or_else(|| invalid("`enum` lists no values"))?;
        return Ok(one_of(values));
    }
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "object" => object(schema),
        "array" => array(schema),
        "string" => string(schema),
        "integer" => integer(schema),
        "number" => allow(schema, &["type"]).map(|()| "number".into()),
        "boolean" => allow(schema, &["type"]).map(|()| r#"("true" | "false")"#.into()),
        "null" => allow(schema, &["type"]).map(|()| r#""null""#.into()),
        _ => Err(invalid("a value has neither `enum` nor a supported `type`")),
    }
}

fn object(schema: &Map<String, Value>) -> Result<String, Error> {
    allow(schema, &["type", "properties", "required", "additionalProperties"])?;
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err(invalid("an object needs `additionalProperties`: false"));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.ok_or_else(|| invalid("an object has no `properties`"))?;
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
    let mut members = Vec::new();
    for (name, value) in properties {
        if !is_required(name) {
            return Err(invalid(&format!("the property {name} is not required")));
        }
        let key = literal(&Value::String(name.clone()));
        members.push(format!(r#"{key} space ":" space {}"#, expression(value)?));
    }
    Ok(format!(r#""{{" space {} space "}}""#, members.join(r#" "," space "#)))
}

fn array(schema: &Map<String, Value>) -> Result<String, Error> {
    allow(schema, &["type", "items", "minItems", "maxItems"])?;
    let item = expression(schema.get("items").ok_or_else(|| invalid("an array has no `items`"))?)?;
    let (least, most) = bounds(schema, "minItems", "maxItems")?;
    if most == Some(0) {
        return Ok(r#""[" space "]""#.into());
    }
    let further = repeated(&format!(r#"("," space {item})"#), least.saturating_sub(1), most.map(|most| most - 1));
    let items = format!("{item} {further}");
    let items = if least == 0 { format!("({items})?") } else { items };
    Ok(format!(r#""[" space {items} space "]""#))
}

fn string(schema: &Map<String, Value>) -> Result<String, Error> {
    allow(schema, &["type", "minLength", "maxLength"])?;
    let (least, most) = bounds(schema, "minLength", "maxLength")?;
    Ok(format!(r#""\"" {} "\"""#, repeated("char", least, most)))
}

fn integer(schema: &Map<String, Value>) -> Result<String, Error> {
    allow(schema, &["type", "minimum", "maximum"])?;
    let bound = |name: &str| match schema.get(name) {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| invalid(&format!("`{name}` is no integer"))),
    };
    match (bound("minimum")?, bound("maximum")?) {
        (None, None) => Ok("integer".into()),
        (Some(least), Some(most)) if least <= most && most.saturating_sub(least) < MAX_INTEGERS => {
            Ok(one_of(&(least..=most).map(Value::from).collect::<Vec<_>>()))
        }
        _ => Err(invalid(&format!("an integer needs no bounds, or two with at most {MAX_INTEGERS} values"))),
    }
}

/// Returns the lower and upper bound of a count.
fn bounds(schema: &Map<String, Value>, least: &str, most: &str) -> Result<(u64, Option<u64>), Error> {
    let bound = |name: &str| match schema.get(name) {
        None => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| invalid(&format!("`{name}` is no count"))),
    };
    let (least, most) = (bound(least)?.unwrap_or_default(), bound(most)?);
    if most.is_some_and(|most| most < least) {
        return Err(invalid("its bounds leave no value"));
    }
    Ok((least, most))
}

fn repeated(rule: &str, least: u64, most: Option<u64>) -> String {
    match most {
        None => format!("{rule}{{{least},}}"),
        Some(most) => format!("{rule}{{{least},{most}}}"),
    }
}

fn one_of(values: &[Value]) -> String {
    format!("({})", values.iter().map(literal).collect::<Vec<_>>().join(" | "))
}

/// Returns a JSON value as a GBNF literal.
fn literal(value: &Value) -> String {
    let mut text = String::from("\"");
    for character in value.to_string().chars() {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
    text
}

/// Returns an error if a schema has any other keyword.
fn allow(schema: &Map<String, Value>, keywords: &[&str]) -> Result<(), Error> {
    match schema.keys().find(|keyword| !keywords.contains(&keyword.as_str())) {
        Some(keyword) => Err(invalid(&format!("`{keyword}` is not supported here"))),
        None => Ok(()),
    }
}

fn invalid(why: &str) -> Error {
    Error::Invalid(format!("the JSON schema cannot be turned into a grammar: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_lists_its_properties_in_order() {
        let schema = json!({
            "type": "object",
            "properties": {"about": {"type": "string", "minLength": 1}, "value": {"enum": ["a \"b\"", 7, null]}},
            "required": ["about", "value"],
            "additionalProperties": false,
        });
        let expected = r#""{" space "\"about\"" space ":" space "\"" char{1,} "\"" "," space "\"value\"" space ":" space ("\"a \\\"b\\\"\"" | "7" | "null") space "}""#;
        assert_eq!(expression(&schema).unwrap(), expected);
        assert!(grammar(&schema).unwrap().starts_with(&format!("root ::= {expected}\nspace ::= ")));
    }

    #[test]
    fn bounds_appear_in_the_grammar() {
        let check = |schema: Value, expected: &str| assert_eq!(expression(&schema).unwrap(), expected);
        check(json!({"type": "string", "maxLength": 3}), r#""\"" char{0,3} "\"""#);
        check(json!({"type": "integer", "minimum": -1, "maximum": 1}), r#"("-1" | "0" | "1")"#);
        check(json!({"type": "integer"}), "integer");
        check(
            json!({"type": "array", "items": {"type": "null"}}),
            r#""[" space ("null" ("," space "null"){0,})? space "]""#,
        );
        let two = json!({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2});
        check(two, r#""[" space ("true" | "false") ("," space ("true" | "false")){1,1} space "]""#);
        check(json!({"type": "array", "items": {"type": "null"}, "maxItems": 0}), r#""[" space "]""#);
    }

    #[test]
    fn an_unsupported_schema_is_rejected() {
        let optional = json!({"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": false});
        let open = json!({"type": "object", "properties": {}});
        let refused = [
            json!({"$ref": "#/nowhere"}),
            json!(true),
            json!({"enum": []}),
            json!({"type": "string", "pattern": "^a$"}),
            json!({"type": "integer", "minimum": 0}),
            json!({"type": "integer", "minimum": 0, "maximum": 1_000}),
            json!({"type": "string", "minLength": 2, "maxLength": 1}),
            json!({"type": "string", "minLength": -1}),
            json!({"type": "array"}),
            optional,
            open,
        ];
        for schema in refused {
            assert!(matches!(grammar(&schema), Err(Error::Invalid(_))), "{schema}");
        }
    }
}
