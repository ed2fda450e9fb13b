//! Exchanges that a persona may be trained on. An exchange comes from one place, between the persona and people who
//! consented; it rests on nothing from other places, and on nobody who did not consent. Its provenance lists everything
//! it rests on, so that a LoRA can be withdrawn when one of these sources changes or goes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use azera_types::{Author, ChatId, MemoryId, MessageId, PersonId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domains::Training;
use crate::rows::{Kind, MemoryRow, MessageRow, SourceScope, WhyRow};
use crate::writings::posted;
use crate::{Error, MAX_HISTORY, Memory, NOTES, ReadScope, Surprise, Table, TrainingConsent, codec, keys};

/// Newest memories searched for exchanges.
const LOOKED_AT: usize = 4_000;

/// Most messages before an exchange that come with it.
const BEFORE: usize = 4;

/// Most messages that one exchange may rest on; exchanges with more are skipped.
const MAX_RESTS_ON: usize = 256;

/// A reply this soon after an edit may still be based on the old text: it may have been in progress when the edit
/// arrived, and platforms' clocks differ.
const UNSETTLED: Duration = Duration::from_secs(3_600);

/// A message and its current reply, with the messages before them.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainableExchange {
    /// The person's message.
    pub said: MessageRow,
    /// The persona's reply.
    pub reply: MessageRow,
    /// The messages right before it, oldest first.
    pub before: Vec<MessageRow>,
    /// The memories in the reply's prompt, in order.
    pub recalled: Vec<MemoryRow>,
    /// How surprising the message was.
    pub surprise: Surprise,
    /// Everything that the exchange rests on.
    pub provenance: Provenance,
}

/// The sources of something trained: ids and times, without any text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Messages, and when each was last edited.
    pub messages: BTreeMap<MessageId, Option<Timestamp>>,
    /// Memories in the prompts of its replies that can be forgotten without forgetting a message.
    pub memories: BTreeSet<MemoryId>,
    /// The people who said any of it, and the start of their consent.
    pub people: BTreeMap<PersonId, Timestamp>,
    /// Time of the oldest source; `None` without sources.
    pub from: Option<Timestamp>,
}

impl Provenance {
    /// Adds the sources of something else.
    pub fn join(&mut self, other: Self) {
        self.messages.extend(other.messages);
        self.memories.extend(other.memories);
        self.people.extend(other.people);
        self.from = self.from.into_iter().chain(other.from).min();
    }

    fn message(&mut self, row: &MessageRow) {
        self.messages.insert(row.id.clone(), row.edited_at);
        self.from = self.from.into_iter().chain([row.at]).min();
    }
}

/// The current branch of a chat.
struct Path {
    rows: Vec<MessageRow>,
    /// Position of each message.
    at: HashMap<MessageId, usize>,
    /// Position of each message by its number.
    by_seq: HashMap<u64, usize>,
    /// For each reply, the positions of the messages it was built on.
    taken_from: HashMap<MessageId, Vec<usize>>,
}

impl Path {
    /// Returns the messages with these numbers. Returns `None` if one of them is no longer on the branch, because its
    /// consent cannot be checked.
    fn all(&self, seqs: &[u64]) -> Option<Vec<MessageRow>> {
        seqs.iter().map(|seq| self.by_seq.get(seq).and_then(|at| self.rows.get(*at)).cloned()).collect()
    }
}

/// The memories in a reply's prompt, and their source messages.
struct Recalled {
    memories: Vec<MemoryRow>,
    sources: Vec<MessageRow>,
    /// Numbers of the conversation's messages in its prompt.
    shown: Vec<u64>,
}

/// The role of a source in an exchange.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// It is trained on itself, or quoted by a trained text.
    Learned,
    /// The model saw it when it wrote the reply, which may repeat it in other words.
    Shown,
}

/// Searches one place for exchanges.
struct Seeker<'a> {
    memory: &'a Memory,
    read_scope: &'a ReadScope,
    /// True if the training runs on another machine.
    offload: bool,
    consents: HashMap<PersonId, Option<TrainingConsent>>,
    paths: HashMap<ChatId, Path>,
}

impl Training<'_> {
    /// Returns exchanges of the read scope's place that its persona may be trained on, most surprising first, at most
    /// `limit`. With `offload`, consent to training on another machine is required. `wanted` filters by the message's
    /// id and time.
    pub fn exchanges(
        self,
        read_scope: &ReadScope,
        offload: bool,
        wanted: &dyn Fn(&MessageId, Timestamp) -> bool,
        limit: usize,
    ) -> Result<Vec<TrainableExchange>, Error> {
        let place = read_scope.place();
        let recent = self.0.writings().recent(read_scope, Timestamp::MIN, LOOKED_AT)?;
        let candidates = recent.into_iter().filter(|memory| {
            let is_wanted = memory.sources.first().is_some_and(|id| wanted(id, memory.at));
            memory.kind == Kind::Message && is_of(place, memory) && is_wanted
        });
        let mut candidates: Vec<(Surprise, MemoryRow)> =
            candidates.filter_map(|memory| Some((memory.surprise?, memory))).collect();
        candidates.sort_by(|(one, older), (other, newer)| {
            other.score.total_cmp(&one.score).then_with(|| newer.id.cmp(&older.id))
        });
        let mut seeker =
            Seeker { memory: self.0, read_scope, offload, consents: HashMap::new(), paths: HashMap::new() };
        let mut found = Vec::new();
        for (surprise, memory) in candidates {
            if found.len() >= limit {
                break;
            }
            found.extend(seeker.exchange(&memory, surprise)?);
        }
        Ok(found)
    }

    /// Returns true if all sources are unchanged, and the consent of every person still holds.
    pub fn provenance_holds(self, provenance: &Provenance) -> Result<bool, Error> {
        for (id, edited_at) in &provenance.messages {
            let row = self.0.messages().raw_message(id)?;
            if !row.is_some_and(|row| row.author != Author::Forgotten && row.edited_at == *edited_at) {
                return Ok(false);
            }
        }
        for id in &provenance.memories {
            if self.0.memories().raw_memory(*id)?.is_none() {
                return Ok(false);
            }
        }
        for (person, since) in &provenance.people {
            // A consent that was revoked and given again is a new one, with a later time.
            if self.0.consent().training(person)?.map(|consents| consents.since) != Some(*since) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true if all people in `provenance` also allow training on another machine.
    pub fn may_offload(self, provenance: &Provenance) -> Result<bool, Error> {
        for person in provenance.people.keys() {
            if !self.0.consent().training(person)?.is_some_and(|consents| consents.offload) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns true if a memory comes from `place` only.
fn is_of(place: &Scope, memory: &MemoryRow) -> bool {
    memory.scope == *place && rests_within(place, &memory.source_scopes)
}

/// Returns true if a reply of the persona may still contain the text of a message before its edit, because it was
/// written before or shortly after the edit.
fn was_seen_otherwise(row: &MessageRow, among: &[MessageRow]) -> bool {
    let Some(edited_at) = row.edited_at else { return false };
    let is_older = |it: &MessageRow| {
        // The reply to the edited message itself was regenerated after the edit.
        let unsettled = if it.answers.as_ref() == Some(&row.id) { Duration::ZERO } else { UNSETTLED };
        let settled = it.at > edited_at && it.at.duration_since(edited_at).unsigned_abs() > unsettled;
        it.author.person().is_none() && it.seq > row.seq && !settled
    };
    among.iter().any(is_older)
}

/// Returns true if a persona posted the message on its own, without a question.
fn is_post(row: &MessageRow) -> bool {
    row.answers.is_none() && matches!(row.author, Author::Persona { .. })
}

fn rests_within(place: &Scope, source_scopes: &[SourceScope]) -> bool {
    source_scopes.iter().all(|source_scope| source_scope.scope == *place)
}

impl Seeker<'_> {
    fn exchange(&mut self, memory: &MemoryRow, surprise: Surprise) -> Result<Option<TrainableExchange>, Error> {
        let ([id], Some(chat)) = (memory.sources.as_slice(), &memory.chat) else { return Ok(None) };
        self.learn_path(chat)?;
        let Some(path) = self.paths.get(chat) else { return Ok(None) };
        let Some(place) = path.at.get(id).copied() else { return Ok(None) };
        let (before, from) = path.rows.split_at(place);
        let Some((said, after)) = from.split_first() else { return Ok(None) };
        let Some(reply) = after.iter().find(|row| row.answers.as_ref() == Some(id)) else { return Ok(None) };
        let before = before.get(before.len().saturating_sub(BEFORE)..).unwrap_or_default().to_vec();
        let (said, reply) = (said.clone(), reply.clone());
        let mut provenance = Provenance::default();
        let Some(Recalled { memories: recalled, sources, shown }) = self.recalled(&reply)? else { return Ok(None) };
        let Some(mut shown) = path.all(&shown) else { return Ok(None) };
        if !self.may_learn_from_recalled(&recalled, Part::Learned, &mut provenance)? {
            return Ok(None);
        }
        let mut learned: Vec<MessageRow> = [&said, &reply].into_iter().chain(&before).cloned().chain(sources).collect();
        let mut looked_at: Vec<MessageRow> = Vec::new();
        for part in [Part::Learned, Part::Shown] {
            let mut next = match part {
                Part::Learned => std::mem::take(&mut learned),
                Part::Shown => std::mem::take(&mut shown),
            };
            // Follows all sources that exist in the chat.
            while let Some(row) = next.pop() {
                if provenance.messages.contains_key(&row.id) {
                    continue;
                }
                if provenance.messages.len() >= MAX_RESTS_ON || !self.may_learn_from(&row, part, &mut provenance)? {
                    return Ok(None);
                }
                if is_post(&row) {
                    let Some(sources) = self.sources_of_post(&row)? else { return Ok(None) };
                    next.extend(sources);
                }
                if part == Part::Learned && row.answers.is_some() && row.id != reply.id {
                    // A quoted reply may repeat, in other words, the conversation and the memories in its prompt.
                    let Some(behind) = self.recalled(&row)? else { return Ok(None) };
                    if !self.may_learn_from_recalled(&behind.memories, Part::Shown, &mut provenance)? {
                        return Ok(None);
                    }
                    self.learn_path(&row.chat)?;
                    let stood_before = self.paths.get(&row.chat).and_then(|path| path.all(&behind.shown));
                    let Some(stood_before) = stood_before else { return Ok(None) };
                    shown.extend(stood_before.into_iter().chain(behind.sources));
                }
                provenance.message(&row);
                let path = self.paths.get(chat);
                let taken_from = path.and_then(|path| path.taken_from.get(&row.id)).into_iter().flatten();
                next.extend(taken_from.filter_map(|at| path.and_then(|path| path.rows.get(*at)).cloned()));
                looked_at.push(row);
            }
        }
        if looked_at.iter().any(|row| was_seen_otherwise(row, &looked_at)) {
            return Ok(None);
        }
        Ok(Some(TrainableExchange { said, reply, before, recalled, surprise, provenance }))
    }

    /// Returns the memories in a reply's prompt and their sources, if all of them exist and come from this place only.
    fn recalled(&self, reply: &MessageRow) -> Result<Option<Recalled>, Error> {
        let why: Option<WhyRow> = codec::get(self.memory.store.as_ref(), Table::Why, &keys::message(&reply.id))?;
        let Some(why) = why else { return Ok(None) };
        let Some(shown) = why.shown else { return Ok(None) };
        let alone = matches!(self.read_scope.place(), Scope::Dm(_));
        let (mut recalled, mut sources) = (Vec::with_capacity(why.recalled.len()), Vec::new());
        for hit in why.recalled {
            let of_notes = hit.signals == [NOTES];
            match self.memory.memories().get(self.read_scope, hit.memory)? {
                Some(memory) if is_of(self.read_scope.place(), &memory) => {
                    if !alone && !matches!(memory.kind, Kind::Message | Kind::Fact | Kind::Note) {
                        // Among several people, other replies and writings of the persona may rest on anyone there.
                        return Ok(None);
                    }
                    for source in &memory.sources {
                        let Some(row) = self.memory.messages().raw_message(source)? else { return Ok(None) };
                        sources.push(row);
                    }
                    recalled.push(memory);
                }
                // Newer notes replaced these; their sources count as shown.
                None if of_notes => {}
                _ => return Ok(None),
            }
        }
        Ok(Some(Recalled { memories: recalled, sources, shown }))
    }

    /// Returns true if everyone behind the recalled memories consented. Adds memories to the provenance that can be
    /// forgotten without a message.
    fn may_learn_from_recalled(
        &mut self,
        recalled: &[MemoryRow],
        part: Part,
        provenance: &mut Provenance,
    ) -> Result<bool, Error> {
        for memory in recalled {
            let learned_at = (part == Part::Learned).then_some(memory.at);
            if let Some(person) = memory.author.person()
                && !self.may_learn_from_person(person, learned_at, provenance)?
            {
                return Ok(false);
            }
            // Other memories are covered by their messages: pruning may remove such a memory, and working notes are
            // replaced all the time.
            let apart = memory.sources.is_empty() || memory.kind.is_written() && memory.kind != Kind::Note;
            if apart {
                provenance.memories.insert(memory.id);
                provenance.from = provenance.from.into_iter().chain([memory.at]).min();
            }
        }
        Ok(true)
    }

    /// Returns the sources of a post, if all of them exist. Returns `None` for a writing without sources: it was
    /// imported and may contain anybody's words.
    fn sources_of_post(&self, post: &MessageRow) -> Result<Option<Vec<MessageRow>>, Error> {
        let Some(id) = posted(&post.id) else { return Ok(None) };
        let written =
            self.memory.memories().raw_memory(id)?.filter(|written| written.sources.first() == Some(&post.id));
        let Some(written) = written else { return Ok(None) };
        let sources = written.sources.get(1..).filter(|sources| !sources.is_empty());
        let Some(sources) = sources else { return Ok(None) };
        sources.iter().map(|source| self.memory.messages().raw_message(source)).collect()
    }

    /// Returns true if a message comes from this place only and everyone behind it consented. A persona's reply belongs
    /// to the person it answers. A text that is trained on itself must be newer than the consent.
    fn may_learn_from(&mut self, row: &MessageRow, part: Part, provenance: &mut Provenance) -> Result<bool, Error> {
        let said = |at: Timestamp| (part == Part::Learned).then_some(at);
        let place = self.read_scope.place();
        if row.scope != *place || !rests_within(place, &row.source_scopes) || row.persona != *self.read_scope.persona()
        {
            return Ok(false);
        }
        let answered = match &row.author {
            Author::Person { id, .. } => return self.may_learn_from_person(id, said(row.at), provenance),
            // A post belongs to the people it is about; they are checked through its sources.
            Author::Persona { .. } if is_post(row) => return Ok(true),
            Author::Persona { .. } => {
                row.answers.as_ref().map(|question| self.memory.messages().raw_message(question)).transpose()?
            }
            Author::Forgotten => return Ok(false),
        };
        let Some(Some(question)) = answered else { return Ok(false) };
        match question.author.person() {
            Some(person) => self.may_learn_from_person(person, said(question.at), provenance),
            None => Ok(false),
        }
    }

    /// Returns true if a person consented; with `said`, also that they did so before that time.
    fn may_learn_from_person(
        &mut self,
        person: &PersonId,
        said: Option<Timestamp>,
        provenance: &mut Provenance,
    ) -> Result<bool, Error> {
        let consents = match self.consents.get(person) {
            Some(known) => *known,
            None => {
                let consents = self.memory.consent().training(person)?;
                self.consents.insert(person.clone(), consents);
                consents
            }
        };
        let may = |consents: &TrainingConsent| {
            said.is_none_or(|at| consents.since <= at) && (consents.offload || !self.offload)
        };
        let Some(consents) = consents.filter(may) else { return Ok(false) };
        provenance.people.insert(person.clone(), consents.since);
        Ok(true)
    }

    /// Reads the current branch of a chat, once.
    fn learn_path(&mut self, chat: &ChatId) -> Result<(), Error> {
        if self.paths.contains_key(chat) {
            return Ok(());
        }
        let rows = self.memory.messages().history(self.read_scope, chat, MAX_HISTORY)?;
        let replies: HashSet<&MessageId> = rows.iter().filter(|row| row.answers.is_some()).map(|row| &row.id).collect();
        let mut taken_from: HashMap<MessageId, Vec<usize>> = HashMap::new();
        for (place, row) in rows.iter().enumerate() {
            let store = self.memory.store.as_ref();
            let takers: Vec<MessageId> = codec::rows(store, Table::Derived, &keys::prefix(&[row.id.as_str()]))?;
            for taker in takers.into_iter().filter(|taker| replies.contains(taker)) {
                taken_from.entry(taker).or_default().push(place);
            }
        }
        let at = rows.iter().enumerate().map(|(place, row)| (row.id.clone(), place)).collect();
        let by_seq = rows.iter().enumerate().map(|(place, row)| (row.seq, place)).collect();
        self.paths.insert(chat.clone(), Path { rows, at, by_seq, taken_from });
        Ok(())
    }
}
