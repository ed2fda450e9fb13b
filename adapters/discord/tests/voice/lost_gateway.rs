//! The gateway's session is lost while a call goes on. The voice connection may go on or not.

use std::time::Duration;

use azera_adapter::Platform as _;
use azera_adapter_discord::CallWaits;
use azera_fake_discord::{Mode, Network};

use crate::engine::since;
use crate::{ANSWER, Room, check, in_own_process};

impl Room {
    /// Breaks the gateway, and waits until the bot gave up its session.
    fn break_gateway(&self) {
        self.fake.world(|world| world.break_gateway());
        // It tries to resume its session twice, and then to open another one.
        self.fake.wait("the bot to notice", |world| (world.refused > 2).then_some(()));
    }
}

#[test]
fn nobody_counts_as_having_heard_what_is_said_while_the_gateway_is_lost() {
    in_own_process("lost_gateway::nobody_counts_as_having_heard_what_is_said_while_the_gateway_is_lost", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.break_gateway();
        // Robert is away while it is said, and nobody tells the bot.
        room.fake.world(|world| world.leave_voice(room.people[1]));
        room.say(0, "The password of the lighthouse is banana.", Network::default());
        room.said(1);
        let (first, place) = room.engine.kept().said[0].clone();
        assert!(since(&place) > first.at, "others may be there");
        room.fake.world(|world| {
            world.join_voice(room.channel, room.people[1]);
            world.restore_gateway();
        });
        room.fake.wait("another session", |world| (world.identified == 2).then_some(()));
        let place = |person: usize| {
            room.runtime.block_on(room.discord.place(&first.chat, &room.person(person))).expect("an answer")
        };
        let scopes = |person: usize| {
            room.runtime.block_on(room.discord.readable_scopes(&room.person(person))).expect("an answer").private_chats
        };
        room.until("both to be known again", || {
            [0, 1].iter().all(|person| scopes(*person).iter().any(|(chat, _)| *chat == first.chat)).then_some(())
        });
        for person in [0, 1] {
            assert!(since(&place(person).expect("both are there")) > first.at, "{person}");
            let hears = |since: &Option<_>| since.is_some_and(|since| since <= first.at);
            assert!(!scopes(person).iter().any(|(chat, since)| *chat == first.chat && hears(since)), "{person}");
        }
    });
}

#[test]
fn an_outage_of_both_connections_does_not_end_the_call() {
    in_own_process("lost_gateway::an_outage_of_both_connections_does_not_end_the_call", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.fake.world(|world| world.leave_voice(room.people[1]));
        room.break_gateway();
        // Time counts only once the gateway is connected.
        room.discord.set_call_waits(CallWaits { arrival: Duration::ZERO, ..CallWaits::default() });
        room.lose_voice();
        let refused = room.fake.world(|world| world.refused);
        room.fake.wait("another try", |world| (world.refused > refused).then_some(()));
        room.discord.set_call_waits(CallWaits::default());
        room.fake.world(|world| {
            world.join_voice(room.channel, room.people[1]);
            world.restore_gateway();
        });
        room.fake.wait("a new connection", |world| {
            (world.voice.connected == 2 && world.is_voice_ready(room.channel)).then_some(())
        });
        // Robert came meanwhile, and is asked.
        room.press(1, "Hear me");
        room.say(0, "Azera, when does the last ferry leave today?", Network::default());
        check(&ANSWER.concat(), &room.hear(0));
    });
}

#[test]
fn who_came_and_who_left_while_the_gateway_was_lost_is_noticed() {
    in_own_process("lost_gateway::who_came_and_who_left_while_the_gateway_was_lost_is_noticed", |root| {
        let mut room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.press(1, "Hear me");
        // Discord tells of both in the description of the server alone.
        let cid = room.fake.world(|world| {
            let cid = world.user("Cid");
            world.invite(world.channels[&room.channel].guild.expect("a channel of a server"), cid);
            world.invalidate();
            world.leave_voice(room.people[1]);
            world.join_voice(room.channel, cid);
            cid
        });
        room.people.push(cid);
        room.press(2, "Hear me");
        room.say(2, "Azera, when does the last ferry leave today?", Network::default());
        check("when does the last ferry leave today", &room.said(1));
        assert_eq!(room.engine.kept().said[0].0.person, room.person(2));
        check(&ANSWER.concat(), &room.hear(0));
        room.fake.world(|world| world.leave_voice(cid));
        room.until("Cid to be gone", || {
            let status = room.runtime.block_on(room.channels().status(&room.chat(), &room.person(0))).expect("a call");
            (status.people == 1).then_some(())
        });
        // Robert does not hold it there: Ann is alone with it, so she need not call it.
        room.say(0, "When does the first ferry leave tomorrow?", Network::default());
        room.said(2);
        assert!(room.engine.kept().said[1].0.mentions_bot);
    });
}

#[test]
fn it_comes_back_when_the_lost_gateway_took_it_out_of_the_channel() {
    in_own_process("lost_gateway::it_comes_back_when_the_lost_gateway_took_it_out_of_the_channel", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.fake.world(|world| world.lose_bot());
        room.fake.wait("a new connection", |world| {
            (world.voice.connected == 2 && world.is_voice_ready(room.channel)).then_some(())
        });
        room.say(0, "When does the last ferry leave today?", Network::default());
        check(&ANSWER.concat(), &room.hear(0));
    });
}
