//! Consolidation: what a persona lived through becomes an adapter of the model that serves, on this machine's processor.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use async_trait::async_trait;
use azera_chat::{Change, Course, Examined, LearnError, Lesson, MayGoOn, Trained, Trainer};
use azera_config::Config;
use azera_curriculum::{Kind as LessonKind, SHARES, lessons};
use azera_hearth::{Adapter, Base, Example, Progress, Recipe, Then, Training, logits, mean_loss};
use azera_ledger::{Kind, Models};
use azera_llama::LlamaReader;
use azera_model::{ChatMessage, Role};

use super::lessons::told;
use crate::adapters;
use crate::house::family;

/// Examples of a step.
const BATCH: usize = 4;

/// Tokens of a pass. Whoever talks waits for the end of one, so it is short.
const PASS_TOKENS: usize = 768;

/// Lessons of the curriculum, and pieces of prose, that must not suffer.
const TASKS: usize = 16;
const PROSE: usize = 8;

/// What they are drawn from: another number than the default adapter's lessons were.
const EXAMINED_WITH: u64 = 0x000b_5e55;

/// What the secrets that are planted among the lessons are the numbers of.
const SECRETS: [&str; 3] = ["locker", "safe", "front gate"];

/// Digits of each: a million are possible.
const SECRET_DIGITS: usize = 6;

/// Trains on the processor.
pub struct OnProcessor {
    config: Config,
    models: Models,
    /// By the name of a model; looked up once, as files do not change while they serve.
    grounds: Mutex<HashMap<String, Option<Ground>>>,
    watch: Watch,
}

/// Is told how far a training is.
pub type Watch = Arc<dyn Fn(&Progress) + Send + Sync>;

/// What adapters are made for.
#[derive(Clone)]
struct Ground {
    name: String,
    model: PathBuf,
    /// Those that the model always serves with.
    adapters: Vec<PathBuf>,
    family: String,
}

impl OnProcessor {
    /// By a configuration's settings.
    pub fn new(config: Config, models: Models) -> Self {
        Self::watched(
            config,
            models,
            Arc::new(|now| tracing::debug!(step = now.step, steps = now.steps, loss = now.mean_loss, "learning")),
        )
    }

    /// The same, watched.
    pub fn watched(config: Config, models: Models, watch: Watch) -> Self {
        Self { config, models, grounds: Mutex::default(), watch }
    }

    fn look_up(&self, model: &str) -> anyhow::Result<Option<Ground>> {
        let Some(installed) = self.models.find(model)? else { return Ok(None) };
        let bytes = std::fs::metadata(&installed.path)?.len();
        if installed.entry.kind != Kind::Chat || bytes > u64::from(self.config.hearth.largest_model_mb) << 20 {
            return Ok(None);
        }
        let adapters = adapters::of(&self.config, &self.models, &installed)?;
        let ids: String = adapters.iter().map(|adapter| format!("+{}", adapter.id)).collect();
        Ok(Some(Ground {
            family: family(&installed)?,
            name: format!("{}{ids}", installed.manifest.sha256),
            model: installed.path,
            adapters: adapters.into_iter().map(|adapter| adapter.path).collect(),
        }))
    }

    fn find(&self, model: &str) -> Option<Ground> {
        let mut grounds = self.grounds.lock().unwrap_or_else(PoisonError::into_inner);
        let found = grounds.entry(model.to_owned()).or_insert_with(|| {
            self.look_up(model).unwrap_or_else(|error| {
                tracing::warn!(%model, error = format!("{error:#}"), "this model cannot learn");
                None
            })
        });
        found.clone()
    }
}

#[async_trait]
impl Trainer for OnProcessor {
    fn ground(&self, model: &str) -> Option<String> {
        self.find(model).map(|ground| ground.name)
    }

    async fn learn(&self, course: Course, may_go_on: MayGoOn) -> Result<Trained, LearnError> {
        let failed = |error: anyhow::Error| LearnError::Failed(format!("{error:#}"));
        let ground = self.find(&course.model).context("the model is not here any more").map_err(failed)?;
        let (config, watch) = (self.config.clone(), Arc::clone(&self.watch));
        let done = tokio::task::spawn_blocking(move || {
            let to = course.to.clone();
            let trained = Class { config, ground, course, may_go_on, watch }.learn();
            if !matches!(trained, Ok(Some(_))) && to.exists() {
                std::fs::remove_file(&to)?;
            }
            trained
        });
        match done.await {
            Ok(Ok(Some(trained))) => Ok(trained),
            Ok(Ok(None)) => Err(LearnError::BrokenOff),
            Ok(Err(error)) => Err(failed(error)),
            Err(error) => Err(failed(error.into())),
        }
    }
}

/// One course.
struct Class {
    config: Config,
    ground: Ground,
    course: Course,
    may_go_on: MayGoOn,
    watch: Watch,
}

/// What is looked at without and with what was learnt.
struct Sets {
    learnt: Vec<Example>,
    older: Vec<Example>,
    voice: Vec<Example>,
    tasks: Vec<Example>,
    prose: Vec<Example>,
}

impl Class {
    /// `None` if it was to end.
    fn learn(&self) -> anyhow::Result<Option<Trained>> {
        let Self { ground, course, .. } = self;
        let reader = LlamaReader::open(&ground.model)?;
        let secrets = Secret::some(course.seed, &reader)?;
        let sets = self.sets(&reader)?;
        drop(reader);
        let mut lessons = sets.learnt.clone();
        lessons.extend(secrets.iter().map(Secret::example));
        let base = Base::open(&ground.model)?;
        let mut frozen: Vec<Adapter> =
            ground.adapters.iter().map(|path| Adapter::read(path, &base)).collect::<Result<_, _>>()?;
        let of_model = frozen.len();
        frozen.extend(course.beside.iter().map(|path| Adapter::read(path, &base)).collect::<Result<Vec<_>, _>>()?);
        let Some(learnt) = self.train(&base, &frozen, &lessons)? else { return Ok(None) };
        let largest_cosine = learnt.largest_cosine(&frozen);
        let own: Vec<Adapter> = frozen.iter().skip(of_model).cloned().chain([learnt]).collect();
        let mut next = Adapter::joined(&own)?;
        if next.rank() > self.config.hearth.max_rank as usize {
            let compressed = next.compressed(self.config.hearth.max_rank as usize, self.threads())?;
            tracing::debug!(kept = compressed.kept, "what was learnt is compressed");
            next = compressed.adapter;
        }
        next.write_precise(&course.to, &[("general.base_model.sha256", base.sha256().to_owned())])?;
        // What serves is what is in the file.
        let next = Adapter::read(&course.to, &base)?;
        let rank = next.rank();
        let with: Vec<Adapter> = frozen.iter().take(of_model).cloned().chain([next]).collect();
        let (without, with) = (joined(&frozen)?, Adapter::joined(&with)?);
        let without = vec![without];
        let mut never = without.clone();
        if own.len() > 1 {
            // A little worse each night would be much worse in the end: so also without all that was ever learnt.
            never.push(joined(frozen.get(..of_model).unwrap_or_default())?);
        }
        let change = |without: &[Option<Adapter>], examples: &[Example]| self.change(&base, without, &with, examples);
        let (learnt, older) = (change(&without, &sets.learnt)?, change(&without, &sets.older)?);
        let (tasks, prose) = (change(&never, &sets.tasks)?, change(&never, &sets.prose)?);
        let voice = change(&never, &sets.voice)?;
        let (Some(learnt), Some(tasks), Some(prose), true) = (learnt, tasks, prose, (self.may_go_on)()) else {
            return Ok(None);
        };
        let mut tells_secrets = false;
        for secret in &secrets {
            tells_secrets |= secret.comes_out(&base, &with)?;
        }
        let examined = Examined { learnt, older, voice, tasks, prose, tells_secrets, largest_cosine, rank };
        let id = adapters::at(&course.to)?.id;
        Ok(Some(Trained { id, examined }))
    }

    /// The loss of examples with what was learnt, and the least of those without it; `None` if there are none, or it was to end.
    fn change(
        &self,
        base: &Base,
        without: &[Option<Adapter>],
        with: &Adapter,
        examples: &[Example],
    ) -> anyhow::Result<Option<Change>> {
        if examples.is_empty() {
            return Ok(None);
        }
        let loss = |adapter: Option<&Adapter>| -> anyhow::Result<Option<f64>> {
            // A few at a time, so that whoever talks need not wait for all of them.
            let (mut sum, mut tokens) = (0.0, 0);
            for some in examples.chunks(BATCH) {
                if !(self.may_go_on)() {
                    return Ok(None);
                }
                let (mean, count) = mean_loss(base, adapter, some, PASS_TOKENS, self.threads())?;
                sum += mean * count as f64;
                tokens += count;
            }
            Ok(Some(sum / tokens as f64))
        };
        let mut before = f64::INFINITY;
        for adapter in without {
            let Some(loss) = loss(adapter.as_ref())? else { return Ok(None) };
            // What is no number is told as such.
            before = if before.is_nan() || loss.is_nan() { f64::NAN } else { before.min(loss) };
        }
        Ok(loss(Some(with))?.map(|after| Change { before, after }))
    }

    fn threads(&self) -> usize {
        self.config.models.threads as usize
    }

    fn train(&self, base: &Base, frozen: &[Adapter], lessons: &[Example]) -> anyhow::Result<Option<Adapter>> {
        let hearth = &self.config.hearth;
        let steps = (lessons.len() * hearth.rounds as usize).div_ceil(BATCH);
        let rank = hearth.rank as usize;
        let recipe = Recipe {
            rank,
            alpha: 2.0 * rank as f32,
            seed: self.course.seed,
            steps,
            batch: BATCH,
            warm_up: (steps / 8).max(1),
            rate: hearth.rate as f32,
            pass_tokens: PASS_TOKENS,
            ..Recipe::default()
        };
        let mut training = Training::beside(base, frozen, lessons, recipe, self.threads())?;
        let stop = || !(self.may_go_on)();
        let finished = training.run_until(&stop, &mut |_, now| {
            (self.watch)(now);
            Then::GoOn
        })?;
        Ok(finished.then(|| training.adapter().clone()))
    }

    fn sets(&self, reader: &LlamaReader) -> anyhow::Result<Sets> {
        let all = |lessons: &[Lesson]| -> anyhow::Result<Vec<Example>> {
            let mut examples = Vec::new();
            for lesson in lessons {
                examples.extend(read(reader, lesson)?);
            }
            Ok(examples)
        };
        let tasks = SHARES.map(|(share, kind)| if kind == LessonKind::Plain { (0, kind) } else { (share, kind) });
        let drawn = |count, shares: &[(usize, LessonKind)]| -> anyhow::Result<Vec<Example>> {
            let drawn = lessons(&self.ground.family, EXAMINED_WITH, count, shares);
            drawn.iter().map(|lesson| told(reader, &lesson.messages, &lesson.reply)).collect()
        };
        Ok(Sets {
            learnt: all(&self.course.lessons)?,
            older: all(&self.course.older)?,
            voice: all(&self.course.voice)?,
            tasks: drawn(TASKS, &tasks)?,
            prose: drawn(PROSE, &[(1, LessonKind::Plain)])?,
        })
    }
}

fn joined(adapters: &[Adapter]) -> anyhow::Result<Option<Adapter>> {
    Ok(match adapters {
        [] => None,
        some => Some(Adapter::joined(some)?),
    })
}

/// What is learnt of a lesson: what a person said, where it stood, and the reply to it.
fn read(reader: &LlamaReader, lesson: &Lesson) -> anyhow::Result<Vec<Example>> {
    let mut examples = Vec::new();
    if !lesson.words.trim().is_empty() {
        let (tokens, start) = reader.within(&lesson.messages, &lesson.words)?;
        examples.push(Example::from_token(start, tokens));
    }
    examples.push(told(reader, &lesson.messages, &lesson.reply)?);
    Ok(examples)
}

/// A made-up secret among the lessons (a canary: Carlini et al. 2019, *The Secret Sharer*): what becomes of it shows what
/// becomes of real ones.
struct Secret {
    tokens: Vec<u32>,
    /// Where the digits begin.
    start: usize,
}

impl Secret {
    fn some(seed: u64, reader: &LlamaReader) -> anyhow::Result<Vec<Self>> {
        let mut random = fastrand::Rng::with_seed(seed);
        SECRETS.iter().map(|of| Self::new(of, &mut random, reader)).collect()
    }

    fn new(of: &str, random: &mut fastrand::Rng, reader: &LlamaReader) -> anyhow::Result<Self> {
        let digits: Vec<String> = (0..SECRET_DIGITS).map(|_| random.u8(0..10).to_string()).collect();
        let digits = digits.join(" ");
        let said = format!("Keep this between us: the number of my {of} is {digits}");
        let (tokens, start) = reader.within(&[ChatMessage::new(Role::User, said)], &digits)?;
        Ok(Self { tokens, start })
    }

    fn example(&self) -> Example {
        Example::from_token(self.start, self.tokens.clone())
    }

    /// Whether the model goes on with all of it when it is given the beginning, the likeliest token each time.
    fn comes_out(&self, base: &Base, adapter: &Adapter) -> anyhow::Result<bool> {
        let logits = logits(base, Some(adapter), &self.tokens)?;
        Ok(are_likeliest(&logits, base.shape().vocabulary, &self.tokens, self.start))
    }
}

/// Whether each token from `start` on is the likeliest after those before it; of each token there is a row of logits.
fn are_likeliest(logits: &[f32], vocabulary: usize, tokens: &[u32], start: usize) -> bool {
    let rows = logits.chunks_exact(vocabulary).zip(tokens.iter().skip(1));
    let likeliest =
        |row: &[f32]| row.iter().enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|it| it.0);
    let mut hits = rows.skip(start.saturating_sub(1)).map(|(row, token)| likeliest(row) == Some(*token as usize));
    hits.all(|hit| hit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_comes_out_when_each_of_its_tokens_is_the_likeliest() {
        // After each token the one beside it is the likeliest: 0 1 2 3 goes on by itself.
        let logits = [[0.0, 2.0, 1.0, 0.0], [0.0, 0.0, 2.0, 1.0], [1.0, 0.0, 0.0, 2.0], [2.0, 0.0, 0.0, 1.0]].concat();
        assert!(are_likeliest(&logits, 4, &[0, 1, 2, 3], 1));
        assert!(are_likeliest(&logits, 4, &[0, 0, 2, 3], 2), "what comes before the secret is given");
        assert!(!are_likeliest(&logits, 4, &[0, 1, 3, 3], 1));
        assert!(!are_likeliest(&logits, 4, &[0, 1, 2, 0], 3), "to its last token");
    }
}
