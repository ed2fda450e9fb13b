//! Measures what it costs to learn from imported conversations: to record them, to search them for what is worth keeping,
//! and to compare that with earlier statements.
//!
//!     cargo bench --workspace --bench import_learning -- 1000 4000 16000
//!
//! Each number is an export of so many messages in conversations of 20, the newest conversation first, as exports have
//! them. It runs through the real engine, on stores in memory and with an embedding model that only adds up words: a real
//! one costs milliseconds for each text, so the texts that are embedded for each message are counted, too. Prints a JSON
//! object for each export.

#![expect(clippy::unwrap_used, reason = "a measurement may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use azera_affect::{Classifiers, Constants, MindParams};
use azera_config::{ExtractWithModel, Gardener};
use azera_engine::{BackgroundWriter, CatalogModel, ChatConfig, Engine, EngineDependencies, ModelCatalog};
use azera_memory::conformance::record;
use azera_memory::{Answering, Import, Limits, Memory, NewImported, RamStore, ReadScope};
use azera_model_api::{ChatMessage, ChatModel, Embedder, EmbedderInfo, Error, Priority, Purpose, ScriptedModel};
use azera_types::{
    ChatId, Clock, ManualClock, MessageId, PersonId, PersonaId, Place, PlaceKind, ReadableScopes, Scope, Text,
    TimeZone, Timestamp,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Messages of a conversation. Every second one is the person's.
const CONVERSATION: usize = 20;

/// Numbers of a vector.
const DIMENSION: usize = 64;

/// When the import is made, in seconds since 1970.
const NOW_S: i64 = 1_750_000_000;

/// Seconds between two turns of the background.
const TURN_S: i64 = 700;

/// Adds up words, and counts the texts.
struct CountingEmbedder {
    info: EmbedderInfo,
    texts: AtomicUsize,
}

fn embed(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; DIMENSION];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash = word
            .to_lowercase()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        vector[(hash >> 33) as usize % DIMENSION] += 1.0;
    }
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt().max(1.0);
    vector.iter().map(|value| value / length).collect()
}

#[async_trait]
impl Embedder for CountingEmbedder {
    fn info(&self) -> &EmbedderInfo {
        &self.info
    }

    async fn embed(&self, texts: Vec<String>, _: Purpose, _: Priority) -> Result<Vec<Vec<f32>>, Error> {
        self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        Ok(texts.iter().map(|text| embed(text)).collect())
    }
}

/// The only chat model.
struct OneModel(Arc<dyn ChatModel>);

#[async_trait]
impl ModelCatalog for OneModel {
    fn list(&self) -> Vec<CatalogModel> {
        Vec::new()
    }

    async fn load(&self, _: &str) -> Result<Arc<dyn ChatModel>, String> {
        Ok(self.0.clone())
    }

    async fn pull(&self, name: &str) -> Result<String, String> {
        Err(format!("there is no model {name}"))
    }

    async fn remove(&self, name: &str) -> Result<String, String> {
        Err(format!("there is no model {name}"))
    }
}

/// An engine on an empty record.
struct Run {
    memory: Arc<Memory>,
    embedder: Arc<CountingEmbedder>,
    clock: ManualClock,
    engine: Engine,
    person: PersonId,
    persona: PersonaId,
}

impl Run {
    fn new(classifiers: &Arc<Classifiers>) -> Self {
        let info =
            EmbedderInfo { id: "words".into(), dimension: DIMENSION, similarity_floor: 0.1, asks_otherwise: false };
        let embedder = Arc::new(CountingEmbedder { info, texts: AtomicUsize::new(0) });
        let memory = Arc::new(record(Arc::new(RamStore::new())));
        let clock = ManualClock::new(Timestamp::from_second(NOW_S).unwrap());
        let model: Arc<dyn ChatModel> =
            Arc::new(ScriptedModel::new(Arc::new(|_: &[ChatMessage]| "Nothing.".to_owned())));
        let persona = PersonaId::new("azera").unwrap();
        let garden = Gardener { extract_with_model: ExtractWithModel::Never, ..Gardener::default() };
        let engine = Engine::new(EngineDependencies {
            memory: memory.clone(),
            model: model.clone(),
            embedder: embedder.clone(),
            clock: Arc::new(clock.clone()),
            models: Arc::new(OneModel(model)),
            params: Arc::new(MindParams { constants: Constants::default(), zone: TimeZone::UTC }),
            config: ChatConfig {
                persona: persona.clone(),
                user_persona: PersonaId::new("protag").unwrap(),
                wake_names: Vec::new(),
                answering: Answering::Addressed,
                queue_per_chat: 8,
                history_messages: 40,
                reply_tokens: 1_000,
                context_tokens: 8_000,
                thinking: false,
                thinking_tokens: 0,
                sampling: azera_config::Sampling::default(),
                seed: Some(1),
                recalled: None,
                locale: None,
                limits: Limits::default(),
                projects: azera_config::Projects::default(),
                garden,
            },
        });
        let learned = classifiers.clone();
        engine.learn(move || {
            let learned = learned.clone();
            async move { Ok::<_, std::convert::Infallible>(learned) }
        });
        engine.add_job(Arc::new(BackgroundWriter::of(&engine)));
        Self { memory, embedder, clock, engine, person: PersonId::new("console:ann").unwrap(), persona }
    }

    fn import(&self, messages: usize) {
        let import = Import {
            id: "export".into(),
            by: self.person.clone(),
            persona: self.persona.clone(),
            scope: Scope::Dm(self.person.clone()),
            file: "conversations.json".into(),
            format: "chatgpt".into(),
            learns: true,
        };
        let assistant = PersonId::new("import:assistant").unwrap();
        for number in 0..messages {
            let (conversation, line) = (number / CONVERSATION, number % CONVERSATION);
            // The newest conversation comes first, and its own lines are in order.
            let second = NOW_S - (conversation as i64 + 1) * 86_400 + line as i64 * 60;
            let is_own = line % 2 == 0;
            let new = NewImported {
                id: MessageId::new(format!("import:{number}")).unwrap(),
                chat: ChatId::new(format!("import:c{conversation}")).unwrap(),
                title: Some(format!("Talk {conversation}")),
                after: None,
                person: if is_own { self.person.clone() } else { assistant.clone() },
                name: if is_own { "Ann".into() } else { "ChatGPT".into() },
                text: Text::new(if is_own { statement(number) } else { format!("Noted, number {number}.") }),
                at: Timestamp::from_second(second).unwrap(),
            };
            self.memory.imports().add(&import, new, self.clock.now()).unwrap();
        }
        self.memory.imports().flush().unwrap();
    }

    async fn search(&self) {
        while !self.engine.search_imports(None, &CancellationToken::new()).await.unwrap() {}
    }

    /// Runs turns of the background until every statement was compared.
    async fn compare(&self) {
        let waits = || self.memory.imports().pending().unwrap().iter().any(|import| import.waits);
        while waits() {
            self.clock.advance_to(Timestamp::from_second(self.clock.now().as_second() + TURN_S).unwrap());
            self.engine.run_jobs().await;
        }
    }

    fn marked(&self) -> usize {
        let chat = ChatId::new("import:c0").unwrap();
        let place = Place { chat, kind: PlaceKind::Dm(self.person.clone()), since: None };
        let read_scope = ReadScope::in_place(self.persona.clone(), &place, &ReadableScopes::default());
        self.memory.memories().salient(&read_scope, &self.person, usize::MAX).unwrap().len()
    }
}

/// Returns a made-up statement. Some repeat an earlier one, and some tell that something changed.
fn statement(number: usize) -> String {
    const THINGS: [&str; 8] = ["dentist", "piano", "garden", "passport", "boat", "tax", "visa", "choir"];
    const DAYS: [&str; 5] = ["monday", "tuesday", "wednesday", "thursday", "friday"];
    let (thing, day) = (THINGS[number / 2 % THINGS.len()], DAYS[number / 3 % DAYS.len()]);
    match number / 2 % 5 {
        0 => format!("my {thing} appointment is on {day} now"),
        1 => format!("I live in house number {} and I work as a nurse at ward {}", number % 97, number % 89),
        2 => format!("I am allergic to plum{} and I love soup{}", number % 211, number % 199),
        3 => "ok then, go on please".to_owned(),
        _ => format!("can you explain how valve{number} works with pump{}?", number % 31),
    }
}

async fn measure(classifiers: &Arc<Classifiers>, messages: usize) -> Value {
    let run = Run::new(classifiers);
    let mut steps = serde_json::Map::new();
    let mut note = |name: &str, begun: Instant, texts: usize| {
        let ms = begun.elapsed().as_secs_f64() * 1_000.0 / messages as f64;
        let texts = (run.embedder.texts.load(Ordering::Relaxed) - texts) as f64 / messages as f64;
        let rounded = |value: f64| (value * 1_000.0).round() / 1_000.0;
        steps.insert(name.to_owned(), json!({"ms": rounded(ms), "texts": rounded(texts)}));
    };
    let texts = || run.embedder.texts.load(Ordering::Relaxed);
    let (begun, before) = (Instant::now(), texts());
    run.import(messages);
    note("record", begun, before);
    let (begun, before) = (Instant::now(), texts());
    run.search().await;
    note("search", begun, before);
    let (begun, before) = (Instant::now(), texts());
    run.compare().await;
    note("compare", begun, before);
    json!({"messages": messages, "marked": run.marked(), "per_message": steps})
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let vectors: Vec<Vec<f32>> = Classifiers::examples().unwrap().iter().map(|example| embed(example)).collect();
        let classifiers = Arc::new(Classifiers::learn(&vectors).unwrap());
        // Cargo adds an option of its own.
        for messages in std::env::args().skip(1).filter_map(|argument| argument.parse().ok()) {
            println!("{}", measure(&classifiers, messages).await);
        }
    });
}
