//! The OpenAPI 3.1 description, made from the declared endpoints.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::endpoint::{Answer, Endpoint, Need};
use crate::problem::ProblemBody;
use crate::routes;
use crate::web::Shared;

/// Answers with the description.
pub(crate) async fn serve(State(shared): State<Arc<Shared>>) -> axum::Json<Value> {
    axum::Json(document(shared.settings.version))
}

/// Returns the description of every endpoint.
pub(crate) fn document(version: &str) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<ProblemBody>().to_value();
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in routes::endpoints() {
        let operation = operation(&endpoint, &mut generator, &problem);
        let methods = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        methods[endpoint.method.as_str().to_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Azera",
            "version": version,
            "summary": "Talk with Azera, and look after it",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key."},
                "session": {"type": "apiKey", "in": "cookie", "name": "azera_session"},
            },
        },
    })
}

fn operation(endpoint: &Endpoint, generator: &mut schemars::SchemaGenerator, problem: &Value) -> Value {
    let mut content = match endpoint.answer {
        Answer::Json(schema) => json!({"application/json": {"schema": schema(generator)}}),
        Answer::Media(media_type, what) => {
            json!({media_type: {"schema": {"type": "string", "description": what}}})
        }
    };
    if endpoint.may_stream {
        content["text/event-stream"] = json!({"schema": {"type": "string"}});
    }
    let mut responses = json!({"200": {"description": "It worked.", "content": content}});
    let error = |description: &str| {
        let schema = if endpoint.path.starts_with("/v1/") {
            json!({"application/json": {"schema": {"type": "object"}}})
        } else {
            json!({"application/problem+json": {"schema": problem}})
        };
        json!({"description": description, "content": schema})
    };
    responses["default"] = error("It did not work. The body says why.");
    for (status, meaning) in endpoint.also {
        responses[status.to_string()] = error(meaning);
    }
    let in_path = endpoint.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path =
        in_path.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let in_query = endpoint.query.iter().map(|parameter| {
        json!({
            "name": parameter.name, "in": "query", "required": parameter.required,
            "description": parameter.help, "schema": {"type": "string"},
        })
    });
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let mut operation = json!({
        "operationId": operation_id(endpoint),
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": responses,
        "security": security(endpoint.need),
    });
    if let Some(schema) = endpoint.request {
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema(generator)}}});
    }
    if endpoint.takes_files {
        let files = json!({"type": "object", "additionalProperties": {"type": "string", "format": "binary"}});
        operation["requestBody"] = json!({"required": true, "content": {"multipart/form-data": {"schema": files}}});
    }
    operation
}

fn operation_id(endpoint: &Endpoint) -> String {
    let words = endpoint.path.split(['/', '{', '}', '-', '.']).filter(|word| !word.is_empty() && *word != "api");
    let method = match endpoint.method {
        Method::GET => "get",
        Method::POST => "post",
        Method::PUT => "put",
        _ => "delete",
    };
    words.fold(method.to_owned(), |id, word| format!("{id}_{word}"))
}

fn security(need: Need) -> Value {
    match need {
        Need::Public => json!([]),
        Need::Session => json!([{"session": []}]),
        Need::Scope(_) => json!([{"key": []}, {"session": []}]),
        Need::LocalOrAdmin => json!([{}, {"key": []}, {"session": []}]),
        Need::Local => json!([{"key": []}]),
    }
}
