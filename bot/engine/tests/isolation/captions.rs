//! Captions of calls: who agreed to them, and that they go with what they show.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use azera_adapter::{Outcome, VoiceHost as _};
use azera_types::MessageId;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, Scene};
use crate::test_engine::{chat, person};
use crate::voice_fakes::Channels;

impl Scene {
    fn channels(&self) -> Arc<Channels> {
        let channels = Arc::<Channels>::default();
        assert!(self.engine.platform.channels.set(channels.clone()).is_ok());
        channels
    }

    /// Says something, and returns the ids of the message and of its reply.
    async fn exchange(&mut self, who: usize, text: &str) -> [MessageId; 2] {
        match self.say(who, COMMONS, text).await {
            Outcome::Replied(turn) => [turn.to, turn.reply],
            Outcome::Skipped(why) => panic!("silent: {}", why.why()),
        }
    }

    async fn stands(&self, message: &MessageId) -> Option<bool> {
        self.engine.azera.stands(message).await.unwrap()
    }
}

#[tokio::test]
async fn captions_go_with_what_was_forgotten_and_with_nothing_else() {
    let mut scene = Scene::open(true, false).await;
    let channels = scene.channels();
    let first = scene.exchange(ANN, "the boats are green").await;
    let others = scene.exchange(AN, "the boats are yellow").await;
    let last = scene.exchange(ANN, "the boats are gone").await;
    assert_eq!(scene.stands(&last[0]).await, Some(true));
    // Who points at a caption has forgotten only what is their own.
    let shown = [first.as_slice(), &others, &last].concat();
    assert_eq!(scene.engine.azera.forget_said(&person(BOB), &shown).await.unwrap(), 0);
    assert_eq!(scene.engine.azera.forget_said(&person(AN), &first).await.unwrap(), 0);
    assert!(channels.gone.lock().unwrap().is_empty());
    let own = scene.exchange(AN, "the boats are blue").await;
    assert_eq!(scene.engine.azera.forget_said(&person(AN), &[last.as_slice(), &own].concat()).await.unwrap(), 2);
    let gone = std::mem::take(&mut *channels.gone.lock().unwrap());
    assert!(own.iter().all(|id| gone.contains(&(chat(COMMONS), id.clone()))) && gone.len() == 2, "{gone:?}");
    scene.command(ANN, COMMONS, "/forget last quotes").await;
    let gone = std::mem::take(&mut *channels.gone.lock().unwrap());
    assert_eq!(gone, last.clone().map(|id| (chat(COMMONS), id)));
    // A caption that is not posted yet is looked up before.
    assert_eq!((scene.stands(&last[0]).await, scene.stands(&last[1]).await), (Some(false), Some(false)));
    scene.command(ANN, COMMONS, "/forget me").await;
    let gone = std::mem::take(&mut *channels.gone.lock().unwrap());
    assert_eq!(gone, [(chat(COMMONS), first[0].clone())], "her own words, and not what others said");
    for id in &others {
        assert_eq!(scene.stands(id).await, Some(true));
    }
    assert_eq!(scene.stands(&MessageId::new("unknown").unwrap()).await, None);
}

#[tokio::test]
async fn only_those_who_agree_to_captions_are_heard_while_they_run() {
    let scene = Scene::open(true, false).await;
    scene.channels();
    let heard = async |who: usize| scene.engine.azera.may_be_heard(&chat(COMMONS), &person(who)).await.unwrap();
    // Nobody agrees to captions that do not run.
    let answer = scene.command(AN, COMMONS, "/voice captions yes").await;
    assert!(answer.starts_with("No captions run") && heard(AN).await.is_none(), "{answer}");
    assert!(scene.command(ANN, COMMONS, "/voice captions on").await.contains("1 person agreed"));
    let answer = scene.command(AN, COMMONS, "/voice consent yes").await;
    assert!(answer.contains("`/voice captions yes`"), "{answer}");
    assert!(scene.command(AN, COMMONS, "/voice captions").await.contains("unless you agree"));
    // What they decided for other times stays as it is.
    scene.command(AN, COMMONS, "/voice consent no").await;
    assert!(scene.command(AN, COMMONS, "/voice captions yes").await.starts_with("Thank you."));
    assert_eq!(heard(AN).await, Some(false));
    assert!(scene.command(AN, COMMONS, "/voice captions").await.contains("2 people agreed"));
    assert!(scene.command(AN, COMMONS, "/voice captions no").await.starts_with("I do not hear you"));
    assert_eq!(scene.command(ANN, COMMONS, "/voice captions off").await, "The captions are off.");
    assert!(scene.command(ANN, COMMONS, "/voice captions sideways").await.contains("`/voice captions on`"));
}

#[tokio::test]
async fn the_settings_of_a_call_tell_the_consent_to_that_call() {
    let scene = Scene::open(true, false).await;
    let channels = scene.channels();
    let settings = scene.command(ANN, COMMONS, "/voice settings").await;
    assert!(settings.starts_with("- I am not in a voice channel with you."), "{settings}");
    assert!(settings.contains("`/voice replies` changes it") && settings.contains("my own voice"), "{settings}");
    *channels.call.lock().unwrap() = Some(chat(COMMONS));
    // Ann is in a call and asks from the text chat of another voice channel, where she agreed.
    scene.command(ANN, DEN, "/voice consent yes").await;
    let settings = scene.command(ANN, DEN, "/voice settings").await;
    assert!(settings.contains("I do not hear you"), "{settings}");
    scene.command(ANN, COMMONS, "/voice consent yes").await;
    let settings = scene.command(ANN, DEN, "/voice settings").await;
    assert!(settings.contains("I hear you") && settings.contains("Nothing is recorded"), "{settings}");
    // Nobody is told that nothing is recorded while it is not known.
    channels.is_record_lost.store(true, Ordering::Relaxed);
    let settings = scene.command(ANN, DEN, "/voice settings").await;
    assert_eq!(settings, "This recording has ended.");
}
