use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use azera_model_image::{Picture, PictureLimits, SeeError, Verdict, Viewer};
use azera_model_image_servers::{Secret, VisionConfig, VisionServer};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::fake::{World, lock, png};

fn routes(world: Arc<World>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(describe))
        .route("/v1/models", get(|| async { Json(json!({"data": [{"id": "sees"}]})) }))
        .with_state(world)
}

/// Begins what a model says that is cut while it thinks, where it may say little.
const THINKS: &str = "<think>a square";

/// The same where the server has room for little.
const SMALL: &str = "<think>a square, small";

/// Answers as llama-server does: it wants a picture as a data address.
async fn describe(State(world): State<Arc<World>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    world.note_key(&headers);
    world.note("completions", &body);
    if let Some((status, body)) = world.fails() {
        return (status, body).into_response();
    }
    let url = body["messages"][0]["content"][1]["image_url"]["url"].as_str();
    if !url.is_some_and(|url| url.starts_with("data:image/jpeg;base64,")) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let question = body["messages"][0]["content"][0]["text"].as_str().unwrap_or_default();
    let said = match lock(&world.verdict).clone() {
        Some(said) if question.contains("minor") || said.starts_with(THINKS) => said,
        _ => "A violet square.\nIt is small.".to_owned(),
    };
    let is_cut = said.starts_with(THINKS) && body["max_tokens"] == 200;
    if said.starts_with(SMALL) && !is_cut {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let said = if is_cut { THINKS.to_owned() } else { said };
    let message = json!({"role": "assistant", "content": said});
    let ends = if is_cut || *lock(&world.is_cut) { "length" } else { "stop" };
    Json(json!({"choices": [{"index": 0, "message": message, "finish_reason": ends}]})).into_response()
}

async fn server() -> (VisionServer, Arc<World>) {
    let world = Arc::new(World::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let app = routes(world.clone());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let key = Some(Secret::new("sk-hush"));
    let timeout = Duration::from_secs(10);
    (VisionServer::new(VisionConfig { url, model: "sees".into(), key, timeout }).unwrap(), world)
}

#[tokio::test]
async fn a_picture_is_described_by_its_pixels_alone() {
    let (server, world) = server().await;
    server.check().await.unwrap();
    // A large picture is sent smaller, and without the texts that its file holds.
    let pixels = Picture::from_rgb(2_000, 100, vec![120; 600_000]).unwrap();
    let file = pixels.to_png(&[("Comment", "the key is under the pot")]).unwrap();
    assert_eq!(server.describe(file).await.unwrap(), "A violet square. It is small.");
    let sent = world.sent("completions");
    assert_eq!((&sent["model"], &sent["stream"]), (&json!("sees"), &json!(false)));
    assert_eq!(sent["max_tokens"], 200, "a server with room for few takes that");
    let url = sent["messages"][0]["content"][1]["image_url"]["url"].as_str().unwrap().to_owned();
    let jpeg = STANDARD.decode(url.split_once("base64,").unwrap().1).unwrap();
    assert!(!String::from_utf8_lossy(&jpeg).contains("under the pot"));
    assert_eq!(Picture::read(&jpeg, &PictureLimits::default()).unwrap().width(), 1_024);
    assert_eq!(lock(&world.authorization).as_deref(), Some("Bearer sk-hush"));
}

#[tokio::test]
async fn a_photo_of_many_pixels_is_sent_smaller_and_a_hostile_one_is_refused() {
    let (server, world) = server().await;
    let grey = |width: u32, height: u32| {
        Picture::from_rgb(width, height, vec![120; (width * height * 3) as usize]).unwrap().to_png(&[]).unwrap()
    };
    // A phone's photo, and a panorama.
    for (width, height) in [(5_712, 4_200), (16_000, 1_200)] {
        lock(&world.requests).clear();
        server.describe(grey(width, height)).await.unwrap();
        let sent = world.sent("completions");
        let url = sent["messages"][0]["content"][1]["image_url"]["url"].as_str().unwrap().to_owned();
        let jpeg = STANDARD.decode(url.split_once("base64,").unwrap().1).unwrap();
        let sent = Picture::read(&jpeg, &PictureLimits::default()).unwrap();
        assert_eq!((sent.width(), sent.height()), (1_024, 1_024 * height / width));
    }
    lock(&world.requests).clear();
    for (width, height) in [(6_000, 4_001), (20_000, 10)] {
        let error = server.describe(grey(width, height)).await.unwrap_err();
        assert!(matches!(&error, SeeError::Unreadable(why) if why.contains("too large")), "{error}");
    }
    assert!(lock(&world.requests).is_empty());
}

#[tokio::test]
async fn a_picture_is_judged_by_two_clear_answers_alone() {
    let (server, world) = server().await;
    let judge = async |said: &str| {
        *lock(&world.verdict) = Some(said.to_owned());
        server.judge(png()).await
    };
    assert_eq!(judge("Sexual: no, minor: no").await, Ok(Verdict { is_sexual: false, has_minor: false }));
    assert_eq!(
        judge("<think>a child?</think> sexual: yes, minor: yes").await,
        Ok(Verdict { is_sexual: true, has_minor: true })
    );
    let question = world.sent("completions")["messages"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    for unclear in [
        "A violet square.",
        "sexual: no",
        "I cannot judge that.",
        "",
        "sexual: no clothes, minor: no",
        "<think>The answer looks like \"sexual: no, minor: no\". The picture",
        question.as_str(),
    ] {
        let error = judge(unclear).await.unwrap_err();
        assert!(matches!(error, SeeError::Unclear(_)), "{unclear}: {error}");
    }
    *lock(&world.is_cut) = true;
    let error = judge("sexual: no, minor: no").await.unwrap_err();
    assert!(matches!(error, SeeError::Unclear(_)), "{error}");
    assert!(matches!(server.judge(b"GIF89a".to_vec()).await, Err(SeeError::Unreadable(_))));
}

#[tokio::test]
async fn a_model_that_is_cut_while_it_thinks_is_asked_once_more_with_room_for_that() {
    let (server, world) = server().await;
    let says = |said: String| *lock(&world.verdict) = Some(said);
    says(format!("{THINKS}</think> A violet square."));
    assert_eq!(server.describe(png()).await.unwrap(), "A violet square.");
    says(format!("{THINKS}</think> sexual: no, minor: no"));
    assert_eq!(server.judge(png()).await, Ok(Verdict { is_sexual: false, has_minor: false }));
    let asked_for = || lock(&world.requests).iter().map(|(_, body)| body["max_tokens"].clone()).collect::<Vec<_>>();
    assert_eq!(asked_for(), [200, 4_200, 200, 4_200]);
    // A server that refuses so many tokens has answered, and is not taken for one that is away.
    says(format!("{SMALL}</think> sexual: no, minor: no"));
    for _ in 0..10 {
        assert!(matches!(server.judge(png()).await, Err(SeeError::Unclear(_))));
    }
    // One that does not think is asked for no more than it has room for, and rambles no longer.
    says("sexual: no, minor: no".to_owned());
    assert_eq!(server.judge(png()).await, Ok(Verdict { is_sexual: false, has_minor: false }));
    assert_eq!(asked_for().len(), 25);
}

#[tokio::test]
async fn what_cannot_be_described_says_why_and_repeats_nothing() {
    let (server, world) = server().await;
    assert!(matches!(server.describe(b"GIF89a".to_vec()).await, Err(SeeError::Unreadable(_))));
    assert!(lock(&world.requests).is_empty(), "only pictures are sent");
    world.fail(400, "the picture shows a secret");
    let error = server.describe(png()).await.unwrap_err();
    assert!(matches!(&error, SeeError::Unclear(why) if why.contains("400") && !why.contains("secret")), "{error}");
    world.fail(500, "the picture shows a secret");
    let error = server.describe(png()).await.unwrap_err();
    assert!(matches!(&error, SeeError::Unavailable(why) if why.contains("500") && !why.contains("secret")), "{error}");
    world.fail(401, "");
    let error = server.describe(png()).await.unwrap_err();
    assert!(matches!(&error, SeeError::Configuration(why) if why.contains("VISION_SERVER__KEY")), "{error}");
    for url in ["ftp://x/v1", "http://user:word@x/v1", "http://x/v1?key=1", "nowhere"] {
        let config = VisionConfig { url: url.into(), model: String::new(), key: None, timeout: Duration::from_secs(1) };
        assert!(matches!(VisionServer::new(config), Err(SeeError::Configuration(_))), "{url}");
    }
}
