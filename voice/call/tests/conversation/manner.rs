//! Texts in a manner of their own, and the language of a persona.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use azera_voice_api::{Error, Manner, Piece, Style, TextToSpeech, Voice};
use azera_voice_call::{Engines, Request};

use crate::made_up::{MadeUp, Speaking, engines, id};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_text_may_be_said_in_a_manner_of_its_own() {
    let mut room = MadeUp::open().await;
    let manner = Manner { voice: Some("ann".into()), pitch: Some(1.1), ..Manner::default() };
    room.talk.request(Request::SayIn("Good day.".into(), manner)).await;
    room.talk.request(Request::Say("Good night.".into())).await;
    room.pass(5 * SECOND, false).await;
    let mut said = room.speaking.styles.lock().unwrap().clone();
    // The sound that bridges a silence is made when the call begins.
    said.retain(|(said, _)| said != "Hmm.");
    let own = Style { pitch: 1.1, ..Style::of("ann") };
    assert_eq!(said, [("Good day.".to_owned(), own), ("Good night.".to_owned(), Style::of("joe"))]);
}

#[tokio::test(start_paused = true)]
async fn a_text_whose_voice_is_away_is_said_by_no_other_and_told_each_time() {
    let mut room = MadeUp::open_with("Good day").await;
    let chosen = Manner { voice: Some("ann".into()), needs_voice: true, ..Manner::default() };
    // The second voice went away after somebody chose it.
    for voice in ["ann", "gone"] {
        let chosen = Manner { voice: Some(voice.into()), ..chosen.clone() };
        room.talk.request(Request::SayIn("Good day.".into(), chosen)).await;
        room.pass(5 * SECOND, false).await;
    }
    assert_eq!((room.chosen_away, room.voiceless), (2, 0));
    room.talk.request(Request::Say("Good night.".into())).await;
    room.pass(5 * SECOND, false).await;
    let said = room.speaking.styles.lock().unwrap().clone();
    let asked = |said: &str, voice: &str, needs_voice| (said.to_owned(), Style { needs_voice, ..Style::of(voice) });
    let said: Vec<(String, Style)> = said.into_iter().filter(|(said, _)| said != "Hmm.").collect();
    let wanted =
        [asked("Good day.", "ann", true), asked("Good day.", "gone", true), asked("Good night.", "joe", false)];
    assert_eq!(said, wanted);
}

#[tokio::test(start_paused = true)]
async fn a_persona_hears_and_speaks_its_language() {
    let mut room = MadeUp::open().await;
    room.say("Guten Tag!", 2 * SECOND).await;
    assert_eq!(*room.hearing.1.lock().unwrap(), None);
    let german = Manner { language: Some("de-AT".into()), ..Manner::default() };
    room.talk.request(Request::Persona(vec!["Resi".into()], german)).await;
    room.say("Wie spät ist es?", 2 * SECOND).await;
    assert_eq!(room.hearing.1.lock().unwrap().as_deref(), Some("de-AT"));
    room.talk.request(Request::Whole(id("a"), "14:05!".into())).await;
    room.pass(5 * SECOND, false).await;
    let said = room.speaking.styles.lock().unwrap().last().cloned().unwrap();
    let style = Style { language: Some("de-AT".into()), ..Style::of("karl") };
    assert_eq!(said, ("vierzehn Uhr fünf!".to_owned(), style));
}

/// A speaker that tells other voices once its server is back.
struct Returning {
    speaking: Arc<Speaking>,
    is_back: AtomicBool,
}

impl TextToSpeech for Returning {
    fn voices(&self) -> Vec<Voice> {
        let mut voices = self.speaking.voices();
        let of_server = |id: &str| Voice { id: id.into(), engine: "server".into(), ..voices[0].clone() };
        let first = of_server(if self.is_back.load(Ordering::SeqCst) { "ana" } else { "untold" });
        voices.insert(0, first);
        voices
    }

    fn speak(&self, words: &str, style: &Style, take: &mut dyn FnMut(Piece) -> ControlFlow<()>) -> Result<(), Error> {
        self.speaking.speak(words, style, take)
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_back_speaks_with_its_own_usual_voice() {
    let (engines, hearing, speaking) = engines("");
    let returning = Arc::new(Returning { speaking: speaking.clone(), is_back: AtomicBool::new(false) });
    let (recogniser, activity) = (engines.recogniser.clone(), engines.activity.clone());
    let engines = Engines::new(recogniser, returning.clone(), Style::of("untold"), activity);
    let mut room = MadeUp::open_by((engines.clone(), hearing, speaking)).await;
    for (reply, is_back) in [("a", false), ("b", true)] {
        returning.is_back.store(is_back, Ordering::SeqCst);
        room.talk.request(Request::Manner(id(reply), Manner::default())).await;
        room.talk.request(Request::Whole(id(reply), "At six.".into())).await;
        room.pass(3 * SECOND, false).await;
    }
    let said = room.speaking.styles.lock().unwrap().clone();
    let voices: Vec<&str> =
        said.iter().filter(|(said, _)| said != "Hmm.").map(|(_, style)| style.voice.as_str()).collect();
    assert_eq!(voices, ["untold", "ana"]);
    // So does a call that begins later.
    assert!(engines.with_manner(&Manner::default()).check().is_ok());
}
