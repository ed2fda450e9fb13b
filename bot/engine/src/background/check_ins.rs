//! Waking: somebody who asked for it is looked in on after some days of silence. There is one unanswered at most.
//!
//! Who spoke of harming themselves is looked in on like everybody who asked for it: just then silence is the wrong answer. But no
//! model writes it and no persona is played: they are asked plainly, in fixed words, and told where there is help.

use azera_affect::{Bond, Help, check_in_opening};
use azera_memory::{CheckInRequest, Kind, MessageRow};
use azera_types::{PersonaId, PlatformId, Scope, Text, Timestamp};

use super::agenda::{ChatActivity, PersonaPlace};
use super::draft::{ATTEMPTS, Draft, DraftRequest};
use super::material::{self, SourceLine};
use super::pieces::frowned_on;
use super::prompts::{CHECK_IN, Filling, fill};
use super::schedule::{after, before, days, is_past};
use crate::engine::Engine;
use crate::error::Error;
use crate::overrides::Overrides;

/// Messages of a conversation looked at.
const LOOKED_AT: usize = 60;

/// Messages of theirs that are taken up: the newest.
const TAKEN_UP: usize = 8;

/// Days before they fell silent within which somebody who was in danger is looked in on with care; a choice of our own.
const LATELY_DAYS: u32 = 14;

/// Somebody who has been silent for long.
struct QuietPeriod {
    talk: ChatActivity,
    /// The persona's name.
    name: String,
    /// Theirs.
    other: String,
    /// What they said last.
    theirs: Vec<SourceLine>,
    /// What they said in the days before they fell silent.
    lately: Vec<MessageRow>,
}

impl Engine {
    /// Learns who wants to be looked in on.
    pub(super) async fn load_check_ins(&self, platform: &PlatformId) -> Result<(), Error> {
        let of = platform.clone();
        for (place, persona, wanted) in self.blocking(move |memory| memory.all_check_ins(&of)).await? {
            let home = PersonaPlace { platform: platform.clone(), place, persona };
            self.0.agenda.expect(home, wanted.chat, wanted.since);
        }
        Ok(())
    }

    /// Notes whether somebody wants to be looked in on.
    pub(crate) async fn want_check_ins(
        &self,
        home: &PersonaPlace,
        wanted: Option<CheckInRequest>,
    ) -> Result<(), Error> {
        let (of, retained) = (home.clone(), wanted.clone());
        self.blocking(move |memory| memory.set_check_ins(&of.platform, &of.place, &of.persona, retained.as_ref()))
            .await?;
        match wanted {
            Some(wanted) => self.0.agenda.expect(home.clone(), wanted.chat, wanted.since),
            None => self.0.agenda.expect_no_more(home),
        }
        Ok(())
    }

    /// By whom somebody wants to be looked in on in a direct message.
    pub(crate) async fn check_ins_in(
        &self,
        platform: &PlatformId,
        place: &Scope,
    ) -> Result<Vec<(PersonaId, CheckInRequest)>, Error> {
        let of = platform.clone();
        let all = self.blocking(move |memory| memory.all_check_ins(&of)).await?;
        Ok(all.into_iter().filter(|(home, ..)| home == place).map(|(_, persona, wanted)| (persona, wanted)).collect())
    }

    /// Asks somebody how things are, if it is time to. Whoever calls holds `writing`.
    pub(super) async fn check_in_if_due(
        &self,
        home: &PersonaPlace,
        overrides: &Overrides,
        now: Timestamp,
    ) -> Result<(), Error> {
        let of = home.clone();
        let wanted = self.blocking(move |memory| memory.check_ins(&of.platform, &of.place, &of.persona)).await?;
        let Some(wanted) = wanted else {
            // They were forgotten meanwhile.
            self.0.agenda.expect_no_more(home);
            return Ok(());
        };
        if wanted.tried.is_some_and(|tried| !is_past(tried, days(1), now)) {
            return Ok(());
        }
        let Some(asks) = self.quiet_period(home, &wanted, now).await? else { return Ok(()) };
        // Until it can be told what was said, nobody is asked.
        if self.0.classifiers.now().is_none() {
            return Ok(());
        }
        let hard = self.spoken_in_danger(overrides, &asks.lately).await?;
        if !hard.is_empty() {
            let text = Text::new(check_in_opening(&asks.other, overrides.locale(self.0.config.locale.as_deref())));
            let plain = Draft { text, themes: Vec::new(), prompt: None, model: None };
            return self.look_in(home, &wanted, &asks.talk, &hard, plain, now).await;
        }
        // What a model does not take up well is not left to it: then nobody is asked today.
        for said in &asks.theirs {
            if self.is_frowned_on(overrides, &said.text).await? {
                return self.note_try(home, &wanted, now).await;
            }
        }
        let chosen = material::telling(asks.theirs, self.writing_form().lines);
        let Some(about) = chosen.last().and_then(|said| said.sources.first()) else { return Ok(()) };
        let given = material::lines(&chosen);
        let other = &asks.other;
        for attempt in 0..ATTEMPTS {
            if self.budget_by_day(home, now).await? == 0 {
                return Ok(());
            }
            let messages = fill(CHECK_IN, &Filling { persona: &asks.name, lines: &given, mood: None, other });
            let model_calls = DraftRequest { messages, given: &given, lead: format!("Hello {other}!"), about, attempt };
            let composed = self.compose(model_calls).await;
            self.note_model_calls(home, now, 1).await?;
            match composed? {
                Ok(composed) if !self.is_frowned_on(overrides, &composed.text).await? => {
                    return self.look_in(home, &wanted, &asks.talk, &chosen, composed, now).await;
                }
                Ok(_) => {}
                Err(flaw) => tracing::debug!(?flaw, "what was to be asked is not kept"),
            }
        }
        self.note_try(home, &wanted, now).await
    }

    /// Asks how things are, unless they have said something meanwhile, or changed their mind.
    async fn look_in(
        &self,
        home: &PersonaPlace,
        wanted: &CheckInRequest,
        talk: &ChatActivity,
        about: &[SourceLine],
        composed: Draft,
        now: Timestamp,
    ) -> Result<(), Error> {
        // Asking is noted first: nobody is asked twice.
        let then = CheckInRequest { last: Some(now), tried: Some(now), ..wanted.clone() };
        let still = self.quiet_period(home, wanted, now).await?.is_some();
        if still && self.note_check_in(home, wanted, then).await? {
            let post = Some(home.platform.clone());
            self.keep_of(talk, Kind::CheckIn, about, composed, now, post).await?;
        }
        Ok(())
    }

    /// What of this calls for help lines, and no act.
    async fn spoken_in_danger(&self, overrides: &Overrides, said: &[MessageRow]) -> Result<Vec<SourceLine>, Error> {
        let vectors = self.embed(said.iter().map(|row| row.text.as_str().to_owned()).collect()).await?;
        let is_hard = |row: &MessageRow, vector: &[f32]| {
            let tags = self.tags(&row.text, vector);
            overrides.rules.matching(&tags, &Bond::new()).help.contains(&Help::Crisis)
        };
        let hard = said.iter().zip(&vectors).filter(|(row, vector)| is_hard(row, vector));
        Ok(hard.map(|(row, _)| SourceLine::from(row)).collect())
    }

    /// What somebody said last, if they have been silent for as long as they said.
    async fn quiet_period(
        &self,
        home: &PersonaPlace,
        wanted: &CheckInRequest,
        now: Timestamp,
    ) -> Result<Option<QuietPeriod>, Error> {
        let Scope::Dm(person) = &home.place else { return Ok(None) };
        let talk =
            ChatActivity { platform: home.platform.clone(), chat: wanted.chat.clone(), persona: home.persona.clone() };
        let Some((place, read_scope, name, _)) = self.whereabouts(&talk).await? else { return Ok(None) };
        let chat = wanted.chat.clone();
        let (chat, rows, model_calls) = self
            .blocking(move |memory| {
                let model_calls = memory.writings(&read_scope, &[Kind::CheckIn], 1)?.pop().map(|(memory, _)| memory.at);
                Ok((memory.chat(&chat)?, memory.history(&read_scope, &chat, LOOKED_AT)?, model_calls))
            })
            .await?;
        // Another persona may answer there by now.
        if place.scope() != home.place || chat.is_none_or(|chat| !chat.is_served_by(&home.persona)) {
            return Ok(None);
        }
        let theirs: Vec<&MessageRow> = rows.iter().filter(|row| row.author.person() == Some(person)).collect();
        let Some(newest) = theirs.last() else { return Ok(None) };
        // They may talk in another chat, or to another persona.
        let heard = self.0.agenda.said_in(&home.platform, &home.place, now).max(Some(newest.at)).unwrap_or(newest.at);
        // A crash may have come between what was asked and the note of it.
        let model_calls = model_calls.max(wanted.last);
        if model_calls.is_some_and(|model_calls| model_calls >= newest.at) || after(heard, days(wanted.days)) > now {
            return Ok(None);
        }
        let other = newest.author.name().to_owned();
        let first = theirs.len().saturating_sub(TAKEN_UP);
        let since = before(newest.at, days(LATELY_DAYS));
        let lately = theirs.iter().filter(|row| row.at >= since).map(|row| (*row).clone()).collect();
        let theirs = theirs.into_iter().skip(first).map(SourceLine::from).collect();
        Ok(Some(QuietPeriod { talk, name, other, theirs, lately }))
    }

    async fn is_frowned_on(&self, overrides: &Overrides, text: &str) -> Result<bool, Error> {
        let vector = self.embed(vec![text.to_owned()]).await?.pop().unwrap_or_default();
        Ok(frowned_on(&overrides.rules, &self.tags(text, &vector)))
    }

    /// Notes that nothing came of it today.
    async fn note_try(&self, home: &PersonaPlace, wanted: &CheckInRequest, now: Timestamp) -> Result<(), Error> {
        let then = CheckInRequest { tried: Some(now), ..wanted.clone() };
        self.note_check_in(home, wanted, then).await.map(drop)
    }

    async fn note_check_in(
        &self,
        home: &PersonaPlace,
        before: &CheckInRequest,
        then: CheckInRequest,
    ) -> Result<bool, Error> {
        let (of, before) = (home.clone(), before.clone());
        let noted = move |memory: &azera_memory::Memory| {
            memory.note_check_in(&of.platform, &of.place, &of.persona, (&before, &then))
        };
        self.blocking(noted).await
    }
}
