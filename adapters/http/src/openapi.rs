//! The OpenAPI 3.1 description, made from the declared endpoints.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::endpoint::{Answer, Endpoint, Form, Need, Parameter};
use crate::problem::ProblemBody;
use crate::web::Shared;
use crate::{guard, routes};

/// The media types of forms.
const FILES: &str = "multipart/form-data";
const FIELDS: &str = "application/x-www-form-urlencoded";

/// The media type of streams of events.
const EVENTS: &str = "text/event-stream";

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
                "key": {"type": "http", "scheme": "bearer", "description": "An API key, or a token of /api/token."},
                "session": {
                    "type": "apiKey", "in": "cookie", "name": guard::COOKIE,
                    "description": format!("A login. Over TLS, the cookie is {}.", guard::SECURE_COOKIE),
                },
            },
        },
    })
}

fn operation(endpoint: &Endpoint, generator: &mut schemars::SchemaGenerator, problem: &Value) -> Value {
    let mut content = match endpoint.answer {
        Answer::Json(schema) => json!({"application/json": {"schema": schema(generator)}}),
        Answer::Media(EVENTS, what) => json!({EVENTS: {"schema": event(what)}}),
        Answer::Media(media_type, what) => {
            json!({media_type: {"schema": {"type": "string", "description": what}}})
        }
        Answer::File(media_type, what) => {
            json!({media_type: {"schema": {"type": "string", "format": "binary", "description": what}}})
        }
    };
    if endpoint.may_stream {
        content[EVENTS] = json!({"schema": event("The same, piece by piece.")});
    }
    let mut responses = json!({"200": {"description": "It worked.", "content": content}});
    let is_file = matches!(endpoint.answer, Answer::File(..));
    if is_file {
        responses["206"] = json!({"description": "A part of the file.", "content": content});
        responses["304"] = json!({"description": "The client has the file as it is."});
    }
    let error = |description: &str| {
        let schema = if endpoint.path.starts_with("/v1/") {
            json!({"application/json": {"schema": {"type": "object"}}})
        } else if has_own_refusals(endpoint) {
            json!({"application/problem+json": {"schema": problem}, "application/json": {"schema": {"type": "object"}}})
        } else {
            json!({"application/problem+json": {"schema": problem}})
        };
        json!({"description": description, "content": schema})
    };
    responses["default"] = error("It did not work. The body says why.");
    if is_file {
        responses["416"] = error("The file has no such part.");
    }
    for (status, meaning) in endpoint.also {
        let response = if *status < 300 { json!({"description": meaning}) } else { error(meaning) };
        responses[status.to_string()] = response;
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
    let in_head =
        [("Range", "The part of the file to send, such as bytes=0-1023."), ("If-None-Match", "The ETag of a copy.")];
    let in_head = in_head.into_iter().filter(|_| is_file).map(|(name, help)| {
        json!({"name": name, "in": "header", "required": false, "description": help, "schema": {"type": "string"}})
    });
    let parameters: Vec<Value> = in_path.chain(in_query).chain(in_head).collect();
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
    let binary = json!({"type": "string", "format": "binary"});
    let form = match endpoint.form {
        Form::Nothing => None,
        Form::Files => Some((FILES, json!({"type": "object", "additionalProperties": binary}))),
        Form::File => Some((
            FILES,
            json!({
                "type": "object", "required": ["file"], "properties": {"file": binary},
                "additionalProperties": {"type": "string"},
            }),
        )),
        Form::Fields(fields) => Some((FIELDS, of_fields(fields))),
    };
    if let Some((media_type, schema)) = form {
        operation["requestBody"] = json!({"required": true, "content": {media_type: {"schema": schema}}});
    }
    operation
}

/// Returns true if some refusals of a route are messages of its protocol.
fn has_own_refusals(endpoint: &Endpoint) -> bool {
    let takes_fields = matches!(endpoint.form, Form::Fields(_));
    takes_fields || endpoint.path == "/mcp" || endpoint.path.starts_with("/oauth/")
}

/// Returns the schema of the fields of a form.
fn of_fields(fields: &[Parameter]) -> Value {
    let property = |field: &Parameter| (field.name.to_owned(), json!({"type": "string", "description": field.help}));
    let properties: Map<String, Value> = fields.iter().map(property).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// Returns the schema of one event of a stream.
fn event(what: &str) -> Value {
    let text = json!({"type": "string"});
    json!({"type": "object", "description": what, "required": ["data"], "properties": {"event": text, "data": text}})
}

fn operation_id(endpoint: &Endpoint) -> String {
    // The words of `/api/token` are the same.
    let path = if endpoint.path == "/token" { "/token/of/oauth" } else { endpoint.path };
    let words = path.split(['/', '{', '}', '-', '.']).filter(|word| !word.is_empty() && *word != "api");
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
        Need::Scope(_) | Need::Account => json!([{"key": []}, {"session": []}]),
        Need::LocalOrAdmin => json!([{}, {"key": []}, {"session": []}]),
        Need::Local | Need::Machine => json!([{"key": []}]),
    }
}
