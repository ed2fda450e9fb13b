//! The web console in a real browser: Chromium, driven by playwright-core, against the real binary.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::http::request;
use super::painter::{ENDLESS, Painter};
use super::web::Running;
use crate::ports;

/// A message whose first answer never ends.
const MESSAGE: &str = "When does the tide turn at the harbour?";
const THOUGHT: &str = "The almanac knows.";
const FIRST_WORDS: &str = "It turns";
const REST: &str = " at noon.";

/// Returns what `make test` sets.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn setting(name: &str) -> PathBuf {
    let value = std::env::var_os(name).map(PathBuf::from);
    value.unwrap_or_else(|| panic!("{name} is not set; run `make test`"))
}

/// Starts a script of bot/scripts/console.
fn script(name: &str, arguments: &[&str]) -> Child {
    let browser = setting("AZERA_TEST_BROWSER");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/console").join(name);
    let mut node = Command::new(browser.join("bin/node"));
    node.arg(file).args(arguments).env("AZERA_TEST_BROWSER", &browser);
    node.env("AZERA_TEST_CHROMIUM", setting("AZERA_TEST_CHROMIUM"));
    node.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("there is Node.js")
}

#[test]
fn two_people_use_the_console_in_a_browser() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let settings = [("AZERA__HEARTH__ENABLED", "true"), ("AZERA__VOICE__ENABLED", "false")];
    let bot = Running::with(scratch.path(), data.to_str().expect("a path"), &[], &settings);
    let link = bot.setup.clone().expect("nobody owns this Azera");
    let mut tour = script("tour.mjs", &[&bot.address, &link]);
    assert!(tour.wait().expect("it ends").success(), "what is wrong stands above");
    bot.stop();
}

#[test]
fn the_console_shows_pictures_speech_and_what_the_owner_looks_after() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let painter = Painter::start();
    let settings = [("AZERA__IMAGES__KIND", "automatic1111"), ("AZERA__IMAGES__URL", painter.url.as_str())];
    let bot = Running::with(scratch.path(), data.to_str().expect("a path"), &["--model", "scripted"], &settings);
    let link = bot.setup.clone().expect("nobody owns this Azera");
    let mut browser = script("studio.mjs", &[&bot.address, &link, ENDLESS]);
    assert!(browser.wait().expect("it ends").success(), "what is wrong stands above");
    bot.stop();
}

#[test]
fn somebody_talks_with_the_persona_in_a_browser() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let sound = scratch.path().join("said.wav");
    let words = ["say", "--liveliness", "0", "--out", sound.to_str().expect("a path")];
    let spoken =
        super::azera(scratch.path(), &[&words[..], &["The old lighthouse stands behind the garden."]].concat(), "");
    assert!(spoken.status.success(), "{}", String::from_utf8_lossy(&spoken.stderr));
    let settings = [("AZERA__VOICE__SPEECH_MODEL", "whisper-tiny.en")];
    let bot = Running::with(scratch.path(), data.to_str().expect("a path"), &["--model", "scripted"], &settings);
    let link = bot.setup.clone().expect("nobody owns this Azera");
    let sound = sound.to_str().expect("a path");
    // On a busy machine Chromium leaves parts of the sound out. One word of the sentence is enough.
    let mut browser = script("talk.mjs", &[&bot.address, &link, sound, "lighthouse|behind|garden"]);
    assert!(browser.wait().expect("it ends").success(), "what is wrong stands above");
    bot.stop();
}

#[test]
fn a_person_gives_a_program_access_in_a_browser() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let bot = Running::with(scratch.path(), data.to_str().expect("a path"), &["--model", "scripted"], &[]);
    let link = bot.setup.clone().expect("nobody owns this Azera");
    let mut browser = script("consent.mjs", &[&bot.address, &link]);
    assert!(browser.wait().expect("it ends").success(), "what is wrong stands above");
    bot.stop();
}

/// A server whose first answer to [`MESSAGE`] stops in the middle, until its reader is gone.
fn slow_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let is_first = Arc::new(AtomicBool::new(true));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let is_first = is_first.clone();
            // The client may hang up at any time.
            std::thread::spawn(move || answer(stream, &is_first).ok());
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream, is_first: &AtomicBool) -> std::io::Result<()> {
    let (path, body) = request(&stream)?;
    let piece = |message: serde_json::Value| format!("{}\n", json!({"message": message, "done": false}));
    let begins = [
        piece(json!({"role": "assistant", "content": "", "thinking": THOUGHT})),
        piece(json!({"role": "assistant", "content": FIRST_WORDS})),
    ];
    let ends = format!(
        "{}{}\n",
        piece(json!({"role": "assistant", "content": REST})),
        json!({"done": true, "done_reason": "stop"})
    );
    let answer = match path.as_str() {
        "/api/tags" => json!({"models": [{"name": "talker:latest", "digest": "t"}]}).to_string(),
        "/api/show" => {
            json!({"model_info": {"x.context_length": 4096}, "capabilities": ["completion", "thinking"]}).to_string()
        }
        _ => begins.concat(),
    };
    write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{answer}")?;
    if path == "/api/chat" {
        if body.to_string().contains(MESSAGE) && is_first.swap(false, Ordering::SeqCst) {
            stream.flush()?;
            return stream.read(&mut [0]).map(drop);
        }
        stream.write_all(ends.as_bytes())?;
    }
    Ok(())
}

#[test]
fn the_console_waits_for_a_reply_over_a_crash_and_a_restart() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let data = data.to_str().expect("a path");
    let (server, listen) = (slow_server(), format!("127.0.0.1:{}", ports::reserved()));
    let settings = [
        ("AZERA__HTTP__LISTEN", listen.as_str()),
        ("AZERA__CHAT_SERVER__API", "ollama"),
        ("AZERA__CHAT_SERVER__URL", &server),
        ("AZERA__CHAT_SERVER__MODEL", "talker"),
        ("AZERA__MODELS__THINKING", "true"),
    ];
    let bot = Running::with(scratch.path(), data, &[], &settings);
    let link = bot.setup.clone().expect("nobody owns this Azera");
    let whole = format!("{FIRST_WORDS}{REST}");
    let mut browser = script("restart.mjs", &[&bot.address, &link, MESSAGE, THOUGHT, FIRST_WORDS, &whole]);
    let mut told = String::new();
    BufReader::new(browser.stdout.take().expect("a pipe")).read_line(&mut told).expect("a line");
    assert_eq!(told, "the reply has begun\n");
    bot.kill();
    let bot = Running::with(scratch.path(), data, &[], &settings);
    assert!(browser.wait().expect("it ends").success(), "what is wrong stands above");
    bot.stop();
}
