//! Long files.

use crate::bot::Bot;
use crate::commands::{find, give, square};
use crate::{answered_for_good, as_described, peer};

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
