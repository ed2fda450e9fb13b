//! Servers that remove the bot.

use azera_fake_discord::FakeDiscord;

use crate::bot::Bot;
use crate::commands::{find, give, square};
use crate::{answered_for_good, as_described, fake};

/// What is looked for.
const LOOKED_FOR: &str = "password of the lighthouse door";

/// What is found of the lighthouse in a channel.
fn found(fake: &FakeDiscord, channel: u64, who: u64) -> String {
    give(fake, channel, who, "memory", "search", &[("words", LOOKED_FOR)])
}

/// Tells a secret in a channel.
#[track_caller]
fn keep(fake: &FakeDiscord, channel: u64, who: u64, word: &str) {
    let text = format!("the password of the lighthouse door is {word}");
    let retained = give(fake, channel, who, "remember", "", &[("text", &text)]);
    assert!(retained.starts_with("Kept as"), "{retained}");
    find(fake, channel, who, LOOKED_FOR, word);
}

/// Starts the bot on a server with a public and a private channel in which secrets were told, and has it removed.
fn removed(fake: &FakeDiscord, bot: &mut Bot) -> ([u64; 2], [u64; 3], azera_fake_discord::Guild) {
    let ([ann, bob, _], square) = square(fake);
    let (den, dm, guild) = fake.world(|world| {
        let guild = world.channels[&square].guild.expect("a server");
        (world.private_channel(guild, "den", &[ann, bob]), world.dm(bob), guild)
    });
    bot.start(fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    for (channel, word) in [(square, "tangerine"), (den, "obsidian"), (dm, "heliotrope")] {
        keep(fake, channel, bob, word);
    }
    let guild = fake.world(|world| world.evict(guild));
    ([ann, bob], [square, den, dm], guild)
}

#[test]
fn a_server_that_removes_it_is_forgotten_and_nothing_else_is() {
    let fake = fake();
    let mut bot = Bot::new(&fake, None).recalling_at_once().with("AZERA__DISCORD__KEEP_REMOVED_DAYS", "0");
    let ([_, bob], [square, den, dm], guild) = removed(&fake, &mut bot);
    bot.logs("removed the bot is forgotten");
    fake.world(|world| world.readmit(guild));
    let question = fake.world(|world| world.say(square, bob, "Azera, are you back?"));
    answered_for_good(&fake, square, question, "Noted.");
    for channel in [square, den] {
        let answer_text = found(&fake, channel, bob);
        assert!(!answer_text.contains("tangerine") && !answer_text.contains("obsidian"), "{answer_text}");
    }
    let answer_text = found(&fake, dm, bob);
    assert!(
        answer_text.contains("heliotrope") && !answer_text.contains("tangerine") && !answer_text.contains("obsidian"),
        "{answer_text}"
    );
    as_described(&fake);
}

#[test]
fn a_server_that_lets_it_in_again_in_time_finds_everything() {
    let fake = fake();
    let mut bot = Bot::new(&fake, None).recalling_at_once();
    let ([_, bob], [square, den, dm], guild) = removed(&fake, &mut bot);
    // What it knew of the server nobody sees meanwhile, and a start changes nothing about it.
    let answer_text = found(&fake, dm, bob);
    assert!(
        answer_text.contains("heliotrope") && !answer_text.contains("tangerine") && !answer_text.contains("obsidian"),
        "{answer_text}"
    );
    bot.stop(&fake);
    bot.start(&fake);
    fake.world(|world| world.readmit(guild));
    let question = fake.world(|world| world.say(square, bob, "Azera, are you back?"));
    answered_for_good(&fake, square, question, "Noted.");
    assert!(found(&fake, square, bob).contains("tangerine"));
    assert!(found(&fake, den, bob).contains("obsidian"));
    as_described(&fake);
}
