//! People who deafened themselves: they are in the room and hear nothing of it. And a bot that a moderator deafened.

use std::time::Duration;

use azera_adapter::{CallWish, HostError, Platform as _, VoiceError};
use azera_fake_discord::{Mode, Network};
use azera_types::ChatId;

use crate::engine::since;
use crate::interruptions::{AGAIN, FAILS, QUESTION};
use crate::{ANSWER, Room, check, in_own_process};

#[test]
fn whoever_is_deafened_did_not_hear_what_is_said() {
    in_own_process("deafened::whoever_is_deafened_did_not_hear_what_is_said", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        let robert = room.people[1];
        room.fake.world(|world| world.deafen(robert, true));
        room.say(0, "Robert, the password of the lighthouse is banana.", Network::default());
        room.said(1);
        let (first, place) = room.engine.kept().said[0].clone();
        assert!(since(&place) <= first.at, "Ann heard it, and nobody else did");
        let hears = |person: usize| {
            let scopes = room.runtime.block_on(room.discord.readable_scopes(&room.person(person))).expect("an answer");
            scopes.private_chats.into_iter().any(|(chat, _)| chat == first.chat)
        };
        assert!(hears(0) && !hears(1));
        let place = |person: usize| {
            room.runtime.block_on(room.discord.place(&first.chat, &room.person(person))).expect("an answer")
        };
        // He is there and asks for the transcript: nothing of it is for him.
        assert!(since(&place(1).expect("he is in the room")) > first.at);
        // Nor is it once he hears again, for him and for a room with him.
        room.fake.world(|world| world.deafen(robert, false));
        room.until("him to hear again", || hears(1).then_some(()));
        for person in [0, 1] {
            assert!(since(&place(person).expect("both are there")) > first.at, "{person}");
        }
    });
}

#[test]
fn whoever_is_deafened_gets_no_recording_of_what_they_did_not_hear() {
    in_own_process("deafened::whoever_is_deafened_gets_no_recording_of_what_they_did_not_hear", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.record(0, CallWish::On).expect("a call");
        let from = room.spoken();
        room.press_record(1, "Record me");
        room.told("The recording begins.", 1);
        room.quiet(from);
        room.say(0, "Robert, the last ferry leaves at six in the evening.", Network::default());
        room.pause();
        room.fake.world(|world| world.deafen(room.people[1], true));
        room.recorded(0, 1);
        room.say(0, "Now I am alone in the kitchen with seven chickens.", Network::default());
        room.pause();
        room.fake.world(|world| world.deafen(room.people[1], false));
        room.recorded(0, 2);
        room.say(1, "Ann, I was at the market yesterday.", Network::default());
        room.pause();
        assert_eq!(room.record(0, CallWish::Off), Ok(None));
        let words = |person: usize, count: usize| -> Vec<String> {
            room.recorded(person, count).iter().map(|recording| room.words(person, recording)).collect()
        };
        let [first, second, third] = &words(0, 3)[..] else { panic!("three parts") };
        check("the last ferry leaves at six in the evening", first);
        check("now I am alone in the kitchen with seven chickens", second);
        check("I was at the market yesterday", third);
        assert_eq!(words(1, 2), [first.clone(), third.clone()]);
    });
}

/// An answer that takes long to say.
const LONG_ANSWER: &[&str] = &[
    "The first ferry leaves at seven in the morning and comes back at nine. ",
    "The second ferry leaves at noon, and on Sundays it stops at the lighthouse. ",
    "The last ferry leaves at six in the evening and stays on the island over night.",
];

#[test]
fn it_says_nothing_to_somebody_who_is_deafened_and_alone_with_it() {
    in_own_process("deafened::it_says_nothing_to_somebody_who_is_deafened_and_alone_with_it", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], LONG_ANSWER);
        room.press(0, "Hear me");
        room.say(0, "When does the last ferry leave today?", Network::default());
        room.speaks(0, 50);
        room.fake.world(|world| world.deafen(room.people[0], true));
        let heard = room.until("the answer to end", || room.engine.kept().cut.first().cloned());
        assert!(heard.len() < LONG_ANSWER.concat().len(), "the rest was not heard: {heard:?}");
        // What she says is recorded. She does not hear an answer, so there is none.
        room.say(0, "Azera, the password of the lighthouse is banana.", Network::default());
        room.said(2);
        let (second, _) = room.engine.kept().said[1].clone();
        assert!(!second.mentions_bot);
        let say = |text: &str| room.runtime.block_on(room.channels().say(&room.chat(), &room.person(0), text));
        assert_eq!(say("Good morning."), Err(VoiceError::Silenced));
        room.fake.world(|world| world.deafen(room.people[0], false));
        let from = room.spoken();
        room.until("it to speak", || say("Good morning, and welcome to the garden.").ok());
        check("good morning and welcome to the garden", &room.hear(from));
        let place = room.runtime.block_on(room.discord.place(&second.chat, &room.person(0))).expect("an answer");
        assert!(since(&place.expect("she is there")) > second.at, "she heard nothing of what was said meanwhile");
    });
}

#[test]
fn whoever_is_deafened_is_not_asked_to_ask_again() {
    in_own_process("deafened::whoever_is_deafened_is_not_asked_to_ask_again", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        let chat = ChatId::new(format!("discord:voice:{}", room.channel)).expect("an id");
        let hears_all = || {
            let scopes = room.runtime.block_on(room.discord.readable_scopes(&room.person(0))).expect("an answer");
            scopes.private_chats.into_iter().any(|(found, _)| found == chat)
        };
        room.until("her to be known", || hears_all().then_some(()));
        room.fake.world(|world| world.deafen(room.people[0], true));
        room.until("her to be deafened", || (!hears_all()).then_some(()));
        let broken = HostError::Storage("the record is damaged".into());
        room.engine.kept().failures = [HostError::NotAllowed, broken].into();
        for asked in 1..3 {
            room.say(0, &format!("Azera, {QUESTION}"), Network::default());
            room.said(asked);
        }
        room.told(FAILS, 1);
        assert_eq!(room.notices(AGAIN), 0, "no answer is for her as long as she does not hear it");
    });
}

#[test]
fn a_bot_that_a_moderator_deafened_says_so_and_stays() {
    in_own_process("deafened::a_bot_that_a_moderator_deafened_says_so_and_stays", |root| {
        /// Longer than the time after which somebody who speaks must be heard.
        const UNHEARD: Duration = Duration::from_secs(10);
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.fake.world(|world| world.deafen_bot(true));
        room.told("because a moderator deafened me", 1);
        room.say(0, "Can you hear me?", Network::default());
        let unheard = || {
            room.fake
                .wait("the time to pass", |world| world.voice.fell_silent?.elapsed().checked_sub(UNHEARD).map(drop));
        };
        unheard();
        room.fake.world(|world| world.deafen_bot(false));
        // It is undeafened before it would take the connection for broken.
        room.fake.world(|world| world.deafen_bot(true));
        room.told("because a moderator deafened me", 2);
        room.say(0, "Can you hear me now?", Network::default());
        room.fake.world(|world| world.deafen_bot(false));
        unheard();
        room.say(0, "When does the last ferry leave today?", Network::default());
        check(&ANSWER.concat(), &room.hear(0));
        let asked = room.fake.world(|world| world.voice.asked.clone());
        assert_eq!(asked, [Some(room.channel)], "its connection is not broken");
    });
}
