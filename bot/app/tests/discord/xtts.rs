//! Coqui's streaming XTTS server, as strict as the real one: voices are numbers, which come from it and go back with each
//! sentence.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// The server's own voices, each with the number that stands for it.
pub const ANA: (&str, f64) = ("ana-florence", 0.5);
pub const CRAIG: (&str, f64) = ("craig-gutsy", 0.25);

/// The number of every cloned voice.
pub const CLONED: f64 = 0.125;

/// How long to wait for a request.
const PATIENCE: Duration = Duration::from_secs(300);

/// What the server was asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// A sentence with a voice, by its number.
    Said(f64, String),
    /// The numbers of a recording.
    Cloned,
}

#[derive(Default)]
struct State {
    asked: Mutex<Vec<Asked>>,
    news: Condvar,
    stopped: AtomicBool,
    is_away: AtomicBool,
}

/// A server on a port of its own.
pub struct Xtts {
    address: String,
    state: Arc<State>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Xtts {
    pub fn start() -> Self {
        Self::start_as(false)
    }

    /// Starts one that answers nothing until it is let.
    pub fn start_away() -> Self {
        let xtts = Self::start();
        xtts.state.is_away.store(true, Ordering::SeqCst);
        xtts
    }

    /// Lets it answer from now on.
    pub fn come_back(&self) {
        self.state.is_away.store(false, Ordering::SeqCst);
    }

    /// Lets it answer nothing from now on.
    pub fn go_away(&self) {
        self.state.is_away.store(true, Ordering::SeqCst);
    }

    /// Starts xtts-api-server, which takes no recordings over the network.
    pub fn start_api() -> Self {
        Self::start_as(true)
    }

    fn start_as(is_api_server: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::<State>::default();
        let serving = state.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.stopped.load(Ordering::SeqCst) {
                    return;
                }
                // The client may hang up at any time.
                stream.and_then(|stream| answer(stream, is_api_server, &serving)).ok();
            }
        });
        Self { address, state, thread: Some(thread) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns what it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().expect("nobody panics while they hold this").clone()
    }

    /// Waits until it was asked to say these words, and returns the number of the voice.
    #[track_caller]
    pub fn voice_of(&self, words: &str) -> f64 {
        let said = |asked: &Vec<Asked>| {
            let mut newest = asked.iter().rev();
            newest.find_map(|asked| match asked {
                Asked::Said(voice, text) if text.contains(words) => Some(*voice),
                _ => None,
            })
        };
        let asked = self.state.asked.lock().expect("nobody panics while they hold this");
        let waited = self.state.news.wait_timeout_while(asked, PATIENCE, |asked| said(asked).is_none());
        let asked = waited.expect("nobody panics while they hold this").0;
        said(&asked).unwrap_or_else(|| panic!("waited in vain for {words:?}: {asked:?}"))
    }

    /// Forgets what it was asked.
    pub fn forget(&self) {
        self.state.asked.lock().expect("nobody panics while they hold this").clear();
    }
}

impl Drop for Xtts {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        TcpStream::connect(&self.address).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Returns the numbers of a voice.
fn latents(seed: f64) -> Value {
    json!({"speaker_embedding": vec![seed; 512], "gpt_cond_latent": vec![vec![seed / 2.0; 1024]; 2]})
}

fn answer(mut stream: TcpStream, is_api_server: bool, state: &State) -> std::io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let field = |name: &str| {
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let length: usize = field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let note = |asked: Asked| {
        state.asked.lock().expect("nobody panics while they hold this").push(asked);
        state.news.notify_all();
    };
    let mut request = head.split(' ');
    let (method, path) = (request.next().unwrap_or_default(), request.next().unwrap_or_default());
    let (status, kind, answer) = match (method, path) {
        _ if state.is_away.load(Ordering::SeqCst) => ("503 Service Unavailable", "text/plain", Vec::new()),
        ("GET", "/speakers") if is_api_server => {
            ("200 OK", "application/json", br#"[{"name": "male", "voice_id": "male", "preview_url": ""}]"#.to_vec())
        }
        ("GET", "/studio_speakers") if !is_api_server => {
            let voices = json!({ANA.0: latents(ANA.1), CRAIG.0: latents(CRAIG.1)});
            ("200 OK", "application/json", voices.to_string().into_bytes())
        }
        ("GET", "/languages") => ("200 OK", "application/json", br#"["en","de"]"#.to_vec()),
        ("POST", "/clone_speaker")
            if !is_api_server && is_recording(&field("content-type").unwrap_or_default(), &body) =>
        {
            note(Asked::Cloned);
            ("200 OK", "application/json", latents(CLONED).to_string().into_bytes())
        }
        ("POST", "/tts_stream") => match sentence(&body) {
            Some((voice, text)) => {
                let sound = sound(&text);
                note(Asked::Said(voice, text));
                ("200 OK", "audio/wav", sound)
            }
            None => ("422 Unprocessable Entity", "application/json", br#"{"detail":[]}"#.to_vec()),
        },
        ("POST", "/clone_speaker") => ("422 Unprocessable Entity", "application/json", br#"{"detail":[]}"#.to_vec()),
        _ => ("404 Not Found", "application/json", br#"{"detail":"Not Found"}"#.to_vec()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&answer)
}

/// Returns true for a form with a WAV file in the field `wav_file`.
fn is_recording(content_type: &str, body: &[u8]) -> bool {
    let has = |what: &[u8]| body.windows(what.len()).any(|window| window == what);
    let start = body.windows(4).position(|window| window == b"RIFF");
    let is_wav = start.is_some_and(|at| hound::WavReader::new(&body[at..]).is_ok());
    content_type.starts_with("multipart/form-data") && has(b"name=\"wav_file\"") && is_wav
}

/// Returns the voice's number and the text of a sentence, if the server would take the request.
fn sentence(body: &[u8]) -> Option<(f64, String)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let numbers = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_number));
    let are_latents = body["gpt_cond_latent"].as_array().is_some_and(|rows| rows.iter().all(numbers));
    let is_known = body["language"].as_str().is_some_and(|language| ["en", "de"].contains(&language));
    // The number of tokens in a piece must be a text.
    if !numbers(&body["speaker_embedding"]) || !are_latents || !is_known || !body["stream_chunk_size"].is_string() {
        return None;
    }
    Some((body["speaker_embedding"][0].as_f64()?, body["text"].as_str()?.to_owned()))
}

/// Returns a WAV file with 20 ms of a tone for each character.
fn sound(text: &str) -> Vec<u8> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: 24_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut file = std::io::Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut file, spec).expect("a file in memory");
    for n in 0..text.len() * 480 {
        writer.write_sample(((n as f32 * 0.12).sin() * 12_000.0) as i16).expect("a file in memory");
    }
    writer.finalize().expect("a file in memory");
    file.into_inner()
}
