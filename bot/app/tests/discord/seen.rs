//! Pictures that people show.

use std::sync::Arc;

use azera_fake_discord::{BOT, FakeDiscord};
use azera_model_image::Picture;
use serde_json::Value;

use crate::bot::Bot;
use crate::commands::square;
use crate::model::Model;
use crate::painter::Painter;
use crate::{answered_for_good, as_described, fake};

/// Returns a model that says whether it was told of the picture, and a picture.
fn model_and_picture() -> (Model, Vec<u8>) {
    let model = Model::start(Arc::new(|body: &Value| {
        let last = body["messages"].as_array().and_then(|messages| messages.last());
        let asked = last.and_then(|last| last["content"].as_str()).unwrap_or_default();
        let is_told = asked.contains("[seen in cat.png, a guess] A grey square.");
        (if is_told { "I see a grey square." } else { "I see nothing." }.to_owned(), String::new())
    }));
    let grey = Picture::from_rgb(8, 8, vec![120; 8 * 8 * 3]).expect("the right number of pixels");
    (model, grey.to_png(&[]).expect("a picture"))
}

fn show(fake: &FakeDiscord, dm: u64, who: u64, words: &str, png: &[u8]) -> u64 {
    fake.world(|world| world.upload(dm, who, words, &[("cat.png", png)]))
}

#[test]
fn a_picture_is_described_to_the_model() {
    let fake = fake();
    let ([_, bob, _], _) = square(&fake);
    let dm = fake.world(|world| world.dm(bob));
    let (model, png) = model_and_picture();
    let painter = Painter::start();
    let mut bot = Bot::new(&fake, Some(&model)).with("AZERA__VISION_SERVER__URL", &format!("{}/v1", painter.url));
    bot.start(&fake);
    for words in ["", "What is that?"] {
        let shown = show(&fake, dm, bob, words, &png);
        answered_for_good(&fake, dm, shown, "I see a grey square.");
    }
    as_described(&fake);
}

#[test]
fn a_picture_is_described_to_the_model_that_somebody_replies_to() {
    let fake = fake();
    let ([ann, bob, _], square) = square(&fake);
    let (model, png) = model_and_picture();
    let painter = Painter::start();
    let mut bot = Bot::new(&fake, Some(&model)).with("AZERA__VISION_SERVER__URL", &format!("{}/v1", painter.url));
    bot.start(&fake);
    // Nobody asks the bot about it yet.
    let shown = show(&fake, square, ann, "", &png);
    let asked = fake.world(|world| world.reply(square, bob, &format!("<@{BOT}> what is this?"), shown));
    answered_for_good(&fake, square, asked, "I see a grey square.");
    as_described(&fake);
}

#[test]
fn without_a_vision_server_it_says_that_it_cannot_see() {
    let fake = fake();
    let ([_, bob, _], _) = square(&fake);
    let dm = fake.world(|world| world.dm(bob));
    let (model, png) = model_and_picture();
    let mut bot = Bot::new(&fake, Some(&model));
    bot.start(&fake);
    let sentence = "I cannot see pictures here, because no vision model is set up. Please tell me what it shows.";
    let alone = show(&fake, dm, bob, "", &png);
    answered_for_good(&fake, dm, alone, sentence);
    let with_words = show(&fake, dm, bob, "What is that?", &png);
    answered_for_good(&fake, dm, with_words, &format!("I see nothing.\n\n{sentence}"));
    as_described(&fake);
}
