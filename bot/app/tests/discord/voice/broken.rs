//! Models that are here and cannot be read, servers that do not answer, and calls that are switched off.

use std::fs::File;
use std::os::unix::fs::symlink;

use azera_fake_discord::Network;
use serde_json::Value;

use super::people::{Ears, Voice};
use super::{ANSWER, Room, SILENCE, fake, model, sounds, until};
use crate::bot::{Bot, models};
use crate::xtts::{ANA, Asked, CRAIG, Xtts};

/// The speech model of the tests.
const SPEECH: &str = "whisper-tiny.en";

#[test]
fn whoever_asks_the_bot_in_is_told_that_its_speech_model_is_broken() {
    let folder = models_without(SPEECH);
    // The file has its length, and holds nothing.
    let (whole, broken) = (models().join(SPEECH), folder.path().join(SPEECH));
    std::fs::create_dir(&broken).expect("a folder");
    std::fs::copy(whole.join("manifest.toml"), broken.join("manifest.toml")).expect("a copy");
    let length = std::fs::metadata(whole.join("model.gguf")).expect("the model").len();
    File::create(broken.join("model.gguf")).and_then(|file| file.set_len(length)).expect("a file");
    let fake = fake();
    let bot = Bot::new(&fake, None).with("AZERA__MODELS__DIR", &folder.path().display().to_string());
    let room = Room::outside(fake, bot, &["Ann"]);
    room.enter(0);
    let told = until("the reason", || refused(&room));
    assert!(told.contains("the file model.gguf of the model whisper-tiny.en cannot be used"), "{told}");
    assert!(told.contains("`azera models verify whisper-tiny.en`"), "{told}");
    // Where it lies is for the operator alone.
    let path = broken.join("model.gguf").display().to_string();
    assert!(!told.contains(&path) && room.bot.log().contains(&path), "{told}");
    room.fake.world(|world| assert!(!world.is_voice_ready(room.channel)));
    let doctor = room.bot.command(&["doctor"]).output().expect("the binary runs");
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("the file model.gguf of the model whisper-tiny.en cannot be used"), "{doctor}");
}

/// Asks the bot in. Returns why it does not come, once it saw the person who asks.
fn refused(room: &Room) -> Option<String> {
    Some(room.command(0, "join", &[])).filter(|told| !told.starts_with("You are in no voice channel"))
}

/// Returns a folder with the models of the tests but one.
fn models_without(left_out: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for model in std::fs::read_dir(models()).expect("the models") {
        let model = model.expect("an entry");
        if model.file_name() != left_out {
            symlink(model.path(), folder.path().join(model.file_name())).expect("a link");
        }
    }
    folder
}

#[test]
fn whoever_asks_the_bot_in_is_told_that_the_speech_server_does_not_answer() {
    let (folder, fake, xtts) = (models_without("piper-en-us-joe"), fake(), Xtts::start_away());
    let bot = Bot::new(&fake, None)
        .with("AZERA__MODELS__DIR", &folder.path().display().to_string())
        .with("AZERA__SPEECH_SERVER__API", "xtts")
        .with("AZERA__SPEECH_SERVER__URL", &xtts.url());
    let room = Room::outside(fake, bot, &["Ann"]);
    room.enter(0);
    let told = until("the reason", || refused(&room));
    assert!(told.contains("the speech server does not answer or tells no voice"), "{told}");
    assert!(!told.contains(&xtts.url()), "{told}");
    // It is asked again each time.
    xtts.come_back();
    room.join();
}

#[test]
fn a_server_that_was_down_when_the_bot_came_speaks_once_it_answers() {
    let (fake, xtts) = (fake(), Xtts::start_away());
    let (model, prompts) = model([ANSWER, ""]);
    let bot = Bot::new(&fake, Some(&model))
        .with_even_voice()
        .with("AZERA__SPEECH_SERVER__API", "xtts")
        .with("AZERA__SPEECH_SERVER__URL", &xtts.url());
    let room = Room { prompts, model: Some(model), ..Room::begin(fake, bot, &["Ann"]) };
    let (voice, ears) = (Voice::open(), Ears::open());
    room.press(0, "Hear me");
    room.say(&voice, 0, "When does the last train leave today?", Network::default());
    room.hear(&ears, 0, ANSWER);
    assert!(xtts.asked().is_empty());
    xtts.come_back();
    until("the server to speak", || {
        let spoken = room.spoken();
        room.say(&voice, 0, "When does the last train leave today?", Network::default());
        // Both voices have more packets than "hmm".
        room.fake.wait("the answer to be heard", |world| {
            let heard = || sounds(&world.voice.heard[spoken..]);
            (heard().count() > 10 && heard().next_back()?.at.elapsed() > SILENCE).then_some(())
        });
        let is_said = |asked: &Asked| matches!(asked, Asked::Said(_, words) if words.contains("last train"));
        xtts.asked().iter().any(is_said).then_some(())
    });
    assert_eq!(xtts.voice_of("last train"), ANA.1, "the first that the server lists");
}

#[test]
fn a_text_whose_voice_is_away_is_said_by_no_other_and_people_are_told() {
    let (fake, xtts) = (fake(), Xtts::start());
    let bot = Bot::new(&fake, None)
        .with_even_voice()
        .with("AZERA__SPEECH_SERVER__API", "xtts")
        .with("AZERA__SPEECH_SERVER__URL", &xtts.url());
    let room = Room::begin(fake, bot, &["Ann"]);
    let said = |from: usize| {
        room.fake.wait("the text to be said", |world| {
            let heard = || sounds(&world.voice.heard[from..]);
            (heard().count() > 10 && heard().next_back()?.at.elapsed() > SILENCE).then_some(())
        });
    };
    let craig = ("voice", CRAIG.0);
    let told = room.command(0, "say", &[("text", "The first train leaves at six."), craig]);
    assert!(told.contains("I say it."), "{told}");
    assert_eq!(xtts.voice_of("first train"), CRAIG.1);
    said(0);
    xtts.go_away();
    let spoken = room.spoken();
    room.command(0, "say", &[("text", "The last train leaves at ten."), craig]);
    room.fake.wait("the notice", |world| {
        let told = |message: &Value| message["content"].as_str()?.contains("the voice that was chosen").then_some(());
        world.bots_messages(room.channel).into_iter().find_map(told)
    });
    room.fake.world(|world| assert_eq!(sounds(&world.voice.heard[spoken..]).count(), 0));
    // What needs no voice is said by the one on this machine.
    room.command(0, "say", &[("text", "Good night, and sleep well.")]);
    said(spoken);
}

#[test]
fn calls_can_be_switched_off() {
    let fake = fake();
    let bot = Bot::new(&fake, None).with("AZERA__VOICE__CALLS", "false");
    let room = Room::outside(fake, bot, &["Ann"]);
    room.enter(0);
    let told = until("the reason", || refused(&room));
    assert!(told.contains("Voice calls are switched off here."), "{told}");
    let doctor = room.bot.command(&["doctor"]).output().expect("the binary runs");
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("calls are switched off by voice.calls = false"), "{doctor}");
}
