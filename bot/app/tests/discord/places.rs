//! Who may be shown what, by the permissions of the moment.

use azera_discord_peer::{BOT, Bits, Overwrite, Peer};
use serde_json::Value;

use crate::bot::Bot;
use crate::commands::find;
use crate::model::{Model, SECRETS};
use crate::{answers, as_described, peer};

/// What the bot, which tells everything it knows, says to a question.
#[track_caller]
fn told(peer: &Peer, channel: u64, who: u64) -> String {
    let asked = peer.world(|world| world.say(channel, who, "Azera, what is the password of the lighthouse door?"));
    peer.wait("an answer", |world| answers(world, channel, asked).into_iter().find(|answer| answer.ends_with('.')))
}

/// What the bot says to the question once it finds a word there: what was said is found by its meaning a moment later, when
/// it was embedded.
#[track_caller]
fn told_in_the_end(peer: &Peer, channel: u64, who: u64, word: &str) -> String {
    find(peer, channel, who, &format!("password of the old lighthouse door {word}"), word);
    let told = told(peer, channel, who);
    assert!(told.contains(word), "{word} was not told, but: {told}");
    told
}

/// Tells a secret, and waits until it was heard.
#[track_caller]
fn tell(peer: &Peer, channel: u64, who: u64, word: &str) {
    let text = format!("Azera, the password of the old lighthouse door is {word}, keep it");
    let asked = peer.world(|world| world.say(channel, who, &text));
    peer.wait("it to be heard", |world| (!answers(world, channel, asked).is_empty()).then_some(()));
}

#[test]
fn secrets_stay_where_they_were_told() {
    let peer = peer();
    let (ann, bob, cid) = peer.world(|world| (world.user("Ann"), world.user("Bob"), world.user("Cid")));
    let (guild, square, den, other_bar) = peer.world(|world| {
        let guild = world.guild(ann, &[bob, cid]);
        let club = world.guild(cid, &[]);
        let square = world.channel(guild, "square", Vec::new());
        (guild, square, world.private_channel(guild, "den", &[ann, bob]), world.channel(club, "bar", Vec::new()))
    });
    let [dm_ann, dm_bob, dm_cid] = peer.world(|world| [world.dm(ann), world.dm(bob), world.dm(cid)]);
    let model = Model::telling_everything();
    let mut bot = Bot::new(&peer, Some(&model)).recalling_at_once().with("AZERA__DISCORD__MESSAGES_PER_PERSON", "1000");
    bot.start(&peer);
    peer.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    tell(&peer, dm_ann, ann, "heliotrope");
    tell(&peer, den, bob, "obsidian");
    tell(&peer, square, cid, "tangerine");
    tell(&peer, other_bar, cid, "zeppelin");
    #[track_caller]
    fn check(told: &str, may: &[&str]) {
        for word in SECRETS {
            assert!(!told.contains(word) || may.contains(&word), "{word} was told: {told}");
        }
    }
    // The owner of a DM's secret and others ask for it in a channel, and in DMs.
    check(&told_in_the_end(&peer, square, ann, "tangerine"), &["tangerine"]);
    check(&told(&peer, square, bob), &["tangerine"]);
    check(&told_in_the_end(&peer, den, ann, "obsidian"), &["tangerine", "obsidian"]);
    check(&told_in_the_end(&peer, other_bar, cid, "zeppelin"), &["zeppelin"]);
    check(&told_in_the_end(&peer, dm_ann, ann, "heliotrope"), &["heliotrope", "tangerine", "obsidian"]);
    check(&told_in_the_end(&peer, dm_bob, bob, "obsidian"), &["tangerine", "obsidian"]);
    check(&told_in_the_end(&peer, dm_cid, cid, "tangerine"), &["tangerine", "zeppelin"]);
    // Bob may not see the den any more: at once, and whatever he was told before.
    peer.world(|world| {
        let hidden = Overwrite { id: guild, user: false, allow: Bits::default(), deny: Bits::VIEW };
        let seen = |id| Overwrite { id, user: true, allow: Bits::VIEW, deny: Bits::default() };
        world.set_overwrites(den, vec![hidden, seen(ann), seen(BOT)]);
    });
    check(&told(&peer, dm_bob, bob), &["tangerine"]);
    // A role opens it to him again, and its loss shuts it.
    peer.world(|world| {
        let role = world.role(guild, Bits::ADMINISTRATOR);
        world.set_roles(guild, bob, vec![role]);
    });
    check(&told_in_the_end(&peer, dm_bob, bob, "obsidian"), &["tangerine", "obsidian"]);
    peer.world(|world| world.set_roles(guild, bob, Vec::new()));
    check(&told(&peer, dm_bob, bob), &["tangerine"]);
    // Who leaves the server knows nothing of it any more.
    peer.world(|world| world.leave(guild, cid));
    check(&told(&peer, dm_cid, cid), &["zeppelin"]);
    as_described(&peer);
}

#[test]
fn where_it_may_not_speak_it_stays_silent_and_its_reply_is_not_lost_elsewhere() {
    let peer = peer();
    let ann = peer.world(|world| world.user("Ann"));
    let (quiet, square) = peer.world(|world| {
        let guild = world.guild(ann, &[]);
        let mute = Overwrite { id: BOT, user: true, allow: Bits::default(), deny: Bits::SEND };
        (world.channel(guild, "quiet", vec![mute]), world.channel(guild, "square", Vec::new()))
    });
    let mut bot = Bot::new(&peer, None);
    bot.start(&peer);
    peer.world(|world| world.say(quiet, ann, "Azera, are you there?"));
    let asked = peer.world(|world| world.say(square, ann, "Azera, are you there?"));
    crate::answered(&peer, square, asked, "Noted.");
    let refused = peer.wait("a refusal", |world| {
        let refused =
            |asked: &&azera_discord_peer::Asked| asked.status == 403 && asked.path.contains(&quiet.to_string());
        world.asked.iter().find(refused).map(|asked| asked.body.clone())
    });
    assert!(refused.is_none_or(|body: Value| body["content"].is_string()));
    bot.stop(&peer);
    peer.world(|world| assert!(world.bots_messages(quiet).is_empty()));
}
