//! What is written between messages reaches the room that was chosen for it.

use super::*;

/// What the model writes into the journal.
const ENTRY: &str = "The lanterns over the bridge stay with me tonight";

/// Whether something is the entry as it was posted. The answer to who asked for it holds it, too, and says how it came to be.
fn is_entry(body: &str) -> bool {
    body.contains(ENTRY) && !body.contains("Written by")
}

/// How often it was posted in a room.
fn entries(person: &Person, room: &Room) -> usize {
    person.said_by(room, BOT).filter(|shown| is_entry(&shown.body)).count()
}

/// One entry is posted once, where it was chosen, though the bot is killed when the homeserver has it and the bot does not know, and
/// starts again after that.
#[test]
fn an_entry_is_posted_once_where_it_was_chosen() {
    let mut scene = Scene::open();
    scene.bot.stop();
    let proxy = Proxy::start(&scene.homeserver.url);
    scene.bot = Bot::at(&proxy.url, scene.folder(), &scene.model, Settings::new());
    let mut bob = scene.person("bob");
    let space = scene.room_with(&mut bob, json!({"space": true}));
    let [square, journal] = [(), ()].map(|()| {
        let room = scene.room_with(&mut bob, json!({"history": "world_readable"}));
        scene.put_in(&space, &room);
        room
    });
    bob.say(&journal, "!azera journal channel here");
    bob.until_said(&journal, BOT, "that he may not", |body| body.contains("the admins' choice"));
    scene.ann.say(&journal, "!azera journal channel here");
    scene.ann.until_said(&journal, BOT, "where it is posted", |body| body.contains("posted here"));
    scene.ann.say(&square, "Azera, a lantern parade crosses the old bridge tonight, q1");
    scene.ann.until_answered(&square, 1);
    bob.say(&square, "Azera, the brass band plays under the bridge until midnight, q2");
    bob.until_answered(&square, 2);
    proxy.keep_posts_to(&journal.id);
    scene.ann.say(&square, "!azera journal trigger");
    proxy.until_stored();
    scene.bot.kill();
    proxy.keep(false);
    scene.bot.start_again();
    bob.until_said(&journal, BOT, "the entry", is_entry);
    scene.bot.stop();
    scene.bot.start_again();
    // What comes after it in the same room shows that nothing else came.
    scene.ann.say(&journal, "Azera, are you there? q3");
    bob.until_answered(&journal, 3);
    assert_eq!((entries(&bob, &journal), entries(&bob, &square)), (1, 0));
    let posted = bob.said_by(&journal, BOT).find(|shown| is_entry(&shown.body)).expect("it is there");
    assert_eq!((posted.kind.as_str(), posted.content.get("m.relates_to")), ("m.text", None));
}

/// A room that is in no space has its own, encrypted as it is.
#[test]
fn an_encrypted_room_has_its_own() {
    let mut scene = Scene::open();
    let mut bob = scene.person("bob");
    let room = scene.room_with(&mut bob, json!({"encrypted": true}));
    scene.ann.say(&room, "!azera journal channel here");
    scene.ann.until_said(&room, BOT, "where it is posted", |body| body.contains("posted here"));
    scene.ann.say(&room, "Azera, a lantern parade crosses the old bridge tonight, q1");
    scene.ann.until_answered(&room, 1);
    scene.ann.say(&room, "!azera journal trigger");
    let posted = bob.until_said(&room, BOT, "the entry", is_entry);
    assert_eq!((posted.encrypted, posted.kind.as_str()), (true, "m.text"));
    scene.bot.stop();
    scene.bot.start_again();
    bob.say(&room, "Azera, are you there? q2");
    bob.until_answered(&room, 2);
    assert_eq!(entries(&bob, &room), 1);
}
