//! Check-ins: a persona asks somebody who wants that how they are, after some days of silence. At most one check-in is
//! unanswered.
//!
//! Somebody who spoke of harming themselves gets check-ins like everybody else who asked for them, because silence
//! would then be the wrong answer. But no model writes that check-in and no persona is played: it is a fixed text with
//! help lines.

use azera_affect::{Bond, Help, check_in_opening};
use azera_memory::{CheckInRequest, Kind, MessageRow, ReadScope};
use azera_types::{PersonaId, PlatformId, Scope, Text, Timestamp};

use super::agenda::{ChatActivity, PersonaPlace};
use super::draft::{ATTEMPTS, Draft, DraftRequest};
use super::material::{self, SourceLine};
use super::open_matters::OpenLine;
use super::pieces::frowned_on;
use super::prompts::{CHECK_IN, Filling, fill};
use super::schedule::{after, before, days, is_past};
use crate::background::Background;
use crate::error::Error;
use crate::overrides::Overrides;

/// Newest messages of the conversation that are read.
const LOOKED_AT: usize = 60;

/// Newest messages of the person that the check-in may take up.
const TAKEN_UP: usize = 8;

/// Days before the silence in which a message about danger makes the check-in a fixed text; our own choice.
const LATELY_DAYS: u32 = 14;

/// Somebody who has been silent for long enough.
struct QuietPeriod {
    talk: ChatActivity,
    /// The persona's name.
    name: String,
    /// The person's name.
    other: String,
    /// The person's newest messages.
    theirs: Vec<SourceLine>,
    /// The person's messages in the last days before the silence.
    lately: Vec<MessageRow>,
    read_scope: ReadScope,
}

/// What a check-in is about.
struct Told {
    /// The lines, the oldest first.
    chosen: Vec<SourceLine>,
    /// The same for the prompt: what was left open stands by itself, with its day.
    prompt: String,
}

/// Chooses what a check-in is about: what was left open before, and the newest lines that say most.
fn told(theirs: Vec<SourceLine>, open: Option<OpenLine>, lines: usize, other: &str) -> Told {
    let mut chosen = material::telling(theirs, lines);
    let Some(open) = open else {
        let prompt = material::lines(&chosen);
        return Told { chosen, prompt };
    };
    chosen.drain(..chosen.len().saturating_sub(lines.saturating_sub(1)));
    let (day, said) = (open.day(), material::lines(std::slice::from_ref(&open.line)));
    let said = said.strip_prefix("- ").unwrap_or(&said).to_owned();
    let mut prompt = material::lines(&chosen);
    prompt.push_str(&format!("\n\nWhat {other} left open before:\n- on {day}: {said}"));
    chosen.insert(0, open.line);
    chosen.sort_by_key(|said| said.at);
    Told { chosen, prompt }
}

impl Background {
    /// Loads who wants check-ins.
    pub(super) async fn load_check_ins(&self, platform: &PlatformId) -> Result<(), Error> {
        let of = platform.clone();
        for (place, persona, wanted) in self.services.blocking(move |memory| memory.places().all_check_ins(&of)).await?
        {
            let home = PersonaPlace { platform: platform.clone(), place, persona };
            self.minds.agenda.expect(home, wanted.chat, wanted.since);
        }
        Ok(())
    }

    /// Stores whether somebody wants check-ins.
    pub(crate) async fn want_check_ins(
        &self,
        home: &PersonaPlace,
        wanted: Option<CheckInRequest>,
    ) -> Result<(), Error> {
        let (of, stored) = (home.clone(), wanted.clone());
        self.services
            .blocking(move |memory| {
                memory.places().set_check_ins(&of.platform, &of.place, &of.persona, stored.as_ref())
            })
            .await?;
        match wanted {
            Some(wanted) => self.minds.agenda.expect(home.clone(), wanted.chat, wanted.since),
            None => self.minds.agenda.expect_no_more(home),
        }
        Ok(())
    }

    /// Returns the personas from which somebody wants check-ins in a direct message.
    pub(crate) async fn check_ins_in(
        &self,
        platform: &PlatformId,
        place: &Scope,
    ) -> Result<Vec<(PersonaId, CheckInRequest)>, Error> {
        let of = platform.clone();
        let all = self.services.blocking(move |memory| memory.places().all_check_ins(&of)).await?;
        Ok(all.into_iter().filter(|(home, ..)| home == place).map(|(_, persona, wanted)| (persona, wanted)).collect())
    }

    /// Sends a check-in if one is due. The caller holds `writing`.
    pub(super) async fn check_in_if_due(
        &self,
        home: &PersonaPlace,
        overrides: &Overrides,
        now: Timestamp,
    ) -> Result<(), Error> {
        let of = home.clone();
        let wanted = self
            .services
            .blocking(move |memory| memory.places().check_ins(&of.platform, &of.place, &of.persona))
            .await?;
        let Some(wanted) = wanted else {
            // The request was forgotten meanwhile.
            self.minds.agenda.expect_no_more(home);
            return Ok(());
        };
        if wanted.tried.is_some_and(|tried| !is_past(tried, days(1), now)) {
            return Ok(());
        }
        let Some(asks) = self.quiet_period(home, &wanted, now).await? else { return Ok(()) };
        // Without the classifiers, danger cannot be detected, so no check-in is sent.
        if self.judge.classifiers.now().is_none() {
            return Ok(());
        }
        let hard = self.spoken_in_danger(overrides, &asks.lately).await?;
        if !hard.is_empty() {
            let text =
                Text::new(check_in_opening(&asks.other, overrides.locale(self.services.config.locale.as_deref())));
            let plain = Draft { text, themes: Vec::new(), prompt: None, model: None };
            return self.send_check_in(home, &wanted, &asks.talk, &hard, plain, now).await;
        }
        // A message against the rules is not left to a model; then there is no check-in today.
        for said in &asks.theirs {
            if self.is_frowned_on(overrides, &said.text).await? {
                return self.note_try(home, &wanted, now).await;
            }
        }
        if self.budget_by_day(home, now).await? == 0 {
            return Ok(());
        }
        let open = self.open_for_check_in(home, &asks, now).await?;
        let Told { chosen, prompt } = told(asks.theirs, open, self.writing_form().lines, &asks.other);
        let Some(about) = chosen.last().and_then(|said| said.sources.first()) else { return Ok(()) };
        let given = material::lines(&chosen);
        let other = &asks.other;
        for attempt in 0..ATTEMPTS {
            if self.budget_by_day(home, now).await? == 0 {
                return Ok(());
            }
            let messages = fill(CHECK_IN, &Filling { persona: &asks.name, lines: &prompt, mood: None, other });
            let request = DraftRequest { messages, given: &given, lead: format!("Hello {other}!"), about, attempt };
            let composed = self.compose(request).await;
            self.note_model_calls(home, now, 1).await?;
            match composed? {
                Ok(composed) if !self.is_frowned_on(overrides, &composed.text).await? => {
                    return self.send_check_in(home, &wanted, &asks.talk, &chosen, composed, now).await;
                }
                Ok(_) => {}
                Err(flaw) => tracing::debug!(?flaw, "discarding a check-in"),
            }
        }
        self.note_try(home, &wanted, now).await
    }

    /// Returns what the person left open before the lines that a check-in is about. It is left out if anything that they
    /// said in the same conversation is about danger or against the rules.
    async fn open_for_check_in(
        &self,
        home: &PersonaPlace,
        asks: &QuietPeriod,
        now: Timestamp,
    ) -> Result<Option<OpenLine>, Error> {
        let Scope::Dm(person) = &home.place else { return Ok(None) };
        let Some(open) = self.open_line_of(home, &asks.read_scope, person, now).await else { return Ok(None) };
        if asks.theirs.iter().any(|said| said.sources == open.line.sources) {
            return Ok(None);
        }
        let is_unfit = self.stands_beside_danger(home, &asks.read_scope, &open).await?;
        Ok((!is_unfit).then_some(open))
    }

    pub(super) async fn is_any_dangerous_or_frowned_on(
        &self,
        overrides: &Overrides,
        said: &[Text],
    ) -> Result<bool, Error> {
        let is_unfit = |text: &Text, vector: &[f32]| {
            let tags = self.judge.tags(text, vector);
            let is_hard = overrides.rules.matching(&tags, &Bond::new()).help.contains(&Help::Crisis);
            is_hard || frowned_on(&overrides.rules, &tags)
        };
        for some in said.chunks(LOOKED_AT) {
            let vectors = self.indexer.embed(some.iter().map(|text| text.as_str().to_owned()).collect()).await?;
            if some.iter().zip(&vectors).any(|(text, vector)| is_unfit(text, vector)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends the check-in, unless the person has said something meanwhile or no longer wants check-ins.
    async fn send_check_in(
        &self,
        home: &PersonaPlace,
        wanted: &CheckInRequest,
        talk: &ChatActivity,
        about: &[SourceLine],
        composed: Draft,
        now: Timestamp,
    ) -> Result<(), Error> {
        // The check-in is recorded first, so that nobody is asked twice.
        let then = CheckInRequest { last: Some(now), tried: Some(now), ..wanted.clone() };
        let still = self.quiet_period(home, wanted, now).await?.is_some();
        if still && self.note_check_in(home, wanted, then).await? {
            let post = Some(home.platform.clone());
            self.keep_of(talk, Kind::CheckIn, about, composed, now, post).await?;
        }
        Ok(())
    }

    /// Returns the messages that call for crisis help lines.
    async fn spoken_in_danger(&self, overrides: &Overrides, said: &[MessageRow]) -> Result<Vec<SourceLine>, Error> {
        let vectors = self.indexer.embed(said.iter().map(|row| row.text.as_str().to_owned()).collect()).await?;
        let is_hard = |row: &MessageRow, vector: &[f32]| {
            let tags = self.judge.tags(&row.text, vector);
            overrides.rules.matching(&tags, &Bond::new()).help.contains(&Help::Crisis)
        };
        let hard = said.iter().zip(&vectors).filter(|(row, vector)| is_hard(row, vector));
        Ok(hard.map(|(row, _)| SourceLine::from(row)).collect())
    }

    /// Returns what somebody said last, if they have been silent for the number of days they chose.
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
        let (chat, of) = (wanted.chat.clone(), read_scope.clone());
        let (chat, rows, last_asked) = self
            .services
            .blocking(move |memory| {
                let last_asked = memory.writings().list(&of, &[Kind::CheckIn], 1)?.pop().map(|(memory, _)| memory.at);
                Ok((memory.chats().get(&chat)?, memory.messages().history(&of, &chat, LOOKED_AT)?, last_asked))
            })
            .await?;
        // Another persona may answer there by now.
        if place.scope() != home.place || chat.is_none_or(|chat| !chat.is_served_by(&home.persona)) {
            return Ok(None);
        }
        let theirs: Vec<&MessageRow> = rows.iter().filter(|row| row.author.person() == Some(person)).collect();
        let Some(newest) = theirs.last() else { return Ok(None) };
        // They may have written in another chat, or to another persona.
        let heard =
            self.minds.agenda.said_in(&home.platform, &home.place, now).max(Some(newest.at)).unwrap_or(newest.at);
        // A crash may have come between the check-in and its record.
        let last_asked = last_asked.max(wanted.last);
        if last_asked.is_some_and(|last_asked| last_asked >= newest.at) || after(heard, days(wanted.days)) > now {
            return Ok(None);
        }
        let other = newest.author.name().to_owned();
        let first = theirs.len().saturating_sub(TAKEN_UP);
        let since = before(newest.at, days(LATELY_DAYS));
        let lately = theirs.iter().filter(|row| row.at >= since).map(|row| (*row).clone()).collect();
        let theirs = theirs.into_iter().skip(first).map(SourceLine::from).collect();
        Ok(Some(QuietPeriod { talk, name, other, theirs, lately, read_scope }))
    }

    async fn is_frowned_on(&self, overrides: &Overrides, text: &str) -> Result<bool, Error> {
        let vector = self.indexer.embed(vec![text.to_owned()]).await?.pop().unwrap_or_default();
        Ok(frowned_on(&overrides.rules, &self.judge.tags(text, &vector)))
    }

    /// Records that today's attempt failed.
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
            memory.places().note_check_in(&of.platform, &of.place, &of.persona, (&before, &then))
        };
        self.services.blocking(noted).await
    }
}

#[cfg(test)]
mod tests {
    use azera_types::{PersonId, TimeZone};

    use super::*;

    fn said(at: &str, text: &str) -> MessageRow {
        let ann = PersonId::new("ann").unwrap();
        crate::test_rows::said(at, Scope::Dm(ann), at.parse().unwrap(), text)
    }

    #[test]
    fn what_was_left_open_stands_by_itself_with_its_day() {
        let plan = said("2026-03-03T10:00:00Z", "I'm going to paint the zeppelin.");
        let open = OpenLine {
            line: SourceLine::from(&plan),
            chat: plan.chat.clone(),
            span: (plan.at, plan.at),
            zone: TimeZone::UTC,
        };
        let last = SourceLine::from(&said("2026-03-09T10:00:00Z", "The lighthouse flooded."));
        let Told { chosen, prompt } = told(vec![last.clone()], Some(open), 6, "Ann");
        assert_eq!(
            prompt,
            "- Ann: The lighthouse flooded.\n\nWhat Ann left open before:\n- on 3 March: Ann: I'm going to paint the \
             zeppelin."
        );
        assert_eq!(chosen.iter().map(|said| said.at).collect::<Vec<_>>(), [plan.at, last.at]);
        assert_eq!(told(vec![last], None, 6, "Ann").prompt, "- Ann: The lighthouse flooded.");
    }
}
