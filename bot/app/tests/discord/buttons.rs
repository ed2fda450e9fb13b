//! What people do about replies, by buttons and by reactions, long after they were written and over restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use azera_discord_peer::{Invoked, Peer, World};

use crate::bot::Bot;
use crate::commands::{square, told};
use crate::model::Model;
use crate::{answered_for_good, answers, as_described, peer, text};

/// The message that answers another.
fn reply_to(world: &World, channel: u64, asked: u64) -> u64 {
    let reply = world.answers(channel, asked)[0]["id"].as_str().expect("an id");
    reply.parse().expect("a number")
}

#[track_caller]
fn press(peer: &Peer, channel: u64, asked: u64, who: u64, label: &str) -> String {
    let pressed = peer.world(|world| {
        let message = world.answers(channel, asked)[0].clone();
        let buttons = message["components"][0]["components"].as_array().cloned().unwrap_or_default();
        let button = buttons.iter().find(|button| button["label"] == *label).expect("a button");
        let custom_id = button["custom_id"].as_str().expect("an id").to_owned();
        world.invoke(channel, who, Invoked::Button { message: reply_to(world, channel, asked), custom_id })
    });
    told(peer, pressed)
}

fn react(peer: &Peer, channel: u64, asked: u64, who: u64, emoji: &str) {
    peer.world(|world| {
        let reply = reply_to(world, channel, asked);
        world.react(channel, reply, who, emoji);
    });
}

/// Waits until somebody was told something by direct message.
#[track_caller]
fn told_in_dm(peer: &Peer, who: u64, words: &str) {
    peer.wait(&format!("{words:?} in a direct message"), |world| {
        let dm = world.dm(who);
        world.bots_messages(dm).into_iter().any(|message| text(message).contains(words)).then_some(())
    });
}

/// So much is said by others, and so much time passes, that nobody knows of the reply any more but Discord.
fn later(peer: &Peer, bot: &mut Bot, channel: u64) {
    bot.stop(peer);
    peer.world(|world| {
        world.forget_nonces();
        let robot = world.user("Robot");
        world.bots.push(robot);
        for n in 0..150 {
            world.say(channel, robot, &format!("number {n}"));
        }
    });
    bot.start(peer);
}

#[test]
fn buttons_and_reactions_work_on_old_replies_for_who_may() {
    let peer = peer();
    let ([_, bob, cid], square) = square(&peer);
    let count = Arc::new(AtomicUsize::new(0));
    let model = Model::start(Arc::new(move |_| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        (format!("This is answer number {number}."), String::new())
    }));
    let mut bot = Bot::new(&peer, Some(&model));
    bot.start(&peer);
    let asked = peer.world(|world| world.say(square, bob, "Azera, what of the lighthouse?"));
    let shows = |number: usize| {
        answered_for_good(&peer, square, asked, &format!("This is answer number {number}."));
        peer.world(|world| assert_eq!(answers(world, square, asked).len(), 1, "it stands where it stood"));
    };
    shows(1);
    later(&peer, &mut bot, square);
    let refused = press(&peer, square, asked, cid, "Again");
    assert!(refused.contains("Only the person I answered"), "{refused}");
    assert_eq!(press(&peer, square, asked, bob, "Again"), "Done.");
    shows(2);
    later(&peer, &mut bot, square);
    press(&peer, square, asked, bob, "\u{25c0}");
    shows(1);
    press(&peer, square, asked, bob, "\u{25b6}");
    shows(2);
    let why = press(&peer, square, asked, cid, "Why?");
    assert!(why.contains("Prompt in tokens"), "{why}");
    later(&peer, &mut bot, square);
    react(&peer, square, asked, bob, "🔁");
    shows(3);
    react(&peer, square, asked, bob, "⬅️");
    shows(2);
    react(&peer, square, asked, cid, "👍");
    react(&peer, square, asked, cid, "❓");
    told_in_dm(&peer, cid, "Prompt in tokens");
    react(&peer, square, asked, cid, "🔁");
    told_in_dm(&peer, cid, "Only the person I answered");
    react(&peer, square, asked, cid, "🗑️");
    told_in_dm(&peer, cid, "somebody else's");
    shows(2);
    later(&peer, &mut bot, square);
    react(&peer, square, asked, bob, "🗑️");
    told_in_dm(&peer, bob, "Forgotten");
    peer.wait("the reply to go", |world| answers(world, square, asked).is_empty().then_some(()));
    bot.stop(&peer);
    peer.world(|world| {
        let (dm_bob, dm_cid) = (world.dm(bob), world.dm(cid));
        assert_eq!((world.bots_messages(dm_bob).len(), world.bots_messages(dm_cid).len()), (1, 3));
    });
    as_described(&peer);
}
