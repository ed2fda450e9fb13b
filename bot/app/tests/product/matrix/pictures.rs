//! Pictures in rooms: encrypted where the room is, drawn again and deleted by reactions.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::painter::{ENDLESS, Painter};

/// Returns the pictures in a room that are not redacted.
fn pictures(ann: &Person, room: &Room) -> Vec<person::Shown> {
    ann.said_by(room, BOT).filter(|shown| shown.kind == "m.image").cloned().collect()
}

#[test]
fn a_picture_is_sent_as_the_room_is_and_obeys_reactions() {
    let painter = Painter::start();
    let mut scene = Scene::open_with(settings(&[("IMAGES__KIND", "automatic1111"), ("IMAGES__URL", &painter.url)]));
    for encrypted in [true, false] {
        let room = scene.direct(encrypted);
        scene.ann.say(&room, "/imagine a lighthouse --seed 7");
        let caption = scene
            .ann
            .until_said(&room, BOT, "the caption", |body| body.contains("a lighthouse") && body.contains("seed 7"));
        let picture = scene.ann.until("the picture", |ann| pictures(ann, &room).into_iter().next());
        assert_eq!((picture.body.as_str(), picture.encrypted), ("a lighthouse", encrypted));
        assert_eq!((picture.content["file"].is_object(), picture.content["url"].is_string()), (encrypted, !encrypted));
        let bytes = scene.ann.fetch(json!({"content": picture.content}));
        assert!(bytes.starts_with(b"\x89PNG"));
        let press = |ann: &mut Person, event: &str, key: &str| {
            ann.act(json!({"do": "send", "room": room.id, "kind": "m.reaction", "encrypted": encrypted, "content": {
                "m.relates_to": {"rel_type": "m.annotation", "event_id": event, "key": key}}}));
        };
        press(&mut scene.ann, &picture.event, "🎲");
        scene.ann.until("another picture", |ann| (pictures(ann, &room).len() == 2).then_some(()));
        press(&mut scene.ann, &picture.event, "🗑️");
        scene.ann.until("the first picture to go", |ann| {
            (ann.redacted.contains(&picture.event) && ann.redacted.contains(&caption.event)).then_some(())
        });
    }
}

/// A picture of numbers comes with words that say the same, in place of a message with these words.
#[test]
fn the_graph_of_a_name_is_a_picture_with_words() {
    let mut scene = Scene::open();
    for encrypted in [true, false] {
        let room = scene.direct(encrypted);
        scene.ann.say(&room, "/remember My sister Miranda lives in Tallinn.");
        scene.ann.until_said(&room, BOT, "that it is kept", |body| body.contains("forgets it"));
        scene.ann.say(&room, "/graph Miranda");
        let picture = scene.ann.until("the graph", |ann| pictures(ann, &room).into_iter().next());
        assert!(picture.body.contains("Miranda lives in Tallinn") && !picture.body.contains('`'), "{}", picture.body);
        assert_eq!((picture.encrypted, &picture.content["filename"]), (encrypted, &json!("azera.png")));
        assert_eq!((picture.content["file"].is_object(), picture.content["url"].is_string()), (encrypted, !encrypted));
        assert!(scene.ann.fetch(json!({"content": picture.content})).starts_with(b"\x89PNG"));
        scene.ann.say(&room, "/graph list");
        scene.ann.until_said(&room, BOT, "the names", |body| body.contains("Most mentioned names"));
        let words = scene.ann.said_by(&room, BOT).filter(|shown| shown.body.contains("lives in Tallinn"));
        assert_eq!(words.count(), 1, "the words are said once, and a list is no picture");
        assert_eq!(pictures(&scene.ann, &room).len(), 1);
    }
}

#[test]
fn a_reaction_below_the_progress_takes_a_picture_back() {
    let painter = Painter::start();
    let mut scene = Scene::open_with(settings(&[("IMAGES__KIND", "automatic1111"), ("IMAGES__URL", &painter.url)]));
    for encrypted in [true, false] {
        let room = scene.direct(encrypted);
        scene.ann.say(&room, &format!("/imagine {ENDLESS}"));
        let progress =
            scene.ann.until_said(&room, BOT, "the progress", |body| body.starts_with('🎨') && body.contains(ENDLESS));
        scene.ann.act(json!({"do": "send", "room": room.id, "kind": "m.reaction", "encrypted": encrypted, "content": {
            "m.relates_to": {"rel_type": "m.annotation", "event_id": progress.event, "key": "❌"}}}));
        scene.ann.until("the progress to go", |ann| ann.redacted.contains(&progress.event).then_some(()));
        scene.ann.until_said(&room, BOT, "the answer", |body| body.contains("is cancelled"));
        assert!(pictures(&scene.ann, &room).is_empty());
    }
}

#[test]
fn a_picture_is_remixed_by_its_caption_and_by_a_reply() {
    let painter = Painter::start();
    let mut scene = Scene::open_with(settings(&[("IMAGES__KIND", "automatic1111"), ("IMAGES__URL", &painter.url)]));
    let room = scene.direct(true);
    let photo = azera_model_image::Picture::from_rgb(96, 48, vec![7; 96 * 48 * 3]).expect("the right number of pixels");
    let photo = photo.to_png(&[]).expect("a picture");
    let send = |ann: &mut Person, caption: &str| {
        let sent = ann.act(json!({
            "do": "send_file", "room": room.id, "encrypted": true, "name": "me.png", "data": STANDARD.encode(&photo),
            "caption": caption, "kind": "m.image", "media_type": "image/png",
        }));
        sent["event"].as_str().expect("an event").to_owned()
    };
    send(&mut scene.ann, "/imagine a knight");
    scene.ann.until_said(&room, BOT, "the caption", |body| body.contains("a knight") && body.contains("seed"));
    let shown = send(&mut scene.ann, "look at me, q1");
    scene.ann.until_answered(&room, 1);
    let relation = json!({"m.in_reply_to": {"event_id": shown}});
    scene.ann.send(&room, json!({"msgtype": "m.text", "body": "/picture remix a queen", "m.relates_to": relation}));
    scene.ann.until_said(&room, BOT, "the other caption", |body| body.contains("a queen") && body.contains("seed"));
    let asked = painter.asked.lock().expect("nobody panics while they hold this").clone();
    assert_eq!(asked.len(), 2);
    assert!(
        asked.iter().all(|one| one["init_images"][0].is_string() && one["width"] != one["height"]),
        "{}",
        asked.len()
    );
}
