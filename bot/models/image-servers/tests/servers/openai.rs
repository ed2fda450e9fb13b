use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use azera_model_image::ImageError;
use azera_model_image_servers::{ImageServerConfig, ImageServerKind, connect};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::fake::{Fake, World, lock, png, request};

fn routes(world: Arc<World>) -> Router {
    Router::new()
        .route("/v1/images/generations", post(generate))
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
async fn an_address_in_an_answer_is_not_followed() {
    let fake = fake().await;
    fake.world.fail(200, &json!({"created": 1, "data": [{"url": "http://127.0.0.1:1/x.png"}]}).to_string());
    assert!(matches!(fake.draw(&request()).await.0, Err(ImageError::Protocol(_))));
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
