use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Secret;

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// The interface of a server that draws pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImagesKind {
    /// no server: no pictures
    None,
    /// the project's own sidecar, docker/imagegen
    Sidecar,
    /// AUTOMATIC1111's web UI or Forge, started with --api
    Automatic1111,
    /// ComfyUI
    #[serde(rename = "comfyui")]
    ComfyUi,
    /// OpenAI's interface for pictures
    #[serde(rename = "openai")]
    OpenAi,
}

/// A server that draws pictures for `/imagine` and for personas. Azera sends it the prompts. bot/docs/pictures.md says
/// how to get one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Images {
    /// The interface of the server.
    pub kind: ImagesKind,
    /// The server's address. When unset: the default address of such a server on this machine.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:7860")]
    pub url: Option<String>,
    /// The server's key; for AUTOMATIC1111, `user:password`. Better set AZERA__IMAGES__KEY than write it here.
    #[schemars(length(min = 1, max = 1024), example = "...", extend("writeOnly" = true))]
    pub key: Option<Secret>,
    /// The model's name on the server. ComfyUI and OpenAI-style servers need one. When unset: the server's choice.
    #[schemars(length(min = 1, max = 200), example = "sdxl.safetensors")]
    pub model: Option<String>,
    /// The models that people may choose besides that one, by their names on the server. `["*"]` lets them choose all that
    /// the sidecar, AUTOMATIC1111 or ComfyUI has.
    #[schemars(length(max = 100), inner(length(min = 1, max = 200)))]
    pub models: Vec<String>,
    /// The path of a ComfyUI workflow in its API format. Texts in it such as `{prompt}`, `{negative}`, `{seed}`,
    /// `{width}`, `{height}`, `{steps}`, `{guidance}`, `{model}` and `{reference}` are filled in. When unset: a plain
    /// workflow.
    #[schemars(length(min = 1, max = 4096), example = "/srv/azera/workflow.json")]
    pub workflow: Option<PathBuf>,
    /// The path of a ComfyUI workflow in its API format that draws the picture `{reference}` larger. When unset: ComfyUI
    /// enlarges no pictures.
    #[schemars(length(min = 1, max = 4096), example = "/srv/azera/upscale.json")]
    pub upscale_workflow: Option<PathBuf>,
    /// The upscaler of AUTOMATIC1111's web UI, by its own name. When unset: `R-ESRGAN 4x+`.
    #[schemars(length(min = 1, max = 80), example = "ESRGAN 4x")]
    pub upscaler: Option<String>,
    /// The width of a picture for which no size was asked, in pixels.
    #[schemars(range(min = 64, max = 4096))]
    pub width: u32,
    /// The height of a picture for which no size was asked, in pixels.
    #[schemars(range(min = 64, max = 4096))]
    pub height: u32,
    /// The longest side that the model can draw, in pixels.
    #[schemars(range(min = 64, max = 4096))]
    pub max_side: u32,
    /// The steps of a picture. More steps take longer.
    #[schemars(range(min = 1, max = 150))]
    pub steps: u32,
    /// The most steps that people can ask for.
    #[schemars(range(min = 1, max = 150))]
    pub max_steps: u32,
    /// How strongly the model follows the prompt.
    #[schemars(range(min = 0.0, max = 30.0))]
    pub guidance: f32,
    /// The sampler, by the server's own name. When unset: the server's choice.
    #[schemars(length(min = 1, max = 40), example = "Euler a")]
    pub sampler: Option<String>,
    /// What is never drawn, besides what people say.
    #[schemars(length(min = 0, max = 1000))]
    pub negative: String,
    /// Seconds to wait for a picture, with the time in the server's own queue.
    #[schemars(range(min = 10, max = 3600))]
    pub timeout_s: u64,
    /// The most pictures of a person in a day.
    #[schemars(range(min = 0, max = 10_000))]
    pub per_person_a_day: u32,
    /// The most pictures of a server, room or direct message in a day.
    #[schemars(range(min = 0, max = 100_000))]
    pub per_place_a_day: u32,
    /// The most pictures that wait.
    #[schemars(range(min = 1, max = 1000))]
    pub queue: u32,
    /// The most pictures of a person that wait.
    #[schemars(range(min = 1, max = 100))]
    pub queue_per_person: u32,
    /// The most drawn pictures whose files are kept; the oldest go first, and pinned ones last.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub kept: u32,
    /// Show pictures within terminals that can: by kitty's protocol, iTerm2's, or sixels.
    pub in_terminal: bool,
    /// Show pictures while they are drawn, on Discord and on the web. Previews bypass any check on the server, so leave
    /// this off if it has one. With [vision_server], which checks finished pictures, no previews are shown.
    pub previews: bool,
    /// Let personas draw pictures in their replies. Only models with at least a billion weights are told how.
    pub in_replies: bool,
    /// Also tell smaller models how to draw, and models on a server whose names state no size. Measure first how well
    /// yours does it: `azera eval draw --model NAME`.
    pub tell_every_model: bool,
}

impl Default for Images {
    fn default() -> Self {
        Self {
            kind: ImagesKind::None,
            url: None,
            key: None,
            model: None,
            models: Vec::new(),
            workflow: None,
            upscale_workflow: None,
            upscaler: None,
            width: 1024,
            height: 1024,
            max_side: 1536,
            steps: 28,
            max_steps: 60,
            guidance: 7.0,
            sampler: None,
            negative: String::new(),
            timeout_s: 300,
            per_person_a_day: 50,
            per_place_a_day: 300,
            queue: 100,
            queue_per_person: 4,
            kept: 5_000,
            in_terminal: true,
            previews: false,
            in_replies: true,
            tell_every_model: false,
        }
    }
}

impl Images {
    /// Returns pairs of keys whose values are each allowed, but not together.
    pub(crate) fn contradictions(&self) -> Vec<([&'static str; 2], String)> {
        let mut found = Vec::new();
        let names_none = |value: &Option<String>| value.as_deref().is_none_or(|value| value.trim().is_empty());
        let is_needed = match self.kind {
            ImagesKind::OpenAi => true,
            ImagesKind::ComfyUi => self.workflow.is_none(),
            _ => false,
        };
        if is_needed && names_none(&self.model) {
            found.push((["model", "kind"], "`images.model` must name a model of the server".to_owned()));
        }
        if self.kind == ImagesKind::OpenAi && names_none(&self.url) {
            found.push((["url", "kind"], "`images.url` must be set: such a server can be anywhere".to_owned()));
        }
        // Without a server, the keys of one stay for the day when there is one.
        let workflows = [("workflow", &self.workflow), ("upscale_workflow", &self.upscale_workflow)];
        for (key, workflow) in workflows {
            if workflow.is_some() && !matches!(self.kind, ImagesKind::ComfyUi | ImagesKind::None) {
                found.push(([key, "kind"], format!("`images.{key}` is for ComfyUI alone")));
            }
        }
        if self.upscaler.is_some() && !matches!(self.kind, ImagesKind::Automatic1111 | ImagesKind::None) {
            found.push((["upscaler", "kind"], "`images.upscaler` is for AUTOMATIC1111 alone".to_owned()));
        }
        if self.width.max(self.height) > self.max_side {
            let why =
                format!("`images.width` and `images.height` must not exceed `images.max_side` ({})", self.max_side);
            found.push((["width", "max_side"], why));
        }
        if self.steps > self.max_steps {
            let why = format!("`images.steps` must not exceed `images.max_steps` ({})", self.max_steps);
            found.push((["steps", "max_steps"], why));
        }
        found
    }
}
