//! ComfyUI: a workflow goes to `/prompt`, a WebSocket brings steps and previews, `/history` says when it is done, and
//! `/view` gives the picture. Without the WebSocket, only the steps are missing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use azera_model_image::{
    DrawnImage, ImageError, ImageLimits, ImageModel, ImageOffer, ImageRequest, Outage, ProgressSender, Reference,
    UpscaleRequest,
};
use futures::StreamExt;
use reqwest::multipart::{Form, Part};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tokio_rustls::rustls::ClientConfig;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_util::sync::CancellationToken;

use crate::config::ImageServerConfig;
use crate::server::{MAX_PICTURE_BYTES, MAX_PREVIEW_BYTES, MAX_WORDS, Server};
use crate::socket::{self, Socket};
use crate::workflow::{filled, inputs_of, plain, takes_reference};

/// Bytes before the picture of a binary message: its kind and its format.
const PREVIEW_HEAD: usize = 8;

/// The kind of a binary message with a preview.
const PREVIEW_KIND: &[u8] = &[0, 0, 0, 1];

/// The share of an enlarged picture that a workflow may redraw, as `{strength}`. More would change what it shows.
const UPSCALE_STRENGTH: f32 = 0.25;

/// The most questions about one picture in a row that the server may fail to answer.
const MAX_FAILED_QUESTIONS: u32 = 5;

/// Numbers the requests of this process.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// A server of this kind.
pub(crate) struct ComfyUi {
    server: Server,
    limits: ImageLimits,
    /// The certificates to trust.
    trusted: Option<Arc<ClientConfig>>,
}

#[derive(Deserialize)]
struct Accepted {
    prompt_id: String,
}

#[derive(Deserialize)]
struct Uploaded {
    name: String,
}

/// What `/history` says about one request.
#[derive(Deserialize)]
struct Finished {
    #[serde(default)]
    outputs: HashMap<String, Output>,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    status_str: String,
    /// What happened: pairs of a kind and its fields.
    messages: Vec<Value>,
}

#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    images: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    filename: String,
    #[serde(default)]
    subfolder: String,
    #[serde(default, rename = "type")]
    kind: String,
}

impl ComfyUi {
    pub(crate) fn new(config: ImageServerConfig) -> Result<Self, ImageError> {
        if config.workflow.is_none() && config.model.trim().is_empty() {
            let why = "images.model must name the checkpoint for ComfyUI, such as sdxl.safetensors";
            return Err(ImageError::Configuration(why.into()));
        }
        let own = config.workflow.as_ref();
        let upscales = config.upscale_workflow.as_ref().is_some_and(takes_reference);
        if config.upscale_workflow.is_some() && !upscales {
            let why = "the workflow of images.upscale_workflow does not name {reference}, the picture to enlarge";
            return Err(ImageError::Configuration(why.into()));
        }
        let limits =
            ImageLimits { takes_reference: own.is_none_or(takes_reference), upscales, ..config.limits.clone() };
        Ok(Self { server: Server::new(config)?, limits, trusted: socket::trusted() })
    }

    /// Opens the connection for progress; `None` if that is not possible, because the picture comes without it, too.
    async fn listen(&self, client: &str) -> Option<Socket> {
        let mut url = self.server.base().join("ws").ok()?;
        url.query_pairs_mut().append_pair("clientId", client);
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MAX_PREVIEW_BYTES))
            .max_frame_size(Some(MAX_PREVIEW_BYTES));
        let opening = socket::open(url, self.server.config().key.as_ref(), limits, self.trusted.clone());
        let opened = timeout(self.server.timeouts().connect, opening).await.ok().flatten();
        if opened.is_none() {
            tracing::debug!("ComfyUI reports no progress");
        }
        opened
    }

    async fn upload(&self, png: &[u8], client: &str) -> Result<String, ImageError> {
        let name = format!("{client}.png");
        let file = Part::bytes(png.to_vec())
            .file_name(name)
            .mime_str("image/png")
            .map_err(|error| self.server.network(error))?;
        let form = Form::new().part("image", file).text("type", "temp").text("overwrite", "true");
        let post = self.server.request(reqwest::Method::POST, "upload/image").multipart(form);
        let uploaded: Uploaded = self.server.ask(post, self.server.timeouts().about, "").await?;
        Ok(format!("{} [temp]", uploaded.name))
    }

    /// Returns the workflow of a request to draw.
    fn workflow(&self, request: &ImageRequest) -> Value {
        let own = self.server.config().workflow.clone();
        own.unwrap_or_else(|| plain(request.reference.is_some()))
    }

    /// Asks what the inputs of the workflow accept in which this placeholder stands. A value that not all of them accept
    /// cannot be chosen. `None` if there are such inputs, and none of them lists its values.
    async fn accepted(&self, workflow: &Value, placeholder: &str) -> Result<Option<Vec<String>>, ImageError> {
        let inputs = inputs_of(workflow, placeholder);
        if inputs.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let mut accepted: Option<Vec<String>> = None;
        for (class, input) in inputs {
            // A name becomes a part of a path.
            if class.is_empty() || class.contains(['/', '?', '#', '%', '\\']) {
                continue;
            }
            let about = self.server.get(&format!("object_info/{class}"));
            let about: Value = self.server.ask(about, self.server.timeouts().about, "").await?;
            let Some(values) = values_of(&about[&class]["input"], &input) else { continue };
            accepted = Some(match accepted {
                None => values,
                Some(before) => before.into_iter().filter(|name| values.contains(name)).collect(),
            });
        }
        Ok(accepted)
    }

    async fn submit(&self, request: &ImageRequest, workflow: &Value, client: &str) -> Result<String, ImageError> {
        let reference = match &request.reference {
            Some(reference) => Some(self.upload(&reference.png, client).await?),
            None => None,
        };
        let nodes = filled(workflow, request, self.server.model_of(request), reference.as_deref());
        let post = self.server.post("prompt", &json!({ "prompt": nodes, "client_id": client }));
        let accepted: Accepted = self.server.ask(post, self.server.timeouts().about, &request.prompt).await?;
        let is_id =
            |id: &str| !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !is_id(&accepted.prompt_id) {
            return Err(self.server.protocol("the id of the request is malformed"));
        }
        Ok(accepted.prompt_id)
    }

    async fn draw(
        &self,
        request: &ImageRequest,
        workflow: &Value,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        let client = format!("azera-{}-{}", std::process::id(), REQUESTS.fetch_add(1, Ordering::Relaxed));
        let mut socket = self.listen(&client).await;
        let id = self.submit(request, workflow, &client).await?;
        let end = Instant::now() + self.server.timeouts().picture;
        let mut failed = 0;
        let finished = loop {
            tokio::select! {
                biased;
                () = cancelled.cancelled() => {
                    self.stop(&id).await;
                    return Err(ImageError::Cancelled);
                }
                () = tokio::time::sleep_until(end) => {
                    self.stop(&id).await;
                    return Err(self.server.silent(self.server.timeouts().picture));
                }
                message = next(&mut socket) => {
                    self.hear(message, progress)?;
                    continue;
                }
                () = tokio::time::sleep(self.server.timeouts().poll) => {}
            }
            match self.finished(&id).await {
                Ok(Some(finished)) => break finished,
                Ok(None) => failed = 0,
                // A busy server may still draw.
                Err(error) if error.is_transient() && failed < MAX_FAILED_QUESTIONS => {
                    failed += 1;
                    tracing::debug!(%error, "cannot ask how far a picture is");
                }
                Err(error) => {
                    self.stop(&id).await;
                    return Err(error);
                }
            }
        };
        let file = self.file_of(finished, &request.prompt)?;
        let view = self.server.get("view").query(&[
            ("filename", file.filename.as_str()),
            ("subfolder", file.subfolder.as_str()),
            ("type", file.kind.as_str()),
        ]);
        let wait = self.server.timeouts().about;
        let response = self.server.send(view, wait, "").await?;
        let bytes = self.server.read(response, MAX_PICTURE_BYTES, wait).await?;
        Ok(DrawnImage { bytes, seed: Some(request.seed), model: self.server.model_of(request).to_owned() })
    }

    /// Takes a message of the connection: a preview, or how many steps are done.
    fn hear(&self, message: Message, progress: &ProgressSender) -> Result<(), ImageError> {
        match message {
            Message::Binary(bytes) if bytes.starts_with(PREVIEW_KIND) => {
                let preview = bytes.get(PREVIEW_HEAD..).map(<[u8]>::to_vec);
                progress.send_modify(|progress| progress.preview = preview);
            }
            Message::Text(text) => {
                let Ok(value) = serde_json::from_str::<Value>(&text) else { return Ok(()) };
                let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
                match value["type"].as_str() {
                    Some("progress") => {
                        let (step, steps) = (number(&value["data"]["value"]), number(&value["data"]["max"]));
                        progress
                            .send_modify(|progress| (progress.ahead, progress.step, progress.steps) = (0, step, steps));
                    }
                    Some("status") => {
                        let waiting = number(&value["data"]["status"]["exec_info"]["queue_remaining"]);
                        progress.send_modify(|progress| progress.ahead = waiting.saturating_sub(1) as usize);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns how a request ended, if it is over.
    async fn finished(&self, id: &str) -> Result<Option<Finished>, ImageError> {
        let history = self.server.get(&format!("history/{id}"));
        let mut history: HashMap<String, Finished> = self.server.ask(history, self.server.timeouts().about, "").await?;
        Ok(history.remove(id))
    }

    /// Returns the picture of a request that is over.
    fn file_of(&self, finished: Finished, private: &str) -> Result<File, ImageError> {
        if finished.status.status_str == "error" {
            return Err(self.failure(&finished.status, private));
        }
        let file = finished.outputs.into_values().find_map(|output| output.images.into_iter().next());
        file.ok_or_else(|| self.server.protocol("the workflow gave no picture"))
    }

    /// Returns why a workflow failed, in the server's own words unless they repeat what must not be shown.
    fn failure(&self, status: &Status, private: &str) -> ImageError {
        let error = status.messages.iter().find(|message| message[0] == "execution_error").map(|message| &message[1]);
        let field = |name: &str| error.and_then(|fields| fields[name].as_str()).unwrap_or_default().trim();
        let said = [field("node_type"), field("exception_type"), field("exception_message")];
        let said = said.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
        let said: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_WORDS).collect();
        let outage = Outage::of_words(&said);
        let said =
            if said.is_empty() || !self.server.is_safe(&said, private) { String::new() } else { format!(": {said}") };
        ImageError::outage(outage, format!("{} could not run the workflow{said}", self.server.name()))
    }

    /// Stops a request: one that waits leaves the queue, and one that is being drawn is interrupted.
    async fn stop(&self, id: &str) {
        let wait = self.server.timeouts().about;
        for (path, body) in [("queue", json!({"delete": [id]})), ("interrupt", json!({"prompt_id": id}))] {
            if let Err(error) = self.server.send(self.server.post(path, &body), wait, "").await {
                tracing::warn!(%error, "cannot stop a picture on its server");
            }
        }
    }
}

/// Returns the values that an input of a node accepts; `None` if it takes more than the values of a list.
fn values_of(inputs: &Value, input: &str) -> Option<Vec<String>> {
    let kind = ["required", "optional"].into_iter().find_map(|group| inputs[group].get(input))?;
    // Newer nodes list the values behind the name of the kind.
    let values = if kind[0].is_array() { &kind[0] } else { &kind[1]["options"] };
    Some(values.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Returns the next message of the connection; waits forever once there is none.
async fn next(socket: &mut Option<Socket>) -> Message {
    loop {
        let Some(open) = socket else { return std::future::pending().await };
        match open.next().await {
            Some(Ok(message)) => return message,
            _ => *socket = None,
        }
    }
}

#[async_trait]
impl ImageModel for ComfyUi {
    fn name(&self) -> &str {
        self.server.name()
    }

    fn title(&self) -> &str {
        self.server.config().kind.title()
    }

    fn limits(&self) -> &ImageLimits {
        &self.limits
    }

    async fn offer(&self) -> Result<ImageOffer, ImageError> {
        let own = self.server.config().workflow.clone();
        let workflow = own.unwrap_or_else(|| plain(false));
        let models = self.accepted(&workflow, "{model}").await?;
        let samplers = self.accepted(&workflow, "{sampler}").await?;
        Ok(ImageOffer {
            takes_any_model: models.is_none() && self.server.permits_all(),
            models: match models {
                Some(models) => self.server.choice(models.into_iter().map(|name| vec![name]).collect()),
                None => self.server.allowed(),
            },
            takes_any_sampler: samplers.is_none(),
            samplers: samplers.unwrap_or_default(),
            ..ImageOffer::default()
        })
    }

    async fn generate(
        &self,
        request: &ImageRequest,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        self.server.check_choice(request)?;
        let request = self.limits.fit(request);
        self.server.guarded(self.draw(&request, &self.workflow(&request), progress, cancelled)).await
    }

    async fn upscale(
        &self,
        request: &UpscaleRequest,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        let Some(workflow) = &self.server.config().upscale_workflow else {
            return Err(ImageError::Refused(format!("{} has no workflow that enlarges pictures", self.title())));
        };
        let reference = Some(Reference { png: request.png.clone(), strength: UPSCALE_STRENGTH });
        let request = ImageRequest { size: request.size, reference, ..request.drawn_by.clone() };
        self.server.guarded(self.draw(&request, workflow, progress, cancelled)).await
    }

    async fn check(&self) -> Result<String, ImageError> {
        let stats: Value = self.server.ask(self.server.get("system_stats"), self.server.timeouts().about, "").await?;
        let version = stats["system"]["comfyui_version"].as_str().unwrap_or("of unknown version");
        Ok(format!("ComfyUI {version}"))
    }
}
