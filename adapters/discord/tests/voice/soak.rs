//! Long talk: over a bad network, and by several people at the same time. `AZERA_SOAK_VOICE_SECONDS` says how long.

use std::time::{Duration, Instant};

use azera_fake_discord::{Mode, Network};

use crate::{ANSWER, Room, in_own_process};

/// What people say, in turn. Each has words of their own, so that it shows who said what.
const SENTENCES: [[&str; 5]; 4] = [
    [
        "Robert, the ferry to the island leaves from the old harbor.",
        "Robert, my sister painted the kitchen yellow last weekend.",
        "Robert, we should buy more bread before the shop closes.",
        "Robert, the train was late again because of the snow.",
        "Robert, I found your umbrella behind the piano.",
    ],
    [
        "Ann, our neighbor keeps seven chickens in his garden.",
        "Ann, the concert on Friday was louder than I expected.",
        "Ann, please remember to water the tomatoes tomorrow.",
        "Ann, the doctor told me to walk an hour every day.",
        "Ann, I read a book about sailing around the world.",
    ],
    [
        "Robert, there is a new bakery next to the library.",
        "Robert, the dog ate half of my birthday cake.",
        "Robert, I would like to learn how to play the violin.",
        "Robert, the mountain looks beautiful in the evening light.",
        "Robert, my bicycle has a flat tire since Monday.",
    ],
    [
        "Ann, the museum is closed because they repair the roof.",
        "Ann, grandmother sent us a box full of apples.",
        "Ann, the children built a castle out of blankets.",
        "Ann, I forgot the password of my computer again.",
        "Ann, the river is so cold that nobody swims in it.",
    ],
];

/// How long to wait for utterances that may not come.
const PATIENCE: Duration = Duration::from_secs(30);

impl Room {
    /// Lets people say something at the same time, and waits until all of them did.
    fn say_together(&self, said: &[(usize, &str)]) {
        let packets: Vec<_> = said.iter().map(|(person, words)| (*person, self.voice.say(words))).collect();
        for (person, packets) in packets {
            self.fake.talk(self.people[person], packets, Network::default());
        }
        self.fake.wait("the people to finish", |world| (world.voice.talking == 0).then_some(()));
    }
}

/// Returns how long people talk. `make test` only looks whether it works.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn seconds() -> u64 {
    std::env::var("AZERA_SOAK_VOICE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(12)
}

pub fn words(text: &str) -> Vec<String> {
    let plain: String = text.to_lowercase().chars().filter(|c| c.is_alphanumeric() || *c == ' ').collect();
    plain.split_whitespace().map(str::to_owned).collect()
}

/// Returns the fewest words to change, to leave out and to put in.
pub fn errors(expected: &[String], found: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=found.len()).collect();
    for (at, word) in expected.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in found.iter().enumerate() {
            let changed = diagonal + usize::from(word != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[found.len()]
}

/// One person talks for some time. Returns the share of wrong words, and how many utterances were heard of how many.
fn talk(room: &Room, network: Network, lasts: Duration) -> (f64, usize, usize) {
    let (begun, before) = (Instant::now(), room.engine.kept().said.len());
    let mut said = Vec::new();
    while begun.elapsed() < lasts {
        let sentence = SENTENCES[0][said.len() % 5];
        room.say(0, sentence, network);
        said.push(sentence);
        // The pause between two sentences.
        room.pause();
    }
    // The last sentence is heard, whatever happened before.
    let last = words(said[said.len() - 1]);
    room.until("the last sentence", || {
        let kept = room.engine.kept();
        let heard = kept.said[before..].last()?;
        (errors(&last, &words(heard.0.text.as_str())) * 2 < last.len()).then_some(())
    });
    let kept = room.engine.kept();
    let heard: Vec<String> = kept.said[before..].iter().flat_map(|(inbound, _)| words(inbound.text.as_str())).collect();
    let expected: Vec<String> = said.iter().flat_map(|sentence| words(sentence)).collect();
    (errors(&expected, &heard) as f64 / expected.len() as f64, kept.said.len() - before, said.len())
}

#[test]
fn talk_goes_on_over_a_bad_network() {
    in_own_process("soak::talk_goes_on_over_a_bad_network", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        let lasts = Duration::from_secs(seconds());
        let bad = Network { loss: 10, jitter_ms: 60, twice: 5, replayed: 5 };
        for (name, network) in [("good", Network::default()), ("bad", bad)] {
            let (wrong, heard, said) = talk(&room, network, lasts);
            println!("{name} network: {heard} utterances of {said} sentences, word error rate {wrong:.3}");
            assert!(wrong < 0.5, "{name}: {wrong}");
        }
    });
}

#[test]
fn nobody_is_given_the_words_of_another() {
    in_own_process("soak::nobody_is_given_the_words_of_another", |root| {
        let names = ["Ann", "Robert", "Carol", "David"];
        let room = Room::open(&root, &names, vec![Mode::Aes256Gcm], ANSWER);
        for person in 0..names.len() {
            room.press(person, "Hear me");
        }
        let begun = Instant::now();
        let mut round = 0;
        while begun.elapsed() < Duration::from_secs(seconds()) {
            // All of them at once: the sentences have different lengths, and overlap.
            let said: Vec<_> = SENTENCES.iter().map(|sentences| sentences[round % 5]).enumerate().collect();
            room.say_together(&said);
            room.pause();
            round += 1;
        }
        let understood = |least: usize| (room.engine.kept().said.len() >= least).then_some(());
        room.until("most of it to be understood", || understood(round * 3));
        // Two sentences without a pause between them may be one utterance.
        let waited = Instant::now();
        room.until("the rest", || understood(round * 4).or((waited.elapsed() > PATIENCE).then_some(())));
        let kept = room.engine.kept();
        let whose = |text: &str| {
            let found = words(text);
            let wrong = |sentence: &&str| errors(&words(sentence), &found);
            (0..names.len()).min_by_key(|person| SENTENCES[*person].iter().map(&wrong).min())
        };
        let given = |(inbound, _): &&(azera_types::Inbound, _)| {
            let person = (0..names.len()).find(|person| room.person(*person) == inbound.person);
            person != whose(inbound.text.as_str())
        };
        let wrong: Vec<&str> = kept.said.iter().filter(given).map(|(inbound, _)| inbound.text.as_str()).collect();
        println!("{} utterances of {} sentences, {} given to another person", kept.said.len(), round * 4, wrong.len());
        assert!(wrong.is_empty(), "{wrong:?}");
    });
}
