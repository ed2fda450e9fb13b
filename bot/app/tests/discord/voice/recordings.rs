//! Recordings of calls by the real binary: a crash, the way to a person, and forgetting.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use azera_fake_discord::Network;
use azera_voice_recordings::read_bytes;

use super::people::{Ears, Voice};
use super::{ANSWER, Room, until};
use crate::commands::give;

/// Bytes of about three seconds of a recording.
const SECONDS: u64 = 9_000;

impl Room {
    fn recordings(&self) -> PathBuf {
        self.bot.data().join("call_recordings")
    }

    /// Returns the files of recordings with an extension.
    fn kept(&self, extension: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(self.recordings()).into_iter().flatten().flatten().map(|file| file.path());
        files.filter(|path| path.extension().is_some_and(|is| is == extension)).collect()
    }

    /// Returns the number of the only recording in a list.
    fn number(&self, person: usize) -> String {
        let list = self.command(person, "recordings", &[]);
        list.split("**").nth(1).unwrap_or_else(|| panic!("a recording: {list}")).to_owned()
    }
}

/// Returns the words in a sound file.
fn words(ears: &Ears, file: Vec<u8>) -> String {
    let sound = read_bytes(file, "audio/ogg", 60).expect("a sound file");
    ears.transcribe(&sound)
}

#[test]
fn a_recording_survives_a_crash_comes_as_a_direct_message_and_goes_with_its_person() {
    let mut room = Room::open(&["Ann", "Bob"], ANSWER);
    let (voice, ears) = (Voice::open(), Ears::open());
    room.fake.world(|world| world.leave_voice(room.people[1]));
    until("Bob to be gone", || {
        room.command(0, "settings", &[]).contains("1 person is in the voice channel").then_some(())
    });
    let from = room.spoken();
    assert!(room.command(0, "record", &[("choice", "on")]).contains("The recording of this call runs."));
    // Two voices at once would be hard to understand.
    room.hear(&ears, from, "recording");
    room.say(&voice, 0, "The last ferry to the island leaves at six in the evening.", Network::default());
    room.fake.wait("some seconds of it", |_| {
        let written = room.kept("part").first().and_then(|path| fs::metadata(path).ok()).map_or(0, |found| found.len());
        (written > SECONDS).then_some(())
    });
    room.bot.kill(&room.fake);
    assert_eq!((room.kept("part").len(), room.kept("ogg").len()), (1, 0));
    room.bot.start(&room.fake);
    let number = until("the recording", || {
        let list = room.command(0, "recordings", &[]);
        list.contains("with Ann").then(|| room.number(0))
    });
    assert_eq!((room.kept("part").len(), room.kept("ogg").len()), (0, 1));
    // Bob was not there.
    let get = [("what", "get"), ("number", number.as_str())];
    assert!(room.command(1, "recordings", &[]).contains("no recording that you are in"));
    assert!(room.command(1, "recordings", &get).contains("You are in no recording"));
    assert!(room.command(0, "recordings", &get).contains("direct message"));
    let (name, file) = room.fake.wait("the file", |world| {
        let direct = world.dm(room.people[0]);
        let messages: Vec<u64> =
            world.bots_messages(direct).iter().filter_map(|it| it["id"].as_str()?.parse().ok()).collect();
        messages.into_iter().find_map(|message| world.files_of(direct, message).into_iter().next())
    });
    assert_eq!(name, format!("recording-{number}.ogg"));
    let heard = words(&ears, file);
    assert!(super::share("the last ferry to the island", &heard) > 0.7, "{heard}");
    assert!(!room.bot.log().contains("ferry"), "the log holds no words");
    // Forgetting her takes it along, here and by the operator's own command.
    let receipt = give(&room.fake, room.square, room.people[0], "forget", "me", &[]);
    assert!(receipt.contains("Recordings of calls deleted for everybody: 1."), "{receipt}");
    assert_eq!(fs::read_dir(room.recordings()).expect("a folder").count(), 0);
}

#[test]
fn the_operator_forgets_recordings_of_a_person_and_a_backup_holds_none() {
    let mut room = Room::open(&["Ann"], ANSWER);
    let voice = Voice::open();
    room.command(0, "record", &[("choice", "on")]);
    room.say(&voice, 0, "The last ferry to the island leaves at six in the evening.", Network::default());
    room.command(0, "leave", &[]);
    room.fake.wait("the recording", |_| (room.kept("ogg").len() == 1).then_some(()));
    room.bot.stop(&room.fake);
    let run = |command: &mut Command| {
        let output = command.output().expect("the binary runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let ann = format!("discord:{}", room.people[0]);
    let (backup, other) = (room.bot.data().with_extension("zip"), room.bot.data().with_extension("restored"));
    let (file, folder) = (backup.to_string_lossy(), other.to_string_lossy());
    run(&mut room.bot.command(&["backup", "--to", &file]));
    run(&mut room.bot.command(&["restore", &file, "--data", &folder]));
    assert!(other.join("record").exists() && !other.join("call_recordings").exists(), "a backup holds no recordings");
    let receipt = run(&mut room.bot.command(&["memory", "forget", "--person", &ann, "--yes"]));
    assert!(receipt.contains("\"recordings\": 1"), "{receipt}");
    assert_eq!(fs::read_dir(room.recordings()).expect("a folder").count(), 0);
}
