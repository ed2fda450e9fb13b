//! Long files.

use std::sync::Arc;
use std::time::{Duration, Instant};

use azera_discord_peer::Peer;

use crate::bot::Bot;
use crate::commands::{find, give, square};
use crate::model::Model;
use crate::{answered, answered_for_good, as_described, peer};

/// How long a change is waited for.
const LONGEST: Duration = Duration::from_secs(30);

/// What is looked for.
const LOOKED_FOR: &str = "heliotrope key lighthouse keeper stair";

#[test]
fn what_stands_far_back_in_a_long_file_is_found_where_it_may_be_and_goes_with_its_message() {
    let peer = peer();
    let ([ann, bob, cid], square) = square(&peer);
    let den = peer.world(|world| {
        let guild = world.channels[&square].guild.expect("a server");
        world.private_channel(guild, "den", &[ann, bob])
    });
    let mut bot = Bot::new(&peer, None).recalling_at_once();
    bot.start(&peer);
    peer.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let page = "The log of the harbour, of which nobody remembers a thing, goes on and on about ropes and tar.\n";
    let file =
        format!("{}The lighthouse keeper hides the heliotrope key under the third stair.\n{page}", page.repeat(150));
    let asked = peer.world(|world| world.upload(den, bob, "Azera, keep this", &[("harbour.log", file.as_bytes())]));
    answered_for_good(&peer, den, asked, "Noted.");
    let found = |channel: u64, who: u64| give(&peer, channel, who, "memory", "search", &[("words", LOOKED_FOR)]);
    find(&peer, den, ann, LOOKED_FOR, "heliotrope key under the third stair");
    assert!(!found(square, cid).contains("heliotrope"));
    peer.world(|world| world.delete(den, asked));
    peer.wait("the answer to go", |world| world.answers(den, asked).is_empty().then_some(()));
    assert!(!found(den, ann).contains("heliotrope"));
    as_described(&peer);
}

/// Waits until what somebody said is in the record as it stands without its file.
#[track_caller]
fn until_changed(peer: &Peer, dm: u64, who: u64) {
    let until = Instant::now() + LONGEST;
    loop {
        let export = give(peer, dm, who, "memory", "export", &[]);
        if export.contains("Azera, keep this") && !export.contains("a.log") {
            return;
        }
        assert!(Instant::now() < until, "{export}");
    }
}

#[test]
fn a_file_that_is_taken_back_while_its_message_is_answered_is_not_remembered() {
    let peer = peer();
    let ([_, bob, _], square) = square(&peer);
    let dm = peer.world(|world| world.dm(bob));
    let model = Model::start(Arc::new(|_| ("Half ".to_owned(), "and half.".to_owned())));
    let mut bot = Bot::new(&peer, Some(&model)).recalling_at_once();
    bot.start(&peer);
    peer.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let file = |page: &str, secret: &str| format!("{}{secret}\n{page}", page.repeat(150));
    let page = "The log of the harbour, of which nobody remembers a thing, goes on and on about ropes and tar.\n";
    let told = file(page, "The lighthouse keeper hides the heliotrope key under the third stair.");
    model.close();
    let asked = peer.world(|world| world.upload(square, bob, "Azera, keep this", &[("a.log", told.as_bytes())]));
    answered(&peer, square, asked, "Half");
    peer.world(|world| world.remove_files(square, asked));
    until_changed(&peer, dm, bob);
    model.open();
    answered_for_good(&peer, square, asked, "Half and half.");
    // What comes later is there; by then what was taken back would be, too.
    let page = "Bread, butter, onions, two lemons and a sack of flour were bought, and nobody paid for any of it.\n";
    let other = file(page, "The ferryman keeps the obsidian spoon in his left boot.");
    let later = peer.world(|world| world.upload(square, bob, "Azera, and this", &[("b.log", other.as_bytes())]));
    answered_for_good(&peer, square, later, "Half and half.");
    find(&peer, square, bob, "obsidian spoon ferryman boot", "obsidian spoon");
    let found = give(&peer, square, bob, "memory", "search", &[("words", LOOKED_FOR)]);
    assert!(!found.contains("heliotrope"), "{found}");
    as_described(&peer);
}
