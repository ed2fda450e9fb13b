//! Each message is answered once and none is lost, whatever happens in between.

use super::*;

/// What is missed while the bot is away; more than a sync brings at once.
const MISSED: usize = 35;

#[test]
fn in_plain_and_encrypted_rooms_over_restarts() {
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
fn what_was_missed_is_answered_in_order() {
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
fn killed_in_the_middle_of_a_reply() {
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

/// The homeserver has the event, and the bot is killed before it learns so: with the first piece of a reply, and with its last.
#[test]
fn killed_between_sending_and_knowing() {
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
        proxy.until_kept();
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
fn the_homeserver_restarts_in_the_middle_of_a_reply() {
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

/// Kills in [`killed_again_and_again`]; `make soak` asks for more.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn kills() -> usize {
    let given = std::env::var("AZERA_SOAK_KILLS").ok();
    given.map_or(6, |given| given.parse().expect("AZERA_SOAK_KILLS is a number"))
}

/// Killed right after a message was sent, at the first words of an answer, and when it is whole, in turn.
#[test]
fn killed_again_and_again() {
    let mut scene = Scene::open();
    let rooms = [scene.direct(true), scene.direct(false)];
    let kills = kills();
    for number in 0..kills {
        for room in &rooms {
            scene.ann.say(room, &format!("this is q{number}"));
        }
        let room = &rooms[number % 2];
        match number % 3 {
            0 => {}
            1 => {
                let begins = format!("This is the whole answer to q{number}.");
                scene.ann.until_said(room, BOT, &begins, |body| body.starts_with(&begins));
            }
            _ => drop(scene.ann.until_answered(room, number)),
        }
        scene.bot.kill();
        scene.bot.start_again();
    }
    for room in &rooms {
        scene.ann.say(room, &format!("at last, q{kills}"));
        scene.ann.until_answered(room, kills);
        assert_eq!(scene.ann.answers(room), (0..=kills).collect::<Vec<_>>());
        assert_eq!(scene.ann.said_by(room, BOT).count(), kills + 1);
    }
    println!("{kills} kills, {} messages: each answered once", 2 * (kills + 1));
    assert_eq!(scene.ann.unreadable, 0);
}

/// How long the first words take is noted, not held against it: machines differ.
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
