//! What becomes of a wish to join that Discord does not fulfil.

use std::time::Duration;

use azera_adapter::VoiceError;
use azera_adapter_discord::CallWaits;
use azera_fake_discord::Mode;

use crate::{ANSWER, Room, in_own_process};

#[test]
fn a_join_that_fails_says_so_and_the_next_one_works() {
    in_own_process("joining::a_join_that_fails_says_so_and_the_next_one_works", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        let (chat, ann) = (room.chat(), room.person(0));
        assert_eq!(room.runtime.block_on(room.channels().leave(&chat, &ann)), Ok(()));
        room.fake.wait("it to leave", |world| (!world.is_voice_ready(room.channel)).then_some(()));
        room.fake.world(|world| world.set_user_limit(room.channel, 2));
        room.until("it to see the limit", || {
            let joined = room.join();
            // It may have come before it saw the limit.
            if joined.is_ok() {
                room.runtime.block_on(room.channels().leave(&chat, &ann)).ok();
            }
            (joined == Err(VoiceError::Full)).then_some(())
        });
        // Somebody changes what it may do just before it asks.
        room.fake.world(|world| {
            world.set_user_limit(room.channel, 3);
            world.voice.ignores_moves = true;
        });
        room.discord.set_call_waits(CallWaits { arrival: Duration::ZERO, ..CallWaits::default() });
        let failed = room.until("it to give up", || room.join().err().filter(|error| *error != VoiceError::Full));
        assert_eq!(failed, VoiceError::Refused);
        assert_eq!(room.runtime.block_on(room.channels().stop(&chat, &ann)), Err(VoiceError::NotThere));
        room.discord.set_call_waits(CallWaits::default());
        room.fake.world(|world| world.voice.ignores_moves = false);
        assert_eq!(room.join(), Ok("parlour".to_owned()));
        room.fake.wait("the call", |world| world.is_voice_ready(room.channel).then_some(()));
        // It is there now, and says so without asking Discord.
        let asked = room.fake.world(|world| world.voice.asked.len());
        assert_eq!(room.join(), Ok("parlour".to_owned()));
        assert_eq!(room.fake.world(|world| world.voice.asked.len()), asked);
    });
}

#[test]
fn a_renewal_into_a_channel_that_is_full_says_so() {
    in_own_process("joining::a_renewal_into_a_channel_that_is_full_says_so", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        // What the bot says to the second event shows that it saw the first.
        room.fake.world(|world| {
            world.set_user_limit(room.channel, 1);
            world.silence_bot(true);
        });
        room.told("because a moderator muted me", 1);
        room.discord.set_call_waits(CallWaits { arrival: Duration::ZERO, ..CallWaits::default() });
        room.lose_voice();
        room.told("the channel was full when I came again", 1);
    });
}
