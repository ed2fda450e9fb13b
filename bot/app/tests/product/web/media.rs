//! Pictures, speech, recordings, moods and the log over HTTP: the real binary, a server that draws, and an installed voice.

use std::path::Path;

use azera_model_image::Picture;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::painter::{Painter, SERVER_METADATA};
use crate::web::Running;

/// What a picture that somebody uploads tells about its place.
const PLACE: &str = "52.5200N 13.4050E";

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// A person with a session.
struct Person<'a> {
    bot: &'a Running,
    session: [(String, String); 2],
}

impl Person<'_> {
    fn headers(&self) -> Vec<(&str, &str)> {
        self.session.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, body) = self.bot.send(method, path, &self.headers(), body);
        (status, body)
    }

    #[track_caller]
    fn good(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, body) = self.send(method, path, body);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    fn file(&self, path: &str) -> (u16, Vec<u8>) {
        let (status, _, bytes) = self.bot.exchange("GET", path, &self.headers(), b"");
        (status, bytes)
    }

    #[track_caller]
    fn upload(&self, path: &str, name: &str, file: &[u8]) -> Value {
        let head = format!("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n");
        let body = [head.as_bytes(), file, b"\r\n--x--\r\n"].concat();
        let headers = [self.headers(), vec![("Content-Type", "multipart/form-data; boundary=x")]].concat();
        let (status, _, bytes) = self.bot.exchange("POST", path, &headers, &body);
        let answer = String::from_utf8_lossy(&bytes);
        assert_eq!(status, 200, "{path}: {answer}");
        serde_json::from_str(&answer).expect("JSON")
    }
}

/// Returns the data of the last event of a stream, and its name.
fn last_event(stream: &Value) -> (String, Value) {
    let stream = stream.as_str().expect("a stream");
    let field = |name: &str| stream.lines().filter_map(|line| line.strip_prefix(name)).next_back().map(str::trim);
    let data = field("data:").and_then(|data| serde_json::from_str(data).ok());
    (field("event:").unwrap_or_default().to_owned(), data.unwrap_or_default())
}

#[test]
fn pictures_speech_moods_and_the_log_work_over_http() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, data) = (scratch.path(), scratch.path().join("data"));
    let painter = Painter::start();
    let settings = [("AZERA__IMAGES__KIND", "automatic1111"), ("AZERA__IMAGES__URL", painter.url.as_str())];
    let bot = Running::with(home, data.to_str().expect("a path"), &["--model", "scripted"], &settings);
    let ann = Person { bot: &bot, session: bot.own() };
    let invited = ann.good("POST", "/api/invitations", &json!({}));
    let code = invited["code"].as_str().expect("a code");
    let bob = Person { bot: &bot, session: bot.join("/api/join", code, "Bob") };
    pictures(&ann, &bob, &painter);
    speech(&ann, &bob);
    moods(&ann, &bob);
    let (status, _) = bob.send("GET", "/api/logs", &Value::Null);
    assert_eq!(status, 403, "the log is for owners");
    let log = ann.good("GET", "/api/logs?level=info", &Value::Null);
    let lines = log["items"].as_array().expect("lines");
    assert!(lines.iter().any(|line| line["message"] == "the owner's account was made"), "{log}");
    assert!(
        lines.iter().all(|line| line["target"].as_str().is_some_and(|target| target.starts_with("azera"))),
        "{log}"
    );
    assert!(!log.to_string().contains("heliotrope"), "{log}");
    bot.stop();
}

fn pictures(ann: &Person<'_>, bob: &Person<'_>, painter: &Painter) {
    let png =
        Picture::from_rgb(32, 16, vec![90; 32 * 16 * 3]).expect("pixels").to_png(&[("place", PLACE)]).expect("a PNG");
    assert!(holds(&png, PLACE), "the test tests nothing");
    let kept = ann.upload("/api/images/upload-reference", "me.png", &png);
    let url = kept["url"].as_str().expect("an address");
    let (status, reference) = ann.file(url);
    assert!(status == 200 && reference.starts_with(b"\x89PNG") && !holds(&reference, PLACE), "{status}");
    assert_eq!(bob.file(url).0, 404, "an upload is for its person alone");
    let wish = json!({"prompt": "a heliotrope lighthouse", "seed": 7, "reference_image": kept["id"], "reference_strength": 0.5});
    let (event, complete) = last_event(&ann.good("POST", "/api/images/generate", &wish));
    assert_eq!((event.as_str(), &complete["image"]["seed"]), ("complete", &json!(7)), "{complete}");
    {
        let asked = painter.asked.lock().expect("nobody panics while they hold this");
        assert_eq!((&asked[0]["denoising_strength"], &asked[0]["seed"]), (&json!(0.5), &json!(7)));
    }
    let listed = ann.good("GET", "/api/images", &Value::Null);
    let mut want = complete["image"].clone();
    // Lists name the chat, too.
    want["place"] = json!("Pictures");
    assert_eq!((&listed["total"], &listed["items"][0]), (&json!(1), &want));
    assert_eq!((&listed["items"][0]["width"], &listed["items"][0]["height"]), (&json!(8), &json!(8)), "as it came");
    let path = listed["items"][0]["url"].as_str().expect("an address");
    let (status, file) = ann.file(path);
    assert!(status == 200 && file.starts_with(b"\x89PNG") && !holds(&file, SERVER_METADATA), "{status}");
    // The picture is a message of the persona, and nobody else's.
    assert!(ann.good("GET", "/api/chats/search?q=heliotrope", &Value::Null)["total"] == 1);
    let chat = ann.good("GET", "/api/chats/pictures", &Value::Null);
    assert_eq!(chat["messages"][0]["picture"], listed["items"][0]["url"], "{chat}");
    // Its chat goes on like every other one.
    let talk = |chat: &str| ann.send("POST", "/api/chat/stream", &json!({"chat_id": chat, "message": "/status"})).0;
    assert_eq!((talk("pictures"), talk("nowhere")), (200, 400));
    assert_eq!(bob.file(path).0, 404);
    assert_eq!(bob.send("DELETE", path, &Value::Null).0, 404);
    assert_eq!(bob.good("GET", "/api/images", &Value::Null)["total"], 0);
    let refused = ann.send("POST", "/api/images/generate", &json!({"prompt": "a nude schoolgirl"}));
    assert!(
        refused.0 == 422 && refused.1["error"].as_str().is_some_and(|why| why.contains("under 18")),
        "{}",
        refused.1
    );
    assert_eq!(ann.good("GET", "/api/images/models", &Value::Null)["total"], 1);
    assert_eq!(ann.good("DELETE", path, &Value::Null)["status"], "deleted");
    assert_eq!(ann.file(path).0, 404);
}

/// Returns the files below a folder that begin as pictures do.
fn pictures_below(folder: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").map_while(Result::ok) {
        match entry.file_type().expect("a kind").is_dir() {
            true => found.extend(pictures_below(&entry.path())),
            false => found.push(std::fs::read(entry.path()).expect("a file")),
        }
    }
    found.retain(|file| file.starts_with(b"\x89PNG"));
    found
}

#[test]
fn a_picture_in_a_chat_is_seen_kept_without_its_place_and_forgotten() {
    const CHAT: &str = "7d4f2d58-3a53-4f0e-9d2f-3c2b5a1e0002";
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, data) = (scratch.path(), scratch.path().join("data"));
    let painter = Painter::start();
    let eyes = format!("{}/v1", painter.url);
    let settings = [("AZERA__VISION_SERVER__URL", eyes.as_str()), ("AZERA__VOICE__ENABLED", "false")];
    let start = || Running::with(home, data.to_str().expect("a path"), &["--model", "scripted"], &settings);
    let bot = start();
    let ann = Person { bot: &bot, session: bot.own() };
    let invited = ann.good("POST", "/api/invitations", &json!({}));
    let bob_session = bot.join("/api/join", invited["code"].as_str().expect("a code"), "Bob");
    let bob = Person { bot: &bot, session: bob_session.clone() };
    let png =
        Picture::from_rgb(32, 16, vec![90; 32 * 16 * 3]).expect("pixels").to_png(&[("place", PLACE)]).expect("a PNG");
    assert!(holds(&png, PLACE), "the test tests nothing");
    let url = format!("data:image/png;base64,{}", STANDARD.encode(&png));
    let path = format!("/api/chats/{CHAT}");
    ann.good("POST", "/api/chat/stream", &json!({"chat_id": CHAT, "message": "what is this?", "pictures": [url]}));
    let chat = ann.good("GET", &path, &Value::Null);
    assert_eq!(
        chat["messages"][0]["content"], "what is this?\n[seen in picture.png, a guess] A grey square.",
        "{chat}"
    );
    // The interface for sessions takes a picture without words.
    ann.good("POST", "/api/chat", &json!({"session_id": "desk", "message": "", "pictures": [url]}));
    let history = ann.good("GET", "/api/history/desk", &Value::Null);
    assert_eq!(history["messages"][0]["content"], "[seen in picture.png, a guess] A grey square.", "{history}");
    let fetched = json!({"session_id": "desk", "message": "", "pictures": ["http://127.0.0.1:1/cat.png"]});
    assert_eq!(ann.send("POST", "/api/chat", &fetched).0, 400);
    assert_eq!(bob.send("GET", &path, &Value::Null).0, 404);
    assert_eq!(bob.good("GET", "/api/history/desk", &Value::Null)["messages"], json!([]));
    assert_eq!(bob.good("GET", "/api/chats/search?q=square", &Value::Null)["total"], 0);
    let session = ann.session.clone();
    bot.stop();
    let kept = pictures_below(&data);
    assert!(!kept.is_empty() && kept.iter().all(|file| !holds(file, PLACE)), "{} files", kept.len());
    let bot = start();
    let ann = Person { bot: &bot, session };
    ann.good("DELETE", &path, &Value::Null);
    ann.good("POST", "/api/clear", &json!({"session_id": "desk"}));
    bot.stop();
    assert_eq!(pictures_below(&data).len(), 0, "the picture goes with its messages");
    assert_eq!(crate::forgetting::find_in_home(home, "A grey square"), None);
}

fn speech(ann: &Person<'_>, bob: &Person<'_>) {
    let text = "The ferry to the islands leaves at six in the morning, and it comes back at nine at night.";
    let said = bob.good("POST", "/api/tts/synthesize", &json!({"text": text}));
    let wav = STANDARD.decode(said["audio_base64"].as_str().expect("sound")).expect("base64");
    let read = hound::WavReader::new(std::io::Cursor::new(&wav)).expect("a WAV file");
    let seconds = f64::from(read.duration()) / f64::from(read.spec().sample_rate);
    let told = said["duration_ms"].as_f64().expect("a duration") / 1_000.0;
    assert!(seconds > 3.0 && (seconds - told).abs() < 0.01, "{seconds} s, {told} s");
    let kept = ann.upload("/api/voice-samples/upload", "Joe.wav", &wav);
    let name = kept["filename"].as_str().expect("a name");
    assert!(name.starts_with("joe-") && kept["success"] == true, "{kept}");
    assert_eq!(ann.upload("/api/voice-samples/upload", "Joe.wav", &wav), kept, "the same recording is kept once");
    let url = kept["url"].as_str().expect("an address");
    let (status, sample) = ann.file(url);
    assert!(status == 200 && sample.starts_with(b"RIFF") && kept["size"] == sample.len(), "{status}");
    assert_eq!(bob.file(url).0, 403, "recordings are the owner's");
    // No voice on this machine can be cloned, so another one does not speak in its place.
    let cloned = bob.send("POST", "/api/tts/synthesize", &json!({"text": "Hello", "voice_sample_url": url}));
    assert_eq!(cloned.0, 422, "{}", cloned.1);
}

fn moods(ann: &Person<'_>, bob: &Person<'_>) {
    let given = ann.good("POST", "/api/status/mood", &json!({"mood": "happy"}));
    assert_eq!((&given["status"], &given["mood"]), (&json!("updated"), &json!("happy")));
    assert_eq!(ann.good("GET", "/api/status", &Value::Null)["mood"], "happy");
    assert_eq!(bob.good("GET", "/api/status", &Value::Null)["mood"], Value::Null, "it is felt in Ann's chats alone");
}

#[test]
fn without_a_server_the_web_says_how_to_get_pictures() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, data) = (scratch.path(), scratch.path().join("data"));
    let settings = [("AZERA__VOICE__ENABLED", "false")];
    let bot = Running::with(home, data.to_str().expect("a path"), &["--model", "scripted"], &settings);
    let ann = Person { bot: &bot, session: bot.own() };
    for (path, body, part) in [
        ("/api/images/generate", json!({"prompt": "a boat"}), "[images]"),
        ("/api/tts/synthesize", json!({"text": "Hello"}), "[speech_server]"),
    ] {
        let (status, problem) = ann.send("POST", path, &body);
        assert!(status == 409 && problem["error"].as_str().is_some_and(|why| why.contains(part)), "{status} {problem}");
    }
    assert_eq!(ann.good("GET", "/api/images", &Value::Null)["total"], 0);
    bot.stop();
}
