//! What is streamed of a reply before it is delivered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use azera_adapter::{ChatInfo, Host, HostError, InboundEvent, Outcome, Platform, SkipReason, StreamEvent};
use azera_memory::conformance::StagedStore;
use azera_memory::{Durability, Forget, RamStore, Store};
use azera_model_api::{ChatModel, ChatRequest, Error, Event, ModelInfo, Priority, Reply, ScriptedModel, SessionKey};
use azera_types::MessageId;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, Scene};
use crate::oracle::secrets_in;
use crate::test_engine::chat;
use crate::world::{Change, Target};

/// How often a test lets the engine try something again before it gives up.
const TRIES: usize = 100;

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

/// A model that counts the replies it is asked for, and breaks them off if it is told to.
struct Faltering {
    model: Arc<dyn ChatModel>,
    breaks_off: AtomicBool,
    asked: AtomicUsize,
}

impl Faltering {
    fn new(scene: &Scene, breaks_off: bool) -> Arc<Self> {
        let model = scene.engine.model.clone();
        Arc::new(Self { model, breaks_off: AtomicBool::new(breaks_off), asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl ChatModel for Faltering {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.model.count_tokens(text)
    }

    async fn chat(&self, request: ChatRequest) -> Result<Reply, Error> {
        if request.priority == Priority::Foreground {
            self.asked.fetch_add(1, Ordering::SeqCst);
            if self.breaks_off.load(Ordering::SeqCst) {
                let (events, _, reply) = Reply::channel();
                let gone = Error::Unavailable("it broke off".into());
                for event in [Ok(Event::Content("I recall the harbour and ".into())), Err(gone)] {
                    events.send(event).await.unwrap();
                }
                return Ok(reply);
            }
        }
        self.model.chat(request).await
    }

    async fn forget_session(&self, session: &SessionKey) -> Result<(), Error> {
        self.model.forget_session(session).await
    }
}

impl Scene {
    /// Moves the record to a disk that is full while the flag is set, and restarts with another model.
    async fn move_to_a_small_disk(&mut self, model: Arc<dyn ChatModel>) -> Arc<AtomicBool> {
        let (rows, is_full) = (RamStore::new(), Arc::<AtomicBool>::default());
        self.engine.layers.store.dump(&mut |batch| rows.commit(batch, Durability::Soon)).unwrap();
        let full = Arc::clone(&is_full);
        let store = StagedStore::new(rows).before_commit(move || {
            if full.load(Ordering::SeqCst) { Err(azera_memory::Error::Full { what: "writing" }) } else { Ok(()) }
        });
        self.engine.layers.store = Arc::new(store);
        self.engine.answered_by(model).await;
        is_full
    }

    /// Lets the engine try again what failed in a chat, until it is so.
    async fn try_again_until(&self, place: usize, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..TRIES {
            if is_so(self) {
                return;
            }
            // A chat that is announced takes up what is unanswered there.
            let event = InboundEvent::Chat(ChatInfo { chat: chat(place), title: None, persona: None });
            self.engine.azera.submit(self.engine.platform.sim.id(), event).await.unwrap();
            // Nothing can be indexed on a full disk. The turns are over before that.
            self.engine.azera.settle().await.ok();
        }
        panic!("it was tried again in vain");
    }

    /// Returns how often a reply was delivered.
    fn deliveries(&self, reply: &MessageId) -> usize {
        self.engine.platform.delivered.lock().unwrap().iter().filter(|outbound| outbound.id == *reply).count()
    }
}

/// A reply was begun and failed. Checks that it is not begun again while it fails, and delivered once in the end.
async fn is_begun_once(scene: &mut Scene, reply: &MessageId, model: &Faltering, works_again: impl FnOnce()) {
    let begun = events_of(scene, reply);
    let [StreamEvent::Content { .. }, .., StreamEvent::Error { .. }] = begun.as_slice() else { panic!("{begun:?}") };
    let asked = model.asked();
    scene.try_again_until(DM_AN, |_| model.asked() > asked + 1).await;
    assert_eq!(events_of(scene, reply), begun, "people see it come and go");
    works_again();
    scene.try_again_until(DM_AN, |scene| scene.deliveries(reply) > 0).await;
    let events = events_of(scene, reply);
    let (before, [StreamEvent::Done { .. }]) = events.split_at(begun.len()) else { panic!("{events:?}") };
    assert_eq!((before, scene.deliveries(reply)), (begun.as_slice(), 1));
    // The next reply is streamed as usual.
    let Outcome::Replied(turn) = scene.say(AN, DM_AN, "good night, quiet").await else { panic!("no answer") };
    let events = events_of(scene, &turn.reply);
    let [StreamEvent::Content { .. }, .., StreamEvent::Done { .. }] = events.as_slice() else { panic!("{events:?}") };
}

#[tokio::test]
async fn a_reply_that_cannot_be_stored_is_streamed_once() {
    let mut scene = Scene::open(false, false).await;
    let model = Faltering::new(&scene, false);
    let is_full = scene.move_to_a_small_disk(model.clone()).await;
    let inbound = scene.message(AN, DM_AN, "hello, quiet");
    let reply = MessageId::new(format!("{}~r0", inbound.id)).unwrap();
    let fills_up = Arc::clone(&is_full);
    scene.engine.platform.at_first_piece.set(move || fills_up.store(true, Ordering::SeqCst));
    let outcome = scene.submit(inbound).await;
    assert!(matches!(outcome, Err(HostError::Full)), "{outcome:?}");
    is_begun_once(&mut scene, &reply, &model, || is_full.store(false, Ordering::SeqCst)).await;
}

#[tokio::test]
async fn a_reply_that_the_model_breaks_off_is_streamed_once() {
    let mut scene = Scene::open(false, false).await;
    let model = Faltering::new(&scene, true);
    scene.engine.answered_by(model.clone()).await;
    let inbound = scene.message(AN, DM_AN, "hello, quiet");
    let reply = MessageId::new(format!("{}~r0", inbound.id)).unwrap();
    assert!(scene.submit(inbound).await.is_err());
    is_begun_once(&mut scene, &reply, &model, || model.breaks_off.store(false, Ordering::SeqCst)).await;
}
