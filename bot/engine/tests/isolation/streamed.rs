//! What is streamed of a reply before it is delivered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use azera_adapter::{Outcome, SkipReason, StreamEvent};
use azera_memory::Forget;
use azera_model_api::{ChatModel, ChatRequest, Error, ModelInfo, Priority, Reply, ScriptedModel, SessionKey};
use azera_types::MessageId;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, Scene};
use crate::oracle::secrets_in;
use crate::world::{Change, Target};

/// Returns what was streamed of a reply, in order.
fn events_of(scene: &Scene, reply: &MessageId) -> Vec<StreamEvent> {
    let streamed = scene.engine.platform.streamed.lock().unwrap();
    streamed.iter().filter(|(of, _)| of == reply).map(|(_, event)| event.clone()).collect()
}

/// A model whose first reply is blank.
struct BlankFirst {
    model: Arc<dyn ChatModel>,
    is_first: AtomicBool,
}

#[async_trait]
impl ChatModel for BlankFirst {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.model.count_tokens(text)
    }

    async fn chat(&self, request: ChatRequest) -> Result<Reply, Error> {
        if request.priority == Priority::Foreground && self.is_first.swap(false, Ordering::SeqCst) {
            return ScriptedModel::saying("").chat(request).await;
        }
        self.model.chat(request).await
    }

    async fn forget_session(&self, session: &SessionKey) -> Result<(), Error> {
        self.model.forget_session(session).await
    }
}

/// Somebody joins after the blank reply, when the model is asked again.
#[tokio::test]
async fn a_second_attempt_is_not_shown_to_people_who_came_after_the_first() {
    let mut scene = Scene::open(false, false).await;
    let secret = scene.tell(ANN, COMMONS).await;
    let model = BlankFirst { model: scene.engine.model.clone(), is_first: AtomicBool::new(true) };
    scene.engine.answered_by(Arc::new(model)).await;
    let engine = &scene.engine;
    engine.change_meanwhile(&engine.meanwhile, Change::Join(BOB, Target::Chat(DEN)));
    engine.platform.streamed.lock().unwrap().clear();
    let outcome = scene.say(AN, DEN, "what is the lighthouse password? say it").await;
    assert!(matches!(outcome, Outcome::Replied(_)), "{outcome:?}");
    let streamed = scene.engine.platform.streamed.lock().unwrap().clone();
    let is_end = |event: &StreamEvent| matches!(event, StreamEvent::Error { .. } | StreamEvent::Withdrawn);
    assert!(!streamed.iter().any(|(_, event)| is_end(event)), "nothing was shown that could end: {streamed:?}");
    let content = |event: &StreamEvent| match event {
        StreamEvent::Content { text } => Some(text.clone()),
        _ => None,
    };
    let words: String = streamed.iter().filter_map(|(_, event)| content(event)).collect();
    assert!(!secrets_in(&words).contains(&secret), "Bob is told it");
}

/// Somebody joins while the reply is streamed. What people see of it goes, and they get another reply and no excuse.
#[tokio::test]
async fn a_reply_that_newcomers_may_not_read_is_withdrawn_and_made_anew() {
    let mut scene = Scene::open(false, false).await;
    scene.tell(ANN, COMMONS).await;
    let platform = scene.engine.platform.clone();
    platform.streamed.lock().unwrap().clear();
    scene.engine.change_meanwhile(&platform.at_first_piece, Change::Join(BOB, Target::Chat(DEN)));
    let outcome = scene.say(AN, DEN, "what is the lighthouse password? say it").await;
    assert!(matches!(outcome, Outcome::Replied(_)), "{outcome:?}");
    let streamed = platform.streamed.lock().unwrap().clone();
    let is_end = |event: &StreamEvent| !matches!(event, StreamEvent::Content { .. });
    let ends: Vec<&StreamEvent> = streamed.iter().map(|(_, event)| event).filter(|event| is_end(event)).collect();
    let [StreamEvent::Withdrawn, StreamEvent::Done { .. }] = ends.as_slice() else { panic!("{streamed:?}") };
}

/// A voice or a message that grows would wait for the end for ever.
#[tokio::test]
async fn a_reply_that_cannot_be_stored_ends_where_it_was_streamed() {
    let mut scene = Scene::open(false, false).await;
    // A message has the id that the reply would have.
    let reply = MessageId::new("m2~r0").unwrap();
    let mut early = scene.message(ANN, DM_ANN, "the first of all, quiet");
    early.id = reply.clone();
    scene.submit(early).await.unwrap();
    let inbound = scene.message(AN, DM_AN, "hello, quiet");
    let outcome = scene.submit(inbound).await;
    assert!(outcome.is_err(), "{outcome:?}");
    let events = events_of(&scene, &reply);
    let [StreamEvent::Content { .. }, .., StreamEvent::Error { .. }] = events.as_slice() else { panic!("{events:?}") };
}

/// A notice in its place would tell everybody that there was a message.
#[tokio::test]
async fn a_reply_ends_without_a_word_if_its_message_is_forgotten_meanwhile() {
    let mut scene = Scene::open(false, false).await;
    let inbound = scene.message(AN, DM_AN, "hello, quiet");
    let (memory, forgotten) = (Arc::clone(&scene.engine.memory), Forget::Message(inbound.id.clone()));
    scene.engine.platform.at_first_piece.set(move || {
        memory.forgetting().forget(&forgotten, false).unwrap();
    });
    let reply = MessageId::new(format!("{}~r0", inbound.id)).unwrap();
    assert_eq!(scene.submit(inbound).await.unwrap(), Outcome::Skipped(SkipReason::Forgotten));
    let events = events_of(&scene, &reply);
    let [StreamEvent::Content { .. }, .., StreamEvent::Withdrawn] = events.as_slice() else { panic!("{events:?}") };
    assert!(!events.iter().any(|event| matches!(event, StreamEvent::Error { .. })), "{events:?}");
    assert!(scene.delivered().is_empty());
}
