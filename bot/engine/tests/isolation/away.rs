//! The chat model is away: what must be learnt with it waits, and is learnt once it is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use azera_model_api::{ChatModel, ChatRequest, Error, ModelInfo, Reply, SessionKey};

use crate::findings::{ANN, COMMONS, Scene};
use crate::maintenance::DAY;

/// A model that can be away.
struct AwayModel {
    model: Arc<dyn ChatModel>,
    is_away: Arc<AtomicBool>,
}

#[async_trait]
impl ChatModel for AwayModel {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.model.count_tokens(text)
    }

    async fn chat(&self, request: ChatRequest) -> Result<Reply, Error> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(Error::Unavailable("it is away".into()));
        }
        self.model.chat(request).await
    }

    async fn forget_session(&self, session: &SessionKey) -> Result<(), Error> {
        self.model.forget_session(session).await
    }
}

#[tokio::test]
async fn what_is_learnt_with_the_chat_model_waits_until_it_is_back() {
    let mut scene = Scene::open(false, false).await;
    let is_away = Arc::new(AtomicBool::new(false));
    let model = AwayModel { model: scene.engine.model.clone(), is_away: is_away.clone() };
    scene.engine.answered_by(Arc::new(model)).await;
    scene.say(ANN, COMMONS, "my dentist appointment is on tuesday. quiet").await;
    scene.pass_time(DAY).await;
    scene.say(ANN, COMMONS, "my dentist appointment is on friday now. quiet").await;
    is_away.store(true, Ordering::SeqCst);
    scene.pass_time(DAY).await;
    let me = scene.command(ANN, COMMONS, "/me").await;
    assert!(me.contains("on friday now") && !me.contains(", until "), "it is marked, and not compared: {me}");
    is_away.store(false, Ordering::SeqCst);
    scene.pass_time(DAY).await;
    let me = scene.command(ANN, COMMONS, "/me").await;
    let old = me.lines().find(|line| line.contains("on tuesday")).unwrap_or_else(|| panic!("{me}"));
    assert!(old.contains(", until "), "{me}");
}
