//! Devices, keys and tokens: which ones the bot trusts, and what it does when keys are late or lost.

use super::*;

#[test]
fn a_token_logs_in_and_the_session_is_kept() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (homeserver, model) = (Homeserver::start(scratch.path()), Model::start());
    Bot::make_account(&homeserver);
    let mut ann = Person::enter(&homeserver, scratch.path(), "ann");
    let user = json!({"type": "m.id.user", "user": "azera"});
    let login = json!({"type": "m.login.password", "identifier": user, "password": homeserver::PASSWORD});
    let answer = ann.act(json!({"do": "call", "path": "login", "body": login}));
    let token = answer["answer"]["access_token"].as_str().expect("a token").to_owned();
    let by_token: Settings = vec![("MATRIX__PASSWORD", None), ("MATRIX__TOKEN", Some(token))];
    let mut bot = Bot::at(&homeserver.url, scratch.path(), &model, by_token.clone());
    let id = ann.room_with(BOT, json!({"encrypted": true, "direct": true}));
    let room = Room { id, encrypted: true };
    ann.say(&room, "hello, q1");
    assert!(ann.until_answered(&room, 1).encrypted);
    bot.stop();
    bot.more = vec![("MATRIX__PASSWORD", None)];
    bot.start_again();
    ann.say(&room, "again, q2");
    ann.until_answered(&room, 2);
    assert_eq!(ann.answers(&room), [1, 2]);
    bot.stop();
    // A device cannot work without its keys, so its token is useless too.
    std::fs::remove_dir_all(bot.data().join("matrix/store")).expect("it was there");
    for (more, wanted) in [(bot.more.clone(), "AZERA__MATRIX__TOKEN"), (by_token, "a token of another login")] {
        bot.more = more;
        let output = bot.command(&["run"]).output().expect("the binary runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(wanted), "{errors}");
    }
}

/// In strict mode the bot heeds a device once its owner has verified it, and then answers its earlier messages.
#[test]
fn strict_mode_heeds_only_verified_devices() {
    let mut scene = Scene::open_with(settings(&[("MATRIX__STRICT", "true")]));
    let room = scene.direct(true);
    scene.ann.say(&room, "hello, q1");
    scene.bot.until_doctor_says(|said| said.starts_with("note") && said.contains("1 message it cannot read yet"));
    let plain = scene.direct(false);
    scene.ann.say(&plain, "nothing is encrypted here, q1");
    scene.ann.until_answered(&plain, 1);
    assert_eq!(scene.ann.answers(&room), [0; 0]);
    scene.ann.act(json!({"do": "verify_own_device"}));
    scene.ann.until_answered(&room, 1);
    scene.ann.say(&room, "and now? q2");
    scene.ann.until_answered(&room, 2);
    assert_eq!((scene.ann.answers(&room), scene.ann.unreadable), (vec![1, 2], 0));
    scene.bot.until_doctor_says(|said| said.starts_with("ok"));
}

/// The same with a browser client library, which verifies devices the way people do. The bot talks to a verified
/// device. It neither reads nor writes to another device of the same person until that one is verified too.
#[test]
fn strict_mode_treats_each_device_of_a_person_separately() {
    let scene = Scene::open_with(settings(&[("MATRIX__STRICT", "true")]));
    let mut laptop = Person::with_device(&scene.homeserver, "eve");
    laptop.act(json!({"do": "cross_sign"}));
    let direct = json!({"encrypted": true, "direct": true, "preset": "trusted_private_chat"});
    let room = Room { id: laptop.room_with(BOT, direct), encrypted: true };
    laptop.say(&room, "my code is secret-pear, q1");
    let answer = laptop.until_answered(&room, 1);
    assert!(answer.encrypted && answer.body.contains("secret-pear"), "{}", answer.body);
    // The account signs the bot's own device. The library tracks the devices of users who share a room.
    let bots = laptop.act(json!({"do": "devices", "user": BOT}));
    let signed: Vec<&Value> = bots["devices"].as_object().expect("devices").values().collect();
    assert_eq!(signed, [&json!(true)]);

    let mut phone = Person::with_device(&scene.homeserver, "eve");
    phone.say(&room, "this is my phone, q2");
    scene.bot.until_doctor_says(|said| said.starts_with("note") && said.contains("1 message it cannot read yet"));
    laptop.say(&room, "and this my laptop, q3");
    laptop.until_answered(&room, 3);
    laptop.say(&room, "/doctor");
    let notice = laptop.until_said(&room, BOT, "what it cannot read", |body| body.contains("the homeserver answers"));
    assert!(notice.body.contains("note: 1 message here I cannot read yet"), "{}", notice.body);
    // The phone sees that there is a message, but cannot read it.
    phone.until("the last of it", |phone| phone.unreadable_by(BOT, &notice.event).then_some(()));
    assert_eq!(phone.said_by(&room, BOT).count(), 0);
    assert_eq!(laptop.answers(&room), [1, 3]);

    laptop.act(json!({"do": "verify_device", "device": phone.device}));
    phone.until_answered(&room, 2);
    phone.say(&room, "and now? q4");
    phone.until_answered(&room, 4);
    laptop.until_answered(&room, 4);
    assert_eq!((laptop.answers(&room), laptop.unreadable), (vec![1, 3, 2, 4], 0));
    scene.bot.until_doctor_says(|said| said.starts_with("ok"));
}

/// Late keys bring the answer, even after a restart. Until then the doctor reports the unreadable message.
#[test]
fn a_message_is_answered_once_its_late_keys_arrive() {
    let mut scene = Scene::open();
    let room = scene.direct(true);
    scene.ann.act(json!({"do": "hold_keys"}));
    scene.ann.say(&room, "my key is late, q1");
    scene.bot.until_doctor_says(|said| said.starts_with("note") && said.contains("1 message it cannot read yet"));
    scene.bot.stop();
    scene.bot.start_again();
    scene.ann.act(json!({"do": "release_keys"}));
    scene.ann.until_answered(&room, 1);
    scene.bot.until_doctor_says(|said| said.starts_with("ok"));
    scene.bot.kill();
    scene.bot.start_again();
    scene.ann.say(&room, "then, q2");
    scene.ann.until_answered(&room, 2);
    assert_eq!(scene.ann.answers(&room), [1, 2]);
}

/// With the store of keys and rooms gone, the bot logs in again, restores its keys with the recovery key, reads missed
/// messages, and repeats nothing.
#[test]
fn a_lost_store_is_recovered() {
    let mut scene = Scene::open();
    let room = scene.direct(true);
    scene.ann.say(&room, "hello, q1");
    scene.ann.until_answered(&room, 1);
    scene.ann.say(&room, "!help");
    scene.ann.until_said(&room, BOT, "help", |body| body.contains("/persona"));
    scene.bot.until_doctor_says(|said| said.starts_with("ok") && said.contains("keys can be recovered"));
    scene.bot.until_backed_up(&mut scene.ann);
    scene.bot.stop();
    scene.ann.say(&room, "while you were away, q2");
    std::fs::remove_dir_all(scene.bot.data().join("matrix/store")).expect("it was there");
    scene.bot.start_again();
    scene.ann.until_answered(&room, 2);
    scene.ann.say(&room, "here you are, q3");
    scene.ann.until_answered(&room, 3);
    assert_eq!(scene.ann.answers(&room), [1, 2, 3]);
    let help = scene.ann.said_by(&room, BOT).filter(|shown| shown.body.contains("/persona"));
    assert_eq!((help.count(), scene.ann.unreadable), (1, 0));
    scene.bot.until_doctor_says(|said| said.starts_with("ok"));
}

impl Bot {
    /// Waits until the keys of a room are in the account's backup.
    #[track_caller]
    fn until_backed_up(&self, by: &mut Person) {
        let session = std::fs::read(self.data().join("matrix/session.json")).expect("it is there");
        let session: Value = serde_json::from_slice(&session).expect("JSON");
        by.act(json!({"do": "until_backed_up", "token": session["access_token"]}));
    }
}
