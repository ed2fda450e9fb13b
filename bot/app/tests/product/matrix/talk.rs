//! Talking in rooms: speakers, commands, threads, limits and forgetting.

use super::*;
use crate::forgetting::on_disk;

#[test]
fn the_prompt_names_the_speakers_of_a_room() {
    let mut scene = Scene::open();
    let mut bob = scene.person("bob");
    let room = scene.room_with(&mut bob, json!({"encrypted": true}));
    scene.ann.say(&room, "Azera, I keep bees, q1");
    scene.ann.until_answered(&room, 1);
    // This message is not addressed to the bot.
    bob.say(&room, "I keep goats, q2");
    let question = bob.say(&room, "Azera, who keeps what? q3");
    let answer = bob.until_answered(&room, 3);
    assert_eq!(answer.content["m.relates_to"]["m.in_reply_to"]["event_id"], question);
    assert_eq!(bob.answers(&room), [1, 3]);
    let prompt = scene.model.prompts().pop().expect("it was asked");
    for line in ["Ann: Azera, I keep bees", "Bob: I keep goats"] {
        assert!(prompt.contains(line), "{line} is missing in {prompt}");
    }
}

#[test]
fn a_redacted_message_is_forgotten_and_an_edited_one_is_answered_again() {
    let mut scene = Scene::open();
    let room = scene.direct(true);
    scene.ann.say(&room, "hello, q1");
    scene.ann.until_answered(&room, 1);
    let question = scene.ann.say(&room, "remember marzipanwagon, q2");
    let answer = scene.ann.until_answered(&room, 2);
    scene.ann.send(
        &room,
        json!({
            "msgtype": "m.text", "body": "* q3",
            "m.new_content": {"msgtype": "m.text", "body": "remember pumpernickelboat, q3"},
            "m.relates_to": {"rel_type": "m.replace", "event_id": question},
        }),
    );
    let anew = scene.ann.until_answered(&room, 3);
    assert_eq!(anew.event, answer.event, "the new answer stands where the old one stood");
    assert_eq!(scene.ann.answers(&room), [1, 3]);
    scene.ann.act(json!({"do": "redact", "room": room.id, "event": question}));
    let gone = |ann: &Person| ann.redacted.contains(&answer.event) && ann.answers(&room) == [1];
    scene.ann.until("the answers to it go too", |ann| gone(ann).then_some(()));
    scene.bot.stop();
    for word in ["marzipanwagon", "pumpernickelboat"] {
        assert_eq!(on_disk(scene.folder().join(".local/share/azera").as_path(), word), None);
    }
}

/// A notice in reply to it would show everybody that something was deleted there.
#[test]
fn nothing_is_said_about_a_message_that_is_redacted_amid_its_answer() {
    let mut scene = Scene::open();
    let room = scene.direct(false);
    let question = scene.ann.say(&room, "think slowly about q1");
    let half = scene.ann.until_said(&room, BOT, "the first half", |body| body.starts_with("This is"));
    scene.ann.act(json!({"do": "redact", "room": room.id, "event": question}));
    // The bot reads a room in order, so it has forgotten the first message when it has read the second.
    let second = scene.ann.say(&room, "then, q2");
    scene.ann.until("the bot has read on", |ann| ann.has_read(&second, BOT).then_some(()));
    scene.model.release();
    scene.ann.until("the first half goes", |ann| ann.redacted.contains(&half.event).then_some(()));
    scene.ann.say(&room, "and then, q3");
    scene.ann.until_answered(&room, 3);
    assert_eq!(scene.ann.answers(&room), [2, 3]);
    assert_eq!(scene.ann.said_by(&room, BOT).count(), 2, "{:?}", scene.ann.seen);
}

#[test]
fn commands_work_by_prefix_by_name_and_by_reaction() {
    let mut scene = Scene::open();
    let room = scene.direct(false);
    scene.ann.say(&room, "!azera persona list");
    let list = scene.ann.until_said(&room, BOT, "the personas", |body| body.contains("areza"));
    assert_eq!(list.kind, "m.notice");
    scene.ann.say(&room, "/answer");
    scene.ann.until_said(&room, BOT, "when it answers", |body| body.starts_with("Here I answer"));
    scene.ann.say(&room, "what now? q1");
    let answer = scene.ann.until_answered(&room, 1);
    let press = |key: &str| {
        json!({"do": "send", "room": room.id, "kind": "m.reaction", "content": {
            "m.relates_to": {"rel_type": "m.annotation", "event_id": answer.event, "key": key},
        }})
    };
    let prompts = scene.model.prompts().len();
    scene.ann.act(press("🔁"));
    scene.ann.act(press("❓"));
    scene.ann.until_said(&room, BOT, "what stood behind it", |body| body.contains("Prompt in tokens"));
    assert_eq!(scene.model.prompts().len(), prompts + 1);
    let edits =
        |ann: &Person| ann.seen.iter().find(|shown| shown.event == answer.event).map_or(0, |shown| shown.edits.len());
    let before = edits(&scene.ann);
    scene.ann.act(press("⬅️"));
    scene.ann.until("the answer before", |ann| (edits(ann) > before).then_some(()));
    scene.ann.act(press("🗑️"));
    scene.ann.until("it is gone", |ann| ann.redacted.contains(&answer.event).then_some(()));
}

/// A thumb below a reply is an opinion on the memories behind it, until it is redacted. Nobody is answered.
#[test]
fn a_thumb_rates_the_memories_behind_a_reply_until_it_is_redacted() {
    let mut scene = Scene::open_with(settings(&[("MEMORY__MIN_AGE_S", "0")]));
    let room = scene.direct(false);
    scene.ann.say(&room, "/remember my boat is called marzipanwagon");
    scene.ann.until_said(&room, BOT, "that it is kept", |body| body.contains("forgets it"));
    scene.ann.say(&room, "what is my boat called? q1");
    let answer = scene.ann.until_answered(&room, 1);
    let thumb = |scene: &mut Scene, key: &str| {
        let content = json!({"m.relates_to": {"rel_type": "m.annotation", "event_id": answer.event, "key": key}});
        let sent = scene.ann.act(json!({"do": "send", "room": room.id, "kind": "m.reaction", "content": content}));
        sent["event"].as_str().expect("an event").to_owned()
    };
    let up = thumb(&mut scene, "👍");
    scene.ann.say(&room, "/memory rate reply none helpful");
    scene.ann.until_said(&room, BOT, "that there was a thumb", |body| body.contains("count like any others"));
    scene.ann.act(json!({"do": "redact", "room": room.id, "event": up}));
    // Of two thumbs one is redacted, and the other still stands.
    let up = thumb(&mut scene, "👍🏽");
    let down = thumb(&mut scene, "👎");
    scene.ann.act(json!({"do": "redact", "room": room.id, "event": down}));
    scene.ann.say(&room, "/memory rate reply none unhelpful");
    scene.ann.until_said(&room, BOT, "that it is redacted", |body| body.contains("no memory behind that reply"));
    scene.ann.say(&room, "/memory rate reply none helpful");
    scene.ann.until("that the first one still stood", |ann| {
        let taken_back = ann.said_by(&room, BOT).filter(|shown| shown.body.contains("count like any others"));
        (taken_back.count() == 2).then_some(())
    });
    scene.ann.act(json!({"do": "redact", "room": room.id, "event": up}));
    scene.ann.say(&room, "/memory rate reply unhelpful");
    scene.ann.until_said(&room, BOT, "that it is noted", |body| body.contains("put them back"));
    scene.bot.stop();
    let rated = scene.ann.said_by(&room, BOT).filter(|shown| shown.body.contains("behind that reply"));
    assert_eq!(rated.count(), 4, "a thumb is not answered");
}

#[test]
fn invitations_and_the_limit_for_each_person_are_respected() {
    let mut scene = Scene::open_with(settings(&[
        ("MATRIX__INVITES", "users"),
        ("MATRIX__INVITES_FROM", "@ann:localhost"),
        ("MATRIX__PERSON_PER_MINUTE", "1"),
    ]));
    let mut bob = scene.person("bob");
    let refused = bob.act(json!({"do": "create", "invite": [BOT]}));
    let refused = refused["room"].as_str().expect("a room").to_owned();
    bob.until("it declines", |bob| bob.has_left(&refused, BOT).then_some(()));
    let room = scene.direct(false);
    // Notices are not answered.
    scene.ann.send(&room, json!({"msgtype": "m.notice", "body": "beep, q1"}));
    // Messages from before the bot joined count too, and one is always answered.
    scene.ann.say(&room, "and this? q2");
    scene.ann.until_answered(&room, 2);
    for number in 3..=5 {
        scene.ann.say(&room, &format!("and this? q{number}"));
    }
    scene.ann.until_said(&room, BOT, "that it is too much", |body| body.contains("more than I can follow"));
    scene.bot.stop();
    assert_eq!(scene.ann.answers(&room), [2]);
    let notices = scene.ann.said_by(&room, BOT).filter(|shown| shown.body.contains("more than I can follow"));
    assert_eq!(notices.count(), 1);
}

/// Ann's server is not on the list, so her invitation is declined until anyone may invite the bot. Two people within
/// their own limits share their room's limit, and another room has its own.
#[test]
fn invitations_by_server_and_the_limit_for_each_room_are_respected() {
    let mut scene = Scene::open_with(settings(&[
        ("MATRIX__INVITES", "servers"),
        ("MATRIX__INVITES_FROM", "example.org"),
        ("MATRIX__ROOM_PER_MINUTE", "2"),
    ]));
    let refused = scene.ann.act(json!({"do": "create", "invite": [BOT]}));
    let refused = refused["room"].as_str().expect("a room").to_owned();
    scene.ann.until("it declines", |ann| ann.has_left(&refused, BOT).then_some(()));
    scene.bot.stop();
    scene.bot.more[0].1 = Some("anyone".to_owned());
    scene.bot.start_again();
    let mut bob = scene.person("bob");
    let room = scene.room_with(&mut bob, json!({}));
    scene.ann.say(&room, "Azera, and this? q1");
    scene.ann.until_answered(&room, 1);
    bob.say(&room, "Azera, and this? q2");
    scene.ann.say(&room, "Azera, and this? q3");
    bob.say(&room, "Azera, and this? q4");
    scene.ann.until_answered(&room, 2);
    scene.ann.until_said(&room, BOT, "that it is too much", |body| body.contains("more than I can follow"));
    let other = scene.direct(false);
    scene.ann.say(&other, "and here? q5");
    scene.ann.until_answered(&other, 5);
    scene.bot.stop();
    assert_eq!(scene.ann.answers(&room), [1, 2]);
    let notices = scene.ann.said_by(&room, BOT).filter(|shown| shown.body.contains("more than I can follow"));
    assert_eq!(notices.count(), 1);
}

#[test]
fn a_thread_is_a_separate_chat() {
    let mut scene = Scene::open();
    let mut bob = scene.person("bob");
    let room = scene.room_with(&mut bob, json!({}));
    let root = scene.ann.say(&room, "let us talk about boats");
    let question = scene.ann.send(
        &room,
        json!({
            "msgtype": "m.text", "body": "Azera, which boat? q1",
            "m.relates_to": {"rel_type": "m.thread", "event_id": root, "is_falling_back": true, "m.in_reply_to": {"event_id": root}},
        }),
    );
    let answer = scene.ann.until_answered(&room, 1);
    let relation = &answer.content["m.relates_to"];
    assert_eq!((&relation["rel_type"], &relation["event_id"]), (&json!("m.thread"), &json!(root)));
    assert_eq!(relation["m.in_reply_to"]["event_id"], question);
    assert_eq!(answer.content["m.mentions"]["user_ids"], json!([scene.ann.id]));
}

#[test]
fn mentions_pictures_and_markdown_are_understood() {
    let mut scene = Scene::open();
    let mut bob = scene.person("bob");
    let room = scene.room_with(&mut bob, json!({}));
    let picture = json!({
        "msgtype": "m.image", "body": "my cat", "filename": "cat.png", "url": "mxc://localhost/cat",
        "info": {"mimetype": "image/png", "size": 12_345},
    });
    bob.send(&room, picture);
    bob.send(
        &room,
        json!({
            "msgtype": "m.text", "body": "what is in it, my friend? q1", "format": "org.matrix.custom.html",
            "formatted_body": "what is in it, <a href=\"https://matrix.to/#/@azera:localhost\">my friend</a>? q1",
            "m.mentions": {"user_ids": [BOT]},
        }),
    );
    bob.until_answered(&room, 1);
    let prompt = scene.model.prompts().pop().expect("it was asked");
    assert!(prompt.contains("Bob: [image: cat.png, 13 kB]\\nmy cat"), "{prompt}");
    bob.say(&room, "!azera help");
    let help = bob.until_said(&room, BOT, "help", |body| body.contains("/persona"));
    let html = help.content["formatted_body"].as_str().unwrap_or_default();
    assert!(html.contains("<li><code>/persona"), "{html}");
}

/// Two bots that answer everything answer people, but not each other.
#[test]
fn two_bots_in_a_room_leave_each_other_alone() {
    const OTHER: &str = "@other:localhost";
    let mut scene = Scene::open();
    let made = homeserver::python(&[&scene.homeserver.url, homeserver::SECRET, "other", "-"]).status();
    assert!(made.expect("python3 runs").success());
    let home = scene.folder().join("other");
    std::fs::create_dir(&home).expect("a folder");
    let more = settings(&[("MATRIX__USER", "other")]);
    let _second = Bot::at(&scene.homeserver.url, &home, &scene.model, more);
    let id = scene.ann.room_with(BOT, json!({"encrypted": true, "invite": [BOT, OTHER]}));
    let room = Room { id, encrypted: true };
    scene.ann.until("the other comes in", |ann| ann.is_in(&room.id, OTHER).then_some(()));
    scene.ann.say(&room, "!azera answer always");
    for bot in [BOT, OTHER] {
        scene.ann.until_said(&room, bot, "when it answers", |body| body.contains("I answer here"));
    }
    for number in 1..=3 {
        scene.ann.say(&room, &format!("and this? q{number}"));
        for bot in [BOT, OTHER] {
            scene.ann.until_said(&room, bot, "its answer", |body| body == answer_to(number));
        }
    }
    for bot in [BOT, OTHER] {
        assert_eq!(scene.ann.said_by(&room, bot).count(), 1 + 3);
    }
}

#[test]
fn the_bot_leaves_a_room_that_everyone_left() {
    let mut scene = Scene::open();
    let (one, two) = (scene.direct(true), scene.direct(false));
    scene.ann.say(&two, "hello, q1");
    scene.ann.until_answered(&two, 1);
    scene.bot.until_doctor_says(|said| said.contains("in 2 rooms"));
    scene.ann.act(json!({"do": "leave", "room": one.id}));
    scene.bot.until_doctor_says(|said| said.contains("in 1 room,"));
}

/// The bot sends a read receipt and a typing notice.
#[test]
fn the_bot_sends_read_receipts_and_typing_notices() {
    let mut scene = Scene::open();
    let room = scene.direct(true);
    let question = scene.ann.say(&room, "think slowly about q1");
    scene.ann.until("a receipt", |ann| ann.has_read(&question, BOT).then_some(()));
    scene.ann.until("that it writes", |ann| ann.saw_typing(&room, BOT).then_some(()));
    scene.model.release();
    scene.ann.until_answered(&room, 1);
}

/// A long answer is edited at most once a second and is complete in the end.
#[test]
fn an_answer_is_edited_at_most_once_a_second() {
    let mut scene = Scene::open();
    let room = scene.direct(false);
    scene.ann.say(&room, "tell me at length, q1");
    let answer = scene.ann.until_answered(&room, 1);
    let last = answer.edits.last().expect("it grew");
    // By the homeserver's clock: a busy client may see several at once.
    let seconds = last - answer.stored;
    // The last edit does not wait.
    assert!(answer.edits.len() <= 2 + seconds as usize, "{} edits in {seconds} s", answer.edits.len());
}

/// An answer too long for a message comes as a file, and only to that person.
#[test]
fn a_long_export_comes_as_a_file_in_the_direct_chat() {
    let mut scene = Scene::open();
    let mut bob = scene.person("bob");
    let direct = scene.direct(true);
    for number in 1..=3 {
        let long = "the tide table of the northern harbour ".repeat(400);
        scene.ann.say(&direct, &format!("this is q{number}: {long}"));
        scene.ann.until_answered(&direct, number);
    }
    let room = scene.room_with(&mut bob, json!({"encrypted": true}));
    scene.ann.say(&room, "Azera: /memory export");
    scene.ann.until_said(&room, BOT, "where the answer is", |body| body.contains("direct chat"));
    let file = scene.ann.until_said(&direct, BOT, "the file", |body| body == "answer.json");
    assert_eq!(file.kind, "m.file");
    let held: Value = serde_json::from_slice(&scene.ann.fetch(json!({"content": file.content}))).expect("JSON");
    assert_eq!(held["messages"].as_array().map(Vec::len), Some(3), "{held}");
    scene.ann.say(&room, "!azera settings");
    bob.until_said(&room, BOT, "how things are set", |body| body.contains("answers here (`azera`)"));
    bob.say(&room, "!azera notes");
    bob.until_said(&room, BOT, "that there are none", |body| body.starts_with("I have no notes"));
    bob.say(&room, "!azera memory forget last");
    bob.until_said(&room, BOT, "that this room has none", |body| body == "There is nothing of yours here to forget.");
}
