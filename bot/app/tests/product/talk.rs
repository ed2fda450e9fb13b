//! `azera voice` from outside: programs in the place of a microphone and a loudspeaker.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use azera_voice_api::{Audio, RECOGNITION_RATE, SampleRate};
use azera_voice_recordings::{read_bytes, wav_file};

use serde_json::json;

use super::http::request;
use super::voice::{EVEN, put_even_persona, recognised, spoken};
use super::{command, fed};

/// The rate of what is played.
const PLAYED: SampleRate = SampleRate(22_050);

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Puts a program into a folder.
fn program(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
}

/// Returns what a microphone gives for these words.
fn sound(folder: &Path, words: &str) -> Vec<u8> {
    let audio = read_bytes(spoken(folder, words), "audio/ogg", 60).expect("sound");
    assert_eq!(audio.rate, RECOGNITION_RATE);
    let silence = vec![0.0; RECOGNITION_RATE.samples(Duration::from_millis(200))];
    let samples = silence.iter().chain(&audio.samples).chain(&silence);
    samples.flat_map(|sample| ((sample * f32::from(i16::MAX)) as i16).to_le_bytes()).collect()
}

/// A running `azera voice`. Dropping it ends it.
struct Talking(Child);

impl Talking {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().expect("the binary runs"))
    }

    /// Ends the conversation at the end of its input, and returns what stood in the terminal as errors and notices.
    #[track_caller]
    fn end(&mut self) -> String {
        drop(self.0.stdin.take());
        let mut notices = String::new();
        self.0.stderr.take().expect("a pipe").read_to_string(&mut notices).expect("UTF-8");
        assert!(self.0.wait().expect("it ends").success(), "{notices}");
        notices
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Returns the command with nothing to find but the programs in a folder. A microphone is there, and hears silence.
fn talk_with_programs_of(home: &Path) -> Command {
    program(home, "arecord", "/usr/bin/head -c 64000 /dev/zero; exec /usr/bin/tail -f /dev/null");
    let mut talk = command(home, &["voice", "--model", "scripted", "--as", "Ann"]);
    talk.env("PATH", home);
    talk
}

/// What programs play in the place of a loudspeaker, through a pipe.
struct Played {
    pieces: Receiver<Vec<u8>>,
    bytes: Vec<u8>,
}

impl Played {
    /// Makes a pipe. It is always read, so that the program never waits for the test.
    #[track_caller]
    fn at(path: &Path) -> Self {
        assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
        let (sender, pieces) = channel();
        let path = path.to_path_buf();
        // Opening the pipe waits for a program. The thread ends with the folder or with the test process.
        std::thread::spawn(move || {
            while let Ok(mut pipe) = File::open(&path) {
                let mut piece = [0; 16 << 10];
                while let Ok(count @ 1..) = pipe.read(&mut piece) {
                    // The test may have heard enough.
                    sender.send(piece[..count].to_vec()).ok();
                }
            }
        });
        Self { pieces, bytes: Vec::new() }
    }

    /// Waits until something is found in what was played so far.
    #[track_caller]
    fn until<T>(&mut self, find: impl Fn(&[u8]) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            self.bytes.extend(self.pieces.recv_timeout(left).expect("something is played"));
            self.bytes.extend(self.pieces.try_iter().flatten());
            if let Some(found) = find(&self.bytes) {
                return found;
            }
        }
    }

    /// Waits until something is played that is not silence.
    #[track_caller]
    fn until_sound(&mut self) {
        let is_loud = |pair: &[u8; 2]| i16::from_le_bytes(*pair).unsigned_abs() > 1_000;
        self.until(|bytes| bytes.as_chunks().0.iter().any(is_loud).then_some(()));
    }
}

#[test]
fn the_next_program_plays_when_one_stops() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, played) = (scratch.path(), scratch.path().join("played.raw"));
    let mut sound = Played::at(&played);
    program(home, "aplay", "/usr/bin/head -c 20000 > /dev/null; exit 1");
    program(home, "pacat", &format!("exec /usr/bin/cat > '{}'", played.display()));
    let mut talking = Talking::start(&mut talk_with_programs_of(home));
    writeln!(talking.0.stdin.as_mut().expect("a pipe"), "Where is the old lighthouse?").expect("it reads");
    sound.until_sound();
    let notices = talking.end();
    assert!(notices.contains("(aplay stopped; pacat plays from here on)"), "{notices}");
}

#[test]
fn without_a_loudspeaker_it_goes_on_as_text() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    program(home, "aplay", "exit 1");
    let mut talking = Talking::start(&mut talk_with_programs_of(home));
    let mut output = BufReader::new(talking.0.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    for question in ["Where is the old lighthouse?", "And who lives there?"] {
        writeln!(talking.0.stdin.as_mut().expect("a pipe"), "{question}").expect("it reads");
        assert!(output.any(|line| !line.trim().is_empty()), "an answer to {question}");
    }
    let notices = talking.end();
    let notice = "(aplay stopped, and nothing else here plays sound: my answers are text from here on)";
    assert_eq!(notices.matches(notice).count(), 1, "{notices}");
}

#[test]
fn a_reply_stays_whole_if_the_last_loudspeaker_stops_in_the_middle_of_it() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, played, stop) = (scratch.path(), scratch.path().join("played.raw"), scratch.path().join("stop"));
    let mut sound = Played::at(&played);
    let script = format!("while [ ! -e '{}' ]; do /usr/bin/head -c 882; done > '{}'", stop.display(), played.display());
    program(home, "aplay", &script);
    let mut talking = Talking::start(&mut talk_with_programs_of(home));
    let mut output = BufReader::new(talking.0.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    writeln!(talking.0.stdin.as_mut().expect("a pipe"), "Where is the old lighthouse?").expect("it reads");
    let written = output.find(|line| !line.trim().is_empty()).expect("an answer");
    sound.until_sound();
    std::fs::write(&stop, "").expect("a file");
    // The next line would interrupt what is said.
    let mut notices = BufReader::new(talking.0.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(notices.any(|line| line.contains("nothing else here plays sound")), "it says so");
    writeln!(talking.0.stdin.as_mut().expect("a pipe"), "And who lives there?").expect("it reads");
    assert!(output.any(|line| !line.trim().is_empty()), "another answer");
    drop(talking.0.stdin.take());
    assert!(talking.0.wait().expect("it ends").success());
    let export = command(home, &["memory", "export", "--person", "console:ann"]).output().expect("the binary runs");
    let export = String::from_utf8_lossy(&export.stdout);
    let answer = written.rsplit(": ").next().unwrap_or_default().trim();
    assert!(export.contains("old lighthouse") && export.contains(answer), "{answer:?}: {export}");
    assert!(!export.contains('\u{2026}') && !export.contains("\\u2026"), "{export}");
}

/// A chat server that gives one answer to every question.
fn chat_server(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let reply = move |mut stream: TcpStream| -> std::io::Result<()> {
        let (path, _) = request(&stream)?;
        let body = match path.as_str() {
            "/api/tags" => json!({"models": [{"name": "talker:latest", "digest": "t"}]}).to_string(),
            "/api/show" => {
                json!({"model_info": {"x.context_length": 4096}, "capabilities": ["completion"]}).to_string()
            }
            _ => format!(
                "{}\n{}\n",
                json!({"message": {"role": "assistant", "content": answer}, "done": false}),
                json!({"done": true, "done_reason": "stop"})
            ),
        };
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
    };
    // The client may hang up at any time. The thread ends with the test process.
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(reply(stream))));
    format!("http://{address}")
}

/// Returns what was played, without the silence before it, once a sentence of it can be heard and silence follows.
fn sentence_played(bytes: &[u8]) -> Option<Vec<f32>> {
    /// Samples of 20 ms.
    const PIECE: usize = 441;
    /// Pieces that a sentence has at least, and pieces of silence after it.
    const SOUND: usize = 50;
    const SILENCE: usize = 100;
    let samples = bytes.as_chunks().0.iter();
    let samples: Vec<f32> = samples.map(|pair| f32::from(i16::from_le_bytes(*pair)) / f32::from(i16::MAX)).collect();
    let (pieces, _) = samples.as_chunks::<PIECE>();
    let loud: Vec<bool> = pieces.iter().map(|piece| piece.iter().any(|sample| sample.abs() > 0.02)).collect();
    let (first, last) = (loud.iter().position(|is_loud| *is_loud)?, loud.iter().rposition(|is_loud| *is_loud)?);
    let is_over = loud.len() > last + SILENCE && loud.iter().filter(|is_loud| **is_loud).count() >= SOUND;
    is_over.then(|| samples[first.saturating_sub(1) * PIECE..].to_vec())
}

#[test]
fn a_question_to_the_microphone_is_answered_by_the_loudspeaker() {
    const ANSWER: &str = "The last train leaves at six in the evening.";
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (question, answer) = (home.join("question.raw"), home.join("answer.raw"));
    std::fs::write(&question, sound(home, "Where is the old lighthouse?")).expect("a file");
    let mut played = Played::at(&answer);
    program(home, "arecord", &format!("cat '{}'; exec tail -f /dev/null", question.display()));
    program(home, "aplay", &format!("exec cat > '{}'", answer.display()));
    let data = home.join("data");
    put_even_persona(&data);
    let mut talk = command(home, &["voice", "--hands-free", "--as", "Ann", "--persona", EVEN, "--data"]);
    talk.arg(&data).env("PATH", format!("{}:/usr/bin:/bin", home.display()));
    talk.env("AZERA__CHAT_SERVER__API", "ollama").env("AZERA__CHAT_SERVER__MODEL", "talker");
    talk.env("AZERA__CHAT_SERVER__URL", chat_server(ANSWER));
    let mut talking = Talking::start(&mut talk);
    let mut output = BufReader::new(talking.0.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let heard = output.next().expect("what was heard").to_lowercase();
    assert!(heard.starts_with("ann: ") && heard.contains("light"), "{heard}");
    assert!(output.any(|line| line.contains(ANSWER)), "the answer is written");
    let samples = played.until(sentence_played);
    // The end of the input ends the conversation.
    talking.end();
    let said = recognised(home, &wav_file(&Audio { rate: PLAYED, samples }), "answer.wav");
    for word in ["last", "train", "leaves", "evening"] {
        assert!(said.contains(word), "{ANSWER:?} was said as {said:?}");
    }
}

#[test]
fn without_a_microphone_it_says_what_is_missing() {
    let scratch = tempfile::tempdir().expect("a folder");
    program(scratch.path(), "arecord", "echo 'no soundcards found' >&2; exit 1");
    let path = format!("{}:/usr/bin:/bin", scratch.path().display());
    let output = fed(command(scratch.path(), &["voice"]).env("PATH", path), "");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("there is no microphone") && errors.contains("no soundcards found"), "{errors}");
    assert!(errors.contains("parec is not installed (package pulseaudio-utils)"), "{errors}");
}
