//! Many people who ask for pictures at once: the order is fair, and neither a kill nor a lost server loses one.

use std::collections::BTreeMap;

use azera_fake_discord::FakeDiscord;
use serde_json::Value;

use crate::bot::Bot;
use crate::commands::give;
use crate::painter::Painter;
use crate::{as_described, fake};

/// People of each of two servers.
const PEOPLE: usize = 25;

/// Pictures that the first person of the first server asks for before the others.
const GREEDY: usize = 4;

/// Two servers with their people and a channel each.
fn servers(fake: &FakeDiscord) -> [(Vec<u64>, u64); 2] {
    ["west", "east"].map(|server| {
        fake.world(|world| {
            let people: Vec<u64> = (0..PEOPLE).map(|number| world.user(&format!("{server}{number}"))).collect();
            let guild = world.guild(people[0], &people[1..]);
            let channel = world.channel(guild, server, Vec::new());
            (people, channel)
        })
    })
}

/// Returns the prompts of the pictures in a channel.
fn shown(fake: &FakeDiscord, channel: u64) -> Vec<String> {
    let prompt = |message: &Value| {
        let has_file = message["attachments"].as_array().is_some_and(|files| !files.is_empty());
        let text = message["content"].as_str().filter(|_| has_file)?;
        Some(text.lines().next()?.trim_start_matches("🎨 ").to_owned())
    };
    fake.world(|world| world.bots_messages(channel).into_iter().filter_map(prompt).collect())
}

#[test]
fn fifty_people_are_drawn_for_in_turn_over_a_kill_and_a_restart_of_the_server() {
    let fake = fake();
    let servers = servers(&fake);
    let painter = Painter::start();
    painter.is_held.store(true, std::sync::atomic::Ordering::SeqCst);
    let mut bot =
        Bot::new(&fake, None).with("AZERA__IMAGES__KIND", "automatic1111").with("AZERA__IMAGES__URL", &painter.url);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    for (server, (people, channel)) in servers.iter().enumerate() {
        for (number, who) in people.iter().enumerate() {
            let wanted = if (server, number) == (0, 0) { GREEDY } else { 1 };
            for round in 0..wanted {
                let prompt = format!("boat {round} of {number} in {server}");
                let answer = give(&fake, *channel, *who, "imagine", "", &[("prompt", &prompt)]);
                assert!(answer.contains("/picture cancel"), "{answer}");
            }
        }
    }
    bot.kill(&fake);
    // The server goes down with it, and comes back after the bot has tried in vain.
    let address = painter.address();
    drop(painter);
    bot.start(&fake);
    bot.logs("the server that draws is away");
    let painter = Painter::start_at(&address);
    let all = 2 * PEOPLE + GREEDY - 1;
    let mut drawn = 0;
    // Each picture renews the patience, because all of them together may take long on a busy machine.
    while drawn < all {
        drawn = fake.wait(&format!("more than {drawn} pictures of {all}"), |world| {
            let has_file = |it: &&Value| it["attachments"].as_array().is_some_and(|files| !files.is_empty());
            let in_channel = |channel: u64| world.bots_messages(channel).into_iter().filter(has_file).count();
            Some(servers.iter().map(|(_, channel)| in_channel(*channel)).sum::<usize>()).filter(|count| *count > drawn)
        });
    }
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (_, channel) in &servers {
        shown(&fake, *channel).into_iter().for_each(|prompt| *times.entry(prompt).or_default() += 1);
    }
    assert_eq!(times.len(), all, "each prompt is shown: {times:?}");
    assert!(times.values().all(|times| *times == 1), "and once: {times:?}");
    let order = painter.prompts();
    assert_eq!(order.len(), all);
    // While both servers wait, they take turns.
    let of = |server: usize| format!(" in {server}");
    for pair in order[..2 * PEOPLE].chunks(2) {
        assert!([0, 1].iter().all(|server| pair.iter().any(|prompt| prompt.ends_with(&of(*server)))), "{pair:?}");
    }
    // Whoever asked for four waits with the others of the server until each has one.
    let first_server: Vec<&String> = order.iter().filter(|prompt| prompt.ends_with(&of(0))).collect();
    let late = first_server.iter().position(|prompt| prompt.starts_with("boat 1 of 0")).expect("it was drawn");
    assert_eq!(late, PEOPLE, "{first_server:?}");
    as_described(&fake);
}
