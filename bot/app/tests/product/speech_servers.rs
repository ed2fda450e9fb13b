//! Speech on servers, from outside: a speech server written for the test, on loopback.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::azera;

/// The transcript that the server gives.
const HEARD: &str = "The heron came back.";

/// A server that recognises one sentence and speaks half a second of a tone, or fails.
struct Server {
    address: String,
    stopped: Arc<AtomicBool>,
    fails: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (stopped, fails) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (stopping, failing) = (stopped.clone(), fails.clone());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                // The client may hang up at any time.
                stream.and_then(|stream| answer(stream, failing.load(Ordering::SeqCst))).ok();
            }
        });
        Self { address, stopped, fails, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        TcpStream::connect(&self.address).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn answer(mut stream: TcpStream, fails: bool) -> std::io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    std::io::copy(&mut (&mut stream).take(length.unwrap_or(0)), &mut std::io::sink())?;
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, kind, body) = match path {
        _ if fails => ("503 Busy", "application/json", br#"{"error":"no model"}"#.to_vec()),
        "/v1/audio/transcriptions" => ("200 OK", "application/json", format!(r#"{{"text":"{HEARD}"}}"#).into_bytes()),
        "/v1/audio/speech" => ("200 OK", "audio/pcm", [0, 32].repeat(12_000)),
        "/v1/audio/voices" => ("200 OK", "application/json", br#"{"voices":["af_heart"]}"#.to_vec()),
        "/v1/models" => ("200 OK", "application/json", br#"{"data":[{"id":"whisper-1"}]}"#.to_vec()),
        _ => ("404 Not Found", "application/json", b"{}".to_vec()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the seconds and the rate of a WAV file.
fn sound(file: &Path) -> (f64, u32) {
    let wav = hound::WavReader::open(file).expect("a WAV file");
    (f64::from(wav.duration()) / f64::from(wav.spec().sample_rate), wav.spec().sample_rate)
}

#[test]
fn servers_hear_and_speak_and_the_models_here_take_their_place() {
    let server = Server::start();
    let scratch = tempfile::tempdir().expect("a folder");
    let file = |name: &str| scratch.path().join(name).to_str().expect("a plain path").to_owned();
    let both = format!("url = \"http://{}\"\n", server.address);
    let config = format!(
        "[recognition_server]\napi = \"openai\"\nmodel = \"whisper-1\"\n{both}[speech_server]\napi = \"openai\"\nmodel = \"kokoro\"\nvoice = \"af_heart\"\n{both}[voice]\nspeech_model = \"whisper-tiny.en\"\n"
    );
    let config_file = file("azera.toml");
    std::fs::write(&config_file, config).expect("a configuration");
    let run = |arguments: &[&str]| {
        let output = azera(scratch.path(), &[&["--config", config_file.as_str()], arguments].concat(), "");
        (text(&output.stdout), text(&output.stderr), output.status.success())
    };
    let spoken = file("spoken.wav");
    let (_, errors, succeeded) = run(&["say", "The heron came back.", "--out", &spoken]);
    assert!(succeeded && errors.contains("af_heart"), "{errors}");
    assert_eq!(sound(Path::new(&spoken)), (0.5, 24_000));
    let here = file("here.wav");
    // Without liveliness, the same words always sound the same.
    let joe = ["--voice", "piper-en-us-joe", "--liveliness", "0", "--out", here.as_str()];
    assert!(run(&[&["say", "The old garden is beautiful today."], &joe[..]].concat()).2);
    assert_eq!(sound(Path::new(&here)).1, 22_050, "a voice on this machine asks no server");
    let (heard, errors, _) = run(&["transcribe", &here]);
    assert_eq!(heard.trim(), HEARD, "{errors}");
    let (doctor, ..) = run(&["doctor", "--data", &file("data")]);
    assert!(
        doctor.contains("ok    recognition server: whisper-1 on") && doctor.contains("ok    speech server: "),
        "{doctor}"
    );

    server.fails.store(true, Ordering::SeqCst);
    let instead = file("instead.wav");
    let (_, errors, succeeded) = run(&["say", "The heron came back.", "--out", &instead]);
    assert!(succeeded && errors.contains("the engine on this machine takes its place"), "{errors}");
    // Nobody says a text with another voice than the one that was named.
    let chosen = file("chosen.wav");
    let (_, errors, succeeded) = run(&["say", "The heron came back.", "--voice", "af_heart", "--out", &chosen]);
    assert!(!succeeded && errors.contains("no model") && !Path::new(&chosen).exists(), "{errors}");
    let (seconds, rate) = sound(Path::new(&instead));
    assert!(rate == 24_000 && (0.7..3.0).contains(&seconds), "{seconds} s");
    let (heard, errors, _) = run(&["transcribe", &here]);
    assert!(heard.to_lowercase().contains("garden") && errors.contains("no model"), "{heard}: {errors}");
    let (doctor, ..) = run(&["doctor", "--data", &file("data")]);
    assert!(
        doctor.contains("note  speech server: ") && doctor.contains("voice model on this machine takes its place"),
        "{doctor}"
    );
    let here = "whisper-tiny.en hears while the recognition server does not answer";
    assert!(doctor.contains("ok    models of speech: ") && doctor.contains(here), "{doctor}");
}

#[test]
fn doctor_warns_of_a_broken_model_that_only_takes_the_place_of_a_server() {
    const TINY: &str = "whisper-tiny.en";
    let server = Server::start();
    let scratch = tempfile::tempdir().expect("a folder");
    let models = scratch.path().join("models");
    for name in [TINY, "piper-en-us-joe", "silero-vad"] {
        std::fs::create_dir_all(models.join(name)).expect("a folder");
        for file in std::fs::read_dir(super::models().join(name)).expect("a model") {
            let file = file.expect("an entry");
            std::os::unix::fs::symlink(file.path(), models.join(name).join(file.file_name())).expect("a link");
        }
    }
    // The file has its length, and holds nothing.
    let file = models.join(TINY).join("model.gguf");
    let length = std::fs::metadata(&file).expect("the model").len();
    std::fs::remove_file(&file).expect("a link");
    std::fs::File::create(&file).and_then(|file| file.set_len(length)).expect("a file");
    let data = scratch.path().join("data").display().to_string();
    let doctor = |has_server: bool| {
        let mut command = super::command(scratch.path(), &["doctor", "--data", &data]);
        command.env("AZERA__MODELS__DIR", &models).env("AZERA__VOICE__SPEECH_MODEL", TINY);
        if has_server {
            let url = format!("http://{}", server.address);
            command.env("AZERA__RECOGNITION_SERVER__API", "openai").env("AZERA__RECOGNITION_SERVER__URL", url);
            command.env("AZERA__RECOGNITION_SERVER__MODEL", "whisper-1");
        }
        text(&super::fed(&mut command, "").stdout)
    };
    let broken = "the file model.gguf of the model whisper-tiny.en cannot be used";
    let told = doctor(false);
    assert!(told.contains(&format!("BAD   models of speech: {broken}")), "{told}");
    let told = doctor(true);
    assert!(told.contains("note  models of speech: ") && told.contains(broken), "{told}");
    assert!(told.contains("nothing hears while the recognition server does not answer"), "{told}");
    assert!(told.contains("ok    recognition server: "), "{told}");
    // Both are told where the server does not answer, either.
    server.fails.store(true, Ordering::SeqCst);
    let told = doctor(true);
    assert!(told.contains("nothing takes its place: the speech model on this machine cannot be used"), "{told}");
}

#[test]
fn a_sample_of_a_voice_is_kept_and_removed_whole() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = |name: &str| scratch.path().join(name).to_str().expect("a plain path").to_owned();
    let (data, voice) = (file("data"), file("voice.wav"));
    let sentence = "The ferry to the islands leaves at six in the morning, and it comes back at nine at night.";
    assert!(azera(scratch.path(), &["say", "--liveliness", "0", sentence, "--out", &voice], "").status.success());
    let samples = |arguments: &[&str]| {
        let output = azera(scratch.path(), &[&["voice", "samples"], arguments, &["--data", &data]].concat(), "");
        (text(&output.stdout), text(&output.stderr), output.status.success())
    };
    let (added, errors, succeeded) = samples(&["add", &voice, "--name", "joe", "--consent", "a synthetic voice"]);
    assert!(succeeded && added.contains("Only an XTTS server speaks with it"), "{added}{errors}");
    assert!(samples(&["list"]).0.contains("a synthetic voice"));
    assert!(!samples(&["add", &voice, "--name", "joe", "--consent", "again"]).2);
    assert!(samples(&["add", &voice, "--name", "joe2", "--consent", " "]).1.contains("this person agreed"));
    std::fs::write(file("letter.wav"), "Dear Ann").expect("a file");
    assert!(samples(&["add", &file("letter.wav"), "--name", "ann", "--consent", "Ann"]).1.contains("no WAV"));
    assert!(samples(&["remove", "joe"]).2);
    assert!(samples(&["list"]).0.contains("no sample yet"));
    assert_eq!(std::fs::read_dir(scratch.path().join("data/voice_samples")).expect("a folder").count(), 0);
}
