//! Recordings of calls: only people who are in one can see, have or remove it, and it goes with them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use azera_types::Clock;
use azera_voice_api::{CallRecordings, ForgottenCalls};
use azera_voice_call_recordings::{About, RecordingFolder};
use ogg::{PacketWriteEndInfo, PacketWriter};
use tempfile::TempDir;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, Scene};
use crate::guard::{parsed, trait_methods};
use crate::test_engine::{chat, person};
use crate::voice_fakes::Channels;
use crate::world::PEOPLE;

/// The ways to a recording that these tests go.
const WAYS: [&str; 4] = ["of", "sound", "remove", "forget"];

/// Returns a file whose only packet of sound is a secret.
fn sound(secret: &str) -> Vec<u8> {
    let mut file = PacketWriter::new(Vec::new());
    let head = [b"OpusHead\x01\x01".as_slice(), &[0; 9]].concat();
    file.write_packet(head, 1, PacketWriteEndInfo::EndPage, 0).unwrap();
    file.write_packet(b"OpusTags".as_slice(), 1, PacketWriteEndInfo::EndPage, 0).unwrap();
    file.write_packet(secret.as_bytes().to_vec(), 1, PacketWriteEndInfo::EndStream, 960).unwrap();
    file.into_inner()
}

fn holds(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|part| part == secret.as_bytes())
}

struct Kept {
    scene: Scene,
    channels: Arc<Channels>,
    folder: RecordingFolder,
    _files: TempDir,
}

impl Kept {
    async fn open() -> Self {
        let scene = Scene::open(true, false).await;
        let files = tempfile::tempdir().unwrap();
        let folder = RecordingFolder::open(files.path(), 1 << 20).unwrap();
        scene.engine.azera.give_recordings(Arc::new(folder.clone()));
        let channels = Arc::<Channels>::default();
        assert!(scene.engine.platform.channels.set(channels.clone()).is_ok());
        Self { scene, channels, folder, _files: files }
    }

    /// Keeps a recording of people in a place, and returns its number.
    fn record(&self, place: usize, people: &[usize], secret: &str) -> u32 {
        let about = About {
            chat: chat(place),
            realm: None,
            place: format!("parlour of {secret}"),
            began: self.scene.engine.clock.now(),
            milliseconds: 0,
            ended: None,
            people: people.iter().map(|who| (person(*who), PEOPLE[*who].1.to_owned())).collect(),
        };
        let new = self.folder.begin(about).unwrap().unwrap();
        std::io::Write::write_all(&mut new.file().unwrap(), &sound(secret)).unwrap();
        assert!(new.finish(Duration::from_secs(90)).unwrap());
        let mine = self.folder.of(&person(people[0])).unwrap();
        mine.iter().find(|recording| recording.place.ends_with(secret)).unwrap().number
    }

    /// Asks for everything about recordings, and returns all that was shown or sent.
    async fn ask(&self, who: usize, place: usize, number: u32) -> String {
        let mut shown = String::new();
        for command in ["/voice recordings".to_owned(), format!("/voice recordings get {number}")] {
            shown.push_str(&self.scene.command(who, place, &command).await);
        }
        if place == [DM_ANN, DM_AN, DM_BOB][[ANN, AN, BOB].iter().position(|it| *it == who).unwrap()] {
            shown.push_str(&self.scene.command(who, place, "/memory export").await);
        }
        for (to, text, files) in std::mem::take(&mut *self.channels.sent.lock().unwrap()) {
            assert_eq!(to, person(who), "nobody else gets it");
            shown.push_str(&text);
            for (name, bytes) in files {
                shown.push_str(&name);
                shown.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        shown
    }
}

#[tokio::test]
async fn a_recording_is_for_the_people_in_it_and_for_nobody_else() {
    let kept = Kept::open().await;
    let both = kept.record(COMMONS, &[ANN, AN], "heliotrope");
    let own = kept.record(DEN, &[ANN], "ultramarine");
    for (who, place) in [(ANN, COMMONS), (ANN, DM_ANN), (AN, COMMONS), (AN, DM_AN), (AN, DEN), (BOB, DM_BOB)] {
        for (number, secret, people) in [(both, "heliotrope", vec![ANN, AN]), (own, "ultramarine", vec![ANN])] {
            let shown = kept.ask(who, place, number).await;
            assert_eq!(holds(shown.as_bytes(), secret), people.contains(&who), "{who} in {place}: {shown}");
            if !people.contains(&who) {
                assert!(!shown.contains(&format!("**{number}**")), "{shown}");
                let refused = kept.scene.command(who, place, &format!("/voice recordings remove {number}")).await;
                assert!(refused.starts_with("You are in no recording"), "{refused}");
            }
        }
    }
    let list = kept.scene.command(AN, COMMONS, "/voice recordings").await;
    assert!(list.contains("1:30 minutes, parlour of heliotrope, with Ann, Ann"), "{list}");
    // Who lost sight of the channel can only remove it.
    kept.channels.blind.lock().unwrap().insert(person(AN));
    let shown = kept.scene.command(AN, DM_AN, "/voice recordings").await
        + &kept.scene.command(AN, DM_AN, &format!("/voice recordings get {both}")).await;
    assert!(!shown.contains("heliotrope") && shown.contains("no longer see"), "{shown}");
    assert!(kept.channels.sent.lock().unwrap().is_empty());
    let removed = kept.scene.command(AN, DM_AN, &format!("/voice recordings remove {both}")).await;
    assert!(removed.contains("for everybody"), "{removed}");
    let left = kept.scene.command(ANN, DM_ANN, "/voice recordings").await;
    assert!(!left.contains("heliotrope") && left.contains("ultramarine"), "{left}");
}

#[tokio::test]
async fn forgetting_takes_recordings_along_and_ends_agreement() {
    let kept = Kept::open().await;
    kept.record(COMMONS, &[ANN, AN], "heliotrope");
    kept.record(DEN, &[AN], "ultramarine");
    assert!(kept.scene.command(ANN, COMMONS, "/voice record on").await.contains("1 of 2 people"));
    assert!(kept.scene.command(AN, COMMONS, "/voice record yes 1").await.starts_with("Thank you."));
    assert!(kept.scene.command(AN, COMMONS, "/voice record").await.contains("runs"));
    let receipt = kept.scene.command(ANN, DM_ANN, "/forget me").await;
    assert!(receipt.contains("Recordings of calls deleted for everybody: 1."), "{receipt}");
    assert!(!kept.channels.recorded.lock().unwrap().as_ref().unwrap().contains(&person(ANN)));
    let left = kept.folder.of(&person(AN)).unwrap();
    assert!(left.len() == 1 && left[0].place.ends_with("ultramarine"), "{left:?}");
    // A chat takes its recordings along, whoever is in them.
    kept.record(COMMONS, &[AN], "vermilion");
    let receipt = kept.scene.command(ANN, COMMONS, "/forget chat").await;
    assert!(receipt.starts_with("Forgotten"), "{receipt}");
    let left = kept.folder.of(&person(AN)).unwrap();
    assert!(left.len() == 1 && left[0].place.ends_with("ultramarine"), "{left:?}");
    assert_eq!(kept.folder.forget(&ForgottenCalls::Person(person(AN))).unwrap(), 1);
}

#[tokio::test]
async fn words_about_recording_say_what_happens() {
    let kept = Kept::open().await;
    let answer = kept.scene.command(AN, COMMONS, "/voice record yes").await;
    assert!(answer.starts_with("This call is not recorded"), "{answer}");
    kept.scene.command(ANN, COMMONS, "/voice record on").await;
    assert!(kept.scene.command(AN, COMMONS, "/voice record no").await.contains("I keep nothing of this call"));
    assert!(kept.scene.command(AN, COMMONS, "/voice record sideways").await.contains("`/voice record on`"));
    assert!(kept.scene.command(AN, COMMONS, "/voice recordings get x").await.contains("get NUMBER"));
    assert_eq!(kept.scene.command(ANN, COMMONS, "/voice record off").await, "This call is not recorded any more.");
}

#[test]
fn every_way_to_a_recording_is_gone() {
    let file = parsed(Path::new("../../voice/api/src/call_recordings.rs"));
    assert_eq!(trait_methods(&file, "CallRecordings"), WAYS);
}
