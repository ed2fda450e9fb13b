//! AUTOMATIC1111's web UI and Forge: `/sdapi/v1`. The server draws one picture at a time and says how far it is when it
//! is asked.

use std::pin::pin;

use async_trait::async_trait;
use azera_model_image::{
    DrawnImage, ImageError, ImageLimits, ImageModel, ImageProgress, ImageRequest, ProgressSender, UPSCALE_FACTOR,
    UpscaleRequest,
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

/// The answer to a look at the progress.
#[derive(Deserialize)]
struct Progress {
    #[serde(default)]
    state: State,
    current_image: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    sampling_step: u32,
    sampling_steps: u32,
}

#[derive(Deserialize)]
struct Options {
    sd_model_checkpoint: Option<String>,
}

impl Automatic1111 {
    pub(crate) fn new(config: ImageServerConfig) -> Result<Self, ImageError> {
        let limits = ImageLimits { upscales: true, ..config.limits.clone() };
        Ok(Self { server: Server::new(config)?, limits })
    }

    fn body(&self, request: &ImageRequest) -> Value {
        let mut body = json!({
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
        let model = &self.server.config().model;
        if !model.is_empty() {
            body["override_settings"] = json!({ "sd_model_checkpoint": model });
        }
        if let Some(reference) = &request.reference {
            body["init_images"] = json!([STANDARD.encode(&reference.png)]);
            body["denoising_strength"] = json!(reference.strength);
        }
        body
    }

    /// Asks how far the picture is. A failed look costs the progress, not the picture.
    async fn look(&self, progress: &ProgressSender) {
        let look = self.server.get("sdapi/v1/progress");
        let Ok(seen) = self.server.ask::<Progress>(look, self.server.timeouts().about, "").await else { return };
        let preview = seen.current_image.and_then(|preview| self.server.base64(&preview).ok());
        progress.send_replace(ImageProgress {
            ahead: 0,
            step: seen.state.sampling_step,
            steps: seen.state.sampling_steps,
            preview: preview.filter(|preview| preview.len() <= MAX_PREVIEW_BYTES),
        });
    }

    async fn interrupt(&self) {
        let interrupt = self.server.request(reqwest::Method::POST, "sdapi/v1/interrupt");
        if let Err(error) = self.server.send(interrupt, self.server.timeouts().about, "").await {
            tracing::warn!(%error, "cannot stop a picture on its server");
        }
    }

    /// Waits for an answer, reports progress meanwhile, and stops the server when the picture is cancelled.
    async fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, ImageError>>,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<T, ImageError> {
        let mut answer = pin!(answer);
        loop {
            let look = async {
                tokio::time::sleep(self.server.timeouts().poll).await;
                self.look(progress).await;
            };
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                () = cancelled.cancelled() => {
                    self.interrupt().await;
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
        let post = self.server.post(path, &self.body(request));
        let drawing = self.server.ask::<Answer>(post, self.server.timeouts().picture, &request.prompt);
        let answer = self.wait(drawing, progress, cancelled).await?;
        let picture = answer.images.first().ok_or_else(|| self.server.protocol("there is no picture in it"))?;
        let info: Info = serde_json::from_str(&answer.info).unwrap_or_default();
        Ok(DrawnImage {
            bytes: self.server.base64(picture)?,
            seed: Some(info.seed.and_then(|seed| u32::try_from(seed).ok()).unwrap_or(request.seed)),
            model: info.sd_model_name.unwrap_or_else(|| self.server.config().model.clone()),
        })
    }

    async fn enlarge(
        &self,
        request: &UpscaleRequest,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        let upscaler = self.server.config().upscaler.as_deref().unwrap_or(UPSCALER);
        let body = json!({
            "resize_mode": 0,
            "upscaling_resize": UPSCALE_FACTOR,
            "upscaler_1": upscaler,
            "image": STANDARD.encode(&request.png),
        });
        let post = self.server.post("sdapi/v1/extra-single-image", &body);
        let enlarging = self.server.ask::<Larger>(post, self.server.timeouts().picture, "");
        let larger = self.wait(enlarging, progress, cancelled).await?;
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

    async fn generate(
        &self,
        request: &ImageRequest,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        let request = self.limits.fit(request);
        self.server.guarded(self.draw(&request, progress, cancelled)).await
    }

    async fn upscale(
        &self,
        request: &UpscaleRequest,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        self.server.guarded(self.enlarge(request, progress, cancelled)).await
    }

    async fn check(&self) -> Result<String, ImageError> {
        let options = self.server.get("sdapi/v1/options");
        let options: Options = self.server.ask(options, self.server.timeouts().about, "").await?;
        Ok(options.sd_model_checkpoint.unwrap_or_else(|| "no model".to_owned()))
    }
}
