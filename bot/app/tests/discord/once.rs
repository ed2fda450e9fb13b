//! Every message answered once, whatever breaks.

use std::time::Duration;

use azera_discord_peer::{Fault, Peer, Scope};

use crate::bot::Bot;
use crate::model::Model;
use crate::{answered, answers, as_described, peer};

/// A server with a channel and its owner.
fn square(peer: &Peer) -> (u64, u64) {
    peer.world(|world| {
        let ann = world.user("Ann");
        let guild = world.guild(ann, &[]);
        (world.channel(guild, "square", Vec::new()), ann)
    })
}

/// What was answered with one reply each, and nothing else said.
#[track_caller]
fn once_each(peer: &Peer, channel: u64, asked: &[u64]) {
    peer.world(|world| {
        for asked in asked {
            assert_eq!(answers(world, channel, *asked).len(), 1, "answers to {asked}");
        }
        assert_eq!(world.bots_messages(channel).len(), asked.len());
    });
}

#[test]
fn what_was_said_while_it_was_away_is_answered_and_what_was_said_before_it_came_is_not() {
    let peer = peer();
    let (square, ann) = square(&peer);
    let dm = peer.world(|world| world.dm(ann));
    let before = peer.world(|world| world.say(square, ann, "Azera, hello?"));
    let mut bot = Bot::new(&peer, None);
    bot.start(&peer);
    let (first, direct) = peer.world(|world| (world.say(square, ann, "Azera, one"), world.say(dm, ann, "one")));
    answered(&peer, square, first, "Noted.");
    answered(&peer, dm, direct, "Noted.");
    bot.kill(&peer);
    let missed: Vec<u64> =
        (0..3).map(|n| peer.world(|world| world.say(square, ann, &format!("Azera, missed {n}")))).collect();
    let direct_missed = peer.world(|world| world.say(dm, ann, "missed too"));
    bot.start(&peer);
    for asked in &missed {
        answered(&peer, square, *asked, "Noted.");
    }
    answered(&peer, dm, direct_missed, "Noted.");
    bot.stop(&peer);
    bot.start(&peer);
    let last = peer.world(|world| world.say(square, ann, "Azera, last"));
    answered(&peer, square, last, "Noted.");
    bot.stop(&peer);
    peer.world(|world| assert!(answers(world, square, before).is_empty()));
    once_each(&peer, square, &[&[first][..], &missed, &[last]].concat());
    once_each(&peer, dm, &[direct, direct_missed]);
    as_described(&peer);
}

#[test]
fn killed_in_the_middle_of_a_reply_it_finishes_that_reply() {
    let peer = peer();
    let (square, ann) = square(&peer);
    let model = Model::start(std::sync::Arc::new(|_| ("The beginning ".to_owned(), "and the end.".to_owned())));
    model.close();
    let mut bot = Bot::new(&peer, Some(&model));
    bot.start(&peer);
    let asked = peer.world(|world| world.say(square, ann, "Azera, tell me something"));
    answered(&peer, square, asked, "The beginning");
    bot.kill(&peer);
    model.open();
    bot.start(&peer);
    answered(&peer, square, asked, "The beginning and the end.");
    once_each(&peer, square, &[asked]);
    as_described(&peer);
}

#[test]
fn the_gateway_breaks_in_every_way() {
    let peer = peer();
    let (square, ann) = square(&peer);
    let mut bot = Bot::new(&peer, None);
    bot.start(&peer);
    let mut asked = Vec::new();
    let mut say = |text: &str| {
        let id = peer.world(|world| world.say(square, ann, &format!("Azera, {text}")));
        asked.push(id);
        id
    };
    answered(&peer, square, say("at first"), "Noted.");
    // Events that come twice, and in another order.
    peer.world(|world| world.tell_twice(2));
    answered(&peer, square, say("twice"), "Noted.");
    peer.world(|world| world.tell_out_of_order());
    let (one, two) = (say("behind"), say("before"));
    answered(&peer, square, one, "Noted.");
    answered(&peer, square, two, "Noted.");
    // Connections that break, and are resumed; what was said meanwhile comes with it.
    type Break = fn(&mut azera_discord_peer::World);
    let breaks: [(Break, &str); 3] = [
        (|world| world.drop_sockets(), "a dropped socket"),
        (|world| world.ask_to_reconnect(), "op 7"),
        (|world| world.close(4000), "a close code"),
    ];
    for (resumes, (breaks, how)) in breaks.into_iter().enumerate() {
        peer.world(breaks);
        let meanwhile = say(how);
        peer.wait(how, |world| (world.resumed > resumes).then_some(()));
        answered(&peer, square, meanwhile, "Noted.");
    }
    // A session that is over: what was said meanwhile stands in the history alone.
    peer.world(|world| world.invalidate());
    let lost = say("op 9");
    answered(&peer, square, lost, "Noted.");
    bot.stop(&peer);
    once_each(&peer, square, &asked);
    as_described(&peer);
}

#[test]
fn the_api_fails_in_every_way() {
    let peer = peer();
    let (square, ann) = square(&peer);
    let mut bot = Bot::new(&peer, None);
    bot.start(&peer);
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
    let mut asked = Vec::new();
    for fault in faults {
        let id = peer.world(|world| {
            world.order(fault);
            world.say(square, ann, "Azera, and now?")
        });
        answered(&peer, square, id, "Noted.");
        asked.push(id);
    }
    bot.stop(&peer);
    once_each(&peer, square, &asked);
    as_described(&peer);
}
