//! Recordings of people's voices: nobody is spoken with before they agreed, or after they changed their mind, and only those
//! whom it concerns know of a recording.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use azera_adapter::{
    AutocompleteRequest, Host as _, OptionKind, Platform as _, Reading, SpeechAnswer, SpeechHost as _, SpeechRequest,
    VoiceHost as _,
};
use azera_memory::{ChatChange, Forget};
use azera_types::Clock as _;
use azera_voice_api::Sample;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_ANN, DM_BOB, LOBBY, Scene};
use crate::test_engine::{chat, person};
use crate::voice_fakes::Channels;

/// A recording, as adapters put it into a command.
const RECORDING: &str = "data:audio/wav;base64,UklGRg==";

/// Seconds of a day, after which nobody is waited for any more.
const DAY_S: i64 = 24 * 3_600;

impl Scene {
    /// Lets people be asked.
    fn can_ask(&self) {
        *self.engine.platform.asked.lock().unwrap() = Some(Vec::new());
    }

    /// Returns the command by which the person who was asked last agrees or refuses.
    fn reply_to_question(&self, agrees: bool) -> String {
        let asked = self.engine.platform.asked.lock().unwrap();
        let choices = asked.as_ref().unwrap().last().unwrap();
        choices[usize::from(!agrees)].line.clone()
    }

    async fn samples(&self, who: usize, place: usize, what: &str) -> String {
        self.command(who, place, &format!("/voice samples {what}")).await
    }

    async fn add(&self, who: usize, place: usize, what: &str) -> String {
        self.samples(who, place, &format!("add {what} {RECORDING}")).await
    }

    fn kept(&self) -> usize {
        self.engine.ear.1.all.lock().unwrap().len()
    }

    /// Returns the voice with which the usual persona speaks in a chat.
    async fn voice(&self, place: usize) -> Option<String> {
        let persona = self.engine.memory.chats().get(&chat(place)).unwrap().unwrap().persona;
        let platform = self.engine.platform.sim.id().clone();
        self.engine.azera.call_manner(&platform, &chat(place), &persona).await.unwrap().voice
    }

    /// Lets somebody say something with a voice. Returns the answer.
    async fn let_speak(&self, who: usize, place: usize, voice: &str) -> String {
        *self.engine.ear.1.spoken_in.lock().unwrap() = None;
        self.command(who, place, &format!("/voice say Good day. --voice {voice}")).await
    }

    /// Returns the voice of the last recording; `None` if none was made.
    fn spoken_with(&self) -> Option<String> {
        self.engine.ear.1.spoken_in.lock().unwrap().clone()?.voice
    }

    /// Returns the names of the voices that are suggested to a person.
    async fn offered(&self, who: usize, place: usize) -> Vec<String> {
        let (chat, person, name) = (chat(place), person(who), "Somebody".to_owned());
        let line = AutocompleteRequest { chat, person, name, kind: OptionKind::Voice, typed: String::new() };
        let options = self.engine.azera.autocomplete(self.engine.platform.sim.id(), line).await.unwrap();
        options.into_iter().map(|option| option.label).collect()
    }

    /// Keeps a recording of Ann's own voice, and returns its id.
    async fn own(&self, name: &str) -> String {
        let asked = self.add(ANN, COMMONS, name).await;
        assert!(asked.contains("Is it your own voice"), "{asked}");
        let agreed = self.samples(ANN, COMMONS, &format!("agree {name}")).await;
        assert!(agreed.starts_with("Thank you."), "{agreed}");
        self.engine.ear.1.all.lock().unwrap().last().unwrap().id.clone()
    }
}

#[tokio::test]
async fn a_persona_speaks_with_a_voice_only_after_its_owner_agreed() {
    let scene = Scene::open(false, false).await;
    scene.add(ANN, COMMONS, "ann").await;
    // What waits for an answer is no voice.
    let refused = scene.samples(ANN, COMMONS, "use ann").await;
    assert!(refused.starts_with("There is no recording `ann`") && scene.voice(COMMONS).await.is_none(), "{refused}");
    let refused = scene.samples(AN, COMMONS, "agree ann").await;
    assert!(refused.starts_with("No recording of your voice"), "{refused}");
    scene.samples(ANN, COMMONS, "agree ann").await;
    let id = scene.engine.ear.1.all.lock().unwrap()[0].id.clone();
    assert!(scene.samples(AN, COMMONS, "use ann").await.starts_with("Only admins can choose"));
    let used = scene.samples(ANN, COMMONS, "use ann").await;
    assert!(used.contains("speaks here with the voice `ann`"), "{used}");
    assert_eq!((scene.voice(COMMONS).await, scene.voice(LOBBY).await), (Some(id), None), "here, and nowhere else");
    scene.samples(ANN, COMMONS, "use default").await;
    assert_eq!(scene.voice(COMMONS).await, None);
}

#[tokio::test]
async fn somebody_else_is_asked_and_may_refuse_or_change_their_mind() {
    let scene = Scene::open(false, false).await;
    // Where nobody can be asked, nothing is kept.
    let refused = scene.add(ANN, COMMONS, "an @an").await;
    assert!(refused.contains("kept nothing") && scene.kept() == 0, "{refused}");
    scene.can_ask();
    let refused = scene.add(ANN, COMMONS, "bob of @bob").await;
    assert!(refused.starts_with("I do not see @bob here") && scene.kept() == 0, "{refused}");
    scene.add(ANN, COMMONS, "an of @an").await;
    for who in [ANN, AN] {
        assert!(scene.samples(who, COMMONS, "list").await.contains("`an`"));
    }
    // The one who gave it cannot answer for the other.
    let answer = scene.reply_to_question(true);
    assert!(scene.command(ANN, COMMONS, &answer).await.starts_with("No recording of your voice"));
    assert!(scene.command(AN, COMMONS, &scene.reply_to_question(false)).await.starts_with("I deleted"));
    assert_eq!(scene.kept(), 0);
    // Nobody is pressed.
    let refused = scene.add(ANN, COMMONS, "again of @an").await;
    assert!(refused.contains("in the last 24 hours") && scene.kept() == 0, "{refused}");
    scene.pass(DAY_S);
    scene.add(ANN, COMMONS, "an of @an").await;
    assert!(scene.command(AN, COMMONS, &scene.reply_to_question(true)).await.starts_with("Thank you."));
    // It was agreed to for this place.
    assert!(scene.samples(ANN, DEN, "use an").await.starts_with("There is no recording `an`"));
    assert!(scene.samples(ANN, COMMONS, "use an").await.contains("speaks here with the voice `an`"));
    assert!(scene.samples(AN, LOBBY, "remove an").await.contains("is deleted"));
    assert_eq!((scene.kept(), scene.voice(COMMONS).await), (0, None));
}

#[tokio::test]
async fn only_those_whom_it_concerns_know_of_a_recording() {
    let scene = Scene::open(false, false).await;
    scene.own("nika").await;
    let knows = async |who: usize, place: usize| scene.samples(who, place, "list").await.contains("nika");
    assert!(knows(ANN, COMMONS).await && knows(ANN, DM_ANN).await);
    assert!(!knows(AN, COMMONS).await);
    // Another recording of the same name tells nobody that there is one already.
    assert!(scene.add(AN, COMMONS, "nika").await.contains("Is it your own voice"));
    scene.samples(AN, COMMONS, "refuse nika").await;
    assert!(scene.samples(AN, COMMONS, "remove nika").await.starts_with("There is no recording `nika`"));
    // Where it is used, everybody there knows of it, and nowhere else.
    scene.samples(ANN, COMMONS, "use nika").await;
    assert!(knows(AN, COMMONS).await && !knows(AN, LOBBY).await);
    assert!(scene.samples(AN, COMMONS, "remove nika").await.starts_with("There is no recording `nika`"));
}

#[tokio::test]
async fn a_recording_goes_with_the_person_and_with_their_silence() {
    let scene = Scene::open(false, false).await;
    scene.can_ask();
    scene.own("ann").await;
    scene.samples(ANN, COMMONS, "use ann").await;
    scene.add(AN, COMMONS, "other of @ann").await;
    scene.add(AN, COMMONS, "mine").await;
    scene.samples(AN, COMMONS, "agree mine").await;
    assert_eq!(scene.kept(), 3);
    scene.command(ANN, COMMONS, "/forget me").await;
    let left: Vec<String> = scene.engine.ear.1.all.lock().unwrap().iter().map(|sample| sample.name.clone()).collect();
    assert_eq!(left, ["mine"], "her voice is gone, whoever gave it, and other people's stay");
    assert_eq!(scene.voice(COMMONS).await, None);
    // Who does not answer within a day is not asked again.
    scene.add(AN, COMMONS, "other of @ann").await;
    assert_eq!(scene.kept(), 2);
    let now = scene.engine.clock.now();
    assert!(scene.engine.azera.next_due().is_some_and(|due| due > now));
    scene.pass(DAY_S);
    scene.engine.azera.run_jobs().await;
    assert_eq!(scene.kept(), 1);
    assert!(
        scene.command(ANN, COMMONS, &scene.reply_to_question(true)).await.starts_with("No recording of your voice")
    );
}

#[tokio::test]
async fn a_voice_is_silent_where_its_owner_is_no_more() {
    let scene = Scene::open(false, false).await;
    let id = scene.own("ann").await;
    scene.samples(ANN, COMMONS, "use ann").await;
    assert_eq!(scene.voice(COMMONS).await, Some(id.clone()));
    let mut stranger = scene.engine.ear.1.all.lock().unwrap()[0].clone();
    let own = stranger.given.clone();
    stranger.given.as_mut().unwrap().whose = azera_types::PersonId::new("nobody").unwrap();
    scene.engine.ear.1.all.lock().unwrap()[0] = stranger;
    assert_eq!(scene.voice(COMMONS).await, None, "its owner cannot read the place");
    scene.engine.ear.1.all.lock().unwrap()[0].given = own;
    assert_eq!(scene.voice(COMMONS).await, Some(id));
    // A recording that the operator removed outside the chat is no longer named by any.
    scene.engine.ear.1.all.lock().unwrap().clear();
    assert_eq!(scene.voice(COMMONS).await, None);
    assert!(scene.engine.memory.chats().get(&chat(COMMONS)).unwrap().unwrap().voices.is_empty());
}

#[tokio::test]
async fn a_recording_goes_with_the_place_in_which_it_was_agreed_to() {
    let scene = Scene::open(false, false).await;
    scene.can_ask();
    scene.own("ann").await;
    scene.add(ANN, COMMONS, "an of @an").await;
    scene.command(AN, COMMONS, &scene.reply_to_question(true)).await;
    assert_eq!(scene.kept(), 2);
    let place: azera_types::Scope = {
        let all = scene.engine.ear.1.all.lock().unwrap();
        all[1].given.as_ref().unwrap().place.as_ref().unwrap().parse().unwrap()
    };
    let what = match place {
        azera_types::Scope::Realm(realm) => Forget::Realm(realm, Vec::new()),
        azera_types::Scope::Chat(chat) => Forget::Chat(chat),
        other => panic!("{other}"),
    };
    assert_eq!(scene.engine.azera.forget_samples(&Forget::Chat(chat(DEN))).await.unwrap(), 0);
    assert_eq!(scene.engine.azera.forget_samples(&what).await.unwrap(), 1);
    assert_eq!(scene.engine.ear.1.all.lock().unwrap()[0].name, "ann", "her own voice is kept for no place");
}

#[tokio::test]
async fn a_text_is_said_with_a_chosen_voice_and_an_unknown_one_gets_the_list() {
    let scene = Scene::open(false, false).await;
    assert_eq!(scene.let_speak(AN, COMMONS, "Karl").await, "Here it is as a recording.");
    assert_eq!(scene.spoken_with().as_deref(), Some("karl"));
    let refused = scene.let_speak(AN, COMMONS, "nobody").await;
    assert_eq!(refused, "There is no voice `nobody` here. There are: `joe`, `karl`.");
    assert_eq!(scene.spoken_with(), None);
    assert_eq!(scene.offered(AN, COMMONS).await, ["joe (en-US)", "karl (de-DE)"]);
    assert!(scene.command(AN, COMMONS, "/voice say --voice joe").await.starts_with("`/voice say TEXT`"));
    let long = scene.command(AN, COMMONS, &format!("/voice say {}", "la ".repeat(1_001))).await;
    assert!(long.starts_with("That is too long") && scene.spoken_with().is_none(), "{long}");
    // In a call it is heard there.
    let channels = Arc::<Channels>::default();
    assert!(scene.engine.platform.channels.set(channels.clone()).is_ok());
    *channels.call.lock().unwrap() = Some(chat(COMMONS));
    assert_eq!(scene.let_speak(AN, COMMONS, "karl").await, "I say it.");
    assert_eq!(scene.command(AN, COMMONS, "/voice say Good night.").await, "I say it.");
    assert!(scene.let_speak(AN, COMMONS, "nobody").await.starts_with("There is no voice"));
    let said = [("Good day.", Some("karl")), ("Good night.", None)];
    assert_eq!(*channels.said.lock().unwrap(), said.map(|(text, voice)| (text.to_owned(), voice.map(str::to_owned))));
    assert_eq!(scene.spoken_with(), None);
}

#[tokio::test]
async fn nobody_lets_a_recorded_voice_speak_that_is_not_theirs_to_use() {
    let scene = Scene::open(false, false).await;
    scene.add(ANN, COMMONS, "nika").await;
    let refused = async |who: usize, place: usize| {
        let answer = scene.let_speak(who, place, "nika").await;
        assert!(answer.starts_with("There is no voice `nika` here. There are: `joe`, `karl`."), "{answer}");
        assert_eq!((scene.spoken_with(), scene.offered(who, place).await.len()), (None, 2));
    };
    // It waits for her answer.
    refused(ANN, COMMONS).await;
    scene.samples(ANN, COMMONS, "agree nika").await;
    let id = scene.engine.ear.1.all.lock().unwrap()[0].id.clone();
    assert_eq!(scene.let_speak(ANN, COMMONS, "nika").await, "Here it is as a recording.");
    assert_eq!(scene.spoken_with(), Some(id.clone()));
    assert!(scene.offered(ANN, DM_ANN).await.contains(&"nika (a recording)".to_owned()));
    // Others neither use it nor learn of it, also by its id, until it is in use there.
    refused(AN, COMMONS).await;
    assert!(scene.let_speak(AN, COMMONS, &id).await.starts_with("There is no voice"));
    scene.samples(ANN, COMMONS, "use nika").await;
    refused(AN, LOBBY).await;
    // Even there nobody else gets a file in which she says what they like, also not as the persona's voice.
    assert!(scene.let_speak(AN, COMMONS, "nika").await.starts_with("That is somebody's recorded voice."));
    let own = scene.command(AN, COMMONS, "/voice say Good day.").await;
    assert!(own.starts_with("That is somebody's recorded voice.") && scene.spoken_with().is_none(), "{own}");
    let channels = Arc::<Channels>::default();
    assert!(scene.engine.platform.channels.set(channels.clone()).is_ok());
    *channels.call.lock().unwrap() = Some(chat(COMMONS));
    assert_eq!(scene.let_speak(AN, COMMONS, "nika").await, "I say it.");
    assert_eq!(channels.said.lock().unwrap().pop().unwrap().1, Some(id));
    *channels.call.lock().unwrap() = None;
    // Where its owner is no more, nothing speaks with it.
    scene.engine.ear.1.all.lock().unwrap()[0].given.as_mut().unwrap().whose =
        azera_types::PersonId::new("nobody").unwrap();
    refused(AN, COMMONS).await;
}

#[tokio::test]
async fn whoever_gave_a_recording_of_somebody_else_gets_no_file_with_it() {
    let scene = Scene::open(false, false).await;
    scene.can_ask();
    scene.add(ANN, COMMONS, "an of @an").await;
    assert!(scene.command(AN, COMMONS, &scene.reply_to_question(true)).await.starts_with("Thank you."));
    let refused = scene.let_speak(ANN, COMMONS, "an").await;
    assert!(refused.starts_with("That is somebody's recorded voice.") && scene.spoken_with().is_none(), "{refused}");
    assert_eq!(scene.let_speak(AN, COMMONS, "an").await, "Here it is as a recording.");
}

#[tokio::test]
async fn in_a_call_a_recorded_voice_says_what_others_like_only_while_its_owner_is_there() {
    let scene = Scene::open(false, false).await;
    let id = scene.own("nika").await;
    scene.samples(ANN, COMMONS, "use nika").await;
    let channels = Arc::<Channels>::default();
    assert!(scene.engine.platform.channels.set(channels.clone()).is_ok());
    *channels.call.lock().unwrap() = Some(chat(DM_BOB));
    let refused = scene.let_speak(AN, COMMONS, "nika").await;
    assert!(refused.contains("only while that person is in the call"), "{refused}");
    assert!(channels.said.lock().unwrap().is_empty());
    *channels.call.lock().unwrap() = Some(chat(COMMONS));
    assert_eq!(scene.let_speak(AN, COMMONS, "nika").await, "I say it.");
    assert_eq!(channels.said.lock().unwrap().pop().unwrap().1, Some(id));
}

#[tokio::test]
async fn a_voice_that_the_operator_keeps_is_no_voice_for_files_either() {
    let scene = Scene::open(false, false).await;
    let sample = Sample { id: "robot".to_owned(), name: "robot".to_owned(), given: None, seconds: 4.0 };
    scene.engine.ear.1.all.lock().unwrap().push(sample);
    let persona = scene.engine.memory.chats().get(&chat(COMMONS)).unwrap().unwrap().persona;
    let chosen = ChatChange::Voice(persona, Some("robot".to_owned()));
    scene.engine.memory.chats().change(&chat(COMMONS), chosen).unwrap();
    for refused in
        [scene.let_speak(AN, COMMONS, "robot").await, scene.command(AN, COMMONS, "/voice say Good day.").await]
    {
        assert!(refused.starts_with("That is somebody's recorded voice."), "{refused}");
    }
    assert_eq!(scene.spoken_with(), None);
    let channels = Arc::<Channels>::default();
    assert!(scene.engine.platform.channels.set(channels.clone()).is_ok());
    *channels.call.lock().unwrap() = Some(chat(COMMONS));
    assert_eq!(scene.let_speak(AN, COMMONS, "robot").await, "I say it.");
    // A recording of the call would be such a file.
    *channels.recorded.lock().unwrap() = Some(BTreeSet::new());
    for refused in
        [scene.let_speak(AN, COMMONS, "robot").await, scene.command(AN, COMMONS, "/voice say Good day.").await]
    {
        assert!(refused.contains("only while nobody records"), "{refused}");
    }
    assert_eq!(channels.said.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_voice_that_the_operator_keeps_speaks_no_text_over_http_for_others() {
    let scene = Scene::open(false, false).await;
    let sample = Sample { id: "robot".to_owned(), name: "robot".to_owned(), given: None, seconds: 4.0 };
    scene.engine.ear.1.all.lock().unwrap().push(sample);
    let said = async |persona, voice: Option<&str>| {
        let at = Reading { chat: chat(COMMONS), person: person(ANN) };
        let request = SpeechRequest { text: "Good day.".into(), persona, voice: voice.map(str::to_owned) };
        scene.engine.azera.say(scene.engine.platform.sim.id(), at, request).await.unwrap()
    };
    let is_refused = |answer: &SpeechAnswer| match answer {
        SpeechAnswer::Refused(why) => why.contains("somebody's recorded voice"),
        _ => false,
    };
    let refused = said(None, Some("robot")).await;
    assert!(is_refused(&refused), "an admin is not the operator: {refused:?}");
    for voice in [None, Some("karl")] {
        let spoken = said(None, voice).await;
        assert!(matches!(spoken, SpeechAnswer::Sound { .. }), "{spoken:?}");
    }
    // The persona's own voice is none for files either.
    let persona = scene.engine.memory.chats().get(&chat(COMMONS)).unwrap().unwrap().persona;
    let chosen = ChatChange::Voice(persona.clone(), Some("robot".to_owned()));
    scene.engine.memory.chats().change(&chat(COMMONS), chosen).unwrap();
    for persona in [None, Some(persona)] {
        let refused = said(persona, None).await;
        assert!(is_refused(&refused), "{refused:?}");
    }
    let spoken = said(None, Some("karl")).await;
    assert!(matches!(spoken, SpeechAnswer::Sound { .. }), "{spoken:?}");
}

#[tokio::test]
async fn nothing_is_recorded_where_the_file_would_be_lost_and_words_of_the_text_are_no_voice() {
    let scene = Scene::open(false, false).await;
    let text = "/voice say The option --voice is new here.";
    assert_eq!(scene.command(AN, COMMONS, text).await, "Here it is as a recording.");
    assert_eq!(scene.spoken_with(), None, "with the persona's own voice");
    scene.engine.platform.loses_files.store(true, Ordering::SeqCst);
    let refused = scene.let_speak(AN, COMMONS, "karl").await;
    assert!(refused.starts_with("I cannot give you a recording here.") && scene.spoken_with().is_none(), "{refused}");
}

#[tokio::test]
async fn somebodys_own_newest_voice_message_can_be_the_recording() {
    let scene = Scene::open(false, false).await;
    scene.engine.platform.given.lock().unwrap().insert(person(ANN), b"RIFF".to_vec());
    let asked = scene.samples(ANN, COMMONS, "add ann").await;
    assert!(asked.starts_with("I took your voice message of 2025-06-15, 15:06. `ann` has 4 s of speech."), "{asked}");
    assert!(asked.contains("Is it your own voice"), "{asked}");
    assert_eq!(scene.kept(), 1);
    // What somebody else sent is not theirs.
    assert!(scene.samples(AN, COMMONS, "add an").await.starts_with("Send `/voice samples add NAME`"));
    scene.engine.platform.given.lock().unwrap().insert(person(AN), b"a letter".to_vec());
    let refused = scene.samples(AN, COMMONS, "add an").await;
    assert!(refused.ends_with("I cannot keep that: it is no WAV, MP3, Ogg or FLAC file."), "{refused}");
    assert!(refused.starts_with("I took your voice message of"), "{refused}");
    // Nor is what they sent themselves the voice of somebody else.
    scene.can_ask();
    let refused = scene.samples(ANN, COMMONS, "add an @an").await;
    assert!(refused.starts_with("Send `/voice samples add NAME`"), "{refused}");
    assert_eq!(scene.kept(), 1);
}

#[tokio::test]
async fn nothing_is_kept_that_cannot_be_used() {
    let scene = Scene::open(false, false).await;
    let recordings = scene.engine.ear.1.clone();
    *recordings.obstacle.lock().unwrap() = Some("To speak with a recorded voice I need an XTTS server.".to_owned());
    let refused = scene.add(ANN, COMMONS, "ann").await;
    assert_eq!(refused, "To speak with a recorded voice I need an XTTS server. I kept nothing.");
    *recordings.obstacle.lock().unwrap() = None;
    assert!(scene.samples(ANN, COMMONS, "add ann").await.starts_with("Send `/voice samples add NAME`"));
    let refused = scene.samples(ANN, COMMONS, "add ann data:audio/wav;base64,QUJD").await;
    assert_eq!(refused, "I cannot keep that: it is no WAV, MP3, Ogg or FLAC file.");
    assert!(scene.add(ANN, COMMONS, "Ann!").await.starts_with("A name has"));
    assert_eq!(scene.kept(), 0);
    for name in ["one", "two", "three"] {
        scene.add(ANN, COMMONS, name).await;
    }
    assert!(scene.add(ANN, COMMONS, "one").await.contains("3 recordings already"));
    assert!(scene.add(ANN, COMMONS, "four").await.contains("which is the most"));
    assert_eq!(scene.kept(), 3);
    let export = scene.command(ANN, DM_ANN, "/memory export").await;
    assert!(export.contains("\"is_your_voice\": true"), "{export}");
    // Nobody else is told.
    assert!(!scene.command(BOB, DM_BOB, "/memory export").await.contains("is_your_voice"));
}
