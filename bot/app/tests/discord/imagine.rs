//! Pictures on Discord: progress and picture in one message, with buttons.

use std::sync::atomic::Ordering;

use azera_fake_discord::{FakeDiscord, Invoked};
use azera_model_image::{Picture, PictureLimits};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::bot::Bot;
use crate::commands::{answer_text, give, square};
use crate::forms::suggestions;
use crate::painter::Painter;
use crate::{answers, as_described, fake};

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
fn a_model_and_a_sampler_are_suggested_chosen_and_refused_by_name() {
    let fake = fake();
    let ([_, bob, _], square) = square(&fake);
    let painter = Painter::start();
    let mut bot =
        Bot::new(&fake, None).with("AZERA__IMAGES__KIND", "automatic1111").with("AZERA__IMAGES__URL", &painter.url);
    bot = bot.with("AZERA__IMAGES__MODELS", "*");
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    assert_eq!(suggestions(&fake, square, bob, "imagine", "", ("model", "")), ["anime", "photo"]);
    assert_eq!(suggestions(&fake, square, bob, "imagine", "", ("sampler", "eul")), ["Euler a"]);
    let wrong = give(&fake, square, bob, "imagine", "", &[("prompt", "a boat"), ("model", "foto")]);
    assert!(wrong.contains("There are `anime`, `photo`"), "{wrong}");
    let options = [("prompt", "a boat"), ("model", "photo"), ("sampler", "Heun")];
    give(&fake, square, bob, "imagine", "", &options);
    picture(&fake, square, "a boat");
    let asked = painter.asked.lock().expect("nobody panics while they hold this").clone();
    assert_eq!(asked.len(), 1, "the wrong one was not queued");
    assert_eq!(asked[0]["override_settings"], json!({"sd_model_checkpoint": "photo"}));
    assert_eq!(asked[0]["sampler_name"], "Heun");
    as_described(&fake);
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
    press(&fake, square, &first, cid, "Upscale");
    picture(&fake, square, "16×16");
    let refused = press(&fake, square, &first, cid, "Delete");
    assert!(refused.contains("admin"), "{refused}");
    press(&fake, square, &first, bob, "Delete");
    fake.wait("the picture to go", |world| {
        world.bots_messages(square).iter().all(|message| message["id"] != first["id"]).then_some(())
    });
    as_described(&fake);
}

#[test]
fn the_message_about_the_progress_has_a_button_that_takes_the_picture_back() {
    let fake = fake();
    let ([_, bob, cid], square) = square(&fake);
    let painter = Painter::start();
    painter.is_held.store(true, Ordering::SeqCst);
    let mut bot =
        Bot::new(&fake, None).with("AZERA__IMAGES__KIND", "automatic1111").with("AZERA__IMAGES__URL", &painter.url);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    give(&fake, square, bob, "imagine", "", &[("prompt", "a lighthouse")]);
    let progress = fake.wait("the progress", |world| {
        let about = |message: &&Value| message["content"].as_str().is_some_and(|text| text.contains("a lighthouse"));
        world.bots_messages(square).into_iter().find(about).cloned()
    });
    let refused = press(&fake, square, &progress, cid, "Cancel");
    assert!(refused.contains("no such picture"), "{refused}");
    let done = press(&fake, square, &progress, bob, "Cancel");
    assert!(done.contains("is cancelled"), "{done}");
    fake.wait("the progress to go", |world| {
        world.bots_messages(square).iter().all(|message| message["id"] != progress["id"]).then_some(())
    });
    as_described(&fake);
}

#[test]
fn a_person_is_told_when_their_place_in_the_queue_changes() {
    let fake = fake();
    let ([ann, bob, cid], square) = square(&fake);
    let painter = Painter::start();
    painter.is_held.store(true, Ordering::SeqCst);
    let mut bot =
        Bot::new(&fake, None).with("AZERA__IMAGES__KIND", "automatic1111").with("AZERA__IMAGES__URL", &painter.url);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    for (who, prompt, told) in
        [(ann, "a lighthouse", "I begin now"), (bob, "a mill", "number 2"), (cid, "a hut", "number 3")]
    {
        let answer = give(&fake, square, who, "imagine", "", &[("prompt", prompt)]);
        assert!(answer.contains(told), "{prompt}: {answer}");
    }
    let says = |world: &azera_fake_discord::World, words: &str| {
        let is_meant = |message: &&Value| message["content"].as_str().is_some_and(|text| text.contains(words));
        world.bots_messages(square).into_iter().find(is_meant).cloned()
    };
    fake.wait("the progress of the first", |world| says(world, "a lighthouse"));
    assert!(fake.world(|world| says(world, "of those that wait")).is_none(), "the answers told it");
    give(&fake, square, bob, "picture", "cancel", &[]);
    let told = fake.wait("the new place", |world| says(world, "is number 2 of those that wait."));
    assert!(told["content"].as_str().is_some_and(|text| !text.contains("a hut")), "{told}");
    // The same message shows the picture in the end. The held one ends only when its person takes it back.
    painter.is_held.store(false, Ordering::SeqCst);
    give(&fake, square, ann, "picture", "cancel", &[]);
    assert_eq!(picture(&fake, square, "a hut")["id"], told["id"]);
    as_described(&fake);
}

/// Opens the form of a button; returns its id, and the ids and values of its fields.
fn form_of(
    fake: &FakeDiscord,
    channel: u64,
    message: &Value,
    who: u64,
    label: &str,
) -> (String, Vec<(String, String)>) {
    let shown: Value = serde_json::from_str(&press(fake, channel, message, who, label)).expect("a form");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows = shown["components"].as_array().cloned().unwrap_or_default();
    let fields = rows.iter().map(|row| &row["components"][0]);
    (text(&shown["custom_id"]), fields.map(|field| (text(&field["custom_id"]), text(&field["value"]))).collect())
}

#[test]
fn a_prompt_is_edited_in_a_form_that_shows_it() {
    let fake = fake();
    let ([_, bob, cid], square) = square(&fake);
    let painter = Painter::start();
    let mut bot =
        Bot::new(&fake, None).with("AZERA__IMAGES__KIND", "automatic1111").with("AZERA__IMAGES__URL", &painter.url);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let options = [("prompt", "a lighthouse"), ("negative", "fog"), ("seed", "7")];
    give(&fake, square, bob, "imagine", "", &options);
    let first = picture(&fake, square, "a lighthouse");
    let (custom_id, mut fields) = form_of(&fake, square, &first, cid, "Edit");
    assert_eq!(fields.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["a lighthouse", "fog"]);
    (fields[0].1, fields[1].1) = ("7 castles\nat dusk".to_owned(), String::new());
    let filled = fake.world(|world| world.invoke(square, cid, Invoked::Form { custom_id, fields }));
    let answer = answer_text(&fake, filled);
    assert!(answer.contains("/picture cancel"), "{answer}");
    picture(&fake, square, "7 castles at dusk");
    let asked = painter.asked.lock().expect("nobody panics while they hold this")[1].clone();
    assert_eq!((asked["seed"].as_u64(), asked["negative_prompt"].as_str()), (Some(7), Some("")));
    as_described(&fake);
}

#[test]
fn a_picture_is_remixed_from_an_attachment_and_from_a_message() {
    let fake = fake();
    let ([_, bob, cid], square) = square(&fake);
    let painter = Painter::start();
    let mut bot =
        Bot::new(&fake, None).with("AZERA__IMAGES__KIND", "automatic1111").with("AZERA__IMAGES__URL", &painter.url);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let photo = Picture::from_rgb(96, 48, vec![7; 96 * 48 * 3]).expect("the right number of pixels");
    let photo = photo.to_png(&[]).expect("a picture");
    let given = fake.world(|world| {
        let file = world.hand_in("me.png", &photo);
        let options = json!([{"name": "prompt", "type": 3, "value": "a knight"},
            {"name": "picture", "type": 11, "value": file}, {"name": "strength", "type": 3, "value": "0.5"}]);
        world.invoke(square, bob, Invoked::Command { name: "imagine".to_owned(), kind: 1, options, target: None })
    });
    answer_text(&fake, given);
    picture(&fake, square, "a knight");
    let shown = fake.world(|world| world.upload(square, bob, "Azera, look at me", &[("me.png", &photo)]));
    fake.wait("a reply", |world| (!answers(world, square, shown).is_empty()).then_some(()));
    let chosen =
        Invoked::Command { name: "Remix picture".to_owned(), kind: 3, options: json!([]), target: Some(shown) };
    let chosen = fake.world(|world| world.invoke(square, cid, chosen));
    let form: Value = serde_json::from_str(&answer_text(&fake, chosen)).expect("a form");
    let custom_id = form["custom_id"].as_str().expect("an id").to_owned();
    let fields = vec![("prompt".to_owned(), "a queen".to_owned())];
    let filled = fake.world(|world| world.invoke(square, cid, Invoked::Form { custom_id, fields }));
    let answer = answer_text(&fake, filled);
    assert!(answer.contains("/picture cancel"), "{answer}");
    picture(&fake, square, "a queen");
    let asked = painter.asked.lock().expect("nobody panics while they hold this").clone();
    let strengths: Vec<f64> = asked.iter().filter_map(|one| one["denoising_strength"].as_f64()).collect();
    assert!((strengths[0] - 0.5).abs() < 1e-6 && (strengths[1] - 0.6).abs() < 1e-6, "{strengths:?}");
    for one in &asked {
        let sent = STANDARD.decode(one["init_images"][0].as_str().unwrap_or_default()).expect("base64");
        let sent = Picture::read(&sent, &PictureLimits::default()).expect("a picture");
        assert_eq!(sent, Picture::read(&photo, &PictureLimits::default()).expect("a picture"));
        let side = |name: &str| one[name].as_f64().expect("a number");
        assert!((side("width") / side("height") - 2.0).abs() < 0.05, "the proportions are those of the picture");
    }
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
    // What came with a request is not lost either.
    let photo = Picture::from_rgb(96, 48, vec![7; 96 * 48 * 3]).expect("the right number of pixels");
    let photo = photo.to_png(&[]).expect("a picture");
    let given = fake.world(|world| {
        let file = world.hand_in("me.png", &photo);
        let options = json!([{"name": "prompt", "type": 3, "value": "a knight"},
            {"name": "picture", "type": 11, "value": file}]);
        world.invoke(square, ann, Invoked::Command { name: "imagine".to_owned(), kind: 1, options, target: None })
    });
    assert!(answer_text(&fake, given).contains("/picture cancel"));
    bot.kill(&fake);
    painter.asked.lock().expect("nobody panics while they hold this").clear();
    painter.is_broken.store(false, std::sync::atomic::Ordering::SeqCst);
    bot.start(&fake);
    for prompt in ["a red boat", "a green boat", "a blue boat", "a knight"] {
        picture(&fake, square, prompt);
    }
    let asked = painter.asked.lock().expect("nobody panics while they hold this").clone();
    let knight = asked.iter().find(|one| one["prompt"] == "a knight").expect("it was asked for");
    let sent = STANDARD.decode(knight["init_images"][0].as_str().unwrap_or_default()).expect("base64");
    assert_eq!(
        Picture::read(&sent, &PictureLimits::default()).expect("a picture"),
        Picture::read(&photo, &PictureLimits::default()).expect("a picture")
    );
    let shown = fake.world(|world| {
        world
            .bots_messages(square)
            .iter()
            .filter(|message| message["attachments"].as_array().is_some_and(|files| !files.is_empty()))
            .count()
    });
    assert_eq!(shown, 4);
    as_described(&fake);
}
