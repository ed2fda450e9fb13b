//! Voice messages in rooms: spoken questions, and spoken answers beside the text.

use std::path::Path;

use super::person::{Person, Room, Shown};
use super::{BOT, Scene, settings};
use crate::voice::{EVEN, put_even_persona, recognised, spoken};

/// The key of a voice message.
const VOICE: &str = "org.matrix.msc3245.voice";

fn scene() -> Scene {
    let scratch = tempfile::tempdir().expect("a folder");
    put_even_persona(&scratch.path().join(".local/share/azera"));
    Scene::open_in(scratch, settings(&[("VOICE__SPEECH_MODEL", "whisper-tiny.en"), ("CHAT__PERSONA", EVEN)]))
}

impl Person {
    /// Waits for the first voice message of the bot, and returns it with its words.
    #[track_caller]
    fn until_spoken(&mut self, room: &Room, folder: &Path) -> (Shown, String) {
        let shown = self.until("a spoken answer", |person| {
            person.said_by(room, BOT).find(|shown| shown.content.get(VOICE).is_some()).cloned()
        });
        let file = self.fetch(serde_json::json!({"content": shown.content}));
        let words = recognised(folder, &file, "answer.ogg");
        (shown, words)
    }
}

#[test]
fn a_spoken_question_gets_an_answer_in_text_and_sound() {
    let mut scene = scene();
    let folder = scene.folder().to_path_buf();
    let question = spoken(&folder, "Where does the keeper of the lighthouse live?");
    for encrypted in [false, true] {
        let room = scene.direct(encrypted);
        let asked = scene.ann.send_voice(&room, &question);
        let answer = scene.ann.until_said(&room, BOT, "the answer", |body| body.ends_with(super::END));
        assert!(scene.model.prompts().iter().any(|prompt| prompt.to_lowercase().contains("lighthouse")));
        let (sound, words) = scene.ann.until_spoken(&room, &folder);
        assert!(words.contains("whole answer") && words.contains("that is all"), "{words}");
        assert_eq!((sound.encrypted, answer.encrypted), (encrypted, encrypted));
        let details = &sound.content["org.matrix.msc1767.audio"];
        let bars = details["waveform"].as_array().expect("a waveform");
        assert!(details["duration"].as_u64().is_some_and(|millis| (1_000..10_000).contains(&millis)), "{details}");
        assert!(bars.len() > 10 && bars.iter().any(|bar| bar == 1_024), "{bars:?}");
        // Both go with the question.
        scene.ann.act(serde_json::json!({"do": "redact", "room": room.id, "event": asked}));
        scene.ann.until("text and sound go", |ann| {
            (ann.redacted.contains(&answer.event) && ann.redacted.contains(&sound.event)).then_some(())
        });
    }
}

#[test]
fn a_room_chooses_when_it_is_spoken_to() {
    let mut scene = scene();
    let folder = scene.folder().to_path_buf();
    let mut bob = scene.person("bob");
    let room = scene.room_with(&mut bob, serde_json::json!({}));
    scene.ann.say(&room, "!azera voice replies always");
    scene.ann.until_said(&room, BOT, "the setting", |body| body.contains("I speak every reply"));
    scene.ann.say(&room, "Azera, q1");
    scene.ann.until_answered(&room, 1);
    let (_, words) = scene.ann.until_spoken(&room, &folder);
    assert!(words.contains("whole answer"), "{words}");
    bob.say(&room, "!azera voice replies never");
    bob.until_said(&room, BOT, "the refusal", |body| body.contains("Only admins"));
    // What people say to each other is not heard.
    let aside = spoken(&folder, "Azera, the lighthouse is dark.");
    scene.ann.send_voice(&room, &aside);
    scene.ann.say(&room, "Azera, q2");
    scene.ann.until_answered(&room, 2);
    assert!(scene.model.prompts().iter().all(|prompt| !prompt.contains("lighthouse")));
}
