//! What people said in many chats of a place, and so counts as known in the whole place, while it holds. One person may have
//! said it in all of them, or several people, if it seems to say the same in every mouth. Nothing of it is stored: it is
//! computed from the memories that may be read, and is forgotten with them. Only the wish of a speaker that a statement
//! does not count is stored, in its memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use azera_types::{ChatId, MemoryId, PersonId, Scope, Timestamp};

use crate::domains::Memories;
use crate::recall::{Again, Hit, KNOWN_IN_CHATS, chats_in, dot, same_in_words};
use crate::rows::{Kind, MemoryRow};
use crate::words::Statement;
use crate::{Batch, Durability, Error, ReadScope, Table, codec, keys};

/// Most statements that are compared, the newest ones.
const MAX_READ: usize = 65_536;

/// Most memories that may be read and are looked at to find them. An import has many that are no statements.
const MAX_ROWS: usize = 8 * MAX_READ;

/// Most memories that say the same and are told of.
const MAX_SAYING: usize = 32;

/// A statement that was made in many chats of one place. `Debug` shows no words.
#[derive(Clone, PartialEq)]
pub struct Known {
    /// The newest memory of it.
    pub newest: MemoryRow,
    /// The other memories of it, newest first.
    pub again: Vec<Again>,
    /// The number of chats it was said in.
    pub chats: usize,
    /// The number of people who said it.
    pub people: usize,
    /// True if it does not count, because of those who do not want their words to.
    pub is_apart: bool,
    /// All memories of it: those that are not told of, and those of people who do not want their words to count.
    members: Vec<Member>,
}

/// A memory of a statement.
#[derive(Clone, PartialEq, Eq)]
struct Member {
    memory: MemoryId,
    person: PersonId,
    chat: Option<ChatId>,
    at: Timestamp,
    apart: bool,
}

impl Known {
    /// Returns true if this person said it.
    pub fn was_said_by(&self, person: &PersonId) -> bool {
        self.members.iter().any(|member| member.person == *person)
    }

    /// Returns true if this person does not want their own words to count.
    pub fn is_set_apart_by(&self, person: &PersonId) -> bool {
        self.members.iter().any(|member| member.apart && member.person == *person)
    }

    /// Returns true if it was said in enough chats before this moment, so that it is no news since then.
    pub fn was_known_before(&self, since: Timestamp) -> bool {
        let before = self.members.iter().filter(|member| !member.apart && member.at < since);
        before.filter_map(|member| member.chat.as_ref()).collect::<HashSet<_>>().len() >= KNOWN_IN_CHATS
    }
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Known[{} in {} chats]", self.newest.id, self.chats)
    }
}

/// What can be told apart without comparing words: where a statement was made, and its lasting words.
type Bucket = (Scope, String);

fn bucket_of(memory: &MemoryRow) -> Bucket {
    (memory.scope.clone(), Statement::new(&memory.text).lasting_words())
}

impl Memories<'_> {
    /// Returns the statements that hold and were made in [`KNOWN_IN_CHATS`] or more chats of a place, those in most chats
    /// first, and how many there are. All memories that they rest on may be read.
    pub fn known(self, read_scope: &ReadScope, skip: usize, limit: usize) -> Result<(Vec<Known>, usize), Error> {
        let mut known = self.all_known(read_scope)?;
        let total = known.len();
        known.sort_by_key(|known| (Reverse(known.chats), Reverse(known.newest.at), known.newest.id));
        Ok((known.into_iter().skip(skip).take(limit).collect(), total))
    }

    /// Notes whether a person's own words count towards a statement that is known in a place and that this memory makes, for
    /// all memories of it that are theirs. Returns how many those are; `None` if `read_scope` allows no such statement of
    /// the person.
    pub fn set_apart(
        self,
        read_scope: &ReadScope,
        person: &PersonId,
        id: MemoryId,
        apart: bool,
    ) -> Result<Option<usize>, Error> {
        let mut known = self.all_known(read_scope)?.into_iter();
        let said = known.find(|known| known.members.iter().any(|member| member.memory == id));
        let members = said.map(|known| known.members).unwrap_or_default();
        let own: Vec<Member> = members.into_iter().filter(|member| member.person == *person).collect();
        if own.is_empty() {
            return Ok(None);
        }
        let mut chats = BTreeSet::new();
        for member in &own {
            chats.extend(self.raw_memory(member.memory)?.and_then(|memory| memory.chat));
        }
        let _writing = self.0.writing_in(&chats)?;
        let mut batch = Batch::new();
        for Member { memory: id, .. } in &own {
            // It may have been forgotten meanwhile.
            if let Some(memory) = self.get(read_scope, *id)? {
                codec::put(&mut batch, Table::Memories, keys::memory(*id), &MemoryRow { apart, ..memory })?;
            }
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Some(own.len()))
    }

    fn all_known(self, read_scope: &ReadScope) -> Result<Vec<Known>, Error> {
        let said = |row: &MemoryRow| matches!(row.kind, Kind::Message | Kind::Fact) && row.is_statement();
        let mut buckets: HashMap<Bucket, Vec<MemoryRow>> = HashMap::new();
        for memory in self.newest_within(read_scope, said, None, (MAX_READ, MAX_ROWS))? {
            buckets.entry(bucket_of(&memory)).or_default().push(memory);
        }
        let mut known = Vec::new();
        for memories in buckets.into_values().filter(|memories| chats_in(memories.iter()) >= KNOWN_IN_CHATS) {
            for statement in self.statements(memories)? {
                known.extend(as_known(self.held_by_each(read_scope, statement)?));
            }
        }
        Ok(known)
    }

    /// Returns the places of hits, best first, that come forward because what they say counts as known: it was said in
    /// [`KNOWN_IN_CHATS`] or more chats, by one person or by several, and each of them said nothing else instead since. Of
    /// several hits that say the same, it is the best.
    pub(crate) fn known_hits(self, read_scope: &ReadScope, hits: &[Hit]) -> Result<Vec<usize>, Error> {
        let mut alike: HashMap<Bucket, Vec<usize>> = HashMap::new();
        for (place, hit) in hits.iter().enumerate().filter(|(_, hit)| hit.chats() > 0) {
            alike.entry(bucket_of(&hit.memory)).or_default().push(place);
        }
        let mut known = Vec::new();
        for places in alike.into_values() {
            let hits = || places.iter().filter_map(|place| Some((*place, hits.get(*place)?)));
            if hits().map(|(_, hit)| hit.chats()).sum::<usize>() < KNOWN_IN_CHATS {
                continue;
            }
            let mut saying = Vec::new();
            for (_, hit) in hits() {
                saying.push(hit.memory.clone());
                for again in &hit.again {
                    saying.extend(self.get(read_scope, again.memory)?);
                }
            }
            for statement in self.statements(saying)? {
                let held = self.held_by_each(read_scope, statement)?;
                if chats_in(held.iter().filter(|memory| memory.is_statement())) >= KNOWN_IN_CHATS {
                    let mut of_held = hits().filter(|(_, hit)| held.iter().any(|memory| memory.id == hit.memory.id));
                    known.extend(of_held.next().map(|(place, _)| place));
                }
            }
        }
        Ok(known)
    }

    /// Returns groups of memories that make one statement, each in the order of the memories: those of several people that say
    /// the same in every mouth, and those of one person that say the same.
    fn statements(self, memories: Vec<MemoryRow>) -> Result<Vec<Vec<MemoryRow>>, Error> {
        let mut statements = Vec::new();
        for group in self.saying_the_same(memories)? {
            let people: HashSet<&PersonId> = group.iter().filter_map(|memory| memory.author.person()).collect();
            if people.len() < 2 {
                statements.push(group);
                continue;
            }
            let (common, own): (Vec<MemoryRow>, Vec<MemoryRow>) =
                group.iter().cloned().partition(|memory| Statement::new(&memory.text).is_impersonal());
            // Where enough chats share it, what is left is each person's own. Otherwise a person's words stay together.
            let is_shared = chats_in(common.iter()) >= KNOWN_IN_CHATS;
            let mut by_person: BTreeMap<PersonId, Vec<MemoryRow>> = BTreeMap::new();
            for memory in if is_shared { own } else { group } {
                let Some(person) = memory.author.person().cloned() else { continue };
                by_person.entry(person).or_default().push(memory);
            }
            statements.extend(by_person.into_values().chain(is_shared.then_some(common)));
        }
        Ok(statements)
    }

    /// Returns those of several memories that still hold, each person's by what they said themselves. They stay in their
    /// order.
    fn held_by_each(self, read_scope: &ReadScope, memories: Vec<MemoryRow>) -> Result<Vec<MemoryRow>, Error> {
        let mut by_person: HashMap<Option<PersonId>, Vec<MemoryRow>> = HashMap::new();
        let order: Vec<MemoryId> = memories.iter().map(|memory| memory.id).collect();
        for memory in memories {
            by_person.entry(memory.author.person().cloned()).or_default().push(memory);
        }
        let mut held = HashMap::new();
        for said in by_person.into_values() {
            held.extend(self.still_holding(read_scope, said)?.into_iter().map(|memory| (memory.id, memory)));
        }
        Ok(order.into_iter().filter_map(|id| held.remove(&id)).collect())
    }

    /// Returns groups of memories that say the same, as recall compares them. The memories come newest first, and so does
    /// each group.
    fn saying_the_same(self, memories: Vec<MemoryRow>) -> Result<Vec<Vec<MemoryRow>>, Error> {
        let ids: Vec<MemoryId> = memories.iter().map(|memory| memory.id).collect();
        // Without vectors, the same words alone are the same.
        let stored = self.0.vectors.vectors(&ids).unwrap_or_default();
        let vectors: HashMap<MemoryId, Vec<f32>> = stored.into_iter().map(|stored| (stored.id, stored.own)).collect();
        let is_near = |one: &MemoryRow, other: &MemoryRow| {
            let both = vectors.get(&one.id).zip(vectors.get(&other.id));
            both.is_some_and(|(one, other)| dot(one, other) >= self.0.config.near_duplicate)
        };
        let mut groups: Vec<Vec<MemoryRow>> = Vec::new();
        for memory in memories {
            let is_one = |group: &Vec<MemoryRow>| {
                group.first().is_some_and(|first| same_in_words(first, &memory, || is_near(first, &memory)))
            };
            match groups.iter_mut().find(|group| is_one(group)) {
                Some(group) => group.push(memory),
                None => groups.push(vec![memory]),
            }
        }
        Ok(groups)
    }
}

/// Returns a group of memories, newest first, as one statement, if it was made in enough chats. Those who do not want their
/// words to count are left out, unless too few chats are left: then it is one that does not count.
fn as_known(group: Vec<MemoryRow>) -> Option<Known> {
    let apart: HashSet<PersonId> =
        group.iter().filter(|memory| memory.apart).filter_map(|memory| memory.author.person().cloned()).collect();
    let of_member = |memory: &MemoryRow| {
        let person = memory.author.person()?.clone();
        let (chat, apart) = (memory.chat.clone(), apart.contains(&person));
        Some(Member { memory: memory.id, person, chat, at: memory.at, apart })
    };
    let members: Vec<Member> = group.iter().filter_map(of_member).collect();
    let counts = |memory: &&MemoryRow| memory.author.person().is_some_and(|person| !apart.contains(person));
    let counted: Vec<MemoryRow> = group.iter().filter(counts).cloned().collect();
    let is_apart = chats_in(counted.iter()) < KNOWN_IN_CHATS;
    let told = if is_apart { group } else { counted };
    let chats = chats_in(told.iter());
    if chats < KNOWN_IN_CHATS {
        return None;
    }
    let people = told.iter().filter_map(|memory| memory.author.person()).collect::<HashSet<_>>().len();
    let mut told = told.into_iter();
    let newest = told.next()?;
    let again = told.take(MAX_SAYING).map(Again::of).collect();
    Some(Known { newest, again, chats, people, is_apart, members })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use azera_types::{Author, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId};

    use super::*;
    use crate::conformance::record;
    use crate::{NewChat, NewFact, RamStore, Shown, Validity};

    /// Returns the places of known hits among what three people say, each in a chat of their own.
    fn known_among(texts: [&str; 3]) -> Vec<usize> {
        let memory = record(Arc::new(RamStore::new()));
        let (persona, realm) = (PersonaId::new("azera").unwrap(), RealmId::new("town").unwrap());
        let place = Place { chat: ChatId::new("hall").unwrap(), kind: PlaceKind::Public(realm.clone()), since: None };
        let read_scope = ReadScope::in_place(persona.clone(), &place, &ReadableScopes::default());
        let hit = |(number, text): (usize, &str)| {
            let (chat, platform) = (ChatId::new(format!("c{number}")).unwrap(), PlatformId::new("test").unwrap());
            let new = NewChat { id: chat.clone(), platform, title: None, persona: persona.clone() };
            memory.chats().open(new, Timestamp::UNIX_EPOCH).unwrap();
            let author = Author::Person { id: PersonId::new(format!("p{number}")).unwrap(), name: "Ann".into() };
            let (scope, at) = (Scope::Realm(realm.clone()), Timestamp::UNIX_EPOCH);
            let fact = NewFact { persona: persona.clone(), chat, scope, author, text: text.into(), at };
            let id = memory.memories().store_fact(fact).unwrap();
            let memory = memory.memories().get(&read_scope, id).unwrap().unwrap();
            let (snippet, shown, signals) = (memory.text.clone(), Shown::new(), Vec::new());
            Hit { memory, snippet, shown, score: 1.0, signals, validity: Validity::default(), again: Vec::new() }
        };
        let hits: Vec<Hit> = texts.into_iter().enumerate().map(hit).collect();
        let mut known = memory.memories().known_hits(&read_scope, &hits).unwrap();
        known.sort_unstable();
        known
    }

    #[test]
    fn the_best_of_several_peoples_hits_that_say_the_same_comes_forward() {
        let harbour = "The harbour closes at nine.";
        assert_eq!(known_among([harbour; 3]), [0]);
        assert_eq!(known_among([harbour, "The harbour closes at ten.", harbour]), [0; 0]);
        assert_eq!(known_among(["My boat is blue."; 3]), [0; 0], "these are three boats");
        let parking = ["There is no parking here.", "There is parking here.", "There is parking here."];
        assert_eq!(known_among(parking), [0; 0], "a filler of another language turns it around");
    }
}
