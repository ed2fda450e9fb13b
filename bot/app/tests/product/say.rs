//! `azera say` from outside.

use super::{azera, command, fed};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the rate, the seconds and the loudest sample of a WAV file.
#[track_caller]
fn sound(bytes: &[u8]) -> (u32, f64, i16) {
    let mut wav = hound::WavReader::new(bytes).expect("a WAV file");
    let rate = wav.spec().sample_rate;
    let samples: Vec<i16> = wav.samples().map(|sample| sample.expect("a sample")).collect();
    let peak = samples.iter().map(|sample| sample.saturating_abs()).max().unwrap_or_default();
    (rate, samples.len() as f64 / f64::from(rate), peak)
}

#[test]
fn text_becomes_a_wav_file() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = scratch.path().join("hello.wav");
    let output = azera(scratch.path(), &["say", "Good", "morning, Ann.", "--out", &file.to_string_lossy()], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let errors = text(&output.stderr);
    assert!(errors.contains("hello.wav: ") && errors.contains("real-time factor"), "{errors}");
    let (rate, seconds, peak) = sound(&std::fs::read(&file).expect("the file"));
    assert_eq!(rate, 22_050);
    assert!((0.8..3.5).contains(&seconds) && peak > 5_000, "{seconds} s, {peak}");
}

#[test]
fn the_standard_input_is_spoken_to_the_standard_output() {
    let scratch = tempfile::tempdir().expect("a folder");
    let say = |arguments: &[&str], input: &str| {
        let output = azera(scratch.path(), &[&["say", "--out", "-", "--liveliness", "0"], arguments].concat(), input);
        assert!(output.status.success(), "{}", text(&output.stderr));
        output.stdout
    };
    let spoken = say(&[], "The ferry leaves\nat six.\n\nIt is late.\n");
    let (_, seconds, _) = sound(&spoken);
    assert!((2.0..6.0).contains(&seconds), "{seconds}");
    assert_eq!(say(&["-"], "The ferry leaves at six. It is late."), spoken);
    let (_, fast, _) = sound(&say(&["--pace", "1.8"], "The ferry leaves at six. It is late."));
    assert!(fast < seconds * 0.75, "{fast} {seconds}");
}

#[test]
fn what_cannot_be_spoken_says_why() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = scratch.path().join("nothing.wav");
    let out = file.to_string_lossy();
    for (arguments, input, said) in [
        (vec!["...", "?!"], "", "the text has no words"),
        (vec![], " \n", "the text is empty"),
        (vec!["Hello", "--voice", "piper-en-us-jo"], "", "did you mean `piper-en-us-joe`?"),
        (vec!["Hello", "--voice", "smollm2-135m"], "", "there is no voice"),
        (vec!["Hello", "--pace", "9"], "", "give a number from 0.5 to 2"),
    ] {
        let output = azera(scratch.path(), &[&["say", "--out", &*out], &*arguments].concat(), input);
        assert!(!output.status.success() && text(&output.stderr).contains(said), "{said}: {}", text(&output.stderr));
        assert!(!file.exists(), "{said}: no file is left");
    }
}

#[test]
fn a_voice_that_is_not_here_is_named_with_its_command() {
    let scratch = tempfile::tempdir().expect("a folder");
    let mut say = command(scratch.path(), &["say", "Hello"]);
    say.env("AZERA__MODELS__DIR", scratch.path().join("models")).current_dir(scratch.path());
    let output = fed(&mut say, "");
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("azera models pull piper-en-us-joe"), "{}", text(&output.stderr));
    assert!(!scratch.path().join("say.wav").exists());
}

/// espeak-ng with one voice, which says every text as the file beside it.
const ESPEAK: &str = "#!/bin/sh\nhere=${0%/*}\n\
                      [ \"$1\" = --voices ] && { printf ' 5 en-us --/M x y\\n'; exit 0; }\n\
                      [ \"$*\" = '-v en-us -s 175 -b 1 --stdin --stdout' ] || exit 1\n\
                      cat > \"$here/said\"; cat \"$here/sound.wav\"\n";

#[test]
fn espeak_ng_is_the_last_resort_and_doctor_says_so() {
    use std::os::unix::fs::PermissionsExt as _;

    let scratch = tempfile::tempdir().expect("a folder");
    let (home, program) = (scratch.path(), scratch.path().join("espeak-ng"));
    let tone = (0..22_050).map(|n| (n as f32 * 0.05).sin() * 0.3).collect();
    let sound_file = azera_voice_recordings::wav_file(&azera_voice_api::Audio {
        rate: azera_voice_api::SampleRate(22_050),
        samples: tone,
    });
    std::fs::write(home.join("sound.wav"), sound_file).expect("a file");
    std::fs::write(&program, ESPEAK).expect("a file");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let run = |arguments: &[&str], espeak: &str| {
        let mut command = command(home, arguments);
        command.env("AZERA__MODELS__DIR", home.join("models")).env("AZERA__VOICE__ESPEAK", espeak);
        fed(command.env("PATH", format!("{}:/usr/bin:/bin", home.display())).current_dir(home), "")
    };
    let output = run(&["say", "--out", "-", "It is 14:05."], "true");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (rate, seconds, peak) = sound(&output.stdout);
    assert_eq!(rate, 22_050);
    assert!((1.3..1.4).contains(&seconds) && peak > 2_000, "{seconds} s, {peak}");
    assert_eq!(std::fs::read_to_string(home.join("said")).expect("a file"), "It is fourteen oh five.");
    assert!(text(&output.stderr).contains("espeak-ng speaks, as the last resort"), "{}", text(&output.stderr));
    let doctor = |espeak: &str| text(&run(&["doctor"], espeak).stdout);
    let told = doctor("true");
    let resort = "; espeak-ng speaks, as the last resort; `azera models pull piper-en-us-joe`";
    assert!(told.contains(resort) && !told.contains("whisper-base piper-en-us-joe"), "{told}");
    assert!(!doctor("false").contains("espeak-ng"));
    assert!(!run(&["say", "Hello."], "false").status.success());
}

#[test]
fn voices_are_listed_with_their_state() {
    let scratch = tempfile::tempdir().expect("a folder");
    let voices = text(&azera(scratch.path(), &["say", "--list-voices"], "").stdout);
    let joe = voices.lines().next().unwrap_or_default();
    assert!(joe.starts_with("piper-en-us-joe") && joe.contains("in use"), "{voices}");
    let others: Vec<&str> = voices.lines().skip(1).filter(|line| !line.starts_with(' ')).collect();
    let names: Vec<&str> = others.iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["piper-en-us-kristin", "piper-en-us-norman", "kokoro-82m"], "{voices}");
    assert!(!others.iter().any(|line| line.contains("in use")), "{voices}");
    let inside: Vec<&str> =
        voices.lines().filter(|line| line.starts_with(' ')).flat_map(|line| line.split(',')).collect();
    assert_eq!(inside.len(), 28, "{voices}");
    assert_eq!(inside.first().map(|name| name.trim()), Some("af_heart"), "{voices}");
    let models = text(&azera(scratch.path(), &["models", "list"], "").stdout);
    assert!(models.contains("piper-en-us-joe") && models.contains("silero-vad"), "{models}");
}
