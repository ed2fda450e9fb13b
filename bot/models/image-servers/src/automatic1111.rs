//! AUTOMATIC1111's web UI and Forge: `/sdapi/v1`. The server draws one picture at a time and says how far it is when it
//! is asked.
//!
//! Other people may use the same server. `/sdapi/v1/progress` and `/sdapi/v1/interrupt` speak of whatever it draws, so
//! each request carries an id of its own, and `/internal/progress` says whether that one is being drawn. A server that
//! does not know the id shows no steps and is not interrupted: nobody sees or stops a stranger's picture.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use azera_model_image::{
    DrawnImage, ImageError, ImageLimits, ImageModel, ImageOffer, ImageProgress, ImageRequest, ProgressSender,
    UPSCALE_FACTOR, UpscaleRequest,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::config::ImageServerConfig;
use crate::server::{MAX_PREVIEW_BYTES, Server};

/// A server of this kind.
pub(crate) struct Automatic1111 {
    server: Server,
    limits: ImageLimits,
}

/// The upscaler of a server whose configuration names none. Every web UI knows it.
const UPSCALER: &str = "R-ESRGAN 4x+";

/// The answer to a request for pictures. Its `info` is JSON in a string.
#[derive(Deserialize)]
struct Answer {
    images: Vec<String>,
    #[serde(default)]
    info: String,
}

/// The answer to a request to draw a picture larger.
#[derive(Deserialize)]
struct Larger {
    image: String,
}

/// What `info` holds.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Info {
    seed: Option<i64>,
    sd_model_name: Option<String>,
}

/// Numbers the requests of this process.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// A request that the server draws, as it knows it.
struct Task {
    id: String,
    /// The steps that it takes, which the server does not tell.
    steps: u32,
}

/// How far a task is.
#[derive(Deserialize)]
struct TaskProgress {
    /// False while it waits behind others, and after its end.
    active: bool,
    /// From 0 to 1.
    progress: Option<f64>,
    live_preview: Option<String>,
}

/// A checkpoint of the server.
#[derive(Deserialize)]
struct Checkpoint {
    /// Its name, and its short hash in brackets behind it once the server knows that.
    title: String,
    #[serde(default)]
    model_name: String,
    /// The short hash.
    #[serde(default)]
    hash: Option<String>,
    #[serde(default)]
    sha256: Option<String>,
    /// The path of its file.
    #[serde(default)]
    filename: String,
}

impl Checkpoint {
    /// Returns the names by which a request may choose it, the one to list first. The server ignores any other name: that of
    /// a file without its folder, too.
    fn names(self) -> Vec<String> {
        let file = self.filename.rsplit(['/', '\\']).next().unwrap_or_default();
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_owned();
        let mut names = Vec::new();
        if let Some(hash) = self.hash.filter(|hash| !hash.is_empty()) {
            names.extend(self.title.strip_suffix(&format!(" [{hash}]")).map(str::to_owned));
            names.extend([format!("{stem} [{hash}]"), hash]);
        }
        names.extend(self.sha256);
        names.extend([self.title, stem]);
        names.retain(|name| !name.is_empty());
        names.insert(0, self.model_name);
        names
    }
}

/// A sampler of the server.
#[derive(Deserialize)]
struct Sampler {
    name: String,
    /// Other names that requests may use.
    #[serde(default)]
    aliases: Vec<String>,
}

#[derive(Deserialize)]
struct Options {
    sd_model_checkpoint: Option<String>,
}

impl Task {
    /// Returns a task with an id that no other request of any program has.
    fn of(request: &ImageRequest) -> Self {
        // Two programs that use one server must not count alike.
        let random = RandomState::new().build_hasher().finish();
        let number = REQUESTS.fetch_add(1, Ordering::Relaxed);
        let steps = match &request.reference {
            // The web UI draws only the last steps of a picture that starts from another one.
            Some(reference) => (reference.strength.min(0.999) * request.steps as f32) as u32 + 1,
            None => request.steps,
        };
        Self { id: format!("azera-{random:016x}-{number}"), steps }
    }
}

impl Automatic1111 {
    pub(crate) fn new(config: ImageServerConfig) -> Result<Self, ImageError> {
        let limits = ImageLimits { upscales: true, ..config.limits.clone() };
        Ok(Self { server: Server::new(config)?, limits })
    }

    fn body(&self, request: &ImageRequest, task: &Task) -> Value {
        let mut body = json!({
            "force_task_id": task.id,
            "prompt": request.prompt,
            "negative_prompt": request.negative,
            "width": request.size.width,
            "height": request.size.height,
            "steps": request.steps,
            "seed": request.seed,
            "cfg_scale": request.guidance,
            "batch_size": 1,
            "n_iter": 1,
            "send_images": true,
            "save_images": false,
            "do_not_save_samples": true,
            "do_not_save_grid": true,
        });
        if let Some(sampler) = &request.sampler {
            body["sampler_name"] = json!(sampler);
        }
        let model = self.server.model_of(request);
        if !model.is_empty() {
            body["override_settings"] = json!({ "sd_model_checkpoint": model });
        }
        if let Some(reference) = &request.reference {
            body["init_images"] = json!([STANDARD.encode(&reference.png)]);
            body["denoising_strength"] = json!(reference.strength);
        }
        body
    }

    /// Asks which checkpoints the server has, each by the names that a request may use.
    async fn checkpoints(&self) -> Result<Vec<Vec<String>>, ImageError> {
        let list = self.server.get("sdapi/v1/sd-models");
        let checkpoints: Vec<Checkpoint> = self.server.ask(list, self.server.timeouts().about, "").await?;
        Ok(checkpoints.into_iter().map(Checkpoint::names).collect())
    }

    /// Asks how far a task is; `None` while the server draws something else, or does not say.
    async fn progress_of(&self, task: &Task) -> Option<TaskProgress> {
        let look = self.server.post("internal/progress", &json!({ "id_task": task.id, "id_live_preview": -1 }));
        let seen = self.server.ask::<TaskProgress>(look, self.server.timeouts().about, "").await.ok()?;
        seen.active.then_some(seen)
    }

    /// Reports how far a task is. A failed look costs the progress, not the picture.
    async fn look(&self, task: &Task, progress: &ProgressSender) {
        let Some(seen) = self.progress_of(task).await else { return };
        let preview = seen.live_preview.and_then(|preview| self.server.base64(&preview).ok());
        let share = seen.progress.unwrap_or_default().clamp(0.0, 1.0);
        progress.send_replace(ImageProgress {
            ahead: 0,
            loading: None,
            step: (share * f64::from(task.steps)).round() as u32,
            steps: task.steps,
            preview: preview.filter(|preview| preview.len() <= MAX_PREVIEW_BYTES),
        });
    }

    /// Stops a task, if the server draws it now. A task in the server's queue cannot be taken out of it.
    async fn interrupt(&self, task: &Task) {
        if self.progress_of(task).await.is_none() {
            tracing::debug!("the server draws something else, or does not say; it is not interrupted");
            return;
        }
        let interrupt = self.server.request(reqwest::Method::POST, "sdapi/v1/interrupt");
        if let Err(error) = self.server.send(interrupt, self.server.timeouts().about, "").await {
            tracing::warn!(%error, "cannot stop a picture on its server");
        }
    }

    /// Waits for an answer, reports progress meanwhile, and stops the server when the picture is cancelled.
    async fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, ImageError>>,
        task: &Task,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<T, ImageError> {
        let mut answer = pin!(answer);
        loop {
            let look = async {
                tokio::time::sleep(self.server.timeouts().poll).await;
                self.look(task, progress).await;
            };
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                () = cancelled.cancelled() => {
                    self.interrupt(task).await;
                    return Err(ImageError::Cancelled);
                }
                () = look => {}
            }
        }
    }

    async fn draw(
        &self,
        request: &ImageRequest,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        let path = if request.reference.is_some() { "sdapi/v1/img2img" } else { "sdapi/v1/txt2img" };
        let task = Task::of(request);
        let post = self.server.post(path, &self.body(request, &task));
        let drawing = self.server.ask::<Answer>(post, self.server.timeouts().picture, &request.prompt);
        let answer = self.wait(drawing, &task, progress, cancelled).await?;
        let picture = answer.images.first().ok_or_else(|| self.server.protocol("there is no picture in it"))?;
        let info: Info = serde_json::from_str(&answer.info).unwrap_or_default();
        Ok(DrawnImage {
            bytes: self.server.base64(picture)?,
            seed: Some(info.seed.and_then(|seed| u32::try_from(seed).ok()).unwrap_or(request.seed)),
            model: info.sd_model_name.unwrap_or_else(|| self.server.model_of(request).to_owned()),
        })
    }

    async fn enlarge(&self, request: &UpscaleRequest, cancelled: &CancellationToken) -> Result<DrawnImage, ImageError> {
        let upscaler = self.server.config().upscaler.as_deref().unwrap_or(UPSCALER);
        let body = json!({
            "resize_mode": 0,
            "upscaling_resize": UPSCALE_FACTOR,
            "upscaler_1": upscaler,
            "image": STANDARD.encode(&request.png),
        });
        let post = self.server.post("sdapi/v1/extra-single-image", &body);
        let enlarging = self.server.ask::<Larger>(post, self.server.timeouts().picture, "");
        // The server takes no id for this, so nothing tells whether it enlarges this picture or draws a stranger's.
        let larger = tokio::select! {
            biased;
            larger = enlarging => larger?,
            () = cancelled.cancelled() => return Err(ImageError::Cancelled),
        };
        Ok(DrawnImage { bytes: self.server.base64(&larger.image)?, seed: None, model: upscaler.to_owned() })
    }
}

#[async_trait]
impl ImageModel for Automatic1111 {
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
        let models = self.server.choice(self.checkpoints().await?);
        let samplers = self.server.get("sdapi/v1/samplers");
        let samplers: Vec<Sampler> = self.server.ask(samplers, self.server.timeouts().about, "").await?;
        let sampler_aliases = samplers.iter().flat_map(|sampler| sampler.aliases.clone()).collect();
        let samplers = samplers.into_iter().map(|sampler| sampler.name).collect();
        Ok(ImageOffer { models, samplers, sampler_aliases, ..ImageOffer::default() })
    }

    async fn generate(
        &self,
        request: &ImageRequest,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        self.server.check_choice(request)?;
        let request = self.limits.fit(request);
        self.server.guarded(self.draw(&request, progress, cancelled)).await
    }

    async fn upscale(
        &self,
        request: &UpscaleRequest,
        _progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        self.server.guarded(self.enlarge(request, cancelled)).await
    }

    async fn check(&self) -> Result<String, ImageError> {
        if !self.server.config().model.is_empty() {
            let names = self.checkpoints().await?;
            let wanted = &self.server.config().model;
            if !names.iter().flatten().any(|name| name == wanted) {
                let listed: Vec<String> = names.into_iter().filter_map(|names| names.into_iter().next()).collect();
                self.server.check_model(&listed)?;
            }
        }
        let options = self.server.get("sdapi/v1/options");
        let options: Options = self.server.ask(options, self.server.timeouts().about, "").await?;
        Ok(options.sd_model_checkpoint.unwrap_or_else(|| "no model".to_owned()))
    }
}
