//! Who may be shown what, by the permissions of the moment.

use azera_fake_discord::{BOT, Bits, FakeDiscord, Overwrite};
use serde_json::Value;

use crate::bot::Bot;
use crate::commands::find;
use crate::model::{Model, SECRETS};
use crate::{answers, as_described, fake};

/// What the bot, which tells everything it knows, says to a question.
#[track_caller]
fn answer_text(fake: &FakeDiscord, channel: u64, who: u64) -> String {
    let question = fake.world(|world| world.say(channel, who, "Azera, what is the password of the lighthouse door?"));
    fake.wait("an answer", |world| answers(world, channel, question).into_iter().find(|answer| answer.ends_with('.')))
}

/// What the bot says to the question once it finds a word there: what was said is found by its meaning a moment later, when
/// it was embedded.
#[track_caller]
fn wait_for_answer(fake: &FakeDiscord, channel: u64, who: u64, word: &str) -> String {
    find(fake, channel, who, &format!("password of the old lighthouse door {word}"), word);
    let answer_text = answer_text(fake, channel, who);
    assert!(answer_text.contains(word), "{word} was not told, but: {answer_text}");
    answer_text
}

/// Tells a secret, and waits until it was heard.
#[track_caller]
fn tell(fake: &FakeDiscord, channel: u64, who: u64, word: &str) {
    let text = format!("Azera, the password of the old lighthouse door is {word}, keep it");
    let question = fake.world(|world| world.say(channel, who, &text));
    fake.wait("it to be heard", |world| (!answers(world, channel, question).is_empty()).then_some(()));
}

#[test]
fn secrets_stay_where_they_were_told() {
    let fake = fake();
    let (ann, bob, cid) = fake.world(|world| (world.user("Ann"), world.user("Bob"), world.user("Cid")));
    let (guild, square, den, other_bar) = fake.world(|world| {
        let guild = world.guild(ann, &[bob, cid]);
        let club = world.guild(cid, &[]);
        let square = world.channel(guild, "square", Vec::new());
        (guild, square, world.private_channel(guild, "den", &[ann, bob]), world.channel(club, "bar", Vec::new()))
    });
    let [dm_ann, dm_bob, dm_cid] = fake.world(|world| [world.dm(ann), world.dm(bob), world.dm(cid)]);
    let model = Model::telling_everything();
    let mut bot = Bot::new(&fake, Some(&model)).recalling_at_once().with("AZERA__DISCORD__MESSAGES_PER_PERSON", "1000");
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    tell(&fake, dm_ann, ann, "heliotrope");
    tell(&fake, den, bob, "obsidian");
    tell(&fake, square, cid, "tangerine");
    tell(&fake, other_bar, cid, "zeppelin");
    #[track_caller]
    fn check(answer_text: &str, may: &[&str]) {
        for word in SECRETS {
            assert!(!answer_text.contains(word) || may.contains(&word), "{word} was told: {answer_text}");
        }
    }
    // The owner of a DM's secret and others ask for it in a channel, and in DMs.
    check(&wait_for_answer(&fake, square, ann, "tangerine"), &["tangerine"]);
    check(&answer_text(&fake, square, bob), &["tangerine"]);
    check(&wait_for_answer(&fake, den, ann, "obsidian"), &["tangerine", "obsidian"]);
    check(&wait_for_answer(&fake, other_bar, cid, "zeppelin"), &["zeppelin"]);
    check(&wait_for_answer(&fake, dm_ann, ann, "heliotrope"), &["heliotrope", "tangerine", "obsidian"]);
    check(&wait_for_answer(&fake, dm_bob, bob, "obsidian"), &["tangerine", "obsidian"]);
    check(&wait_for_answer(&fake, dm_cid, cid, "tangerine"), &["tangerine", "zeppelin"]);
    // Bob may not see the den any more: at once, and whatever he was told before.
    fake.world(|world| {
        let hidden = Overwrite { id: guild, user: false, allow: Bits::default(), deny: Bits::VIEW };
        let seen = |id| Overwrite { id, user: true, allow: Bits::VIEW, deny: Bits::default() };
        world.set_overwrites(den, vec![hidden, seen(ann), seen(BOT)]);
    });
    check(&answer_text(&fake, dm_bob, bob), &["tangerine"]);
    // A role opens it to him again, and its loss shuts it.
    fake.world(|world| {
        let role = world.role(guild, Bits::ADMINISTRATOR);
        world.set_roles(guild, bob, vec![role]);
    });
    check(&wait_for_answer(&fake, dm_bob, bob, "obsidian"), &["tangerine", "obsidian"]);
    fake.world(|world| world.set_roles(guild, bob, Vec::new()));
    check(&answer_text(&fake, dm_bob, bob), &["tangerine"]);
    // Who leaves the server knows nothing of it any more.
    fake.world(|world| world.leave(guild, cid));
    check(&answer_text(&fake, dm_cid, cid), &["zeppelin"]);
    as_described(&fake);
}

#[test]
fn where_it_may_not_speak_it_stays_silent_and_its_reply_is_not_lost_elsewhere() {
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
        let refused = |question: &&azera_fake_discord::RecordedRequest| {
            question.status == 403 && question.path.contains(&quiet.to_string())
        };
        world.question.iter().find(refused).map(|question| question.body.clone())
    });
    assert!(refused.is_none_or(|body: Value| body["content"].is_string()));
    bot.stop(&fake);
    fake.world(|world| assert!(world.bots_messages(quiet).is_empty()));
}
