//! Talking: where, when, and how it looks.

use azera_discord_peer::{BOT, Kind};

use crate::bot::Bot;
use crate::model::Model;
use crate::{answered, answers, as_described, peer, text};

#[test]
fn it_answers_once_where_it_is_addressed() {
    let peer = peer();
    let (ann, bob) = peer.world(|world| (world.user("Ann"), world.user("Bob")));
    let (square, thread) = peer.world(|world| {
        let guild = world.guild(ann, &[bob]);
        let square = world.channel(guild, "square", Vec::new());
        (square, world.thread(square, "a thread", None))
    });
    let mut bot = Bot::new(&peer, None);
    bot.start(&peer);
    let (idle, mentioned, called, dm, direct, threaded) = peer.world(|world| {
        let idle = world.say(square, ann, "good evening everybody");
        let mentioned = world.say(square, ann, &format!("<@{BOT}> what do you think?"));
        let called = world.say(square, bob, "Azera, are you there?");
        let threaded = world.say(thread, bob, &format!("hello <@{BOT}>"));
        let dm = world.dm(ann);
        (idle, mentioned, called, dm, world.say(dm, ann, "just between us"), threaded)
    });
    for (channel, asked) in [(square, mentioned), (square, called), (dm, direct), (thread, threaded)] {
        answered(&peer, channel, asked, "Noted.");
    }
    // A reply to the bot is for the bot.
    let to_bot = peer.world(|world| {
        let answer = world.answers(square, called)[0]["id"].as_str().expect("an id").parse().expect("a number");
        world.reply(square, bob, "and why is that?", answer)
    });
    answered(&peer, square, to_bot, "Noted.");
    bot.stop(&peer);
    peer.world(|world| {
        assert!(answers(world, square, idle).is_empty());
        assert_eq!(world.bots_messages(square).len(), 3);
        assert_eq!(world.bots_messages(dm).len(), 1);
        assert_eq!(world.bots_messages(thread).len(), 1);
        for message in world.bots_messages(square) {
            assert_eq!(message["mention_everyone"], false);
            assert_eq!(message["mentions"], serde_json::json!([]));
        }
    });
    let log = bot.log();
    for secret in ["just between us", "good evening everybody", &peer.token] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    as_described(&peer);
}

#[test]
fn long_replies_come_in_parts_and_what_they_say_calls_nobody() {
    let peer = peer();
    let ann = peer.world(|world| world.user("Ann"));
    let square = peer.world(|world| {
        let guild = world.guild(ann, &[]);
        world.channel(guild, "square", Vec::new())
    });
    let model = Model::start(std::sync::Arc::new(|_| {
        let lines: String = (0..120).map(|n| format!("    let number_{n} = {n}; // one more line\n")).collect();
        (format!("@everyone look:\n```rust\n{lines}"), "```\nThat is all.".to_owned())
    }));
    let mut bot = Bot::new(&peer, Some(&model));
    bot.start(&peer);
    let asked = peer.world(|world| world.say(square, ann, "Azera, show me the code"));
    peer.wait("the last part", |world| {
        let parts = answers(world, square, asked);
        parts.last().is_some_and(|part| part.ends_with("That is all.")).then_some(())
    });
    let parts = peer.world(|world| answers(world, square, asked));
    assert!(parts.len() > 2, "{}", parts.len());
    assert!(parts.iter().all(|part| part.chars().count() <= 2_000 && part.matches("```").count() == 2));
    let lines = parts.join("\n").lines().filter(|line| line.starts_with("    let number_")).count();
    assert_eq!(lines, 120);
    peer.world(|world| assert!(world.bots_messages(square).iter().all(|message| message["mention_everyone"] == false)));
    as_described(&peer);
}

#[test]
fn a_changed_message_is_answered_anew_and_a_deleted_one_is_forgotten() {
    let peer = peer();
    let ann = peer.world(|world| world.user("Ann"));
    let dm = peer.world(|world| world.dm(ann));
    let model = Model::start(std::sync::Arc::new(|body| {
        let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let last = last["content"].as_str().unwrap_or_default().to_owned();
        let heard = ["green", "blue"].into_iter().find(|word| last.contains(word)).unwrap_or("nothing");
        (format!("It is {heard}."), String::new())
    }));
    let mut bot = Bot::new(&peer, Some(&model));
    bot.start(&peer);
    let asked = peer.world(|world| world.say(dm, ann, "my bicycle is green"));
    answered(&peer, dm, asked, "It is green.");
    peer.world(|world| world.edit(dm, asked, "my bicycle is blue"));
    answered(&peer, dm, asked, "It is blue.");
    peer.world(|world| assert_eq!(world.bots_messages(dm).len(), 1, "the answer was changed in its place"));
    peer.world(|world| world.delete(dm, asked));
    peer.wait("the answer to be taken back", |world| world.bots_messages(dm).is_empty().then_some(()));
    as_described(&peer);
}

#[test]
fn other_bots_are_not_listened_to_and_floods_are_told_so_once() {
    let peer = peer();
    let (ann, robot) = peer.world(|world| (world.user("Ann"), world.user("Robot")));
    let dm = peer.world(|world| world.dm(ann));
    let square = peer.world(|world| {
        world.bots.push(robot);
        let guild = world.guild(ann, &[robot]);
        world.channel(guild, "square", Vec::new())
    });
    let mut bot = Bot::new(&peer, None).with("AZERA__DISCORD__MESSAGES_PER_PERSON", "3");
    bot.start(&peer);
    let said: Vec<u64> = peer.world(|world| {
        world.say(square, robot, &format!("<@{BOT}> hello fellow bot"));
        (0..6).map(|n| world.say(dm, ann, &format!("message number {n}"))).collect()
    });
    for asked in &said[..3] {
        answered(&peer, dm, *asked, "Noted.");
    }
    peer.wait("the notice", |world| {
        let told = |message: &&serde_json::Value| text(message).contains("more than I can follow");
        world.bots_messages(dm).into_iter().any(|message| told(&message)).then_some(())
    });
    bot.stop(&peer);
    peer.world(|world| {
        assert_eq!(world.bots_messages(dm).len(), 4);
        assert!(world.bots_messages(square).is_empty());
        assert_eq!(world.channels[&dm].kind, Kind::Dm);
    });
    as_described(&peer);
}
