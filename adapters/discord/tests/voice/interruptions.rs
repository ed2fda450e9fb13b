//! People interrupt the bot, and only what they heard stays. `AZERA_INTERRUPTIONS` says how often. Answers that fail are told.

use std::time::Duration;

use azera_adapter::HostError;
use azera_fake_discord::{Fault, Mode, Network, VoicePacket};

use crate::soak::{errors, words};
use crate::{ANSWER, Room, check, in_own_process};

/// A long answer, which can be interrupted.
pub const LONG: &[&str] = &[
    "First you walk along the harbor to the old lighthouse. Then you take the narrow path up the hill behind the church. ",
    "At the top there is a bench with a view of the whole bay. From there it is only a short way down to the beach. ",
    "There you will find a small cafe.",
];

/// A question that fails.
pub const QUESTION: &str = "When does the last ferry leave today?";

/// What people read about such a question, if it is refused, and if the people who hear the call have changed.
pub const FAILS: &str = "I cannot answer you at the moment";
const NO_ANSWER: &str = "I have no answer to that";
pub const AGAIN: &str = "Who hears this call has changed, so I did not answer. Please ask me again.";

/// What came of an interruption.
struct Cut {
    /// Words in the history that nobody heard, or that are missing there: by what Whisper heard.
    differ: usize,
    /// From the beginning of speech to silence.
    silent_after: Duration,
}

/// Returns how often the bot is interrupted. `make test` does it once.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn count() -> usize {
    std::env::var("AZERA_INTERRUPTIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(1).max(1)
}

/// Returns how many of the first words of the answer somebody said.
fn reached(said: &str) -> usize {
    let (all, said) = (words(&LONG.concat()), words(said));
    (0..=all.len()).min_by_key(|count| errors(&all[..*count], &said)).unwrap_or_default()
}

/// Lets Ann ask, and interrupt the answer after so many packets.
fn interrupt(room: &Room, packets: usize) -> Cut {
    let (from, before) = (room.spoken(), room.engine.kept().cut.len());
    room.say(0, "How do I get to the beach?", Network::default());
    room.speaks(from, packets);
    room.say(0, "Please stop talking.", Network::default());
    let heard = room.until("the cut", || room.engine.kept().cut.get(before).cloned());
    let said = room.hear(from);
    let silent_after = room.fake.world(|world| {
        // Packets of silence have three bytes.
        let last: &VoicePacket = world.voice.heard.iter().rev().find(|packet| packet.opus.len() > 3)?;
        Some(last.at - world.voice.began?)
    });
    assert!(heard.starts_with("First you walk"), "{heard}");
    assert!(!heard.contains("cafe") && !said.contains("cafe"), "{heard}\n{said}");
    check(&heard, &said);
    let differ = reached(&said).abs_diff(words(&heard).len());
    println!("{differ} words differ, silent after {silent_after:?}\n  kept: {heard}\n  said: {said}");
    Cut { differ, silent_after: silent_after.expect("it spoke") }
}

#[test]
fn a_spoken_question_that_fails_is_told_and_not_each_time() {
    in_own_process("interruptions::a_spoken_question_that_fails_is_told_and_not_each_time", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        let broken = || HostError::Storage("the record is damaged".into());
        let changed = || HostError::NotAllowed;
        room.engine.kept().failures = [broken(), broken(), changed(), changed()].into();
        for asked in 1..5 {
            room.say(0, QUESTION, Network::default());
            room.said(asked);
        }
        room.told(FAILS, 1);
        room.told(AGAIN, 1);
        let from = room.spoken();
        room.say(0, QUESTION, Network::default());
        check(&ANSWER.concat(), &room.hear(from));
        assert_eq!((room.notices(FAILS), room.notices(AGAIN)), (1, 1));
        // That answer was delivered, although nobody learnt of its outcome.
        room.engine.kept().failures = [broken()].into();
        room.say(0, QUESTION, Network::default());
        room.told(FAILS, 2);
    });
}

#[test]
fn a_failure_that_could_not_be_told_is_told_at_the_next_one() {
    in_own_process("interruptions::a_failure_that_could_not_be_told_is_told_at_the_next_one", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        let path = format!("/channels/{}/messages", room.channel);
        room.fake.world(|world| world.order(Fault::fails("POST", &path, 403)));
        let broken = || HostError::Storage("the record is damaged".into());
        room.engine.kept().failures = [broken(), broken()].into();
        for asked in 1..3 {
            room.say(0, QUESTION, Network::default());
            room.said(asked);
        }
        room.told(FAILS, 1);
    });
}

#[test]
fn a_spoken_question_that_is_refused_is_told_unless_it_was_forgotten() {
    in_own_process("interruptions::a_spoken_question_that_is_refused_is_told_unless_it_was_forgotten", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        let refused = || HostError::Refused("the model gave no answer".into());
        {
            let mut kept = room.engine.kept();
            kept.failures = [refused(), HostError::NotAllowed, refused()].into();
            kept.forgets = true;
        }
        room.say(0, QUESTION, Network::default());
        room.said(1);
        room.engine.kept().forgets = false;
        room.say(0, QUESTION, Network::default());
        // The second question is told to have failed, and the first was before it.
        room.told(AGAIN, 1);
        assert_eq!(room.notices(NO_ANSWER), 0, "nobody waits for the answer");
        room.say(0, QUESTION, Network::default());
        room.told(NO_ANSWER, 1);
        let broken = HostError::Storage("the record is damaged".into());
        room.engine.kept().failures = [broken].into();
        room.say(0, QUESTION, Network::default());
        room.told(FAILS, 1);
    });
}

#[test]
fn talk_interrupts_it_and_only_what_was_heard_stays() {
    in_own_process("interruptions::talk_interrupts_it_and_only_what_was_heard_stays", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], LONG);
        room.press(0, "Hear me");
        // Two to seven seconds of its answer, and never at the same place.
        let mut cuts: Vec<Cut> = (0..count()).map(|round| interrupt(&room, 100 + round * 83 % 250)).collect();
        cuts.sort_by_key(|cut| cut.silent_after);
        let close = cuts.iter().filter(|cut| cut.differ <= 1).count();
        let late = &cuts[(cuts.len() * 95).div_ceil(100) - 1];
        println!("{close} of {} within a word; silent after {:?} (p95)", cuts.len(), late.silent_after);
    });
}
