//! espeak-ng in the form of a program that refuses what the real one refuses.

#![cfg(unix)]

use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use azera_voice_api::{Audio, Error, SampleRate, Style, TextToSpeech as _};
use azera_voice_engines::{Espeak, EspeakLimits};
use azera_voice_recordings::wav_file;

/// Lists voices, and answers a text with the file beside it. It notes its arguments and its text.
const PROGRAM: &str = r#"
here=$(dirname "$0")
if [ "$1" = --voices ]; then
    [ $# = 1 ] || exit 1
    printf 'Pty Language Age/Gender VoiceName File Other Languages\n'
    printf ' 5  af     --/M  Afrikaans         gmw/af\n 5  de     --/M  German            gmw/de\n'
    printf ' 5  en-us  --/M  English_(America) gmw/en-US (en 3)\n'
    exit 0
fi
printf '%s ' "$@" > "$here/asked"
while [ $# -gt 0 ]; do
    case "$1" in
        -v) case "$2" in af|de|en-us) ;; *) exit 1 ;; esac; shift ;;
        -s) [ "$2" -ge 80 ] && [ "$2" -le 450 ] || exit 1; shift ;;
        -b) [ "$2" = 1 ] || exit 1; shift ;;
        --stdin) reads=1 ;;
        --stdout) writes=1 ;;
        *) exit 1 ;;
    esac
    shift
done
[ "$reads$writes" = 11 ] || exit 1
cat > "$here/said"
cat "$here/sound.wav"
"#;

/// One test at a time writes programs and runs them: a program that is open for writing cannot be started, and a child of
/// another test would hold it open.
static ALONE: Mutex<()> = Mutex::new(());

struct Folder {
    folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Folder {
    /// Puts a program into a folder of its own.
    fn with(script: &str) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("espeak-ng");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("a file");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
        let tone = (0..22_050).map(|n| (n as f32 * 0.05).sin() * 0.3).collect();
        let mut sound = wav_file(&Audio { rate: SampleRate(22_050), samples: tone });
        // The program does not know the length when it writes this.
        sound[40..44].copy_from_slice(&0x7FFF_F000_u32.to_le_bytes());
        std::fs::write(folder.path().join("sound.wav"), sound).expect("a file");
        Self { folder, _alone: alone }
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("espeak-ng")
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).expect("the file")
    }
}

fn open(program: &Path) -> Espeak {
    Espeak::open(program, EspeakLimits::default()).expect("it answers").expect("it is there")
}

fn speak(voices: &Espeak, text: &str, style: &Style) -> Result<Vec<Audio>, Error> {
    let mut pieces = Vec::new();
    voices.speak(text, style, &mut |piece| {
        pieces.push(piece.audio);
        ControlFlow::Continue(())
    })?;
    Ok(pieces)
}

#[test]
fn a_sentence_goes_to_the_program_and_its_sound_comes_back() {
    let folder = Folder::with(PROGRAM);
    let voices = open(&folder.program());
    let ids: Vec<String> = voices.voices().into_iter().map(|voice| voice.id).collect();
    assert_eq!(ids, ["espeak-ng-en-us", "espeak-ng-de", "espeak-ng-af"]);
    // What looks like an option or a command is text.
    let text = "--help; $(reboot) [[hello]] --stdout";
    let pieces = speak(&voices, text, &Style::of("espeak-ng-de")).expect("it speaks");
    assert_eq!(folder.read("said"), "--help; $(reboot) ((hello)) --stdout");
    assert_eq!(folder.read("asked"), "-v de -s 175 -b 1 --stdin --stdout ");
    let [audio] = pieces.as_slice() else { panic!("{} pieces", pieces.len()) };
    assert_eq!(audio.rate, SampleRate(22_050));
    let seconds = audio.duration().as_secs_f32();
    assert!((1.3..1.4).contains(&seconds), "a second of sound and a pause: {seconds}");
    // A higher voice speaks slower, and its sound becomes shorter.
    let style = Style { pitch: 1.2, pace: 2.0, ..Style::of("espeak-ng-en-us") };
    let audio = speak(&voices, "Hello.", &style).expect("it speaks").remove(0);
    assert_eq!(folder.read("asked"), "-v en-us -s 292 -b 1 --stdin --stdout ");
    let seconds = audio.duration().as_secs_f32();
    assert!((0.95..1.05).contains(&seconds), "0.83 s of sound and a shorter pause: {seconds}");
    assert!(speak(&voices, "...", &Style::of("espeak-ng-de")).expect("nothing to say").is_empty());
    let unknown = speak(&voices, "Hello.", &Style::of("joe"));
    assert!(matches!(unknown, Err(Error::UnknownVoice { known, .. }) if known.len() == 3));
}

#[test]
fn a_program_that_is_not_there_is_no_error_and_one_that_lists_nothing_is() {
    assert!(Espeak::open(Path::new("no-such-program-4711"), EspeakLimits::default()).expect("no error").is_none());
    let folder = Folder::with("exit 1");
    let error = Espeak::open(&folder.program(), EspeakLimits::default()).expect_err("it lists nothing").to_string();
    assert_eq!(error, "espeak-ng failed: it lists no voice");
}

/// Lists one voice; what follows speaks.
const LISTS: &str = "[ \"$1\" = --voices ] && { printf ' 5 de --/M x y\\n'; exit 0; }\n";

#[test]
fn a_program_that_hangs_does_not_answer() {
    let folder = Folder::with(&format!("{LISTS}exec tail -f /dev/null"));
    let limits = EspeakLimits { time: Duration::from_millis(100), ..EspeakLimits::default() };
    let voices = open(&folder.program()).within(limits);
    let error = speak(&voices, "Hello.", &Style::of("espeak-ng-de")).expect_err("it hangs").to_string();
    assert_eq!(error, "espeak-ng failed: it did not answer within 0.1 s");
}

#[test]
fn a_program_that_never_stops_sending_is_ended_with_what_it_started() {
    // It writes down its own id and that of its child, and neither ends.
    let endless = "tail -f /dev/null & echo \"$$ $!\" > \"$(dirname \"$0\")/ids\"; exec cat /dev/zero";
    let folder = Folder::with(&format!("{LISTS}{endless}"));
    let voices = open(&folder.program()).within(EspeakLimits { bytes: 100_000, ..EspeakLimits::default() });
    let error = speak(&voices, "Hello.", &Style::of("espeak-ng-de")).expect_err("it is too much").to_string();
    assert_eq!(error, "espeak-ng failed: it sent more than 100000 bytes");
    // A process that was killed and not yet collected has no memory any more.
    let runs = |id: &str| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status"));
        status.is_ok_and(|status| status.contains("VmSize"))
    };
    let ids = folder.read("ids");
    let (own, childs) = ids.trim().split_once(' ').expect("two ids");
    assert!(!runs(own));
    // Nobody here waits for the child of a child, so its end may take a moment.
    let since = Instant::now();
    while runs(childs) {
        assert!(since.elapsed() < Duration::from_secs(60), "the child of the program goes on");
        std::thread::yield_now();
    }
}

#[test]
fn a_program_that_sends_no_sound_fails() {
    let folder = Folder::with(&format!("{LISTS}exit 1"));
    let error =
        speak(&open(&folder.program()), "Hello.", &Style::of("espeak-ng-de")).expect_err("no sound").to_string();
    assert_eq!(error, "espeak-ng failed: it sent no sound");
}
