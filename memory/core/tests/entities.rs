//! How well mentions are told apart and put together, on conversations in `entities.txt`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use azera_memory::conformance::{mentions, record};
use azera_memory::{NewChat, RamStore, ReadScope};
use azera_types::{
    ChatId, Inbound, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId, Scope,
    Text, Timestamp,
};

/// Seconds between two lines.
const STEP: i64 = 600;

/// What a mention means in the set, by the number of its line and its first byte.
type Meant = BTreeMap<(usize, usize), String>;

/// Returns a line's speaker, its text without marks, and the mentions in it: their first bytes and what they mean.
fn read(line: &str) -> (String, String, Vec<(usize, String)>) {
    let (speaker, marked) = line.split_once(": ").unwrap();
    let (mut text, mut mentions, mut rest) = (String::new(), Vec::new(), marked);
    while let Some((before, behind)) = rest.split_once('[') {
        let (mention, after) = behind.split_once(']').unwrap();
        let (name, meant) = mention.split_once('=').unwrap();
        text.push_str(before);
        mentions.push((text.len(), meant.to_owned()));
        text.push_str(name);
        rest = after;
    }
    text.push_str(rest);
    (speaker.to_owned(), text, mentions)
}

/// Returns what the set and the memory say of each mention of one conversation, with how many mentions the memory found
/// that the set does not have.
fn resolved(lines: &[&str]) -> (Meant, HashMap<(usize, usize), String>, usize) {
    let memory = record(Arc::new(RamStore::new()));
    let (platform, chat) = (PlatformId::new("test").unwrap(), ChatId::new("chat").unwrap());
    let (persona, realm) = (PersonaId::new("azera").unwrap(), RealmId::new("realm").unwrap());
    let new = NewChat { id: chat.clone(), platform: platform.clone(), title: None, persona: persona.clone() };
    memory.chats().open(new, Timestamp::UNIX_EPOCH).unwrap();
    let mut meant = Meant::new();
    for (number, line) in lines.iter().enumerate() {
        let (speaker, text, mentions) = read(line);
        meant.extend(mentions.into_iter().map(|(at, entity)| ((number, at), entity)));
        let id = MessageId::new(number.to_string()).unwrap();
        let inbound = Inbound {
            id: id.clone(),
            chat: chat.clone(),
            person: PersonId::new(format!("test:{speaker}")).unwrap(),
            name: speaker,
            text: Text::new(text),
            at: Timestamp::from_second(STEP * i64::try_from(number).unwrap()).unwrap(),
            parts: Vec::new(),
            mentions_bot: false,
            mentions: Vec::new(),
            reply_to: None,
        };
        memory.turns().receive(&platform, &inbound, Scope::Realm(realm.clone()), inbound.at).unwrap();
        memory.turns().leave(&id).unwrap();
    }
    let place = Place { chat, kind: PlaceKind::Public(realm), since: None };
    let read_scope = ReadScope::in_place(persona, &place, &ReadableScopes::default());
    let mut found = HashMap::new();
    let mut besides = 0;
    for mention in mentions(&memory, &read_scope).unwrap() {
        let source = memory.memories().get(&read_scope, mention.memory).unwrap().unwrap().sources.remove(0);
        let at = (source.as_str().parse().unwrap(), mention.place.start);
        besides += usize::from(!meant.contains_key(&at));
        found.insert(at, format!("{:?}", mention.entity));
    }
    (meant, found, besides)
}

/// The sums of B-cubed over all mentions, and counts of mentions.
#[derive(Debug, Default)]
struct Tally {
    precision: f64,
    recall: f64,
    mentions: usize,
    missed: usize,
    besides: usize,
}

impl Tally {
    /// Adds a conversation. A mention that the memory did not find is alone in its entity.
    fn add(&mut self, meant: &Meant, found: &HashMap<(usize, usize), String>, besides: usize) {
        let groups = |of: &dyn Fn(&(usize, usize)) -> String| {
            let mut groups: BTreeMap<String, BTreeSet<(usize, usize)>> = BTreeMap::new();
            for mention in meant.keys() {
                groups.entry(of(mention)).or_default().insert(*mention);
            }
            groups
        };
        let entity = |mention: &(usize, usize)| meant[mention].clone();
        let guess = |mention: &(usize, usize)| found.get(mention).cloned().unwrap_or_else(|| format!("{mention:?}"));
        let (entities, guesses) = (groups(&entity), groups(&guess));
        for mention in meant.keys() {
            let (right, guessed) = (&entities[&entity(mention)], &guesses[&guess(mention)]);
            let both = right.intersection(guessed).count() as f64;
            self.precision += both / guessed.len() as f64;
            self.recall += both / right.len() as f64;
            self.mentions += 1;
            self.missed += usize::from(!found.contains_key(mention));
        }
        self.besides += besides;
    }

    fn f1(&self) -> f64 {
        let (precision, recall) = (self.precision / self.mentions as f64, self.recall / self.mentions as f64);
        2.0 * precision * recall / (precision + recall)
    }
}

#[test]
fn mentions_of_one_entity_are_found_and_put_together() {
    let text = include_str!("entities.txt");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut tally = Tally::default();
    for conversation in lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty()) {
        let (meant, found, besides) = resolved(conversation);
        tally.add(&meant, &found, besides);
    }
    println!("{tally:?}, B-cubed F1 {:.3}", tally.f1());
    assert!(tally.mentions >= 300, "{tally:?}");
    assert!(tally.f1() >= 0.9, "{tally:?}: {}", tally.f1());
    assert!(tally.besides * 20 <= tally.mentions, "too much is taken for a name: {tally:?}");
}
