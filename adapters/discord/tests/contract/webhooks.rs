//! Personas under their own names and pictures.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use azera_adapter::{Avatars, Picture, Platform};
use azera_fake_discord::{BOT, Bits, FakeDiscord, Fault, Overwrite, Scope, World};
use azera_types::{ChatId, MessageId, PersonaId, Timestamp};
use serde_json::Value;

use crate::{Running, WHOLE, answered, fake, once_each, record, record_of, square, start, start_with};

/// Nix's picture.
#[derive(Default)]
struct Looks(Mutex<Vec<u8>>);

#[async_trait]
impl Avatars for Looks {
    async fn usual(&self) -> Option<(PersonaId, String)> {
        None
    }

    async fn picture(&self, persona: &PersonaId) -> Option<Picture> {
        let bytes = self.0.lock().unwrap().clone();
        (persona.as_str() == "nix").then_some(Picture { bytes, media_type: "image/png" })
    }
}

/// Returns author and picture of the reply to a message.
fn author(fake: &FakeDiscord, channel: u64, requests: u64) -> (String, Option<String>) {
    fake.world(|world| {
        let author = world.answers(channel, requests)[0]["author"].clone();
        let picture = author["avatar"].as_str().map(|avatar| world.pictures[avatar].clone());
        (author["username"].as_str().unwrap().to_owned(), picture)
    })
}

fn ask(fake: &FakeDiscord, channel: u64, who: u64) -> u64 {
    let requests = fake.world(|world| world.say(channel, who, &format!("<@{BOT}> hello")));
    answered(fake, channel, requests, WHOLE);
    requests
}

/// Returns how often webhooks were created.
fn made(world: &World) -> usize {
    world.requests.iter().filter(|requests| requests.method == "POST" && requests.path.ends_with("/webhooks")).count()
}

fn has_buttons(message: &Value) -> bool {
    message["components"].to_string().contains("Again")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persona_has_its_own_name_and_picture() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record_of("Nix"));
    let (_, square, ann) = square(&fake);
    let (thread, dm) = fake.world(|world| (world.thread(square, "a thread", None), world.dm(ann)));
    let looks = Arc::new(Looks(Mutex::new(b"one".to_vec())));
    let bot = start_with(&fake, folder.path(), &record, Some(looks.clone())).await;
    let mut in_square = Vec::new();
    for _ in 0..2 {
        in_square.push(ask(&fake, square, ann));
    }
    let threaded = ask(&fake, thread, ann);
    let direct = ask(&fake, dm, ann);
    let one = Some("data:image/png;base64,b25l".to_owned());
    assert_eq!(author(&fake, square, in_square[1]), ("Nix".to_owned(), one.clone()));
    assert_eq!(author(&fake, thread, threaded), ("Nix".to_owned(), one.clone()));
    assert_eq!(author(&fake, dm, direct).0, "azera", "there are no webhooks in direct messages");
    // The bot ignores its own webhook messages, and hears people who reply to them.
    let to_nix = fake.world(|world| {
        let answer = world.answers(square, in_square[1])[0].clone();
        assert!(has_buttons(&answer));
        assert!(answer["components"].to_string().contains(&format!("/{square}/{}", in_square[1])));
        world.reply(square, ann, "and why is that?", answer["id"].as_str().unwrap().parse().unwrap())
    });
    answered(&fake, square, to_nix, WHOLE);
    in_square.push(to_nix);
    bot.stop().await;
    // Another process finds the webhook, and updates its picture.
    *looks.0.lock().unwrap() = b"two".to_vec();
    let bot = start_with(&fake, folder.path(), &record, Some(looks)).await;
    in_square.push(ask(&fake, square, ann));
    let two = Some("data:image/png;base64,dHdv".to_owned());
    assert_eq!(author(&fake, square, in_square[3]), ("Nix".to_owned(), two));
    assert_eq!(author(&fake, square, in_square[1]).1, one);
    assert_eq!(fake.world(|world| made(world)), 1);
    bot.stop().await;
    once_each(&fake, square, &in_square);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_webhooks_the_bot_uses_its_own_name() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record_of("Nix"));
    let (guild, open, ann) = square(&fake);
    let (denied, blind, full, named) = fake.world(|world| {
        let without = |deny: Bits| vec![Overwrite { id: BOT, user: true, allow: Bits::default(), deny }];
        (
            world.channel(guild, "denied", without(Bits::WEBHOOKS)),
            world.channel(guild, "blind", without(Bits::HISTORY)),
            world.channel(guild, "full", Vec::new()),
            world.channel(guild, "named", Vec::new()),
        )
    });
    fake.world(|world| (0..15).for_each(|n| world.others_webhook(full, &format!("feed {n}"))));
    let bot = start(&fake, folder.path(), &record).await;
    // Without the history, only an enforced nonce makes a reply appear once.
    for channel in [denied, blind, full] {
        let requests = ask(&fake, channel, ann);
        assert_eq!(author(&fake, channel, requests).0, "azera");
        once_each(&fake, channel, &[requests]);
    }
    let requests = ask(&fake, open, ann);
    assert_eq!(author(&fake, open, requests).0, "Nix");
    bot.stop().await;
    // Discord does not allow this name; personas with other names are not affected.
    let bot = start(&fake, folder.path(), &record_of("Discordia")).await;
    let requests = ask(&fake, named, ann);
    assert_eq!(author(&fake, named, requests).0, "azera");
    assert_eq!(says_as(&bot, &fake, named, requests, "Nix").await, "Nix");
    fake.world(|world| {
        assert!(world.requests.iter().all(|requests| requests.status != 400 || requests.path.ends_with("/webhooks")))
    });
    bot.stop().await;
}

/// Shows an alternative reply of a persona, and returns the author's name.
async fn says_as(bot: &Running, fake: &FakeDiscord, channel: u64, requests: u64, name: &str) -> String {
    let chat = ChatId::new(format!("discord:{channel}")).unwrap();
    let reply = MessageId::new(format!("discord:{requests}~r1")).unwrap();
    bot.discord.show_again(&crate::posts::outbound(&chat, reply, name, WHOLE)).await.unwrap();
    author(fake, channel, requests).0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_for_one_persona_does_not_affect_others() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record_of("Nix"));
    let (guild, square, ann) = square(&fake);
    let other = fake.world(|world| world.channel(guild, "other", Vec::new()));
    let bot = start(&fake, folder.path(), &record).await;
    for (channel, status, shown) in [(square, 400, "Fay"), (other, 403, "azera")] {
        let requests = fake.world(|world| {
            world.order(Fault::fails("POST", "/webhooks/", status));
            world.say(channel, ann, "Azera, and now?")
        });
        answered(&fake, channel, requests, WHOLE);
        assert_eq!(author(&fake, channel, requests).0, "azera");
        assert_eq!(says_as(&bot, &fake, channel, requests, "Fay").await, shown, "after a {status}");
    }
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhooks_message_is_shown_once_despite_failures() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record_of("Nix"));
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    let wait = Duration::from_millis(200);
    let faults = [
        Fault::fails("GET", &format!("/channels/{square}/webhooks"), 500),
        Fault::limited("POST", "/webhooks/", Scope::User, wait),
        Fault::limited("POST", "/webhooks/", Scope::Global, wait),
        Fault::fails("POST", "/webhooks/", 500).times(3),
        Fault::done_but_fails("POST", "/webhooks/", 500).times(2),
        Fault::fails("PATCH", "/webhooks/", 502).times(2),
        Fault::done_but_fails("PATCH", "/webhooks/", 500),
    ];
    let mut requests = Vec::new();
    for fault in faults {
        let id = fake.world(|world| {
            world.order(fault);
            world.say(square, ann, "Azera, and now?")
        });
        answered(&fake, square, id, WHOLE);
        requests.push(id);
    }
    // Another process finishes an interrupted reply.
    record.go_on.send_replace(false);
    let half = fake.world(|world| world.say(square, ann, "Azera, tell me"));
    answered(&fake, square, half, "Half");
    bot.stop().await;
    let bot = start(&fake, folder.path(), &record_of("Nix")).await;
    answered(&fake, square, half, WHOLE);
    requests.push(half);
    // After somebody deleted the webhook, it is created again; earlier messages stay.
    fake.world(|world| world.remove_webhooks(square));
    requests.push(ask(&fake, square, ann));
    assert_eq!(author(&fake, square, requests[requests.len() - 1]).0, "Nix");
    bot.stop().await;
    once_each(&fake, square, &requests);
    assert_eq!(fake.world(|world| made(world)), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_persona_takes_over_a_reply_and_forgotten_replies_are_removed() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    let requests = ask(&fake, square, ann);
    let chat = ChatId::new(format!("discord:{square}")).unwrap();
    let reply = |number: u32| MessageId::new(format!("discord:{requests}~r{number}")).unwrap();
    // The author of a message cannot be changed, so it is posted again.
    for (number, name, shown) in [(1, "Nix", "Nix"), (2, "Fay", "Fay"), (3, "Azera", "azera")] {
        let text = format!("{name} says so.");
        let outbound = crate::posts::outbound(&chat, reply(number), name, &text);
        bot.discord.show_again(&outbound).await.unwrap();
        assert_eq!(fake.world(|world| crate::texts(world, square, requests)), [text]);
        assert_eq!(author(&fake, square, requests).0, shown);
    }
    let outbound = crate::posts::outbound(&chat, reply(1), "Nix", "A word of Nix's.");
    bot.discord.show_again(&outbound).await.unwrap();
    bot.stop().await;
    let bot = start(&fake, folder.path(), &record).await;
    bot.discord.retract(&chat, &reply(1), Timestamp::UNIX_EPOCH).await.unwrap();
    assert!(fake.world(|world| world.bots_messages(square).is_empty()));
    // A message of a deleted webhook needs the permission to delete messages.
    bot.discord.show_again(&outbound).await.unwrap();
    fake.world(|world| world.remove_webhooks(square));
    let refused = bot.discord.retract(&chat, &reply(1), Timestamp::UNIX_EPOCH).await;
    assert!(refused.is_err_and(|error| !error.is_transient()));
    // Nobody can edit it either, but its text is right.
    bot.discord.show_again(&outbound).await.unwrap();
    assert_eq!(fake.world(|world| crate::texts(world, square, requests)), ["A word of Nix's."]);
    fake.world(|world| {
        let allowed = Overwrite { id: BOT, user: true, allow: Bits::MESSAGES, deny: Bits::default() };
        world.set_overwrites(square, vec![allowed]);
    });
    let other = crate::posts::outbound(&chat, reply(1), "Nix", "Another word.");
    bot.discord.show_again(&other).await.unwrap();
    assert_eq!(fake.world(|world| crate::texts(world, square, requests)), ["Another word."]);
    assert_eq!(author(&fake, square, requests).0, "Nix");
    fake.world(|world| world.remove_webhooks(square));
    bot.discord.retract(&chat, &reply(1), Timestamp::UNIX_EPOCH).await.unwrap();
    assert!(fake.world(|world| world.bots_messages(square).is_empty()));
    bot.stop().await;
    fake.world(|world| assert!(world.violations.is_empty(), "{:#?}", world.violations));
}
