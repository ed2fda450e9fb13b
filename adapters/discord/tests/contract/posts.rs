//! A post is shown once, wherever a process was interrupted, and any other process can retract it.

use std::time::Duration;

use azera_adapter::{Outbound, Platform, Post, State};
use azera_fake_discord::{FakeDiscord, Fault, World};
use azera_types::{ChatId, Clock, MessageId, PersonaId, PlaceKind, SystemClock, Text, Timestamp};

use crate::{fake, record, square, start};

/// More messages than are searched from either end.
const MUCH: usize = 1_050;

fn post(channel: u64, number: u64, at: Timestamp, text: &str) -> Post {
    let chat = ChatId::new(format!("discord:{channel}")).unwrap();
    let id = MessageId::new(format!("post~{number}")).unwrap();
    Post { outbound: outbound(&chat, id, "Azera", text), kind: "dream".to_owned(), sources: Vec::new(), at }
}

/// Returns a reply of a persona.
pub fn outbound(chat: &ChatId, id: MessageId, name: &str, text: &str) -> Outbound {
    Outbound {
        id,
        chat: chat.clone(),
        persona: PersonaId::new(name.to_lowercase()).unwrap(),
        persona_name: name.to_owned(),
        text: Text::new(text),
        reply_to: None,
        asker: None,
        state: State::default(),
        help: String::new(),
        files: Vec::new(),
        can_upscale: false,
    }
}

/// Returns the bot's texts in a channel, and the labels of the buttons below the last one.
fn written(world: &World, channel: u64) -> (Vec<String>, Vec<String>) {
    let messages = world.bots_messages(channel);
    let text = |message: &&serde_json::Value| message["content"].as_str().unwrap().to_owned();
    let buttons = messages.last().map(|message| message["components"][0]["components"].clone()).unwrap_or_default();
    let labels = buttons.as_array().into_iter().flatten().map(|button| button["label"].as_str().unwrap().to_owned());
    (messages.iter().map(text).collect(), labels.collect())
}

/// Fills the channel with messages that the bot ignores.
fn chatter(fake: &FakeDiscord, channel: u64) {
    fake.world(|world| {
        let robot = world.user("Robot");
        world.bots.push(robot);
        for n in 0..MUCH {
            world.say(channel, robot, &format!("number {n}"));
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_shown_once_and_retracted_when_forgotten() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let dm = fake.world(|world| world.dm(ann));
    let mut number = 0;
    for (channel, early, late) in [(square, 0, 0), (dm, 0, 0), (square, 1, 0), (square, 0, 1)] {
        let before = fake.world(|world| written(world, channel).0.len());
        number += 1;
        let at = SystemClock.now();
        let text = format!("I dreamt of the sea.\n\n{}", "wave ".repeat(450));
        let dream = post(channel, number, at, &text);
        (0..early).for_each(|_| chatter(&fake, channel));
        let bot = start(&fake, folder.path(), &record).await;
        bot.discord.post(&dream).await.unwrap();
        bot.discord.post(&dream).await.unwrap();
        bot.stop().await;
        (0..late).for_each(|_| chatter(&fake, channel));
        // The second part is missing; it is posted, but the request seems to fail.
        let path = format!("/channels/{channel}/messages");
        fake.world(|world| {
            world.forget_nonces();
            let last = world.bots_messages(channel).last().unwrap()["id"].as_str().unwrap().parse().unwrap();
            world.delete(channel, last);
            world.order(Fault::done_but_fails("POST", &path, 500));
        });
        let bot = start(&fake, folder.path(), &record).await;
        let error = bot.discord.post(&dream).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        bot.stop().await;
        fake.world(World::forget_nonces);
        let bot = start(&fake, folder.path(), &record).await;
        bot.discord.post(&dream).await.unwrap();
        let (texts, labels) = fake.world(|world| written(world, channel));
        assert_eq!(texts.len(), before + 2, "in {channel}, {early} before and {late} after");
        assert!(texts[before].starts_with("I dreamt of the sea."));
        assert_eq!(labels, ["Why?", "Forget"]);
        bot.stop().await;
        let bot = start(&fake, folder.path(), &record).await;
        bot.discord.retract(&dream.outbound.chat, &dream.outbound.id, at).await.unwrap();
        assert_eq!(fake.world(|world| written(world, channel).0.len()), before);
        bot.stop().await;
    }
    fake.world(|world| assert!(world.violations.is_empty(), "{:#?}", world.violations));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_ahead_of_discords_neither_doubles_nor_loses_a_post() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let at = SystemClock.now().checked_add(Duration::from_secs(1_800)).unwrap();
    let dream = post(square, 1, at, &format!("I dreamt of the sea.\n\n{}", "wave ".repeat(450)));
    fake.world(|world| world.say(square, ann, "nothing for anybody"));
    let bot = start(&fake, folder.path(), &record).await;
    bot.discord.post(&dream).await.unwrap();
    bot.stop().await;
    fake.world(|world| {
        world.say(square, ann, "nor is this");
        world.forget_nonces();
    });
    let bot = start(&fake, folder.path(), &record).await;
    bot.discord.post(&dream).await.unwrap();
    assert_eq!(fake.world(|world| written(world, square).0.len()), 2);
    bot.stop().await;
    let bot = start(&fake, folder.path(), &record).await;
    bot.discord.retract(&dream.outbound.chat, &dream.outbound.id, at).await.unwrap();
    assert_eq!(fake.world(|world| written(world, square).0.len()), 0);
    bot.stop().await;
    fake.world(|world| assert!(world.violations.is_empty(), "{:#?}", world.violations));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_known_without_asking_for_a_person() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (guild, open, ann) = square(&fake);
    let (den, thread, dm) = fake.world(|world| {
        let den = world.private_channel(guild, "den", &[ann]);
        (den, world.thread(den, "a thread", None), world.dm(ann))
    });
    let bot = start(&fake, folder.path(), &record).await;
    let kind = async |chat: String| {
        let place = bot.discord.place_for_all(&ChatId::new(chat).unwrap()).await.unwrap();
        place.map(|place| place.kind)
    };
    assert!(matches!(kind(format!("discord:{open}")).await, Some(PlaceKind::Public(_))));
    for private in [den, thread] {
        assert!(matches!(kind(format!("discord:{private}")).await, Some(PlaceKind::Private { .. })));
    }
    let whose = kind(format!("discord:{dm}")).await;
    assert!(matches!(whose, Some(PlaceKind::Dm(person)) if person.as_str() == format!("discord:{ann}")));
    assert_eq!(kind("discord:12345".to_owned()).await, None);
    assert_eq!(kind("console:ann:main".to_owned()).await, None);
    bot.stop().await;
}
