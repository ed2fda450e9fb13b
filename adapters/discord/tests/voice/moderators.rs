//! Moderators throw the bot out of a voice channel, move it, mute it, and let it speak on a stage. Connections break.

use std::time::Duration;

use azera_adapter::{Platform as _, VoiceError};
use azera_adapter_discord::CallWaits;
use azera_fake_discord::{Bits, Fault, Mode, Network, Overwrite, Scope};
use azera_types::{ChatId, MessageId};

use crate::{ANSWER, Room, check, in_own_process};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3_600);

impl Room {
    /// Sets how long Discord may take to say why it cut a connection.
    fn wait_for_reasons(&self, reason: Duration) {
        self.discord.set_call_waits(CallWaits { reason, ..CallWaits::default() });
    }

    /// Cuts the bot's connection, and waits until it took that in.
    fn cut(&self) {
        let closed = self.fake.world(|world| {
            world.cut_voice();
            world.voice.closed
        });
        self.fake.wait("the bot to notice", |world| (world.voice.closed > closed).then_some(()));
    }

    /// Ends the bot's voice session, and waits until it took that in.
    pub(crate) fn lose_voice(&self) {
        let closed = self.fake.world(|world| {
            world.lose_voice();
            world.voice.closed
        });
        self.fake.wait("the bot to notice", |world| (world.voice.closed > closed).then_some(()));
    }

    fn is_over(&self) {
        self.until("the call to be over", || {
            let status = self.runtime.block_on(self.channels().status(&self.chat(), &self.person(0)));
            (status == Err(VoiceError::NotThere)).then_some(())
        });
    }

    fn say_that(&self, text: &str) -> Result<(), VoiceError> {
        self.runtime.block_on(self.channels().say(&self.chat(), &self.person(0), text))
    }
}

#[test]
fn it_does_not_come_back_to_a_channel_that_it_was_thrown_out_of() {
    in_own_process("moderators::it_does_not_come_back_to_a_channel_that_it_was_thrown_out_of", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.wait_for_reasons(LONG);
        room.fake.world(|world| world.kick_bot());
        room.is_over();
        room.fake.wait("its connection to end", |world| (world.voice.closed >= 1).then_some(()));
        assert_eq!(room.join(), Ok("parlour".to_owned()));
        room.fake.wait("the call", |world| world.is_voice_ready(room.channel).then_some(()));
        // Now the connection ends before Discord says why.
        room.cut();
        room.fake.world(|world| world.kick_bot());
        room.is_over();
        let asked = room.fake.world(|world| world.voice.asked.clone());
        assert_eq!(asked, [Some(room.channel); 2], "it came when it was asked, and at no other time");
    });
}

#[test]
fn it_goes_where_it_is_moved() {
    in_own_process("moderators::it_goes_where_it_is_moved", |root| {
        let mut room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.wait_for_reasons(LONG);
        let (parlour, ann) = (room.channel, room.people[0]);
        let cellar = room.fake.world(|world| {
            let guild = world.channels[&parlour].guild.expect("a channel of a server");
            let cellar = world.voice_channel(guild, "cellar");
            world.join_voice(cellar, ann);
            world.drag_bot(cellar);
            cellar
        });
        room.fake.wait("the call there", |world| world.is_voice_ready(cellar).then_some(()));
        room.fake.wait("the old connection to end", |world| (world.voice.closed >= 1).then_some(()));
        // Back again; now the connection ends before Discord says why.
        room.cut();
        room.fake.world(|world| {
            world.join_voice(parlour, ann);
            world.drag_bot(parlour);
        });
        room.fake.wait("the call in the first channel", |world| world.is_voice_ready(parlour).then_some(()));
        room.channel = parlour;
        room.until("it to speak", || room.say_that("Here I am again, in the same place.").ok());
        check("here I am again in the same place", &room.hear(0));
        assert_eq!(room.fake.world(|world| world.voice.asked.clone()), [Some(parlour)]);
    });
}

#[test]
fn a_connection_that_is_cut_without_a_reason_is_renewed() {
    in_own_process("moderators::a_connection_that_is_cut_without_a_reason_is_renewed", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.wait_for_reasons(Duration::ZERO);
        room.cut();
        room.fake.wait("a new connection", |world| {
            (world.voice.connected >= 2 && world.is_voice_ready(room.channel)).then_some(())
        });
    });
}

#[test]
fn a_renewal_survives_that_discord_cuts_the_old_connection() {
    in_own_process("moderators::a_renewal_survives_that_discord_cuts_the_old_connection", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        // No time to explain itself: a cut that counts has its effect at once.
        room.wait_for_reasons(Duration::ZERO);
        room.press(0, "Hear me");
        // Nothing can be decrypted, so it leaves a connection that stands, and Discord cuts it.
        room.fake.world(|world| world.voice.is_garbled = true);
        room.say(0, "Can you hear me?", Network::default());
        room.fake.wait("a new connection", |world| {
            (world.voice.connected >= 2 && world.is_voice_ready(room.channel)).then_some(())
        });
        room.fake.world(|world| world.voice.is_garbled = false);
        room.say(0, "When does the last ferry leave today?", Network::default());
        check(&ANSWER.concat(), &room.hear(0));
        let parlour = Some(room.channel);
        let asked = room.fake.world(|world| world.voice.asked.clone());
        assert_eq!(asked, [parlour, None, parlour], "it left and came once");
    });
}

#[test]
fn a_slow_notice_delays_no_renewal_and_hides_no_kick() {
    in_own_process("moderators::a_slow_notice_delays_no_renewal_and_hides_no_kick", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        // Discord takes long to show that the bot connects anew.
        room.fake.world(|world| {
            let path = format!("/channels/{}/messages", room.channel);
            world.order(Fault::limited("POST", &path, Scope::Shared, LONG));
        });
        room.lose_voice();
        room.fake.wait("a new connection", |world| {
            (world.voice.connected >= 2 && world.is_voice_ready(room.channel)).then_some(())
        });
        room.fake.world(|world| world.kick_bot());
        room.is_over();
        let parlour = Some(room.channel);
        assert_eq!(room.fake.world(|world| world.voice.asked.clone()), [parlour, None, parlour]);
    });
}

#[test]
fn what_an_old_call_reports_does_nothing_to_the_next_one() {
    in_own_process("moderators::what_an_old_call_reports_does_nothing_to_the_next_one", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        // The record is slow, so what the call reports next waits.
        room.engine.kept().holds_heard = true;
        let chat = ChatId::new(format!("discord:voice:{}", room.channel)).expect("an id");
        let answer = room.engine.answer_to(&MessageId::new("m").expect("an id"), &chat);
        room.runtime.block_on(room.discord.deliver(&answer)).expect("a call");
        room.speaks(0, 25);
        assert_eq!(room.runtime.block_on(room.channels().stop(&room.chat(), &room.person(0))), Ok(()));
        room.until("the record to be asked", || (room.engine.kept().waiting == 1).then_some(()));
        room.lose_voice();
        assert_eq!(room.runtime.block_on(room.channels().leave(&room.chat(), &room.person(0))), Ok(()));
        assert_eq!(room.join(), Ok("parlour".to_owned()));
        room.fake.wait("the next call", |world| world.is_voice_ready(room.channel).then_some(()));
        room.engine.release();
        let from = room.spoken();
        room.until("it to speak", || room.say_that("Here I am again, in the same place.").ok());
        check("here I am again in the same place", &room.hear(from));
        let parlour = Some(room.channel);
        assert_eq!(room.fake.world(|world| world.voice.asked.clone()), [parlour, None, parlour]);
    });
}

#[test]
fn a_connection_that_breaks_is_resumed() {
    in_own_process("moderators::a_connection_that_breaks_is_resumed", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.fake.world(|world| world.break_voice());
        room.fake.wait("the bot to resume", |world| {
            (world.voice.resumed >= 1 && world.is_voice_ready(room.channel)).then_some(())
        });
        room.say(0, "When does the last ferry leave today?", Network::default());
        check(&ANSWER.concat(), &room.hear(0));
        assert_eq!(room.fake.world(|world| world.voice.connected), 1);
    });
}

#[test]
fn a_bot_that_a_moderator_muted_says_nothing_that_counts_as_heard() {
    in_own_process("moderators::a_bot_that_a_moderator_muted_says_nothing_that_counts_as_heard", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.fake.world(|world| world.silence_bot(true));
        room.told("Nobody can hear me in this voice channel", 1);
        let chat = ChatId::new(format!("discord:voice:{}", room.channel)).expect("an id");
        let answer = room.engine.answer_to(&MessageId::new("m").expect("an id"), &chat);
        room.runtime.block_on(room.discord.deliver(&answer)).expect("a call");
        assert_eq!(room.until("the refusal", || room.engine.kept().cut.first().cloned()), "");
        assert_eq!(room.say_that("Good morning."), Err(VoiceError::Silenced));
        // What people say is recorded, and nobody is asked to answer.
        room.say(0, "When does the last ferry leave today?", Network::default());
        room.said(1);
        assert!(!room.engine.kept().said[0].0.mentions_bot);
        assert_eq!(room.spoken(), 0);
        room.fake.world(|world| world.silence_bot(false));
        room.until("it to speak", || room.say_that("Good morning, and welcome to the garden.").ok());
        check("good morning and welcome to the garden", &room.hear(0));
    });
}

#[test]
fn on_a_stage_it_asks_to_speak_or_does_so_where_it_may() {
    in_own_process("moderators::on_a_stage_it_asks_to_speak_or_does_so_where_it_may", |root| {
        let mut room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        let allow = |guild: u64, allow: Bits| Overwrite { id: guild, user: false, allow, deny: Bits::default() };
        let (guild, stage) = room.fake.world(|world| {
            let guild = world.channels[&room.channel].guild.expect("a channel of a server");
            let stage = world.stage_channel(guild, "theatre");
            world.set_overwrites(stage, vec![allow(guild, Bits::REQUEST_TO_SPEAK)]);
            world.join_voice(stage, room.people[0]);
            (guild, stage)
        });
        room.channel = stage;
        let joined = room.until("it to see that she moved", || room.join().ok().filter(|name| name == "theatre"));
        assert_eq!(joined, "theatre");
        room.told("I asked to speak.", 1);
        assert_eq!(room.fake.world(|world| world.voice.asked_to_speak), 1);
        assert_eq!(room.say_that("Good morning."), Err(VoiceError::Silenced));
        room.fake.world(|world| world.let_bot_speak());
        room.until("it to speak", || room.say_that("Good morning, and welcome to the garden.").ok());
        check("good morning and welcome to the garden", &room.hear(0));
        // A moderator puts it into the audience, and it stays there.
        room.fake.world(|world| world.put_bot_into_audience());
        room.told("I was put into its audience. I do not ask to speak again.", 1);
        assert_eq!(room.say_that("Good morning."), Err(VoiceError::Silenced));
        // As a moderator of the stage it needs nobody.
        room.runtime.block_on(room.channels().leave(&room.chat(), &room.person(0))).expect("a call");
        room.fake.world(|world| world.set_overwrites(stage, vec![allow(guild, Bits::MUTE_MEMBERS)]));
        room.is_over();
        assert_eq!(room.join(), Ok("theatre".to_owned()));
        let from = room.spoken();
        room.until("it to speak", || room.say_that("Here I am again, in the same place.").ok());
        check("here I am again in the same place", &room.hear(from));
        room.fake.world(|world| world.put_bot_into_audience());
        room.told("I was put into its audience. I do not ask to speak again.", 2);
        assert_eq!(room.say_that("Good morning."), Err(VoiceError::Silenced), "it does not bring itself back");
        assert_eq!(room.fake.world(|world| world.voice.asked_to_speak), 1);
    });
}

#[test]
fn in_the_channel_where_nobody_may_speak_it_asks_to_be_moved() {
    in_own_process("moderators::in_the_channel_where_nobody_may_speak_it_asks_to_be_moved", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.fake.world(|world| {
            let guild = world.channels[&room.channel].guild.expect("a channel of a server");
            world.voice.afk = Some(room.channel);
            // The server is described anew.
            world.begin_outage(guild);
            world.end_outage(guild);
            world.put_bot_into_audience();
        });
        room.told("Move me to another channel", 1);
        assert_eq!(room.say_that("Good morning."), Err(VoiceError::Silenced));
    });
}
