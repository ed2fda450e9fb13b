//! Replies: where, when and in which form.

use azera_fake_discord::{BOT, Kind};

use crate::bot::Bot;
use crate::model::Model;
use crate::{answered, answers, as_described, fake, text};

#[test]
fn the_bot_answers_once_where_it_is_addressed() {
    let fake = fake();
    let (ann, bob) = fake.world(|world| (world.user("Ann"), world.user("Bob")));
    let (square, thread) = fake.world(|world| {
        let guild = world.guild(ann, &[bob]);
        let square = world.channel(guild, "square", Vec::new());
        (square, world.thread(square, "a thread", None))
    });
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    let (idle, mentioned, called, dm, direct, threaded) = fake.world(|world| {
        let idle = world.say(square, ann, "good evening everybody");
        let mentioned = world.say(square, ann, &format!("<@{BOT}> what do you think?"));
        let called = world.say(square, bob, "Azera, are you there?");
        let threaded = world.say(thread, bob, &format!("hello <@{BOT}>"));
        let dm = world.dm(ann);
        (idle, mentioned, called, dm, world.say(dm, ann, "just between us"), threaded)
    });
    for (channel, question) in [(square, mentioned), (square, called), (dm, direct), (thread, threaded)] {
        answered(&fake, channel, question, "Noted.");
    }
    // A reply to the bot's message is addressed to the bot.
    let to_bot = fake.world(|world| {
        let answer = world.answers(square, called)[0]["id"].as_str().expect("an id").parse().expect("a number");
        world.reply(square, bob, "and why is that?", answer)
    });
    answered(&fake, square, to_bot, "Noted.");
    bot.stop(&fake);
    fake.world(|world| {
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
    for secret in ["just between us", "good evening everybody", &fake.token] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    as_described(&fake);
}

#[test]
fn long_replies_are_split_and_mention_nobody() {
    let fake = fake();
    let ann = fake.world(|world| world.user("Ann"));
    let square = fake.world(|world| {
        let guild = world.guild(ann, &[]);
        world.channel(guild, "square", Vec::new())
    });
    let model = Model::start(std::sync::Arc::new(|_| {
        let lines: String = (0..120).map(|n| format!("    let number_{n} = {n}; // one more line\n")).collect();
        (format!("@everyone look:\n```rust\n{lines}"), "```\nThat is all.".to_owned())
    }));
    let mut bot = Bot::new(&fake, Some(&model));
    bot.start(&fake);
    let question = fake.world(|world| world.say(square, ann, "Azera, show me the code"));
    fake.wait("the last part", |world| {
        let parts = answers(world, square, question);
        parts.last().is_some_and(|part| part.ends_with("That is all.")).then_some(())
    });
    let parts = fake.world(|world| answers(world, square, question));
    assert!(parts.len() > 2, "{}", parts.len());
    assert!(parts.iter().all(|part| part.chars().count() <= 2_000 && part.matches("```").count() == 2));
    let lines = parts.join("\n").lines().filter(|line| line.starts_with("    let number_")).count();
    assert_eq!(lines, 120);
    fake.world(|world| assert!(world.bots_messages(square).iter().all(|message| message["mention_everyone"] == false)));
    as_described(&fake);
}

#[test]
fn an_edited_message_is_answered_again_and_a_deleted_one_is_forgotten() {
    let fake = fake();
    let ann = fake.world(|world| world.user("Ann"));
    let dm = fake.world(|world| world.dm(ann));
    let model = Model::start(std::sync::Arc::new(|body| {
        let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let last = last["content"].as_str().unwrap_or_default().to_owned();
        let heard = ["green", "blue"].into_iter().find(|word| last.contains(word)).unwrap_or("nothing");
        (format!("It is {heard}."), String::new())
    }));
    let mut bot = Bot::new(&fake, Some(&model));
    bot.start(&fake);
    let question = fake.world(|world| world.say(dm, ann, "my bicycle is green"));
    answered(&fake, dm, question, "It is green.");
    fake.world(|world| world.edit(dm, question, "my bicycle is blue"));
    answered(&fake, dm, question, "It is blue.");
    fake.world(|world| assert_eq!(world.bots_messages(dm).len(), 1, "the answer was changed in its place"));
    fake.world(|world| world.delete(dm, question));
    fake.wait("the answer to be taken back", |world| world.bots_messages(dm).is_empty().then_some(()));
    as_described(&fake);
}

#[test]
fn other_bots_are_ignored_and_a_flood_gets_one_notice() {
    let fake = fake();
    let (ann, robot) = fake.world(|world| (world.user("Ann"), world.user("Robot")));
    let dm = fake.world(|world| world.dm(ann));
    let square = fake.world(|world| {
        world.bots.push(robot);
        let guild = world.guild(ann, &[robot]);
        world.channel(guild, "square", Vec::new())
    });
    let mut bot = Bot::new(&fake, None).with("AZERA__DISCORD__MESSAGES_PER_PERSON", "3");
    bot.start(&fake);
    let said: Vec<u64> = fake.world(|world| {
        world.say(square, robot, &format!("<@{BOT}> hello fellow bot"));
        (0..6).map(|n| world.say(dm, ann, &format!("message number {n}"))).collect()
    });
    for question in &said[..3] {
        answered(&fake, dm, *question, "Noted.");
    }
    fake.wait("the notice", |world| {
        let is_notice = |message: &&serde_json::Value| text(message).contains("more than I can follow");
        world.bots_messages(dm).into_iter().any(|message| is_notice(&message)).then_some(())
    });
    bot.stop(&fake);
    fake.world(|world| {
        assert_eq!(world.bots_messages(dm).len(), 4);
        assert!(world.bots_messages(square).is_empty());
        assert_eq!(world.channels[&dm].kind, Kind::Dm);
    });
    as_described(&fake);
}
