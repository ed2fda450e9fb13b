//! Salience marks: parts of messages that are worth remembering, in the speaker's own words. A mark fades with time,
//! and more slowly if it is important; pruning removes marked memories last. A mark is renewed when a reply uses the
//! memory in the place where it was said. Replies in other places do not count: otherwise questions in private would
//! influence what a public place keeps.

use azera_types::{MemoryId, MessageId, PersonId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domains::Memories;
use crate::rows::{Kind, MemoryRow, MessageRow};
use crate::{Batch, Durability, Error, Order, ReadScope, Table, codec, keys};

/// Half-life in days of a mark with importance 0; our own choice. A mark with importance 1 lasts [`IMPORTANT`] times as
/// long.
const HALF_LIFE_DAYS: f32 = 30.0;

/// See [`HALF_LIFE_DAYS`].
const IMPORTANT: f32 = 6.0;

/// Strength below which pruning treats a marked memory like any other.
const FADED: f32 = 0.1;

/// Seconds after a renewal in which another use changes nothing.
const USED_AGAIN_S: i64 = 24 * 3_600;

/// Marks read at a time.
const PAGE: usize = 256;

/// The salience of a memory: which part of it is worth remembering, and how much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Salience {
    /// Its kind, in the host's words.
    pub kind: String,
    /// Importance from 0 to 1.
    pub importance: f32,
    /// Start of the salient part of the text, in bytes.
    pub from: usize,
    /// End of the salient part, in bytes.
    pub to: usize,
    /// Other messages needed to understand it, such as the question it answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<MessageId>,
    /// The newer statement of the same person that replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<Superseded>,
    /// When a reply in the same place last used it, to the day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Timestamp>,
}

/// A newer statement that replaced an older one. It counts as long as the newer message exists and nobody edits it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Superseded {
    /// The newer message.
    pub by: MessageId,
    /// When the newer message was sent.
    pub at: Timestamp,
    /// When the newer message got the text that replaced the older one: when it was sent, or last edited. After another edit
    /// it may no longer say so. Notes of older versions lack it, and count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worded_at: Option<Timestamp>,
    /// True if it says the same and more; false if it says something different.
    pub same: bool,
    /// True if the person said that the older statement still holds. The note then counts no more. It stays, so that the
    /// same newer message does not replace the statement again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
}

impl Salience {
    /// Returns true if nothing replaced the statement, or its person undid that.
    pub fn stands(&self) -> bool {
        self.superseded.as_ref().is_none_or(|superseded| superseded.undone)
    }
}

impl Superseded {
    /// Returns true if the note counts beside the newer message as it is now.
    pub(crate) fn counts(&self, newer: &MessageRow) -> bool {
        !self.undone && self.worded_at.is_none_or(|worded_at| worded_at == newer.worded_at())
    }

    /// Returns true if both are about the same text of the same newer message.
    fn is_of_same(&self, other: &Self) -> bool {
        self.by == other.by && self.worded_at == other.worded_at
    }
}

impl MessageRow {
    /// Returns when it got its present text: when it was sent, or last edited.
    pub fn worded_at(&self) -> Timestamp {
        self.edited_at.unwrap_or(self.at)
    }
}

/// Returns the note to store in place of `before`: a wish of the person counts against the same newer text for good.
fn settled(before: Option<&Superseded>, now: Option<&Superseded>) -> Option<Superseded> {
    let undone = before.filter(|before| before.undone && now.is_none_or(|now| now.is_of_same(before)));
    undone.or(now).cloned()
}

impl MemoryRow {
    /// Returns the salient part of the text, or the whole text without a mark.
    pub fn gist(&self) -> &str {
        let part = self.salience.as_ref().and_then(|salience| self.text.as_str().get(salience.from..salience.to));
        part.filter(|part| !part.trim().is_empty()).unwrap_or(self.text.as_str()).trim()
    }

    /// Returns the memory with its importance raised to its surprise, if that is higher.
    pub(crate) fn weighed(mut self) -> Self {
        if let (Some(salience), Some(surprise)) = (&mut self.salience, &self.surprise) {
            salience.importance = salience.importance.max(surprise.share());
        }
        self
    }

    /// Returns the strength of the mark at `now`, from 0 to 1; 0 without a mark.
    fn strength(&self, now: Timestamp) -> f32 {
        let stands = |salience: &&Salience| salience.stands() && self.replaced.is_none();
        let Some(salience) = self.salience.as_ref().filter(stands) else {
            return 0.0;
        };
        let since = salience.used.map_or(self.at, |used| used.max(self.at));
        let days = now.duration_since(since).as_secs_f32().max(0.0) / 86_400.0;
        let importance = salience.importance.clamp(0.0, 1.0);
        let half_life = HALF_LIFE_DAYS * (1.0 + (IMPORTANT - 1.0) * importance);
        0.5_f32.powf(days / half_life)
    }

    /// Returns true if pruning removes other memories first.
    pub(crate) fn lasts(&self, now: Timestamp) -> bool {
        self.strength(now) >= FADED
    }
}

impl Memories<'_> {
    /// Marks a message as salient; returns true if there is a memory of it.
    pub fn mark(self, message: &MessageId, salience: &Salience) -> Result<bool, Error> {
        self.0.store.ready()?;
        let Some(said) = self.0.messages().raw_message(message)? else { return Ok(false) };
        let _writing = self.0.writing(&said.chat)?;
        let (mut batch, mut marked) = (Batch::new(), Vec::new());
        for memory in self.0.turns().memories_of(message)? {
            let Some(key) = mark_key(&memory).filter(|_| memory.kind == Kind::Message) else { continue };
            batch.put(Table::Marks, key, []);
            let before = memory.salience.as_ref();
            let used = before.and_then(|before| before.used).max(salience.used);
            let superseded =
                settled(before.and_then(|before| before.superseded.as_ref()), salience.superseded.as_ref());
            let salience = Salience { used, superseded, ..salience.clone() };
            let memory = MemoryRow { salience: Some(salience), ..memory }.weighed();
            codec::put(&mut batch, Table::Memories, keys::memory(memory.id), &memory)?;
            marked.push(memory);
        }
        self.0.store.commit(batch, Durability::Soon)?;
        marked.iter().for_each(|memory| self.0.mark_lists.add(memory));
        Ok(!marked.is_empty())
    }

    /// Renews the marks of memories that a reply in `place` used. Only memories that were said in `place` itself are
    /// renewed.
    pub fn used(self, place: &Scope, memories: &[MemoryId], at: Timestamp) -> Result<(), Error> {
        for id in memories {
            let Some(chat) = self.raw_memory(*id)?.and_then(|memory| memory.chat) else { continue };
            let _writing = self.0.writing(&chat)?;
            // The memory may have been forgotten meanwhile.
            let Some(mut memory) = self.raw_memory(*id)?.filter(|memory| memory.scope == *place) else { continue };
            let Some(salience) = &mut memory.salience else { continue };
            let lately = |used: Timestamp| used <= at && at.as_second() - used.as_second() < USED_AGAIN_S;
            if salience.used.is_some_and(lately) {
                continue;
            }
            salience.used = Some(at);
            let mut batch = Batch::new();
            codec::put(&mut batch, Table::Memories, keys::memory(*id), &memory)?;
            self.0.store.commit(batch, Durability::Soon)?;
        }
        Ok(())
    }

    /// Returns the salient memories of a person that `read_scope` allows, newest first, at most `limit`. A statement
    /// that was repeated in more words is listed once.
    pub fn salient(self, read_scope: &ReadScope, person: &PersonId, limit: usize) -> Result<Vec<MemoryRow>, Error> {
        let mut retained = Vec::new();
        for grant in read_scope.grants() {
            let prefix = keys::prefix(&[person.as_str(), &grant.scope.to_string()]);
            let (mut after, mut here) = (None::<Vec<u8>>, 0);
            while here < limit {
                let page = self.0.store.scan(Table::Marks, &prefix, after.as_deref(), Order::Descending, PAGE)?;
                let Some((last, _)) = page.last() else { break };
                after = Some(last.clone());
                for (key, _) in page {
                    if here == limit {
                        break;
                    }
                    let Some(mut memory) = self.get(read_scope, MemoryId(keys::number("marks", &key)?))? else {
                        continue;
                    };
                    if !self.stands(read_scope, &mut memory)? {
                        continue;
                    }
                    here += 1;
                    retained.push(memory);
                }
            }
        }
        retained.sort_by_key(|memory| std::cmp::Reverse(memory.id));
        retained.truncate(limit);
        Ok(retained)
    }

    /// Returns true if a marked memory is to be shown. A replacement that was forgotten, that was edited, that may not
    /// be read, or that the person undid does not count, and is removed from `memory`.
    pub(crate) fn stands(self, read_scope: &ReadScope, memory: &mut MemoryRow) -> Result<bool, Error> {
        let Some(salience) = &mut memory.salience else { return Ok(false) };
        let Some(superseded) = &salience.superseded else { return Ok(true) };
        let newer = self.0.messages().get(read_scope, &superseded.by)?;
        if newer.is_some_and(|newer| superseded.counts(&newer)) {
            return Ok(!superseded.same);
        }
        salience.superseded = None;
        Ok(true)
    }
}

/// Returns the key of a memory's mark. The marks of a person in a place are one range, in order.
pub(crate) fn mark_key(memory: &MemoryRow) -> Option<Vec<u8>> {
    let person = memory.author.person()?;
    Some(keys::numbered(&[person.as_str(), &memory.scope.to_string()], memory.id.0))
}

#[cfg(test)]
mod tests {
    use azera_types::{Author, PersonaId, Scope};

    use super::*;
    use crate::Surprise;

    fn marked(importance: f32, superseded: bool) -> MemoryRow {
        let time = |day: i64| Timestamp::from_second(day * 86_400).unwrap();
        let with = Vec::new();
        let by = MessageId::new("later").unwrap();
        let superseded =
            superseded.then(|| Superseded { by, at: time(3), worded_at: None, same: false, undone: false });
        let salience = Salience { kind: "fact".into(), importance, from: 4, to: 11, with, superseded, used: None };
        MemoryRow {
            id: MemoryId(1),
            persona: PersonaId::new("azera").unwrap(),
            kind: Kind::Message,
            scope: Scope::Global,
            source_scopes: Vec::new(),
            chat: None,
            session: 0,
            author: Author::Forgotten,
            sources: Vec::new(),
            text: "hm. I bake. so".into(),
            at: time(0),
            salience: Some(salience),
            surprise: None,
            apart: false,
            replaced: None,
        }
    }

    #[test]
    fn an_important_mark_fades_more_slowly() {
        #[track_caller]
        fn check(memory: &MemoryRow, day: i64, want: f32) {
            let strength = memory.strength(Timestamp::from_second(day * 86_400).unwrap());
            assert!((strength - want).abs() < 0.001, "{strength}");
        }
        check(&marked(0.0, false), 0, 1.0);
        check(&marked(0.0, false), 30, 0.5);
        check(&marked(1.0, false), 180, 0.5);
        check(&marked(1.0, true), 1, 0.0);
        let mut used = marked(0.0, false);
        used.salience.as_mut().unwrap().used = Timestamp::from_second(60 * 86_400).ok();
        check(&used, 90, 0.5);
        assert!(!MemoryRow { salience: None, ..marked(1.0, false) }.lasts(Timestamp::UNIX_EPOCH));
    }

    #[test]
    fn surprise_raises_the_importance() {
        let importance = |score: f32| {
            let surprise = Some(Surprise { words: 4.0, exchange: 3.0, score });
            MemoryRow { surprise, ..marked(0.2, false) }.weighed().salience.unwrap().importance
        };
        assert!((importance(4.0) - 0.982).abs() < 1e-3, "{}", importance(4.0));
        assert_eq!(importance(-4.0), 0.2, "a low surprise does not lower the importance");
        assert_eq!(marked(0.2, false).weighed().salience.unwrap().importance, 0.2);
    }

    #[test]
    fn a_wish_counts_against_the_same_newer_text_alone() {
        let by = |id: &str, undone| {
            let (by, at) = (MessageId::new(id).unwrap(), Timestamp::UNIX_EPOCH);
            Superseded { by, at, worded_at: Some(at), same: false, undone }
        };
        let (undone, again, other) = (by("later", true), by("later", false), by("other", false));
        assert_eq!(settled(Some(&undone), Some(&again)), Some(undone.clone()));
        assert_eq!(settled(Some(&undone), None), Some(undone.clone()));
        assert_eq!(settled(Some(&undone), Some(&other)), Some(other.clone()));
        assert_eq!(settled(Some(&again), None), None);
        let edited = Superseded { worded_at: Some(Timestamp::MAX), ..again.clone() };
        assert_eq!(settled(Some(&undone), Some(&edited)), Some(edited.clone()), "its new text is a new statement");
        assert_eq!(settled(None, Some(&other)), Some(other));
    }

    #[test]
    fn the_gist_is_the_marked_part() {
        assert_eq!(marked(0.0, false).gist(), "I bake.");
        let beyond = MemoryRow { text: "I bäke".into(), ..marked(0.0, false) };
        assert_eq!(beyond.gist(), "I bäke");
    }
}
