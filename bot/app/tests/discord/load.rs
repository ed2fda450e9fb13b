//! Latency, and many channels at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use azera_fake_discord::{Invoked, World};
use serde_json::json;

use crate::bot::Bot;
use crate::model::Model;
use crate::{answered, answers, as_described, fake};

/// Number of servers, and of channels in each.
const GUILDS: usize = 10;
const CHANNELS: usize = 10;

/// Time between two messages, over all channels.
const BETWEEN: Duration = Duration::from_millis(100);

/// Requests per second that Discord allows a bot.
const REQUESTS: usize = 50;

/// Returns how many seconds people talk; `make soak` asks for two minutes.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn seconds() -> usize {
    std::env::var("AZERA_SOAK_DISCORD_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

/// Paces the messages.
struct Pacer {
    next: Instant,
    never: Receiver<()>,
    _silent: Sender<()>,
}

impl Pacer {
    fn new() -> Self {
        let (silent, never) = channel();
        Self { next: Instant::now(), never, _silent: silent }
    }

    fn wait(&mut self) {
        self.next += BETWEEN;
        let left = self.next.saturating_duration_since(Instant::now());
        self.never.recv_timeout(left).ok();
    }
}

/// The two parts of a story. The second one waits until the test lets it come.
const BEGINNING: &str = "Once upon a time there was a lighthouse.";
const END: &str = " Nobody knew its keeper.";

fn story() -> Model {
    Model::start(Arc::new(|_| (BEGINNING.to_owned(), END.to_owned())))
}

/// Returns the time that this percentage of the answers stay below.
fn percentile(took: &mut [Duration], percent: usize) -> Duration {
    took.sort();
    took[(took.len() * percent / 100).min(took.len() - 1)]
}

/// Returns the messages that a channel's answers reply to, in the order of the answers.
fn answered_in_order(world: &World, channel: u64) -> Vec<u64> {
    let question = |message: &&serde_json::Value| message["message_reference"]["message_id"].as_str()?.parse().ok();
    world.bots_messages(channel).iter().filter_map(question).collect()
}

#[test]
fn a_hundred_channels_at_once_are_answered_once_and_in_order() {
    let fake = fake();
    let places: Vec<(u64, u64)> = fake.world(|world| {
        let mut places = Vec::new();
        for _ in 0..GUILDS {
            let owner = world.user("Owner");
            let guild = world.guild(owner, &[]);
            places.extend((0..CHANNELS).map(|n| (world.channel(guild, &format!("channel-{n}"), Vec::new()), owner)));
        }
        world.limit = Some(REQUESTS);
        places
    });
    let mut bot = Bot::new(&fake, None)
        .with("AZERA__DISCORD__MESSAGES_PER_PERSON", "10000")
        .with("AZERA__DISCORD__MESSAGES_PER_SERVER", "10000");
    bot.start(&fake);
    let (mut pacer, begun) = (Pacer::new(), Instant::now());
    let mut questions: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut open: Vec<(u64, u64, Instant)> = Vec::new();
    let mut took: Vec<Duration> = Vec::new();
    let mut look = |open: &mut Vec<(u64, u64, Instant)>, world: &World| {
        open.retain(|(channel, id, since)| {
            let done = !answers(world, *channel, *id).is_empty();
            took.extend(done.then(|| since.elapsed()));
            !done
        });
    };
    for n in 0..seconds() * 10 {
        // 37 and the number of channels share no factor, so this visits every channel.
        let (channel, who) = places[n * 37 % places.len()];
        let id = fake.world(|world| {
            look(&mut open, world);
            world.say(channel, who, &format!("Azera, number {n}"))
        });
        questions.entry(channel).or_default().push(id);
        open.push((channel, id, Instant::now()));
        pacer.wait();
    }
    fake.wait("the last answers", |world| {
        look(&mut open, world);
        open.is_empty().then_some(())
    });
    let whole = begun.elapsed();
    bot.stop(&fake);
    fake.world(|world| {
        for (channel, questions) in &questions {
            assert_eq!(&answered_in_order(world, *channel), questions, "answers in {channel}");
            assert!(questions.iter().all(|id| answers(world, *channel, *id) == ["Noted."]));
        }
        let count = |status| world.requests.iter().filter(|request| request.status == status).count();
        println!(
            "{} messages in {} channels in {whole:.1?}: {} requests, {} of them too many; an answer took p50 {:.0?}, p99 {:.0?}",
            took.len(),
            places.len(),
            world.requests.len(),
            count(429),
            percentile(&mut took, 50),
            percentile(&mut took, 99),
        );
    });
    as_described(&fake);
}

#[test]
fn the_first_words_come_before_the_reply_is_whole() {
    let fake = fake();
    let (ann, square) = fake.world(|world| {
        let ann = world.user("Ann");
        let guild = world.guild(ann, &[]);
        (ann, world.channel(guild, "square", Vec::new()))
    });
    let model = story();
    let mut bot = Bot::new(&fake, Some(&model)).with("AZERA__DISCORD__MESSAGES_PER_PERSON", "1000");
    bot.start(&fake);
    let mut took: Vec<Duration> = Vec::new();
    for n in 0..40 {
        model.close();
        let begun = Instant::now();
        let question = fake.world(|world| world.say(square, ann, &format!("Azera, number {n}, are you there?")));
        let first = fake.wait("first words", |world| answers(world, square, question).first().cloned());
        took.push(begun.elapsed());
        assert!(!first.contains(END), "{first}");
        model.open();
        answered(&fake, square, question, &format!("{BEGINNING}{END}"));
    }
    let half = percentile(&mut took, 50);
    println!("from the event to the first words: p50 {half:.1?}, p90 {:.1?}", percentile(&mut took, 90));
    bot.stop(&fake);
}

#[test]
fn commands_are_answered_while_the_model_is_busy() {
    let fake = fake();
    let (ann, channels) = fake.world(|world| {
        let ann = world.user("Ann");
        let guild = world.guild(ann, &[]);
        (ann, [0; 10].map(|_| world.channel(guild, "stories", Vec::new())))
    });
    let model = story();
    let mut bot = Bot::new(&fake, Some(&model));
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    // The model writes a story in each channel, and ends none.
    model.close();
    let told = "Azera, tell me a very long story about a lighthouse";
    let stories = channels.map(|channel| (channel, fake.world(|world| world.say(channel, ann, told))));
    let mut took: Vec<Duration> = Vec::new();
    for n in 0..100 {
        let what = Invoked::Command { name: "help".to_owned(), kind: 1, options: json!([]), target: None };
        let id = fake.world(|world| world.invoke(channels[n / 10], ann, what));
        took.push(fake.wait("the acknowledgement", |world| world.interaction(id).acknowledged));
        fake.wait("the answer", |world| world.interaction(id).answer.message.clone());
    }
    let half = percentile(&mut took, 50);
    println!("acknowledged while the model writes: p50 {half:.1?}, p99 {:.1?}", percentile(&mut took, 99));
    let whole = format!("{BEGINNING}{END}");
    let is_told = |(channel, story): &(u64, u64)| fake.world(|world| answers(world, *channel, *story).contains(&whole));
    assert!(!stories.iter().any(is_told), "the model is still busy");
    model.open();
    for (channel, story) in stories {
        answered(&fake, channel, story, &whole);
    }
}
