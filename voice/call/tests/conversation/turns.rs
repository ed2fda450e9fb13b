//! Conversations of several people: whose answer is said, and who ends it.

use azera_voice_call::Request;

use crate::made_up::{LETTER, MadeUp, engines, id, person};
use crate::{LONG, SECOND};

#[tokio::test(start_paused = true)]
async fn talk_of_others_with_each_other_costs_nobody_their_answer() {
    let mut room = MadeUp::open().await;
    room.join("Bob").await;
    room.join("Cid").await;
    room.say("Azera, when does the ferry leave?", 2 * SECOND).await;
    room.is_slow = true;
    room.talk.request(Request::Whole(id("a"), "It leaves at six.".into())).await;
    room.speaker = "Bob";
    room.say("Cid, did you bring the umbrella?", SECOND).await;
    room.is_slow = false;
    room.pass(3 * SECOND, false).await;
    assert_eq!(room.uttered, [("It leaves at six.".to_owned(), true)], "it had not begun");
    room.speaker = "Ann";
    room.say("Azera, how do I get to the beach?", 2 * SECOND).await;
    room.talk.request(Request::Whole(id("b"), LONG.into())).await;
    room.pass(LETTER * 20, false).await;
    room.speaker = "Bob";
    room.say("Cid, did you bring the umbrella?", SECOND).await;
    room.pass(LETTER * 130, false).await;
    assert_eq!(room.uttered[1..], [(LONG.to_owned(), true)], "it went on");
    assert!(room.reach.is_empty(), "{:?}", room.reach);
}

/// Opens a room with two people in it.
async fn two() -> MadeUp {
    let mut room = MadeUp::open().await;
    room.join("Bob").await;
    room
}

/// People who come must not hear the rest of an answer from before.
#[tokio::test(start_paused = true)]
async fn nothing_goes_on_after_a_request_to_be_silent() {
    for (way, requests) in [
        ("stop", vec![Request::Stop]),
        ("mute", vec![Request::Mute(true), Request::Mute(false)]),
        ("silence", vec![Request::Silence(true), Request::Silence(false)]),
    ] {
        let mut room = MadeUp::open().await;
        room.say("How do I get to the beach?", 2 * SECOND).await;
        room.talk.request(Request::Whole(id("a"), LONG.into())).await;
        room.pass(LETTER * 45, false).await;
        room.say("Wait a second.", SECOND).await;
        room.pass(SECOND, false).await;
        for request in requests {
            room.talk.request(request).await;
        }
        room.say("Please go on.", SECOND).await;
        room.pass(LETTER * 100, false).await;
        assert_eq!(room.said[1..], ["Please go on."], "{way}");
        assert_eq!(room.uttered.len(), 1, "{way}: nothing more is said");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_a_request_stopped_does_not_go_on() {
    let mut room = MadeUp::open().await;
    room.say("How do I get to the beach?", 2 * SECOND).await;
    room.talk.request(Request::Whole(id("a"), LONG.into())).await;
    room.pass(LETTER * 45, false).await;
    room.say("Wait a second.", SECOND).await;
    room.talk.request(Request::Whole(id("b"), LONG.into())).await;
    room.pass(LETTER * 45, false).await;
    room.talk.request(Request::Stop).await;
    room.say("Please go on.", SECOND).await;
    room.pass(LETTER * 100, false).await;
    assert_eq!(room.said[1..], ["Please go on."]);
    assert_eq!(room.uttered.len(), 2, "each was stopped once: {:?}", room.uttered);
}

#[tokio::test(start_paused = true)]
async fn an_interruption_ends_one_answer_and_not_the_next() {
    let mut room = two().await;
    room.say("Azera, how do I get to the beach?", 2 * SECOND).await;
    room.talk.request(Request::Whole(id("a"), LONG.into())).await;
    room.pass(LETTER * 20, false).await;
    room.speaker = "Bob";
    room.say("Azera, when does the ferry leave?", SECOND).await;
    room.talk.request(Request::Whole(id("b"), "It leaves at six.".into())).await;
    room.pass(SECOND / 2, false).await;
    assert!(room.uttered.is_empty(), "it still says the first one");
    room.speaker = "Ann";
    room.say("No, I mean the other beach.", SECOND).await;
    room.pass(3 * SECOND, false).await;
    assert_eq!(room.uttered.len(), 2, "{:?}", room.uttered);
    assert!(!room.uttered[0].1 && room.uttered[0].0.starts_with("First you walk"), "{:?}", room.uttered);
    assert_eq!(room.uttered[1], ("It leaves at six.".to_owned(), true));
    assert_eq!(room.reach, room.uttered[..1]);
    // An order to stop ends both.
    room.talk.request(Request::Whole(id("c"), LONG.into())).await;
    room.talk.request(Request::Whole(id("d"), "It leaves at six.".into())).await;
    room.pass(SECOND, false).await;
    room.say("Azera, stop.", SECOND).await;
    room.pass(3 * SECOND, false).await;
    assert_eq!((room.uttered.len(), room.reach.len()), (3, 3));
    assert_eq!(room.reach[2], (String::new(), false));
}

#[tokio::test(start_paused = true)]
async fn each_of_two_answers_in_a_row_is_interrupted_by_its_own_asker() {
    let mut room = two().await;
    room.say("Azera, when does the ferry leave?", 2 * SECOND).await;
    room.speaker = "Bob";
    room.say("Azera, how do I get to the beach?", 2 * SECOND).await;
    room.talk.request(Request::Whole(id("a"), "It leaves at six.".into())).await;
    room.talk.request(Request::Whole(id("b"), LONG.into())).await;
    room.pass(2 * SECOND, false).await;
    assert_eq!(room.uttered, [("It leaves at six.".to_owned(), true)]);
    room.speaker = "Ann";
    room.say("Then I will be there at five.", SECOND).await;
    room.pass(SECOND / 2, false).await;
    assert!(room.reach.is_empty(), "her answer is over: {:?}", room.reach);
    room.speaker = "Bob";
    room.say("No, I mean the other beach.", SECOND).await;
    room.pass(SECOND / 2, false).await;
    assert_eq!(room.reach.len(), 1);
    assert_eq!(room.for_bot, [true; 4], "it just talked with each of them");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_before_an_older_one_is_still_its_own_askers() {
    let mut room = two().await;
    room.say("Azera, when does the ferry leave?", 2 * SECOND).await;
    room.speaker = "Bob";
    room.say("Azera, how do I get to the beach?", 2 * SECOND).await;
    room.talk.request(Request::AskedBy(id("b"), person("Bob"))).await;
    room.talk.request(Request::Whole(id("b"), LONG.into())).await;
    room.pass(LETTER * 20, false).await;
    room.speaker = "Ann";
    room.say("Then I will be there at five.", SECOND).await;
    room.pass(SECOND / 2, false).await;
    assert!(room.reach.is_empty(), "it is not the answer to her: {:?}", room.reach);
    room.speaker = "Bob";
    room.say("No, I mean the other beach.", SECOND).await;
    room.pass(SECOND / 2, false).await;
    assert_eq!(room.reach.len(), 1);
    // Whoever asked for it, nothing more is said of a reply that was cut, and it keeps nobody waiting.
    room.talk.request(Request::AskedBy(id("b"), person("Bob"))).await;
    room.talk.request(Request::Unanswered(Some(person("Bob")))).await;
    room.pass(20 * SECOND, false).await;
    room.say("Then I look it up.", SECOND).await;
    assert_eq!(room.for_bot, [true, true, true, true, false]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_minutes_can_be_interrupted() {
    let mut room = two().await;
    room.say("Azera, how do I get to the beach?", 2 * SECOND).await;
    room.talk.request(Request::Whole(id("a"), [LONG; 20].join(" "))).await;
    room.pass(70 * SECOND, false).await;
    assert!(room.uttered.is_empty(), "it lasts longer");
    room.say("No, I mean the other beach.", SECOND).await;
    room.pass(SECOND / 2, false).await;
    assert_eq!((room.reach.len(), room.for_bot.as_slice()), (1, [true; 2].as_slice()));
}

#[tokio::test(start_paused = true)]
async fn an_answer_does_not_wait_for_ever_for_talk_of_others() {
    let mut room = two().await;
    room.join("Cid").await;
    room.say("Azera, how do I get to the beach?", 2 * SECOND).await;
    room.talk.request(Request::Whole(id("a"), LONG.into())).await;
    room.pass(LETTER * 20, false).await;
    room.speaker = "Bob";
    "Cid, I was at the market, and then at the harbor.".clone_into(&mut room.hearing.0.lock().unwrap());
    room.pass(10 * SECOND, true).await;
    assert!(room.uttered.is_empty());
    room.pass(10 * SECOND, true).await;
    assert_eq!(room.uttered, [(LONG.to_owned(), true)]);
}

#[tokio::test(start_paused = true)]
async fn whoever_got_no_answer_calls_it_again() {
    for way in ["unanswered", "empty", "refused"] {
        let mut room = two().await;
        room.say("Azera, when does the ferry leave?", 2 * SECOND).await;
        match way {
            "unanswered" => room.talk.request(Request::Unanswered(Some(person("Ann")))).await,
            "empty" => room.talk.request(Request::Whole(id("a"), String::new())).await,
            _ => {
                room.talk.request(Request::Mute(true)).await;
                room.talk.request(Request::Whole(id("a"), "It leaves at six.".into())).await;
                room.talk.request(Request::Mute(false)).await;
            }
        }
        room.pass(20 * SECOND, false).await;
        room.say("Then I look it up.", SECOND).await;
        assert_eq!(room.for_bot, [true, false], "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_small_sound_does_not_come_while_somebody_speaks() {
    let mut room = two().await;
    room.say("Azera, what is the meaning of life?", 2 * SECOND).await;
    room.speaker = "Bob";
    "I wonder, too.".clone_into(&mut room.hearing.0.lock().unwrap());
    room.pass(3 * SECOND, true).await;
    assert!(room.heard.lock().unwrap().is_empty());
    room.pass(SECOND, false).await;
    assert_eq!(room.heard.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_small_sound_comes_for_a_question_although_one_before_it_gets_no_answer() {
    let mut room = two().await;
    room.say("Azera, when does the ferry leave?", 2 * SECOND).await;
    room.speaker = "Bob";
    room.say("Azera, what is the meaning of life?", 2 * SECOND).await;
    room.talk.request(Request::Unanswered(Some(person("Ann")))).await;
    room.pass(3 * SECOND, false).await;
    assert_eq!(room.heard.lock().unwrap().len(), 1);
    room.say("Azera, are you there?", SECOND).await;
    room.talk.request(Request::Unanswered(Some(person("Bob")))).await;
    room.pass(3 * SECOND, false).await;
    assert_eq!(room.heard.lock().unwrap().len(), 1, "nobody waits");
}

#[tokio::test(start_paused = true)]
async fn code_is_announced_only_where_it_is_sent() {
    const CODE: &str = "Here it is:\n```sh\nls\n```";
    let (sending, hearing, speaking) = engines("");
    let mut room = MadeUp::open_by((sending.sending_code(), hearing, speaking)).await;
    let said = async |room: &mut MadeUp, request| {
        room.speaking.styles.lock().unwrap().clear();
        room.talk.request(request).await;
        room.pass(6 * SECOND, false).await;
        let said: Vec<String> = room.speaking.styles.lock().unwrap().iter().map(|(said, _)| said.clone()).collect();
        said.into_iter().filter(|said| said != "Hmm.").collect::<Vec<String>>()
    };
    for request in [Request::Whole(id("a"), CODE.into()), Request::Say(CODE.into())] {
        assert_eq!(said(&mut room, request).await[1..], ["I'm sending you the code as a direct message."]);
    }
    let empty = said(&mut room, Request::Whole(id("b"), "Here it is:\n```\n```".into())).await;
    assert_eq!(empty.len(), 1, "there is none: {empty:?}");
    // Where a chat shows replies, it does not show what is no reply.
    let mut room = MadeUp::open().await;
    let reply = said(&mut room, Request::Whole(id("a"), CODE.into())).await;
    assert_eq!(reply[1..], ["I've put the code in the chat."]);
    let other = said(&mut room, Request::Say(CODE.into())).await;
    assert_eq!(other[1..], ["There is code here that I don't read aloud."]);
}
