//! Writings of the Gardener: they are written once, in time, and forgotten with their sources.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use azera_adapter::{Host, Outcome, Platform};
use azera_memory::{Kind, MemoryRow, ReadScope};
use azera_model_api::{ChatModel, ChatRequest, ModelInfo, Priority, Reply, SessionKey};
use azera_types::{MessageId, PersonaId, ReadableScopes};
use tokio::sync::Notify;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_ANN, GUILD, Scene};
use crate::oracle::{DEFAULT_PERSONA, secrets_in};
use crate::test_engine::{chat, person};
use crate::world::{Change, Target};

const HOUR: i64 = 3_600;

impl Scene {
    /// Lets time pass, and runs everything that is due.
    pub async fn wait(&self, seconds: i64) {
        self.pass(seconds);
        self.engine.azera.settle().await.unwrap();
    }

    /// Returns the writings that somebody may see in a place.
    pub async fn written(&self, who: usize, place: usize, kind: Kind) -> Vec<MemoryRow> {
        let sim = &self.engine.platform.sim;
        let Some(seen) = sim.place(&chat(place), &person(who)).await.unwrap() else { return Vec::new() };
        let read_scope =
            ReadScope::in_place(PersonaId::new(DEFAULT_PERSONA).unwrap(), &seen, &ReadableScopes::default());
        let found = self.engine.memory.writings().list(&read_scope, &[kind], 100).unwrap();
        found.into_iter().map(|(memory, _)| memory).collect()
    }
}

/// Two secrets are told in the hall, and the night goes by. Returns the secrets.
async fn night(scene: &mut Scene) -> [usize; 2] {
    let secrets = [scene.tell(ANN, COMMONS).await, scene.tell(AN, COMMONS).await];
    scene.wait(HOUR).await;
    secrets
}

#[tokio::test]
async fn a_dream_is_posted_once_to_the_journal_and_remembered_as_a_dream() {
    let mut scene = Scene::open(false, false).await;
    let secrets = night(&mut scene).await;
    let posts =
        |scene: &Scene| scene.delivered().into_iter().filter(|text| text.starts_with("Somewhere")).collect::<Vec<_>>();
    let dreams = scene.written(ANN, COMMONS, Kind::Dream).await;
    assert_eq!(dreams.len(), 1);
    assert_eq!(secrets_in(&dreams[0].text), secrets.into());
    assert_eq!(posts(&scene), [dreams[0].text.as_str()]);
    assert_eq!(dreams[0].sources.len(), 3, "what was said, and the post");
    let shown = scene.command(ANN, COMMONS, "/dream show 1").await;
    let made_of = shown.lines().find(|line| line.starts_with("Made of `m"));
    assert_eq!(made_of.map(|line| line.matches("`m").count()), Some(2), "{shown}");
    // Nothing new was said, so nothing is written again, not even after a restart.
    scene.wait(30 * HOUR).await;
    scene.engine.reopen().await;
    scene.wait(30 * HOUR).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await.len(), 1);
    assert_eq!(scene.written(ANN, COMMONS, Kind::Diary).await.len(), 1, "one conversation");
    assert_eq!(posts(&scene).len() as u64, 1 + scene.written(ANN, COMMONS, Kind::Reflection).await.len() as u64);
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

/// A crash came between a dream and the record of the mind's rest.
#[tokio::test]
async fn a_dream_is_not_repeated_after_a_crash_lost_the_rest() {
    let mut scene = Scene::open(false, false).await;
    let of_the_commons = |scene: &Scene| {
        let minds = scene.engine.memory.minds().list().unwrap();
        minds.into_iter().find(|row| matches!(row.scope, azera_types::Scope::Realm(_))).unwrap()
    };
    scene.tell(ANN, COMMONS).await;
    scene.tell(AN, COMMONS).await;
    let tired = of_the_commons(&scene);
    scene.wait(HOUR).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await.len(), 1);
    assert_ne!(of_the_commons(&scene).mind, tired.mind);
    scene.engine.memory.minds().put_mind(&tired.persona, &tired.scope, tired.mind.clone()).unwrap();
    scene.engine.reopen().await;
    scene.wait(HOUR).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await.len(), 1);
    assert_ne!(of_the_commons(&scene).mind, tired.mind, "it is rested all the same");
}

#[tokio::test]
async fn a_writing_is_forgotten_with_any_of_its_sources() {
    let mut scene = Scene::open(false, false).await;
    let [_, second] = night(&mut scene).await;
    let posted = scene.engine.memory.outbox().pending().unwrap().len();
    assert_eq!(posted, 0, "delivered");
    let receipt = scene.command(AN, COMMONS, "/forget last").await;
    // The memory itself, the diary entry and the dream.
    assert!(receipt.contains("messages 1, replies 0, memories with their index entries 3,"), "{receipt}");
    assert!(receipt.contains("2 of my replies were built on it") && receipt.contains("post~"), "{receipt}");
    for kind in [Kind::Dream, Kind::Diary] {
        assert_eq!(scene.written(AN, COMMONS, kind).await, []);
    }
    assert!(
        !secrets_in(&scene.find(ANN, COMMONS, "what did you dream of the lighthouse password?").await.join(" "))
            .contains(&second)
    );
    assert!(scene.engine.memory.check().unwrap().is_sound());
    // With `quotes`, the post goes too.
    let mut scene = Scene::open(false, false).await;
    night(&mut scene).await;
    let receipt = scene.command(AN, COMMONS, "/forget last quotes").await;
    assert!(receipt.contains("messages 1, replies 2, memories with their index entries 3,"), "{receipt}");
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

#[tokio::test]
async fn a_dream_is_forgotten_with_its_post_and_without_its_sources() {
    let mut scene = Scene::open(false, false).await;
    night(&mut scene).await;
    let dream = scene.written(ANN, COMMONS, Kind::Dream).await.remove(0);
    let receipt = scene.command(ANN, COMMONS, &format!("/forget {}", dream.id)).await;
    assert!(receipt.contains("messages 0, replies 1, memories with their index entries 1,"), "{receipt}");
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await, []);
    assert_eq!(scene.written(ANN, COMMONS, Kind::Diary).await.len(), 1);
    assert_eq!(scene.find(ANN, COMMONS, "the lighthouse password").await.len(), 3, "two messages and the diary");
    // Deleting the post on the platform forgets the dream.
    let mut scene = Scene::open(false, false).await;
    night(&mut scene).await;
    let post = MessageId::new(format!("post~{}", scene.written(ANN, COMMONS, Kind::Dream).await[0].id.0)).unwrap();
    scene.delete(&post).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await, []);
}

#[tokio::test]
async fn a_newcomer_sees_no_dream_of_what_was_said_before_their_time() {
    let mut scene = Scene::open(true, false).await;
    let secrets = night(&mut scene).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await.len(), 1);
    scene.change(Change::Join(BOB, GUILD));
    assert_eq!(scene.written(BOB, COMMONS, Kind::Dream).await, []);
    assert!(secrets_in(&scene.find(BOB, COMMONS, "what did you dream?").await.join(" ")).is_disjoint(&secrets.into()));
    // Later dreams are about what all can read.
    let late = scene.tell(ANN, COMMONS).await;
    scene.wait(13 * HOUR).await;
    let dreams = scene.written(BOB, COMMONS, Kind::Dream).await;
    assert_eq!(dreams.iter().flat_map(|dream| secrets_in(&dream.text)).collect::<Vec<_>>(), [late]);
}

#[tokio::test]
async fn a_journal_in_a_private_channel_stays_there_and_a_dm_journal_with_its_person() {
    let mut scene = Scene::open(false, false).await;
    let answer = scene.command(ANN, DEN, "/journal channel here").await;
    assert!(answer.contains("posted here"), "{answer}");
    let commons = scene.tell(ANN, COMMONS).await;
    let den = scene.tell(AN, DEN).await;
    let own = scene.tell(ANN, DM_ANN).await;
    scene.tell(ANN, DM_ANN).await;
    scene.wait(HOUR).await;
    // The public channels have a mind of their own, which knows nothing of the den.
    let public = scene.written(AN, COMMONS, Kind::Dream).await;
    assert_eq!(public.iter().flat_map(|dream| secrets_in(&dream.text)).collect::<Vec<_>>(), [commons]);
    let dreamt = scene.written(AN, DEN, Kind::Dream).await;
    let dreamt: Vec<_> = dreamt.into_iter().filter(|dream| dream.scope != public[0].scope).collect();
    assert_eq!(secrets_in(&dreamt[0].text), [commons, den].into());
    assert_eq!(dreamt.len(), 1);
    // Somebody joins who may not read the realm: the dream is not for them.
    scene.change(Change::Join(BOB, Target::Chat(DEN)));
    assert_eq!(scene.written(BOB, DEN, Kind::Dream).await, []);
    let diary = scene.written(ANN, DM_ANN, Kind::Diary).await;
    assert!(secrets_in(&diary[0].text).contains(&own));
    // Her export holds what is hers alone, and not what rests on other people's words.
    let export = scene.command(ANN, DM_ANN, "/memory export").await;
    assert!(export.contains("\"diary\"") && !export.contains(&format!("\"{}\"", dreamt[0].id)), "{export}");
}

#[tokio::test]
async fn new_working_notes_replace_the_earlier_ones() {
    let mut scene = Scene::open(false, false).await;
    for _ in 0..3 {
        scene.tell(ANN, DM_ANN).await;
    }
    scene.wait(60).await;
    let first = scene.written(ANN, DM_ANN, Kind::Note).await;
    assert_eq!(first.len(), 1);
    for _ in 0..3 {
        scene.tell(ANN, DM_ANN).await;
    }
    scene.wait(60).await;
    let second = scene.written(ANN, DM_ANN, Kind::Note).await;
    assert!(second.len() == 1 && second[0].id > first[0].id);
    scene.command(ANN, DM_ANN, "/forget chat").await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::Note).await, []);
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

#[tokio::test]
async fn archives_can_be_imported_and_exported() {
    let mut scene = Scene::open(false, false).await;
    let refused = scene.command(AN, COMMONS, "/dream import I flew over the harbour.").await;
    assert!(refused.contains("Only admins can import"), "{refused}");
    let text = "/dream import # 2025-05-01 The harbour\nI flew over the harbour.";
    assert!(scene.command(ANN, COMMONS, text).await.contains("Imported: 1 dream."));
    let list = scene.command(AN, COMMONS, "/dream list").await;
    assert!(list.contains("dream, 2025-05-01: The harbour: I flew over the harbour."), "{list}");
    let shown = scene.command(AN, COMMONS, "/dream show 1").await;
    assert!(shown.contains("It was imported."), "{shown}");
    assert!(scene.command(AN, COMMONS, "/dream search harbour").await.contains("I flew"));
    let theirs = scene.command(ANN, DM_ANN, "/memory export").await;
    assert!(theirs.contains("I flew over the harbour."), "{theirs}");
    let export = scene.command(ANN, COMMONS, "/dream export").await;
    assert!(scene.command(ANN, DM_ANN, &format!("/dream import {export}")).await.contains("Imported: 1"));
    let broken = scene.command(ANN, DM_ANN, "/journal import [{\"text\":1}]").await;
    assert!(broken.contains("Nothing was imported: entry 1: `text` must be text."), "{broken}");
    scene.tell(ANN, DM_ANN).await;
    let written = scene.command(ANN, DM_ANN, "/journal trigger").await;
    assert!(written.contains("reflection, ") && !written.contains("which was asked"), "{written}");
    // Imported entries are forgotten with the person who imported them.
    scene.command(ANN, DM_ANN, "/forget me").await;
    assert!(scene.command(ANN, COMMONS, "/dream list").await.contains("There are no dreams"));
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

/// A model that never finishes its first background request, unless it is told to stop.
struct Slow {
    inner: Arc<dyn ChatModel>,
    held: AtomicBool,
    begun: Notify,
    given_up: Arc<AtomicUsize>,
}

#[async_trait]
impl ChatModel for Slow {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.inner.count_tokens(text)
    }

    async fn chat(&self, request: ChatRequest) -> Result<Reply, azera_model_api::Error> {
        if request.priority == Priority::Foreground || self.held.swap(true, Ordering::SeqCst) {
            return self.inner.chat(request).await;
        }
        let (sender, cancelled, reply) = Reply::channel();
        let given_up = self.given_up.clone();
        tokio::spawn(async move {
            cancelled.cancelled().await;
            given_up.fetch_add(1, Ordering::SeqCst);
            drop(sender);
        });
        self.begun.notify_one();
        Ok(reply)
    }

    async fn forget_session(&self, session: &SessionKey) -> Result<(), azera_model_api::Error> {
        self.inner.forget_session(session).await
    }
}

#[tokio::test]
async fn a_background_request_yields_to_live_chat_and_is_retried() {
    let mut scene = Scene::open(false, false).await;
    let given_up = Arc::<AtomicUsize>::default();
    let slow = Arc::new(Slow {
        inner: scene.engine.model.clone(),
        held: AtomicBool::new(false),
        begun: Notify::new(),
        given_up: given_up.clone(),
    });
    scene.engine.answered_by(slow.clone()).await;
    scene.tell(ANN, COMMONS).await;
    scene.tell(AN, COMMONS).await;
    scene.pass(HOUR);
    let inbound = scene.message(BOB, crate::findings::DM_BOB, "are you there? quiet");
    let azera = scene.engine.azera.clone();
    let writing = tokio::spawn(async move { azera.settle().await });
    slow.begun.notified().await;
    let outcome = scene.submit(inbound).await.unwrap();
    assert!(matches!(outcome, Outcome::Replied(_)));
    writing.await.unwrap().unwrap();
    assert_eq!(given_up.load(Ordering::SeqCst), 1);
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await.len(), 1);
}
