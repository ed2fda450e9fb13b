use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Multipart, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use azera_model_image::{ImageError, ImageOffer, ImageRequest, Outage};
use azera_model_image_servers::{ImageServerKind, connect};
use serde_json::{Value, json};

use crate::fake::{Fake, PROMPT, World, larger, lock, png, request, with_reference};

const ID: &str = "6f962d0e-40d9-45e8-b378-7247258cadde";

fn routes(world: Arc<World>) -> Router {
    Router::new()
        .route("/prompt", post(prompt))
        .route("/ws", get(socket))
        .route("/history/{id}", get(history))
        .route("/view", get(view))
        .route("/upload/image", post(upload))
        .route(
            "/queue",
            post(|State(world): State<Arc<World>>, Json(body): Json<Value>| async move {
                world.stop(&format!("queue {body}"));
            }),
        )
        .route(
            "/interrupt",
            post(|State(world): State<Arc<World>>, Json(body): Json<Value>| async move {
                world.stop(&format!("interrupt {body}"));
            }),
        )
        .route("/object_info/{class}", get(about))
        .route("/system_stats", get(|| async { Json(json!({"system": {"comfyui_version": "0.4.0"}})) }))
        .with_state(world)
}

/// Describes the inputs of a node, as older and newer servers do.
async fn about(Path(class): Path<String>) -> Json<Value> {
    let inputs = match class.as_str() {
        "CheckpointLoaderSimple" => json!({"ckpt_name": [["tiny.safetensors", "large.safetensors"], {"tooltip": "x"}]}),
        "KSampler" => {
            json!({"sampler_name": ["COMBO", {"options": ["euler", "heun"]}], "cfg": ["FLOAT", {"min": 0.0}]})
        }
        "OtherSampler" => json!({"sampler_name": [["heun", "ddim"]], "cfg": ["FLOAT", {}]}),
        _ => return Json(json!({})),
    };
    Json(json!({ class: {"input": {"required": inputs}, "output": []} }))
}

/// Checks that every input that links to a node names one.
fn is_graph(nodes: &Value) -> bool {
    let Some(all) = nodes.as_object() else { return false };
    all.values().all(|node| {
        let inputs = node["inputs"].as_object();
        let links = inputs.into_iter().flat_map(|inputs| inputs.values()).filter_map(|input| input[0].as_str());
        node["class_type"].is_string() && links.into_iter().all(|link| all.contains_key(link))
    })
}

async fn prompt(State(world): State<Arc<World>>, Json(body): Json<Value>) -> Response {
    world.note("prompt", &body);
    if let Some((status, body)) = world.fails() {
        return (status, body).into_response();
    }
    if !is_graph(&body["prompt"]) || !body["client_id"].is_string() {
        let error = json!({"error": {"type": "invalid_prompt", "message": "Cannot execute"}, "node_errors": {}});
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    }
    Json(json!({"prompt_id": ID, "number": 1, "node_errors": {}})).into_response()
}

async fn socket(
    State(world): State<Arc<World>>,
    Query(query): Query<HashMap<String, String>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    assert!(query.contains_key("clientId"));
    upgrade.on_upgrade(|socket| report(world, socket))
}

async fn report(world: Arc<World>, mut socket: WebSocket) {
    let status = json!({"type": "status", "data": {"status": {"exec_info": {"queue_remaining": 3}}}});
    socket.send(Message::text(status.to_string())).await.ok();
    world.until(|world| lock(&world.requests).iter().any(|(path, _)| path == "prompt")).await;
    let step = json!({"type": "progress", "data": {"value": 2, "max": 4, "prompt_id": ID, "node": "sampler"}});
    socket.send(Message::text(step.to_string())).await.ok();
    let preview = [&[0, 0, 0, 1, 0, 0, 0, 2], png().as_slice()].concat();
    socket.send(Message::binary(preview)).await.ok();
    world.note("reported", &Value::Null);
    // The connection breaks off before the picture is done, as it may.
}

async fn history(State(world): State<Arc<World>>, Path(id): Path<String>) -> Response {
    assert_eq!(id, ID);
    let mut failures = lock(&world.failing_questions);
    if *failures > 0 {
        *failures -= 1;
        return StatusCode::BAD_GATEWAY.into_response();
    }
    drop(failures);
    ended(&world).into_response()
}

fn ended(world: &World) -> Json<Value> {
    let failed = lock(&world.failure).clone().filter(|(status, _)| *status == 0);
    if *lock(&world.held) {
        world.note("asked", &Value::Null);
        return Json(json!({}));
    }
    if let Some((_, why)) = failed {
        let error: Value = serde_json::from_str(&why).unwrap_or_default();
        let messages = json!([["execution_start", {"prompt_id": ID}], ["execution_error", error]]);
        let status = json!({"status_str": "error", "completed": false, "messages": messages});
        return Json(json!({ID: {"outputs": {}, "status": status}}));
    }
    let image = json!({"filename": "x_00001_.png", "subfolder": "", "type": "temp"});
    Json(
        json!({ID: {"outputs": {"saved": {"images": [image]}}, "status": {"status_str": "success", "completed": true}}}),
    )
}

async fn view(Query(query): Query<HashMap<String, String>>) -> Response {
    match (query["filename"].as_str(), query["type"].as_str()) {
        ("x_00001_.png", "temp") => png().into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn upload(State(world): State<Arc<World>>, mut form: Multipart) -> Json<Value> {
    let mut fields = serde_json::Map::new();
    while let Some(field) = form.next_field().await.unwrap() {
        let name = field.name().unwrap().to_owned();
        fields.insert(name, json!(field.bytes().await.unwrap().len()));
    }
    world.note("upload", &Value::Object(fields));
    Json(json!({"name": "up.png", "subfolder": "", "type": "temp"}))
}

async fn fake() -> Fake {
    Fake::start(ImageServerKind::ComfyUi, routes).await
}

#[tokio::test]
async fn a_picture_is_drawn_with_steps_and_previews_though_the_connection_breaks_off() {
    let fake = fake().await;
    fake.world.hold(true);
    let world = fake.world.clone();
    tokio::spawn(async move {
        world
            .until(|world| {
                let requests = lock(&world.requests);
                let reported = requests.iter().position(|(path, _)| path == "reported");
                reported.is_some_and(|at| requests.iter().skip(at).filter(|(path, _)| path == "asked").count() >= 3)
            })
            .await;
        world.hold(false);
    });
    let (picture, seen) = fake.draw(&request()).await;
    assert_eq!(picture.unwrap().width(), 8);
    let last = seen.last().expect("progress was reported");
    assert_eq!((last.step, last.steps, last.preview.as_deref()), (2, 4, Some(png().as_slice())));
    let sent = fake.world.sent("prompt");
    assert_eq!(sent["prompt"]["positive"]["inputs"]["text"], PROMPT);
    assert_eq!(sent["prompt"]["sampler"]["inputs"]["seed"], json!(77));
    assert_eq!(sent["prompt"]["model"]["inputs"]["ckpt_name"], "tiny.safetensors");
    assert_eq!(fake.model.check().await.unwrap(), "ComfyUI 0.4.0");
}

#[tokio::test]
async fn a_picture_can_start_from_another() {
    let fake = fake().await;
    fake.draw(&with_reference()).await.0.unwrap();
    assert_eq!(fake.world.sent("upload")["image"], json!(png().len()));
    let sent = fake.world.sent("prompt");
    assert_eq!(sent["prompt"]["picture"]["inputs"]["image"], "up.png [temp]");
    assert_eq!(sent["prompt"]["sampler"]["inputs"]["denoise"], json!(0.25));
}

#[tokio::test]
async fn cancelling_stops_this_request_alone() {
    let fake = fake().await;
    let begun = |world: &World| lock(&world.requests).iter().any(|(path, _)| path == "asked");
    assert_eq!(fake.cancel_amid(begun).await, Err(ImageError::Cancelled));
    let (queue, interrupt) = (json!({"delete": [ID]}), json!({"prompt_id": ID}));
    assert_eq!(*lock(&fake.world.stopped), [format!("queue {queue}"), format!("interrupt {interrupt}")]);
}

#[tokio::test]
async fn a_picture_survives_a_server_that_is_busy_for_a_moment() {
    let fake = fake().await;
    *lock(&fake.world.failing_questions) = 3;
    assert_eq!(fake.draw(&request()).await.0.unwrap().width(), 8);
    // A server that stays away is told to stop, and the picture is tried again later.
    *lock(&fake.world.failing_questions) = 1_000;
    assert!(fake.draw(&request()).await.0.unwrap_err().is_transient());
    assert_eq!(lock(&fake.world.stopped).len(), 2);
}

#[tokio::test]
async fn an_own_workflow_takes_the_place_of_the_plain_one() {
    let fake = fake().await;
    let mut config = fake.config.clone();
    config.workflow =
        Some(json!({"only": {"class_type": "Draw", "inputs": {"text": "style, {prompt}", "n": "{steps}"}}}));
    let model = connect(config).unwrap();
    assert!(!model.limits().takes_reference, "it has no place for a picture");
    let (progress, _seen) = tokio::sync::watch::channel(Default::default());
    model.generate(&with_reference(), &progress, &Default::default()).await.unwrap();
    let sent = fake.world.sent("prompt");
    assert_eq!(sent["prompt"]["only"]["inputs"], json!({"text": format!("style, {PROMPT}"), "n": 4}));
}

#[tokio::test]
async fn a_picture_is_enlarged_only_by_a_workflow_for_that() {
    let mut fake = fake().await;
    assert!(!fake.model.limits().upscales);
    assert!(matches!(fake.enlarge(&larger()).await, Err(ImageError::Refused(_))));
    let mut config = fake.config.clone();
    config.upscale_workflow = Some(json!({"only": {"class_type": "Draw", "inputs": {"text": "{prompt}"}}}));
    assert!(matches!(connect(config.clone()), Err(ImageError::Configuration(why)) if why.contains("{reference}")));
    let inputs = json!({"image": "{reference}", "width": "{width}", "amount": "{strength}"});
    config.upscale_workflow = Some(json!({"larger": {"class_type": "Upscale", "inputs": inputs}}));
    fake.model = connect(config).unwrap();
    assert!(fake.model.limits().upscales);
    fake.enlarge(&larger()).await.unwrap();
    let sent = fake.world.sent("prompt")["prompt"]["larger"]["inputs"].clone();
    assert_eq!((&sent["width"], &sent["amount"]), (&json!(16), &json!(0.25)));
    assert!(sent["image"].as_str().unwrap().ends_with("[temp]"), "{sent}");
}

#[tokio::test]
async fn a_failed_workflow_is_an_error() {
    let fake = fake().await;
    fake.world.fail(400, &json!({"error": {"message": "Prompt outputs failed validation"}}).to_string());
    assert!(
        matches!(fake.draw(&request()).await.0, Err(ImageError::Refused(why)) if why.contains("failed validation"))
    );
    *lock(&fake.world.failure) = None;
    let broken = Fake::start(ImageServerKind::ComfyUi, |world| {
        Router::new()
            .route("/prompt", post(|| async { Json(json!({"prompt_id": ID})) }))
            .route("/history/{id}", get(history))
            .with_state(world)
    })
    .await;
    broken.world.fail(0, "");
    assert!(broken.draw(&request()).await.0.unwrap_err().is_transient());
}

#[tokio::test]
async fn a_workflow_that_fails_says_why_without_the_prompt() {
    let fake = fake().await;
    let failing = |kind: &str, message: &str| {
        let error = json!({"prompt_id": ID, "node_id": "3", "node_type": "KSampler", "exception_type": kind,
            "exception_message": message, "traceback": ["a", "b"]});
        fake.world.fail(0, &error.to_string());
    };
    failing("ValueError", "no such\nsampler");
    let error = fake.draw(&request()).await.0.unwrap_err();
    assert!(error.to_string().contains("KSampler: ValueError: no such sampler"), "{error}");
    failing("torch.cuda.OutOfMemoryError", "Allocation on device");
    let error = fake.draw(&request()).await.0.unwrap_err();
    assert!(matches!(error, ImageError::Unavailable { outage: Outage::OutOfMemory, .. }), "{error:?}");
    failing("ValueError", &format!("cannot encode {PROMPT}"));
    let error = fake.draw(&request()).await.0.unwrap_err();
    assert!(error.to_string().ends_with("could not run the workflow"), "{error}");
}

#[tokio::test]
async fn requests_choose_what_the_nodes_of_the_workflow_accept() {
    let mut fake = fake().await;
    assert_eq!(fake.model.offer().await.unwrap().models, ["tiny.safetensors"]);
    fake.config.models = vec!["*".into()];
    fake.model = connect(fake.config.clone()).unwrap();
    let offer = fake.model.offer().await.unwrap();
    assert_eq!(offer.models, ["tiny.safetensors", "large.safetensors"]);
    assert_eq!(offer.samplers, ["euler", "heun"]);
    let wanted = ImageRequest { model: Some("large.safetensors".into()), sampler: Some("heun".into()), ..request() };
    fake.draw(&wanted).await.0.unwrap();
    let sent = fake.world.sent("prompt")["prompt"].clone();
    assert_eq!(sent["model"]["inputs"]["ckpt_name"], "large.safetensors");
    assert_eq!(sent["sampler"]["inputs"]["sampler_name"], "heun");
    // An own workflow has its own nodes: what all of them accept can be chosen, and nothing where it names a value itself.
    let node = |class: &str| json!({"class_type": class, "inputs": {"sampler_name": "{sampler}", "model": "own"}});
    fake.config.workflow = Some(json!({"1": node("KSampler"), "2": node("OtherSampler")}));
    fake.model = connect(fake.config.clone()).unwrap();
    let offer = fake.model.offer().await.unwrap();
    assert_eq!((offer.models.len(), offer.samplers), (0, vec!["heun".to_owned()]));
    assert!(!offer.takes_any_model && !offer.takes_any_sampler);
    // A node that lists nothing takes any name.
    let node = json!({"class_type": "OwnNode", "inputs": {"sampler_name": "{sampler}", "model": "{model}"}});
    fake.config.workflow = Some(json!({"1": node}));
    fake.model = connect(fake.config.clone()).unwrap();
    let offer = fake.model.offer().await.unwrap();
    assert!(offer.takes_any_model && offer.takes_any_sampler && offer.models == ["tiny.safetensors"], "{offer:?}");
    fake.config.models = vec!["large.safetensors".into()];
    fake.model = connect(fake.config.clone()).unwrap();
    let offer = fake.model.offer().await.unwrap();
    assert!(!offer.takes_any_model && offer.models == ["tiny.safetensors", "large.safetensors"], "{offer:?}");
    // A class is a part of an address.
    let node = json!({"class_type": "../queue", "inputs": {"sampler_name": "{sampler}"}});
    fake.config.workflow = Some(json!({"1": node}));
    fake.model = connect(fake.config.clone()).unwrap();
    let offer = fake.model.offer().await.unwrap();
    assert_eq!(offer, ImageOffer { takes_any_sampler: true, ..ImageOffer::default() });
}
