//! Surprise: it is measured in the message's own context, stored with the message, compared with what is usual in the
//! place, and forgotten with the person.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azera_memory::{Order, ReadScope, Surprise, Table};
use azera_model_api::{ChatModel, ChatRequest, ModelInfo, Reply, Score, ScoreRequest, Scorer, SessionKey};
use azera_types::{MessageId, PersonaId, ReadableScopes, Timestamp};

use crate::findings::{ANN, COMMONS, DM_ANN, Scene};
use crate::oracle::DEFAULT_PERSONA;
use crate::test_engine::{chat, person};

/// A model that does not expect zeppelins.
struct Expecting {
    inner: Arc<dyn ChatModel>,
    /// Its scoring requests: the last message, and the text scored after it.
    requests: Mutex<Vec<(String, String)>>,
}

#[async_trait]
impl ChatModel for Expecting {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.inner.count_tokens(text)
    }

    async fn chat(&self, request: ChatRequest) -> Result<Reply, azera_model_api::Error> {
        self.inner.chat(request).await
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        Some(self)
    }

    async fn forget_session(&self, session: &SessionKey) -> Result<(), azera_model_api::Error> {
        self.inner.forget_session(session).await
    }
}

#[async_trait]
impl Scorer for Expecting {
    async fn score(&self, request: ScoreRequest) -> Result<Vec<Score>, azera_model_api::Error> {
        let last = request.messages.last().map_or("", |message| &message.content);
        let of = |text: &String| {
            self.requests.lock().unwrap().push((last.to_owned(), text.clone()));
            let tokens = self.count_tokens(text);
            let loss = if text.contains("zeppelin") { 6.0 } else { 3.0 };
            Score { log_prob: -loss * tokens as f64, tokens }
        };
        Ok(request.continuations.iter().map(of).collect())
    }
}

/// Returns the surprise of a message, for somebody who may read its place.
async fn surprise(scene: &Scene, place: usize, id: &MessageId) -> Option<Surprise> {
    let sim = scene.engine.platform.sim.clone();
    let seen = azera_adapter::Platform::place(sim.as_ref(), &chat(place), &person(ANN)).await.unwrap().unwrap();
    let read_scope = ReadScope::in_place(PersonaId::new(DEFAULT_PERSONA).unwrap(), &seen, &ReadableScopes::default());
    let recent = scene.engine.memory.writings().recent(&read_scope, Timestamp::MIN, 100).unwrap();
    recent.into_iter().find(|row| row.sources.first() == Some(id)).and_then(|row| row.surprise)
}

fn usual(scene: &Scene) -> usize {
    let settings = scene.engine.layers.store.scan(Table::Settings, b"", None, Order::Ascending, 1_000).unwrap();
    settings.iter().filter(|(key, _)| key.windows(5).any(|part| part == b"usual")).count()
}

#[tokio::test]
async fn an_unexpected_message_is_surprising_and_its_surprise_is_forgotten_with_the_person() {
    const ODD: &str = "a zeppelin ate my homework quiet";
    let mut scene = Scene::open(false, false).await;
    let model = Arc::new(Expecting { inner: scene.engine.model.clone(), requests: Mutex::default() });
    scene.engine.answered_by(model.clone()).await;
    for _ in 0..8 {
        scene.say(ANN, COMMONS, "the kettle is on quiet").await;
    }
    let plain = scene.last();
    scene.say(ANN, COMMONS, ODD).await;
    let odd = scene.last();
    assert_eq!(surprise(&scene, COMMONS, &odd).await, None, "whoever talks has the model alone");
    scene.wait(120).await;
    let found = surprise(&scene, COMMONS, &odd).await.unwrap();
    assert!(found.score > 2.0 && (found.words - 6.0).abs() < 1e-6 && found.exchange < found.words, "{found:?}");
    let found = surprise(&scene, COMMONS, &plain).await.unwrap();
    assert!(found.score.abs() < 0.1, "{found:?}");
    // The words were scored after what stood before them, and the reply after the words.
    let requests = std::mem::take(&mut *model.requests.lock().unwrap());
    assert!(requests.iter().any(|(last, scored)| scored == ODD && !last.contains(ODD)));
    assert!(requests.iter().any(|(last, scored)| last.ends_with(ODD) && scored == "Noted."), "{requests:?}");
    // What is usual in one place says nothing about another.
    scene.say(ANN, DM_ANN, ODD).await;
    scene.wait(120).await;
    assert_eq!(surprise(&scene, DM_ANN, &scene.last()).await.unwrap().score, 0.0);
    assert_eq!(usual(&scene), 2);
    // The model does not see again what was forgotten in time.
    scene.say(ANN, COMMONS, "a heron sat on my zeppelin quiet").await;
    scene.command(ANN, COMMONS, "/forget last").await;
    scene.wait(120).await;
    let requests = model.requests.lock().unwrap().clone();
    assert!(requests.iter().all(|(last, scored)| !last.contains("heron") && !scored.contains("heron")));
    scene.command(ANN, COMMONS, "/forget me").await;
    assert_eq!(usual(&scene), 0);
    assert!(scene.engine.memory.check().unwrap().is_sound());
}
