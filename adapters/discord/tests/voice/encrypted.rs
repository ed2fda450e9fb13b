//! End-to-end encryption (DAVE): the people and the bot are in a group, and the server knows no key of it.

use std::sync::{Arc, Mutex};

use azera_fake_discord::{FakeDiscord, Mode, Network};
use azera_types::Text;
use azera_voice_api::{Audio, Error, FRAME_SAMPLES, SpeechToText, Transcript, VoiceActivity};
use opus2::{Application, Channels, Encoder};

use crate::engine::OwnSpeech;
use crate::people::{Ears, Voice};
use crate::{ANSWER, Room, check, in_own_process};

fn server(is_end_to_end: bool) -> FakeDiscord {
    let fake = FakeDiscord::start(None);
    fake.world(|world| {
        world.voice.modes = vec![Mode::Aes256Gcm];
        world.voice.is_end_to_end = is_end_to_end;
    });
    fake
}

#[test]
fn people_who_encrypt_end_to_end_are_heard_and_hear_the_bot() {
    in_own_process("encrypted::people_who_encrypt_end_to_end_are_heard_and_hear_the_bot", |root| {
        let (voice, ears) = (Voice::open(), Ears::open());
        let speech = OwnSpeech::of(&voice, &ears);
        let room = Room::begin(&root, server(true), &["Ann", "Robert"], ANSWER, (voice, ears, speech));
        room.press(0, "Hear me");
        room.press(1, "Hear me");
        room.say(0, "Azera, when does the last ferry leave today?", Network::default());
        check(&ANSWER.concat(), &room.hear(0));
        check("when does the last ferry leave today", &room.said(1));
        room.say(1, "Ann, I was at the market yesterday.", Network::default());
        check("I was at the market yesterday", &room.said(2));
    });
}

#[test]
fn a_group_that_somebody_joins_and_leaves_is_heard_and_hears_the_bot() {
    in_own_process("encrypted::a_group_that_somebody_joins_and_leaves_is_heard_and_hears_the_bot", |root| {
        let (voice, ears) = (Voice::open(), Ears::open());
        let speech = OwnSpeech::of(&voice, &ears);
        let mut room = Room::begin(&root, server(true), &["Ann", "Robert"], ANSWER, (voice, ears, speech));
        room.press(0, "Hear me");
        let cid = room.fake.world(|world| {
            let cid = world.user("Cid");
            world.invite(world.channels[&room.channel].guild.expect("a channel of a server"), cid);
            world.join_voice(room.channel, cid);
            cid
        });
        room.people.push(cid);
        room.press(2, "Hear me");
        room.say(2, "Azera, when does the last ferry leave today?", Network::default());
        check("when does the last ferry leave today", &room.said(1));
        check(&ANSWER.concat(), &room.hear(0));
        room.say(0, "Cid, I was at the market yesterday.", Network::default());
        check("I was at the market yesterday", &room.said(2));
        room.fake.world(|world| world.leave_voice(room.people[1]));
        room.fake.world(|world| world.leave_voice(cid));
        let from = room.spoken();
        room.say(0, "When does the first ferry leave tomorrow?", Network::default());
        check("when does the first ferry leave tomorrow", &room.said(3));
        check(&ANSWER.concat(), &room.hear(from));
        let (transitions, connected) = room.fake.world(|world| (world.voice.transitions, world.voice.connected));
        assert_eq!((transitions, connected), (3, 1), "it never had to connect anew");
    });
}

/// Measures the level of what it hears, and understands nothing.
#[derive(Default)]
struct Meter(Mutex<Vec<f32>>);

impl SpeechToText for Meter {
    fn name(&self) -> &str {
        "meter"
    }

    fn transcribe(&self, utterance: &Audio, _: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error> {
        let samples = &utterance.samples;
        // The middle, where the tone is even.
        let middle = samples.get(samples.len() / 4..samples.len() * 3 / 4).unwrap_or_default();
        let sum: f32 = middle.iter().map(|sample| sample * sample).sum();
        self.0.lock().expect("nobody panics while they hold this").push((sum / middle.len() as f32).sqrt());
        Ok(Transcript { text: Text::default(), words: Vec::new(), confidence: 1.0, no_speech: 0.0 })
    }
}

/// Takes everything loud for speech.
struct Loud;

impl VoiceActivity for Loud {
    fn probability(&mut self, frame: &[f32; FRAME_SAMPLES]) -> Result<f32, Error> {
        let loudest = frame.iter().fold(0.0_f32, |most, sample| most.max(sample.abs()));
        Ok(if loudest > 0.05 { 1.0 } else { 0.0 })
    }

    fn reset(&mut self) {}
}

/// Returns two seconds of a tone of half the scale, as a client sends it.
fn tone() -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(48_000, Channels::Stereo, Application::Voip).expect("an encoder");
    let sample = |at: usize| (at as f32 * 440.0 * std::f32::consts::TAU / 48_000.0).sin() * 0.5;
    let packet = |number: usize| {
        let stereo: Vec<f32> = (number * 960..(number + 1) * 960).flat_map(|at| [sample(at); 2]).collect();
        encoder.encode_vec_float(&stereo, 4_000).expect("a packet")
    };
    (0..100).map(packet).collect()
}

/// A tone of half the scale is heard as loud as it is.
#[track_caller]
fn check_tone(root: &std::path::Path, is_end_to_end: bool) {
    let meter = Arc::<Meter>::default();
    let (voice, ears) = (Voice::open(), Ears::open());
    let mut speech = OwnSpeech::of(&voice, &ears);
    speech.0.recogniser = meter.clone();
    speech.0.activity = Arc::new(|| Box::new(Loud));
    let room = Room::begin(root, server(is_end_to_end), &["Ann"], ANSWER, (voice, ears, speech));
    room.press(0, "Hear me");
    room.fake.talk(room.people[0], tone(), Network::default());
    room.fake.wait("the end of the tone", |world| (world.voice.talking == 0).then_some(()));
    let level = room.until("the tone", || meter.0.lock().expect("nobody panics while they hold this").last().copied());
    let expected = 0.5 / 2.0_f32.sqrt();
    println!("level of the tone: {level:.4}, sent with {expected:.4}; end-to-end encryption: {is_end_to_end}");
    // Both ways within 1 % of what was sent are within 2 % of each other.
    assert!((level / expected - 1.0).abs() < 0.01, "{level}");
}

#[test]
fn a_tone_keeps_its_level_without_end_to_end_encryption() {
    in_own_process("encrypted::a_tone_keeps_its_level_without_end_to_end_encryption", |root| check_tone(&root, false));
}

#[test]
fn a_tone_keeps_its_level_with_end_to_end_encryption() {
    in_own_process("encrypted::a_tone_keeps_its_level_with_end_to_end_encryption", |root| check_tone(&root, true));
}
