//! The question whether people may be heard: who is asked together, who decides, and where it cannot be asked.

use std::time::Duration;

use azera_adapter::{CallManner, VoiceError};
use azera_adapter_discord::CallWaits;
use azera_fake_discord::{Bits, Mode, Network, Overwrite};
use serde_json::Value;

use crate::{ANSWER, Room, check, in_own_process, share};

/// Longer than it takes two people to come one after the other.
const OTHERS: Duration = Duration::from_secs(5);

/// After this time a decision that cannot be read is read again.
pub const SOON: Duration = Duration::from_millis(100);

impl Room {
    /// Returns the questions about consent, as they stand in the text chat.
    fn questions(&self) -> Vec<String> {
        let content = |message: &Value| message["content"].as_str().map(str::to_owned);
        let shown: Vec<String> =
            self.fake.world(|world| world.bots_messages(self.channel).into_iter().filter_map(content).collect());
        shown.into_iter().filter(|text| text.contains("may I hear you")).collect()
    }

    /// Lets a person talk until they are heard, and waits until they are understood.
    pub(crate) fn is_heard_at_last(&self, person: usize) {
        let [before, ..] = self.counts();
        self.until("the person to be heard", || {
            self.say(person, "The first boat is green.", Network::default());
            (self.counts()[0] > before).then_some(())
        });
        self.pause();
        self.say(person, "The second boat is yellow.", Network::default());
        self.until("the person to be understood", || {
            let kept = self.engine.kept();
            let is_it = |text: &str| share("the second boat is yellow", text) >= 0.7;
            kept.said.iter().any(|(said, _)| is_it(said.text.as_str())).then_some(())
        });
    }

    fn calls(&self, question: &str) -> Vec<usize> {
        (0..self.people.len()).filter(|person| question.contains(&format!("<@{}>", self.people[*person]))).collect()
    }
}

#[test]
fn those_who_are_there_are_asked_in_one_message_and_each_decides_alone() {
    in_own_process("consent::those_who_are_there_are_asked_in_one_message_and_each_decides_alone", |root| {
        let names = ["Ann", "Robert", "Cid", "Dot", "Eve"];
        let mut room = Room::open(&root, &names, vec![Mode::Aes256Gcm], ANSWER);
        room.discord.set_call_waits(CallWaits { others: OTHERS, ..CallWaits::default() });
        room.press(0, "Hear me");
        // The bot may come before it sees the last of them. It asks those together, too, and nobody twice.
        let asked = room.until("all to be asked", || {
            let asked = room.questions();
            let called: usize = asked.iter().map(|question| room.calls(question).len()).sum();
            (called >= names.len()).then_some(asked)
        });
        assert_eq!(asked.iter().flat_map(|question| room.calls(question)).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        let first = asked.len();
        assert!(first < names.len(), "{asked:?}");
        assert!(asked.iter().any(|question| question.contains("A button decides for whoever presses it")), "{asked:?}");
        // Nobody else is heard because Ann agreed.
        let [_, before, _] = room.counts();
        room.say(1, "I am talking about something private.", Network::default());
        assert_eq!(room.counts()[1], before);
        room.press(1, "No");
        let decided: Vec<Option<Option<bool>>> = {
            let kept = room.engine.kept();
            (0..names.len()).map(|person| kept.consent.get(&room.person(person)).copied()).collect()
        };
        assert_eq!(decided, [Some(Some(true)), Some(Some(false)), Some(None), Some(None), Some(None)]);
        // Two who come together are asked together, and nobody is asked again.
        let late: Vec<u64> = room
            .fake
            .world(|world| {
                let guild = world.channels[&room.channel].guild.expect("a channel of a server");
                ["Flo", "Gus"].map(|name| {
                    let late = world.user(name);
                    world.invite(guild, late);
                    world.join_voice(room.channel, late);
                    late
                })
            })
            .to_vec();
        room.people.extend(late);
        room.told("may I hear you", first + 1);
        room.press(6, "Hear me");
        let asked = room.questions();
        assert_eq!(room.calls(&asked[first]), [5, 6]);
        assert_eq!(asked.len(), first + 1, "{asked:?}");
    });
}

#[test]
fn a_failure_to_read_a_decision_costs_one_utterance_and_not_the_consent() {
    in_own_process("consent::a_failure_to_read_a_decision_costs_one_utterance_and_not_the_consent", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.engine.kept().unreadable = Some(room.person(0));
        room.say(0, "Robert, the first boat is green.", Network::default());
        room.until("her decision to be read", || (room.engine.kept().unread > 0).then_some(()));
        room.engine.kept().unreadable = None;
        room.say(0, "Robert, the second boat is yellow.", Network::default());
        check("the second boat is yellow", &room.said(1));
    });
}

#[test]
fn somebody_who_is_there_keeps_their_consent_while_it_cannot_be_read() {
    in_own_process("consent::somebody_who_is_there_keeps_their_consent_while_it_cannot_be_read", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.engine.kept().unreadable = Some(room.person(0));
        // Discord tells of her again, as it does when she mutes herself.
        room.fake.world(|world| world.join_voice(room.channel, room.people[0]));
        room.until("her decision to be read", || (room.engine.kept().unread > 0).then_some(()));
        room.engine.kept().unreadable = None;
        room.say(0, "Robert, the second boat is yellow.", Network::default());
        check("the second boat is yellow", &room.said(1));
    });
}

#[test]
fn somebody_who_comes_while_their_consent_cannot_be_read_is_heard_once_it_can_be() {
    in_own_process("consent::somebody_who_comes_while_their_consent_cannot_be_read_is_heard_once_it_can_be", |root| {
        let mut room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.discord.set_call_waits(CallWaits { reread: SOON, ..CallWaits::default() });
        let robert = room.fake.world(|world| {
            let robert = world.user("Robert");
            world.invite(world.channels[&room.channel].guild.expect("a channel of a server"), robert);
            robert
        });
        room.people.push(robert);
        {
            let mut kept = room.engine.kept();
            kept.consent.insert(room.person(1), Some(true));
            kept.unreadable = Some(room.person(1));
        }
        room.fake.world(|world| world.join_voice(room.channel, robert));
        room.until("his decision to be read twice", || (room.engine.kept().unread > 1).then_some(()));
        room.say(1, "I am talking about something private.", Network::default());
        assert_eq!(room.counts()[0], 0, "nobody knows that he agreed");
        room.engine.kept().unreadable = None;
        room.is_heard_at_last(1);
    });
}

#[test]
fn somebody_who_leaves_and_comes_back_while_they_are_asked_is_asked_once() {
    in_own_process("consent::somebody_who_leaves_and_comes_back_while_they_are_asked_is_asked_once", |root| {
        let mut room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.discord.set_call_waits(CallWaits { others: OTHERS, ..CallWaits::default() });
        room.press(0, "Hear me");
        room.until("it to be recorded", || (!room.engine.kept().asked.is_empty()).then_some(()));
        let guests = room.fake.world(|world| {
            let guild = world.channels[&room.channel].guild.expect("a channel of a server");
            ["Robert", "Cid"].map(|name| {
                let guest = world.user(name);
                world.invite(guild, guest);
                guest
            })
        });
        room.people.extend(guests);
        let [robert, cid] = guests;
        room.engine.kept().holds_asked = true;
        room.fake.world(|world| world.join_voice(room.channel, robert));
        // He reads the question, and it is not yet recorded that he was asked.
        room.until("the record to wait", || (room.engine.kept().waiting == 1).then_some(()));
        room.fake.world(|world| {
            world.leave_voice(robert);
            world.join_voice(room.channel, robert);
            world.join_voice(room.channel, cid);
        });
        // Those who come at about the same time are asked in one message.
        room.told("may I hear you", 3);
        assert_eq!(room.questions().iter().flat_map(|question| room.calls(question)).collect::<Vec<_>>(), [0, 1, 2]);
        room.engine.release();
        room.press(1, "Hear me");
        assert_eq!(room.questions().len(), 3);
    });
}

#[test]
fn where_it_may_not_write_it_says_so_and_people_are_heard_all_the_same() {
    in_own_process("consent::where_it_may_not_write_it_says_so_and_people_are_heard_all_the_same", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        assert!(room.join_and_ask().is_ok_and(|joined| joined.may_ask));
        let leave = || room.runtime.block_on(room.channels().leave(&room.chat(), &room.person(0)));
        room.until("it to know that Ann was asked", || {
            room.engine.kept().consent.contains_key(&room.person(0)).then_some(())
        });
        leave().expect("a call");
        room.engine.kept().consent.clear();
        room.fake.world(|world| {
            let everybody = world.channels[&room.channel].guild.expect("a channel of a server");
            let silent = Overwrite { id: everybody, user: false, allow: Bits::VIEW, deny: Bits::SEND };
            world.set_overwrites(room.channel, vec![silent]);
        });
        room.until("it to see the permission", || {
            // It may have come before it saw it.
            let may_ask = room.join_and_ask().expect("it comes").may_ask;
            if may_ask {
                leave().ok();
                room.engine.kept().consent.clear();
            }
            (!may_ask).then_some(())
        });
        check("I cannot write into the chat of this voice channel", &room.hear(0));
        // Whoever gives the command is heard.
        let chat = room.runtime.block_on(room.channels().chat_of(&room.chat(), &room.person(0))).expect("a channel");
        room.engine.kept().consent.insert(room.person(0), Some(true));
        assert!(room.runtime.block_on(room.channels().decided(&chat, &room.person(0), true)));
        let spoken = room.spoken();
        room.say(0, "When does the last ferry leave today?", Network::default());
        check(&ANSWER.concat(), &room.hear(spoken));
    });
}

#[test]
fn a_text_is_refused_while_it_is_muted_and_where_its_voice_is_gone() {
    in_own_process("consent::a_text_is_refused_while_it_is_muted_and_where_its_voice_is_gone", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        let (chat, ann) = (room.chat(), room.person(0));
        let say = |text: &str| room.runtime.block_on(room.channels().say(&chat, &ann, text));
        let mute = |is_muted| room.runtime.block_on(room.channels().mute(&chat, &ann, is_muted));
        let gone = CallManner { voice: Some("gone".to_owned()), needs_voice: true, ..CallManner::default() };
        let refused = room.runtime.block_on(room.channels().say_in(&chat, &ann, "Good night.", gone.clone()));
        assert_eq!(refused, Err(VoiceError::NoVoice));
        assert_eq!(mute(true), Ok(()));
        room.fake.wait("the bot to show it", |world| world.voice.is_bot_muted.then_some(()));
        assert_eq!(say("Good morning, and welcome to the garden."), Err(VoiceError::Muted));
        assert_eq!(room.spoken(), 0);
        assert!(room.fake.world(|world| world.voice.is_bot_muted), "it stays muted");
        assert_eq!(mute(false), Ok(()));
        assert_eq!(say("Here I am again, in the same place."), Ok(()));
        check("here I am again in the same place", &room.hear(0));
        // A persona whose voice is gone still speaks, with the usual one.
        let spoken = room.spoken();
        let usual = CallManner { needs_voice: false, ..gone };
        let said = room.runtime.block_on(room.channels().say_in(&chat, &ann, "Good morning, and welcome.", usual));
        assert_eq!(said, Ok(()));
        check("good morning and welcome", &room.hear(spoken));
    });
}
