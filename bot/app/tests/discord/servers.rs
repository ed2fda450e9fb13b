//! Servers that remove the bot.

use azera_discord_peer::Peer;

use crate::bot::Bot;
use crate::commands::{find, give, square};
use crate::{answered_for_good, as_described, peer};

/// What is looked for.
const LOOKED_FOR: &str = "password of the lighthouse door";

/// What is found of the lighthouse in a channel.
fn found(peer: &Peer, channel: u64, who: u64) -> String {
    give(peer, channel, who, "memory", "search", &[("words", LOOKED_FOR)])
}

/// Tells a secret in a channel.
#[track_caller]
fn keep(peer: &Peer, channel: u64, who: u64, word: &str) {
    let text = format!("the password of the lighthouse door is {word}");
    let kept = give(peer, channel, who, "remember", "", &[("text", &text)]);
    assert!(kept.starts_with("Kept as"), "{kept}");
    find(peer, channel, who, LOOKED_FOR, word);
}

/// Starts the bot on a server with a public and a private channel in which secrets were told, and has it removed.
fn removed(peer: &Peer, bot: &mut Bot) -> ([u64; 2], [u64; 3], azera_discord_peer::Guild) {
    let ([ann, bob, _], square) = square(peer);
    let (den, dm, guild) = peer.world(|world| {
        let guild = world.channels[&square].guild.expect("a server");
        (world.private_channel(guild, "den", &[ann, bob]), world.dm(bob), guild)
    });
    bot.start(peer);
    peer.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    for (channel, word) in [(square, "tangerine"), (den, "obsidian"), (dm, "heliotrope")] {
        keep(peer, channel, bob, word);
    }
    let guild = peer.world(|world| world.evict(guild));
    ([ann, bob], [square, den, dm], guild)
}

#[test]
fn a_server_that_removes_it_is_forgotten_and_nothing_else_is() {
    let peer = peer();
    let mut bot = Bot::new(&peer, None).recalling_at_once().with("AZERA__DISCORD__KEEP_REMOVED_DAYS", "0");
    let ([_, bob], [square, den, dm], guild) = removed(&peer, &mut bot);
    bot.logs("removed the bot is forgotten");
    peer.world(|world| world.readmit(guild));
    let asked = peer.world(|world| world.say(square, bob, "Azera, are you back?"));
    answered_for_good(&peer, square, asked, "Noted.");
    for channel in [square, den] {
        let told = found(&peer, channel, bob);
        assert!(!told.contains("tangerine") && !told.contains("obsidian"), "{told}");
    }
    let told = found(&peer, dm, bob);
    assert!(told.contains("heliotrope") && !told.contains("tangerine") && !told.contains("obsidian"), "{told}");
    as_described(&peer);
}

#[test]
fn a_server_that_lets_it_in_again_in_time_finds_everything() {
    let peer = peer();
    let mut bot = Bot::new(&peer, None).recalling_at_once();
    let ([_, bob], [square, den, dm], guild) = removed(&peer, &mut bot);
    // What it knew of the server nobody sees meanwhile, and a start changes nothing about it.
    let told = found(&peer, dm, bob);
    assert!(told.contains("heliotrope") && !told.contains("tangerine") && !told.contains("obsidian"), "{told}");
    bot.stop(&peer);
    bot.start(&peer);
    peer.world(|world| world.readmit(guild));
    let asked = peer.world(|world| world.say(square, bob, "Azera, are you back?"));
    answered_for_good(&peer, square, asked, "Noted.");
    assert!(found(&peer, square, bob).contains("tangerine"));
    assert!(found(&peer, den, bob).contains("obsidian"));
    as_described(&peer);
}
