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
    let owner = web.own();
    let (status, listed) = owner.send("GET", "/api/places", &Value::Null);
    assert_eq!(status, 200, "{listed}");
    let matrix = &listed["items"][0];
    assert_eq!((&listed["total"], &matrix["platform"]), (&json!(1), &json!("matrix")));
    assert_eq!((&matrix["is_reachable"], &matrix["direct"], &matrix["unknown"]), (&json!(true), &json!(1), &json!(0)));
    let place = |room: &Room, name: Value, is_private: bool, journal: Value| {
        json!({
            "id": room.id, "name": name, "is_private": is_private, "persona": "Azera", "invited": [], "answers": "addressed",
            "spoken_replies": "auto", "journal": journal,
        })
    };
    let in_space = place(&square, json!("Square"), false, json!(square.id));
    let want = json!([
        {"id": den.id, "name": null, "chats": [place(&den, Value::Null, true, Value::Null)]},
        {"id": space.id, "name": "Sailors", "chats": [in_space]},
    ]);
    assert_eq!(matrix["realms"], want);
    assert!(matrix["since"].is_string(), "{matrix}");
    assert!(matrix["invitation"]["account"].as_str().is_some_and(|account| account.starts_with('@')), "{matrix}");
    let change = |room: &Room| {
        let id: String = room.id.bytes().map(|byte| format!("%{byte:02x}")).collect();
        owner.send("PUT", &format!("/api/places/{id}"), &json!({"answers": "never"}))
    };
    for (room, want) in [(&den, 200), (&direct, 404)] {
        let (status, changed) = change(room);
        assert_eq!(status, want, "{changed}");
    }
    let told = listed.to_string();
    assert!(!told.contains("heliotrope") && !told.contains(&direct.id), "{told}");
    scene.bot.stop();
}
