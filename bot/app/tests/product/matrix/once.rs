//! Each message is answered once and none is lost, whatever happens in between.

use std::time::Duration;

use super::*;
use crate::kills::Dice;

/// Number of messages while the bot is down; more than one sync returns.
const MISSED: usize = 35;

#[test]
fn messages_are_answered_once_in_plain_and_encrypted_rooms_across_restarts() {
    let mut scene = Scene::open();
    for encrypted in [false, true] {
        let room = scene.direct(encrypted);
        scene.ann.say(&room, "hello, q1");
        let answer = scene.ann.until_answered(&room, 1);
        assert_eq!((answer.encrypted, answer.kind.as_str()), (encrypted, "m.text"));
        scene.bot.stop();
        scene.bot.start_again();
        scene.ann.say(&room, "and now, q2");
        scene.ann.until_answered(&room, 2);
        assert_eq!(scene.ann.answers(&room), [1, 2]);
    }
    assert_eq!(scene.ann.unreadable, 0);
}

#[test]
fn missed_messages_are_answered_in_order() {
    let mut scene = Scene::open();
    let room = scene.direct(true);
    scene.ann.say(&room, "hello, q0");
    scene.ann.until_answered(&room, 0);
    scene.bot.stop();
    for number in 1..=MISSED {
        scene.ann.say(&room, &format!("this is q{number}"));
    }
    scene.bot.start_again();
    for number in 1..=MISSED {
        scene.ann.until_answered(&room, number);
    }
    assert_eq!(scene.ann.answers(&room), (0..=MISSED).collect::<Vec<_>>());
}

#[test]
fn a_reply_interrupted_by_a_kill_is_finished_in_place() {
    let mut scene = Scene::open();
    let room = scene.direct(true);
    scene.ann.say(&room, "think slowly about q1");
    let half = scene.ann.until_said(&room, BOT, "the first half", |body| body.starts_with("This is"));
    assert_ne!(half.body, answer_to(1));
    scene.bot.kill();
    scene.model.release();
    scene.bot.start_again();
    let whole = scene.ann.until_answered(&room, 1);
    assert_eq!(whole.event, half.event, "it is finished where it was begun");
    scene.ann.say(&room, "then, q2");
    scene.ann.until_answered(&room, 2);
    assert_eq!(scene.ann.answers(&room), [1, 2]);
    assert_eq!(scene.ann.said_by(&room, BOT).count(), 2);
}

/// Kills the bot after the homeserver stored the event and before the bot knows: at the first piece of a reply, and at
/// its last.
#[test]
fn a_kill_before_the_acknowledgement_repeats_nothing() {
    let mut scene = Scene::open();
    scene.bot.stop();
    let proxy = Proxy::start(&scene.homeserver.url);
    scene.bot = Bot::at(&proxy.url, scene.folder(), &scene.model, Settings::new());
    for encrypted in [false, true] {
        let room = scene.direct(encrypted);
        scene.ann.say(&room, "hello, q1");
        scene.ann.until_answered(&room, 1);
        proxy.keep(true);
        scene.ann.say(&room, "once, q2");
        proxy.until_stored();
        scene.bot.kill();
        proxy.keep(false);
        scene.bot.start_again();
        scene.ann.until_answered(&room, 2);
        scene.ann.say(&room, "then, q3");
        scene.ann.until_answered(&room, 3);
        assert_eq!(scene.ann.answers(&room), [1, 2, 3]);
        assert_eq!(scene.ann.said_by(&room, BOT).count(), 3);
    }
}

#[test]
fn a_reply_survives_a_restart_of_the_homeserver() {
    let mut scene = Scene::open();
    let room = scene.direct(true);
    scene.ann.say(&room, "think slowly about q1");
    let half = scene.ann.until_said(&room, BOT, "the first half", |body| body.starts_with("This is"));
    scene.homeserver.stop();
    scene.model.release();
    scene.homeserver.start_again();
    let whole = scene.ann.until_answered(&room, 1);
    assert_eq!(whole.event, half.event);
    scene.ann.say(&room, "then, q2");
    scene.ann.until_answered(&room, 2);
    assert_eq!(scene.ann.answers(&room), [1, 2]);
}

/// Cuts the connection to the homeserver in the middle of a reply. Meanwhile more messages arrive than one sync
/// returns.
#[test]
fn a_reply_survives_a_cut_connection() {
    let mut scene = Scene::open();
    scene.bot.stop();
    let proxy = Proxy::start(&scene.homeserver.url);
    scene.bot = Bot::at(&proxy.url, scene.folder(), &scene.model, Settings::new());
    let room = scene.direct(true);
    scene.ann.say(&room, "think slowly about q0");
    let half = scene.ann.until_said(&room, BOT, "the first half", |body| body.starts_with("This is"));
    proxy.cut(true);
    scene.model.release();
    let last = 14;
    for number in 1..=last {
        scene.ann.say(&room, &format!("this is q{number}"));
    }
    proxy.cut(false);
    for number in 0..=last {
        scene.ann.until_answered(&room, number);
    }
    assert_eq!(scene.ann.answers(&room), (0..=last).collect::<Vec<_>>());
    let first = scene.ann.said_by(&room, BOT).next().expect("an answer");
    assert_eq!((&first.event, first.body.as_str()), (&half.event, answer_to(0).as_str()));
}

/// Returns the number of kills in [`repeated_kills_lose_nothing_and_repeat_nothing`]; `make soak` asks for more.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn kills() -> usize {
    let given = std::env::var("AZERA_SOAK_KILLS").ok();
    given.map_or(6, |given| given.parse().expect("AZERA_SOAK_KILLS is a number"))
}

/// Kills the bot after some time, after some visible output, or while it starts.
fn kill_somewhere(scene: &mut Scene, dice: &mut Dice) {
    let ms = |dice: &mut Dice, most| Duration::from_millis(dice.throw(most));
    let shown = |ann: &Person| -> usize {
        ann.seen.iter().filter(|shown| shown.sender == BOT).map(|shown| 1 + shown.edits.len()).sum()
    };
    match dice.throw(3) {
        0 => scene.ann.hear_for(ms(dice, 1_500), |_| false),
        1 => {
            let enough = shown(&scene.ann) + 1 + dice.throw(6) as usize;
            // The bot may have nothing more to say.
            scene.ann.hear_for(Duration::from_secs(3), |ann| shown(ann) >= enough);
        }
        _ => {
            scene.bot.kill();
            scene.bot.start_and_kill(ms(dice, 2_500));
        }
    }
    scene.bot.kill();
}

/// Kills the bot at random points while several rooms talk to it. Each message must be answered once, in the order of
/// its room.
#[test]
fn repeated_kills_lose_nothing_and_repeat_nothing() {
    let mut scene = Scene::open();
    let mut bob = scene.person("bob");
    let rooms = [
        scene.direct(true),
        scene.direct(false),
        scene.room_with(&mut bob, json!({"encrypted": true})),
        scene.room_with(&mut bob, json!({})),
    ];
    let mut said = [0; 4];
    let (kills, mut dice) = (kills(), Dice(0x6d61_7472_6978_2d34));
    for _ in 0..kills {
        for _ in 0..2 + dice.throw(5) {
            let at = dice.throw(rooms.len() as u64) as usize;
            scene.ann.say(&rooms[at], &format!("Azera, this is q{}", said[at]));
            said[at] += 1;
        }
        kill_somewhere(&mut scene, &mut dice);
        scene.bot.start_again();
    }
    for (room, said) in rooms.iter().zip(said) {
        scene.ann.say(room, &format!("Azera, at last, q{said}"));
        scene.ann.until_answered(room, said);
        assert_eq!(scene.ann.answers(room), (0..=said).collect::<Vec<_>>());
        assert_eq!(scene.ann.said_by(room, BOT).count(), said + 1);
    }
    println!("{kills} kills, {} messages in {} rooms: each answered once", said.iter().sum::<usize>() + 4, rooms.len());
    assert_eq!((scene.ann.unreadable, bob.unreadable), (0, 0));
}

/// Prints the time to the first words. No limit applies, because machines differ.
#[test]
fn an_answer_begins_soon() {
    let mut scene = Scene::open();
    let room = scene.direct(true);
    let mut times: Vec<f64> = (0..30)
        .map(|number| {
            scene.ann.say(&room, &format!("quick, q{number}"));
            let sent = scene.ann.sent;
            (scene.ann.until_answered(&room, number).at - sent) * 1_000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "from the homeserver's having a message to the client's showing the first words, encrypted: p50 {:.0} ms, p95 {:.0} ms",
        times[15], times[28]
    );
    assert_eq!(scene.ann.answers(&room), (0..30).collect::<Vec<_>>());
}
