//! Every message is answered exactly once, whatever fails.

use std::time::Duration;

use azera_fake_discord::{FakeDiscord, Fault, Scope};

use crate::bot::Bot;
use crate::model::Model;
use crate::{answered, answers, as_described, fake};

/// Creates a server with a channel and its owner.
fn square(fake: &FakeDiscord) -> (u64, u64) {
    fake.world(|world| {
        let ann = world.user("Ann");
        let guild = world.guild(ann, &[]);
        (world.channel(guild, "square", Vec::new()), ann)
    })
}

/// Checks that each question has one reply and that the bot said nothing else.
#[track_caller]
fn once_each(fake: &FakeDiscord, channel: u64, questions: &[u64]) {
    fake.world(|world| {
        for question in questions {
            assert_eq!(answers(world, channel, *question).len(), 1, "answers to {question}");
        }
        assert_eq!(world.bots_messages(channel).len(), questions.len());
    });
}

#[test]
fn missed_messages_are_answered_and_those_before_the_first_start_are_not() {
    let fake = fake();
    let (square, ann) = square(&fake);
    let dm = fake.world(|world| world.dm(ann));
    let before = fake.world(|world| world.say(square, ann, "Azera, hello?"));
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    let (first, direct) = fake.world(|world| (world.say(square, ann, "Azera, one"), world.say(dm, ann, "one")));
    answered(&fake, square, first, "Noted.");
    answered(&fake, dm, direct, "Noted.");
    bot.kill(&fake);
    let missed: Vec<u64> =
        (0..3).map(|n| fake.world(|world| world.say(square, ann, &format!("Azera, missed {n}")))).collect();
    let direct_missed = fake.world(|world| world.say(dm, ann, "missed too"));
    bot.start(&fake);
    for question in &missed {
        answered(&fake, square, *question, "Noted.");
    }
    answered(&fake, dm, direct_missed, "Noted.");
    bot.stop(&fake);
    bot.start(&fake);
    let last = fake.world(|world| world.say(square, ann, "Azera, last"));
    answered(&fake, square, last, "Noted.");
    bot.stop(&fake);
    fake.world(|world| assert!(answers(world, square, before).is_empty()));
    once_each(&fake, square, &[&[first][..], &missed, &[last]].concat());
    once_each(&fake, dm, &[direct, direct_missed]);
    as_described(&fake);
}

#[test]
fn a_reply_interrupted_by_a_kill_is_finished() {
    let fake = fake();
    let (square, ann) = square(&fake);
    let model = Model::start(std::sync::Arc::new(|_| ("The beginning ".to_owned(), "and the end.".to_owned())));
    model.close();
    let mut bot = Bot::new(&fake, Some(&model));
    bot.start(&fake);
    let question = fake.world(|world| world.say(square, ann, "Azera, tell me something"));
    answered(&fake, square, question, "The beginning");
    bot.kill(&fake);
    model.open();
    bot.start(&fake);
    answered(&fake, square, question, "The beginning and the end.");
    once_each(&fake, square, &[question]);
    as_described(&fake);
}

#[test]
fn every_message_is_answered_once_whatever_the_gateway_does() {
    let fake = fake();
    let (square, ann) = square(&fake);
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    let mut questions = Vec::new();
    let mut say = |text: &str| {
        let id = fake.world(|world| world.say(square, ann, &format!("Azera, {text}")));
        questions.push(id);
        id
    };
    answered(&fake, square, say("at first"), "Noted.");
    // Repeated events, and events in another order.
    fake.world(|world| world.tell_twice(2));
    answered(&fake, square, say("twice"), "Noted.");
    fake.world(|world| world.tell_out_of_order());
    let (one, two) = (say("behind"), say("before"));
    answered(&fake, square, one, "Noted.");
    answered(&fake, square, two, "Noted.");
    // Broken connections that are resumed, with messages sent meanwhile.
    type Break = fn(&mut azera_fake_discord::World);
    let breaks: [(Break, &str); 3] = [
        (|world| world.drop_sockets(), "a dropped socket"),
        (|world| world.ask_to_reconnect(), "op 7"),
        (|world| world.close(4000), "a close code"),
    ];
    for (resumes, (breaks, how)) in breaks.into_iter().enumerate() {
        fake.world(breaks);
        let meanwhile = say(how);
        fake.wait(how, |world| (world.resumed > resumes).then_some(()));
        answered(&fake, square, meanwhile, "Noted.");
    }
    // An invalidated session: only the history has the messages sent meanwhile.
    fake.world(|world| world.invalidate());
    let lost = say("op 9");
    answered(&fake, square, lost, "Noted.");
    bot.stop(&fake);
    once_each(&fake, square, &questions);
    as_described(&fake);
}

#[test]
fn every_message_is_answered_once_whatever_the_api_does() {
    let fake = fake();
    let (square, ann) = square(&fake);
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    let path = format!("/channels/{square}/messages");
    let wait = Duration::from_millis(300);
    let faults = [
        Fault::limited("POST", &path, Scope::User, wait),
        Fault::limited("POST", &path, Scope::Shared, wait),
        Fault::limited("POST", &path, Scope::Global, wait),
        Fault::fails("POST", &path, 500),
        Fault::fails("POST", &path, 502).times(3),
        Fault::done_but_fails("POST", &path, 500),
        Fault::done_but_fails("POST", &path, 504).times(2),
    ];
    let mut questions = Vec::new();
    for fault in faults {
        let id = fake.world(|world| {
            world.order(fault);
            world.say(square, ann, "Azera, and now?")
        });
        answered(&fake, square, id, "Noted.");
        questions.push(id);
    }
    bot.stop(&fake);
    once_each(&fake, square, &questions);
    as_described(&fake);
}

#[test]
fn the_health_of_a_bot_is_what_it_is() {
    let fake = fake();
    let (square, ann) = square(&fake);
    let mut bot = Bot::new(&fake, None);
    let health = |bot: &Bot| bot.command(&["health"]).output().expect("the binary runs");
    let never = health(&bot);
    assert!(!never.status.success() && never.stderr.starts_with(b"azera: no `azera run` works in "), "{never:?}");
    bot.start(&fake);
    let question = fake.world(|world| world.say(square, ann, "Azera, hello?"));
    answered(&fake, square, question, "Noted.");
    let alive = health(&bot);
    assert!(alive.status.success() && alive.stdout.starts_with(b"Azera runs (process "), "{alive:?}");
    bot.stop(&fake);
    assert!(!health(&bot).status.success(), "a stopped bot");
}
