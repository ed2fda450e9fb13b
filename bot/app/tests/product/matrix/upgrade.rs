//! Upgraded rooms continue in new rooms.

use super::*;

impl Scene {
    /// Ann upgrades a room and invites its members.
    #[track_caller]
    fn upgrade(&mut self, room: &Room, people: &mut [&mut Person]) -> Room {
        let call = json!({"do": "call", "path": format!("rooms/{}/upgrade", room.id), "body": {"new_version": "10"}});
        let answer = self.ann.act(call);
        let id = answer["answer"]["replacement_room"].as_str().expect("a room").to_owned();
        let new = Room { id, encrypted: room.encrypted };
        self.ann.act(json!({"do": "invite", "room": new.id, "user": BOT}));
        self.ann.until("the bot comes in", |ann| ann.is_in(&new.id, BOT).then_some(()));
        for person in people {
            self.bring_in(&new, person);
        }
        new
    }
}

#[test]
fn an_upgraded_room_knows_what_its_members_knew() {
    let mut scene = Scene::open();
    let (mut bob, mut cid) = (scene.person("bob"), scene.person("cid"));
    for encrypted in [false, true] {
        let old = scene.room_with(&mut bob, json!({"encrypted": encrypted}));
        scene.ann.say(&old, "!azera prefix !a");
        scene.ann.until_said(&old, BOT, "the prefix", |body| body.contains("`!a`"));
        scene.ann.say(&old, "Azera, the code of our shed is secret-kiwi, q1");
        scene.ann.until_answered(&old, 1);
        let new = scene.upgrade(&old, &mut [&mut bob, &mut cid]);
        // Cid was not in the old room. So earlier messages stay hidden while he reads along.
        bob.say(&new, "Azera, what is the code of the shed? q2");
        assert_eq!(bob.until_answered(&new, 2).body, answer_to(2), "{encrypted}");
        bob.say(&new, "!a help");
        bob.until_said(&new, BOT, "help by the old prefix", |body| body.contains("/persona"));
        scene.bot.stop();
        scene.bot.start_again();
        bob.say(&new, "Azera, what is the code of the shed? q3");
        assert_eq!(bob.until_answered(&new, 3).body, answer_to(3), "{encrypted}");
        cid.act(json!({"do": "leave", "room": new.id}));
        scene.ann.until("Cid leaves", |ann| ann.has_left(&new.id, &cid.id).then_some(()));
        scene.ann.say(&new, "Azera, what is the code of the shed? q4");
        let answer = bob.until_answered(&new, 4);
        assert!(answer.body.contains("secret-kiwi"), "{encrypted}: {}", answer.body);
        assert!(cid.seen.iter().all(|shown| !shown.body.contains("secret-kiwi")));
        assert_eq!((scene.ann.answers(&old), bob.answers(&new)), (vec![1], vec![2, 3, 4]));
    }
}

#[test]
fn a_room_with_a_false_predecessor_learns_nothing() {
    let mut scene = Scene::open();
    let mut bob = scene.person("bob");
    let id = scene.ann.room_with(BOT, json!({}));
    let room = Room { id, encrypted: false };
    scene.ann.say(&room, "Azera, the code of my shed is secret-lime, q1");
    let said = scene.ann.until_answered(&room, 1);
    let claims = json!({"predecessor": {"room_id": room.id, "event_id": said.event}});
    let id = bob.room_with(BOT, claims);
    let claimed = Room { id, encrypted: false };
    bob.say(&claimed, "Azera, what is the code of the shed? q2");
    assert_eq!(bob.until_answered(&claimed, 2).body, answer_to(2));
    assert_eq!(scene.ann.answers(&room), [1]);
}
