//! Buttons and reactions on replies, also on old ones and after restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use azera_fake_discord::{FakeDiscord, Invoked, World};

use crate::bot::Bot;
use crate::commands::{SEARCH_TIMEOUT, answer_text, give, square};
use crate::model::Model;
use crate::{answered_for_good, answers, as_described, fake, text};

/// Returns the id of the reply to a message.
fn reply_to(world: &World, channel: u64, question: u64) -> u64 {
    let reply = world.answers(channel, question)[0]["id"].as_str().expect("an id");
    reply.parse().expect("a number")
}

#[track_caller]
fn press(fake: &FakeDiscord, channel: u64, question: u64, who: u64, label: &str) -> String {
    let pressed = fake.world(|world| {
        let message = world.answers(channel, question)[0].clone();
        let buttons = message["components"][0]["components"].as_array().cloned().unwrap_or_default();
        let button = buttons.iter().find(|button| button["label"] == *label).expect("a button");
        let custom_id = button["custom_id"].as_str().expect("an id").to_owned();
        world.invoke(channel, who, Invoked::Button { message: reply_to(world, channel, question), custom_id })
    });
    answer_text(fake, pressed)
}

fn react(fake: &FakeDiscord, channel: u64, question: u64, who: u64, emoji: &str) {
    fake.world(|world| {
        let reply = reply_to(world, channel, question);
        world.react(channel, reply, who, emoji);
    });
}

fn take_back(fake: &FakeDiscord, channel: u64, question: u64, who: u64, emoji: &str) {
    fake.world(|world| {
        let reply = reply_to(world, channel, question);
        world.take_back(channel, reply, who, emoji);
    });
}

/// Waits until the bot says something to a person in a direct message.
#[track_caller]
fn dm_says(fake: &FakeDiscord, who: u64, words: &str) {
    fake.wait(&format!("{words:?} in a direct message"), |world| {
        let dm = world.dm(who);
        world.bots_messages(dm).into_iter().any(|message| text(message).contains(words)).then_some(())
    });
}

/// Pushes the reply out of the bot's caches: a restart, and 150 messages of another bot.
fn age_reply(fake: &FakeDiscord, bot: &mut Bot, channel: u64) {
    bot.stop(fake);
    fake.world(|world| {
        world.forget_nonces();
        let robot = world.user("Robot");
        world.bots.push(robot);
        for n in 0..150 {
            world.say(channel, robot, &format!("number {n}"));
        }
    });
    bot.start(fake);
}

#[test]
fn buttons_and_reactions_work_on_old_replies_for_permitted_people() {
    let fake = fake();
    let ([_, bob, cid], square) = square(&fake);
    let count = Arc::new(AtomicUsize::new(0));
    let model = Model::start(Arc::new(move |_| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        (format!("This is answer number {number}."), String::new())
    }));
    let mut bot = Bot::new(&fake, Some(&model));
    bot.start(&fake);
    let question = fake.world(|world| world.say(square, bob, "Azera, what of the lighthouse?"));
    let shows = |number: usize| {
        answered_for_good(&fake, square, question, &format!("This is answer number {number}."));
        fake.world(|world| assert_eq!(answers(world, square, question).len(), 1, "it stands where it stood"));
    };
    shows(1);
    age_reply(&fake, &mut bot, square);
    let refused = press(&fake, square, question, cid, "Again");
    assert!(refused.contains("Only the person I answered"), "{refused}");
    assert_eq!(press(&fake, square, question, bob, "Again"), "Done.");
    shows(2);
    age_reply(&fake, &mut bot, square);
    press(&fake, square, question, bob, "\u{25c0}");
    shows(1);
    press(&fake, square, question, bob, "\u{25b6}");
    shows(2);
    let why = press(&fake, square, question, cid, "Why?");
    assert!(why.contains("Prompt in tokens"), "{why}");
    age_reply(&fake, &mut bot, square);
    react(&fake, square, question, bob, "🔁");
    shows(3);
    react(&fake, square, question, bob, "⬅️");
    shows(2);
    react(&fake, square, question, cid, "👍");
    react(&fake, square, question, cid, "❓");
    dm_says(&fake, cid, "Prompt in tokens");
    react(&fake, square, question, cid, "🔁");
    dm_says(&fake, cid, "Only the person I answered");
    react(&fake, square, question, cid, "🗑️");
    dm_says(&fake, cid, "somebody else's");
    shows(2);
    age_reply(&fake, &mut bot, square);
    react(&fake, square, question, bob, "🗑️");
    dm_says(&fake, bob, "Forgotten");
    fake.wait("the reply to go", |world| answers(world, square, question).is_empty().then_some(()));
    bot.stop(&fake);
    fake.world(|world| {
        let (dm_bob, dm_cid) = (world.dm(bob), world.dm(cid));
        assert_eq!((world.bots_messages(dm_bob).len(), world.bots_messages(dm_cid).len()), (1, 3));
    });
    as_described(&fake);
}

/// Waits until a person's thumbs are this opinion, by what is exported for them: a thumb shows nothing itself.
#[track_caller]
fn until_thumb(fake: &FakeDiscord, who: u64, want: Option<bool>) {
    let until = Instant::now() + SEARCH_TIMEOUT;
    let dm = fake.world(|world| world.dm(who));
    let shown = |is_up: bool| format!("\"helpful\": {is_up}");
    loop {
        let export = give(fake, dm, who, "memory", "export", &[]);
        assert!(export.contains("\"ratings\""), "{export}");
        if [true, false].map(|is_up| export.contains(&shown(is_up))) == [want == Some(true), want == Some(false)] {
            return;
        }
        assert!(Instant::now() < until, "no thumb {want:?} in {export}");
    }
}

/// A thumb says nothing in the channel and in no direct message. It counts for its person alone, and until it goes.
#[test]
fn a_thumb_rates_the_memories_behind_a_reply_until_it_goes() {
    let fake = fake();
    let ([_, bob, cid], square) = square(&fake);
    let model = Model::start(Arc::new(|_| ("I see.".to_owned(), String::new())));
    // A thumb counts as a message of its person.
    let mut bot = Bot::new(&fake, Some(&model)).recalling_at_once().with("AZERA__DISCORD__MESSAGES_PER_PERSON", "100");
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    give(&fake, square, bob, "remember", "", &[("text", "my boat is called heliotrope")]);
    let question = fake.world(|world| world.say(square, bob, "Azera, what is my boat called?"));
    answered_for_good(&fake, square, question, "I see.");
    until_thumb(&fake, bob, None);
    react(&fake, square, question, bob, "👍");
    until_thumb(&fake, bob, Some(true));
    until_thumb(&fake, cid, None);
    age_reply(&fake, &mut bot, square);
    take_back(&fake, square, question, bob, "👍");
    until_thumb(&fake, bob, None);
    // Of two thumbs the later one counts.
    react(&fake, square, question, bob, "👍🏽");
    until_thumb(&fake, bob, Some(true));
    react(&fake, square, question, bob, "👎");
    until_thumb(&fake, bob, Some(false));
    take_back(&fake, square, question, bob, "👍🏽");
    take_back(&fake, square, question, cid, "👎");
    until_thumb(&fake, bob, Some(false));
    take_back(&fake, square, question, bob, "👎");
    until_thumb(&fake, bob, None);
    // When the later one goes, the one before still stands.
    for (emoji, is_up) in [("👍", true), ("👍🏽", true), ("👎", false)] {
        react(&fake, square, question, bob, emoji);
        until_thumb(&fake, bob, Some(is_up));
    }
    take_back(&fake, square, question, bob, "👎");
    until_thumb(&fake, bob, Some(true));
    take_back(&fake, square, question, bob, "👍");
    react(&fake, square, question, cid, "👎");
    until_thumb(&fake, cid, Some(false));
    until_thumb(&fake, bob, Some(true));
    // A moderator removes everybody's reactions.
    let reply = fake.world(|world| reply_to(world, square, question));
    fake.world(|world| world.remove_reactions(square, reply));
    until_thumb(&fake, cid, None);
    until_thumb(&fake, bob, None);
    // A forgotten answer takes its thumbs along.
    react(&fake, square, question, bob, "👎");
    until_thumb(&fake, bob, Some(false));
    give(&fake, square, bob, "forget", "last", &[("quotes", "true")]);
    until_thumb(&fake, bob, None);
    bot.stop(&fake);
    fake.world(|world| {
        for who in [bob, cid] {
            let dm = world.dm(who);
            let told = world.bots_messages(dm).iter().any(|message| text(message).contains("memor"));
            assert!(!told, "nobody is told anything");
        }
    });
    as_described(&fake);
}
