//! Voice messages: whose are heard, who reads what was said, and that it goes with its message.

use std::sync::atomic::Ordering;

use azera_adapter::{Host, Outcome, SkipReason};
use azera_types::Inbound;

use crate::findings::{AN, ANN, COMMONS, DEN, DM_AN, DM_ANN, Scene};
use crate::held::text_of;
use crate::passages::watching_model;
use crate::test_engine::person;
use crate::voice_fakes::spoken;

const SECRET: &str = "the lighthouse password is heliotrope, quiet";

impl Scene {
    /// Returns a voice message of somebody to the bot.
    fn spoken(&mut self, who: usize, place: usize, words: &[u8]) -> Inbound {
        let mut inbound = self.message(who, place, "");
        inbound.parts.push(spoken(words, false));
        inbound
    }

    async fn speak(&mut self, who: usize, place: usize, words: &[u8]) -> Outcome {
        let inbound = self.spoken(who, place, words);
        self.hand_in(inbound).await
    }

    async fn hand_in(&self, inbound: Inbound) -> Outcome {
        let outcome = self.submit(inbound).await.unwrap();
        self.engine.azera.settle().await.unwrap();
        outcome
    }

    fn heard(&self) -> usize {
        self.engine.ear.0.load(Ordering::SeqCst)
    }

    /// Returns the sounds that were sent, in order.
    fn sounds(&self) -> Vec<String> {
        self.engine.platform.sounds.lock().unwrap().iter().map(|(_, words)| words.clone()).collect()
    }
}

#[tokio::test]
async fn a_voice_message_is_answered_by_voice_and_remembered_as_said() {
    let mut scene = Scene::open(false, false).await;
    assert_eq!(text_of(&scene.speak(ANN, DM_ANN, SECRET.as_bytes()).await), "Noted.");
    assert_eq!((scene.heard(), scene.delivered(), scene.sounds()), (1, vec!["Noted.".into()], vec!["Noted.".into()]));
    let found = scene.find(ANN, DM_ANN, "what is the lighthouse password?").await;
    assert_eq!(found, [format!("[said aloud] {SECRET}")]);
    // A written message is answered by text alone.
    scene.say(ANN, DM_ANN, "thank you, quiet").await;
    assert_eq!((scene.heard(), scene.sounds().len()), (1, 1));
    for (who, place) in [(AN, DM_AN), (AN, COMMONS), (ANN, COMMONS), (ANN, DEN)] {
        assert!(scene.find(who, place, "lighthouse password heliotrope").await.is_empty(), "{who} in {place}");
    }
    assert!(scene.command(ANN, DM_ANN, "/memory export").await.contains("heliotrope"));
}

#[tokio::test]
async fn why_shows_what_was_heard_to_those_who_read_the_message() {
    let mut scene = Scene::open(false, false).await;
    let mut spoken = scene.spoken(ANN, DM_ANN, SECRET.as_bytes());
    spoken.text = "listen".into();
    let reply = match scene.hand_in(spoken).await {
        Outcome::Replied(turn) => turn.reply.clone(),
        other => panic!("no reply: {other:?}"),
    };
    let why = scene.command(ANN, DM_ANN, "/why").await;
    assert!(why.starts_with(&format!("I heard: \"{SECRET}\"\n")), "{why}");
    for (who, place) in [(AN, DM_AN), (AN, COMMONS), (ANN, COMMONS), (ANN, DEN)] {
        assert!(!scene.point(who, place, "/why", &reply).await.1.contains("heliotrope"), "{who} in {place}");
    }
    // It goes with its message, also where the reply stays.
    scene.command(ANN, DM_ANN, "/forget last").await;
    assert!(!scene.command(ANN, DM_ANN, "/why").await.contains("heliotrope"));
    // What was written is no recording.
    scene.say(ANN, DM_ANN, "[said aloud] thank you, quiet").await;
    assert!(!scene.command(ANN, DM_ANN, "/why").await.contains("I heard"));
    scene.speak(ANN, DM_ANN, b" ").await;
    assert!(scene.command(ANN, DM_ANN, "/why").await.starts_with("I heard no words in the recording.\n"));
}

#[tokio::test]
async fn what_was_said_goes_with_its_message_and_its_sound() {
    let mut scene = Scene::open(false, false).await;
    scene.speak(ANN, DM_ANN, SECRET.as_bytes()).await;
    assert!(scene.holds("heliotrope") && scene.engine.layers.blobs.list().unwrap().len() == 1);
    scene.command(ANN, DM_ANN, "/forget last").await;
    assert!(!scene.holds("heliotrope"));
    assert!(scene.engine.layers.blobs.list().unwrap().is_empty());
    assert!(scene.find(ANN, DM_ANN, "lighthouse password heliotrope").await.is_empty());
}

#[tokio::test]
async fn only_what_is_meant_for_the_persona_is_heard() {
    let mut scene = Scene::open(false, false).await;
    let mut aside = scene.spoken(ANN, COMMONS, b"Luna, do you hear me? quiet");
    aside.mentions_bot = false;
    assert_eq!(scene.hand_in(aside.clone()).await, Outcome::Skipped(SkipReason::NotAddressed));
    assert_eq!(scene.heard(), 0);
    assert!(scene.find(ANN, COMMONS, "Luna do you hear me").await.iter().all(|hit| !hit.contains("hear")));
    // By its name in the caption.
    let mut called = scene.spoken(ANN, COMMONS, b"the boats are back, quiet");
    (called.mentions_bot, called.text) = (false, "Luna, listen".into());
    assert_eq!(text_of(&scene.hand_in(called).await), "Noted.");
    assert!(scene.holds("Luna, listen\\n[said aloud] the boats are back, quiet"));
    // Where it answers everything, all is heard; and what is said to somebody else is left alone.
    scene.command(ANN, COMMONS, "/answer always").await;
    let mut open = scene.spoken(ANN, COMMONS, b"the tide is high, quiet");
    open.mentions_bot = false;
    assert_eq!(text_of(&scene.hand_in(open).await), "Noted.");
    let mut to_another = scene.spoken(ANN, COMMONS, b"are you coming? quiet");
    (to_another.mentions_bot, to_another.mentions) = (false, vec![person(AN)]);
    assert_eq!(scene.hand_in(to_another).await, Outcome::Skipped(SkipReason::MeantForAnother));
    assert_eq!(scene.heard(), 2);
}

#[tokio::test]
async fn what_cannot_be_heard_is_answered_with_one_sentence() {
    let mut scene = Scene::open(false, false).await;
    let unread = scene.speak(ANN, DM_ANN, b"\xff\xfe").await;
    assert_eq!(text_of(&unread), "I cannot read the sound of that voice message. Please send it again, or write.");
    let large = scene.speak(ANN, DM_ANN, &[b'a'; 10_001]).await;
    assert!(text_of(&large).contains("too large"), "{large:?}");
    // With a caption, the persona answers that.
    let mut captioned = scene.spoken(ANN, DM_ANN, b"\xff");
    captioned.text = "listen, quiet".into();
    let answer = scene.hand_in(captioned).await;
    assert!(text_of(&answer).starts_with("Noted.\n\nI cannot read"), "{answer:?}");
    // Sending the same recording again cannot help, so the answer names the forms that are read.
    let mut attached = scene.spoken(ANN, DM_ANN, b"\xff");
    attached.text = "listen, quiet".into();
    attached.parts[0].part = azera_types::Part::new("memo.m4a", Some("audio/mp4"), 1);
    let answer = scene.hand_in(attached).await;
    assert!(text_of(&answer).contains("I read WAV, MP3, FLAC and Ogg"), "{answer:?}");
    assert!(scene.sounds().is_empty());
}

#[tokio::test]
async fn a_transcript_that_was_stored_is_not_made_twice() {
    let mut scene = Scene::open(false, false).await;
    let inbound = scene.spoken(ANN, DM_ANN, SECRET.as_bytes());
    let platform = scene.engine.platform.clone();
    *platform.hang.lock().unwrap() = Some(false);
    tokio::select! {
        outcome = scene.submit(inbound) => panic!("{outcome:?}"),
        () = platform.hung.notified() => {}
    }
    assert_eq!(scene.heard(), 1);
    scene.engine.reopen().await;
    scene.engine.azera.settle().await.unwrap();
    assert_eq!((scene.heard(), scene.delivered()), (1, vec!["Noted.".into()]));
    // The sound that the crash prevented stays away.
    assert!(scene.sounds().is_empty());
}

#[tokio::test]
async fn a_place_chooses_when_replies_are_spoken() {
    let mut scene = Scene::open(false, false).await;
    assert!(scene.command(AN, COMMONS, "/voice replies always").await.contains("Only admins"));
    assert!(scene.command(ANN, COMMONS, "/voice replies never").await.contains("text alone"));
    scene.speak(ANN, COMMONS, b"good morning, quiet").await;
    assert!(scene.sounds().is_empty());
    assert!(scene.command(ANN, DM_ANN, "/voice replies always").await.contains("every reply"));
    scene.say(ANN, DM_ANN, "good morning, quiet").await;
    assert_eq!(scene.sounds(), ["Noted."]);
    assert!(scene.command(ANN, DM_ANN, "/settings").await.contains("I speak every reply"));
    assert!(scene.command(ANN, DM_ANN, "/voice replies loudly").await.contains("`/voice replies auto`"));
}

/// What the prompt of a reply that is heard says.
const HEARD: &str = "This is heard, not read";

#[tokio::test]
async fn the_model_is_told_where_its_reply_is_heard() {
    let mut scene = Scene::open(false, false).await;
    let (model, prompts) = watching_model();
    scene.engine.answered_by(model).await;
    let is_told = |asked: &str| {
        let mut prompts = prompts.lock().unwrap();
        // Others are about background writings.
        let told =
            prompts.iter().find(|prompt| prompt.trim_end().ends_with(asked)).map(|prompt| prompt.contains(HEARD));
        prompts.clear();
        told
    };
    scene.say(ANN, DM_ANN, "which boat is first?").await;
    assert_eq!(is_told("which boat is first?"), Some(false));
    scene.speak(ANN, DM_ANN, b"which boat is second?").await;
    assert_eq!(is_told("which boat is second?"), Some(true), "it is answered by voice");
    scene.command(ANN, DM_ANN, "/voice replies never").await;
    scene.speak(ANN, DM_ANN, b"which boat is third?").await;
    assert_eq!(is_told("which boat is third?"), Some(false), "it is answered by text");
    scene.engine.platform.is_call.store(true, Ordering::SeqCst);
    scene.say(ANN, COMMONS, "which boat is fourth?").await;
    assert_eq!(is_told("which boat is fourth?"), Some(true));
}
