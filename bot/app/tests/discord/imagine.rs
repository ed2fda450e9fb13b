//! Pictures on Discord: progress and picture in one message, with buttons.

use azera_fake_discord::{FakeDiscord, Invoked};
use serde_json::Value;

use crate::bot::Bot;
use crate::commands::{answer_text, give, square};
use crate::painter::Painter;
use crate::{as_described, fake};

/// Waits for a message of the bot with a picture and these words; returns it.
#[track_caller]
fn picture(fake: &FakeDiscord, channel: u64, words: &str) -> Value {
    fake.wait(&format!("a picture with {words:?}"), |world| {
        let drawn = |message: &&Value| {
            message["attachments"].as_array().is_some_and(|files| files.len() == 1)
                && message["content"].as_str().is_some_and(|text| text.contains(words))
        };
        world.bots_messages(channel).into_iter().find(drawn).cloned()
    })
}

#[track_caller]
fn press(fake: &FakeDiscord, channel: u64, message: &Value, who: u64, label: &str) -> String {
    let buttons = message["components"][0]["components"].as_array().cloned().unwrap_or_default();
    let button = buttons.iter().find(|button| button["label"] == *label).expect("a button");
    let custom_id = button["custom_id"].as_str().expect("an id").to_owned();
    let id = message["id"].as_str().and_then(|id| id.parse().ok()).expect("a number");
    let pressed = fake.world(|world| world.invoke(channel, who, Invoked::Button { message: id, custom_id }));
    answer_text(fake, pressed)
}

#[test]
fn a_picture_comes_with_buttons_that_draw_vary_and_delete_it() {
    let fake = fake();
    let ([_, bob, cid], square) = square(&fake);
    let painter = Painter::start();
    let mut bot =
        Bot::new(&fake, None).with("AZERA__IMAGES__KIND", "automatic1111").with("AZERA__IMAGES__URL", &painter.url);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let options = [("prompt", "a lighthouse"), ("size", "wide"), ("seed", "7")];
    let answer = give(&fake, square, bob, "imagine", "", &options);
    assert!(answer.contains("/picture cancel"), "{answer}");
    let first = picture(&fake, square, "seed 7");
    assert!(first["content"].as_str().is_some_and(|text| text.contains("a lighthouse")), "{first}");
    press(&fake, square, &first, cid, "Variation");
    fake.wait("a second picture", |world| {
        let pictures = world.bots_messages(square);
        let count =
            pictures.iter().filter(|message| message["attachments"][0]["filename"] == "a-lighthouse.png").count();
        (count == 2).then_some(())
    });
    let strength = painter.asked.lock().expect("nobody panics while they hold this")[1]["denoising_strength"].as_f64();
    assert!(strength.is_some_and(|strength| (strength - 0.35).abs() < 1e-6), "{strength:?}");
    let refused = press(&fake, square, &first, cid, "Delete");
    assert!(refused.contains("admin"), "{refused}");
    press(&fake, square, &first, bob, "Delete");
    fake.wait("the picture to go", |world| {
        world.bots_messages(square).iter().all(|message| message["id"] != first["id"]).then_some(())
    });
    as_described(&fake);
}

#[test]
fn a_kill_loses_no_picture_and_shows_none_twice() {
    let fake = fake();
    let ([ann, bob, cid], square) = square(&fake);
    let painter = Painter::start();
    painter.is_broken.store(true, std::sync::atomic::Ordering::SeqCst);
    let mut bot =
        Bot::new(&fake, None).with("AZERA__IMAGES__KIND", "automatic1111").with("AZERA__IMAGES__URL", &painter.url);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    for (who, prompt) in [(ann, "a red boat"), (bob, "a green boat"), (cid, "a blue boat")] {
        give(&fake, square, who, "imagine", "", &[("prompt", prompt)]);
    }
    bot.kill(&fake);
    painter.is_broken.store(false, std::sync::atomic::Ordering::SeqCst);
    bot.start(&fake);
    for prompt in ["a red boat", "a green boat", "a blue boat"] {
        picture(&fake, square, prompt);
    }
    let shown = fake.world(|world| {
        world
            .bots_messages(square)
            .iter()
            .filter(|message| message["attachments"].as_array().is_some_and(|files| !files.is_empty()))
            .count()
    });
    assert_eq!(shown, 3);
    as_described(&fake);
}
