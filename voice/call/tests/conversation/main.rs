//! Conversations in a made-up room, by a clock that only the test moves.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod made_up;
mod manner;
mod on_demand;
mod turns;

use std::process::Command;
use std::time::Duration;

use azera_types::PersonId;
use azera_voice_api::{Manner, Style};
use azera_voice_call::Request;
use tokio::time::Instant;

use crate::made_up::{LETTER, MadeUp, id};

const SECOND: Duration = Duration::from_secs(1);

/// A reply of three sentences, each of which takes some seconds.
const LONG: &str = "First you walk along the harbor. Then you take the path up the hill. There is a bench at the top.";

#[tokio::test(start_paused = true)]
async fn the_line_is_open_when_the_answer_begins() {
    let mut room = MadeUp::open().await;
    room.say("When does the ferry leave?", 2 * SECOND).await;
    assert_eq!(room.said, ["When does the ferry leave?"]);
    room.pass(SECOND / 2, false).await;
    let written = Instant::now();
    room.talk.request(Request::Whole(id("a"), "It leaves at six.".into())).await;
    room.pass(SECOND, false).await;
    assert_eq!(room.uttered, [("It leaves at six.".to_owned(), true)]);
    let heard = room.heard.lock().unwrap()[0];
    assert!(heard - written < Duration::from_millis(100), "{:?}", heard - written);
    // What was not asked for begins with silence, because the beginning of a sound is swallowed.
    room.pass(5 * SECOND, false).await;
    let written = Instant::now();
    room.talk.request(Request::Say("Good day.".into())).await;
    room.pass(SECOND, false).await;
    let waited = room.heard.lock().unwrap().last().copied().unwrap() - written;
    assert!(waited >= Duration::from_millis(150) && waited < Duration::from_millis(250), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_small_sound_comes_once_when_the_answer_takes_long() {
    let mut room = MadeUp::open().await;
    room.say("What is the meaning of life?", 2 * SECOND).await;
    let asked = Instant::now();
    room.pass(6 * SECOND, false).await;
    let heard = room.heard.lock().unwrap().clone();
    assert_eq!(heard.len(), 1);
    let waited = heard[0] - asked;
    assert!(waited > SECOND && waited < 2 * SECOND, "{waited:?}");
    // The clock of the answer does not count it.
    room.talk.request(Request::Whole(id("a"), LONG.into())).await;
    room.pass(Duration::from_millis(150) + LETTER * 12, false).await;
    room.talk.request(Request::Stop).await;
    room.pass(SECOND / 10, false).await;
    assert_eq!(room.reach, [("First you".to_owned(), false)]);
    // Nobody answers, so nothing is bridged.
    room.say("Nothing for you.", SECOND).await;
    room.talk.request(Request::Unanswered(None)).await;
    let before = room.heard.lock().unwrap().len();
    room.pass(4 * SECOND, false).await;
    assert_eq!(room.heard.lock().unwrap().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_was_stopped_goes_on_from_the_sentence_in_which_it_was() {
    let mut room = MadeUp::open().await;
    room.say("How do I get to the beach?", 2 * SECOND).await;
    room.talk.request(Request::Whole(id("a"), LONG.into())).await;
    room.pass(LETTER * 45, false).await;
    room.say("Wait a second.", SECOND).await;
    room.pass(SECOND, false).await;
    assert_eq!(room.reach.len(), 1);
    let (heard, is_whole) = room.reach[0].clone();
    assert!(heard.starts_with("First you walk along the harbor. Then you") && !heard.contains("bench"), "{heard}");
    assert!(!is_whole);
    room.say("Please go on.", SECOND).await;
    room.pass(LETTER * 100, false).await;
    assert_eq!(room.reach[1..], [(LONG.to_owned(), true)]);
    assert_eq!(room.uttered, room.reach, "as far as it was heard, each time");
    assert_eq!(room.said.len(), 1, "orders are no messages");
    // Nothing is left of it.
    room.say("Go on.", SECOND).await;
    room.pass(SECOND, false).await;
    assert_eq!(room.said[1..], ["Go on."]);
}

#[tokio::test(start_paused = true)]
async fn each_persona_speaks_in_its_own_manner() {
    let mut room = MadeUp::open().await;
    let manner = |voice: &str, pace| Manner { voice: Some(voice.into()), pace: Some(pace), ..Manner::default() };
    let reply = async |room: &mut MadeUp, name: &str, manner: Option<Manner>, text: &str| {
        if let Some(manner) = manner {
            room.talk.request(Request::Manner(id(name), manner)).await;
        }
        room.talk.request(Request::Whole(id(name), text.into())).await;
        room.pass(3 * SECOND, false).await;
        room.speaking.styles.lock().unwrap().iter().find(|(said, _)| said == text).unwrap().1.clone()
    };
    assert_eq!(reply(&mut room, "a", None, "It leaves at six.").await, Style::of("joe"));
    let ann = Style { pace: 1.5, ..Style::of("ann") };
    assert_eq!(reply(&mut room, "b", Some(manner("ann", 1.5)), "It leaves at seven.").await, ann);
    // Nobody has that voice, so the usual one speaks, at the persona's pace.
    let other = Style { pace: 0.8, ..Style::of("joe") };
    assert_eq!(reply(&mut room, "c", Some(manner("nobody", 0.8)), "It leaves at eight.").await, other);
    // A reply that was stopped goes on in its own voice.
    room.say("How do I get to the beach?", 2 * SECOND).await;
    room.talk.request(Request::Manner(id("d"), manner("ann", 1.0))).await;
    room.talk.request(Request::Whole(id("d"), LONG.into())).await;
    room.pass(LETTER * 45, false).await;
    room.say("Wait a second.", SECOND).await;
    room.say("Please go on.", SECOND).await;
    room.pass(LETTER * 100, false).await;
    let styles = room.speaking.styles.lock().unwrap().clone();
    assert!(styles.iter().rev().take(3).all(|(_, style)| style.voice == "ann"), "{styles:?}");
    // Another persona has the conversation: it answers to its own name alone, and says "hmm" by itself.
    room.talk.request(Request::Persona(vec!["Lou".into()], manner("ann", 1.5))).await;
    assert_eq!(reply(&mut room, "e", None, "It leaves at nine.").await, ann);
    room.pass(SECOND, false).await;
    let hums: Vec<String> = room
        .speaking
        .styles
        .lock()
        .unwrap()
        .iter()
        .filter(|(said, _)| said == "Hmm.")
        .map(|(_, style)| style.voice.clone())
        .collect();
    assert_eq!(hums, ["joe", "ann"]);
}

#[tokio::test(start_paused = true)]
async fn replies_that_are_never_said_were_not_heard() {
    let mut room = MadeUp::open().await;
    for number in 0..12 {
        room.talk.request(Request::Whole(id(&format!("r{number}")), LONG.into())).await;
    }
    room.pass(SECOND, false).await;
    assert_eq!(room.reach, vec![(String::new(), false); 4], "eight wait");
    assert!(room.uttered.is_empty());
    room.talk.end().await;
    room.pass(SECOND / 10, false).await;
    assert_eq!(room.reach.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_notice_is_dropped_for_notices_alone() {
    let said = async |room: &mut MadeUp, notice: &str| {
        room.pass(12 * SECOND, false).await;
        room.speaking.styles.lock().unwrap().iter().filter(|(said, _)| said == notice).count()
    };
    let mut room = MadeUp::open().await;
    room.talk.request(Request::Whole(id("first"), "It leaves at six.".into())).await;
    room.talk.request(Request::Say("The recording begins.".into())).await;
    for number in 0..12 {
        room.talk.request(Request::Whole(id(&format!("r{number}")), "It leaves at six.".into())).await;
    }
    assert_eq!(said(&mut room, "The recording begins.").await, 1);
    assert_eq!(room.reach, vec![(String::new(), false); 6], "the oldest that waited");
    let mut room = MadeUp::open().await;
    for _ in 0..12 {
        room.talk.request(Request::Say("Good day.".into())).await;
    }
    assert_eq!(said(&mut room, "Good day.").await, 8);
}

#[tokio::test(start_paused = true)]
async fn a_muted_bot_hears_and_does_not_answer() {
    let mut room = MadeUp::open().await;
    room.talk.request(Request::Whole(id("a"), LONG.into())).await;
    room.pass(SECOND, false).await;
    room.talk.request(Request::Mute(true)).await;
    let before = room.heard.lock().unwrap().len();
    room.say("When does the ferry leave?", 2 * SECOND).await;
    room.pass(5 * SECOND, false).await;
    assert_eq!(room.heard.lock().unwrap().len(), before);
    assert_eq!(room.said.len(), 1);
    // What somebody else decides to answer, such as a typed line, is not said either.
    room.reach.clear();
    room.talk.request(Request::Piece(id("b"), "It leaves ".into())).await;
    room.talk.request(Request::Whole(id("b"), "It leaves at six.".into())).await;
    room.pass(2 * SECOND, false).await;
    assert_eq!(room.heard.lock().unwrap().len(), before);
    assert_eq!(room.reach, [(String::new(), false)]);
    room.talk.request(Request::Mute(false)).await;
    room.talk.request(Request::Whole(id("b"), "It leaves at six.".into())).await;
    room.pass(SECOND, false).await;
    assert_eq!(room.heard.lock().unwrap().len(), before, "nothing of a refused reply is said later");
    room.talk.request(Request::Whole(id("c"), "It leaves at six.".into())).await;
    room.pass(SECOND, false).await;
    assert!(room.heard.lock().unwrap().len() > before);
}

#[tokio::test(start_paused = true)]
async fn a_bot_that_nobody_can_hear_says_nothing_that_counts_as_heard() {
    let mut room = MadeUp::open().await;
    room.talk.request(Request::Whole(id("a"), LONG.into())).await;
    room.pass(SECOND, false).await;
    room.talk.request(Request::Silence(true)).await;
    room.pass(SECOND / 10, false).await;
    assert_eq!(room.reach.len(), 1);
    assert!(!room.reach[0].1 && !room.reach[0].0.contains("bench"), "{:?}", room.reach);
    let before = room.heard.lock().unwrap().len();
    room.talk.request(Request::Whole(id("b"), "It leaves at six.".into())).await;
    room.talk.request(Request::Say("Good day.".into())).await;
    room.say("Azera, you can talk again.", 2 * SECOND).await;
    room.say("When does the ferry leave?", 2 * SECOND).await;
    room.pass(5 * SECOND, false).await;
    assert_eq!(room.heard.lock().unwrap().len(), before);
    assert_eq!(room.reach[1..], [(String::new(), false)]);
    room.talk.request(Request::Silence(false)).await;
    room.talk.request(Request::Whole(id("c"), "It leaves at six.".into())).await;
    room.pass(2 * SECOND, false).await;
    assert_eq!(room.uttered.last(), Some(&("It leaves at six.".to_owned(), true)));
}

#[tokio::test(start_paused = true)]
async fn a_bot_that_is_muted_before_its_answer_says_nothing() {
    let mut room = MadeUp::open().await;
    room.say("What is the meaning of life?", 2 * SECOND).await;
    room.talk.request(Request::Mute(true)).await;
    room.pass(5 * SECOND, false).await;
    room.talk.request(Request::Piece(id("a"), "First you walk along ".into())).await;
    room.talk.request(Request::Whole(id("a"), LONG.into())).await;
    room.pass(5 * SECOND, false).await;
    assert!(room.heard.lock().unwrap().is_empty());
    assert_eq!(room.reach, [(String::new(), false)]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_somebody_who_goes_on_speaking() {
    let mut room = MadeUp::open().await;
    room.say("When does the ferry leave?", 2 * SECOND).await;
    room.is_slow = true;
    room.talk.request(Request::Whole(id("a"), LONG.into())).await;
    room.pass(SECOND / 10, false).await;
    "Mhm.".clone_into(&mut room.hearing.0.lock().unwrap());
    room.pass(SECOND / 2, true).await;
    // The first sound comes while the line is open and somebody speaks.
    room.is_slow = false;
    room.pass(SECOND / 2, true).await;
    assert!(room.heard.lock().unwrap().is_empty());
    room.pass(3 * SECOND, false).await;
    assert!(!room.heard.lock().unwrap().is_empty(), "it was only a small sound");
}

#[tokio::test(start_paused = true)]
async fn the_small_sound_waits_for_somebody_who_goes_on_speaking() {
    let mut room = MadeUp::open().await;
    room.say("When does the ferry leave?", 2 * SECOND).await;
    room.is_slow = true;
    room.talk.request(Request::Whole(id("a"), LONG.into())).await;
    room.pass(SECOND / 2, false).await;
    "And when does it come back, I mean today?".clone_into(&mut room.hearing.0.lock().unwrap());
    room.pass(2 * SECOND, true).await;
    assert!(room.heard.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn words_that_never_sounded_were_not_heard() {
    let mut room = MadeUp::open().await;
    room.say("When does the ferry leave?", 2 * SECOND).await;
    room.is_slow = true;
    room.talk.request(Request::Whole(id("a"), LONG.into())).await;
    room.pass(SECOND / 2, false).await;
    room.talk.request(Request::Stop).await;
    room.pass(SECOND / 10, false).await;
    assert_eq!(room.reach, [(String::new(), false)]);
}

/// A reply lasts about a second. Somebody begins to speak at each moment of it, so also just before its end.
#[tokio::test(start_paused = true)]
async fn a_bot_that_is_interrupted_as_its_reply_ends_speaks_again() {
    for moment in 0..40 {
        let mut room = MadeUp::open().await;
        room.talk.request(Request::Whole(id("a"), "It leaves at six.".into())).await;
        room.pass(Duration::from_millis(32) * moment, false).await;
        "Mhm.".clone_into(&mut room.hearing.0.lock().unwrap());
        room.pass(SECOND / 2, true).await;
        room.pass(3 * SECOND, false).await;
        let before = room.heard.lock().unwrap().len();
        room.talk.request(Request::Say("Good day.".into())).await;
        room.pass(SECOND, false).await;
        assert!(room.heard.lock().unwrap().len() > before, "it is mute after an interruption at {moment}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_the_voice_cannot_say_was_heard_as_far_as_it_sounded() {
    let mut room = MadeUp::open_with("hill").await;
    room.talk.request(Request::Whole(id("a"), LONG.into())).await;
    room.pass(LETTER * 110, false).await;
    let heard = "First you walk along the harbor.".to_owned();
    assert_eq!((&room.uttered, &room.reach), (&vec![(heard.clone(), false)], &vec![(heard, false)]));
    room.talk.request(Request::Whole(id("b"), "Up the hill.".into())).await;
    room.pass(SECOND, false).await;
    assert_eq!((room.reach.last(), room.voiceless), (Some(&(String::new(), false)), 1));
    room.talk.request(Request::Whole(id("c"), "It leaves at six.".into())).await;
    room.pass(2 * SECOND, false).await;
    assert_eq!(room.uttered.last(), Some(&("It leaves at six.".to_owned(), true)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_open_line_ended_begins_with_silence() {
    // Nothing bridges the wait.
    let mut room = MadeUp::open_with("Hmm").await;
    room.say("When does the ferry leave?", 2 * SECOND).await;
    room.pass(6 * SECOND, false).await;
    let written = Instant::now();
    room.talk.request(Request::Whole(id("a"), "It leaves at six.".into())).await;
    room.pass(2 * SECOND, false).await;
    let waited = room.heard.lock().unwrap()[0] - written;
    assert!(waited >= Duration::from_millis(150), "its first syllable is swallowed: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_begins_anew_is_said_although_it_comes_in_one_piece() {
    let mut room = MadeUp::open().await;
    room.talk.request(Request::Piece(id("a"), "I thi".into())).await;
    room.talk.request(Request::Retracted(id("a"))).await;
    room.talk.request(Request::Whole(id("a"), "It leaves at six.".into())).await;
    room.pass(2 * SECOND, false).await;
    assert_eq!(room.heard.lock().unwrap().len(), 2, "both of its pieces of sound");
    assert_eq!(room.uttered, [("It leaves at six.".to_owned(), true)]);
}

/// Lets a reply break off while its first sentence is said.
async fn break_off(room: &mut MadeUp) {
    let piece = "First you walk along the harbor. Then you take the path";
    room.talk.request(Request::Piece(id("a"), piece.into())).await;
    room.pass(LETTER * 10, false).await;
    room.talk.request(Request::Retracted(id("a"))).await;
    room.talk.request(Request::Whole(id("a"), String::new())).await;
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_broke_off_and_is_tried_again_is_said_to_its_end() {
    const AGAIN: &str = "It leaves at six. It is the last one.";
    let pieces: Vec<Request> = AGAIN.split_inclusive(' ').map(|piece| Request::Piece(id("a"), piece.into())).collect();
    for pieces in [pieces, Vec::new()] {
        let mut room = MadeUp::open().await;
        break_off(&mut room).await;
        for piece in pieces {
            room.talk.request(piece).await;
        }
        room.talk.request(Request::Whole(id("a"), AGAIN.into())).await;
        room.pass(LETTER * 120, false).await;
        assert_eq!(room.uttered, [(AGAIN.to_owned(), true)]);
        let styles = room.speaking.styles.lock().unwrap().clone();
        assert!(styles.iter().any(|(said, _)| said.ends_with("It is the last one.")), "{styles:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_counts_as_heard_of_a_reply_that_broke_off() {
    let mut room = MadeUp::open().await;
    break_off(&mut room).await;
    room.pass(3 * SECOND, false).await;
    assert!(!room.heard.lock().unwrap().is_empty(), "its first sentence sounded");
    assert!(room.uttered.is_empty(), "no caption waits for a reply that is not in the record: {:?}", room.uttered);
    assert!(room.reach.is_empty(), "nobody cut it: {:?}", room.reach);
    room.talk.request(Request::Whole(id("a"), "It leaves at six.".into())).await;
    room.pass(2 * SECOND, false).await;
    assert_eq!(room.uttered, [("It leaves at six.".to_owned(), true)]);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_broke_off_and_was_interrupted_is_said_when_it_is_tried_again() {
    for way in ["interruption", "stop"] {
        let mut room = MadeUp::open().await;
        break_off(&mut room).await;
        match way {
            "stop" => room.talk.request(Request::Stop).await,
            _ => room.say("No, I mean the other beach.", SECOND).await,
        }
        room.pass(SECOND / 2, false).await;
        assert!(room.uttered.is_empty(), "{way}: no caption waits for it: {:?}", room.uttered);
        assert!(room.reach.is_empty(), "{way}: its next try is not cut: {:?}", room.reach);
        room.talk.request(Request::Whole(id("a"), "It leaves at six.".into())).await;
        room.pass(4 * SECOND, false).await;
        assert_eq!(room.uttered, [("It leaves at six.".to_owned(), true)], "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_recognised_before_the_end_of_a_conversation_is_reported() {
    let mut room = MadeUp::open().await;
    "I thought that".clone_into(&mut room.hearing.0.lock().unwrap());
    room.pass(SECOND, true).await;
    room.pass(SECOND / 2, false).await;
    assert!(room.said.is_empty(), "she may go on");
    room.talk.end().await;
    room.pass(SECOND / 10, false).await;
    assert_eq!(room.said, ["I thought that"]);
    let heard = azera_voice_call::Report::Heard { reply: id("a"), heard: "the ferry".into(), is_whole: false };
    assert!(!format!("{heard:?}").contains("ferry"), "{heard:?}");
}

/// Returns the resident memory in KiB.
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Two hours of questions and answers, by the clock of the test. They run in a process of their own, because other
/// tests take memory, too.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test's own setting, not the product's")]
fn hours_of_talk_take_no_more_memory() {
    /// Says that this is the process of the test.
    const MARK: &str = "AZERA_TEST_MEMORY_PROCESS";
    if std::env::var_os(MARK).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        return runtime.unwrap().block_on(talk_for_hours());
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["hours_of_talk_take_no_more_memory", "--exact", "--nocapture"]).env(MARK, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "the test ran: {text}");
}

async fn talk_for_hours() {
    let mut room = MadeUp::open().await;
    let begun = Instant::now();
    let mut after_some = None;
    let mut number = 0;
    while begun.elapsed() < 7_200 * SECOND {
        number += 1;
        room.say("When does the ferry leave?", 3 * SECOND).await;
        let reply = id(&format!("r{number}"));
        for piece in LONG.split_inclusive(' ') {
            room.talk.request(Request::Piece(reply.clone(), piece.into())).await;
        }
        room.talk.request(Request::Whole(reply, LONG.into())).await;
        if number % 3 == 0 {
            room.pass(SECOND, false).await;
            room.say("No, I mean the other one.", SECOND).await;
        }
        room.pass(LETTER * 110, false).await;
        room.said.clear();
        room.reach.clear();
        room.heard.lock().unwrap().clear();
        if begun.elapsed() > 600 * SECOND && after_some.is_none() {
            after_some = Some(memory_kib());
        }
    }
    let (early, late) = (after_some.unwrap(), memory_kib());
    println!("{number} questions in two hours; memory after ten minutes {early} KiB, at the end {late} KiB");
    assert!(late * 100 <= early * 105, "{early} to {late} KiB");
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_read_in_the_language_of_its_voice_with_the_names_in_the_room() {
    let mut room = MadeUp::open().await;
    let bea = PersonId::new("discord:77").unwrap();
    room.talk.request(Request::Joined { person: bea.clone(), name: "Bea".into(), decision: Some(true) }).await;
    let german = Manner { voice: Some("karl".into()), ..Manner::default() };
    room.talk.request(Request::Manner(id("a"), german)).await;
    room.talk.request(Request::Whole(id("a"), "<@77>, 14:05!".into())).await;
    room.pass(5 * SECOND, false).await;
    room.talk.request(Request::Left(bea)).await;
    room.talk.request(Request::Whole(id("b"), "<@77>, 14:05!".into())).await;
    room.pass(5 * SECOND, false).await;
    let said: Vec<String> = room.speaking.styles.lock().unwrap().iter().map(|(said, _)| said.clone()).collect();
    assert!(said.contains(&"Bea, vierzehn Uhr fünf!".to_owned()), "{said:?}");
    assert!(said.contains(&"someone, fourteen oh five!".to_owned()), "{said:?}");
}
