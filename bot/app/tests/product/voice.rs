//! `azera say` into voice notes, and `azera transcribe`, from outside.

use std::path::Path;

use super::{azera, command, fed, lines};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The id of the persona of [`put_even_persona`].
pub const EVEN: &str = "even";

/// Puts a persona without liveliness into a data folder that has no record yet: the same words always sound the same.
#[track_caller]
pub fn put_even_persona(data: &Path) {
    let personas = data.join("personas");
    std::fs::create_dir_all(&personas).expect("a folder");
    let file = "---\nid: even\nname: Azera\nkind: assistant\nvoice: {liveliness: 0}\n---\n\n# Azera\n\n## Intent\n\n\
                Answer questions about the town.\n\n## Core Identity\n\nYou know the town, its trains and its garden.\n";
    std::fs::write(personas.join("even.md"), file).expect("a file");
}

/// Speaks words into a voice note and returns the file. Without liveliness, the same words always sound the same.
#[track_caller]
pub fn spoken(folder: &Path, words: &str) -> Vec<u8> {
    let file = folder.join("spoken.ogg");
    let output = azera(folder, &["say", "--liveliness", "0", "--out", &file.to_string_lossy(), words], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    std::fs::read(file).expect("the file")
}

/// Returns the words of a sound file in lower case.
#[track_caller]
pub fn recognised(folder: &Path, file: &[u8], name: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, file).expect("a file");
    let output = azera(folder, &["transcribe", "--model", "whisper-tiny.en", &path.to_string_lossy()], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).to_lowercase()
}

#[test]
fn a_voice_note_is_written_and_read_again() {
    let scratch = tempfile::tempdir().expect("a folder");
    let note = spoken(scratch.path(), "The old lighthouse stands behind the garden.");
    assert!(note.starts_with(b"OggS") && note.windows(8).any(|bytes| bytes == b"OpusHead"));
    // Whether it is written "lighthouse" or "light house" does not matter.
    let words = recognised(scratch.path(), &note, "note.ogg").replace(' ', "");
    assert!(words.contains("lighthouse") && words.contains("garden"), "{words}");
}

#[test]
fn a_broken_voice_note_says_why_and_the_next_file_is_read() {
    let scratch = tempfile::tempdir().expect("a folder");
    let note = spoken(
        scratch.path(),
        "The old lighthouse stands behind the garden, and nobody has seen its keeper for a very long time.",
    );
    let cut = note.get(..note.len() / 2).expect("the half");
    let (broken, whole) = (scratch.path().join("broken.ogg"), scratch.path().join("whole.ogg"));
    std::fs::write(&broken, note.get(..60).expect("the begin")).expect("a file");
    std::fs::write(&whole, cut).expect("a file");
    let files = [broken.to_string_lossy(), whole.to_string_lossy()];
    let arguments = ["transcribe", "--json", "--model", "whisper-tiny.en", &*files[0], &*files[1]];
    let output = azera(scratch.path(), &arguments, "");
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("broken.ogg: it"), "{}", text(&output.stderr));
    let read = std::process::Output { status: std::process::ExitStatus::default(), ..output };
    let [only] = &lines(&read)[..] else { panic!("one file can be read") };
    assert!(only["seconds"].as_f64().is_some_and(|seconds| seconds > 0.2), "{only}");
}

#[test]
fn doctor_names_all_missing_models_of_speech_at_once() {
    let scratch = tempfile::tempdir().expect("a folder");
    let models = scratch.path().join("models");
    std::fs::create_dir(&models).expect("a folder");
    let data = scratch.path().join("data");
    let doctor = || {
        let mut command = command(scratch.path(), &["doctor", "--data", &data.to_string_lossy()]);
        text(&fed(command.env("AZERA__MODELS__DIR", &models), "").stdout)
    };
    let told = doctor();
    let all = "`azera models pull whisper-base piper-en-us-joe silero-vad`";
    assert!(told.contains("note  models of speech: not fetched: whisper-base, ") && told.contains(all), "{told}");
    // Another model of the kind takes the place of the usual one.
    let tiny = "whisper-tiny.en";
    std::os::unix::fs::symlink(super::models().join(tiny), models.join(tiny)).expect("a link");
    let told = doctor();
    assert!(told.contains("models of speech: not fetched: piper-en-us-joe, silero-vad;"), "{told}");
    // Voice messages need no detector of speech.
    for (name, expected) in
        [("piper-en-us-joe", "not fetched: silero-vad; calls need them:"), ("silero-vad", "silero-vad tells")]
    {
        std::os::unix::fs::symlink(super::models().join(name), models.join(name)).expect("a link");
        let told = doctor();
        assert!(told.contains(expected), "{told}");
    }
    let told = doctor();
    let good =
        "ok    models of speech: whisper-tiny.en hears, piper-en-us-joe speaks, silero-vad tells speech from noise";
    assert!(told.contains(good), "{told}");
}
