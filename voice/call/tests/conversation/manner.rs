//! Texts in a manner of their own, and the language of a persona.

use std::time::Duration;

use azera_voice_api::{Manner, Style};
use azera_voice_call::Request;

use crate::made_up::{MadeUp, id};

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
