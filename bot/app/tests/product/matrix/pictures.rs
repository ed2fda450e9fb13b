//! Pictures in rooms: encrypted where the room is, drawn again and deleted by reactions.

use super::*;
use crate::painter::Painter;

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
