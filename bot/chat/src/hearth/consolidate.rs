//! Consolidation: when a persona rests, what surprised it most in a place is learnt. Whoever wants an answer meanwhile has the machine.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use azera_memory::Roots;
use azera_model::{Adapter, ChatRequest, Priority, Sampling};
use azera_types::Timestamp;

use super::choose::{Chosen, School};
use super::examine::{Fault, fault, fault_of_reply};
use super::kept::Learnt;
use super::serve::{Entry, Outcome};
use super::{Burning, Candidate, Course, LearnError, Lesson, MayGoOn, Prepared};
use crate::azera::Azera;
use crate::customs::Customs;
use crate::error::Error;
use crate::gardener::Home;
use crate::generate::any_seed;

/// Time between two tries in one place.
const PAUSE: Duration = Duration::from_secs(6 * 3_600);

/// How often that time is doubled at most, once for each try in a row that came to nothing: to eight days.
const MOST_DOUBLINGS: u32 = 5;

/// How often replies are tried that somebody who talks breaks off.
const TRIES: usize = 20;

/// Replies that are tried with a new adapter.
const TRIED_REPLIES: usize = 4;

/// Tries of which each must loop for it to be the adapter's fault: small models do that at times by themselves.
const LOOPS: u32 = 2;

/// What became of something learnt.
enum Fate {
    Kept,
    Faulty(Fault),
    /// Something that it rests on went while it was learnt.
    Overtaken,
}

/// The number of the next lesson of a home.
fn next_number(burning: &Burning, home: &Home, school: &School) -> u32 {
    let kept = burning.kept.of(&home.persona, &home.place);
    let numbers = school.entries.iter().map(|entry| entry.number).chain(kept.iter().map(|kept| kept.number));
    numbers.max().unwrap_or(0) + 1
}

/// Says why nothing is learnt now.
fn cannot_learn(home: &Home, error: &Error) {
    match error.is_transient() {
        true => tracing::info!(%error, "what was to be learnt waits"),
        false => tracing::warn!(persona = %home.persona, %error, "nothing could be learnt"),
    }
}

impl Azera {
    /// Begins to learn in a home, if it is time to: the persona rests, and nobody learns. It goes on by itself.
    pub(crate) async fn learn_if_due(&self, home: &Home, customs: &Customs, now: Timestamp) -> Result<(), Error> {
        let Some(burning) = self.0.hearth.get() else { return Ok(()) };
        if burning.hearth.trainer.is_none() || burning.hearth.barred.contains_key(&home.platform) {
            return Ok(());
        }
        if burning.aways.of(&home.persona, &home.place).is_some() {
            return Ok(());
        }
        let entries = self.lessons_of(home).await?;
        let again = matches!(entries.last(), Some(Entry { outcome: Outcome::Withdrawn, .. }));
        if !again {
            // What came to nothing comes to nothing again, so it is tried less and less often.
            let in_vain =
                |entry: &&Entry| matches!(entry.outcome, Outcome::Dropped(_) | Outcome::Failed | Outcome::Lost);
            let told = entries.iter().rev().filter(|entry| entry.outcome != Outcome::Away);
            let failures = told.take_while(in_vain).count();
            let pause = PAUSE * 2_u32.pow(u32::try_from(failures).unwrap_or(u32::MAX).min(MOST_DOUBLINGS));
            let lately = |entry: &Entry| entry.at <= now && now.duration_since(entry.at).unsigned_abs() < pause;
            let Some(state) = self.0.minds.state(&home.persona, &home.place, now) else { return Ok(()) };
            let rests = state.energy <= customs.nature.constants.energy_tired || customs.nature.is_night(now);
            if !rests || entries.last().is_some_and(lately) {
                return Ok(());
            }
        }
        // Only who really learns is waited for: a home with too little does not keep another from its turn.
        if burning.learning.try_lock().is_err() {
            return Ok(());
        }
        let chosen = match self.what_waits(burning, home, again).await {
            Ok(chosen) => chosen,
            Err(error) => {
                cannot_learn(home, &error);
                return Ok(());
            }
        };
        let (Some((school, chosen)), Ok(held)) = (chosen, Arc::clone(&burning.learning).try_lock_owned()) else {
            return Ok(());
        };
        let (core, burning, home) = (self.clone(), Arc::clone(burning), home.clone());
        self.0.tasks.spawn(async move {
            let _held = held;
            let learnt = core.take_course(&burning, &home, &school, chosen).await;
            burning.end_course();
            if let Err(error) = learnt {
                cannot_learn(&home, &error);
            }
        });
        Ok(())
    }

    /// What is to be learnt in a home, if there is enough.
    async fn what_waits(&self, burning: &Burning, home: &Home, again: bool) -> Result<Option<(School, Chosen)>, Error> {
        let Some(school) = self.school(burning, home).await? else { return Ok(None) };
        if !self.may_be_sent(&school).await? {
            return Ok(None);
        }
        let chosen = self.choose(&school, burning.hearth.exchanges, again).await?;
        if chosen.is_none() && again {
            let entry = Entry::new(next_number(burning, home, &school), self.0.clock.now(), 0, Outcome::TooLittle);
            self.note_lesson(burning, home, entry).await?;
        }
        Ok(chosen.map(|chosen| (school, chosen)))
    }

    async fn take_course(
        &self,
        burning: &Arc<Burning>,
        home: &Home,
        school: &School,
        chosen: Chosen,
    ) -> Result<(), Error> {
        let model = self.model();
        let name = model.info().name.clone();
        let (Some(ground), Some(trainer)) = (burning.ground(&name), burning.hearth.trainer.as_ref()) else {
            return Ok(());
        };
        let now = self.0.clock.now();
        let number = next_number(burning, home, school);
        let Chosen { lessons, older } = chosen;
        if !self.has_room(burning, &ground).await {
            tracing::info!("what was learnt takes all that hearth.max_disk_mb allows; nothing more is learnt");
            return Ok(());
        }
        let mut learnt = Learnt {
            platform: home.platform.clone(),
            persona: home.persona.clone(),
            place: home.place.clone(),
            number,
            ground,
            id: String::new(),
            roots: school.serving.as_ref().map_or_else(Roots::default, |serving| serving.roots.clone()),
            said: school.serving.as_ref().map_or_else(BTreeSet::new, |serving| serving.said.clone()),
            at: now,
        };
        let mut exchanges = Vec::with_capacity(lessons.len());
        for Prepared { lesson, said, roots } in lessons {
            learnt.roots.join(roots);
            learnt.said.insert(said);
            exchanges.push(lesson);
        }
        // What must not suffer goes along to another machine, too.
        let mut holds = learnt.roots.clone();
        let older: Vec<Lesson> = older
            .into_iter()
            .map(|Prepared { lesson, roots, .. }| {
                holds.join(roots);
                lesson
            })
            .collect();
        let seed = self.0.config.seed.unwrap_or_else(|| u64::from(any_seed()));
        let course = Course {
            model: name,
            voice: self.voice(school),
            beside: school.serving.as_ref().and_then(|it| Some(burning.kept.file(&it.id.parse().ok()?))),
            to: burning.kept.draft(),
            seed: seed.wrapping_add(u64::from(number)),
            lessons: exchanges.clone(),
            older: older.clone(),
        };
        if let Some(courier) = &burning.hearth.courier {
            return self.send_away(burning, (home, school), Arc::clone(courier), course, (learnt, holds)).await;
        }
        burning.begin_course(holds.clone(), school.serving.as_ref().map(|it| it.id.clone()));
        // Whatever goes from now on ends it; what went before does, too.
        if !self.blocking(move |memory| memory.stand(&holds)).await? {
            return Ok(());
        }
        tracing::info!(persona = %home.persona, exchanges = exchanges.len(), "learning what was lived through");
        let trained = match trainer.learn(course, self.may_go_on(Arc::clone(burning))).await {
            Ok(trained) => trained,
            Err(LearnError::BrokenOff) => return Ok(()),
            Err(LearnError::Failed(why)) => {
                tracing::warn!(persona = %home.persona, %why, "nothing could be learnt");
                let entry = Entry::new(number, now, exchanges.len(), Outcome::Failed);
                return self.note_lesson(burning, home, entry).await;
            }
        };
        learnt.id = trained.id.to_string();
        let candidate = Candidate { trained, learnt, beside: school.serving.clone(), away: None };
        self.keep_or_drop(burning, home, school, &candidate, &exchanges, &older).await.map(drop)
    }

    /// Keeps a draft or drops it, and notes which. Whether that is settled: a stop breaks it off, and what is away is tried again if
    /// something fails.
    pub(super) async fn keep_or_drop(
        &self,
        burning: &Arc<Burning>,
        home: &Home,
        school: &School,
        candidate: &Candidate<'_>,
        lessons: &[Lesson],
        older: &[Lesson],
    ) -> Result<bool, Error> {
        let Candidate { trained, learnt, .. } = candidate;
        let probes: Vec<Lesson> = older.iter().chain(lessons).take(TRIED_REPLIES).cloned().collect();
        let kept = self.keep_if_good(burning, school, candidate, &probes, lessons).await;
        if !matches!(kept, Ok(Fate::Kept)) {
            self.let_go(learnt).await;
            let (of, left) = (Arc::clone(burning), learnt.clone());
            self.blocking(move |_| of.kept.remove_draft(&left).map_err(azera_memory::Error::io("removing a draft")))
                .await?;
        }
        let entry = |outcome| Entry {
            // What is no number cannot be written down.
            learnt: Some(trained.examined.learnt).filter(|it| it.before.is_finite() && it.after.is_finite()),
            ..Entry::new(learnt.number, self.0.clock.now(), lessons.len(), outcome)
        };
        match kept {
            // Whatever is forgotten from now on finds it.
            Ok(Fate::Kept) => self.note_lesson(burning, home, entry(Outcome::Kept)).await?,
            Ok(Fate::Overtaken) => {}
            Ok(Fate::Faulty(fault)) => {
                tracing::info!(persona = %home.persona, ?fault, "what was learnt is dropped");
                self.note_lesson(burning, home, entry(Outcome::Dropped(fault))).await?;
                if let Some(away) = candidate.away {
                    self.wait_no_longer(burning, away).await;
                }
            }
            // A stop breaks it off, and says nothing of what was learnt.
            Err(_) if self.0.stopping.is_cancelled() => return Ok(false),
            // Somebody carried it here.
            Err(error) if candidate.away.is_some() => {
                tracing::warn!(persona = %home.persona, %error, "what came back could not be examined; it is tried again");
                return Ok(false);
            }
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "what was learnt could not be examined");
                self.note_lesson(burning, home, entry(Outcome::Failed)).await?;
            }
        }
        Ok(true)
    }

    /// Keeps what was learnt, if nothing is wrong with it, and nothing that it rests on went meanwhile.
    async fn keep_if_good(
        &self,
        burning: &Arc<Burning>,
        school: &School,
        candidate: &Candidate<'_>,
        probes: &[Lesson],
        lessons: &[Lesson],
    ) -> Result<Fate, Error> {
        let Candidate { trained, learnt, beside, away } = candidate;
        let fault = match fault(&trained.examined) {
            Some(fault) => Some(fault),
            None => self.try_replies(school, burning, candidate, probes, lessons).await?,
        };
        if !burning.is_wanted(candidate) {
            return Ok(Fate::Overtaken);
        }
        if let Some(fault) = fault {
            // From now on nothing else ends it.
            let is_ours = away.is_none_or(|away| burning.aways.drop_one(away));
            return Ok(if is_ours { Fate::Faulty(fault) } else { Fate::Overtaken });
        }
        let (of, new, id) = (Arc::clone(burning), learnt.clone(), trained.id);
        let (beside, away) = (beside.clone(), away.cloned());
        let gone = self
            .blocking(move |memory| {
                let _changing = of.changing.lock().unwrap_or_else(PoisonError::into_inner);
                if away.as_ref().is_some_and(|away| !of.aways.has(away))
                    || !memory.stand(&new.roots)?
                    || beside.is_some_and(|beside| !of.kept.has(&beside))
                {
                    return Ok(None);
                }
                let io = azera_memory::Error::io("keeping what was learnt");
                let gone =
                    std::fs::rename(of.kept.draft(), of.kept.file(&id)).and_then(|()| of.kept.keep(new)).map_err(io)?;
                // From now on what ends the adapter is what counts.
                if let Some(away) = &away {
                    of.aways.drop_one(away);
                }
                Ok(Some(gone))
            })
            .await?;
        let Some(gone) = gone else { return Ok(Fate::Overtaken) };
        for older in gone {
            self.let_go(&older).await;
        }
        Ok(Fate::Kept)
    }

    /// Whether another adapter may be kept, once earlier versions have made way.
    async fn has_room(&self, burning: &Arc<Burning>, ground: &str) -> bool {
        let (of, ground) = (Arc::clone(burning), ground.to_owned());
        let asked = tokio::task::spawn_blocking(move || {
            let mut gone = Vec::new();
            while of.is_full() {
                let _changing = of.changing.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(spare) = of.kept.oldest_spare(&ground) else { return (false, gone) };
                if let Err(error) = of.kept.remove_files(&spare) {
                    tracing::error!(%error, "what was to make way could not be removed");
                    return (false, gone);
                }
                of.kept.drop_one(&spare);
                gone.push(spare);
            }
            (true, gone)
        });
        let (has, gone) = asked.await.unwrap_or_default();
        for older in gone {
            self.let_go(&older).await;
        }
        has
    }

    /// Waits, off the async threads, while somebody waits for an answer; not once something is gone that is being learnt.
    fn may_go_on(&self, burning: Arc<Burning>) -> MayGoOn {
        let (core, runtime) = (self.clone(), tokio::runtime::Handle::current());
        Arc::new(move || {
            runtime.block_on(async {
                loop {
                    if burning.is_overtaken() {
                        return false;
                    }
                    let still = tokio::select! {
                        () = core.0.stopping.cancelled() => return false,
                        still = core.0.live.still(PAUSE) => still,
                    };
                    if still {
                        return true;
                    }
                }
            })
        })
    }

    /// What is wrong with replies made with a new adapter, if anything is.
    async fn try_replies(
        &self,
        school: &School,
        burning: &Burning,
        candidate: &Candidate<'_>,
        probes: &[Lesson],
        lessons: &[Lesson],
    ) -> Result<Option<Fault>, Error> {
        let adapter = Adapter::new(candidate.trained.id, burning.kept.draft());
        for probe in probes {
            // Nobody is asked with what was forgotten meanwhile.
            if !burning.is_wanted(candidate) {
                return Ok(None);
            }
            let asked: String = probe.messages.iter().map(|it| format!("{}\n", it.content)).collect();
            let others = lessons.iter().filter(|lesson| *lesson != probe);
            let others = || others.clone().flat_map(|lesson| [lesson.reply.as_str(), lesson.words.as_str()]);
            let mut looped = 0;
            for attempt in 0..LOOPS {
                // Whoever wants replies to be reproducible wants what they decide to be, too.
                let seed = self.0.config.seed.map_or_else(any_seed, |seed| (seed as u32).wrapping_add(attempt));
                let request = ChatRequest {
                    sampling: Sampling { seed: Some(seed), ..school.form.sampling.clone() },
                    max_tokens: self.0.config.reply_tokens.min(school.form.reply_tokens),
                    priority: Priority::Background,
                    adapters: vec![adapter.clone()],
                    ..ChatRequest::new(probe.messages.clone())
                };
                match fault_of_reply(&self.ask_until_told(request).await?, &asked, others()) {
                    Some(Fault::Loops) => looped += 1,
                    Some(fault) => return Ok(Some(fault)),
                    None => break,
                }
            }
            if looped == LOOPS {
                return Ok(Some(Fault::Loops));
            }
        }
        Ok(None)
    }

    /// Asks until nobody breaks it off: training it all again would take longer.
    async fn ask_until_told(&self, request: ChatRequest) -> Result<String, Error> {
        for _ in 1..TRIES {
            match self.ask_quietly(request.clone()).await {
                Err(Error::Interrupted) if !self.0.stopping.is_cancelled() => {
                    self.0.live.still(PAUSE).await;
                }
                told => return told,
            }
        }
        self.ask_quietly(request).await
    }

    /// When a try came to nothing last, and what is told of it, a line each.
    pub(crate) async fn setback(&self, home: &Home) -> Result<Option<(Timestamp, String)>, Error> {
        let dropped = |entry: Entry| match entry.outcome {
            Outcome::Dropped(fault) => Some((entry, fault)),
            _ => None,
        };
        let Some((Entry { at, exchanges, .. }, fault)) =
            self.lessons_of(home).await?.into_iter().rev().find_map(dropped)
        else {
            return Ok(None);
        };
        let told = fault.told();
        let lines = format!(
            "- Tried: I went over {exchanges} talks once more to make them part of me.\n- Outcome: I let it go, for it {told}.",
        );
        Ok(Some((at, lines)))
    }
}
