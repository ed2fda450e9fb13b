use std::sync::Arc;

use axum::extract::{Multipart, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use azera_model_image::{ImageError, ImageRequest};
use azera_model_image_servers::{ImageServerConfig, ImageServerKind, connect};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::fake::{Fake, World, lock, png, request, with_reference};

fn routes(world: Arc<World>) -> Router {
    Router::new()
        .route("/v1/images/generations", post(generate))
        .route("/v1/images/edits", post(edit))
        .route("/files/{name}", get(file))
        .route("/v1/models", get(|| async { Json(json!({"data": [{"id": "tiny.safetensors"}]})) }))
        .with_state(world)
}

async fn generate(State(world): State<Arc<World>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    world.note_key(&headers);
    world.note("generations", &body);
    if let Some((status, body)) = world.fails() {
        return (status, body).into_response();
    }
    // As newer models do.
    if body.get("response_format").is_some() {
        let error = json!({"error": {"message": "Unknown parameter: 'response_format'.", "code": "unknown_parameter"}});
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    }
    Json(json!({"created": 1, "data": [{"b64_json": STANDARD.encode(png()), "revised_prompt": "x"}]})).into_response()
}

/// Takes what OpenAI's own models take: a form, without the fields of other interfaces.
async fn edit(State(world): State<Arc<World>>, headers: HeaderMap, mut form: Multipart) -> Response {
    world.note_key(&headers);
    let mut fields = serde_json::Map::new();
    while let Some(field) = form.next_field().await.unwrap() {
        let (name, mime) = (field.name().unwrap().to_owned(), field.content_type().map(str::to_owned));
        let bytes = field.bytes().await.unwrap();
        let value = match mime {
            Some(mime) => json!({"mime": mime, "is_sent_whole": bytes == png()}),
            None => json!(String::from_utf8(bytes.to_vec()).unwrap()),
        };
        fields.insert(name, value);
    }
    world.note("edits", &Value::Object(fields.clone()));
    if let Some(name) = fields.keys().find(|name| !["image", "model", "prompt", "n", "size"].contains(&name.as_str())) {
        let error = json!({"error": {"message": format!("Unknown parameter: '{name}'.")}});
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    }
    Json(json!({"created": 1, "data": [{"b64_json": STANDARD.encode(png())}]})).into_response()
}

async fn file(State(world): State<Arc<World>>, headers: HeaderMap, Path(name): Path<String>) -> Response {
    world.note_key(&headers);
    if name == "x.png" { png().into_response() } else { StatusCode::NOT_FOUND.into_response() }
}

async fn fake() -> Fake {
    Fake::start(ImageServerKind::OpenAi, routes).await
}

#[tokio::test]
async fn a_picture_is_drawn_by_servers_with_and_without_the_format_option() {
    let fake = fake().await;
    assert_eq!(fake.draw(&request()).await.0.unwrap().height(), 8);
    let sent: Vec<Value> = lock(&fake.world.requests).iter().map(|(_, body)| body.clone()).collect();
    assert_eq!(sent[0]["response_format"], "b64_json");
    assert_eq!((&sent[1]["size"], &sent[1]["n"]), (&json!("96x64"), &json!(1)));
    assert!(sent[1]["prompt"].as_str().unwrap().ends_with("Without: fog"));
    assert_eq!(lock(&fake.world.authorization).as_deref(), Some("Bearer user:sk-hush"));
    assert!(!fake.model.limits().takes_reference && !fake.model.limits().takes_seed);
    assert_eq!(fake.model.check().await.unwrap(), "tiny.safetensors");
}

#[tokio::test]
async fn a_picture_starts_from_another_with_models_that_edit() {
    let mut fake = fake().await;
    fake.config.model = "gpt-image-1".into();
    fake.model = connect(fake.config.clone()).unwrap();
    assert!(fake.model.limits().takes_reference);
    fake.draw(&with_reference()).await.0.unwrap();
    let sent = fake.world.sent("edits");
    assert_eq!(sent["image"], json!({"mime": "image/png", "is_sent_whole": true}));
    assert_eq!((&sent["model"], &sent["size"]), (&json!("gpt-image-1"), &json!("1536x1024")));
    assert!(sent["prompt"].as_str().unwrap().ends_with("Without: fog"));
    assert_eq!(lock(&fake.world.authorization).as_deref(), Some("Bearer user:sk-hush"));
}

#[tokio::test]
async fn a_picture_is_fetched_from_the_server_itself_and_from_no_other() {
    let fake = fake().await;
    let answered = |url: &str| fake.world.fail(200, &json!({"created": 1, "data": [{"url": url}]}).to_string());
    let data = format!("data:image/png;base64,{}", STANDARD.encode(png()));
    for own in [format!("{}/files/x.png", fake.config.url), "/files/x.png".to_owned(), data] {
        answered(&own);
        assert_eq!(fake.draw(&request()).await.0.unwrap().width(), 8, "{own}");
    }
    assert_eq!(lock(&fake.world.authorization).as_deref(), Some("Bearer user:sk-hush"));
    answered("/files/gone.png");
    fake.draw(&request()).await.0.unwrap_err();
    let port = fake.config.url.rsplit(':').next().unwrap().to_owned();
    for other in [
        "http://127.0.0.1:1/files/x.png".to_owned(),
        format!("http://localhost:{port}/files/x.png"),
        format!("https://127.0.0.1:{port}/files/x.png"),
        "//example.org/x.png".to_owned(),
        "file:///etc/passwd".to_owned(),
    ] {
        // The breaker counts what is wrong with a server.
        let model = connect(fake.config.clone()).unwrap();
        answered(&other);
        let (progress, _seen) = tokio::sync::watch::channel(Default::default());
        let error = model.generate(&request(), &progress, &Default::default()).await.unwrap_err();
        assert!(matches!(&error, ImageError::Protocol(why) if why.contains("another server")), "{other}: {error}");
    }
}

#[tokio::test]
async fn a_refusal_of_the_content_is_final() {
    let fake = fake().await;
    fake.world.fail(400, &json!({"error": {"message": "Your request was rejected by the safety system."}}).to_string());
    let error = fake.draw(&request()).await.0.unwrap_err();
    assert!(matches!(&error, ImageError::Refused(why) if why.contains("safety system")), "{error}");
}

#[tokio::test]
async fn a_wrong_setting_is_named() {
    #[track_caller]
    fn check(change: impl FnOnce(&mut ImageServerConfig), fake: &Fake, part: &str) {
        let mut config = fake.config.clone();
        change(&mut config);
        let error = connect(config).err().expect(part).to_string();
        assert!(error.contains(part) && !error.contains("hush"), "{error}");
    }
    let fake = fake().await;
    check(|config| config.url = "127.0.0.1".into(), &fake, "images.url");
    check(|config| config.url = "ftp://h".into(), &fake, "images.url");
    check(|config| config.url = "http://u:hush@h".into(), &fake, "images.key");
    check(|config| config.model = String::new(), &fake, "images.model");
}

#[tokio::test]
async fn requests_choose_from_the_models_that_the_configuration_names() {
    let mut fake = fake().await;
    assert_eq!(
        fake.model.offer().await.unwrap().models,
        ["tiny.safetensors"],
        "such servers list models for talk, too"
    );
    fake.config.models = vec!["large".into()];
    fake.model = connect(fake.config.clone()).unwrap();
    assert_eq!(fake.model.offer().await.unwrap().models, ["tiny.safetensors", "large"]);
    fake.draw(&ImageRequest { model: Some("large".into()), ..request() }).await.0.unwrap();
    assert_eq!(fake.world.sent("generations")["model"], "large");
    (fake.config.model, fake.config.models) = ("gpt-image-1".into(), vec!["gpt-image-1-mini".into()]);
    assert!(connect(fake.config.clone()).unwrap().limits().takes_reference);
    fake.config.models.push("dall-e-3".into());
    let model = connect(fake.config.clone()).unwrap();
    assert!(model.limits().takes_reference && model.can_edit(None), "one more model ends no remixes");
    assert!(model.can_edit(Some("GPT-image-1-mini")) && !model.can_edit(Some("dall-e-3")));
    fake.config.models = vec!["*".into()];
    assert_eq!(connect(fake.config.clone()).unwrap().offer().await.unwrap().models, ["gpt-image-1"]);
}
