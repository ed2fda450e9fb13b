//! The server that draws pictures, as the configuration names it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use azera_config::{Config, Images, ImagesKind};
use azera_engine::{Engine, PictureSettings};
use azera_model_image::{ImageLimits, ImageModel, ImageSize};
use azera_model_image_servers::{ImageServerConfig, ImageServerKind, Secret, Timeouts, connect};

use crate::doctor::Found;
use crate::set_aside::unless_wrong;

/// Returns the model that draws; `None` if none is configured. Sends nothing yet.
pub fn model(images: &Images) -> anyhow::Result<Option<Arc<dyn ImageModel>>> {
    let (kind, usual) = match images.kind {
        ImagesKind::None => return Ok(None),
        ImagesKind::Sidecar => (ImageServerKind::Sidecar, "http://127.0.0.1:7870"),
        ImagesKind::Automatic1111 => (ImageServerKind::Automatic1111, "http://127.0.0.1:7860"),
        ImagesKind::ComfyUi => (ImageServerKind::ComfyUi, "http://127.0.0.1:8188"),
        ImagesKind::OpenAi => (ImageServerKind::OpenAi, ""),
    };
    let config = ImageServerConfig {
        kind,
        url: images.url.clone().unwrap_or_else(|| usual.to_owned()),
        model: images.model.clone().unwrap_or_default(),
        models: images.models.clone(),
        key: images.key.as_ref().map(|key| Secret::new(key.expose())),
        workflow: workflow(images.workflow.as_deref())?,
        upscale_workflow: workflow(images.upscale_workflow.as_deref())?,
        upscaler: images.upscaler.clone(),
        limits: ImageLimits {
            max_side: images.max_side,
            max_pixels: images.max_side.saturating_mul(images.max_side),
            max_steps: images.max_steps,
            ..ImageLimits::default()
        },
        timeouts: Timeouts { picture: Duration::from_secs(images.timeout_s), ..Timeouts::default() },
    };
    Ok(Some(connect(config)?))
}

/// Reads a workflow of ComfyUI.
fn workflow(path: Option<&Path>) -> anyhow::Result<Option<serde_json::Value>> {
    let Some(path) = path else { return Ok(None) };
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let workflow = serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    Ok(Some(workflow))
}

/// Lets the engine draw, if a server is configured in a way that can work. Otherwise pictures wait until it is.
pub fn draw(engine: &Engine, config: &Config) {
    let settings = settings(config);
    let is_wrong = settings.is_err() || config.left_out_named("images").is_some();
    match unless_wrong("images", settings) {
        Some(settings) => engine.draw_with(settings),
        None if is_wrong => engine.set_pictures_aside(),
        None => {}
    }
}

/// Returns what the engine needs to draw; `None` if nothing is configured.
fn settings(config: &Config) -> anyhow::Result<Option<PictureSettings>> {
    let images = &config.images;
    Ok(model(images)?.map(|model| PictureSettings {
        model,
        size: ImageSize { width: images.width, height: images.height },
        steps: images.steps,
        guidance: images.guidance,
        negative: images.negative.clone(),
        sampler: images.sampler.clone(),
        per_person: images.per_person_a_day,
        per_place: images.per_place_a_day,
        queue: images.queue as usize,
        queue_per_person: images.queue_per_person as usize,
        kept: images.kept as usize,
        previews: images.previews,
        in_replies: images.in_replies,
        tells_every_model: images.tell_every_model,
    }))
}

/// Checks that the server can be reached.
pub async fn check(config: &Config) -> Found {
    match model(&config.images) {
        Ok(None) => Found::Good("not configured: `/imagine` says how to get pictures".to_owned()),
        Ok(Some(model)) => match crate::vision::server(config) {
            Ok(_) => reached(model.as_ref()).await,
            Err(error) => Found::Bad(
                format!("nothing is drawn while [vision_server], which looks at finished pictures, is wrong: {error}"),
                "correct [vision_server] in the configuration".to_owned(),
            ),
        },
        Err(error) => Found::Bad(format!("{error:#}"), "correct the section [images]".to_owned()),
    }
}

async fn reached(model: &dyn ImageModel) -> Found {
    match model.check().await {
        Ok(name) => Found::Good(format!("{}: {name}", model.name())),
        // Azera talks without it.
        Err(error) => Found::Note(format!("{error}; bot/docs/pictures.md lists the servers and their settings")),
    }
}
