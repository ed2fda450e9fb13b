//! The process stops during a call.

use azera_adapter::VoiceError;
use azera_fake_discord::{Mode, Network};

use crate::interruptions::LONG;
use crate::{ANSWER, Room, check, in_own_process};

#[test]
fn a_stop_of_the_process_keeps_only_what_was_heard() {
    in_own_process("stop::a_stop_of_the_process_keeps_only_what_was_heard", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], LONG);
        room.press(0, "Hear me");
        room.say(0, "How do I get to the beach?", Network::default());
        room.speaks(0, 150);
        room.runtime.block_on(room.discord.leave());
        // The engine is stopped next, so nothing is waited for.
        let cut = room.engine.kept().cut.clone();
        assert_eq!(cut.len(), 1);
        assert!(cut[0].starts_with("First you walk") && !cut[0].contains("cafe"), "{cut:?}");
    });
}

#[test]
fn what_was_said_shortly_before_the_process_stops_is_recorded() {
    in_own_process("stop::what_was_said_shortly_before_the_process_stops_is_recorded", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        // The record takes long to tell what Ann decided, so her words still wait when the process stops.
        room.engine.kept().held = Some(room.person(0));
        room.say(0, "Robert, the last boat is green.", Network::default());
        room.until("her words to wait", || (room.engine.kept().waiting > 0).then_some(()));
        let discord = room.discord.clone();
        let leaving = room.runtime.spawn(async move { discord.leave().await });
        room.until("the call to end", || {
            let status = room.runtime.block_on(room.channels().status(&room.chat(), &room.person(0)));
            (status == Err(VoiceError::NotThere)).then_some(())
        });
        assert!(room.engine.kept().said.is_empty());
        room.engine.release();
        // The engine is stopped next, so nothing more is waited for.
        room.runtime.block_on(leaving).expect("it ends");
        let said: Vec<String> = room.engine.kept().said.iter().map(|(said, _)| said.text.as_str().to_owned()).collect();
        let [only] = &said[..] else { panic!("one utterance: {said:?}") };
        check("the last boat is green", only);
    });
}
