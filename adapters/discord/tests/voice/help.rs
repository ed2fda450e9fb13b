//! Help lines for somebody in danger whose question gets no reply.

use azera_fake_discord::Mode;
use azera_types::{ChatId, MessageId};

use crate::{ANSWER, Room, in_own_process};

const LINES: &str = "If you need help now, please call 112.";

#[test]
fn help_lines_reach_somebody_who_is_in_the_call_and_once() {
    in_own_process("help::help_lines_reach_somebody_who_is_in_the_call_and_once", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        let chat = ChatId::new(format!("discord:voice:{}", room.channel)).expect("an id");
        let question = MessageId::new("m").expect("an id");
        // Each attempt at a reply may end without one.
        for _ in 0..2 {
            let (channels, ann) = (room.channels(), room.person(0));
            let sent = room.runtime.block_on(channels.send_help(&question, &chat, &ann, LINES));
            sent.expect("Discord answers");
        }
        let written = room.fake.world(|world| {
            let direct = world.dm(room.people[0]);
            world.bots_messages(direct).into_iter().filter(|message| message["content"] == LINES).count()
        });
        assert_eq!(written, 1);
    });
}
