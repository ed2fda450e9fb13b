//! Fakes for tests of the Hearth: a trainer that trains nothing, a model that records its requests, and people who
//! talk.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azera_engine::{
    Evaluation, Hearth, KeepGoing, LossChange as Loss, OffloadTransport, TrainError, Trainer, TrainingJob,
    TrainingResult,
};
use azera_model_api::{
    ChatModel, ChatRequest, LoraId, ModelInfo, Priority, Reply, Score, ScoreRequest, Scorer, ScriptedModel, SessionKey,
};
use azera_types::{MessageId, PlatformId};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::findings::{AN, ANN, COMMONS, Scene};

pub const HOUR: i64 = 3_600;

/// Exchanges of a training job.
pub const WANTED: usize = 4;

/// What is said about a subject, one message each: one more than a job takes.
pub const THINGS: [&str; WANTED + 1] =
    ["kettle whistles", "bicycle squeaks", "harbour freezes", "orchard blooms", "library closes"];

/// Times that a long reply yields: whatever does not wait for its end finishes earlier.
const LONG_REPLY_YIELDS: usize = 100_000;

/// A model that records its requests.
pub struct RecordingModel {
    inner: Arc<dyn ChatModel>,
    /// The LoRAs of each reply to somebody, newest last.
    used_loras: Mutex<Vec<Vec<LoraId>>>,
    /// LoRAs it was told to forget.
    pub forgotten: Mutex<Vec<LoraId>>,
    /// What it says with a LoRA under test.
    pub recites: Mutex<Option<String>>,
    /// Notified at the start of the next reply to somebody, which then takes long.
    pub begins: Mutex<Option<Arc<Notify>>>,
    /// Whether training went on before that reply was finished.
    pub overtaken: Mutex<Option<bool>>,
    fake_trainer: Arc<FakeTrainer>,
}

#[async_trait]
impl ChatModel for RecordingModel {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.inner.count_tokens(text)
    }

    async fn chat(&self, request: ChatRequest) -> Result<Reply, azera_model_api::Error> {
        if request.priority == Priority::Foreground {
            self.used_loras.lock().unwrap().push(request.loras.iter().map(|it| it.id).collect());
            let begins = self.begins.lock().unwrap().take();
            if let Some(begins) = begins {
                begins.notify_one();
                for _ in 0..LONG_REPLY_YIELDS {
                    tokio::task::yield_now().await;
                }
                *self.overtaken.lock().unwrap() = Some(self.fake_trainer.went_on.load(Ordering::SeqCst));
            }
        }
        let recites = self.recites.lock().unwrap().clone();
        let tried = request.priority == Priority::Background && !request.loras.is_empty();
        if let Some(text) = recites.filter(|_| tried) {
            return ScriptedModel::new(Arc::new(move |_| text.clone())).chat(request).await;
        }
        self.inner.chat(ChatRequest { loras: Vec::new(), ..request }).await
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        Some(self)
    }

    async fn forget_session(&self, session: &SessionKey) -> Result<(), azera_model_api::Error> {
        self.inner.forget_session(session).await
    }

    async fn forget_lora(&self, lora: &LoraId) -> Result<(), azera_model_api::Error> {
        self.forgotten.lock().unwrap().push(*lora);
        Ok(())
    }
}

#[async_trait]
impl Scorer for RecordingModel {
    async fn score(&self, request: ScoreRequest) -> Result<Vec<Score>, azera_model_api::Error> {
        let of = |text: &String| Score { log_prob: if text.contains("zeppelin") { -9.0 } else { -3.0 }, tokens: 1 };
        Ok(request.continuations.iter().map(of).collect())
    }
}

/// Trains nothing, and returns a given evaluation.
pub struct FakeTrainer {
    pub jobs: Mutex<Vec<TrainingJob>>,
    pub evaluation: Mutex<Evaluation>,
    /// The base fingerprint; `None` for a model that cannot be trained.
    pub base_fingerprint: Mutex<Option<String>>,
    /// Once: notifies the first when a job begins, and waits for the second before it goes on.
    pub held: Mutex<Option<[Arc<Notify>; 2]>>,
    /// Whether it was ever allowed to go on.
    went_on: AtomicBool,
}

#[async_trait]
impl Trainer for FakeTrainer {
    fn base_fingerprint(&self, _: &str) -> Option<String> {
        self.base_fingerprint.lock().unwrap().clone()
    }

    async fn learn(&self, job: TrainingJob, may_go_on: KeepGoing) -> Result<TrainingResult, TrainError> {
        let held = self.held.lock().unwrap().take();
        if let Some([begun, go_on]) = &held {
            begun.notify_one();
            go_on.notified().await;
        }
        let still = tokio::task::spawn_blocking(move || may_go_on()).await.unwrap();
        self.went_on.fetch_or(still, Ordering::SeqCst);
        if held.is_some() && !still {
            return Err(TrainError::BrokenOff);
        }
        assert!(still, "nobody waits for an answer");
        let mut jobs = self.jobs.lock().unwrap();
        let number = u8::try_from(jobs.len() + 1).unwrap();
        std::fs::write(&job.to, weights(number)).unwrap();
        jobs.push(job);
        Ok(TrainingResult { id: id(number), evaluation: *self.evaluation.lock().unwrap() })
    }
}

impl FakeTrainer {
    /// Returns all prompts and replies in all jobs so far.
    pub fn seen(&self) -> String {
        self.seen_after(0)
    }

    /// Returns the same without the first jobs.
    pub fn seen_after(&self, jobs: usize) -> String {
        let all = self.jobs.lock().unwrap();
        let training_examples = all.iter().skip(jobs).flat_map(|job| job.training_examples.iter().chain(&job.older));
        training_examples
            .map(|training_example| {
                let prompt: String = training_example.messages.iter().map(|it| format!("{}\n", it.content)).collect();
                format!("{prompt}{}\n{}\n", training_example.words, training_example.reply)
            })
            .collect()
    }

    pub fn count(&self) -> usize {
        self.jobs.lock().unwrap().len()
    }
}

pub struct Learning {
    pub scene: Scene,
    pub fake_trainer: Arc<FakeTrainer>,
    pub model: Arc<RecordingModel>,
    pub folder: TempDir,
}

/// Returns what the trainer writes the first time, the second time and so on.
pub fn weights(number: u8) -> String {
    format!("weights {number}")
}

pub fn id(number: u8) -> LoraId {
    LoraId::new(Sha256::digest(weights(number)).into())
}

impl Learning {
    pub async fn open(barred: bool) -> Self {
        Self::open_with(barred, Arc::default()).await
    }

    /// Opens it with a transport for jobs, which may change before a restart.
    pub async fn open_with(barred: bool, transport: Arc<Mutex<Option<Arc<dyn OffloadTransport>>>>) -> Self {
        Self::open_within(barred, transport, 1 << 20).await
    }

    /// Opens it with a maximum size of all LoRAs.
    pub async fn open_within(
        barred: bool,
        transport: Arc<Mutex<Option<Arc<dyn OffloadTransport>>>>,
        max_bytes: u64,
    ) -> Self {
        let mut scene = Scene::open(false, true).await;
        let same = Loss { before: 2.0, after: 2.0 };
        let evaluation = Evaluation {
            learned: Loss { before: 2.0, after: 1.0 },
            older: Some(same),
            voice: Some(same),
            tasks: same,
            prose: same,
            tells_secrets: false,
            largest_cosine: 0.0,
            share: 1.0,
            rank: 4,
        };
        let fake_trainer = Arc::new(FakeTrainer {
            jobs: Mutex::default(),
            evaluation: Mutex::new(evaluation),
            base_fingerprint: Mutex::new(Some("ground".into())),
            held: Mutex::default(),
            went_on: AtomicBool::default(),
        });
        let folder = tempfile::tempdir().unwrap();
        let (trainer, lora_folder) = (fake_trainer.clone(), folder.path().to_owned());
        scene.engine.hearth = Some(Arc::new(move || Hearth {
            trainer: Some(trainer.clone()),
            transport: transport.lock().unwrap().clone(),
            folder: lora_folder.clone(),
            exchanges: WANTED,
            max_bytes,
            barred: match barred {
                true => BTreeMap::from([(PlatformId::new("sim").unwrap(), "Its policy forbids it.".to_owned())]),
                false => BTreeMap::new(),
            },
        }));
        let inner = scene.engine.model.clone();
        let model = Arc::new(RecordingModel {
            inner,
            used_loras: Mutex::default(),
            forgotten: Mutex::default(),
            recites: Mutex::default(),
            begins: Mutex::default(),
            overtaken: Mutex::default(),
            fake_trainer: fake_trainer.clone(),
        });
        scene.engine.answered_by(model.clone()).await;
        Self { scene, fake_trainer, model, folder }
    }

    /// Somebody says several things, and the night goes by.
    pub async fn talk(&mut self, who: usize, place: usize, about: &str) -> Vec<MessageId> {
        let mut said = Vec::new();
        for thing in THINGS {
            self.scene.say(who, place, &format!("{about} {thing} quiet")).await;
            said.push(self.scene.last());
        }
        // First the surprise is measured, then it is night.
        self.scene.wait(2 * 60).await;
        self.scene.wait(2 * HOUR).await;
        self.scene.wait(2 * HOUR).await;
        said
    }

    /// Two people talk in the hall in turns, and the night goes by.
    pub async fn talk_in_turns(&mut self, hers: &str, his: &str) {
        for thing in THINGS {
            self.scene.say(AN, COMMONS, &format!("{his} {thing} quiet")).await;
            self.scene.say(ANN, COMMONS, &format!("{hers} {thing} quiet")).await;
        }
        self.scene.wait(2 * 60).await;
        self.scene.wait(4 * HOUR).await;
    }

    /// Returns the LoRAs of the next reply.
    pub async fn reply(&mut self, who: usize, place: usize) -> Vec<LoraId> {
        self.scene.say(who, place, "and now quiet").await;
        self.model.used_loras.lock().unwrap().last().cloned().unwrap()
    }

    /// Returns the files in the Hearth's folder.
    pub fn files(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
        files.sort();
        files
    }
}
