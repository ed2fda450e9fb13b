//! Journal entries reach the room chosen for them.

use super::*;

/// The entry that the model writes.
const ENTRY: &str = "The lanterns over the bridge stay with me tonight";

/// Returns true if a text is the posted entry. The answer to the command also contains the entry, with its sources.
fn is_entry(body: &str) -> bool {
    body.contains(ENTRY) && !body.contains("Written by")
}

/// Returns how often the entry was posted in a room.
fn entries(person: &Person, room: &Room) -> usize {
    person.said_by(room, BOT).filter(|shown| is_entry(&shown.body)).count()
}

/// An entry is posted once, in the chosen room, even if the bot is killed after the homeserver stored it and before the
/// bot knows.
#[test]
fn an_entry_is_posted_once_in_the_chosen_room() {
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
    bob.until_said(&journal, BOT, "that he may not", |body| body.contains("Only admins"));
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
    // A later answer in the same room shows that nothing else was posted.
    scene.ann.say(&journal, "Azera, are you there? q3");
    bob.until_answered(&journal, 3);
    assert_eq!((entries(&bob, &journal), entries(&bob, &square)), (1, 0));
    let posted = bob.said_by(&journal, BOT).find(|shown| is_entry(&shown.body)).expect("it is there");
    assert_eq!((posted.kind.as_str(), posted.content.get("m.relates_to")), ("m.text", None));
}

/// A room outside any space has a journal of its own, encrypted like the room.
#[test]
fn an_encrypted_room_has_its_own_journal() {
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
