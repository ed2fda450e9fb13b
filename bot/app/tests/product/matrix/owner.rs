//! What the owner sees over the web: spaces and rooms by their names, and no direct messages.

use super::local_web::Web;
use super::*;

/// Gives a room of Ann's a name.
#[track_caller]
fn name(scene: &mut Scene, room: &Room, name: &str) {
    scene.ann.act(json!({"do": "state", "room": room.id, "kind": "m.room.name", "key": "", "content": {"name": name}}));
}

#[test]
fn the_owner_sees_spaces_and_rooms_and_counts_direct_messages() {
    let mut scene = Scene::open_with(settings(&[("HTTP__ENABLED", "true"), ("HTTP__LISTEN", "127.0.0.1:0")]));
    let mut bob = scene.person("bob");
    let space = scene.room_with(&mut bob, json!({"space": true}));
    let square = scene.room_with(&mut bob, json!({"history": "world_readable"}));
    scene.put_in(&space, &square);
    let den = scene.room_with(&mut bob, json!({"encrypted": true}));
    let direct = scene.direct(true);
    name(&mut scene, &space, "Sailors");
    name(&mut scene, &square, "Square");
    for (number, room) in [&square, &den, &direct].into_iter().enumerate() {
        scene.ann.say(room, &format!("Azera, my secret word is heliotrope, q{number}"));
        scene.ann.until_answered(room, number);
    }
    scene.ann.say(&square, "!azera journal channel here");
    scene.ann.until_said(&square, BOT, "where it is posted", |body| body.contains("posted here"));
    let web = Web::of(&scene.folder().join(".local/share/azera"));
    let (head, listed) = web.send("GET", "/api/places", &web.own(), &Value::Null);
    assert!(head.starts_with("HTTP/1.1 200"), "{head} {listed}");
    let matrix = &listed["items"][0];
    assert_eq!((&listed["total"], &matrix["platform"]), (&json!(1), &json!("matrix")));
    assert_eq!((&matrix["is_reachable"], &matrix["direct"], &matrix["unknown"]), (&json!(true), &json!(1), &json!(0)));
    let place = |room: &Room, name: Value, is_private: bool, journal: Value| {
        json!({
            "id": room.id, "name": name, "is_private": is_private, "persona": "Azera", "invited": [], "answers": "addressed",
            "journal": journal,
        })
    };
    let in_space = place(&square, json!("Square"), false, json!(square.id));
    let want = json!([
        {"id": den.id, "name": null, "chats": [place(&den, Value::Null, true, Value::Null)]},
        {"id": space.id, "name": "Sailors", "chats": [in_space]},
    ]);
    assert_eq!(matrix["realms"], want);
    let told = listed.to_string();
    assert!(!told.contains("heliotrope") && !told.contains(&direct.id), "{told}");
    scene.bot.stop();
}
