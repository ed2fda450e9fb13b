use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use azera_model_image::{ImageError, ImageRequest, Outage, Picture};
use azera_model_image_servers::{ImageServerKind, connect};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::fake::{Fake, PROMPT, World, larger, lock, png, request, square, with_reference};

/// The fields of a request that the client may send.
const FIELDS: [&str; 18] = [
    "force_task_id",
    "prompt",
    "negative_prompt",
    "width",
    "height",
    "steps",
    "seed",
    "cfg_scale",
    "batch_size",
    "n_iter",
    "send_images",
    "save_images",
    "do_not_save_samples",
    "do_not_save_grid",
    "sampler_name",
    "override_settings",
    "init_images",
    "denoising_strength",
];

/// The fields of a request to enlarge that the client may send.
const EXTRA_FIELDS: [&str; 4] = ["resize_mode", "upscaling_resize", "upscaler_1", "image"];

fn routes(world: Arc<World>) -> Router {
    Router::new()
        .route("/sdapi/v1/txt2img", post(|state, headers, body| draw("txt2img", state, headers, body)))
        .route("/sdapi/v1/img2img", post(|state, headers, body| draw("img2img", state, headers, body)))
        .route("/sdapi/v1/extra-single-image", post(extra))
        .route("/internal/progress", post(progress))
        .route("/sdapi/v1/interrupt", post(interrupt))
        .route("/sdapi/v1/sd-models", get(models))
        .route("/sdapi/v1/samplers", get(samplers))
        .route("/sdapi/v1/options", get(|| async { Json(json!({"sd_model_checkpoint": "tiny [abc]"})) }))
        .with_state(world)
}

async fn draw(path: &str, State(world): State<Arc<World>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    world.note_key(&headers);
    world.note(path, &body);
    if let Some(unknown) = body.as_object().unwrap().keys().find(|key| !FIELDS.contains(&key.as_str())) {
        let detail = json!({"detail": [{"msg": format!("extra fields not permitted: {unknown}")}]});
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(detail)).into_response();
    }
    if (path == "img2img") != body["init_images"].is_array() {
        return (StatusCode::NOT_FOUND, Json(json!({"detail": "Init image not found"}))).into_response();
    }
    if let Some((status, body)) = world.fails() {
        return (status, body).into_response();
    }
    world.until_free().await;
    let info = json!({"seed": body["seed"], "all_seeds": [body["seed"]], "sd_model_name": "tiny"}).to_string();
    Json(json!({"images": [STANDARD.encode(png())], "parameters": {}, "info": info})).into_response()
}

/// Enlarges a picture. Only the upscalers of its list exist; without one, the picture stays as it is.
async fn extra(State(world): State<Arc<World>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    world.note_key(&headers);
    world.note("extra", &body);
    if let Some(unknown) = body.as_object().unwrap().keys().find(|key| !EXTRA_FIELDS.contains(&key.as_str())) {
        let detail = json!({"detail": [{"msg": format!("extra fields not permitted: {unknown}")}]});
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(detail)).into_response();
    }
    let sent = STANDARD.decode(body["image"].as_str().unwrap_or_default()).unwrap();
    let sent = Picture::read(&sent, &Default::default()).unwrap();
    let side = match body["upscaler_1"].as_str() {
        Some("R-ESRGAN 4x+" | "Lanczos") => sent.width() * body["upscaling_resize"].as_u64().unwrap_or(2) as u32,
        None | Some("None") => sent.width(),
        Some(_) => {
            let detail = json!({"error": "AssertionError", "detail": "", "errors": "could not find upscaler"});
            return (StatusCode::INTERNAL_SERVER_ERROR, Json(detail)).into_response();
        }
    };
    world.until_free().await;
    Json(json!({"html_info": "<p>larger</p>", "image": STANDARD.encode(square(side))})).into_response()
}

/// The task of somebody else, which the server draws while [`World::is_busy`] says so.
const STRANGER: &str = "task(strangers-own)";

/// Says how far a task is. While a stranger's is drawn, the asked one waits.
async fn progress(State(world): State<Arc<World>>, Json(body): Json<Value>) -> Response {
    world.note("progress", &body);
    let sent = lock(&world.requests).iter().find(|(path, _)| path.ends_with("2img")).map(|(_, body)| body.clone());
    let drawn = match *lock(&world.is_busy) {
        true => json!(STRANGER),
        false => sent.map_or(Value::Null, |sent| sent["force_task_id"].clone()),
    };
    if !body["id_task"].is_string() {
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"detail": "id_task"}))).into_response();
    }
    let is_active = body["id_task"] == drawn;
    let shown = match is_active {
        true => json!({"progress": 0.5, "live_preview": format!("data:image/png;base64,{}", STANDARD.encode(png()))}),
        false => json!({"progress": null, "live_preview": null}),
    };
    let told = json!({"active": is_active, "queued": !is_active, "paused": false, "completed": false, "eta": null,
        "progress": shown["progress"], "live_preview": shown["live_preview"], "id_live_preview": 1, "textinfo": null});
    Json(told).into_response()
}

async fn samplers() -> Json<Value> {
    let sampler = |name: &str, alias: &str| json!({"name": name, "aliases": [alias], "options": {}});
    Json(json!([sampler("Euler a", "k_euler_a"), sampler("DPM++ 2M", "k_dpmpp_2m")]))
}

async fn models() -> Json<Value> {
    let model = |name: &str| {
        json!({"title": format!("{name}.safetensors [abc]"), "model_name": name, "hash": "abc", "sha256": null,
            "filename": format!("/models/Stable-diffusion/{name}.safetensors"), "config": null})
    };
    // One in a folder, whose hash the server does not know yet.
    let inner = json!({"title": "sub/small.safetensors", "model_name": "sub_small", "hash": null, "sha256": null,
        "filename": "/models/Stable-diffusion/sub/small.safetensors", "config": null});
    // One that the server has hashed.
    let hashed = json!({"title": "sub/fine.safetensors [0123abcdef]", "model_name": "sub_fine", "hash": "0123abcdef",
        "sha256": "0123abcdef0456", "filename": "C:\\models\\sub\\fine.safetensors", "config": null});
    Json(json!([model("tiny"), model("large"), inner, hashed]))
}

async fn interrupt(State(world): State<Arc<World>>) -> Json<Value> {
    world.stop("interrupt");
    Json(Value::Null)
}

async fn fake() -> Fake {
    Fake::start(ImageServerKind::Automatic1111, routes).await
}

#[tokio::test]
async fn a_picture_is_drawn_as_asked_with_progress() {
    let fake = fake().await;
    fake.world.hold(true);
    let world = fake.world.clone();
    tokio::spawn(async move {
        world.until(|world| lock(&world.requests).iter().filter(|(path, _)| path == "progress").count() >= 2).await;
        world.hold(false);
    });
    let (picture, seen) = fake.draw(&request()).await;
    assert_eq!(picture.unwrap().width(), 8);
    let last = seen.last().expect("progress was reported");
    assert_eq!((last.step, last.steps, last.preview.is_some()), (2, 4, true));
    let sent = fake.world.sent("txt2img");
    assert_eq!(sent["prompt"], PROMPT);
    assert_eq!((&sent["width"], &sent["seed"], &sent["sampler_name"]), (&json!(96), &json!(77), &json!("euler")));
    assert_eq!(sent["override_settings"]["sd_model_checkpoint"], "tiny.safetensors");
    assert_eq!(lock(&fake.world.authorization).as_deref(), Some("Basic dXNlcjpzay1odXNo"));
    assert_eq!(fake.model.check().await.unwrap(), "tiny [abc]");
}

#[tokio::test]
async fn a_model_that_the_server_does_not_have_is_told_with_those_that_it_has() {
    let mut fake = fake().await;
    let plain = ["large", "large.safetensors", "large.safetensors [abc]", "large [abc]", "abc", ""];
    let inner = ["sub_small", "sub/small.safetensors", "small"];
    let hashed =
        ["sub/fine.safetensors [0123abcdef]", "sub/fine.safetensors", "fine [0123abcdef]", "fine", "0123abcdef0456"];
    for name in plain.into_iter().chain(inner).chain(hashed) {
        fake.config.model = name.into();
        assert_eq!(connect(fake.config.clone()).unwrap().check().await.unwrap(), "tiny [abc]", "{name}");
    }
    // The server would draw with another one in the place of a file that is named without its folder.
    for name in ["huge", "small.safetensors", "fine.safetensors"] {
        fake.config.model = name.into();
        let error = connect(fake.config.clone()).unwrap().check().await.unwrap_err().to_string();
        let listed = format!("no model {name} (images.model); it has tiny, large, sub_small, sub_fine");
        assert!(error.contains(&listed), "{error}");
    }
}

#[tokio::test]
async fn a_picture_can_start_from_another() {
    let fake = fake().await;
    fake.draw(&with_reference()).await.0.unwrap();
    let sent = fake.world.sent("img2img");
    assert_eq!((&sent["denoising_strength"], &sent["init_images"][0]), (&json!(0.25), &json!(STANDARD.encode(png()))));
}

#[tokio::test]
async fn a_picture_is_enlarged_by_the_upscaler_that_is_configured() {
    let mut fake = fake().await;
    assert!(fake.model.limits().upscales);
    assert_eq!(fake.enlarge(&larger()).await.unwrap().width(), 16);
    let sent = fake.world.sent("extra");
    assert_eq!((&sent["upscaler_1"], &sent["upscaling_resize"]), (&json!("R-ESRGAN 4x+"), &json!(2)));
    fake.config.upscaler = Some("no such upscaler".into());
    fake.model = connect(fake.config.clone()).unwrap();
    let error = fake.enlarge(&larger()).await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("AssertionError"), "{error}");
}

#[tokio::test]
async fn cancelling_interrupts_the_server() {
    let fake = fake().await;
    let begun = |world: &World| lock(&world.requests).iter().any(|(path, _)| path == "txt2img");
    assert_eq!(fake.cancel_amid(begun).await, Err(ImageError::Cancelled));
    assert_eq!(*lock(&fake.world.stopped), ["interrupt"]);
}

/// Counts the looks at the progress.
fn looks(world: &World) -> usize {
    lock(&world.requests).iter().filter(|(path, _)| path == "progress").count()
}

#[tokio::test]
async fn the_steps_and_the_preview_of_a_strangers_picture_are_not_shown() {
    let fake = fake().await;
    *lock(&fake.world.is_busy) = true;
    fake.world.hold(true);
    let world = fake.world.clone();
    tokio::spawn(async move {
        world.until(|world| looks(world) >= 2).await;
        world.hold(false);
    });
    let (picture, seen) = fake.draw(&request()).await;
    picture.unwrap();
    assert_eq!(seen, [], "the server drew a stranger's picture");
}

#[tokio::test]
async fn cancelling_does_not_stop_a_strangers_picture() {
    let fake = fake().await;
    *lock(&fake.world.is_busy) = true;
    let begun = |world: &World| looks(world) >= 1;
    assert_eq!(fake.cancel_amid(begun).await, Err(ImageError::Cancelled));
    assert_eq!(*lock(&fake.world.stopped), Vec::<String>::new());
}

#[tokio::test]
async fn each_request_has_an_id_of_its_own() {
    let fake = fake().await;
    fake.draw(&request()).await.0.unwrap();
    fake.draw(&request()).await.0.unwrap();
    let ids: Vec<Value> = lock(&fake.world.requests)
        .iter()
        .filter(|(path, _)| path == "txt2img")
        .map(|(_, body)| body["force_task_id"].clone())
        .collect();
    assert!(ids.len() == 2 && ids[0].is_string() && ids[0] != ids[1], "{ids:?}");
}

#[tokio::test]
async fn an_error_says_whether_a_retry_helps_and_repeats_no_prompt() {
    #[track_caller]
    fn check(error: &ImageError, is_transient: bool, part: &str) {
        let text = error.to_string();
        assert_eq!(error.is_transient(), is_transient, "{text}");
        assert!(text.contains(part), "{text}");
        assert!(!text.contains("lighthouse") && !text.contains("sk-hush"), "{text}");
    }
    let fake = fake().await;
    fake.world
        .fail(500, &json!({"error": "OutOfMemoryError", "detail": "", "errors": "CUDA out of memory"}).to_string());
    check(&fake.draw(&request()).await.0.unwrap_err(), true, "OutOfMemoryError");
    fake.world.fail(500, &json!({"detail": format!("bad prompt: {PROMPT}")}).to_string());
    check(&fake.draw(&request()).await.0.unwrap_err(), true, "status 500");
    fake.world.fail(401, &json!({"detail": "Incorrect username or password"}).to_string());
    check(&fake.draw(&request()).await.0.unwrap_err(), false, "AZERA__IMAGES__KEY");
    fake.world.fail(422, &json!({"detail": [{"msg": "value is not a valid integer"}]}).to_string());
    check(&fake.draw(&request()).await.0.unwrap_err(), false, "not a valid integer");
    fake.world.fail(200, "{\"images\": []}");
    check(&fake.draw(&request()).await.0.unwrap_err(), false, "no picture");
    fake.world.fail(200, "<html>");
    check(&fake.draw(&request()).await.0.unwrap_err(), false, "check images.kind");
    fake.world.fail(302, "");
    check(&fake.draw(&request()).await.0.unwrap_err(), false, "points elsewhere");
}

#[tokio::test]
async fn a_server_that_keeps_failing_is_left_alone() {
    let fake = fake().await;
    fake.world.fail(503, "");
    for _ in 0..5 {
        fake.draw(&request()).await.0.unwrap_err();
    }
    let sent = lock(&fake.world.requests).len();
    let error = fake.draw(&request()).await.0.unwrap_err();
    assert!(matches!(error, ImageError::Unavailable { retry_in: Some(_), outage: Outage::Away, .. }), "{error}");
    assert_eq!(lock(&fake.world.requests).len(), sent, "nothing was sent");
}

#[tokio::test]
async fn requests_choose_from_what_the_server_has_and_the_configuration_allows() {
    let mut fake = fake().await;
    // Another model than that of the operator is nobody's choice until the operator says so.
    let wanted = ImageRequest { model: Some("large".into()), ..request() };
    let refused = fake.draw(&wanted).await.0.unwrap_err();
    assert!(matches!(&refused, ImageError::Refused(why) if why.contains("nobody choose the model large")), "{refused}");
    assert!(lock(&fake.world.requests).is_empty(), "the server is not asked");
    assert_eq!(fake.model.offer().await.unwrap().models, ["tiny.safetensors"]);
    fake.config.models = vec!["*".into()];
    fake.model = connect(fake.config.clone()).unwrap();
    let offer = fake.model.offer().await.unwrap();
    assert_eq!(offer.models, ["tiny", "large", "sub_small", "sub_fine"]);
    assert_eq!(offer.samplers, ["Euler a", "DPM++ 2M"]);
    assert_eq!(offer.sampler_aliases, ["k_euler_a", "k_dpmpp_2m"]);
    let wanted = ImageRequest { model: Some("large".into()), sampler: Some("DPM++ 2M".into()), ..request() };
    fake.draw(&wanted).await.0.unwrap();
    let sent = fake.world.sent("txt2img");
    assert_eq!(sent["override_settings"], json!({"sd_model_checkpoint": "large"}));
    assert_eq!(sent["sampler_name"], "DPM++ 2M");
    // The configured names may be any that the server goes by. The usual model stays a choice.
    fake.config.model = "tiny".into();
    fake.config.models = ["large [abc]", "gone", "tiny"].map(str::to_owned).to_vec();
    fake.model = connect(fake.config.clone()).unwrap();
    assert_eq!(fake.model.offer().await.unwrap().models, ["tiny", "large [abc]"]);
}
