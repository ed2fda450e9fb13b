//! What tests of learning are made with: a school that trains nothing, a model that notes what it is asked with, and who talks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azera_chat::{Change as Loss, Courier, Course, Examined, Hearth, LearnError, MayGoOn, Trained, Trainer};
use azera_model::{
    AdapterId, ChatModel, ChatRequest, ModelInfo, Priority, Reply, Score, ScoreRequest, Scorer, ScriptedModel,
    SessionKey,
};
use azera_types::{MessageId, PlatformId};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::findings::{AN, ANN, HALL, Scene};

pub const HOUR: i64 = 3_600;

/// Exchanges of a course.
pub const WANTED: usize = 4;

/// What is said about something, a message each: one more than a course takes.
pub const THINGS: [&str; WANTED + 1] =
    ["kettle whistles", "bicycle squeaks", "harbour freezes", "orchard blooms", "library closes"];

/// Turns of others that a long reply gives way for: whatever does not wait for its end is done before.
const A_WHILE: usize = 100_000;

/// A model that notes what it is asked with.
pub struct Asked {
    inner: Arc<dyn ChatModel>,
    /// The adapters of each reply to somebody, the newest last.
    live: Mutex<Vec<Vec<AdapterId>>>,
    /// Adapters it was told to forget.
    pub forgotten: Mutex<Vec<AdapterId>>,
    /// What it says with an adapter that is tried.
    pub recites: Mutex<Option<String>>,
    /// The next reply to somebody begins with telling this, and takes a while.
    pub begins: Mutex<Option<Arc<Notify>>>,
    /// Whether learning went on before that reply was there.
    pub overtaken: Mutex<Option<bool>>,
    school: Arc<School>,
}

#[async_trait]
impl ChatModel for Asked {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.inner.count_tokens(text)
    }

    async fn chat(&self, request: ChatRequest) -> Result<Reply, azera_model::Error> {
        if request.priority == Priority::Live {
            self.live.lock().unwrap().push(request.adapters.iter().map(|it| it.id).collect());
            let begins = self.begins.lock().unwrap().take();
            if let Some(begins) = begins {
                begins.notify_one();
                for _ in 0..A_WHILE {
                    tokio::task::yield_now().await;
                }
                *self.overtaken.lock().unwrap() = Some(self.school.went_on.load(Ordering::SeqCst));
            }
        }
        let recites = self.recites.lock().unwrap().clone();
        let tried = request.priority == Priority::Background && !request.adapters.is_empty();
        if let Some(text) = recites.filter(|_| tried) {
            return ScriptedModel::new(Arc::new(move |_| text.clone())).chat(request).await;
        }
        self.inner.chat(ChatRequest { adapters: Vec::new(), ..request }).await
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        Some(self)
    }

    async fn forget_session(&self, session: &SessionKey) -> Result<(), azera_model::Error> {
        self.inner.forget_session(session).await
    }

    async fn forget_adapter(&self, adapter: &AdapterId) -> Result<(), azera_model::Error> {
        self.forgotten.lock().unwrap().push(*adapter);
        Ok(())
    }
}

#[async_trait]
impl Scorer for Asked {
    async fn score(&self, request: ScoreRequest) -> Result<Vec<Score>, azera_model::Error> {
        let of = |text: &String| Score { log_prob: if text.contains("zeppelin") { -9.0 } else { -3.0 }, tokens: 1 };
        Ok(request.continuations.iter().map(of).collect())
    }
}

/// Trains nothing, and says what it is told to say of it.
pub struct School {
    pub courses: Mutex<Vec<Course>>,
    pub examined: Mutex<Examined>,
    /// What it trains for; nothing that could learn, if nothing.
    pub ground: Mutex<Option<String>>,
    /// It tells the first that it is at it, and waits for the second before it goes on, once.
    pub held: Mutex<Option<[Arc<Notify>; 2]>>,
    /// Whether it was ever let go on.
    went_on: AtomicBool,
}

#[async_trait]
impl Trainer for School {
    fn ground(&self, _: &str) -> Option<String> {
        self.ground.lock().unwrap().clone()
    }

    async fn learn(&self, course: Course, may_go_on: MayGoOn) -> Result<Trained, LearnError> {
        let held = self.held.lock().unwrap().take();
        if let Some([begun, go_on]) = &held {
            begun.notify_one();
            go_on.notified().await;
        }
        let still = tokio::task::spawn_blocking(move || may_go_on()).await.unwrap();
        self.went_on.fetch_or(still, Ordering::SeqCst);
        if held.is_some() && !still {
            return Err(LearnError::BrokenOff);
        }
        assert!(still, "nobody waits for an answer");
        let mut courses = self.courses.lock().unwrap();
        let number = u8::try_from(courses.len() + 1).unwrap();
        std::fs::write(&course.to, weights(number)).unwrap();
        courses.push(course);
        Ok(Trained { id: id(number), examined: *self.examined.lock().unwrap() })
    }
}

impl School {
    /// All that was to be learnt, and the persona was to keep, by now.
    pub fn seen(&self) -> String {
        self.seen_after(0)
    }

    /// The same without the first courses.
    pub fn seen_after(&self, courses: usize) -> String {
        let all = self.courses.lock().unwrap();
        let lessons = all.iter().skip(courses).flat_map(|course| course.lessons.iter().chain(&course.older));
        lessons
            .map(|lesson| {
                let prompt: String = lesson.messages.iter().map(|it| format!("{}\n", it.content)).collect();
                format!("{prompt}{}\n{}\n", lesson.words, lesson.reply)
            })
            .collect()
    }

    pub fn count(&self) -> usize {
        self.courses.lock().unwrap().len()
    }
}

pub struct Learning {
    pub scene: Scene,
    pub school: Arc<School>,
    pub model: Arc<Asked>,
    pub folder: TempDir,
}

/// What it writes, the first time, the second and so on.
pub fn weights(number: u8) -> String {
    format!("weights {number}")
}

pub fn id(number: u8) -> AdapterId {
    AdapterId::new(Sha256::digest(weights(number)).into())
}

impl Learning {
    pub async fn open(barred: bool) -> Self {
        Self::open_with(barred, Arc::default()).await
    }

    /// The same with whoever carries courses away; who that is may change before a restart.
    pub async fn open_with(barred: bool, courier: Arc<Mutex<Option<Arc<dyn Courier>>>>) -> Self {
        Self::open_within(barred, courier, 1 << 20).await
    }

    /// The same with so many bytes for adapters.
    pub async fn open_within(barred: bool, courier: Arc<Mutex<Option<Arc<dyn Courier>>>>, max_bytes: u64) -> Self {
        let mut scene = Scene::open(false, true).await;
        let same = Loss { before: 2.0, after: 2.0 };
        let examined = Examined {
            learnt: Loss { before: 2.0, after: 1.0 },
            older: Some(same),
            voice: Some(same),
            tasks: same,
            prose: same,
            tells_secrets: false,
            largest_cosine: 0.0,
            share: 1.0,
            rank: 4,
        };
        let school = Arc::new(School {
            courses: Mutex::default(),
            examined: Mutex::new(examined),
            ground: Mutex::new(Some("ground".into())),
            held: Mutex::default(),
            went_on: AtomicBool::default(),
        });
        let folder = tempfile::tempdir().unwrap();
        let (trainer, kept) = (school.clone(), folder.path().to_owned());
        scene.house.hearth = Some(Arc::new(move || Hearth {
            trainer: Some(trainer.clone()),
            courier: courier.lock().unwrap().clone(),
            folder: kept.clone(),
            exchanges: WANTED,
            max_bytes,
            barred: match barred {
                true => BTreeMap::from([(PlatformId::new("sim").unwrap(), "Its policy forbids it.".to_owned())]),
                false => BTreeMap::new(),
            },
        }));
        let inner = scene.house.model.clone();
        let model = Arc::new(Asked {
            inner,
            live: Mutex::default(),
            forgotten: Mutex::default(),
            recites: Mutex::default(),
            begins: Mutex::default(),
            overtaken: Mutex::default(),
            school: school.clone(),
        });
        scene.house.answered_by(model.clone()).await;
        Self { scene, school, model, folder }
    }

    /// Somebody says several things of their own, and the night goes by.
    pub async fn talk(&mut self, who: usize, place: usize, about: &str) -> Vec<MessageId> {
        let mut said = Vec::new();
        for thing in THINGS {
            self.scene.say(who, place, &format!("{about} {thing} quiet")).await;
            said.push(self.scene.last());
        }
        // First it is measured how surprising it was, then it is night.
        self.scene.wait(2 * 60).await;
        self.scene.wait(2 * HOUR).await;
        self.scene.wait(2 * HOUR).await;
        said
    }

    /// The same by two in the hall, one after the other.
    pub async fn talk_in_turns(&mut self, hers: &str, his: &str) {
        for thing in THINGS {
            self.scene.say(AN, HALL, &format!("{his} {thing} quiet")).await;
            self.scene.say(ANN, HALL, &format!("{hers} {thing} quiet")).await;
        }
        self.scene.wait(2 * 60).await;
        self.scene.wait(4 * HOUR).await;
    }

    /// The adapters of the next reply.
    pub async fn reply(&mut self, who: usize, place: usize) -> Vec<AdapterId> {
        self.scene.say(who, place, "and now quiet").await;
        self.model.live.lock().unwrap().last().cloned().unwrap()
    }

    /// What is kept.
    pub fn files(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
        files.sort();
        files
    }
}
