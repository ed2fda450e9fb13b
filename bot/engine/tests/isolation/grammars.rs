//! Grammars are sent only to models that take them: on many servers a small model takes none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use azera_model_api::{ChatModel, ChatRequest, Error, Grammar, ModelInfo, Priority, Reply, SessionKey};

use crate::findings::{ANN, DM_ANN, Scene};

/// A model of 600 million weights that counts how it is asked for texts in the background.
struct SmallModel {
    model: Arc<dyn ChatModel>,
    info: ModelInfo,
    takes_gbnf: bool,
    led: AtomicUsize,
    free: AtomicUsize,
}

#[async_trait]
impl ChatModel for SmallModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.model.count_tokens(text)
    }

    fn takes_gbnf(&self) -> bool {
        self.takes_gbnf
    }

    async fn chat(&self, request: ChatRequest) -> Result<Reply, Error> {
        match (&request.grammar, request.priority) {
            (Some(Grammar::Gbnf(_)), _) => _ = self.led.fetch_add(1, Ordering::SeqCst),
            (None, Priority::Background) => _ = self.free.fetch_add(1, Ordering::SeqCst),
            _ => {}
        }
        self.model.chat(request).await
    }

    async fn forget_session(&self, session: &SessionKey) -> Result<(), Error> {
        self.model.forget_session(session).await
    }
}

#[tokio::test]
async fn a_small_model_that_takes_no_grammar_writes_without_one() {
    for takes_gbnf in [true, false] {
        let mut scene = Scene::open(false, false).await;
        let model = scene.engine.model.clone();
        let info = ModelInfo { parameters: Some(600_000_000), ..model.info().clone() };
        let (led, free) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let small = Arc::new(SmallModel { model, info, takes_gbnf, led, free });
        scene.engine.answered_by(small.clone()).await;
        scene.tell(ANN, DM_ANN).await;
        scene.command(ANN, DM_ANN, "/journal trigger").await;
        let (led, free) = (small.led.load(Ordering::SeqCst), small.free.load(Ordering::SeqCst));
        assert!(if takes_gbnf { led > 0 } else { led == 0 && free > 0 }, "{takes_gbnf}: {led} led, {free} free");
    }
}
