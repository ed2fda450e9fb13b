use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use azera_model_image::{ImageError, ImageLimits, ImageProgress, ImageRequest, ImageSize, Outage};
use azera_model_image_servers::{ImageServerKind, connect};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::fake::{Fake, PROMPT, World, larger, lock, png, request, with_reference};

const FIELDS: [&str; 11] = [
    "prompt",
    "negative_prompt",
    "width",
    "height",
    "steps",
    "seed",
    "guidance",
    "sampler",
    "model",
    "image",
    "strength",
];

fn routes(world: Arc<World>) -> Router {
    Router::new()
        .route("/v1/pictures", post(|state, headers, body| draw("pictures", state, headers, body)))
        .route("/v1/upscales", post(|state, headers, body| draw("upscales", state, headers, body)))
        .route("/v1/pictures/{job}", get(picture).delete(cancel))
        .route("/v1/health", get(health))
        .route("/v1/models", get(models))
        .with_state(world)
}

async fn draw(path: &str, State(world): State<Arc<World>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    world.note_key(&headers);
    world.note(path, &body);
    // The size of an enlarged picture follows from the picture.
    let takes = |key: &str| FIELDS.contains(&key) && (path == "pictures" || !matches!(key, "width" | "height"));
    if let Some(unknown) = body.as_object().unwrap().keys().find(|key| !takes(key)) {
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"detail": unknown}))).into_response();
    }
    let failure = lock(&world.failure).clone();
    let mut first = format!(": alive\n\ndata: {}\n\n", json!({"type": "queued", "job": "j1", "ahead": 2}));
    if *lock(&world.is_loading) {
        let loading = json!({"type": "loading", "model": "tiny", "downloaded": 2_100_000_000_u64});
        first.push_str(&format!("data: {loading}\n\n"));
    }
    let mut second =
        format!("data: {}\n\n", json!({"type": "progress", "step": 1, "steps": 4, "preview": STANDARD.encode(png())}));
    let done = json!({"type": "done", "seed": 77, "model": "tiny"});
    if *lock(&world.is_loading) {
        second.insert_str(0, &format!("data: {}\n\n", json!({"type": "loaded", "model": "tiny"})));
    }
    match failure {
        Some((0, event)) => second.push_str(&format!("data: {event}\n\n")),
        // The stream ends in the middle.
        Some((1, _)) => second.truncate(9),
        Some((status, body)) => return (StatusCode::from_u16(status).unwrap(), body).into_response(),
        None => second.push_str(&format!("data: {done}\n\n")),
    }
    first.insert(0, '\n');
    let whole = stream::unfold(0, move |piece| {
        let (world, first, second) = (world.clone(), first.clone(), second.clone());
        async move {
            match piece {
                0 => Some((Ok::<_, Infallible>(Bytes::from(first)), 1)),
                1 => {
                    world.note("queued", &Value::Null);
                    world.until_free().await;
                    Some((Ok(Bytes::from(second)), 2))
                }
                _ => None,
            }
        }
    });
    ([("content-type", "text/event-stream")], Body::from_stream(whole)).into_response()
}

async fn health(State(world): State<Arc<World>>) -> Json<Value> {
    let loading = lock(&world.is_loading).then_some("tiny");
    Json(json!({"status": "ok", "model": "tiny", "loaded": loading.is_none(), "loading": loading, "device": "cpu",
        "safety": false, "waiting": 0, "running": 0}))
}

async fn models(State(world): State<Arc<World>>) -> Json<Value> {
    let mut offer = json!({"models": ["tiny.safetensors", "large"], "default": "large", "loaded": null,
        "samplers": ["euler"]});
    if let Some((side, pixels, steps)) = *lock(&world.told_limits) {
        (offer["max_side"], offer["max_pixels"], offer["max_steps"]) = (json!(side), json!(pixels), json!(steps));
    }
    Json(offer)
}

async fn picture(Path(job): Path<String>) -> Response {
    if job == "j1" { png().into_response() } else { StatusCode::NOT_FOUND.into_response() }
}

async fn cancel(State(world): State<Arc<World>>, Path(job): Path<String>) -> StatusCode {
    world.stop(&job);
    StatusCode::NO_CONTENT
}

async fn fake() -> Fake {
    Fake::start(ImageServerKind::Sidecar, routes).await
}

#[tokio::test]
async fn a_picture_is_drawn_with_its_place_in_the_queue_and_its_steps() {
    let fake = fake().await;
    let (picture, seen) = fake.draw(&with_reference()).await;
    assert_eq!(picture.unwrap().width(), 8);
    let last = seen.last().expect("progress was reported");
    assert_eq!((last.step, last.steps, last.preview.as_deref()), (1, 4, Some(png().as_slice())));
    let sent = fake.world.sent("pictures");
    assert_eq!((&sent["prompt"], &sent["strength"], &sent["guidance"]), (&json!(PROMPT), &json!(0.25), &json!(5.5)));
    assert_eq!(lock(&fake.world.authorization).as_deref(), Some("Bearer user:sk-hush"));
    assert_eq!(fake.model.check().await.unwrap(), "tiny");
}

#[tokio::test]
async fn a_picture_is_enlarged_with_the_prompt_that_it_was_drawn_by() {
    let fake = fake().await;
    assert!(fake.model.limits().upscales);
    fake.enlarge(&larger()).await.unwrap();
    let sent = fake.world.sent("upscales");
    assert_eq!((&sent["prompt"], &sent["strength"], &sent["seed"]), (&json!(PROMPT), &json!(0.25), &json!(77)));
    assert_eq!(sent["image"], json!(STANDARD.encode(png())));
}

#[tokio::test]
async fn cancelling_ends_the_job_on_the_server() {
    let fake = fake().await;
    let begun = |world: &World| lock(&world.requests).iter().any(|(path, _)| path == "queued");
    // The client has read the first event once the server sends the second, or the job is cancelled by its connection.
    let ended = fake.cancel_amid(begun).await;
    assert_eq!(ended, Err(ImageError::Cancelled));
}

#[tokio::test]
async fn a_server_that_loads_its_model_says_so_and_then_draws() {
    let fake = fake().await;
    *lock(&fake.world.is_loading) = true;
    assert_eq!(fake.model.check().await.unwrap(), "tiny, which it is still loading");
    fake.world.hold(true);
    let (sender, mut receiver) = watch::channel(ImageProgress::default());
    let model = fake.model.clone();
    let drawing = tokio::spawn(async move { model.generate(&request(), &sender, &CancellationToken::new()).await });
    receiver.wait_for(|seen| seen.loading == Some(2_100_000_000)).await.unwrap();
    fake.world.hold(false);
    receiver.wait_for(|seen| seen.step == 1 && seen.loading.is_none()).await.unwrap();
    assert_eq!(drawing.await.unwrap().unwrap().model, "tiny");
}

#[tokio::test]
async fn a_picture_is_cancelled_while_the_server_loads_its_model() {
    let fake = fake().await;
    *lock(&fake.world.is_loading) = true;
    fake.world.hold(true);
    let (sender, mut receiver) = watch::channel(ImageProgress::default());
    let (model, cancelled) = (fake.model.clone(), CancellationToken::new());
    let token = cancelled.clone();
    let drawing = tokio::spawn(async move { model.generate(&request(), &sender, &token).await });
    receiver.wait_for(|seen| seen.loading.is_some()).await.unwrap();
    cancelled.cancel();
    assert_eq!(drawing.await.unwrap().unwrap_err(), ImageError::Cancelled);
    assert_eq!(*lock(&fake.world.stopped), ["j1"], "the server is told");
}

#[tokio::test]
async fn a_size_beyond_the_pixels_of_the_sidecar_becomes_one_within() {
    let mut fake = fake().await;
    for (max_side, most) in [(1_536, 1_216 * 1_216), (2_048, 2_048 * 2_048)] {
        fake.config.limits = ImageLimits { max_side, max_pixels: max_side * max_side, ..ImageLimits::default() };
        let model = connect(fake.config.clone()).unwrap();
        let size = ImageSize { width: max_side, height: max_side };
        let fitted = model.limits().fit(&ImageRequest { size, ..request() }).size;
        assert!(fitted.width * fitted.height <= most && fitted.width > max_side * 3 / 4, "{fitted:?}");
    }
}

#[tokio::test]
async fn the_limits_are_those_that_the_sidecar_tells_within_the_configured_ones() {
    let mut fake = fake().await;
    *lock(&fake.world.told_limits) = Some((2_048, 2_048 * 2_048, 3));
    fake.config.limits = ImageLimits { max_side: 1_792, max_pixels: 1_792 * 1_792, ..ImageLimits::default() };
    fake.model = connect(fake.config.clone()).unwrap();
    let size = ImageSize { width: 4_096, height: 4_096 };
    let wanted = ImageRequest { size, steps: 4, ..request() };
    fake.draw(&wanted).await.0.unwrap();
    let sent = fake.world.sent("pictures");
    let (width, height) = (sent["width"].as_u64().unwrap(), sent["height"].as_u64().unwrap());
    // The usual limit would give some 1,216.
    assert!((1_600..=1_792).contains(&width) && width == height && sent["steps"] == 3, "{sent}");
    assert_eq!((fake.model.limits().max_side, fake.model.limits().max_steps), (1_792, 3));
}

#[tokio::test]
async fn a_sidecar_that_begins_anew_with_smaller_limits_is_asked_for_them_again() {
    for (status, body) in [(422, json!({"detail": "a picture has at most 2 steps"}).to_string()), (503, String::new())]
    {
        let fake = fake().await;
        let steps = || lock(&fake.world.requests).last().map(|(_, body)| body["steps"].clone());
        *lock(&fake.world.told_limits) = Some((1_024, 1_024 * 1_024, 4));
        fake.world.fail(status, &body);
        fake.draw(&request()).await.0.unwrap_err();
        assert_eq!(steps(), Some(json!(4)));
        *lock(&fake.world.told_limits) = Some((1_024, 1_024 * 1_024, 2));
        fake.draw(&request()).await.0.unwrap_err();
        assert_eq!(steps(), Some(json!(2)), "after status {status}");
        assert_eq!(fake.model.limits().max_steps, 2);
    }
}

#[tokio::test]
async fn a_model_that_the_sidecar_does_not_have_is_told_with_those_that_it_has() {
    let mut fake = fake().await;
    fake.config.model = "huge".into();
    let error = connect(fake.config.clone()).unwrap().check().await.unwrap_err().to_string();
    assert!(error.contains("no model huge (images.model); it has tiny.safetensors, large"), "{error}");
    fake.config.model = String::new();
    assert_eq!(connect(fake.config.clone()).unwrap().check().await.unwrap(), "tiny");
}

#[tokio::test]
async fn an_event_of_failure_says_whether_a_retry_helps() {
    let fake = fake().await;
    let failing = |code: &str| json!({"type": "error", "code": code, "message": format!("about {PROMPT}")}).to_string();
    fake.world.fail(0, &failing("flagged"));
    assert_eq!(fake.draw(&request()).await.0, Err(ImageError::Flagged));
    assert_eq!(*lock(&fake.world.stopped), ["j1"], "the job is cleared");
    for (code, is_transient) in [("refused", false), ("failed", true)] {
        fake.world.fail(0, &failing(code));
        let error = fake.draw(&request()).await.0.unwrap_err();
        assert_eq!(error.is_transient(), is_transient);
        assert!(!matches!(error, ImageError::Unavailable { outage, .. } if outage != Outage::Failed), "{error:?}");
        assert!(!error.to_string().contains("lighthouse"), "{error}");
    }
    let full = json!({"type": "error", "code": "failed", "message": "the model failed (OutOfMemoryError)"});
    fake.world.fail(0, &full.to_string());
    let error = fake.draw(&request()).await.0.unwrap_err();
    assert!(matches!(error, ImageError::Unavailable { outage: Outage::OutOfMemory, .. }), "{error:?}");
    fake.world.fail(1, "");
    let error = fake.draw(&request()).await.0.unwrap_err();
    assert!(matches!(error, ImageError::Unavailable { outage: Outage::Failed, .. }), "it broke off: {error:?}");
    fake.world.fail(0, "{\"type\":\"what\"}");
    assert!(matches!(fake.draw(&request()).await.0, Err(ImageError::Protocol(_))));
    fake.world.fail(0, "{\"type\":\"queued\",\"job\":\"../x\",\"ahead\":0}");
    assert!(matches!(fake.draw(&request()).await.0, Err(ImageError::Protocol(_))));
}

#[tokio::test]
async fn requests_choose_from_what_the_sidecar_has_and_the_configuration_allows() {
    let mut fake = fake().await;
    assert_eq!(fake.model.offer().await.unwrap().models, ["tiny.safetensors"]);
    fake.config.models = vec!["*".into()];
    fake.model = connect(fake.config.clone()).unwrap();
    let offer = fake.model.offer().await.unwrap();
    assert_eq!((offer.models.len(), offer.models[1].as_str(), offer.samplers), (2, "large", vec!["euler".to_owned()]));
    fake.draw(&ImageRequest { model: Some("large".into()), ..request() }).await.0.unwrap();
    let sent = fake.world.sent("pictures");
    assert_eq!((&sent["model"], &sent["sampler"]), (&json!("large"), &json!("euler")));
    (fake.config.model, fake.config.models) = (String::new(), vec!["large".into(), "gone".into()]);
    fake.model = connect(fake.config.clone()).unwrap();
    assert_eq!(fake.model.offer().await.unwrap().models, ["large"]);
}
