//! The project's own sidecar, `docker/imagegen`. `docker/imagegen/README.md` describes its interface.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azera_model_image::{
    DrawnImage, ImageError, ImageLimits, ImageModel, ImageOffer, ImageProgress, ImageRequest, Outage, ProgressSender,
    Reference, UpscaleRequest,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::ImageServerConfig;
use crate::events::Events;
use crate::server::{MAX_PICTURE_BYTES, MAX_PREVIEW_BYTES, Server};

/// A server of this kind.
pub(crate) struct Sidecar {
    server: Server,
    /// What the configuration allows, until the server has told its own limits.
    configured: ImageLimits,
    told: OnceLock<Box<Told>>,
    /// False until the server has told its limits, and again once it may have begun anew with others.
    is_known: AtomicBool,
}

/// Limits that the server told, and what it told later. Each stays for those who look at it; limits change only when the
/// server is set up anew.
struct Told {
    limits: ImageLimits,
    later: OnceLock<Box<Told>>,
}

/// How much of an enlarged picture is redrawn. More would change what it shows.
const UPSCALE_STRENGTH: f32 = 0.25;

/// The longest silence of a server that loads its model. It sends something every ten seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// The longest time in which nothing more of a model is downloaded. One from the disk is in memory by then.
const STALLED: Duration = Duration::from_secs(10 * 60);

/// The longest time in which a picture waits for its model. A later one finds it where this one left it.
const LOADING: Duration = Duration::from_secs(60 * 60);

/// A request, and where it goes.
struct Asked<'a> {
    path: &'static str,
    body: Value,
    /// What errors must not repeat.
    private: &'a str,
}

/// An event of a request's stream.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    /// The request waits.
    Queued { job: String, ahead: usize },
    /// The server loads the model, and has downloaded so many bytes for it.
    Loading { downloaded: u64 },
    /// The model is in memory.
    Loaded,
    /// A step is done.
    Progress { step: u32, steps: u32, preview: Option<String> },
    /// The picture can be fetched.
    Done { seed: u32, model: String },
    /// The request was cancelled.
    Cancelled,
    /// The request failed.
    Error { code: String, message: String },
}

/// What the server offers.
#[derive(Deserialize)]
struct Offer {
    models: Vec<String>,
    /// An older server does not tell them.
    samplers: Option<Vec<String>>,
    /// Its limits; an older server does not tell them.
    max_side: Option<u32>,
    max_pixels: Option<u32>,
    max_steps: Option<u32>,
}

#[derive(Deserialize)]
struct Health {
    model: String,
    /// The model that is being loaded.
    #[serde(default)]
    loading: Option<String>,
}

/// The time that a request may take. It stands still while the server loads its model: that takes minutes at the first
/// start, and says nothing about the picture. Loading has a time of its own, because a download can hang.
struct Patience {
    left: Duration,
    left_to_load: Duration,
    /// What is known of the model that is being loaded.
    loading: Option<Loading>,
}

/// How far a model is.
struct Loading {
    downloaded: u64,
    /// How long it may stay there.
    left: Duration,
}

impl Patience {
    fn new(left: Duration) -> Self {
        Self { left, left_to_load: LOADING, loading: None }
    }

    /// Returns how long to wait for the next bytes.
    fn wait(&self) -> Duration {
        self.loading.as_ref().map_or(self.left, |loading| SILENCE.min(loading.left).min(self.left_to_load))
    }

    /// Notes how long it took until bytes came.
    fn waited(&mut self, took: Duration) {
        match &mut self.loading {
            Some(loading) => {
                loading.left = loading.left.saturating_sub(took);
                self.left_to_load = self.left_to_load.saturating_sub(took);
            }
            None => self.left = self.left.saturating_sub(took),
        }
    }

    /// Notes how much of the model is downloaded.
    fn loads(&mut self, downloaded: u64) {
        if self.loading.as_ref().is_none_or(|loading| loading.downloaded != downloaded) {
            self.loading = Some(Loading { downloaded, left: STALLED });
        }
    }

    /// Notes that the model is in memory.
    fn loaded(&mut self) {
        self.loading = None;
    }
}

impl Sidecar {
    pub(crate) fn new(config: ImageServerConfig) -> Result<Self, ImageError> {
        // Until the sidecar tells its limits: who allows longer sides here has changed the sidecar's limits, too.
        let usual = ImageLimits::default();
        let is_usual = config.limits.max_side <= usual.max_side;
        let max_pixels = config.limits.max_pixels.min(if is_usual { usual.max_pixels } else { u32::MAX });
        let limits = ImageLimits { upscales: true, max_pixels, ..config.limits.clone() };
        Ok(Self {
            server: Server::new(config)?,
            configured: limits,
            told: OnceLock::new(),
            is_known: AtomicBool::new(false),
        })
    }

    /// Asks the server what it offers, because it refuses what is beyond its limits.
    async fn ask_offer(&self) -> Result<Offer, ImageError> {
        let models = self.server.get("v1/models");
        let offer: Offer = self.server.ask(models, self.server.timeouts().about, "").await?;
        let (usual, config) = (&self.configured, &self.server.config().limits);
        let limits = ImageLimits {
            max_side: offer.max_side.map_or(usual.max_side, |most| most.min(config.max_side)),
            max_pixels: offer.max_pixels.map_or(usual.max_pixels, |most| most.min(config.max_pixels)),
            max_steps: offer.max_steps.map_or(usual.max_steps, |most| most.min(config.max_steps)),
            ..usual.clone()
        };
        self.note(limits);
        Ok(offer)
    }

    /// Returns the limits that the server told last.
    fn last_told(&self) -> Option<&ImageLimits> {
        let mut last = self.told.get()?;
        while let Some(later) = last.later.get() {
            last = later;
        }
        Some(&last.limits)
    }

    /// Notes the limits that the server told.
    fn note(&self, limits: ImageLimits) {
        self.is_known.store(true, Ordering::Relaxed);
        if self.last_told() == Some(&limits) {
            return;
        }
        let mut place = &self.told;
        while let Some(told) = place.get() {
            place = &told.later;
        }
        place.get_or_init(|| Box::new(Told { limits, later: OnceLock::new() }));
    }

    /// Forgets the limits of the server if it refused a request or was away: it may have begun anew with others.
    fn doubt<T>(&self, drawn: Result<T, ImageError>) -> Result<T, ImageError> {
        if let Err(ImageError::Refused(_) | ImageError::Unavailable { .. }) = &drawn {
            self.is_known.store(false, Ordering::Relaxed);
        }
        drawn
    }

    /// Learns the limits of the server, if they are not known. If that fails, the request says why.
    async fn learn(&self, cancelled: &CancellationToken) {
        if self.is_known.load(Ordering::Relaxed) {
            return;
        }
        tokio::select! {
            biased;
            () = cancelled.cancelled() => {}
            offer = self.ask_offer() => if let Err(error) = offer {
                tracing::debug!(%error, "the sidecar does not tell its limits");
            }
        }
    }

    fn body(&self, request: &ImageRequest) -> Value {
        let mut body = json!({
            "prompt": request.prompt,
            "negative_prompt": request.negative,
            "width": request.size.width,
            "height": request.size.height,
            "steps": request.steps,
            "seed": request.seed,
            "guidance": request.guidance,
        });
        if let Some(sampler) = &request.sampler {
            body["sampler"] = json!(sampler);
        }
        let model = self.server.model_of(request);
        if !model.is_empty() {
            body["model"] = json!(model);
        }
        if let Some(reference) = &request.reference {
            body["image"] = json!(STANDARD.encode(&reference.png));
            body["strength"] = json!(reference.strength);
        }
        body
    }

    /// Returns the body of a request to draw a picture larger. The server knows the size from the picture.
    fn larger(&self, request: &UpscaleRequest) -> Value {
        let drawn_by = ImageRequest {
            reference: Some(Reference { png: request.png.clone(), strength: UPSCALE_STRENGTH }),
            ..request.drawn_by.clone()
        };
        let mut body = self.body(&self.limits().fit(&drawn_by));
        if let Some(fields) = body.as_object_mut() {
            fields.retain(|name, _| name != "width" && name != "height");
        }
        body
    }

    async fn draw(
        &self,
        asked: Asked<'_>,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        let wait = self.server.timeouts().picture;
        let mut job = None;
        let post = self.server.post(asked.path, &asked.body);
        let whole = async {
            let response = self.server.send(post, wait, asked.private).await?;
            self.follow(response, asked.private, &mut job, progress).await
        };
        let done = tokio::select! {
            biased;
            done = whole => done,
            () = cancelled.cancelled() => Err(ImageError::Cancelled),
        };
        let (seed, model) = match done {
            Ok(done) => done,
            Err(error) => {
                if let Some(job) = &job {
                    self.cancel(job).await;
                }
                return Err(error);
            }
        };
        let job = job.ok_or_else(|| self.server.protocol("it named no job"))?;
        let about = self.server.timeouts().about;
        let response = self.server.send(self.server.get(&format!("v1/pictures/{job}")), about, "").await?;
        let bytes = self.server.read(response, MAX_PICTURE_BYTES, about).await?;
        Ok(DrawnImage { bytes, seed: Some(seed), model })
    }

    /// Reads the events of a request until it is over; returns seed and model.
    async fn follow(
        &self,
        mut response: Response,
        private: &str,
        job: &mut Option<String>,
        progress: &ProgressSender,
    ) -> Result<(u32, String), ImageError> {
        let mut events = Events::default();
        let mut patience = Patience::new(self.server.timeouts().picture);
        while self.read_more(&mut response, &mut events, &mut patience).await? {
            while let Some(data) = events.next().map_err(|_| self.server.protocol("an event is too long"))? {
                let event = serde_json::from_slice(&data).map_err(|_| self.server.protocol("an event is malformed"))?;
                match event {
                    Event::Queued { job: id, ahead } => {
                        // It becomes part of a path.
                        if id.is_empty() || id.len() > 64 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                            return Err(self.server.protocol("the id of the job is malformed"));
                        }
                        *job = Some(id);
                        progress.send_replace(ImageProgress { ahead, ..ImageProgress::default() });
                    }
                    Event::Loading { downloaded } => {
                        patience.loads(downloaded);
                        progress.send_replace(ImageProgress { loading: Some(downloaded), ..ImageProgress::default() });
                    }
                    Event::Loaded => {
                        patience.loaded();
                        progress.send_replace(ImageProgress::default());
                    }
                    Event::Progress { step, steps, preview } => {
                        patience.loaded();
                        let preview = preview.and_then(|preview| self.server.base64(&preview).ok());
                        let preview = preview.filter(|preview| preview.len() <= MAX_PREVIEW_BYTES);
                        progress.send_replace(ImageProgress { step, steps, preview, ..ImageProgress::default() });
                    }
                    Event::Done { seed, model } => return Ok((seed, model)),
                    Event::Cancelled => return Err(ImageError::Cancelled),
                    Event::Error { code, message } => return Err(self.failure(&code, &message, private)),
                }
            }
        }
        Err(ImageError::outage(Outage::Failed, format!("{} broke off in the middle of a picture", self.server.name())))
    }

    /// Waits for the next bytes of a stream, as long as the request may still take. Returns false at its end.
    async fn read_more(
        &self,
        response: &mut Response,
        events: &mut Events,
        patience: &mut Patience,
    ) -> Result<bool, ImageError> {
        let (begun, wait) = (Instant::now(), patience.wait());
        let chunk = timeout(wait, response.chunk()).await.map_err(|_| match patience.loading {
            Some(_) => self.cannot_load(wait),
            None => self.server.silent(self.server.timeouts().picture),
        })?;
        patience.waited(begun.elapsed());
        let chunk = chunk.map_err(|error| self.server.network(error))?;
        if let Some(chunk) = &chunk {
            events.push(chunk);
        }
        Ok(chunk.is_some())
    }

    /// Returns the error of a server that did not get its model into memory. `wait` is how long it was silent at the end.
    fn cannot_load(&self, wait: Duration) -> ImageError {
        let name = self.server.name();
        let why = match wait >= SILENCE {
            true => format!("{name} said nothing for {} s while it loaded its model", wait.as_secs()),
            false => format!("{name} does not get its model loaded; its log says why"),
        };
        ImageError::outage(Outage::Failed, why)
    }

    fn failure(&self, code: &str, message: &str, private: &str) -> ImageError {
        let said: String = message.chars().filter(|c| !c.is_control()).take(160).collect();
        let said = if self.server.is_safe(&said, private) { said } else { String::new() };
        match code {
            "flagged" => ImageError::Flagged,
            "refused" => ImageError::Refused(format!("{} refused the request: {said}", self.server.name())),
            _ => {
                let why = format!("{} could not draw it: {said}", self.server.name());
                ImageError::outage(Outage::of_words(&said), why)
            }
        }
    }

    async fn cancel(&self, job: &str) {
        let cancel = self.server.request(Method::DELETE, &format!("v1/pictures/{job}"));
        if let Err(error) = self.server.send(cancel, self.server.timeouts().about, "").await {
            tracing::debug!(%error, "cannot stop a picture on its server");
        }
    }
}

#[async_trait]
impl ImageModel for Sidecar {
    fn name(&self) -> &str {
        self.server.name()
    }

    fn title(&self) -> &str {
        self.server.config().kind.title()
    }

    fn limits(&self) -> &ImageLimits {
        self.last_told().unwrap_or(&self.configured)
    }

    async fn offer(&self) -> Result<ImageOffer, ImageError> {
        let offer = self.ask_offer().await?;
        let models = self.server.choice(offer.models.into_iter().map(|name| vec![name]).collect());
        let takes_any_sampler = offer.samplers.is_none();
        let samplers = offer.samplers.unwrap_or_default();
        Ok(ImageOffer { models, samplers, takes_any_sampler, ..ImageOffer::default() })
    }

    async fn generate(
        &self,
        request: &ImageRequest,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        self.server.check_choice(request)?;
        let drawing = async {
            self.learn(cancelled).await;
            let request = self.limits().fit(request);
            let asked = Asked { path: "v1/pictures", body: self.body(&request), private: &request.prompt };
            self.doubt(self.draw(asked, progress, cancelled).await)
        };
        self.server.guarded(drawing).await
    }

    async fn upscale(
        &self,
        request: &UpscaleRequest,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        let drawing = async {
            self.learn(cancelled).await;
            let private = request.drawn_by.prompt.as_str();
            let asked = Asked { path: "v1/upscales", body: self.larger(request), private };
            self.doubt(self.draw(asked, progress, cancelled).await)
        };
        self.server.guarded(drawing).await
    }

    async fn check(&self) -> Result<String, ImageError> {
        self.server.check_model(&self.ask_offer().await?.models)?;
        let health: Health = self.server.ask(self.server.get("v1/health"), self.server.timeouts().about, "").await?;
        Ok(match health.loading {
            Some(loading) => format!("{loading}, which it is still loading"),
            None => health.model,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_which_a_model_is_loaded_does_not_count() {
        let second = Duration::from_secs(1);
        let mut patience = Patience::new(second * 300);
        patience.waited(second * 10);
        for downloaded in 0..100 {
            patience.loads(downloaded);
            assert_eq!(patience.wait(), SILENCE);
            patience.waited(second * 10);
        }
        patience.loaded();
        assert_eq!(patience.wait(), second * 290);
        patience.waited(second * 400);
        assert_eq!(patience.wait(), Duration::ZERO);
    }

    #[test]
    fn a_model_that_never_comes_is_not_waited_for_without_end() {
        let second = Duration::from_secs(1);
        // The server is alive, and nothing more comes.
        let mut patience = Patience::new(second * 300);
        for _ in 0..60 {
            patience.loads(2_100_000_000);
            assert!(patience.wait() > Duration::ZERO);
            patience.waited(second * 10);
        }
        patience.loads(2_100_000_000);
        assert_eq!(patience.wait(), Duration::ZERO);
        // A byte now and then is no end, either.
        let mut patience = Patience::new(second * 300);
        for downloaded in 0..360 {
            patience.loads(downloaded);
            assert!(patience.wait() > Duration::ZERO);
            patience.waited(second * 10);
        }
        patience.loads(360);
        assert_eq!(patience.wait(), Duration::ZERO);
        // Once it is there, the time of the picture itself counts.
        patience.loaded();
        assert_eq!(patience.wait(), second * 300);
    }
}
