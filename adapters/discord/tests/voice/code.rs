//! Code of an answer is not read aloud.

use azera_fake_discord::{Mode, Network};

use crate::{Room, check, in_own_process};

/// An answer with code in it.
const ANSWER: &[&str] = &["Type this command.\n```sh\nls -la\n```\n", "Then press the enter key."];

#[test]
fn code_of_an_answer_is_sent_to_the_person_who_asked() {
    in_own_process("code::code_of_an_answer_is_sent_to_the_person_who_asked", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.say(0, "How do I see all of my files?", Network::default());
        let said = room.hear(0);
        check("I'm sending you the code as a direct message", &said);
        check("then press the enter key", &said);
        room.fake.wait("the code", |world| {
            let direct = world.dm(room.people[0]);
            let messages = world.bots_messages(direct);
            messages.into_iter().any(|message| message["content"] == "```sh\nls -la\n```").then_some(())
        });
        // Others read the text chat of the channel.
        let shown = room.fake.world(|world| world.bots_messages(room.channel).len());
        assert_eq!(shown, 1, "only the question about consent");
    });
}

#[test]
fn code_between_tildes_and_code_that_somebody_lets_it_say_are_sent_too() {
    in_own_process("code::code_between_tildes_and_code_that_somebody_lets_it_say_are_sent_too", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        let text = "Type this command.\n~~~sh\nls -la\n~~~\nThen press the enter key.";
        room.runtime.block_on(room.channels().say(&room.chat(), &room.person(0), text)).expect("a call");
        check("I'm sending you the code as a direct message", &room.hear(0));
        room.fake.wait("the code", |world| {
            let direct = world.dm(room.people[0]);
            let messages = world.bots_messages(direct);
            messages.into_iter().any(|message| message["content"] == "```sh\nls -la\n```").then_some(())
        });
    });
}
