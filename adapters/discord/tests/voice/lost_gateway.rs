//! The gateway's session is lost while a call goes on. The voice connection may go on or not.

use std::time::Duration;

use azera_adapter::{HostError, Platform as _};
use azera_adapter_discord::CallWaits;
use azera_fake_discord::{Mode, Network};
use azera_types::{ChatId, Timestamp};

use crate::engine::since;
use crate::interruptions::{AGAIN, FAILS, LONG, QUESTION};
use crate::{ANSWER, Room, check, in_own_process};

impl Room {
    /// Breaks the gateway, and waits until the bot gave up its session.
    fn break_gateway(&self) {
        self.fake.world(|world| world.break_gateway());
        // It tries to resume its session twice, and then to open another one.
        self.fake.wait("the bot to notice", |world| (world.refused > 2).then_some(()));
    }

    /// Returns since when a person counts as having heard everything in a chat.
    fn heard_since(&self, person: usize, chat: &ChatId) -> Option<Timestamp> {
        let scopes = self.runtime.block_on(self.discord.readable_scopes(&self.person(person))).expect("an answer");
        scopes.private_chats.into_iter().find(|(found, _)| found == chat).and_then(|(_, since)| since)
    }

    /// Waits until the bot answers a question, and lets something happen in the middle of it. Nobody counts as having heard
    /// anything from before.
    fn nobody_heard_what_was_said_before(&self, happens: impl FnOnce()) {
        self.press(0, "Hear me");
        self.say(0, "Azera, when does the last ferry leave today?", Network::default());
        self.speaks(0, 100);
        happens();
        let (question, _) = self.engine.kept().said[0].clone();
        self.until("both to be known anew", || {
            let is_new =
                |person: usize| self.heard_since(person, &question.chat).is_some_and(|since| since > question.at);
            (is_new(0) && is_new(1)).then_some(())
        });
    }
}

#[test]
fn whoever_may_have_missed_a_part_of_an_answer_did_not_hear_it() {
    in_own_process("lost_gateway::whoever_may_have_missed_a_part_of_an_answer_did_not_hear_it", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], LONG);
        let robert = room.people[1];
        room.nobody_heard_what_was_said_before(|| {
            // Robert is away for a moment, and Discord describes the channel as if he had been there.
            room.fake.world(|world| {
                world.invalidate();
                world.leave_voice(robert);
                world.join_voice(room.channel, robert);
            });
        });
    });
}

#[test]
fn whoever_may_have_been_away_during_an_outage_of_the_server_heard_nothing() {
    in_own_process("lost_gateway::whoever_may_have_been_away_during_an_outage_of_the_server_heard_nothing", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], LONG);
        room.nobody_heard_what_was_said_before(|| {
            room.fake.world(|world| {
                let guild = world.channels[&room.channel].guild.expect("a channel of a server");
                world.begin_outage(guild);
                world.end_outage(guild);
            });
        });
    });
}

#[test]
fn a_session_that_is_resumed_tells_who_missed_something() {
    in_own_process("lost_gateway::a_session_that_is_resumed_tells_who_missed_something", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        let [ann, robert] = [room.people[0], room.people[1]];
        room.press(0, "Hear me");
        room.say(0, "Robert, I was at the market yesterday.", Network::default());
        room.said(1);
        let (said, _) = room.engine.kept().said[0].clone();
        let since = |person: usize| room.heard_since(person, &said.chat);
        let heard_it = |person: usize| since(person).is_some_and(|since| since <= said.at);
        assert!(heard_it(0) && heard_it(1));
        // Robert is away for a moment, and Discord tells so once the connection is back.
        room.fake.world(|world| {
            world.drop_sockets();
            world.leave_voice(robert);
            world.join_voice(room.channel, robert);
        });
        room.fake.wait("the session to be resumed", |world| (world.resumed >= 1).then_some(()));
        room.until("Robert to have missed something", || since(1).filter(|since| *since > said.at));
        assert!(heard_it(0), "Ann was there all the time");
        // He leaves as the last, but others may have gone on without him before Discord told so.
        let before = since(1);
        room.fake.world(|world| {
            world.drop_sockets();
            world.leave_voice(ann);
            world.leave_voice(robert);
            world.join_voice(room.channel, robert);
        });
        room.fake.wait("the session to be resumed", |world| (world.resumed >= 2).then_some(()));
        room.until("Robert to have missed something again", || since(1).filter(|since| Some(*since) > before));
    });
}

#[test]
fn who_was_away_is_known_also_if_the_call_ended_before_it_was_told() {
    in_own_process("lost_gateway::who_was_away_is_known_also_if_the_call_ended_before_it_was_told", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.say(0, "Robert, I was at the market yesterday.", Network::default());
        room.said(1);
        let (said, _) = room.engine.kept().said[0].clone();
        let heard_it = |person: usize| room.heard_since(person, &said.chat).is_some_and(|since| since <= said.at);
        assert!(heard_it(0) && heard_it(1));
        room.fake.world(|world| {
            world.drop_sockets();
            world.kick_bot();
            world.leave_voice(room.people[1]);
        });
        room.fake.wait("the session to be resumed", |world| (world.resumed >= 1).then_some(()));
        room.until("Robert to have missed something", || (!heard_it(1)).then_some(()));
        assert!(heard_it(0), "Ann was there all the time");
        // A new session does not tell whether she was.
        room.fake.world(|world| world.invalidate());
        room.until("nobody to count", || (!heard_it(0)).then_some(()));
    });
}

#[test]
fn it_leaves_a_channel_that_it_should_have_left_before_the_gateway_was_lost() {
    in_own_process("lost_gateway::it_leaves_a_channel_that_it_should_have_left_before_the_gateway_was_lost", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        let parlour = Some(room.channel);
        // The wish to leave is lost.
        room.fake.world(|world| world.voice.ignores_moves = true);
        assert_eq!(room.runtime.block_on(room.channels().leave(&room.chat(), &room.person(0))), Ok(()));
        room.fake.wait("the wish", |world| (world.voice.asked == [parlour, None]).then_some(()));
        room.fake.world(|world| {
            world.voice.ignores_moves = false;
            world.invalidate();
        });
        room.fake.wait("another wish", |world| (world.voice.asked.get(2) == Some(&None)).then_some(()));
    });
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
        room.fake.wait("another session", |world| (world.identified >= 2).then_some(()));
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
fn nobody_is_asked_to_ask_again_while_it_is_not_known_who_hears() {
    in_own_process("lost_gateway::nobody_is_asked_to_ask_again_while_it_is_not_known_who_hears", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.break_gateway();
        let broken = HostError::Storage("the record is damaged".into());
        room.engine.kept().failures = [HostError::NotAllowed, broken].into();
        for asked in 1..3 {
            room.say(0, QUESTION, Network::default());
            room.said(asked);
        }
        room.told(FAILS, 1);
        assert_eq!(room.notices(AGAIN), 0, "each further question would fail the same way");
    });
}

#[test]
fn a_question_is_told_to_fail_if_it_cannot_be_written_who_hears_it() {
    in_own_process("lost_gateway::a_question_is_told_to_fail_if_it_cannot_be_written_who_hears_it", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        // No file can take the place of a folder.
        let file = room.folder.path().join("discord-voice.json");
        std::fs::remove_file(&file).ok();
        std::fs::create_dir(&file).expect("a folder");
        room.break_gateway();
        room.say(0, QUESTION, Network::default());
        room.told(FAILS, 1);
        assert!(room.engine.kept().said.is_empty(), "nothing is recorded");
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
            (world.voice.connected >= 2 && world.is_voice_ready(room.channel)).then_some(())
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
            (world.voice.connected >= 2 && world.is_voice_ready(room.channel)).then_some(())
        });
        room.say(0, "When does the last ferry leave today?", Network::default());
        check(&ANSWER.concat(), &room.hear(0));
    });
}
