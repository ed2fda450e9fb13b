//! A model that reranks: it reads only what the person who asks may be shown, and recall works without it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use azera_model_api::{Error, Reranker, RerankerInfo};

use crate::findings::{AN, ANN, COMMONS, DEN, DM_AN, DM_ANN, Scene};

/// Likes texts with the word `brass` best, and notes everything that it reads.
struct Reader {
    info: RerankerInfo,
    read: Mutex<Vec<String>>,
    is_away: AtomicBool,
}

impl Reader {
    fn of(scene: &Scene) -> Arc<Self> {
        let info = RerankerInfo { name: "reader".into(), candidates: 10, weight: 1.0, wait: Duration::from_secs(300) };
        let reader = Arc::new(Self { info, read: Mutex::default(), is_away: AtomicBool::default() });
        scene.engine.azera.give_reranker(reader.clone());
        reader
    }

    /// Returns what was read since the last call.
    fn read(&self) -> String {
        std::mem::take(&mut *self.read.lock().unwrap()).join("\n")
    }
}

#[async_trait]
impl Reranker for Reader {
    fn info(&self) -> &RerankerInfo {
        &self.info
    }

    async fn rerank(&self, question: &str, texts: &[String]) -> Result<Vec<f32>, Error> {
        let mut read = self.read.lock().unwrap();
        read.push(question.to_owned());
        read.extend(texts.iter().cloned());
        if self.is_away.load(Ordering::Relaxed) {
            return Err(Error::Unavailable("it is away".into()));
        }
        Ok(texts.iter().map(|text| if text.contains("brass") { 1.0 } else { 0.0 }).collect())
    }
}

impl Scene {
    async fn tell_of_lamps(&mut self) {
        for (place, text) in [
            (COMMONS, "the harbour lamp shines over the pier, quiet"),
            (COMMONS, "somebody polishes the lamp, it is of brass, quiet"),
            (DEN, "the lamp in the harbour attic hides the heliotrope, quiet"),
            (DM_ANN, "my lamp in the harbour has a vermilion shade, quiet"),
        ] {
            self.say(ANN, place, text).await;
        }
    }
}

#[tokio::test]
async fn a_reranker_reads_only_what_may_be_shown_to_those_who_read_the_answer() {
    let mut scene = Scene::open(false, false).await;
    scene.tell_of_lamps().await;
    let reader = Reader::of(&scene);
    for (who, place) in [(AN, COMMONS), (ANN, COMMONS)] {
        scene.find(who, place, "what about the harbour lamp?").await;
        scene.command(who, place, "/memory search harbour lamp").await;
        scene.say(who, place, "tell me of the harbour lamp, quiet").await;
        let read = reader.read();
        assert!(read.contains("brass"), "{read}");
        assert!(!read.contains("heliotrope") && !read.contains("vermilion"), "{read}");
    }
    scene.find(AN, DEN, "what about the harbour lamp?").await;
    let read = reader.read();
    assert!(read.contains("heliotrope") && !read.contains("vermilion"), "{read}");
    scene.find(ANN, DM_ANN, "what about the harbour lamp?").await;
    assert!(reader.read().contains("vermilion"));
}

#[tokio::test]
async fn a_reranker_orders_what_is_found_and_recall_says_when_it_is_away() {
    let mut scene = Scene::open(false, false).await;
    scene.tell_of_lamps().await;
    let ask = "what about the harbour lamp?";
    let own = scene.find(AN, COMMONS, ask).await;
    assert!(own[0].contains("pier"), "{own:?}");
    let reader = Reader::of(&scene);
    let ordered = scene.hits(AN, COMMONS, ask).await;
    assert!(ordered[0].text.as_str().contains("brass"), "{ordered:?}");
    // The prompt of another chat does not show these messages anyway.
    scene.say(AN, DM_AN, "what about the harbour lamp, quiet").await;
    let why = scene.command(AN, DM_AN, "/why").await;
    assert!(why.contains("reranked") && !why.contains("Not available"), "{why}");
    reader.is_away.store(true, Ordering::Relaxed);
    assert_eq!(scene.find(AN, COMMONS, ask).await, own, "the order stays as it is");
    let search = scene.command(AN, COMMONS, "/memory search harbour lamp").await;
    assert!(search.contains("pier") && search.contains("Not available just now: reranker."), "{search}");
    scene.say(AN, DM_AN, "what about the harbour lamp at dusk, quiet").await;
    let why = scene.command(AN, DM_AN, "/why").await;
    assert!(why.contains("Not available then: reranker."), "{why}");
}

#[tokio::test]
async fn what_is_forgotten_while_the_reranker_reads_is_not_found() {
    let mut scene = Scene::open(false, false).await;
    scene.tell_of_lamps().await;
    let reader = Reader::of(&scene);
    assert_eq!(scene.find(AN, COMMONS, "what about the harbour lamp?").await.len(), 2);
    scene.command(ANN, COMMONS, "/forget chat").await;
    reader.read();
    assert_eq!(scene.find(AN, COMMONS, "what about the harbour lamp?").await, [""; 0]);
    assert_eq!(reader.read(), "", "nothing is left to read");
}
