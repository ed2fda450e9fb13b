//! What the fakes share.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use azera_model_image::{
    ImageError, ImageModel, ImageProgress, ImageRequest, ImageSize, Picture, Reference, UpscaleRequest,
};
use azera_model_image_servers::{ImageServerConfig, ImageServerKind, Secret, Timeouts, connect};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const PROMPT: &str = "a lighthouse over violet sea";

/// What a fake knows.
#[derive(Default)]
pub struct World {
    pub requests: Mutex<Vec<(String, Value)>>,
    pub authorization: Mutex<Option<String>>,
    /// The status and body of every request that draws, instead of a picture.
    pub failure: Mutex<Option<(u16, String)>>,
    /// While set, a picture is not finished.
    pub held: Mutex<bool>,
    /// While set, the server draws the picture of somebody else.
    pub is_busy: Mutex<bool>,
    /// While set, the sidecar loads its model.
    pub is_loading: Mutex<bool>,
    /// The longest side, the most pixels and the most steps of the sidecar, if it tells them.
    pub told_limits: Mutex<Option<(u32, u32, u32)>>,
    /// How many of the next questions about a picture fail.
    pub failing_questions: Mutex<u32>,
    pub stopped: Mutex<Vec<String>>,
    /// What a model that sees says about a picture.
    pub verdict: Mutex<Option<String>>,
    /// While set, it says that its answers are cut.
    pub is_cut: Mutex<bool>,
    pub changed: Notify,
}

impl World {
    pub fn note(&self, path: &str, body: &Value) {
        lock(&self.requests).push((path.to_owned(), body.clone()));
        self.changed.notify_waiters();
    }

    pub fn note_key(&self, headers: &HeaderMap) {
        let key = headers.get("authorization").and_then(|key| key.to_str().ok()).map(str::to_owned);
        *lock(&self.authorization) = key;
    }

    pub fn sent(&self, path: &str) -> Value {
        let requests = lock(&self.requests);
        requests.iter().find(|(to, _)| to == path).map(|(_, body)| body.clone()).expect(path)
    }

    /// Returns the status and the body of a request that fails at once; 0 stands for one that fails later.
    pub fn fails(&self) -> Option<(StatusCode, String)> {
        lock(&self.failure)
            .clone()
            .filter(|(status, _)| *status != 0)
            .map(|(status, body)| (StatusCode::from_u16(status).unwrap(), body))
    }

    pub fn fail(&self, status: u16, body: &str) {
        *lock(&self.failure) = Some((status, body.to_owned()));
    }

    pub fn hold(&self, held: bool) {
        *lock(&self.held) = held;
        self.changed.notify_waiters();
    }

    pub fn stop(&self, what: &str) {
        lock(&self.stopped).push(what.to_owned());
        self.changed.notify_waiters();
    }

    pub async fn until(&self, reached: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if reached(self) {
                return;
            }
            changed.await;
        }
    }

    pub async fn until_free(&self) {
        self.until(|world| !*lock(&world.held)).await;
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

/// A fake that listens, and a client of it.
pub struct Fake {
    pub world: Arc<World>,
    pub model: Arc<dyn ImageModel>,
    pub config: ImageServerConfig,
    task: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    pub async fn start(kind: ImageServerKind, routes: impl FnOnce(Arc<World>) -> Router) -> Self {
        let world = Arc::new(World::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = routes(world.clone());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let config = ImageServerConfig {
            kind,
            url,
            model: "tiny.safetensors".into(),
            models: Vec::new(),
            key: Some(Secret::new("user:sk-hush")),
            workflow: None,
            upscale_workflow: None,
            upscaler: None,
            limits: azera_model_image::ImageLimits::default(),
            timeouts: Timeouts { poll: Duration::from_millis(5), ..Timeouts::default() },
        };
        let model = connect(config.clone()).unwrap();
        Self { world, model, config, task }
    }

    /// Draws a picture; returns it and every progress that was seen.
    pub async fn draw(&self, request: &ImageRequest) -> (Result<Picture, ImageError>, Vec<ImageProgress>) {
        let (sender, mut receiver) = watch::channel(ImageProgress::default());
        let seeing = tokio::spawn(async move {
            let mut seen = Vec::new();
            while receiver.changed().await.is_ok() {
                seen.push(receiver.borrow_and_update().clone());
            }
            seen
        });
        let drawn = self.model.generate(request, &sender, &CancellationToken::new()).await;
        drop(sender);
        let picture = drawn.map(|drawn| Picture::read(&drawn.bytes, &Default::default()).unwrap());
        (picture, seeing.await.unwrap())
    }

    /// Draws a picture larger.
    pub async fn enlarge(&self, request: &UpscaleRequest) -> Result<Picture, ImageError> {
        let (progress, _seen) = watch::channel(ImageProgress::default());
        let drawn = self.model.upscale(request, &progress, &CancellationToken::new()).await;
        drawn.map(|drawn| Picture::read(&drawn.bytes, &Default::default()).unwrap())
    }

    /// Begins a picture, cancels it once the server has it, and waits for the end.
    pub async fn cancel_amid(&self, is_begun: impl Fn(&World) -> bool) -> Result<(), ImageError> {
        self.world.hold(true);
        let cancelled = CancellationToken::new();
        let (model, token) = (self.model.clone(), cancelled.clone());
        let drawing = tokio::spawn(async move {
            let (progress, _seen) = watch::channel(ImageProgress::default());
            model.generate(&request(), &progress, &token).await
        });
        self.world.until(is_begun).await;
        cancelled.cancel();
        drawing.await.unwrap().map(drop)
    }
}

pub fn request() -> ImageRequest {
    ImageRequest {
        prompt: PROMPT.into(),
        negative: "fog".into(),
        size: ImageSize { width: 96, height: 64 },
        steps: 4,
        seed: 77,
        guidance: 5.5,
        model: None,
        sampler: Some("euler".into()),
        reference: None,
    }
}

pub fn with_reference() -> ImageRequest {
    ImageRequest { reference: Some(Reference { png: png(), strength: 0.25 }), ..request() }
}

pub fn larger() -> UpscaleRequest {
    UpscaleRequest { png: png(), size: ImageSize { width: 16, height: 16 }, drawn_by: request() }
}

/// A picture of these sides.
pub fn square(side: u32) -> Vec<u8> {
    Picture::from_rgb(side, side, vec![120; (side * side * 3) as usize]).unwrap().to_png(&[]).unwrap()
}

/// A small picture.
pub fn png() -> Vec<u8> {
    Picture::from_rgb(8, 8, vec![120; 8 * 8 * 3]).unwrap().to_png(&[]).unwrap()
}
