//! Models that are here and cannot be read.

use std::fs::File;
use std::os::unix::fs::symlink;

use super::{Room, fake, until};
use crate::bot::{Bot, models};

/// The speech model of the tests.
const SPEECH: &str = "whisper-tiny.en";

#[test]
fn whoever_asks_the_bot_in_is_told_that_its_speech_model_is_broken() {
    let folder = tempfile::tempdir().expect("a folder");
    for model in std::fs::read_dir(models()).expect("the models") {
        let model = model.expect("an entry");
        if model.file_name() != SPEECH {
            symlink(model.path(), folder.path().join(model.file_name())).expect("a link");
        }
    }
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
    until("the reason", || {
        room.command(0, "join", &[]).contains("I can neither hear nor speak here: cannot read").then_some(())
    });
    room.fake.world(|world| assert!(!world.is_voice_ready(room.channel)));
}
