//! Permissions: the bot shows each person only what they may see at that moment.

use std::time::Instant;

use azera_fake_discord::{BOT, Bits, FakeDiscord, Overwrite};
use serde_json::Value;

use crate::bot::Bot;
use crate::commands::{SEARCH_TIMEOUT, find};
use crate::model::{Model, SECRETS};
use crate::{answers, as_described, fake};

/// Returns the answer of a bot that repeats everything in its prompt.
#[track_caller]
fn answer_to_question(fake: &FakeDiscord, channel: u64, who: u64) -> String {
    let question = fake.world(|world| world.say(channel, who, "Azera, what is the password of the lighthouse door?"));
    fake.wait("an answer", |world| answers(world, channel, question).into_iter().find(|answer| answer.ends_with('.')))
}

/// Checks that an answer names no secret but these.
#[track_caller]
fn check(answer_text: &str, may: &[&str]) {
    for word in SECRETS {
        assert!(!answer_text.contains(word) || may.contains(&word), "{word} was told: {answer_text}");
    }
}

/// Asks until the answer names a word, because search finds what recall finds only once it is indexed. Checks every answer.
#[track_caller]
fn check_until_told(fake: &FakeDiscord, channel: u64, who: u64, word: &str, may: &[&str]) {
    find(fake, channel, who, &format!("password of the old lighthouse door {word}"), word);
    // A search finds what was said just now by its words. Recall needs the indexes, which follow.
    let until = Instant::now() + SEARCH_TIMEOUT;
    loop {
        let answer_text = answer_to_question(fake, channel, who);
        check(&answer_text, may);
        if answer_text.contains(word) {
            return;
        }
        assert!(Instant::now() < until, "{word} was not told, but: {answer_text}");
    }
}

/// Tells the bot a secret and waits for its reply.
#[track_caller]
fn tell(fake: &FakeDiscord, channel: u64, who: u64, word: &str) {
    let text = format!("Azera, the password of the old lighthouse door is {word}, keep it");
    let question = fake.world(|world| world.say(channel, who, &text));
    fake.wait("it to be heard", |world| (!answers(world, channel, question).is_empty()).then_some(()));
}

#[test]
fn a_secret_is_shown_only_to_its_readers() {
    let fake = fake();
    let (ann, bob, cid) = fake.world(|world| (world.user("Ann"), world.user("Bob"), world.user("Cid")));
    let (guild, square, den, other_bar) = fake.world(|world| {
        let guild = world.guild(ann, &[bob, cid]);
        let club = world.guild(cid, &[]);
        let square = world.channel(guild, "square", Vec::new());
        (guild, square, world.private_channel(guild, "den", &[ann, bob]), world.channel(club, "bar", Vec::new()))
    });
    let lounge = fake.world(|world| world.channel(guild, "lounge", Vec::new()));
    let [dm_ann, dm_bob, dm_cid] = fake.world(|world| [world.dm(ann), world.dm(bob), world.dm(cid)]);
    let model = Model::telling_everything();
    let mut bot = Bot::new(&fake, Some(&model)).recalling_at_once().with("AZERA__DISCORD__MESSAGES_PER_PERSON", "1000");
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    tell(&fake, dm_ann, ann, "heliotrope");
    tell(&fake, den, bob, "obsidian");
    tell(&fake, square, cid, "tangerine");
    tell(&fake, other_bar, cid, "zeppelin");
    // The owner of a secret from a DM and others ask for it in a channel and in DMs.
    check_until_told(&fake, square, ann, "tangerine", &["tangerine"]);
    check(&answer_to_question(&fake, square, bob), &["tangerine"]);
    // What was said in one public channel helps in another.
    check_until_told(&fake, lounge, bob, "tangerine", &["tangerine"]);
    check_until_told(&fake, den, ann, "obsidian", &["tangerine", "obsidian"]);
    check_until_told(&fake, other_bar, cid, "zeppelin", &["zeppelin"]);
    check_until_told(&fake, dm_ann, ann, "heliotrope", &["heliotrope", "tangerine", "obsidian"]);
    check_until_told(&fake, dm_bob, bob, "obsidian", &["tangerine", "obsidian"]);
    check_until_told(&fake, dm_cid, cid, "tangerine", &["tangerine", "zeppelin"]);
    // Bob loses access to the den at once, whatever he was told before.
    fake.world(|world| {
        let hidden = Overwrite { id: guild, user: false, allow: Bits::default(), deny: Bits::VIEW };
        let seen = |id| Overwrite { id, user: true, allow: Bits::VIEW, deny: Bits::default() };
        world.set_overwrites(den, vec![hidden, seen(ann), seen(BOT)]);
    });
    check(&answer_to_question(&fake, dm_bob, bob), &["tangerine"]);
    // A role gives Bob access again, and losing the role takes it away.
    fake.world(|world| {
        let role = world.role(guild, Bits::ADMINISTRATOR);
        world.set_roles(guild, bob, vec![role]);
    });
    check_until_told(&fake, dm_bob, bob, "obsidian", &["tangerine", "obsidian"]);
    fake.world(|world| world.set_roles(guild, bob, Vec::new()));
    check(&answer_to_question(&fake, dm_bob, bob), &["tangerine"]);
    // Cid loses access to everything in the server by leaving it.
    fake.world(|world| world.leave(guild, cid));
    check(&answer_to_question(&fake, dm_cid, cid), &["zeppelin"]);
    as_described(&fake);
}

#[test]
fn a_channel_without_send_permission_does_not_block_others() {
    let fake = fake();
    let ann = fake.world(|world| world.user("Ann"));
    let (quiet, square) = fake.world(|world| {
        let guild = world.guild(ann, &[]);
        let mute = Overwrite { id: BOT, user: true, allow: Bits::default(), deny: Bits::SEND };
        (world.channel(guild, "quiet", vec![mute]), world.channel(guild, "square", Vec::new()))
    });
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    fake.world(|world| world.say(quiet, ann, "Azera, are you there?"));
    let question = fake.world(|world| world.say(square, ann, "Azera, are you there?"));
    crate::answered(&fake, square, question, "Noted.");
    let refused = fake.wait("a refusal", |world| {
        let refused = |request: &&azera_fake_discord::RecordedRequest| {
            request.status == 403 && request.path.contains(&quiet.to_string())
        };
        world.requests.iter().find(refused).map(|request| request.body.clone())
    });
    assert!(refused.is_none_or(|body: Value| body["content"].is_string()));
    bot.stop(&fake);
    fake.world(|world| assert!(world.bots_messages(quiet).is_empty()));
}
