//! What a persona may learn from: exchanges of one place, between it and people who want it to, that rest on nothing from elsewhere
//! and on nobody who did not say so. What it learnt names everything it rests on, so that it can be told when that stands no more.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use azera_types::{Author, ChatId, MemoryId, MessageId, PersonId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::rows::{Kind, MemoryRow, MessageRow, SourceScope, WhyRow};
use crate::writings::posted;
use crate::{Error, MAX_HISTORY, Memory, NOTES, ReadScope, Surprise, Table, TrainingConsent, codec, keys};

/// Memories looked through for exchanges, the newest.
const LOOKED_AT: usize = 4_000;

/// Messages before an exchange that come with it, at most.
const BEFORE: usize = 4;

/// Messages that one exchange may rest on; what rests on more is left alone.
const MAX_RESTS_ON: usize = 256;

/// What was written so soon after a message was changed may still have been made with what it said before: it may have been under
/// way as word of the change came, and platforms have clocks of their own.
const UNSETTLED: Duration = Duration::from_secs(3_600);

/// Something said and the answer that stands, with what was said before it.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainableExchange {
    /// What a person said.
    pub said: MessageRow,
    /// What the persona answered.
    pub reply: MessageRow,
    /// What was said right before it, oldest first.
    pub before: Vec<MessageRow>,
    /// What stood behind the answer, in the order of its prompt.
    pub recalled: Vec<MemoryRow>,
    /// How surprising it was.
    pub surprise: Surprise,
    /// Everything that it rests on.
    pub provenance: Provenance,
}

/// What something learnt rests on. Ids and times, and no word of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Messages, and when each was last changed.
    pub messages: BTreeMap<MessageId, Option<Timestamp>>,
    /// Memories that stood behind the replies among them and can be forgotten without any message.
    pub memories: BTreeSet<MemoryId>,
    /// Everybody who said any of it, and since when they want it to be learnt from.
    pub people: BTreeMap<PersonId, Timestamp>,
    /// When the oldest of it was said; nothing rests on what nobody said.
    pub from: Option<Timestamp>,
}

impl Provenance {
    /// Takes in what something else rests on.
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

/// The present branch of a chat.
struct Path {
    rows: Vec<MessageRow>,
    /// Where each of them stands.
    at: HashMap<MessageId, usize>,
    /// The same by their places in the log.
    by_seq: HashMap<u64, usize>,
    /// By each reply, where that stands which it took something from.
    taken_from: HashMap<MessageId, Vec<usize>>,
}

impl Path {
    /// The messages at places in the log. What is not where it was then cannot be asked about.
    fn all(&self, seqs: &[u64]) -> Option<Vec<MessageRow>> {
        seqs.iter().map(|seq| self.by_seq.get(seq).and_then(|at| self.rows.get(*at)).cloned()).collect()
    }
}

/// What stood behind a reply, and the messages that it rests on.
struct Recalled {
    memories: Vec<MemoryRow>,
    sources: Vec<MessageRow>,
    /// The conversation in its prompt, by places in the log.
    shown: Vec<u64>,
}

/// How something that is learnt from came to be.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// It is learnt itself, or quoted by what is.
    Learnt,
    /// It stood before the model that made the reply, which may say it in other words.
    Shown,
}

/// Looks for exchanges of one place.
struct Seeker<'a> {
    memory: &'a Memory,
    read_scope: &'a ReadScope,
    /// Whether it is to be learnt on another machine.
    offload: bool,
    willing: HashMap<PersonId, Option<TrainingConsent>>,
    paths: HashMap<ChatId, Path>,
}

impl Memory {
    /// The exchanges of a right's place that its persona may learn from, here or `offload`, the most surprising first, at most
    /// `limit`; of those whose message, by its id and when it was said, is `wanted`.
    pub fn trainable_exchanges(
        &self,
        read_scope: &ReadScope,
        offload: bool,
        wanted: &dyn Fn(&MessageId, Timestamp) -> bool,
        limit: usize,
    ) -> Result<Vec<TrainableExchange>, Error> {
        let place = read_scope.place();
        let recent = self.recent(read_scope, Timestamp::MIN, LOOKED_AT)?;
        let reported = recent.into_iter().filter(|memory| {
            let is_wanted = memory.sources.first().is_some_and(|id| wanted(id, memory.at));
            memory.kind == Kind::Message && is_of(place, memory) && is_wanted
        });
        let mut reported: Vec<(Surprise, MemoryRow)> =
            reported.filter_map(|memory| Some((memory.surprise?, memory))).collect();
        reported.sort_by(|(one, older), (other, newer)| {
            other.score.total_cmp(&one.score).then_with(|| newer.id.cmp(&older.id))
        });
        let mut seeker = Seeker { memory: self, read_scope, offload, willing: HashMap::new(), paths: HashMap::new() };
        let mut found = Vec::new();
        for (surprise, memory) in reported {
            if found.len() >= limit {
                break;
            }
            found.extend(seeker.exchange(&memory, surprise)?);
        }
        Ok(found)
    }

    /// Whether all that something learnt rests on is still as it was, and everybody who said it wants it to be learnt from.
    pub fn provenance_holds(&self, provenance: &Provenance) -> Result<bool, Error> {
        for (id, edited_at) in &provenance.messages {
            let row = self.raw_message(id)?;
            if !row.is_some_and(|row| row.author != Author::Forgotten && row.edited_at == *edited_at) {
                return Ok(false);
            }
        }
        for id in &provenance.memories {
            if self.raw_memory(*id)?.is_none() {
                return Ok(false);
            }
        }
        for (person, since) in &provenance.people {
            // Whoever took it back and wishes it again begins anew.
            if self.training_consent(person)?.map(|willing| willing.since) != Some(*since) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether everybody who said what something learnt rests on wants it to be learnt from on another machine, too.
    pub fn may_offload(&self, provenance: &Provenance) -> Result<bool, Error> {
        for person in provenance.people.keys() {
            if !self.training_consent(person)?.is_some_and(|willing| willing.offload) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether something comes from one place alone.
fn is_of(place: &Scope, memory: &MemoryRow) -> bool {
    memory.scope == *place && rests_within(place, &memory.source_scopes)
}

/// Whether any of the persona's own messages may have been written before a message behind it was changed, and hold what it said then.
fn was_seen_otherwise(row: &MessageRow, among: &[MessageRow]) -> bool {
    let Some(edited_at) = row.edited_at else { return false };
    let is_older = |it: &MessageRow| {
        // What answers it was made anew with the change.
        let unsettled = if it.answers.as_ref() == Some(&row.id) { Duration::ZERO } else { UNSETTLED };
        let settled = it.at > edited_at && it.at.duration_since(edited_at).unsigned_abs() > unsettled;
        it.author.person().is_none() && it.seq > row.seq && !settled
    };
    among.iter().any(is_older)
}

/// Whether a message is something that a persona wrote of its own accord.
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
        if !self.may_learn_from_recalled(&recalled, Part::Learnt, &mut provenance)? {
            return Ok(None);
        }
        let mut learnt: Vec<MessageRow> = [&said, &reply].into_iter().chain(&before).cloned().chain(sources).collect();
        let mut looked_at: Vec<MessageRow> = Vec::new();
        for part in [Part::Learnt, Part::Shown] {
            let mut next = match part {
                Part::Learnt => std::mem::take(&mut learnt),
                Part::Shown => std::mem::take(&mut shown),
            };
            // All that any of it rests on, as far as it stands in the chat.
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
                if part == Part::Learnt && row.answers.is_some() && row.id != reply.id {
                    // What is quoted may say in other words what stood before it, and what was recalled for it.
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

    /// What stood behind a reply and what that rests on, if all of it is there and comes from this place alone.
    fn recalled(&self, reply: &MessageRow) -> Result<Option<Recalled>, Error> {
        let why: Option<WhyRow> = codec::get(self.memory.store.as_ref(), Table::Why, &keys::message(&reply.id))?;
        let Some(why) = why else { return Ok(None) };
        let Some(shown) = why.shown else { return Ok(None) };
        let alone = matches!(self.read_scope.place(), Scope::Dm(_));
        let (mut recalled, mut sources) = (Vec::with_capacity(why.recalled.len()), Vec::new());
        for hit in why.recalled {
            let of_notes = hit.signals == [NOTES];
            match self.memory.memory(self.read_scope, hit.memory)? {
                Some(memory) if is_of(self.read_scope.place(), &memory) => {
                    if !alone && !matches!(memory.kind, Kind::Message | Kind::Fact | Kind::Note) {
                        // What else the persona said or wrote among several may rest on anybody there.
                        return Ok(None);
                    }
                    for source in &memory.sources {
                        let Some(row) = self.memory.raw_message(source)? else { return Ok(None) };
                        sources.push(row);
                    }
                    recalled.push(memory);
                }
                // Others were made since. What these were made of counts as shown.
                None if of_notes => {}
                _ => return Ok(None),
            }
        }
        Ok(Some(Recalled { memories: recalled, sources, shown }))
    }

    /// Whether everybody who told what was recalled wants to be learnt from. What can be forgotten without any message is noted.
    fn may_learn_from_recalled(
        &mut self,
        recalled: &[MemoryRow],
        part: Part,
        provenance: &mut Provenance,
    ) -> Result<bool, Error> {
        for memory in recalled {
            let reported = (part == Part::Learnt).then_some(memory.at);
            if let Some(person) = memory.author.person()
                && !self.may_learn_from_person(person, reported, provenance)?
            {
                return Ok(false);
            }
            // What was said is asked after as a message: its memory may be bounded away, and notes are made anew all the time.
            let apart = memory.sources.is_empty() || memory.kind.is_written() && memory.kind != Kind::Note;
            if apart {
                provenance.memories.insert(memory.id);
                provenance.from = provenance.from.into_iter().chain([memory.at]).min();
            }
        }
        Ok(true)
    }

    /// The messages that something posted was written from, if all are there. What names none was brought from elsewhere, and may hold
    /// anybody's words.
    fn sources_of_post(&self, post: &MessageRow) -> Result<Option<Vec<MessageRow>>, Error> {
        let Some(id) = posted(&post.id) else { return Ok(None) };
        let written = self.memory.raw_memory(id)?.filter(|written| written.sources.first() == Some(&post.id));
        let Some(written) = written else { return Ok(None) };
        let sources = written.sources.get(1..).filter(|sources| !sources.is_empty());
        let Some(sources) = sources else { return Ok(None) };
        sources.iter().map(|source| self.memory.raw_message(source)).collect()
    }

    /// Whether a message comes from this place alone, and from nobody who does not want it to be learnt from. A persona's reply is
    /// theirs whom it answers. What is learnt itself was said after they wanted it.
    fn may_learn_from(&mut self, row: &MessageRow, part: Part, provenance: &mut Provenance) -> Result<bool, Error> {
        let said = |at: Timestamp| (part == Part::Learnt).then_some(at);
        let place = self.read_scope.place();
        if row.scope != *place || !rests_within(place, &row.source_scopes) || row.persona != *self.read_scope.persona()
        {
            return Ok(false);
        }
        let answered = match &row.author {
            Author::Person { id, .. } => return self.may_learn_from_person(id, said(row.at), provenance),
            // What it posts is theirs whom it wrote of, and they are looked at for themselves.
            Author::Persona { .. } if is_post(row) => return Ok(true),
            Author::Persona { .. } => {
                row.answers.as_ref().map(|question| self.memory.raw_message(question)).transpose()?
            }
            Author::Forgotten => return Ok(false),
        };
        let Some(Some(question)) = answered else { return Ok(false) };
        match question.author.person() {
            Some(person) => self.may_learn_from_person(person, said(question.at), provenance),
            None => Ok(false),
        }
    }

    /// Whether somebody wants to be learnt from, and did when they said it, if that matters.
    fn may_learn_from_person(
        &mut self,
        person: &PersonId,
        said: Option<Timestamp>,
        provenance: &mut Provenance,
    ) -> Result<bool, Error> {
        let willing = match self.willing.get(person) {
            Some(known) => *known,
            None => {
                let willing = self.memory.training_consent(person)?;
                self.willing.insert(person.clone(), willing);
                willing
            }
        };
        let may =
            |willing: &TrainingConsent| said.is_none_or(|at| willing.since <= at) && (willing.offload || !self.offload);
        let Some(willing) = willing.filter(may) else { return Ok(false) };
        provenance.people.insert(person.clone(), willing.since);
        Ok(true)
    }

    /// Reads the present branch of a chat, once.
    fn learn_path(&mut self, chat: &ChatId) -> Result<(), Error> {
        if self.paths.contains_key(chat) {
            return Ok(());
        }
        let rows = self.memory.history(self.read_scope, chat, MAX_HISTORY)?;
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
