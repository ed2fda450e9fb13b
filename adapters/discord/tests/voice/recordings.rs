//! Recordings of a call: whose voices they hold, and what pauses, ends and removes them.

use azera_adapter::{CallWish, RecordStatus, SentRecording, VoiceError};
use azera_fake_discord::{Invoked, Mode, Network};
use azera_voice_api::{CallRecording, CallRecordings as _, ForgottenCalls};

use crate::interruptions::LONG;
use crate::{ANSWER, Room, check, in_own_process};

impl Room {
    pub(crate) fn record(&self, person: usize, wish: CallWish) -> Result<Option<RecordStatus>, VoiceError> {
        self.runtime.block_on(self.channels().record(&self.chat(), &self.person(person), wish))
    }

    /// Waits until the text chat says something for the n-th time.
    #[track_caller]
    pub(crate) fn told(&self, words: &str, times: usize) {
        self.fake.wait(words, |world| {
            let texts = world.bots_messages(self.channel).into_iter().filter_map(|it| it["content"].as_str());
            (texts.filter(|text| text.contains(words)).count() >= times).then_some(())
        });
    }

    /// Returns how often the text chat says something.
    pub(crate) fn notices(&self, words: &str) -> usize {
        self.fake.world(|world| {
            let texts = world.bots_messages(self.channel).into_iter().filter_map(|it| it["content"].as_str());
            texts.filter(|text| text.contains(words)).count()
        })
    }

    /// Presses the button below the question for a recording.
    pub(crate) fn press_record(&self, person: usize, label: &str) {
        let who = self.people[person];
        let (message, custom_id) = self.fake.wait("the question", |world| {
            world.bots_messages(self.channel).into_iter().find_map(|message| {
                message["content"].as_str().filter(|text| text.contains(&format!("<@{who}>")))?;
                let buttons = message["components"][0]["components"].as_array()?;
                let button = buttons.iter().find(|button| button["label"] == *label)?;
                Some((message["id"].as_str()?.parse::<u64>().ok()?, button["custom_id"].as_str()?.to_owned()))
            })
        });
        let pressed = self.fake.world(|world| world.invoke(self.channel, who, Invoked::Button { message, custom_id }));
        self.fake.wait("the answer to the button", |world| world.interaction(pressed).answer.message.clone());
    }

    /// Waits until a person has so many recordings, and returns them, the oldest first.
    #[track_caller]
    pub(crate) fn recorded(&self, person: usize, count: usize) -> Vec<CallRecording> {
        let mut found = self.until("the recordings to be whole", || {
            let found = self.recordings.of(&self.person(person)).expect("a folder");
            (found.len() == count).then_some(found)
        });
        found.reverse();
        found
    }

    pub(crate) fn words(&self, person: usize, recording: &CallRecording) -> String {
        let files = self.recordings.sound(&self.person(person), recording.number, 1 << 24).expect("a file");
        let (words, seconds) = self.ears.recognise_file(files.expect("theirs").remove(0));
        assert!((seconds - recording.duration.as_secs_f32()).abs() < 0.2, "{seconds} {recording:?}");
        println!("{seconds:.1} s: {words}");
        words.to_lowercase()
    }

    /// Waits until the bot said something after the packet `from`, and fell silent.
    pub(crate) fn quiet(&self, from: usize) {
        self.hear(from);
    }

    fn say_aloud(&self, text: &str) {
        let from = self.spoken();
        self.runtime.block_on(self.channels().say(&self.chat(), &self.person(0), text)).expect("a call");
        self.hear(from);
    }
}

#[test]
fn what_is_being_said_ends_before_a_recording_is_asked_for() {
    in_own_process("recordings::what_is_being_said_ends_before_a_recording_is_asked_for", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.runtime.block_on(room.channels().say(&room.chat(), &room.person(0), &LONG.concat())).expect("a call");
        room.speaks(0, 150);
        room.record(0, CallWish::On).expect("a call").expect("a recording");
        let said = room.hear(0).to_lowercase();
        assert!(said.contains("record") && !said.contains("cafe"), "{said}");
    });
}

#[test]
fn a_recording_holds_the_voices_of_those_who_agreed_and_of_nobody_else() {
    in_own_process("recordings::a_recording_holds_the_voices_of_those_who_agreed_and_of_nobody_else", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        let status = room.record(0, CallWish::On).expect("a call").expect("a recording");
        assert_eq!((status.is_running, status.people, status.agreed), (false, 2, 1));
        room.told("Ann asks to record this call", 1);
        room.hear(0);
        room.say(0, "Robert, my password is banana.", Network::default());
        let from = room.spoken();
        room.press_record(1, "Record me");
        room.told("The recording begins.", 1);
        room.quiet(from);
        room.say(0, "Robert, the last ferry leaves at six in the evening.", Network::default());
        room.pause();
        room.say(1, "Ann, I was at the market yesterday.", Network::default());
        room.pause();
        room.say_aloud("Good morning, and welcome to the garden.");
        // Somebody comes who did not agree.
        let from = room.spoken();
        let cid = room.fake.world(|world| {
            let cid = world.user("Cid");
            world.invite(world.channels[&room.channel].guild.expect("a channel of a server"), cid);
            world.join_voice(room.channel, cid);
            cid
        });
        room.told("The recording is paused. I wait for the agreement of Cid.", 1);
        room.told(&format!("<@{cid}> Ann asks to record this call"), 1);
        room.quiet(from);
        room.fake.talk(cid, room.voice.say("My secret place is the lighthouse."), Network::default());
        room.say(0, "Cid, we bought a yellow umbrella.", Network::default());
        let from = room.spoken();
        room.fake.world(|world| world.leave_voice(cid));
        room.told("The recording goes on.", 1);
        room.quiet(from);
        room.say(0, "Robert, the train was late because of the snow.", Network::default());
        room.pause();
        // Robert takes his agreement back, and later leaves.
        let status = room.record(1, CallWish::Refuse).expect("a call").expect("a recording");
        assert!(!status.is_running && !status.records_you);
        room.told("The recording is paused. I wait for the agreement of Robert.", 1);
        room.say(1, "Ann, the doctor told me to walk an hour every day.", Network::default());
        let from = room.spoken();
        room.fake.world(|world| world.leave_voice(room.people[1]));
        room.told("The recording goes on.", 2);
        room.quiet(from);
        room.say(0, "Now I am alone in the kitchen with seven chickens.", Network::default());
        room.pause();
        assert_eq!(room.record(0, CallWish::Off), Ok(None));
        room.told("The recording is over. Somebody ended it.", 1);
        let both = room.recorded(1, 1).remove(0);
        let all = room.recorded(0, 2);
        assert_eq!(all[0], both, "Robert was not there for the rest");
        let words = room.words(0, &both);
        check("the last ferry leaves at six in the evening", &words);
        check("I was at the market yesterday", &words);
        check("good morning and welcome to the garden", &words);
        check("the train was late because of the snow", &words);
        for left_out in ["banana", "lighthouse", "umbrella", "doctor", "kitchen"] {
            assert!(!words.contains(left_out), "{left_out}: {words}");
        }
        let words = room.words(0, &all[1]);
        check("now I am alone in the kitchen with seven chickens", &words);
        assert!(!words.contains("doctor") && !words.contains("ferry"), "{words}");
        // A recording comes as a direct message.
        let person = room.person(0);
        let file = ("recording.ogg".to_owned(), b"OggS".to_vec());
        let sent = SentRecording { to: &person, text: "Recording 1.", files: vec![file.clone()] };
        assert_eq!(room.runtime.block_on(room.channels().send_recording(sent)).ok(), Some(1));
        room.fake.wait("the file", |world| {
            let direct = world.dm(room.people[0]);
            let message = world.bots_messages(direct).first()?["id"].as_str()?.parse().ok()?;
            (world.files_of(direct, message) == [file.clone()]).then_some(())
        });
    });
}

#[test]
fn whoever_comes_back_is_not_recorded_before_they_agree_anew() {
    in_own_process("recordings::whoever_comes_back_is_not_recorded_before_they_agree_anew", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.record(0, CallWish::On).expect("a call");
        let from = room.spoken();
        room.press_record(1, "Record me");
        room.told("The recording begins.", 1);
        room.quiet(from);
        room.say(0, "Robert, the last ferry leaves at six in the evening.", Network::default());
        room.pause();
        let from = room.spoken();
        room.fake.world(|world| world.leave_voice(room.people[1]));
        // Another part begins without a pause, and nobody is told.
        room.until("Robert to be gone", || {
            let status = room.record(0, CallWish::Show).expect("a call").expect("a recording");
            (status.people == 1 && status.is_running).then_some(())
        });
        room.fake.world(|world| world.join_voice(room.channel, room.people[1]));
        room.told("The recording is paused. I wait for the agreement of Robert.", 1);
        room.told(&format!("<@{}> Ann asks to record this call", room.people[1]), 2);
        room.quiet(from);
        room.say(1, "Ann, the doctor told me to walk an hour every day.", Network::default());
        let status = room.record(1, CallWish::Show).expect("a call").expect("a recording");
        assert!(!status.is_running && !status.records_you && status.agreed == 1);
        let from = room.spoken();
        room.press_record(1, "Record me");
        room.told("The recording goes on.", 1);
        room.quiet(from);
        room.say(1, "Ann, I was at the market yesterday.", Network::default());
        room.pause();
        assert_eq!(room.record(0, CallWish::Off), Ok(None));
        let words: Vec<String> = room.recorded(1, 2).iter().map(|recording| room.words(1, recording)).collect();
        check("the last ferry leaves at six in the evening", &words[0]);
        check("I was at the market yesterday", &words[1]);
        assert!(!words.concat().contains("doctor"), "{words:?}");
    });
}

#[test]
fn somebody_who_came_while_the_connection_was_lost_is_noticed() {
    in_own_process("recordings::somebody_who_came_while_the_connection_was_lost_is_noticed", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.record(0, CallWish::On).expect("a call");
        room.press_record(1, "Record me");
        room.told("The recording begins.", 1);
        // Discord tells of Cid in the description of the server alone.
        let cid = room.fake.world(|world| {
            let cid = world.user("Cid");
            world.invite(world.channels[&room.channel].guild.expect("a channel of a server"), cid);
            world.invalidate();
            world.join_voice(room.channel, cid);
            cid
        });
        room.told(&format!("<@{cid}> Ann asks to record this call"), 1);
        room.told("The recording is paused.", 1);
        let status = room.record(0, CallWish::Show).expect("a call").expect("a recording");
        assert!(!status.is_running && status.people == 3 && status.agreed == 2);
        room.fake.world(|world| world.leave_voice(cid));
        room.told("The recording goes on.", 1);
    });
}

#[test]
fn nothing_is_recorded_while_the_gateway_is_lost() {
    in_own_process("recordings::nothing_is_recorded_while_the_gateway_is_lost", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.record(0, CallWish::On).expect("a call");
        room.press_record(1, "Record me");
        room.told("The recording begins.", 1);
        room.fake.world(|world| world.break_gateway());
        room.told("The recording is paused. I cannot see at the moment who is here.", 1);
        room.fake.world(|world| world.restore_gateway());
        room.told("The recording goes on.", 1);
    });
}

#[test]
fn forgetting_somebody_removes_what_is_being_recorded_and_ends_it() {
    in_own_process("recordings::forgetting_somebody_removes_what_is_being_recorded_and_ends_it", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.record(0, CallWish::On).expect("a call");
        let from = room.spoken();
        room.press_record(1, "Record me");
        room.told("The recording begins.", 1);
        room.quiet(from);
        room.say(1, "Ann, I was at the market yesterday.", Network::default());
        let files = || std::fs::read_dir(room.folder.path().join("calls")).expect("a folder").count();
        assert_eq!(files(), 2);
        // As the engine does.
        room.runtime.block_on(room.channels().forgotten(&room.person(1)));
        assert_eq!(room.recordings.forget(&ForgottenCalls::Person(room.person(1))).ok(), Some(1));
        room.told("The recording is paused. I wait for the agreement of Robert.", 1);
        assert_eq!(files(), 0);
        // Ann agreed, but the part that goes on would hold his voice; so nothing comes back when he leaves.
        let from = room.spoken();
        room.fake.world(|world| world.leave_voice(room.people[1]));
        room.told("The recording goes on.", 1);
        room.quiet(from);
        room.say(0, "Now I am alone in the kitchen with seven chickens.", Network::default());
        room.runtime.block_on(room.channels().leave(&room.chat(), &room.person(0))).expect("a call");
        room.told("The recording is over. The call is over.", 1);
        let rest = room.recorded(0, 1).remove(0);
        assert_eq!(rest.people.len(), 1);
        let words = room.words(0, &rest);
        assert!(words.contains("kitchen") && !words.contains("market"), "{words}");
    });
}
