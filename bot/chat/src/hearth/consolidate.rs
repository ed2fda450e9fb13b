//! Consolidation: when a persona rests, what surprised it most in a place is learnt. Whoever wants an answer meanwhile has the machine.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use azera_memory::{Kind, Lived, Memory, MemoryRow, MessageRow, Right, Roots};
use azera_mind::Bond;
use azera_model::{Adapter, ChatRequest, Priority, Sampling};
use azera_personas::{Persona, Speaker};
use azera_prompt::{Budget, Form, Line, Parts, Recollection, compose, form_for};
use azera_types::{MessageId, Place, PlaceKind, Reach, Timestamp};
use serde::{Deserialize, Serialize};

use super::examine::{Change, Fault, fault, fault_of_reply};
use super::kept::{Kept, Learnt};
use super::{Burning, Course, Hearth, LearnError, Lesson, MayGoOn, Prepared, Trained};
use crate::azera::Azera;
use crate::customs::Customs;
use crate::error::Error;
use crate::gardener::{Home, Work, within};
use crate::generate::any_seed;
use crate::turn::recollection;
use crate::vectors::cosine;

/// Exchanges looked at: the most surprising ones. The buffer that is learnt from has no more.
const BUFFER: usize = 256;

/// Exchanges more alike than this are one; a choice of our own.
const ALIKE: f32 = 0.9;

/// Of so many exchanges one is left out, to see what becomes of what is not learnt.
const ONE_LEFT_OUT_OF: usize = 8;

/// Older exchanges, and lines of the persona's own, that must not suffer: so many are looked at.
const LOOKED_AFTER: usize = 16;

/// Exchanges from which on it is worth while to learn again what stays when something was forgotten.
const FEW: usize = 4;

/// Time between two tries in one place.
const PAUSE: Duration = Duration::from_secs(6 * 3_600);

/// How often that time is doubled at most, once for each try in a row that came to nothing: to eight days.
const MOST_DOUBLINGS: u32 = 5;

/// How often replies are tried that somebody who talks breaks off.
const TRIES: usize = 20;

/// Tokens of a lesson's prompt at most: what stands before an exchange is there to place it.
const PROMPT_TOKENS: usize = 1_280;

/// Replies that are tried with a new adapter.
const TRIED_REPLIES: usize = 4;

/// Tries of which each must loop for it to be the adapter's fault: small models do that at times by themselves.
const LOOPS: u32 = 2;

/// Entries that are kept of what was learnt in a place.
const ENTRIES: usize = 50;

/// What came of learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// It serves, or did.
    Kept,
    /// It was examined and dropped.
    Dropped(Fault),
    /// It could not be done.
    Failed,
    /// Too little was left to learn it again.
    TooLittle,
    /// Somebody took it back.
    RolledBack,
    /// Something that it rested on was forgotten or changed, or somebody does not want to be learnt from any more.
    Withdrawn,
}

/// That something was learnt, or not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Number of the adapter it is about.
    pub(crate) number: u32,
    pub(crate) at: Timestamp,
    /// Exchanges that were to be learnt, of all that it learnt.
    pub(crate) exchanges: usize,
    pub(crate) outcome: Outcome,
    /// Their loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) learnt: Option<Change>,
}

/// Where something is learnt.
struct School {
    place: Place,
    right: Right,
    persona: Persona,
    customs: Arc<Customs>,
    form: Form,
    /// What serves there by now.
    serving: Option<Learnt>,
    entries: Vec<Entry>,
}

/// What became of something learnt.
enum Fate {
    Kept,
    Faulty(Fault),
    /// Something that it rests on went while it was learnt.
    Overtaken,
}

/// What is to be learnt, and what is not.
struct Chosen {
    lessons: Vec<Prepared>,
    older: Vec<Lesson>,
}

impl Burning {
    /// Takes out of service what is not founded any more, or comes from where nothing may be learnt by now; gives it.
    fn take_out_unfounded(&self, memory: &Memory, resting_on: Option<&MessageId>) -> Vec<Learnt> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unfounded = self.kept.all();
        unfounded.retain(|learnt| {
            if resting_on.is_some_and(|id| !learnt.roots.messages.contains_key(id)) {
                return false;
            }
            let barred = self.hearth.barred.contains_key(&learnt.platform);
            // What cannot be asked after is not founded.
            barred
                || !memory.stand(&learnt.roots).unwrap_or_else(|error| {
                    tracing::warn!(%error, "what something learnt rests on cannot be read");
                    false
                })
        });
        unfounded.iter().for_each(|learnt| self.kept.drop_one(learnt));
        unfounded
    }
}

impl Azera {
    /// Lets personas learn in their weights, or at least unlearn. Once, before [`Azera::start`].
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn light(&self, hearth: Hearth) -> std::io::Result<()> {
        let kept = Kept::open(&hearth.folder)?;
        let (learning, changing, noting) = (Arc::default(), std::sync::Mutex::default(), tokio::sync::Mutex::default());
        // A second one changes nothing.
        self.0.hearth.set(Arc::new(Burning { hearth, kept, learning, changing, noting })).ok();
        Ok(())
    }

    /// Waits until nobody learns.
    pub(crate) async fn learnt(&self) {
        if let Some(burning) = self.0.hearth.get() {
            drop(burning.learning.lock().await);
        }
    }

    /// What a persona learnt in the place of a right, for the model that answers.
    pub(crate) fn learnt_for(&self, right: &Right) -> Vec<Adapter> {
        let Some(burning) = self.0.hearth.get() else { return Vec::new() };
        let ground = burning.ground(&self.model().info().name);
        let learnt = ground.and_then(|ground| burning.kept.serving(right, &ground));
        let learnt = learnt.filter(|learnt| !burning.hearth.barred.contains_key(&learnt.platform));
        learnt.and_then(|learnt| burning.kept.adapter(&learnt)).into_iter().collect()
    }

    /// Takes out of service, and removes, what rests on something that is gone, or on somebody who does not want it any more; of
    /// what rests on one message, if only that may be gone. Whether all of it could be removed: what could not does not serve.
    pub async fn withdraw_unfounded(&self, resting_on: Option<&MessageId>) -> bool {
        let Some(burning) = self.0.hearth.get() else { return true };
        let (of, only, memory) = (Arc::clone(burning), resting_on.cloned(), self.0.memory.clone());
        let found = tokio::task::spawn_blocking(move || of.take_out_unfounded(&memory, only.as_ref())).await;
        let mut all_gone = found.is_ok();
        for learnt in found.unwrap_or_default() {
            all_gone &= self.unlearn(burning, &learnt, Outcome::Withdrawn).await;
        }
        all_gone
    }

    /// Takes back what serves in a home, if anything does; gives its number.
    pub(crate) async fn roll_back(&self, home: &Home) -> Option<u32> {
        let burning = self.0.hearth.get()?;
        let ground = burning.ground(&self.model().info().name)?;
        let newest = {
            let _changing = burning.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let versions = burning.kept.of(&home.persona, &home.place);
            let newest = versions.into_iter().rev().find(|learnt| learnt.ground == ground)?;
            burning.kept.drop_one(&newest);
            newest
        };
        self.unlearn(burning, &newest, Outcome::RolledBack).await;
        Some(newest.number)
    }

    /// Removes what serves no more, and notes it. Whether it is gone.
    async fn unlearn(&self, burning: &Arc<Burning>, learnt: &Learnt, outcome: Outcome) -> bool {
        self.let_go(learnt).await;
        let (of, files) = (Arc::clone(burning), learnt.clone());
        let removed = tokio::task::spawn_blocking(move || of.kept.remove_files(&files)).await;
        let is_gone = matches!(removed, Ok(Ok(())));
        if !is_gone {
            tracing::error!(adapter = %learnt.id, "what was learnt could not be removed; it serves no more");
        }
        let home =
            Home { platform: learnt.platform.clone(), place: learnt.place.clone(), persona: learnt.persona.clone() };
        let (number, exchanges, at) = (learnt.number, learnt.said.len(), self.0.clock.now());
        let entry = Entry { number, at, exchanges, outcome, learnt: None };
        if let Err(error) = self.note_lesson(burning, &home, entry).await {
            tracing::warn!(%error, "that something was unlearnt is not noted");
        }
        is_gone
    }

    /// Has the engine drop an adapter, and what it evaluated with it.
    async fn let_go(&self, learnt: &Learnt) {
        let Ok(id) = learnt.id.parse() else { return };
        if let Err(error) = self.model().forget_adapter(&id).await {
            tracing::error!(%error, "an adapter that is removed is still held by the model");
        }
    }

    /// What was learnt in a home and what came of it, oldest first.
    pub(crate) async fn lessons_of(&self, home: &Home) -> Result<Vec<Entry>, Error> {
        let home = home.clone();
        let kept = self.blocking(move |memory| memory.lessons(&home.platform, &home.place, &home.persona)).await?;
        // What another version wrote otherwise is nothing to build on.
        Ok(kept.and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default())
    }

    /// Notes what came of something, unless the place is forgotten by now.
    async fn note_lesson(&self, burning: &Burning, home: &Home, entry: Entry) -> Result<(), Error> {
        let _noting = burning.noting.lock().await;
        if self.0.minds.state(&home.persona, &home.place, entry.at).is_none() {
            return Ok(());
        }
        let mut entries = self.lessons_of(home).await?;
        entries.push(entry);
        while entries.len() > ENTRIES {
            // What somebody took back last says what is not to be learnt again.
            let back = entries.iter().rposition(|entry| entry.outcome == Outcome::RolledBack);
            entries.remove(usize::from(back == Some(0)));
        }
        let (home, entries) = (home.clone(), serde_json::to_value(entries).unwrap_or_default());
        self.blocking(move |memory| memory.set_lessons(&home.platform, &home.place, &home.persona, &entries)).await
    }

    /// Exchanges of a home that wait to be learnt.
    pub(crate) async fn waiting_to_be_learnt(&self, home: &Home) -> Result<usize, Error> {
        let Some(burning) = self.0.hearth.get() else { return Ok(0) };
        match self.school(burning, home).await? {
            Some(school) => Ok(self.fresh(&school).await?.0.len()),
            None => Ok(0),
        }
    }

    /// Begins to learn in a home, if it is time to: the persona rests, and nobody learns. It goes on by itself.
    pub(crate) async fn learn_if_due(&self, home: &Home, customs: &Customs, now: Timestamp) -> Result<(), Error> {
        let Some(burning) = self.0.hearth.get() else { return Ok(()) };
        if burning.hearth.trainer.is_none() || burning.hearth.barred.contains_key(&home.platform) {
            return Ok(());
        }
        let entries = self.lessons_of(home).await?;
        let again = matches!(entries.last(), Some(Entry { outcome: Outcome::Withdrawn, .. }));
        if !again {
            // What came to nothing comes to nothing again, so it is tried less and less often.
            let in_vain = |entry: &&Entry| matches!(entry.outcome, Outcome::Dropped(_) | Outcome::Failed);
            let failures = entries.iter().rev().take_while(in_vain).count();
            let pause = PAUSE * 2_u32.pow(u32::try_from(failures).unwrap_or(u32::MAX).min(MOST_DOUBLINGS));
            let lately = |entry: &Entry| entry.at <= now && now.duration_since(entry.at).unsigned_abs() < pause;
            let Some(state) = self.0.minds.state(&home.persona, &home.place, now) else { return Ok(()) };
            let rests = state.energy <= customs.nature.constants.energy_tired || customs.nature.is_night(now);
            if !rests || entries.last().is_some_and(lately) {
                return Ok(());
            }
        }
        let Ok(held) = Arc::clone(&burning.learning).try_lock_owned() else { return Ok(()) };
        let (core, burning, home) = (self.clone(), Arc::clone(burning), home.clone());
        self.0.tasks.spawn(async move {
            let _held = held;
            match core.learn_what_waits(&burning, &home, again).await {
                Ok(()) => {}
                Err(error) if error.is_transient() => tracing::info!(%error, "what was to be learnt waits"),
                Err(error) => tracing::warn!(persona = %home.persona, %error, "nothing could be learnt"),
            }
        });
        Ok(())
    }

    async fn learn_what_waits(&self, burning: &Arc<Burning>, home: &Home, again: bool) -> Result<(), Error> {
        let model = self.model();
        let name = model.info().name.clone();
        let (Some(ground), Some(trainer)) = (burning.ground(&name), burning.hearth.trainer.as_ref()) else {
            return Ok(());
        };
        let Some(school) = self.school(burning, home).await? else { return Ok(()) };
        let now = self.0.clock.now();
        let kept = burning.kept.of(&home.persona, &home.place);
        let numbers = school.entries.iter().map(|entry| entry.number).chain(kept.iter().map(|kept| kept.number));
        let number = numbers.max().unwrap_or(0) + 1;
        let Some(Chosen { lessons, older }) = self.choose(&school, burning.hearth.exchanges, again).await? else {
            if again {
                let entry = Entry { number, at: now, exchanges: 0, outcome: Outcome::TooLittle, learnt: None };
                self.note_lesson(burning, home, entry).await?;
            }
            return Ok(());
        };
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
        let seed = self.0.config.seed.unwrap_or_else(|| u64::from(any_seed()));
        let course = Course {
            model: name,
            voice: self.voice(&school),
            beside: school.serving.as_ref().and_then(|it| Some(burning.kept.file(&it.id.parse().ok()?))),
            to: burning.kept.draft(),
            seed: seed.wrapping_add(u64::from(number)),
            lessons: exchanges.clone(),
            older: older.clone(),
        };
        tracing::info!(persona = %home.persona, exchanges = exchanges.len(), "learning what was lived through");
        let entry = |outcome, loss| Entry { number, at: now, exchanges: exchanges.len(), outcome, learnt: loss };
        let trained = match trainer.learn(course, self.may_go_on()).await {
            Ok(trained) => trained,
            Err(LearnError::BrokenOff) => return Ok(()),
            Err(LearnError::Failed(why)) => {
                tracing::warn!(persona = %home.persona, %why, "nothing could be learnt");
                return self.note_lesson(burning, home, entry(Outcome::Failed, None)).await;
            }
        };
        learnt.id = trained.id.to_string();
        let probes: Vec<Lesson> = older.iter().chain(&exchanges).take(TRIED_REPLIES).cloned().collect();
        let kept = self.keep_if_good(burning, &school, &trained, &learnt, &probes, &exchanges).await;
        if !matches!(kept, Ok(Fate::Kept)) {
            self.let_go(&learnt).await;
            let (of, left) = (Arc::clone(burning), learnt.clone());
            self.blocking(move |_| of.kept.remove_draft(&left).map_err(azera_memory::Error::io("removing a draft")))
                .await?;
        }
        let loss = Some(trained.examined.learnt);
        match kept {
            Ok(Fate::Kept) => {
                // Whatever was forgotten since finds it; this is for what was noted meanwhile.
                self.withdraw_unfounded(None).await;
                self.note_lesson(burning, home, entry(Outcome::Kept, loss)).await
            }
            Ok(Fate::Overtaken) => Ok(()),
            Ok(Fate::Faulty(fault)) => {
                tracing::info!(persona = %home.persona, ?fault, "what was learnt is dropped");
                self.note_lesson(burning, home, entry(Outcome::Dropped(fault), loss)).await?;
                self.tell_of_setback(home, &school.customs).await
            }
            Err(error) => {
                self.note_lesson(burning, home, entry(Outcome::Failed, loss)).await?;
                Err(error)
            }
        }
    }

    /// Keeps what was learnt, if nothing is wrong with it, and nothing that it rests on went meanwhile.
    async fn keep_if_good(
        &self,
        burning: &Arc<Burning>,
        school: &School,
        trained: &Trained,
        learnt: &Learnt,
        probes: &[Lesson],
        lessons: &[Lesson],
    ) -> Result<Fate, Error> {
        let fault = match fault(&trained.examined) {
            Some(fault) => Some(fault),
            None => self.try_replies(school, burning, trained, probes, lessons).await?,
        };
        if let Some(fault) = fault {
            return Ok(Fate::Faulty(fault));
        }
        let (of, new, beside, id) = (Arc::clone(burning), learnt.clone(), school.serving.clone(), trained.id);
        let gone = self
            .blocking(move |memory| {
                let _changing = of.changing.lock().unwrap_or_else(PoisonError::into_inner);
                if !memory.stand(&new.roots)? || beside.is_some_and(|beside| !of.kept.has(&beside)) {
                    return Ok(None);
                }
                let io = azera_memory::Error::io("keeping what was learnt");
                std::fs::rename(of.kept.draft(), of.kept.file(&id))
                    .and_then(|()| of.kept.keep(new))
                    .map(Some)
                    .map_err(io)
            })
            .await?;
        let Some(gone) = gone else { return Ok(Fate::Overtaken) };
        for older in gone {
            self.let_go(&older).await;
        }
        Ok(Fate::Kept)
    }

    /// Writes into the journal that something learnt came to nothing, where a journal is kept and now is no quiet hour.
    async fn tell_of_setback(&self, home: &Home, customs: &Customs) -> Result<(), Error> {
        let now = self.0.clock.now();
        if !customs.garden.reflections || within(customs.garden.quiet, now, &customs.nature.zone) {
            return Ok(());
        }
        let _writing = self.0.writing.lock().await;
        self.write_for(home, Work::Setback, now).await.map(drop)
    }

    /// Waits, off the async threads, while somebody waits for an answer.
    fn may_go_on(&self) -> MayGoOn {
        let (core, runtime) = (self.clone(), tokio::runtime::Handle::current());
        Arc::new(move || {
            runtime.block_on(async {
                loop {
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

    /// Where a home's persona learns, by the platform's word of this moment.
    async fn school(&self, burning: &Burning, home: &Home) -> Result<Option<School>, Error> {
        let Some(ground) = burning.ground(&self.model().info().name) else { return Ok(None) };
        let Ok(platform) = self.platform(&home.platform) else { return Ok(None) };
        let Some(chat) = self.0.agenda.open_chat(home) else { return Ok(None) };
        let place = self.place_unasked(platform.as_ref(), &chat).await?;
        let Some(place) = place.filter(|place| place.scope() == home.place) else { return Ok(None) };
        let played = match self.persona(place.shared_realm(), &home.persona).await {
            Ok(played) => played,
            Err(Error::NoPersona(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let right = Right::in_place(home.persona.clone(), &place, &Reach::default());
        Ok(Some(School {
            serving: burning.kept.serving(&right, &ground),
            entries: self.lessons_of(home).await?,
            form: form_for(&self.model().info().family),
            customs: self.customs(&home.platform, &home.place).await?,
            persona: played.persona,
            place,
            right,
        }))
    }

    /// What may be learnt and was not yet, the most surprising first, and what was.
    async fn fresh(&self, school: &School) -> Result<(Vec<Lived>, Vec<Lived>), Error> {
        let right = school.right.clone();
        let lived = self.blocking(move |memory| memory.lived(&right, BUFFER)).await?;
        let known: BTreeSet<MessageId> =
            school.serving.iter().flat_map(|serving| serving.said.iter().cloned()).collect();
        let back = school.entries.iter().rev().find(|entry| entry.outcome == Outcome::RolledBack);
        let (old, new): (Vec<Lived>, Vec<Lived>) = lived.into_iter().partition(|it| known.contains(&it.said.id));
        // What somebody took back is not learnt over again.
        let fresh = new.into_iter().filter(|it| back.is_none_or(|back| it.said.at > back.at)).collect();
        Ok((fresh, old))
    }

    async fn choose(&self, school: &School, wanted: usize, again: bool) -> Result<Option<Chosen>, Error> {
        let left_out = wanted.div_ceil(ONE_LEFT_OUT_OF);
        let (fresh, old) = self.fresh(school).await?;
        let least = if again { FEW + 1 } else { wanted + left_out };
        if fresh.len() < least {
            return Ok(None);
        }
        let vectors = self.embed(fresh.iter().map(|it| it.said.text.as_str().to_owned()).collect()).await?;
        let mut taken: Vec<(&Lived, &Vec<f32>)> = Vec::new();
        for (lived, vector) in fresh.iter().zip(&vectors) {
            let is_new = taken.iter().all(|(_, other)| cosine(vector, other) < ALIKE);
            // Who is in danger is helped, and nobody learns from it.
            let tags = self.tags(&lived.said.text, vector);
            let helped = !school.customs.rules.matching(&tags, &Bond::new()).help.is_empty();
            if is_new && !helped {
                taken.push((lived, vector));
            }
        }
        if taken.len() < least {
            return Ok(None);
        }
        // The least surprising of them are left out.
        let learnt = wanted.min(taken.len() - left_out.min(taken.len() / 2));
        let (chosen, rest) = taken.split_at(learnt);
        let lessons = chosen.iter().filter_map(|(lived, _)| {
            let lesson = self.lesson(school, lived)?;
            Some(Prepared { lesson, said: lived.said.id.clone(), roots: lived.roots.clone() })
        });
        let lessons: Vec<Prepared> = lessons.collect();
        let older = rest.iter().map(|(lived, _)| *lived).take(LOOKED_AFTER).chain(old.iter().take(LOOKED_AFTER));
        let older = older.filter_map(|lived| self.lesson(school, lived)).collect();
        Ok((!lessons.is_empty()).then_some(Chosen { lessons, older }))
    }

    /// An exchange as it stood before the model.
    fn lesson(&self, school: &School, lived: &Lived) -> Option<Lesson> {
        let line = |row: &MessageRow| Line {
            depth: row.depth,
            speaker: row.author.person().map(|_| row.author.name().to_owned()),
            text: row.text.as_str().to_owned(),
        };
        let history: Vec<Line> = lived.before.iter().map(line).collect();
        let snippet = self.0.memory.config().snippet_chars;
        let told = |memory: &MemoryRow| {
            let text: String = memory.text.as_str().chars().take(snippet).collect();
            recollection(memory, &text)
        };
        let (written, said): (Vec<&MemoryRow>, Vec<&MemoryRow>) =
            lived.recalled.iter().partition(|it| it.kind.is_written());
        let recalled: Vec<Recollection> = said.into_iter().map(told).collect();
        let carried: Vec<Recollection> = written.into_iter().filter(|it| it.kind != Kind::Note).map(told).collect();
        let notes = lived.recalled.iter().find(|it| it.kind == Kind::Note).map(|it| it.text.as_str());
        let message = line(&lived.said);
        let parts = Parts {
            persona: &school.persona,
            user_persona: None,
            lore: &[],
            manner: &[],
            plainly: false,
            group: !matches!(school.place.kind, PlaceKind::Dm(_)),
            carried: &carried,
            notes,
            history: &history,
            recalled: &recalled,
            message: &message,
        };
        let mut lesson = self.composed(&school.form, &parts, lived.reply.text.as_str())?;
        // A long message may have been cut in its middle to fit.
        let words = lived.said.text.as_str();
        if lesson.messages.last().is_some_and(|last| last.content.ends_with(words)) {
            lesson.words = words.to_owned();
        }
        Some(lesson)
    }

    fn composed(&self, form: &Form, parts: &Parts<'_>, reply: &str) -> Option<Lesson> {
        let model = self.model();
        let reply_tokens = self.0.config.reply_tokens.min(form.reply_tokens);
        let context_tokens = (PROMPT_TOKENS + reply_tokens).min(model.info().context_tokens);
        let budget = Budget { context_tokens, reply_tokens };
        let count = |text: &str| model.count_tokens(text);
        // A persona that leaves no room learns nothing.
        let prompt = compose(form, parts, budget, &count).ok()?;
        Some(Lesson { messages: prompt.messages, words: String::new(), reply: reply.to_owned() })
    }

    /// What the persona's file has it say, asked without its examples before its eyes.
    fn voice(&self, school: &School) -> Vec<Lesson> {
        let mut persona = school.persona.clone();
        let examples = std::mem::take(&mut persona.examples);
        let mut lessons = Vec::new();
        for example in &examples {
            let said: Vec<_> = example.turns.iter().filter(|turn| turn.speaker != Speaker::Memory).collect();
            for pair in said.windows(2) {
                let [asked, told] = pair else { continue };
                if asked.speaker != Speaker::Person || told.speaker != Speaker::Persona {
                    continue;
                }
                let message = Line { depth: 0, speaker: Some("Friend".to_owned()), text: asked.text.clone() };
                let parts = Parts {
                    persona: &persona,
                    user_persona: None,
                    lore: &[],
                    manner: &[],
                    plainly: false,
                    group: false,
                    carried: &[],
                    notes: None,
                    history: &[],
                    recalled: &[],
                    message: &message,
                };
                lessons.extend(self.composed(&school.form, &parts, &told.text));
            }
        }
        lessons.truncate(LOOKED_AFTER);
        lessons
    }

    /// What is wrong with replies made with a new adapter, if anything is.
    async fn try_replies(
        &self,
        school: &School,
        burning: &Burning,
        trained: &Trained,
        probes: &[Lesson],
        lessons: &[Lesson],
    ) -> Result<Option<Fault>, Error> {
        let adapter = Adapter::new(trained.id, burning.kept.draft());
        for probe in probes {
            let asked: String = probe.messages.iter().map(|it| format!("{}\n", it.content)).collect();
            let others = || lessons.iter().filter(|lesson| *lesson != probe).map(|lesson| lesson.reply.as_str());
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

    /// What is told of a try that came to nothing, a line each.
    pub(crate) async fn setback(&self, home: &Home) -> Result<Option<String>, Error> {
        let entries = self.lessons_of(home).await?;
        let Some(Entry { exchanges, outcome: Outcome::Dropped(fault), .. }) = entries.last() else { return Ok(None) };
        Ok(Some(format!(
            "- Tried: I went over {exchanges} talks once more to make them part of me.\n- Outcome: I let it go, for it {}.",
            fault.told()
        )))
    }
}
