//! Where the time goes between the end of a question and the first sound of its answer. `AZERA_VOICE_ROUNDS` says how often
//! it is measured.

use std::collections::BTreeMap;
use std::time::Duration;

use azera_fake_discord::Network;

use super::Room;
use super::people::{Meter, Voice};

/// What people ask, in turn.
const QUESTIONS: [&str; 10] = [
    "What would you cook for six people on a rainy evening?",
    "Can you tell me why the sky is blue in the morning?",
    "Which book would you take with you to an island?",
    "How do I keep my tomatoes alive when it gets cold?",
    "What is the best way to learn a new language?",
    "Do you think that cats dream about the garden?",
    "Where would you go if you had a free week?",
    "Why do people whistle when they walk in the dark?",
    "How would you explain music to someone on the moon?",
    "What should I write on a card for my grandmother?",
];

/// The duration of a packet.
const PACKET_MS: f64 = 20.0;

/// Silence of the bot before the next question.
const BETWEEN: Duration = Duration::from_secs(1);

/// Returns how many questions are asked.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn rounds() -> usize {
    std::env::var("AZERA_VOICE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Milliseconds by stage, a value for each question.
#[derive(Default)]
struct Stages(BTreeMap<String, Vec<f64>>);

impl Stages {
    fn add(&mut self, stage: &str, ms: f64) {
        self.0.entry(stage.to_owned()).or_default().push(ms);
    }

    /// Adds what the log says.
    fn read(&mut self, log: &str) {
        for line in log.lines() {
            if let Some(rest) = line.split("a stage of an answer ms=").nth(1)
                && let Some((ms, what)) = rest.split_once(" what=")
                && let Ok(ms) = ms.parse()
            {
                self.add(what.trim_matches('"'), ms);
            }
            if let Some((_, stages)) = line.split_once("timer=").filter(|_| line.contains("a turn is over")) {
                for stage in stages.split(", ") {
                    let words: Vec<&str> = stage.split_whitespace().collect();
                    if let [name, ms, ..] = words[..]
                        && let Ok(ms) = ms.parse()
                    {
                        self.add(&format!("turn: {name}"), ms);
                    }
                }
            }
            if let Some((_, rest)) = line.split_once("ttft_ms: ")
                && let Some(ms) = rest.split(',').next().and_then(|ms| ms.parse().ok())
                && !line.contains("completion_tokens: 1,")
            {
                self.add("model: first token", ms);
            }
        }
    }

    fn print(&mut self) {
        println!("{:<50} {:>5} {:>8} {:>8}", "milliseconds", "count", "p50", "p95");
        for (stage, values) in &mut self.0 {
            values.sort_by(f64::total_cmp);
            let at = |share: f64| values[((values.len() as f64 * share) as usize).min(values.len() - 1)];
            println!("{stage:<50} {:>5} {:>8.0} {:>8.0}", values.len(), at(0.5), at(0.95));
        }
    }
}

/// Returns the milliseconds at the end of packets in which nothing can be heard.
fn quiet_end(packets: &[Vec<u8>]) -> f64 {
    let mut meter = Meter::new();
    let loud: Vec<bool> = packets.iter().map(|packet| meter.hears(packet)).collect();
    loud.iter().rev().take_while(|is_loud| !**is_loud).count() as f64 * PACKET_MS
}

#[test]
fn the_stages_of_an_answer_are_measured() {
    let room = Room::with_own_model(&["Ann"]);
    let voice = Voice::open();
    room.press(0, "Hear me");
    let mut stages = Stages::default();
    for round in 0..rounds() {
        let spoken = room.spoken();
        room.say(&voice, 0, QUESTIONS[round % QUESTIONS.len()], Network::default());
        let (mut meter, mut next) = (Meter::new(), spoken);
        let waited = room.fake.wait("the answer to begin", |world| {
            while let Some(packet) = world.voice.heard.get(next) {
                next += 1;
                if meter.hears(&packet.opus) {
                    return Some(packet.at - world.voice.fell_silent?);
                }
            }
            None
        });
        // The clock starts with the last packet. What can be heard ended before.
        let unheard = quiet_end(&voice.say(QUESTIONS[round % QUESTIONS.len()]));
        stages.add("quiet end of the question", unheard);
        stages.add("END OF SPEECH TO FIRST SOUND", waited.as_secs_f64() * 1_000.0 + unheard);
        room.command(0, "stop", &[]);
        room.fake.wait("silence", |world| world.voice.heard.last()?.at.elapsed().checked_sub(BETWEEN).map(drop));
    }
    stages.read(&room.bot.log());
    stages.print();
    assert!(stages.0.contains_key("the question is whole"), "the log tells the stages: {}", room.bot.log());
}
