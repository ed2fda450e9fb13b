//! What people want to be kept of what they say.

use crate::bot::Bot;
use crate::commands::{find, give, square};
use crate::{answered_for_good, as_described, peer};

#[test]
fn who_wants_so_is_kept_only_in_what_they_say_to_it() {
    let peer = peer();
    let ([ann, bob, _], square) = square(&peer);
    let mut bot = Bot::new(&peer, None).recalling_at_once();
    bot.start(&peer);
    peer.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let wished = give(&peer, square, bob, "privacy", "addressed", &[]);
    assert!(wished.contains("only what you say to me"), "{wished}");
    assert!(give(&peer, square, bob, "privacy", "show", &[]).contains("as you wish"));
    assert!(!give(&peer, square, ann, "privacy", "show", &[]).contains("as you wish"), "it is Bob's wish alone");
    let kettle = peer.world(|world| {
        world.say(square, bob, "the heliotrope ferry leaves at nine");
        world.say(square, ann, "the obsidian bridge is closed");
        world.say(square, bob, "Azera, the tangerine kettle whistles")
    });
    answered_for_good(&peer, square, kettle, "Noted.");
    find(&peer, square, ann, "obsidian bridge", "obsidian bridge");
    find(&peer, square, ann, "tangerine kettle", "tangerine kettle");
    let found = give(&peer, square, ann, "memory", "search", &[("words", "heliotrope ferry leaves at nine")]);
    assert!(!found.contains("heliotrope"), "{found}");
    // A wish outlives what was said.
    give(&peer, square, bob, "forget", "me", &[]);
    assert!(give(&peer, square, bob, "privacy", "show", &[]).contains("as you wish"));
    give(&peer, square, bob, "privacy", "everything", &[]);
    peer.world(|world| world.say(square, bob, "the zeppelin lamp is green"));
    find(&peer, square, ann, "zeppelin lamp", "zeppelin lamp");
    as_described(&peer);
}
