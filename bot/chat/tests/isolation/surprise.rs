//! How surprising what was said is: measured where it stood, kept with it, by what is usual there, and gone with who said it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azera_memory::{Order, Right, Surprise, Table};
use azera_model::{ChatModel, ChatRequest, ModelInfo, Reply, Score, ScoreRequest, Scorer, SessionKey};
use azera_types::{MessageId, PersonaId, Reach, Timestamp};

use crate::findings::{ANN, DM_ANN, HALL, Scene};
use crate::house::{chat, person};
use crate::oracle::DEFAULT_PERSONA;

/// A model that expects no zeppelins.
struct Expecting {
    inner: Arc<dyn ChatModel>,
    /// What it was asked: what stood last, and what was scored behind it.
    asked: Mutex<Vec<(String, String)>>,
}

#[async_trait]
impl ChatModel for Expecting {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.inner.count_tokens(text)
    }

    async fn chat(&self, request: ChatRequest) -> Result<Reply, azera_model::Error> {
        self.inner.chat(request).await
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        Some(self)
    }

    async fn forget_session(&self, session: &SessionKey) -> Result<(), azera_model::Error> {
        self.inner.forget_session(session).await
    }
}

#[async_trait]
impl Scorer for Expecting {
    async fn score(&self, request: ScoreRequest) -> Result<Vec<Score>, azera_model::Error> {
        let last = request.messages.last().map_or("", |message| &message.content);
        let of = |text: &String| {
            self.asked.lock().unwrap().push((last.to_owned(), text.clone()));
            let tokens = self.count_tokens(text);
            let loss = if text.contains("zeppelin") { 6.0 } else { 3.0 };
            Score { log_prob: -loss * tokens as f64, tokens }
        };
        Ok(request.continuations.iter().map(of).collect())
    }
}

/// How surprising a message was, as somebody sees it who may read its place.
async fn surprise(scene: &Scene, place: usize, id: &MessageId) -> Option<Surprise> {
    let sim = scene.house.platform.sim.clone();
    let seen = azera_adapter::Platform::place(sim.as_ref(), &chat(place), &person(ANN)).await.unwrap().unwrap();
    let right = Right::in_place(PersonaId::new(DEFAULT_PERSONA).unwrap(), &seen, &Reach::default());
    let recent = scene.house.memory.recent(&right, Timestamp::MIN, 100).unwrap();
    recent.into_iter().find(|row| row.sources.first() == Some(id)).and_then(|row| row.surprise)
}

fn usual(scene: &Scene) -> usize {
    let settings = scene.house.layers.store.scan(Table::Settings, b"", None, Order::Ascending, 1_000).unwrap();
    settings.iter().filter(|(key, _)| key.windows(5).any(|part| part == b"usual")).count()
}

#[tokio::test]
async fn what_nobody_expected_there_stands_out_and_goes_with_who_said_it() {
    const ODD: &str = "a zeppelin ate my homework quiet";
    let mut scene = Scene::open(false, false).await;
    let model = Arc::new(Expecting { inner: scene.house.model.clone(), asked: Mutex::default() });
    scene.house.answered_by(model.clone()).await;
    for _ in 0..8 {
        scene.say(ANN, HALL, "the kettle is on quiet").await;
    }
    let plain = scene.last();
    scene.say(ANN, HALL, ODD).await;
    let odd = scene.last();
    assert_eq!(surprise(&scene, HALL, &odd).await, None, "whoever talks has the model alone");
    scene.wait(120).await;
    let found = surprise(&scene, HALL, &odd).await.unwrap();
    assert!(found.score > 2.0 && (found.words - 6.0).abs() < 1e-6 && found.exchange < found.words, "{found:?}");
    let found = surprise(&scene, HALL, &plain).await.unwrap();
    assert!(found.score.abs() < 0.1, "{found:?}");
    // Its words were scored behind what stood before them, and the answer behind its words.
    let asked = std::mem::take(&mut *model.asked.lock().unwrap());
    assert!(asked.iter().any(|(last, scored)| scored == ODD && !last.contains(ODD)));
    assert!(asked.iter().any(|(last, scored)| last.ends_with(ODD) && scored == "Noted."), "{asked:?}");
    // What is usual in one place says nothing in another.
    scene.say(ANN, DM_ANN, ODD).await;
    scene.wait(120).await;
    assert_eq!(surprise(&scene, DM_ANN, &scene.last()).await.unwrap().score, 0.0);
    assert_eq!(usual(&scene), 2);
    // What was forgotten in time the model does not see again.
    scene.say(ANN, HALL, "a heron sat on my zeppelin quiet").await;
    scene.command(ANN, HALL, "/forget last").await;
    scene.wait(120).await;
    let asked = model.asked.lock().unwrap().clone();
    assert!(asked.iter().all(|(last, scored)| !last.contains("heron") && !scored.contains("heron")));
    scene.command(ANN, HALL, "/forget me").await;
    assert_eq!(usual(&scene), 0);
    assert!(scene.house.memory.check().unwrap().is_sound());
}
