//! Recordings of people's voices: given, agreed to, used, and taken back.

use std::path::Path;
use std::sync::Arc;

use azera_fake_discord::{FakeDiscord, Invoked};
use serde_json::{Value, json};

use crate::bot::Bot;
use crate::commands::{answer_text, give, square};
use crate::model::Model;
use crate::xtts::{ANA, Asked, CLONED, Xtts};
use crate::{answered_for_good, as_described, fake};

/// What the recordings say.
const SENTENCE: &str = "The ferry to the islands leaves at six in the morning, and it comes back at nine at night.";

/// Returns a bot that speaks every reply through the server, and repeats the last word of a question.
fn bot(fake: &FakeDiscord, xtts: &Xtts) -> (Bot, Model) {
    let model = Model::start(Arc::new(|body: &Value| {
        let last = body["messages"].as_array().and_then(|messages| messages.last());
        let asked = last.and_then(|last| last["content"].as_str()).unwrap_or_default();
        let word = asked.trim_end_matches('?').rsplit(' ').next().unwrap_or_default().to_owned();
        (format!("You asked about {word}."), String::new())
    }));
    let bot = Bot::new(fake, Some(&model))
        .with("AZERA__VOICE__REPLIES", "always")
        .with("AZERA__SPEECH_SERVER__API", "xtts")
        .with("AZERA__SPEECH_SERVER__URL", &xtts.url())
        .with("AZERA__SPEECH_SERVER__VOICE", ANA.0);
    (bot, model)
}

/// Returns a recording of a voice.
fn recording(bot: &Bot, folder: &Path) -> Vec<u8> {
    let file = folder.join("recording.wav");
    let path = file.to_string_lossy();
    let said =
        bot.command(&["say", "--voice", "piper-en-us-joe", "--liveliness", "0", "--out", &path, SENTENCE]).output();
    assert!(said.expect("the binary runs").status.success());
    std::fs::read(file).expect("the file")
}

/// Gives `/voice sample-add` with a recording. Returns the id of the interaction.
fn add(fake: &FakeDiscord, channel: u64, who: u64, name: &str, of: Option<u64>, file: &[u8]) -> u64 {
    fake.world(|world| {
        let file = world.hand_in("recording.wav", file);
        let mut given = vec![json!({"name": "name", "type": 3, "value": name})];
        given.extend(of.map(|of| json!({"name": "of", "type": 3, "value": format!("<@{of}>")})));
        given.push(json!({"name": "recording", "type": 11, "value": file}));
        let options = json!([{"name": "sample-add", "type": 1, "options": given}]);
        world.invoke(channel, who, Invoked::Command { name: "voice".to_owned(), kind: 1, options, target: None })
    })
}

/// Presses a button of a message.
#[track_caller]
fn press(fake: &FakeDiscord, channel: u64, who: u64, message: &Value, label: &str) -> String {
    let buttons = message["components"][0]["components"].as_array().cloned().unwrap_or_default();
    let button = buttons.iter().find(|button| button["label"] == *label).unwrap_or_else(|| panic!("{message}"));
    let custom_id = button["custom_id"].as_str().expect("an id").to_owned();
    let message = message["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let pressed = fake.world(|world| world.invoke(channel, who, Invoked::Button { message, custom_id }));
    answer_text(fake, pressed)
}

/// Says that somebody agrees, or does not.
const YES: &str = "It is my voice, and you may";
const NO: &str = "No, delete it";

/// Returns the newest question to a person in a channel.
#[track_caller]
fn question(fake: &FakeDiscord, channel: u64, who: u64, by: &str) -> Value {
    fake.wait("the question", |world| {
        let asks = |message: &&&Value| {
            message["content"]
                .as_str()
                .is_some_and(|text| text.starts_with(&format!("<@{who}>, {by} gave me a recording")))
        };
        world.bots_messages(channel).iter().rev().find(asks).map(|message| (*message).clone())
    })
}

#[test]
fn a_persona_speaks_with_a_recorded_voice_only_while_its_owner_agrees() {
    let (fake, xtts, scratch) = (fake(), Xtts::start(), tempfile::tempdir().expect("a folder"));
    let ([ann, bob, cid], square) = square(&fake);
    let (mut bot, _model) = bot(&fake, &xtts);
    let file = recording(&bot, scratch.path());
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let speaks = |word: &str| {
        let asked = fake.world(|world| world.say(square, ann, &format!("Azera, what about {word}?")));
        let answer = format!("You asked about {word}.");
        answered_for_good(&fake, square, asked, &answer);
        xtts.voice_of(word)
    };
    let command = |who: u64, form: &str, name: &str| give(&fake, square, who, "voice", form, &[("name", name)]);
    let list = |who: u64| give(&fake, square, who, "voice", "samples", &[]);
    let given = || {
        let folder = std::fs::read_dir(bot.data().join("voice_samples/given"));
        folder.map_or(0, Iterator::count)
    };
    assert_eq!(speaks("ferries"), ANA.1);

    // Her own voice, which she confirms.
    let asked = add(&fake, square, ann, "ann", None, &file);
    assert!(answer_text(&fake, asked).contains("Is it your own voice"));
    assert!(command(ann, "sample-use", "ann").contains("There is no recording `ann` that you may use here"));
    let shown = fake.world(|world| world.interaction(asked).answer.message.clone()).expect("an answer");
    assert!(press(&fake, square, bob, &shown, YES).contains("No recording of your voice"));
    assert!(press(&fake, square, ann, &shown, YES).contains("Thank you."));
    assert!(command(bob, "sample-use", "ann").contains("Only admins"));
    assert!(command(ann, "sample-use", "ann").contains("speaks here with the voice `ann`"));
    assert!(!xtts.asked().contains(&Asked::Cloned), "nothing of it went to the server before it is needed");
    assert_eq!(speaks("boats"), CLONED);
    assert_eq!(speaks("harbors"), CLONED);
    let clones = |xtts: &Xtts| xtts.asked().iter().filter(|asked| **asked == Asked::Cloned).count();
    assert_eq!(clones(&xtts), 1, "it is cloned once");

    // Somebody else's voice waits for them.
    let asked = add(&fake, square, ann, "bob", Some(bob), &file);
    assert!(answer_text(&fake, asked).contains("I asked them here"));
    assert!(list(bob).contains("`bob`") && list(ann).contains("`bob`") && !list(cid).contains("`bob`"));
    let shown = question(&fake, square, bob, "Ann");
    assert!(press(&fake, square, ann, &shown, YES).contains("No recording of your voice"));
    assert!(press(&fake, square, bob, &shown, YES).contains("Thank you."));
    assert!(command(ann, "sample-use", "bob").contains("speaks here with the voice `bob`"));
    assert_eq!(speaks("islands"), CLONED);
    assert_eq!(clones(&xtts), 2);
    // He changes his mind: the recording is gone, and the usual voice speaks.
    assert!(command(bob, "sample-remove", "bob").contains("is deleted"));
    assert_eq!((speaks("lighthouses"), given()), (ANA.1, 2));
    // He refuses somebody else, who cannot press him.
    let asked = add(&fake, square, cid, "bob", Some(bob), &file);
    assert!(answer_text(&fake, asked).contains("I asked them here"));
    assert!(press(&fake, square, bob, &question(&fake, square, bob, "Cid"), NO).contains("I deleted the recording"));
    assert_eq!(given(), 2, "the sound and the data of one recording");
    let asked = add(&fake, square, cid, "bob", Some(bob), &file);
    assert!(answer_text(&fake, asked).contains("in the last 24 hours"));
    // So does forgetting.
    assert!(command(ann, "sample-use", "ann").contains("speaks here with the voice `ann`"));
    give(&fake, square, ann, "forget", "me", &[]);
    assert_eq!((speaks("whales"), given()), (ANA.1, 0));
    as_described(&fake);
}

/// Gives a form of `/voice`. Returns the id of the interaction.
fn voice(fake: &FakeDiscord, channel: u64, who: u64, form: &str, values: &[(&str, &str)]) -> u64 {
    let values: Vec<Value> =
        values.iter().map(|(name, value)| json!({"name": name, "type": 3, "value": value})).collect();
    let options = json!([{"name": form, "type": 1, "options": values}]);
    let command = Invoked::Command { name: "voice".to_owned(), kind: 1, options, target: None };
    fake.world(|world| world.invoke(channel, who, command))
}

#[test]
fn a_voice_message_becomes_a_voice_that_says_a_text() {
    let (fake, xtts, scratch) = (fake(), Xtts::start(), tempfile::tempdir().expect("a folder"));
    let ([ann, bob, _], square) = square(&fake);
    let (mut bot, _model) = bot(&fake, &xtts);
    let note = scratch.path().join("note.ogg");
    let path = note.to_string_lossy();
    let said =
        bot.command(&["say", "--voice", "piper-en-us-joe", "--liveliness", "0", "--out", &path, SENTENCE]).output();
    assert!(said.expect("the binary runs").status.success());
    let note = std::fs::read(&note).expect("the file");
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    // What somebody else said is not hers to give.
    fake.world(|world| world.speak(square, bob, &note, 5.0));
    let none = answer_text(&fake, voice(&fake, square, ann, "sample-add", &[("name", "ann")]));
    assert!(none.starts_with("Send `/voice samples add NAME` with a recording"), "{none}");
    fake.world(|world| world.speak(square, ann, b"OggS of something else", 5.0));
    fake.world(|world| world.speak(square, ann, &note, 5.0));
    fake.world(|world| world.say(square, ann, "That was me."));
    let asked = voice(&fake, square, ann, "sample-add", &[("name", "ann")]);
    let told = answer_text(&fake, asked);
    assert!(told.starts_with("I took your voice message of 20") && told.contains("Is it your own voice"), "{told}");
    let shown = fake.world(|world| world.interaction(asked).answer.message.clone()).expect("an answer");
    assert!(press(&fake, square, ann, &shown, YES).contains("Thank you."));
    // Nobody is in a call, so the text comes as a recording.
    let say = |who: u64, voice_name: &str| {
        let text = "We meet at the lighthouse";
        let asked = voice(&fake, square, who, "say", &[("text", text), ("voice", voice_name)]);
        let told = answer_text(&fake, asked);
        (told, fake.world(|world| world.interaction(asked).answer.files.len()))
    };
    let (told, files) = say(ann, "ann");
    // The answer is shown with what its file holds.
    assert!(told.starts_with("Here it is as a recording.OggS") && files == 1, "{files}: {told}");
    assert_eq!(xtts.voice_of("lighthouse"), CLONED);
    assert_eq!(say(bob, ANA.0).1, 1);
    let (told, files) = say(bob, "ann");
    assert!(told.starts_with("There is no voice `ann` here. There are: `"), "{told}");
    assert!(told.contains(ANA.0) && files == 0, "{told}");
    as_described(&fake);
}

#[test]
fn the_command_line_exports_removes_and_forgets_what_was_given_in_a_chat() {
    let (fake, xtts, scratch) = (fake(), Xtts::start(), tempfile::tempdir().expect("a folder"));
    let ([ann, ..], square) = square(&fake);
    let (mut bot, _model) = bot(&fake, &xtts);
    let file = recording(&bot, scratch.path());
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    for name in ["one", "two"] {
        let asked = add(&fake, square, ann, name, None, &file);
        answer_text(&fake, asked);
        let shown = fake.world(|world| world.interaction(asked).answer.message.clone()).expect("an answer");
        assert!(press(&fake, square, ann, &shown, YES).contains("Thank you."));
    }
    assert!(give(&fake, square, ann, "voice", "sample-use", &[("name", "one")]).contains("the voice `one`"));
    let asked = fake.world(|world| world.say(square, ann, "Azera, what about ferries?"));
    answered_for_good(&fake, square, asked, "You asked about ferries.");
    bot.stop(&fake);
    let run = |arguments: &[&str]| {
        let output = bot.command(arguments).output().expect("the binary runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let person = format!("discord:{ann}");
    let export =
        || -> Value { serde_json::from_str(&run(&["memory", "export", "--person", &person]).0).expect("JSON") };
    let samples = export()["voice_samples"].as_array().cloned().expect("a list");
    assert!(samples.len() == 2 && samples.iter().all(|sample| sample["is_your_voice"] == true), "{samples:?}");
    let id = samples.iter().find(|sample| sample["name"] == "one").and_then(|sample| sample["id"].as_str());
    let (said, warned) = run(&["voice", "samples", "remove", id.expect("an id")]);
    assert!(said.contains("is removed") && !warned.contains("may still name"), "{said}{warned}");
    assert_eq!(export()["voice_samples"].as_array().map(Vec::len), Some(1));
    let (receipt, _) = run(&["memory", "forget", "--person", &person, "--yes"]);
    assert!(receipt.contains("\"voice_samples\": 1"), "{receipt}");
    let folder = std::fs::read_dir(bot.data().join("voice_samples/given")).expect("a folder");
    assert_eq!(folder.count(), 0);
}

#[test]
fn a_recording_that_cannot_be_used_is_not_kept() {
    let (fake, xtts) = (fake(), Xtts::start_api());
    let ([ann, ..], square) = square(&fake);
    let (mut bot, _model) = bot(&fake, &xtts);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let answer = |file: &[u8]| answer_text(&fake, add(&fake, square, ann, "ann", None, file));
    let refused = answer(b"RIFF____WAVEfmt ");
    assert!(
        refused.contains("takes no recordings over the network") && refused.contains("I kept nothing."),
        "{refused}"
    );
    assert!(answer(b"a letter").contains("it is no WAV, MP3, Ogg or FLAC file"));
    bot.stop(&fake);
    assert!(!bot.data().join("voice_samples").exists());
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    let refused = answer(b"RIFF____WAVEfmt ");
    assert!(refused.contains("I need an XTTS server") && refused.contains("I kept nothing."), "{refused}");
    as_described(&fake);
}
