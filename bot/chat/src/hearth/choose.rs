//! What is to be learnt: which exchanges, and how they stood before the model.

use std::collections::BTreeSet;
use std::sync::Arc;

use azera_memory::{Kind, Lived, MemoryRow, MessageRow, Right};
use azera_mind::Bond;
use azera_personas::{Persona, Speaker};
use azera_prompt::{Budget, Form, Line, Parts, Recollection, compose, form_for};
use azera_types::{ChatId, MessageId, Place, PlaceKind, Reach};

use super::kept::Learnt;
use super::serve::{Entry, Outcome};
use super::{Burning, Lesson, Prepared};
use crate::azera::Azera;
use crate::customs::Customs;
use crate::error::Error;
use crate::gardener::Home;
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

/// Tokens of a lesson's prompt at most: what stands before an exchange is there to place it.
const PROMPT_TOKENS: usize = 1_280;

/// Where something is learnt.
pub(super) struct School {
    pub(super) chat: ChatId,
    pub(super) place: Place,
    pub(super) right: Right,
    pub(super) persona: Persona,
    pub(super) customs: Arc<Customs>,
    pub(super) form: Form,
    /// What serves there by now.
    pub(super) serving: Option<Learnt>,
    pub(super) entries: Vec<Entry>,
    /// Whether it is another machine that learns.
    pub(super) elsewhere: bool,
}

/// What is to be learnt, and what is not.
pub(super) struct Chosen {
    pub(super) lessons: Vec<Prepared>,
    pub(super) older: Vec<Prepared>,
}

impl Azera {
    /// Where a home's persona learns, by the platform's word of this moment.
    pub(super) async fn school(&self, burning: &Burning, home: &Home) -> Result<Option<School>, Error> {
        match self.0.agenda.open_chat(home) {
            Some(chat) => self.school_in(burning, home, chat).await,
            None => Ok(None),
        }
    }

    /// The same by a chat of the home.
    pub(super) async fn school_in(
        &self,
        burning: &Burning,
        home: &Home,
        chat: ChatId,
    ) -> Result<Option<School>, Error> {
        let Some(ground) = burning.ground(&self.model().info().name) else { return Ok(None) };
        let Ok(platform) = self.platform(&home.platform) else { return Ok(None) };
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
            elsewhere: burning.hearth.courier.is_some(),
            chat,
            place,
            right,
        }))
    }

    /// What may be learnt and was not yet, the most surprising first, and what was.
    async fn fresh(&self, school: &School) -> Result<(Vec<Lived>, Vec<Lived>), Error> {
        let (right, elsewhere) = (school.right.clone(), school.elsewhere);
        let known = school.serving.as_ref().map_or_else(BTreeSet::new, |serving| serving.said.clone());
        // What somebody took back is not learnt over again.
        let back = school.entries.iter().filter(|entry| entry.outcome == Outcome::RolledBack);
        let back: BTreeSet<MessageId> = back.flat_map(|entry| entry.said.iter().cloned()).collect();
        self.blocking(move |memory| {
            let is_fresh = |id: &MessageId, _| !known.contains(id) && !back.contains(id);
            let fresh = memory.lived(&right, elsewhere, &is_fresh, BUFFER)?;
            let old = match known.is_empty() {
                true => Vec::new(),
                false => memory.lived(&right, elsewhere, &|id, _| known.contains(id), LOOKED_AFTER)?,
            };
            Ok((fresh, old))
        })
        .await
    }

    pub(super) async fn choose(&self, school: &School, wanted: usize, again: bool) -> Result<Option<Chosen>, Error> {
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
        let prepare = |lived: &Lived| {
            let lesson = self.lesson(school, lived)?;
            Some(Prepared { lesson, said: lived.said.id.clone(), roots: lived.roots.clone() })
        };
        let lessons: Vec<Prepared> = chosen.iter().filter_map(|(lived, _)| prepare(lived)).collect();
        let older = rest.iter().map(|(lived, _)| *lived).take(LOOKED_AFTER).chain(&old);
        let older = older.filter_map(prepare).collect();
        Ok((!lessons.is_empty()).then_some(Chosen { lessons, older }))
    }

    /// An exchange in the form of a turn: with what was recalled, the last messages before it, and no lore, role or manner of the day.
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
            group: !matches!(school.place.kind, PlaceKind::Dm(_)),
            carried: &carried,
            notes,
            history: &history,
            recalled: &recalled,
            ..Parts::new(&school.persona, &message)
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
    pub(super) fn voice(&self, school: &School) -> Vec<Lesson> {
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
                lessons.extend(self.composed(&school.form, &Parts::new(&persona, &message), &told.text));
            }
        }
        lessons.truncate(LOOKED_AFTER);
        lessons
    }

    /// Exchanges of a home that wait to be learnt.
    pub(crate) async fn waiting_to_be_learnt(&self, home: &Home) -> Result<usize, Error> {
        let Some(burning) = self.0.hearth.get() else { return Ok(0) };
        match self.school(burning, home).await? {
            Some(school) => Ok(self.fresh(&school).await?.0.len()),
            None => Ok(0),
        }
    }
}
