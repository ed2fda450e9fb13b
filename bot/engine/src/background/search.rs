//! Searches a finished conversation for what is worth keeping: by classifiers, and by the chat model if it is good enough.
//! `imported_reading` has parts of imported conversations read by the model in the same way.
//! Failed requests about imports count for the day, too.
//!
//! The model reads a conversation chunk by chunk. After each chunk its marks and then the progress are stored, so a
//! crash or a model that is away costs at most one chunk, and searching it again gives the same marks. While the model is
//! away, the conversation waits; after [`MAX_ABSENCES`] tries the classifiers search it. They do so, too, after live chat
//! took precedence [`MAX_INTERRUPTIONS`] times. Each cause is counted by itself, and only requests that the model answered
//! count for the day.

use std::collections::HashSet;
use std::ops::Range;

use azera_affect::{Classifiers, ConversationMessage};
use azera_memory::{ExtractionProgress, MAX_HISTORY, Memory, MessageRow, PendingImport, ReadScope, Salience};
use azera_types::{MessageId, Timestamp};

use super::agenda::{ChatActivity, PersonaPlace};
use super::diary::LOOKED_AT;
use super::extract::{Comparison, mark_of};
use super::items::Findings;
use super::transcript::{Chunk, Transcript};
use crate::background::Background;
use crate::display_names::DisplayNames;
use crate::error::Error;

/// How many times the claims of the same messages are compared while the model is away. Then all statements stand.
const MAX_TRIES: u16 = 1_000;

/// How many times the model is asked about the same messages while it is away: for about six hours. Then the classifiers
/// search them.
const MAX_ABSENCES: u16 = 36;

/// How many times the search of the same messages gives way to live chat: for about a day. Then the classifiers search
/// them.
const MAX_INTERRUPTIONS: u16 = 144;

/// Where a conversation took place.
#[derive(Clone, Copy)]
pub(super) enum Origin<'a> {
    /// On a platform.
    Talk(&'a ChatActivity),
    /// In another program. The classifiers searched it before, so it waits for the model as long as that takes.
    Import(&'a PendingImport),
}

/// A conversation that is searched.
pub(super) struct Search<'a> {
    pub(super) of: Origin<'a>,
    pub(super) home: PersonaPlace,
    pub(super) read_scope: ReadScope,
    /// The messages, oldest first, with those that were searched before.
    pub(super) rows: Vec<&'a MessageRow>,
    pub(super) is_new: Vec<bool>,
    /// What the classifiers found in the new ones.
    pub(super) classified: Vec<(&'a MessageRow, Salience)>,
    /// The stored progress.
    pub(super) progress: ExtractionProgress,
    pub(super) now: Timestamp,
}

impl Background {
    /// Extracts memories from the messages of a chat that are new or edited since the last extraction.
    pub(super) async fn extract(&self, talk: &ChatActivity, now: Timestamp) -> Result<(), Error> {
        // Without the classifiers, extraction waits for the next time.
        let Some(classifiers) = self.judge.classifiers.now() else { return Ok(()) };
        let Some((place, read_scope, ..)) = self.whereabouts(talk).await? else { return Ok(()) };
        let (chat, persona) = (talk.chat.clone(), talk.persona.clone());
        let before =
            self.services.blocking(move |memory| memory.progress().extraction_progress(&chat, &persona)).await?;
        let rows = self.newest_rows(talk, &read_scope, before).await?;
        // Posts are not part of the conversation.
        let talked = rows.iter().filter(|row| row.author.person().is_some() || row.answers.is_some());
        let rows: Vec<&MessageRow> = talked.collect();
        let is_new = |row: &&MessageRow| {
            before.is_none_or(|before| row.seq > before.seq || row.edited_at.is_some_and(|edited| edited > before.at))
        };
        let is_new: Vec<bool> = rows.iter().map(is_new).collect();
        if before.is_none() && rows.is_empty() {
            return Ok(());
        }
        let home =
            PersonaPlace { platform: talk.platform.clone(), place: place.scope(), persona: talk.persona.clone() };
        let progress = before.unwrap_or_else(ExtractionProgress::none);
        let classified = self.classified(&classifiers, &rows, &is_new).await?;
        self.search(Search { of: Origin::Talk(talk), home, read_scope, rows, is_new, classified, progress, now })
            .await
            .map(drop)
    }

    /// Returns the newest messages of a chat: [`LOOKED_AT`], or as many as memory returns at once if the last search does
    /// not reach back that far, as in a channel where nobody paused for hours.
    async fn newest_rows(
        &self,
        talk: &ChatActivity,
        read_scope: &ReadScope,
        before: Option<ExtractionProgress>,
    ) -> Result<Vec<MessageRow>, Error> {
        let (chat, of) = (talk.chat.clone(), read_scope.clone());
        let read = move |memory: &Memory| {
            let rows = memory.messages().history(&of, &chat, LOOKED_AT)?;
            let is_searched = |row: &MessageRow| before.is_some_and(|before| row.seq <= before.seq);
            match rows.first() {
                Some(oldest) if rows.len() == LOOKED_AT && !is_searched(oldest) => {
                    memory.messages().history(&of, &chat, MAX_HISTORY)
                }
                _ => Ok(rows),
            }
        };
        self.services.blocking(read).await
    }

    async fn classified<'a>(
        &self,
        classifiers: &Classifiers,
        rows: &[&'a MessageRow],
        is_new: &[bool],
    ) -> Result<Vec<(&'a MessageRow, Salience)>, Error> {
        let new = rows.iter().zip(is_new).filter(|(_, is_new)| **is_new).map(|(row, _)| *row);
        self.find_salient(classifiers, &new.collect::<Vec<_>>()).await
    }

    /// Lets the model search a conversation, or marks what the classifiers found. Returns false if the rest of an import is
    /// still to be read, because an answer was cut off.
    pub(super) async fn search(&self, mut search: Search<'_>) -> Result<bool, Error> {
        let setting = self.minds.overrides(&search.home.platform, &search.home.place).await?.garden.extract_with_model;
        let names = DisplayNames::new(&search.home.place, search.rows.iter().map(|row| &row.author), []);
        let names: Vec<String> = search.rows.iter().map(|row| names.of(&row.author)).collect();
        let said: Vec<ConversationMessage<'_>> =
            search.rows.iter().copied().zip(&names).map(|(row, name)| search.of.said(row, name)).collect();
        let is_new = search.is_new.clone();
        let transcript = Transcript { said: &said, is_new: &is_new };
        let chunks = if self.model_extracts(setting) { self.chunks(&transcript) } else { Vec::new() };
        let mut begin = 0;
        for (number, chunk) in chunks.iter().enumerate() {
            if !self.may_still_read(&search, chunk).await? {
                // The agenda begins again, with what may be read then.
                return Err(Error::Interrupted);
            }
            let findings = self.ask_about(&mut search, &transcript, chunk).await?;
            let cut_off_at = search.of.goes_on_from(chunk, findings.as_ref());
            let whole = chunks.get(number + 1).map_or(said.len(), |next| next.searched.start);
            let end = cut_off_at.unwrap_or(whole);
            let marks = search.marks(begin..end, findings);
            self.keep_marks(&mut search, marks, begin..end).await?;
            if cut_off_at.is_some() {
                return Ok(false);
            }
            begin = end;
        }
        if chunks.is_empty() {
            let marks = search.marks(0..said.len(), None);
            self.keep_marks(&mut search, marks, 0..said.len()).await?;
        }
        let at_end = search.progress.whole(search.now);
        self.store_progress(&mut search, at_end).await?;
        Ok(true)
    }

    /// Asks the model about a chunk. Returns `None` if the classifiers are to search it instead.
    ///
    /// # Errors
    ///
    /// If the model is away and will be asked again, or if no request is left for an import today.
    async fn ask_about(
        &self,
        search: &mut Search<'_>,
        transcript: &Transcript<'_>,
        chunk: &Chunk,
    ) -> Result<Option<Findings>, Error> {
        let learning = &self.services.measurements.learning;
        if self.requests_left(search).await? == 0 {
            if let Origin::Import(_) = search.of {
                return Err(Error::Interrupted);
            }
            learning.note_fallback();
            return Ok(None);
        }
        let found = self.find_in_chunk(transcript, chunk).await;
        // A request about an import counts even if it fails: what always fails must not be asked without end.
        let counts = |error: &Error| match search.of {
            Origin::Talk(_) => is_answer(error),
            Origin::Import(_) => !matches!(error, Error::Interrupted),
        };
        if found.as_ref().err().is_none_or(counts) {
            self.note_request(search).await?;
        }
        let error = match found {
            Ok(findings) => return Ok(Some(findings)),
            Err(error) => error,
        };
        let again = match search.of {
            Origin::Talk(_) => again_after(search.progress, &error),
            Origin::Import(_) => (!skips(&error)).then_some(search.progress),
        };
        match again {
            Some(again) => {
                self.postpone(search, again).await?;
                Err(error)
            }
            None => {
                tracing::info!(%error, "the classifiers search a conversation instead of the model");
                learning.note_fallback();
                Ok(None)
            }
        }
    }

    /// Returns how many more requests about such a conversation are allowed today.
    async fn requests_left(&self, search: &Search<'_>) -> Result<u32, Error> {
        match search.of {
            Origin::Talk(_) => self.budget_by_day(&search.home, search.now).await,
            Origin::Import(import) => self.requests_about(import, &search.home, search.now).await,
        }
    }

    async fn note_request(&self, search: &Search<'_>) -> Result<(), Error> {
        match search.of {
            Origin::Talk(_) => self.note_model_calls(&search.home, search.now, 1).await,
            Origin::Import(import) => {
                self.imports.requests.note(import);
                Ok(())
            }
        }
    }

    /// Stores that the messages after the progress are to be searched again.
    async fn postpone(&self, search: &mut Search<'_>, again: ExtractionProgress) -> Result<(), Error> {
        self.services.measurements.learning.note_retry();
        self.store_progress(search, again).await
    }

    /// Marks what was found in a part of a conversation, and then stores that this part is searched.
    ///
    /// # Errors
    ///
    /// If the model that compares claims is away and will be asked again. All is marked nevertheless.
    async fn keep_marks(
        &self,
        search: &mut Search<'_>,
        marks: Vec<(&MessageRow, Salience)>,
        part: Range<usize>,
    ) -> Result<(), Error> {
        // The request of an import must not be repeated because a comparison fails. It is compared when all of it was read.
        let comparison = match search.of {
            Origin::Talk(_) => Comparison::Now,
            Origin::Import(_) => Comparison::Later,
        };
        let mut away = None;
        for (row, salience) in marks {
            let Some(person) = row.author.person() else { continue };
            if !self.still_stands(&search.read_scope, row).await? || self.is_settled(search, row).await? {
                continue;
            }
            match self.mark_salient(&search.read_scope, person, row, salience, comparison).await {
                // The rest is marked all the same. Then everything is compared again, but not without end.
                Err(error) if error.is_transient() && comparison == Comparison::Now => away = Some(error),
                marked => marked?,
            }
        }
        if let Some(error) = away.filter(|_| search.progress.tries + 1 < MAX_TRIES) {
            let again = ExtractionProgress { tries: search.progress.tries.saturating_add(1), ..search.progress };
            self.postpone(search, again).await?;
            return Err(error);
        }
        let last = search.rows.get(part).into_iter().flatten().map(|row| row.seq).max();
        let progress = last.map_or(search.progress, |last| search.progress.up_to(last));
        self.store_progress(search, progress).await
    }

    /// Returns true if the same people may read a chunk as when the search began, and none of it was forgotten or edited.
    /// A search of many chunks takes long.
    async fn may_still_read(&self, search: &Search<'_>, chunk: &Chunk) -> Result<bool, Error> {
        let read_scope = match search.of {
            Origin::Talk(talk) => self.whereabouts(talk).await?.map(|(_, read_scope, ..)| read_scope),
            // Nobody else ever reads it.
            Origin::Import(_) => Some(search.read_scope.clone()),
        };
        let Some(read_scope) = read_scope else { return Ok(false) };
        for row in search.rows.get(chunk.shown.clone()).into_iter().flatten() {
            if !self.still_stands(&read_scope, row).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true if a message is as it was read. The model may have taken minutes; an edited message is searched again
    /// later.
    async fn still_stands(&self, read_scope: &ReadScope, row: &MessageRow) -> Result<bool, Error> {
        let (of, id) = (read_scope.clone(), row.id.clone());
        let now = self.services.blocking(move |memory| memory.messages().get(&of, &id)).await?;
        Ok(now.is_some_and(|now| now.text == row.text))
    }

    /// Returns true for an imported message that the classifiers marked, and that a newer statement replaced: another mark
    /// would bring it back.
    async fn is_settled(&self, search: &Search<'_>, row: &MessageRow) -> Result<bool, Error> {
        let Origin::Import(_) = search.of else { return Ok(false) };
        Ok(self.mark_on(&search.read_scope, row).await?.is_some_and(|mark| !mark.stands()))
    }

    /// Stores the progress, unless the chat was forgotten meanwhile.
    async fn store_progress(&self, search: &mut Search<'_>, progress: ExtractionProgress) -> Result<(), Error> {
        search.progress = progress;
        let talk = match search.of {
            Origin::Talk(talk) => talk,
            Origin::Import(import) => {
                return self.note_read(&import.chat, progress.seq.saturating_add(1)).await;
            }
        };
        let (chat, persona) = (talk.chat.clone(), talk.persona.clone());
        self.services
            .blocking(move |memory| match memory.chats().get(&chat)? {
                Some(_) => memory.progress().set_extraction_progress(&chat, &persona, &progress),
                None => Ok(()),
            })
            .await
    }
}

impl<'a> Search<'a> {
    /// Returns the marks for a part of the conversation, in the order of its messages. The classifiers mark where the model
    /// found nothing, so that a message that talks the model into silence hides nobody's words.
    fn marks(&self, part: Range<usize>, findings: Option<Findings>) -> Vec<(&'a MessageRow, Salience)> {
        let by_model = findings.into_iter().flat_map(|findings| findings.memories);
        let mut marks: Vec<(&MessageRow, Salience)> =
            by_model.filter_map(|memory| mark_of(&self.rows, memory)).collect();
        let quoted: HashSet<&MessageId> = marks.iter().map(|(row, _)| &row.id).collect();
        let of_part: HashSet<&MessageId> = self.rows.get(part).into_iter().flatten().map(|row| &row.id).collect();
        let is_left = |row: &MessageRow| of_part.contains(&row.id) && !quoted.contains(&row.id);
        let rest: Vec<_> = self.classified.iter().filter(|(row, _)| is_left(row)).cloned().collect();
        marks.extend(rest);
        marks.sort_by_key(|(row, _)| row.seq);
        marks
    }
}

impl Origin<'_> {
    /// Returns where the reading of an import goes on if an answer covers only the first messages of a chunk, as where
    /// almost every sentence is worth keeping.
    fn goes_on_from(self, chunk: &Chunk, findings: Option<&Findings>) -> Option<usize> {
        let Self::Import(_) = self else { return None };
        let end = findings?.searched.end;
        (chunk.searched.start < end && end < chunk.searched.end).then_some(end)
    }

    fn said<'a>(self, row: &'a MessageRow, name: &'a str) -> ConversationMessage<'a> {
        let is_bot = match self {
            Self::Talk(_) => row.author.person().is_none(),
            // What an assistant or somebody else said there is context, and never the person's own.
            Self::Import(import) => row.author.person() != Some(&import.person),
        };
        ConversationMessage { speaker: name, is_bot, text: row.text.as_str(), vectors: &[] }
    }
}

/// Returns true for an error with which the model answered: its work is done, and counts for the day.
fn is_answer(error: &Error) -> bool {
    !error.is_transient()
}

/// Returns true for an error after which the same request fails again: the model cannot read this part of an import. With
/// every other error it read nothing, as without a key, and the part waits.
fn skips(error: &Error) -> bool {
    use azera_model_api::Error::{Invalid, TooLong};
    matches!(error, Error::NoAnswer | Error::Model(TooLong { .. } | Invalid(_)))
}

/// Returns the progress with which a search begins again after the model gave no answer; `None` if the classifiers search
/// instead.
fn again_after(before: ExtractionProgress, error: &Error) -> Option<ExtractionProgress> {
    let ExtractionProgress { absences, interruptions, .. } = before;
    match error {
        Error::Interrupted if interruptions < MAX_INTERRUPTIONS => {
            Some(ExtractionProgress { interruptions: interruptions + 1, ..before })
        }
        Error::Interrupted => None,
        error if error.is_transient() && absences < MAX_ABSENCES => {
            Some(ExtractionProgress { absences: absences + 1, ..before })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> Error {
        azera_model_api::Error::Unavailable("it is away".into()).into()
    }

    #[test]
    fn each_cause_has_a_count_of_its_own() {
        let mut progress = ExtractionProgress { tries: 7, ..ExtractionProgress::none() };
        for number in 1..=MAX_ABSENCES {
            progress = again_after(progress, &away()).unwrap();
            assert_eq!((progress.absences, progress.interruptions, progress.tries), (number, 0, 7));
        }
        assert_eq!(again_after(progress, &away()), None, "the classifiers search");
        // Live chat is no absence, and has not used up its own tries.
        for number in 1..=MAX_INTERRUPTIONS {
            progress = again_after(progress, &Error::Interrupted).unwrap();
            assert_eq!((progress.absences, progress.interruptions, progress.tries), (MAX_ABSENCES, number, 7));
        }
        assert_eq!(again_after(progress, &Error::Interrupted), None, "the classifiers search");
        assert_eq!(again_after(ExtractionProgress::none(), &Error::NoAnswer), None, "a refusal is no absence");
        let further = ExtractionProgress { seq: 5, ..ExtractionProgress::none() };
        assert_eq!(progress.up_to(5), further, "what failed counts for the messages that it failed for");
        assert_eq!(further.up_to(4), further);
        let tried = ExtractionProgress { tries: 7, absences: 2, ..further };
        assert_eq!(tried.up_to(4), tried, "the rest is still to be searched");
        assert_eq!(tried.whole(further.at), further, "nothing new was said");
    }

    #[test]
    fn only_a_request_that_was_answered_counts_for_the_day() {
        assert!(!is_answer(&Error::Interrupted) && !is_answer(&away()));
        assert!(is_answer(&Error::NoAnswer));
    }
}
