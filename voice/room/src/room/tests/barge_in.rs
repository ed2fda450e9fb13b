//! Who makes the bot pause, and who ends what it says.

use super::*;

const FERRY: &str = "Well, it goes at six in the evening from the old pier.";

#[test]
fn talk_stops_the_bot_and_a_small_sound_does_not() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "", 0);
    room.bot_says("The ferry leaves at six in the evening.");
    room.says("ann", "Mhm.", 350);
    assert_eq!(room.log, ["pause"]);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "resume"]);
    assert!(room.said.is_empty());
    let began = room.at;
    room.says("ann", "No, I mean the morning one.", 1_200);
    assert_eq!(room.log, ["pause", "resume", "pause"]);
    room.pass(500, &[]);
    assert_eq!(room.log, ["pause", "resume", "pause", "cut"]);
    assert_eq!(room.said.len(), 1);
    assert!(room.said[0].began > began);
}

#[test]
fn side_talk_pauses_the_bot_and_only_the_one_it_answers_stops_it() {
    let mut room = MadeUp::of(&["ann", "bob", "cid"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.bot_says(FERRY);
    room.says("bob", "Cid, did you bring the umbrella?", 1_500);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "resume"]);
    // His own question is answered after hers.
    room.says("bob", "Azera, do you know the train station?", 1_500);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "resume"].repeat(2));
    let for_bot: Vec<bool> = room.said.iter().map(|said| said.is_for_bot).collect();
    assert_eq!(for_bot, [true, false, true]);
    room.says("ann", "No, I mean the morning one.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log[4..], ["pause", "cut"]);
    assert_eq!(room.texts()[3..], [("ann", "No, I mean the morning one.", true)]);
    // Anybody may tell it to be quiet.
    room.bot_says(FERRY);
    room.says("cid", "Azera, stop.", 700);
    room.pass(1_000, &[]);
    assert_eq!(room.log[6..], ["pause", "stop"]);
}

#[test]
fn it_stays_paused_until_the_last_of_several_fell_silent() {
    let mut room = MadeUp::of(&["ann", "bob", "cid"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.bot_says(FERRY);
    room.says("bob", "Cid, I was at the market.", 800);
    room.words.insert(person("cid"), "So was I, with my sister.".to_owned());
    room.pass(600, &["bob", "cid"]);
    room.pass(2_000, &["cid"]);
    assert_eq!((room.log.as_slice(), room.said.len()), (["pause"].as_slice(), 2), "Bob ended, and Cid goes on");
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "resume"]);
}

#[test]
fn a_voice_that_ended_while_it_was_paused_is_not_paused_any_more() {
    let mut room = MadeUp::of(&["ann"]);
    room.words.insert(person("ann"), "Mhm.".into());
    room.bot_says("The ferry leaves at six.");
    room.pass(400, &["ann"]);
    room.event(Event::Silent);
    assert_eq!(room.log, ["pause", "resume"]);
    room.pass(1_500, &[]);
    assert_eq!(room.log, ["pause", "resume"]);
}

#[test]
fn speech_shorter_than_the_limit_does_not_pause_the_bot() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "", 0);
    room.bot_says("The ferry leaves at six.");
    room.says("ann", "Oh", 200);
    room.pass(1_500, &[]);
    assert!(room.log.is_empty());
}

#[test]
fn the_asker_can_interrupt_an_answer_that_lasts_for_minutes() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.bot_says(FERRY);
    room.pass(90_000, &[]);
    room.says("ann", "No, I mean the morning one.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "cut"]);
    assert_eq!(room.texts()[1..], [("ann", "No, I mean the morning one.", true)]);
}

#[test]
fn each_of_two_answers_in_a_row_is_interrupted_by_its_own_asker() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.bot_says(FERRY);
    room.says("bob", "Azera, do you know the train station?", 1_500);
    room.pass(1_000, &[]);
    room.event(Event::Ended);
    room.bot_says("Yes, it is behind the market, and it is painted red.");
    room.says("ann", "Then I will be there at five.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "resume", "pause", "resume"]);
    room.says("bob", "No, I mean the old one.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log[4..], ["pause", "cut"]);
    assert!(room.said.iter().all(|said| said.is_for_bot), "it just talked with each of them");
}

#[test]
fn an_answer_belongs_to_the_one_whom_it_answers_whatever_the_order() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.says("bob", "Azera, do you know the train station?", 1_500);
    room.pass(1_000, &[]);
    room.bot_answers(Some("bob"), "Yes, it is behind the market, and it is painted red.");
    room.says("ann", "Then I will be there at five.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "resume"]);
    room.says("bob", "No, I mean the old one.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log[2..], ["pause", "cut"]);
    room.bot_answers(Some("ann"), FERRY);
    room.says("bob", "Then I will be there at five.", 1_200);
    room.pass(1_000, &[]);
    room.says("ann", "No, I mean the morning one.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log[4..], ["pause", "resume", "pause", "cut"]);
}

#[test]
fn an_answer_to_what_seemed_no_question_takes_nobody_elses() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("bob", "Azera, do you know the train station?", 1_500);
    room.pass(1_000, &[]);
    room.says("ann", "The ferry leaves at some time.", 1_500);
    room.pass(1_000, &[]);
    assert!(!room.said[1].is_for_bot);
    room.bot_answers(Some("ann"), FERRY);
    room.says("bob", "Then I will be there at five.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "resume"]);
    room.says("ann", "No, I mean the morning one.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log[2..], ["pause", "cut"]);
    // An answer to somebody who left is nobody's, and whoever calls the bot ends it.
    room.event(Event::Left(person("ann")));
    room.event(Event::Joined { person: person("cid"), name: "cid".to_owned(), decision: Some(true) });
    room.bot_answers(Some("ann"), FERRY);
    room.says("cid", "Azera, do you know the train station?", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log[4..], ["pause", "cut"]);
}

#[test]
fn whoever_gets_no_answer_takes_nobody_elses_turn() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.says("bob", "Azera, do you know the train station?", 1_500);
    room.pass(1_000, &[]);
    room.event(Event::Unanswered(Some(person("bob"))));
    room.pass(20_000, &[]);
    room.says("bob", "Then I look it up.", 1_000);
    room.pass(1_000, &[]);
    room.says("ann", "Then I will be there at five.", 1_000);
    room.pass(1_000, &[]);
    assert_eq!(room.said.iter().map(|said| said.is_for_bot).collect::<Vec<bool>>(), [true, true, false, true]);
}

#[test]
fn the_answer_to_somebody_who_left_is_not_taken_for_that_of_another() {
    let mut room = MadeUp::of(&["ann", "bob", "cid"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.says("bob", "Azera, do you know the train station?", 1_500);
    room.pass(1_000, &[]);
    room.event(Event::Left(person("ann")));
    room.bot_says(FERRY);
    room.says("bob", "Cid, did you bring the umbrella?", 1_500);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "resume"]);
    room.event(Event::Ended);
    room.bot_says("Yes, it is behind the market, and it is painted red.");
    room.says("bob", "No, I mean the old one.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log[2..], ["pause", "cut"]);
}

#[test]
fn it_waits_ten_seconds_of_an_answer_for_talk_of_others() {
    let mut room = MadeUp::of(&["ann", "bob", "cid"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.bot_says(FERRY);
    room.says("bob", "Cid, I was at the market, and then at the harbor.", 10_000);
    assert_eq!(room.log, ["pause"]);
    room.pass(1_000, &["bob"]);
    assert_eq!(room.log, ["pause", "resume"]);
    room.pass(1_000, &[]);
    room.says("cid", "So was I, with my sister.", 3_000);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "resume"], "it waits no more for them");
    room.says("ann", "No, I mean the morning one.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log[2..], ["pause", "cut"]);
    room.bot_says("It goes at seven.");
    room.says("bob", "Cid, did you bring the umbrella?", 1_500);
    room.pass(1_000, &[]);
    assert_eq!(room.log[4..], ["pause", "resume"], "the next answer waits again");
}

#[test]
fn an_asker_who_talks_for_ten_seconds_has_interrupted_it() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.bot_says(FERRY);
    room.says("ann", "I ask because my sister comes tomorrow, and she has a lot of luggage.", 11_000);
    assert_eq!(room.log, ["pause", "cut"]);
    room.pass(1_000, &[]);
    assert_eq!((room.log.len(), room.said.len()), (2, 2));
    assert!(room.said[1].is_for_bot);
}

#[test]
fn broken_noise_of_the_asker_pauses_an_answer_once() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.bot_says(FERRY);
    for _ in 0..240 {
        room.pass(32, &["ann"]);
        room.pass(64, &[]);
    }
    assert_eq!(room.log, ["pause", "resume"]);
}

#[test]
fn an_order_to_stop_between_others_is_side_talk() {
    let mut room = MadeUp::of(&["ann", "bob", "cid"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.bot_says(FERRY);
    room.says("bob", "Wait.", 600);
    room.pass(1_000, &[]);
    assert_eq!((room.log.as_slice(), room.said.len()), (["pause", "resume"].as_slice(), 2));
    room.says("ann", "Wait.", 600);
    room.pass(1_000, &[]);
    assert_eq!((room.log[2..].to_vec(), room.said.len()), (vec!["pause", "stop"], 2), "it is an order of hers");
}

#[test]
fn whoever_gets_no_answer_does_not_count_as_waiting() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    for way in 0..3 {
        room.says("ann", "Azera, when does the ferry leave?", 1_500);
        room.pass(1_000, &[]);
        let reply = id(&format!("none{way}"));
        if way == 0 {
            room.event(Event::Unanswered(Some(person("ann"))));
        } else {
            room.event(Event::Replying { reply: reply.clone(), asker: None });
            room.event(if way == 1 { Event::Failed(reply) } else { Event::Dropped(reply) });
        }
        room.pass(20_000, &[]);
        room.says("ann", "Then I look it up.", 1_000);
        room.pass(1_000, &[]);
        assert_eq!(room.texts()[way * 2 + 1..], [("ann", "Then I look it up.", false)]);
    }
}

#[test]
fn a_reply_that_is_tried_again_still_answers_its_own_question() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.says("bob", "Azera, do you know the train station?", 1_500);
    room.pass(1_000, &[]);
    for _ in 0..2 {
        room.event(Event::Replying { reply: id("a"), asker: None });
        room.event(Event::Failed(id("a")));
    }
    room.event(Event::Replying { reply: id("a"), asker: None });
    room.event(Event::Saying { reply: Some(id("a")), words: FERRY.to_owned() });
    room.says("bob", "I mean the old one.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "resume"]);
    room.says("ann", "No, I mean the morning one.", 1_200);
    room.pass(1_000, &[]);
    assert_eq!(room.log[2..], ["pause", "cut"]);
}

#[test]
fn a_listener_who_says_go_on_does_not_interrupt() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "When does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    room.bot_says(FERRY);
    room.says("ann", "Go on.", 600);
    room.pass(1_000, &[]);
    assert_eq!((room.log.as_slice(), room.said.len()), (["pause", "resume"].as_slice(), 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// However people talk into its answers, it goes on after each pause or ends what it says, and is not left paused.
    #[test]
    fn no_pause_lasts_for_ever(
        talk in prop::collection::vec((0_usize..4, 100_u64..14_000, 0_u64..2_000, 0_u8..5), 1..20),
    ) {
        let names = ["ann", "bob", "cid", "dan"];
        let lines = ["Azera, when does it leave?", "Mhm.", "Cid, I was at the market.", "Azera, do you know why?"];
        let mut room = MadeUp::of(&names);
        for (name, line) in names.iter().zip(lines) {
            room.words.insert(person(name), line.to_owned());
        }
        for (who, lasts, pause, event) in talk {
            match event {
                0 | 1 => room.bot_says(FERRY),
                2 => room.event(Event::Ended),
                3 => room.event(Event::Silent),
                _ => {}
            }
            room.pass(lasts, &[names[who]]);
            room.pass(pause, &[]);
        }
        room.pass(3_000, &[]);
        let mut is_paused = false;
        for what in room.log {
            match what {
                "pause" => prop_assert!(!is_paused),
                "resume" => prop_assert!(is_paused),
                _ => {}
            }
            is_paused = what == "pause";
        }
        prop_assert!(!is_paused);
    }
}
