use std::fmt;
use std::time::Duration;

use azera_breaker::Limits;
use azera_model_image::ImageLimits;

/// The interface of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageServerKind {
    /// The project's own sidecar, `docker/imagegen`.
    Sidecar,
    /// AUTOMATIC1111's web UI or Forge, started with `--api`.
    Automatic1111,
    /// ComfyUI.
    ComfyUi,
    /// OpenAI's interface for pictures, `/v1/images/generations`.
    OpenAi,
}

impl ImageServerKind {
    /// Returns the name of such a server for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Sidecar => "the picture sidecar",
            Self::Automatic1111 => "the AUTOMATIC1111 server",
            Self::ComfyUi => "ComfyUI",
            Self::OpenAi => "the OpenAI-style picture server",
        }
    }
}

/// A key or a password. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// How long to wait for a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For a question about the server, and for one look at the progress.
    pub about: Duration,
    /// For a whole picture, with the time in the server's own queue.
    pub picture: Duration,
    /// Between two looks at the progress.
    pub poll: Duration,
    /// The limits of the circuit breaker.
    pub breaker: Limits,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            about: Duration::from_secs(10),
            picture: Duration::from_secs(300),
            poll: Duration::from_millis(500),
            breaker: Limits::default(),
        }
    }
}

/// A server, and a model on it.
#[derive(Debug, Clone)]
pub struct ImageServerConfig {
    /// The interface.
    pub kind: ImageServerKind,
    /// The address, such as `http://127.0.0.1:7860`.
    pub url: String,
    /// The model's name on the server; empty for the server's choice.
    pub model: String,
    /// The models that requests may choose besides that one; `*` stands for all that the server has.
    pub models: Vec<String>,
    /// The key: a bearer token, or `user:password` for AUTOMATIC1111.
    pub key: Option<Secret>,
    /// ComfyUI's workflow in its API format, with [`crate::PLACEHOLDERS`]; `None` for a plain one.
    pub workflow: Option<serde_json::Value>,
    /// ComfyUI's workflow that draws the picture `{reference}` larger; `None` if there is none.
    pub upscale_workflow: Option<serde_json::Value>,
    /// The upscaler of AUTOMATIC1111's web UI; `None` for the usual one.
    pub upscaler: Option<String>,
    /// What the model can draw.
    pub limits: ImageLimits,
    /// Timeouts.
    pub timeouts: Timeouts,
}
