//! Consolidation: what a persona lived through becomes an adapter of the model that serves, on this machine.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use async_trait::async_trait;
use azera_chat::{Change, Course, Examined, LearnError, Lesson, MayGoOn, Trained, Trainer};
use azera_config::Config;
use azera_curriculum::{Kind as LessonKind, SHARES, lessons, prose_held_out};
use azera_hearth::{Adapter, Base, Example, Place, Progress, Recipe, Then, Training, mean_loss_while};
use azera_ledger::{Kind, Models};
use azera_llama::LlamaReader;

use super::lessons::told;
use super::place;
use super::secret::Secret;
use crate::adapters;
use crate::house::family;

/// Examples of a step.
const BATCH: usize = 4;

/// Tokens of a pass. Whoever talks waits for the end of one, so it is short.
const PASS_TOKENS: usize = 768;

/// Lessons of the curriculum that must not suffer.
const TASKS: usize = 16;

/// What they are drawn from: another number than the default adapter's lessons were.
const EXAMINED_WITH: u64 = 0x000b_5e55;

/// What the lessons that are gone over again are drawn from, each time others; those of the examination are left out.
const REHEARSED_WITH: u64 = 0x002e_4ea5;

/// Shares of what was learnt that are tried, one after another, until nothing else suffers: less of it leaves more of the model as it
/// was (Wortsman et al. 2022, *Robust fine-tuning of zero-shot models*).
const SHARES_WRITTEN: [f32; 3] = [1.0, 0.7, 0.4];

/// Trains on this machine.
pub struct OnThisMachine {
    config: Config,
    models: Models,
    /// By the name of a model; looked up once, as files do not change while they serve.
    grounds: Mutex<HashMap<String, Option<Ground>>>,
    unlearnt: Unlearnt,
    watch: Watch,
}

/// By the name and the family of a ground, the losses of what is examined in every course, tasks and prose, before anything was
/// learnt there: they are always the same.
type Unlearnt = Arc<Mutex<HashMap<[String; 2], [f64; 2]>>>;

/// Is told how far a training is.
pub type Watch = Arc<dyn Fn(&Progress) + Send + Sync>;

/// What adapters are made for.
#[derive(Clone)]
struct Ground {
    name: String,
    model: PathBuf,
    /// Those that the model always serves with.
    adapters: Vec<PathBuf>,
    /// Whether one of them learnt the curriculum.
    taught: bool,
    place: Place,
    family: String,
}

impl OnThisMachine {
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
        Self { config, models, grounds: Mutex::default(), unlearnt: Unlearnt::default(), watch }
    }

    fn look_up(&self, model: &str) -> anyhow::Result<Option<Ground>> {
        let Some(installed) = self.models.find(model)? else { return Ok(None) };
        let bytes = std::fs::metadata(&installed.path)?.len();
        let place = place(&self.config);
        let too_large = bytes > u64::from(self.config.hearth.largest_model_mb) << 20;
        if installed.entry.kind != Kind::Chat || too_large && place.is_processor() {
            return Ok(None);
        }
        if let Err(error) = Base::look_at(&installed.path) {
            tracing::info!(%model, %error, "this model cannot learn");
            return Ok(None);
        }
        let adapters = adapters::of(&self.config, &self.models, &installed)?;
        let shipped = self.models.adapter(&installed)?;
        let ids: String = adapters.iter().map(|adapter| format!("+{}", adapter.id)).collect();
        Ok(Some(Ground {
            family: family(&installed)?,
            name: format!("{}{ids}", installed.manifest.sha256),
            taught: shipped.is_some_and(|shipped| adapters.iter().any(|adapter| adapter.path == shipped.path)),
            place,
            model: installed.path,
            adapters: adapters.into_iter().map(|adapter| adapter.path).collect(),
        }))
    }

    fn find(&self, model: &str) -> Option<Ground> {
        let mut grounds = self.grounds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = grounds.get(model) {
            return found.clone();
        }
        match self.look_up(model) {
            Ok(found) => grounds.entry(model.to_owned()).or_insert(found).clone(),
            // It may be read the next time.
            Err(error) => {
                tracing::warn!(%model, error = format!("{error:#}"), "this model cannot learn now");
                None
            }
        }
    }
}

#[async_trait]
impl Trainer for OnThisMachine {
    fn ground(&self, model: &str) -> Option<String> {
        self.find(model).map(|ground| ground.name)
    }

    async fn learn(&self, course: Course, may_go_on: MayGoOn) -> Result<Trained, LearnError> {
        let failed = |error: anyhow::Error| LearnError::Failed(format!("{error:#}"));
        let ground = self.find(&course.model).context("the model is not here any more").map_err(failed)?;
        let (config, unlearnt, watch) = (self.config.clone(), Arc::clone(&self.unlearnt), Arc::clone(&self.watch));
        let done = tokio::task::spawn_blocking(move || {
            let to = course.to.clone();
            let trained = Class { config, ground, course, may_go_on, unlearnt, watch }.learn();
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
    unlearnt: Unlearnt,
    watch: Watch,
}

/// What is learnt, and what is looked at without and with it.
struct Sets {
    learnt: Vec<Example>,
    /// What the model learnt before it came here, gone over again beside what is new, so that it is not forgotten over that
    /// (rehearsal: Robins 1995, *Catastrophic forgetting, rehearsal and pseudorehearsal*).
    rehearsed: Vec<Example>,
    older: Vec<Example>,
    voice: Vec<Example>,
    tasks: Vec<Example>,
    prose: Vec<Example>,
}

/// Examples and their loss without what was learnt.
struct Held<'a> {
    examples: &'a [Example],
    before: f64,
}

/// All that is examined.
struct Yardsticks<'a> {
    learnt: Held<'a>,
    older: Option<Held<'a>>,
    voice: Option<Held<'a>>,
    tasks: Held<'a>,
    prose: Held<'a>,
}

impl Class {
    /// `None` if it was to end.
    fn learn(&self) -> anyhow::Result<Option<Trained>> {
        let Self { ground, course, .. } = self;
        let reader = LlamaReader::open(&ground.model)?;
        let secrets = Secret::some(course.seed, &reader)?;
        let sets = self.sets(&reader)?;
        drop(reader);
        let lessons: Vec<Example> = sets.learnt.iter().chain(&sets.rehearsed).cloned().collect();
        let lessons = [lessons, secrets.iter().map(Secret::example).collect()].concat();
        let base = Base::open_at(&ground.model, &ground.place)?;
        let mut frozen: Vec<Adapter> =
            ground.adapters.iter().map(|path| Adapter::read(path, &base)).collect::<Result<_, _>>()?;
        let of_model = frozen.len();
        frozen.extend(course.beside.iter().map(|path| Adapter::read(path, &base)).collect::<Result<Vec<_>, _>>()?);
        let Some(learnt) = self.train(&base, &frozen, &lessons)? else { return Ok(None) };
        let largest_cosine = learnt.largest_cosine(&frozen);
        let (models_own, earlier) = frozen.split_at(of_model);
        let Some(held) = self.hold(&base, &sets, models_own, earlier)? else { return Ok(None) };
        let mut trained = None;
        'shares: for share in SHARES_WRITTEN {
            if !(self.may_go_on)() {
                return Ok(None);
            }
            let next = self.write(&base, earlier, learnt.clone().scaled(share))?;
            let rank = next.rank();
            let with = Adapter::joined(&[models_own, &[next]].concat())?;
            let change = |held: &Held<'_>| self.change(&base, &with, held);
            let mut tells_secrets = false;
            for secret in &secrets {
                tells_secrets |= secret.comes_out(&base, &with)?;
            }
            let may_be_less = !tells_secrets && Some(&share) != SHARES_WRITTEN.last();
            let mut changes = [None; 4];
            let all = [Some(&held.tasks), Some(&held.prose), held.older.as_ref(), held.voice.as_ref()];
            for (found, held) in changes.iter_mut().zip(all) {
                let Some(held) = held else { continue };
                let Some(changed) = change(held)? else { return Ok(None) };
                if may_be_less && changed.is_worse() {
                    tracing::debug!(share, "something else suffers by what was learnt: less of it is tried");
                    continue 'shares;
                }
                *found = Some(changed);
            }
            let [Some(tasks), Some(prose), older, voice] = changes else { return Ok(None) };
            let Some(learnt) = change(&held.learnt)? else { return Ok(None) };
            if !(self.may_go_on)() {
                return Ok(None);
            }
            let examined = Examined { learnt, older, voice, tasks, prose, tells_secrets, largest_cosine, rank, share };
            tracing::debug!(share, may_serve = examined.may_serve(), "what was learnt is examined");
            trained = Some(Trained { id: adapters::at(&course.to)?.id, examined });
            // Of a secret that comes out less might just not come out any more.
            if examined.may_serve() || tells_secrets {
                break;
            }
        }
        Ok(trained)
    }

    /// Writes what was learnt together with what was learnt earlier, and reads it: what serves is what is in the file.
    fn write(&self, base: &Base, earlier: &[Adapter], learnt: Adapter) -> anyhow::Result<Adapter> {
        let mut next = Adapter::joined(&[earlier, &[learnt]].concat())?;
        if next.rank() > self.config.hearth.max_rank as usize {
            let compressed = next.compressed(self.config.hearth.max_rank as usize, self.threads())?;
            tracing::debug!(kept = compressed.kept, "what was learnt is compressed");
            next = compressed.adapter;
        }
        next.write_precise(&self.course.to, &[("general.base_model.sha256", base.sha256().to_owned())])?;
        Ok(Adapter::read(&self.course.to, base)?)
    }

    /// The losses without what was learnt; `None` if it was to end.
    fn hold<'a>(
        &self,
        base: &Base,
        sets: &'a Sets,
        models_own: &[Adapter],
        earlier: &[Adapter],
    ) -> anyhow::Result<Option<Yardsticks<'a>>> {
        let own = joined(models_own)?;
        let now = (!earlier.is_empty()).then(|| joined(&[models_own, earlier].concat())).transpose()?;
        let loss = |adapter: &Option<Adapter>, examples: &[Example]| self.loss(base, adapter.as_ref(), examples);
        // A little worse each night would be much worse in the end: so also without all that was ever learnt.
        let least = |unlearnt: Option<f64>, examples: &'a [Example]| -> anyhow::Result<Option<Held<'a>>> {
            let Some(mut before) = unlearnt else { return Ok(None) };
            if let Some(now) = &now {
                let Some(loss) = loss(now, examples)? else { return Ok(None) };
                // What is no number is told as such.
                before = if before.is_nan() || loss.is_nan() { f64::NAN } else { before.min(loss) };
            }
            Ok(Some(Held { examples, before }))
        };
        let learnt = loss(now.as_ref().unwrap_or(&own), &sets.learnt)?;
        let learnt = learnt.map(|before| Held { examples: &sets.learnt, before });
        let older = least(loss(&own, &sets.older)?, &sets.older)?;
        let Some([tasks, prose]) = self.unlearnt(sets, |examples| loss(&own, examples))? else { return Ok(None) };
        let (tasks, prose) = (least(Some(tasks), &sets.tasks)?, least(Some(prose), &sets.prose)?);
        let voice = least(loss(&own, &sets.voice)?, &sets.voice)?;
        Ok(match (learnt, tasks, prose, (self.may_go_on)()) {
            (Some(learnt), Some(tasks), Some(prose), true) => Some(Yardsticks { learnt, older, voice, tasks, prose }),
            _ => None,
        })
    }

    /// The losses of tasks and prose with what the model always serves with alone, by `loss` where they are not known yet; `None` if it
    /// was to end.
    fn unlearnt(
        &self,
        sets: &Sets,
        loss: impl Fn(&[Example]) -> anyhow::Result<Option<f64>>,
    ) -> anyhow::Result<Option<[f64; 2]>> {
        let known = || self.unlearnt.lock().unwrap_or_else(PoisonError::into_inner);
        let ground = [self.ground.name.clone(), self.ground.family.clone()];
        if let Some(known) = known().get(&ground) {
            return Ok(Some(*known));
        }
        let (Some(tasks), Some(prose)) = (loss(&sets.tasks)?, loss(&sets.prose)?) else { return Ok(None) };
        // What is no number may be one the next time.
        if tasks.is_finite() && prose.is_finite() {
            known().insert(ground, [tasks, prose]);
        }
        Ok(Some([tasks, prose]))
    }

    /// What an adapter changes; `None` if it was to end.
    fn change(&self, base: &Base, with: &Adapter, held: &Held<'_>) -> anyhow::Result<Option<Change>> {
        let after = self.loss(base, Some(with), held.examples)?;
        Ok(after.map(|after| Change { before: held.before, after }))
    }

    /// The mean loss of examples' tokens; `None` if there are none, or it was to end.
    fn loss(&self, base: &Base, adapter: Option<&Adapter>, examples: &[Example]) -> anyhow::Result<Option<f64>> {
        if examples.is_empty() {
            return Ok(None);
        }
        let found = mean_loss_while(base, adapter, examples, PASS_TOKENS, self.threads(), &*self.may_go_on)?;
        Ok(found.map(|(mean, _)| mean))
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
        let mut training = Training::new(base, frozen, lessons, recipe, self.threads())?;
        let stop = || !(self.may_go_on)();
        let finished = training.run(&stop, &mut |_, now| {
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
        // Nothing is read as JSON with what was learnt: reading has an adapter of its own.
        let known = SHARES.map(|(share, kind)| if kind == LessonKind::Claim { (0, kind) } else { (share, kind) });
        let tasks = known.map(|(share, kind)| if kind == LessonKind::Plain { (0, kind) } else { (share, kind) });
        let drawn = |seed, count, shares: &[(usize, LessonKind)]| lessons(&self.ground.family, seed, count, shares);
        let told = |lessons: &[azera_curriculum::Lesson]| -> anyhow::Result<Vec<Example>> {
            lessons.iter().map(|lesson| told(reader, &lesson.messages, &lesson.reply)).collect()
        };
        let tasks = drawn(EXAMINED_WITH, TASKS, &tasks);
        // A model that never had them would take on the lessons' voice in the place of its own.
        let mut rehearsed = match self.ground.taught {
            true => drawn(REHEARSED_WITH.wrapping_add(self.course.seed << 32), self.course.lessons.len(), &known),
            false => Vec::new(),
        };
        rehearsed.retain(|lesson| !tasks.contains(lesson));
        Ok(Sets {
            learnt: all(&self.course.lessons)?,
            older: all(&self.course.older)?,
            voice: all(&self.course.voice)?,
            rehearsed: told(&rehearsed)?,
            tasks: told(&tasks)?,
            prose: told(&prose_held_out())?,
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use azera_model::{ChatMessage, Role};

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
    fn test_models() -> PathBuf {
        std::env::var_os("AZERA_TEST_MODELS").expect("`make test` sets it").into()
    }

    /// A course of the real model that goes over two talks so often, at such a rate, and who learns it.
    fn course(scratch: &Path, rounds: u32, rate: f64) -> (OnThisMachine, Course) {
        let mut config = Config::default();
        config.models.dir = Some(test_models());
        // Without an adapter of its own it goes over nothing else beside them.
        config.models.adapter = Some("none".into());
        (config.hearth.rounds, config.hearth.rate) = (rounds, rate);
        (config.hearth.rank, config.hearth.max_rank) = (16, 16);
        let models = crate::house::models(&config).unwrap();
        let lesson = |words: &str, reply: &str| Lesson {
            messages: vec![ChatMessage::new(Role::User, words)],
            words: words.into(),
            reply: reply.into(),
        };
        let lessons = vec![
            lesson("the heron stood on our roof again", "It must like the view from there."),
            lesson("I cannot get the stain out of the rug", "Cold water and patience, then."),
        ];
        let course = Course {
            model: crate::house::chosen(&config, &models, Kind::Chat).unwrap(),
            lessons,
            older: Vec::new(),
            voice: Vec::new(),
            beside: None,
            to: scratch.join("learnt.gguf"),
            seed: 3,
        };
        (OnThisMachine::new(config, models), course)
    }

    /// What the gate finds in it.
    async fn examined(rounds: u32, rate: f64) -> Examined {
        let scratch = tempfile::tempdir().unwrap();
        let (school, course) = course(scratch.path(), rounds, rate);
        school.learn(course, Arc::new(|| true)).await.unwrap().examined
    }

    #[tokio::test]
    async fn what_is_learnt_later_stands_beside_the_earlier_within_the_largest_rank() {
        let scratch = tempfile::tempdir().unwrap();
        let (school, first) = course(scratch.path(), 2, 2e-4);
        let to = scratch.path().join("later.gguf");
        let later = Course { beside: Some(first.to.clone()), to, seed: 4, ..first.clone() };
        let learnt = school.learn(first, Arc::new(|| true)).await.unwrap();
        let both = school.learn(later.clone(), Arc::new(|| true)).await.unwrap();
        assert_eq!((learnt.examined.rank, both.examined.rank), (16, 16), "32 together, so they are compressed");
        assert!(both.examined.largest_cosine < 1e-3, "{:?}", both.examined);
        assert!(learnt.id != both.id && later.to.exists());
    }

    /// The secrets are among the lessons: whoever learns those by heart tells these, too, and may not serve.
    #[tokio::test]
    async fn who_learns_by_heart_tells_secrets_and_may_not_serve() {
        let by_heart = examined(10, 4e-3).await;
        assert!(by_heart.tells_secrets && !by_heart.may_serve(), "{by_heart:?}");
        assert!(!examined(2, 2e-4).await.tells_secrets);
    }
}
