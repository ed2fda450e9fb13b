//! Servers of speech for tests. Each is written from what the real one accepts and refuses.

pub mod openai;
pub mod whisper_cpp;
pub mod xtts_api;
pub mod xtts_streaming;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Multipart;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::{Handle, Runtime};

use crate::KEY;

/// Samples for each character of a sentence: 50 ms.
pub const SAMPLES_PER_CHAR: usize = 1_200;

/// What goes wrong with the next request.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// No answer ever comes.
    Hang,
    /// The answer begins and never ends.
    HangMidway,
    /// The connection breaks in the middle of the answer.
    HalfBody,
    /// A status with an error's text, which repeats the request's text and key.
    Status(u16),
    /// HTML with status 200.
    NotJson,
    /// JSON of another form.
    OtherJson,
    /// A WAV file of 8,000 samples a second.
    WrongRate,
    /// Nothing with status 200.
    Nothing,
    /// More than any limit.
    Endless,
    /// A redirect.
    Redirect,
}

impl Trouble {
    /// Returns true if only a timeout ends it.
    pub fn is_silence(&self) -> bool {
        matches!(self, Self::Hang | Self::HangMidway)
    }
}

/// A fake server on a port of its own.
pub struct Fake {
    pub url: String,
    runtime: Runtime,
    state: Arc<State>,
}

/// What the handlers of a fake share.
#[derive(Default)]
pub struct State {
    pub trouble: Mutex<VecDeque<Trouble>>,
    pub paths: Mutex<Vec<String>>,
    pub bodies: Mutex<Vec<Value>>,
    /// True if the server answers like one whose model has no times of words.
    pub is_plain: bool,
    /// True while the server answers nothing.
    pub is_away: AtomicBool,
    /// True if the server has no list of voices.
    pub has_no_list: bool,
    /// True if xtts-api-server does not stream.
    pub does_not_stream: bool,
}

/// Answers only once the whole request is there: a client that still sends would see a broken connection.
async fn not_found(_: Bytes) -> StatusCode {
    StatusCode::NOT_FOUND
}

impl Fake {
    pub fn start(state: State, routes: fn(Arc<State>) -> Router) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(state);
        let counted = state.clone();
        let app = routes(state.clone()).fallback(not_found);
        let app = app.layer(axum::middleware::from_fn(move |request: Request<Body>, next: Next| {
            let counted = counted.clone();
            async move {
                counted.paths.lock().unwrap().push(request.uri().path().to_owned());
                if counted.is_away.load(Ordering::SeqCst) {
                    return StatusCode::SERVICE_UNAVAILABLE.into_response();
                }
                next.run(request).await
            }
        }));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { url, runtime, state }
    }

    pub fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Runs asynchronous work of a client.
    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Makes the next requests for speech go wrong, one after another.
    pub fn fail(&self, trouble: impl IntoIterator<Item = Trouble>) {
        self.state.trouble.lock().unwrap().extend(trouble);
    }

    /// Lets the server answer nothing, or everything again.
    pub fn set_away(&self, is_away: bool) {
        self.state.is_away.store(is_away, Ordering::SeqCst);
    }

    /// Returns how many requests a path had.
    pub fn requests(&self, path: &str) -> usize {
        self.state.paths.lock().unwrap().iter().filter(|asked| *asked == path).count()
    }

    /// Returns what the requests for speech asked for.
    pub fn bodies(&self) -> Vec<Value> {
        self.state.bodies.lock().unwrap().clone()
    }
}

impl State {
    pub fn note(&self, body: Value) {
        self.bodies.lock().unwrap().push(body);
    }

    /// Returns the next trouble.
    fn next_trouble(&self) -> Option<Trouble> {
        self.trouble.lock().unwrap().pop_front()
    }

    /// Returns the answer of the next trouble, if there is one. `sent` is the text of the request.
    pub async fn trouble(&self, sent: &str) -> Option<Response> {
        let stream = |bytes: Bytes, then: Then| sound_response("audio/wav", vec![bytes], then);
        Some(match self.next_trouble()? {
            Trouble::Hang => std::future::pending().await,
            Trouble::HangMidway => stream(Bytes::from(wav(&vec![0.1; 4_800], 24_000)).slice(..5_000), Then::Hang),
            Trouble::HalfBody => stream(Bytes::from(wav(&vec![0.1; 4_800], 24_000)).slice(..5_000), Then::Die),
            Trouble::Status(status) => {
                let status = StatusCode::from_u16(status).unwrap();
                let message = format!("cannot do this with {KEY}: {sent}");
                (status, json_body(&json!({"error": {"message": message, "type": "odd"}}))).into_response()
            }
            Trouble::NotJson => ([(header::CONTENT_TYPE, "text/html")], "<html>Welcome</html>").into_response(),
            Trouble::OtherJson => json_body(&json!(["what", 7])).into_response(),
            Trouble::WrongRate => {
                ([(header::CONTENT_TYPE, "audio/wav")], wav(&vec![0.1; 8_000], 8_000)).into_response()
            }
            Trouble::Nothing => ([(header::CONTENT_TYPE, "audio/wav")], Body::empty()).into_response(),
            Trouble::Endless => sound_response("audio/wav", vec![Bytes::from(wav_head(24_000))], Then::Endless),
            Trouble::Redirect => {
                let target = format!("http://elsewhere.example/v1?text={sent}").replace(' ', "+");
                (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, target)]).into_response()
            }
        })
    }
}

/// What happens after the last piece of a sound.
#[derive(Clone, Copy, PartialEq)]
pub enum Then {
    End,
    Die,
    Hang,
    Endless,
}

/// Answers with a sound in pieces.
pub fn sound_response(kind: &'static str, pieces: Vec<Bytes>, then: Then) -> Response {
    let (send, receive) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(4);
    tokio::spawn(async move {
        for piece in pieces {
            if send.send(Ok(piece)).await.is_err() {
                return;
            }
        }
        match then {
            Then::End => {}
            Then::Die => {
                let died = Err(std::io::Error::other("the model is gone"));
                send.send(died).await.ok();
            }
            Then::Hang => send.closed().await,
            Then::Endless => while send.send(Ok(Bytes::from(vec![0; 1 << 20]))).await.is_ok() {},
        }
    });
    let body = Body::new(Pieces(receive));
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

/// The pieces of a body as they come.
struct Pieces(tokio::sync::mpsc::Receiver<Result<Bytes, std::io::Error>>);

impl axum::body::HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(http_body::Frame::data)))
    }
}

/// Returns a response body of JSON.
pub fn json_body(value: &Value) -> impl IntoResponse + use<> {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string())
}

/// Returns true if the request carries the key.
pub fn has_key(headers: &HeaderMap) -> bool {
    headers.get(header::AUTHORIZATION).is_some_and(|value| value.as_bytes() == format!("Bearer {KEY}").as_bytes())
}

/// Returns a WAV file of 16-bit samples.
pub fn wav(samples: &[f32], rate: u32) -> Vec<u8> {
    let spec =
        hound::WavSpec { channels: 1, sample_rate: rate, bits_per_sample: 16, sample_format: hound::SampleFormat::Int };
    let mut file = std::io::Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut file, spec).unwrap();
    samples.iter().for_each(|sample| writer.write_sample((sample * 32_767.0) as i16).unwrap());
    writer.finalize().unwrap();
    file.into_inner()
}

/// Returns the head of a WAV file whose length is not known yet, as Python's `wave` writes it: with a length of 0.
pub fn wav_head(rate: u32) -> Vec<u8> {
    wav(&[], rate)
}

/// Returns the 16-bit samples of a sentence.
pub fn samples_of(sentence: &str, pace: f64) -> Vec<u8> {
    let samples = (sentence.chars().count() as f64 * SAMPLES_PER_CHAR as f64 / pace) as usize;
    (0..samples).flat_map(|n| ((n % 100) as i16 * 50).to_le_bytes()).collect()
}

/// The fields of a form: texts, and the file's name and bytes.
pub struct Fields {
    pub texts: Vec<(String, String)>,
    pub files: Vec<(String, String, Bytes)>,
}

impl Fields {
    pub async fn read(mut form: Multipart) -> Self {
        let mut fields = Self { texts: Vec::new(), files: Vec::new() };
        while let Some(field) = form.next_field().await.unwrap() {
            let name = field.name().unwrap_or_default().to_owned();
            match field.file_name().map(str::to_owned) {
                Some(file) => fields.files.push((name, file, field.bytes().await.unwrap())),
                None => fields.texts.push((name, field.text().await.unwrap())),
            }
        }
        fields
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.iter().find(|(field, _)| field == name).map(|(_, text)| text.as_str())
    }

    pub fn all(&self, name: &str) -> Vec<&str> {
        self.texts.iter().filter(|(field, _)| field == name).map(|(_, text)| text.as_str()).collect()
    }

    pub fn file(&self, name: &str) -> Option<&(String, String, Bytes)> {
        self.files.iter().find(|(field, ..)| field == name)
    }

    pub fn as_json(&self) -> Value {
        json!(self.texts.iter().map(|(name, text)| json!([name, text])).collect::<Vec<_>>())
    }
}

/// Returns the seconds of a WAV file of 16-bit samples at 16 kHz in one channel, or `None` for any other.
pub fn seconds_of(bytes: &[u8]) -> Option<f64> {
    let reader = hound::WavReader::new(bytes).ok()?;
    let spec = reader.spec();
    let is_usual = (spec.channels, spec.sample_rate, spec.bits_per_sample) == (1, 16_000, 16);
    is_usual.then(|| f64::from(reader.duration()) / 16_000.0)
}
