//! Servers that remove the bot.

use azera_fake_discord::FakeDiscord;

use crate::bot::Bot;
use crate::commands::{find, give, square};
use crate::{answered_for_good, as_described, fake};

/// The words to search for.
const SEARCH_WORDS: &str = "password of the lighthouse door";

/// Returns what a search for the secret finds in a channel.
fn found(fake: &FakeDiscord, channel: u64, who: u64) -> String {
    give(fake, channel, who, "memory", "search", &[("words", SEARCH_WORDS)])
}

/// Stores a secret in a channel.
#[track_caller]
fn keep(fake: &FakeDiscord, channel: u64, who: u64, word: &str) {
    let text = format!("the password of the lighthouse door is {word}");
    let stored = give(fake, channel, who, "remember", "", &[("text", &text)]);
    assert!(stored.starts_with("Kept as"), "{stored}");
    find(fake, channel, who, SEARCH_WORDS, word);
}

/// Starts the bot, stores secrets in a public channel, a private channel and a DM, and lets the server remove the bot.
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
fn only_the_server_that_removes_the_bot_is_forgotten() {
    let fake = fake();
    let mut bot = Bot::new(&fake, None).recalling_at_once().with("AZERA__DISCORD__KEEP_REMOVED_DAYS", "0");
    let ([_, bob], [square, den, dm], guild) = removed(&fake, &mut bot);
    bot.logs("forgot a server that removed the bot");
    fake.world(|world| world.readmit(guild));
    let question = fake.world(|world| world.say(square, bob, "Azera, are you back?"));
    answered_for_good(&fake, square, question, "Noted.");
    for channel in [square, den] {
        let found_text = found(&fake, channel, bob);
        assert!(!found_text.contains("tangerine") && !found_text.contains("obsidian"), "{found_text}");
    }
    let found_text = found(&fake, dm, bob);
    assert!(
        found_text.contains("heliotrope") && !found_text.contains("tangerine") && !found_text.contains("obsidian"),
        "{found_text}"
    );
    as_described(&fake);
}

#[test]
fn a_server_that_readmits_the_bot_in_time_loses_nothing() {
    let fake = fake();
    let mut bot = Bot::new(&fake, None).recalling_at_once();
    let ([_, bob], [square, den, dm], guild) = removed(&fake, &mut bot);
    // Meanwhile nobody can see the server's memories, and a restart changes nothing.
    let found_text = found(&fake, dm, bob);
    assert!(
        found_text.contains("heliotrope") && !found_text.contains("tangerine") && !found_text.contains("obsidian"),
        "{found_text}"
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
