//! Checks requests against Discord's own API description.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

/// Discord's API description.
pub(crate) struct Description {
    document: Value,
    /// One validator for each operation that was called.
    validators: Mutex<HashMap<String, Option<Arc<Validator>>>>,
}

impl Description {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read(path).expect("the description is there");
        let document = serde_json::from_slice(&text).expect("the description is JSON");
        Self { document, validators: Mutex::default() }
    }

    /// Returns what is wrong with a request; `None` if it matches the description. `path` has no version.
    pub(crate) fn problem(
        &self,
        method: &str,
        path: &str,
        query: &[(String, String)],
        body: Option<&Value>,
    ) -> Option<String> {
        let method = method.to_lowercase();
        let Some((template, operation)) = self.operation(&method, path) else {
            return Some(format!("{method} {path} is no operation that Discord describes"));
        };
        if let Some(problem) = self.wrong_query(&template, operation, query) {
            return Some(format!("{method} {template}: {problem}"));
        }
        let schema = operation.pointer("/requestBody/content/application~1json/schema")?;
        let key = format!("{method} {template}");
        let validator = self.validator(&key, schema)?;
        let body = body.map(as_described).unwrap_or(Value::Null);
        let problem = validator.iter_errors(&body).next()?;
        Some(format!("{key}: {problem} at {}", problem.instance_path()))
    }

    fn operation(&self, method: &str, path: &str) -> Option<(String, &Value)> {
        let paths = self.document["paths"].as_object()?;
        let mut fitting: Vec<_> = paths.iter().filter(|(template, _)| fits(template, path)).collect();
        // A literal path goes before one with a parameter.
        fitting.sort_by_key(|(template, _)| template.matches('{').count());
        fitting.into_iter().find_map(|(template, operations)| Some((template.clone(), operations.get(method)?)))
    }

    fn wrong_query(&self, template: &str, operation: &Value, query: &[(String, String)]) -> Option<String> {
        let enclosing = &self.document["paths"][template]["parameters"];
        let lists = [&operation["parameters"], enclosing];
        let known: Vec<&Value> = lists.into_iter().filter_map(Value::as_array).flatten().collect();
        query.iter().find_map(|(name, value)| {
            let Some(parameter) = known.iter().find(|parameter| parameter["name"] == **name) else {
                return Some(format!("no parameter {name}"));
            };
            let schema = &parameter["schema"];
            match schema["type"].as_str() {
                Some("integer") => match value.parse::<i64>() {
                    Err(_) => Some(format!("{name} is no number")),
                    Ok(number) => {
                        let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
                        let least = schema["minimum"].as_i64().unwrap_or(i64::MIN);
                        (!(least..=most).contains(&number)).then(|| format!("{name} is {number}"))
                    }
                },
                Some("boolean") if !matches!(value.as_str(), "true" | "false") => Some(format!("{name} is no flag")),
                _ => None,
            }
        })
    }

    fn validator(&self, key: &str, schema: &Value) -> Option<Arc<Validator>> {
        let mut validators = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        let made = validators.entry(key.to_owned()).or_insert_with(|| {
            let whole = json!({"allOf": [schema], "components": self.document["components"]});
            Some(Arc::new(jsonschema::validator_for(&whole).expect("Discord's schemas are schemas")))
        });
        made.clone()
    }
}

fn fits(template: &str, path: &str) -> bool {
    let (template, path) = (template.split('/'), path.split('/'));
    template.clone().count() == path.clone().count()
        && template.zip(path).all(|(wanted, found)| wanted.starts_with('{') || wanted == found)
}

/// Adapts the body to the description. serenity sends `attachments[].id` as a number, which Discord accepts. A
/// command's permissions are a number in the description, but text in the reference.
fn as_described(body: &Value) -> Value {
    let mut body = body.clone();
    for command in body.as_array_mut().into_iter().flatten() {
        let bits = command["default_member_permissions"].as_str().and_then(|bits| bits.parse::<u64>().ok());
        if let Some(bits) = bits {
            command["default_member_permissions"] = json!(bits);
        }
    }
    for pointer in ["/attachments", "/data/attachments"] {
        for attachment in body.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(id) = attachment.get("id").and_then(Value::as_u64) {
                attachment["id"] = json!(id.to_string());
            }
        }
    }
    body
}
