//! Themes: memories that are alike, grouped in quiet times, shown to those who may read them, and gone with them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use azera_memory::conformance::record_with_vectors;
use azera_memory::{
    Batch, Durability, Error, Facet, Forget, Found, Memory, NewChat, NewFact, NextPlace, Order, Point, RamStore,
    ReadScope, Store, Stored, Table, Theme, ThemePage, VectorIndex, relink, restore,
};
use azera_types::{
    Author, ChatId, Inbound, MemoryId, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes,
    RealmId, Scope, Text, Timestamp,
};

const DAY_S: i64 = 24 * 3_600;

const BOATS: [&str; 4] = [
    "we sail the old boat at dawn",
    "the boat needs a new mast soon",
    "our boat lost its mast again",
    "a mast for the boat is dear",
];

const SOUP: [&str; 3] =
    ["I cooked the soup with leeks", "leeks make every soup better", "the soup wants more leeks today"];

/// An index of vectors in RAM. Nothing searches here.
#[derive(Clone, Default)]
struct Vectors(Arc<Mutex<BTreeMap<MemoryId, Point>>>);

impl VectorIndex for Vectors {
    fn upsert(&self, points: Vec<Point>) -> Result<(), Error> {
        self.0.lock().unwrap().extend(points.into_iter().map(|point| (point.id, point)));
        Ok(())
    }
    fn search(&self, _: &ReadScope, _: Facet, _: &[f32], _: Timestamp, _: usize) -> Result<Vec<Found>, Error> {
        Ok(Vec::new())
    }
    fn vectors(&self, ids: &[MemoryId]) -> Result<Vec<Stored>, Error> {
        let points = self.0.lock().unwrap();
        let stored = |point: &Point| Stored { id: point.id, own: point.own.clone(), window: point.window.clone() };
        Ok(ids.iter().filter_map(|id| points.get(id)).map(stored).collect())
    }
    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error> {
        self.0.lock().unwrap().retain(|id, _| !ids.contains(id));
        Ok(())
    }
    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }
    fn optimize(&self) -> Result<(), Error> {
        Ok(())
    }
    fn clear(&self) -> Result<(), Error> {
        self.0.lock().unwrap().clear();
        Ok(())
    }
    fn rewrite(&self) -> Result<(), Error> {
        Ok(())
    }
    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        Ok(self.0.lock().unwrap().keys().copied().collect())
    }
}

/// A record with its vectors.
struct World {
    store: RamStore,
    vectors: Vectors,
    memory: Memory,
}

impl World {
    fn new() -> Self {
        let (store, vectors) = (RamStore::new(), Vectors::default());
        let memory = record_with_vectors(Arc::new(store.clone()), Arc::new(vectors.clone()));
        let world = Self { store, vectors, memory };
        for name in ["hall", "den"] {
            let (platform, persona) = (PlatformId::new("test").unwrap(), persona("azera"));
            world.memory.chats().open(NewChat { id: chat(name), platform, title: None, persona }, at(0)).unwrap();
        }
        world
    }

    /// Keeps a fact that Zoe said in a place.
    fn fact(&self, scope: Scope, second: i64, text: &str) -> MemoryId {
        let new = NewFact {
            persona: persona("azera"),
            chat: chat("hall"),
            scope,
            author: Author::Person { id: PersonId::new("zoe").unwrap(), name: "Zoe".into() },
            text: Text::new(text),
            at: at(second),
        };
        self.memory.memories().store_fact(new).unwrap()
    }

    /// Keeps facts, one a second.
    fn facts(&self, first_second: i64, texts: &[&str]) {
        for (second, text) in (first_second..).zip(texts) {
            self.fact(realm(), second, text);
        }
    }

    /// Lets Zoe say something in the hall.
    fn say(&self, number: i64, text: &str) -> MessageId {
        let inbound = Inbound {
            id: MessageId::new(format!("m{number}")).unwrap(),
            chat: chat("hall"),
            person: PersonId::new("zoe").unwrap(),
            name: "Zoe".into(),
            text: Text::new(text),
            at: at(number),
            parts: Vec::new(),
            mentions_bot: false,
            mentions: Vec::new(),
            reply_to: None,
        };
        let platform = PlatformId::new("test").unwrap();
        self.memory.turns().receive(&platform, &inbound, realm(), at(number)).unwrap();
        self.memory.turns().leave(&inbound.id).unwrap();
        inbound.id
    }

    /// Indexes what is queued, and groups what is due ten days later. Returns how many rows changed.
    fn settle(&self) -> usize {
        self.index();
        while self.memory.themes().fill(2).unwrap() {}
        let (mut changed, mut after) = (0, None);
        while let NextPlace::Due(place) = self.memory.themes().next_due(after.as_ref(), at(10 * DAY_S)).unwrap() {
            changed += self.memory.themes().group(&place).unwrap().unwrap();
            after = Some(place);
        }
        changed
    }

    /// Indexes what is queued.
    fn index(&self) {
        loop {
            let work = self.memory.indexing().work(100).unwrap();
            if work.is_empty() {
                break;
            }
            let embed = |work: azera_memory::IndexWork| {
                let texts: Vec<String> = work.to_embed().cloned().collect();
                work.with_vectors(&mut texts.iter().map(|text| embed(text))).unwrap()
            };
            self.memory.indexing().index(work.into_iter().map(embed).collect()).unwrap();
        }
    }

    fn themes(&self, read_scope: &ReadScope) -> Vec<Theme> {
        self.memory.themes().list(read_scope, 0, 100).unwrap().themes
    }

    /// Returns true if a place is due a second after everything was grouped.
    fn is_due(&self) -> bool {
        matches!(self.memory.themes().next_due(None, at(10 * DAY_S)).unwrap(), NextPlace::Due(_))
    }

    /// Returns the number of places that are marked as due.
    fn marks(&self) -> usize {
        self.store.scan(Table::Meta, b"themes_due/", None, Order::Ascending, usize::MAX).unwrap().len()
    }

    fn rows(&self) -> usize {
        self.store.scan(Table::Themes, b"", None, Order::Ascending, usize::MAX).unwrap().len()
    }
}

/// Returns a vector by the matter of a text: boats, soup or anything else.
fn embed(text: &str) -> Vec<f32> {
    // The window of a message has the message before it, too.
    let last = text.lines().last().unwrap_or_default();
    let axis = if last.contains("boat") {
        0
    } else if last.contains("soup") {
        1
    } else {
        2
    };
    let mut vector = [0.0_f32; 8];
    vector[axis] = 0.95;
    vector[3 + last.len() % 5] = 0.3;
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter().map(|value| value / length).collect()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn chat(name: &str) -> ChatId {
    ChatId::new(name).unwrap()
}

fn persona(name: &str) -> PersonaId {
    PersonaId::new(name).unwrap()
}

fn realm() -> Scope {
    Scope::Realm(RealmId::new("realm").unwrap())
}

fn dm() -> Scope {
    Scope::Dm(PersonId::new("zoe").unwrap())
}

fn public(persona_name: &str, since: Option<Timestamp>) -> ReadScope {
    let kind = PlaceKind::Public(RealmId::new("realm").unwrap());
    ReadScope::in_place(persona(persona_name), &Place { chat: chat("hall"), kind, since }, &ReadableScopes::default())
}

fn with_zoe() -> ReadScope {
    let reach = ReadableScopes { realms: vec![(RealmId::new("realm").unwrap(), None)], ..ReadableScopes::default() };
    let kind = PlaceKind::Dm(PersonId::new("zoe").unwrap());
    ReadScope::in_place(persona("azera"), &Place { chat: chat("den"), kind, since: None }, &reach)
}

#[test]
fn alike_memories_are_a_theme_named_by_their_own_words() {
    let world = World::new();
    for (second, text) in (1..).zip(BOATS.iter().chain(&SOUP).chain(&["it rained all day long"])) {
        world.fact(realm(), second, text);
    }
    assert_eq!(world.themes(&public("azera", None)), [], "nothing is grouped yet");
    assert_eq!(world.settle(), 8);
    let themes = world.themes(&public("azera", None));
    let counts: Vec<usize> = themes.iter().map(|theme| theme.memories).collect();
    assert_eq!(counts, [4, 3]);
    assert_eq!(themes[0].words[..2], ["boat", "mast"]);
    assert_eq!(themes[1].words[..2], ["leeks", "soup"]);
    assert_eq!(themes[0].said, (at(1), at(4)));
    assert_eq!(themes[0].newest.text.as_str(), BOATS[3]);
    assert!(BOATS.contains(&themes[0].typical.text.as_str()));
    assert!(world.memory.check().unwrap().is_sound());
    let ThemePage { themes, total, is_cut } = world.memory.themes().list(&public("azera", None), 1, 1).unwrap();
    assert_eq!((themes.len(), themes[0].memories, total, is_cut), (1, 3, 2, false));
}

#[test]
fn nothing_changes_without_anything_new_and_little_with_a_little() {
    let world = World::new();
    world.facts(1, &BOATS);
    world.facts(5, &SOUP);
    assert_eq!(world.settle(), 7);
    assert_eq!(world.settle(), 0);
    world.fact(realm(), 20, "another boat came into sight");
    assert_eq!(world.settle(), 1, "the others keep their themes");
    assert_eq!(world.themes(&public("azera", None))[0].memories, 5);
}

#[test]
fn a_theme_is_shown_only_where_its_memories_may_be_read() {
    let world = World::new();
    for (second, text) in (1..).zip(BOATS) {
        world.fact(realm(), second, text);
        world.fact(dm(), 10 + second, &format!("{text} in secret"));
    }
    world.settle();
    let public_themes = world.themes(&public("azera", None));
    assert_eq!(public_themes.iter().map(|theme| &theme.scope).collect::<Vec<_>>(), [&realm()]);
    assert!(!format!("{:?}", public_themes.iter().map(|theme| &theme.words).collect::<Vec<_>>()).contains("secret"));
    let scopes: Vec<Scope> = world.themes(&with_zoe()).into_iter().map(|theme| theme.scope).collect();
    assert_eq!(scopes, [dm(), realm()], "each place has its own");
    assert_eq!(world.themes(&public("luna", None)), [], "personas share nothing");
}

#[test]
fn what_came_before_a_newcomer_has_no_part_in_the_themes_shown_to_them() {
    let world = World::new();
    world.facts(1, &BOATS);
    world.facts(11, &SOUP);
    world.fact(realm(), 14, "and a boat, not a soup");
    world.settle();
    let newcomer = public("azera", Some(at(10)));
    let themes = world.themes(&newcomer);
    assert_eq!(themes.iter().map(|theme| theme.memories).collect::<Vec<_>>(), [3], "a lone boat is no theme");
    assert_eq!(themes[0].words[..2], ["leeks", "soup"]);
    assert_eq!(world.themes(&public("azera", Some(at(100)))), []);
}

#[test]
fn a_forgotten_memory_leaves_its_theme_and_an_edited_one_is_looked_at_again() {
    let world = World::new();
    let boats: Vec<MessageId> = (1..).zip(BOATS).map(|(second, text)| world.say(second, text)).collect();
    world.settle();
    let read_scope = public("azera", None);
    assert_eq!(world.themes(&read_scope)[0].memories, 4);
    world.memory.forgetting().forget(&Forget::Message(boats[3].clone()), false).unwrap();
    assert_eq!((world.themes(&read_scope)[0].memories, world.rows()), (3, 3));
    world.memory.turns().edit(&boats[2], Text::new("I would rather have some soup"), at(50)).unwrap();
    world.settle();
    assert_eq!(world.themes(&read_scope), [], "two boats are no theme");
    world.memory.forgetting().forget(&Forget::Person(PersonId::new("zoe").unwrap()), false).unwrap();
    assert_eq!(world.rows(), 0);
    assert!(world.memory.check().unwrap().is_sound());
}

#[test]
fn what_is_left_of_a_theme_does_not_show_that_there_was_more() {
    let world = World::new();
    let boats: Vec<MessageId> = (1..).zip(BOATS).map(|(second, text)| world.say(second, text)).collect();
    world.settle();
    for boat in &boats[..2] {
        world.memory.forgetting().forget(&Forget::Message(boat.clone()), false).unwrap();
    }
    assert_eq!(world.themes(&public("azera", None)), [], "two boats are no theme, before they are grouped again, too");
}

#[test]
fn what_is_left_is_grouped_again_by_itself_when_something_is_forgotten_or_edited() {
    let world = World::new();
    let texts = BOATS.iter().chain(&SOUP).chain(&["it rained all day long"]);
    let said: Vec<MessageId> = (1..).zip(texts).map(|(second, text)| world.say(second, text)).collect();
    world.settle();
    assert!(!world.is_due());
    let forget = |message: &MessageId| {
        world.memory.forgetting().forget(&Forget::Message(message.clone()), false).unwrap();
        world.settle();
        !world.is_due()
    };
    world.memory.forgetting().forget(&Forget::Message(said[7].clone()), false).unwrap();
    assert_eq!(world.marks(), 0, "it was part of no theme");
    world.memory.forgetting().forget(&Forget::Message(said[0].clone()), false).unwrap();
    assert_eq!(world.marks(), 1);
    assert!(forget(&said[1]), "grouping clears the mark");
    assert_eq!(world.marks(), 0);
    world.memory.turns().edit(&said[4], Text::new("the boat is in the harbour again"), at(50)).unwrap();
    assert_eq!(world.marks(), 1);
    world.memory.forgetting().forget(&Forget::Person(PersonId::new("zoe").unwrap()), false).unwrap();
    world.settle();
    world.memory.themes().sweep().unwrap();
    assert_eq!((world.rows(), world.marks()), (0, 0), "nothing is left of the place");
}

#[test]
fn a_message_that_somebody_asked_to_keep_counts_once() {
    let world = World::new();
    let said: Vec<MessageId> = (1..).zip(BOATS).map(|(second, text)| world.say(second, text)).collect();
    world.fact(realm(), 1, BOATS[0]);
    world.settle();
    assert_eq!(world.themes(&public("azera", None))[0].memories, 4);
    world.memory.forgetting().forget(&Forget::Message(said[0].clone()), false).unwrap();
    assert_eq!(world.themes(&public("azera", None))[0].memories, 4, "what was kept is left");
}

#[test]
fn memories_beyond_the_newest_count_in_no_theme_of_another_grouping() {
    let world = World::new();
    world.facts(1, &BOATS);
    world.settle();
    let place = world.store.scan(Table::Themes, b"", None, Order::Ascending, 1).unwrap().remove(0).0;
    let place = &place[..place.len() - 8];
    let newer = |number: u64| [place, &(1_000_000 + number).to_be_bytes()].concat();
    let mut batch = Batch::new();
    for number in 0..16_384 {
        batch.put(Table::Themes, newer(number), [at(100).as_millisecond().to_be_bytes().as_slice(), &[0]].concat());
    }
    world.store.commit(batch, Durability::Flushed).unwrap();
    world.settle();
    let mut batch = Batch::new();
    for number in 0..16_384 {
        batch.remove(Table::Themes, newer(number));
    }
    world.store.commit(batch, Durability::Flushed).unwrap();
    assert_eq!(world.themes(&public("azera", None)), [], "the numbers of before say nothing now");
}

#[test]
fn an_edited_message_between_others_is_grouped_again_though_nothing_new_is_said() {
    let world = World::new();
    let texts = BOATS.iter().chain(&SOUP);
    let said: Vec<MessageId> = (1..).zip(texts).map(|(second, text)| world.say(second, text)).collect();
    world.settle();
    world.memory.turns().edit(&said[1], Text::new("I would rather have some soup"), at(50)).unwrap();
    world.settle();
    let counts: Vec<usize> = world.themes(&public("azera", None)).iter().map(|theme| theme.memories).collect();
    assert_eq!(counts, [4, 3], "four soups and three boats");
}

#[test]
fn a_damaged_row_costs_no_other_memory_its_theme() {
    let world = World::new();
    world.facts(1, &BOATS);
    world.settle();
    let (key, _) = world.store.scan(Table::Themes, b"", None, Order::Ascending, 1).unwrap().remove(0);
    let mut batch = Batch::new();
    batch.put(Table::Themes, key, b"odd".to_vec());
    world.store.commit(batch, Durability::Flushed).unwrap();
    world.settle();
    assert_eq!(world.themes(&public("azera", None))[0].memories, 3);
}

#[test]
fn old_restored_and_mended_records_get_their_themes() {
    let world = World::new();
    world.facts(1, &BOATS);
    world.settle();
    let whole = world.themes(&public("azera", None));
    // A record of an older version.
    let mut batch = Batch::new();
    for (key, _) in world.store.scan(Table::Themes, b"", None, Order::Ascending, usize::MAX).unwrap() {
        batch.remove(Table::Themes, key);
    }
    batch.remove(Table::Meta, b"themes");
    world.store.commit(batch, Durability::Flushed).unwrap();
    let open = |store: &RamStore| {
        let memory = record_with_vectors(Arc::new(store.clone()), Arc::new(world.vectors.clone()));
        World { store: store.clone(), vectors: world.vectors.clone(), memory }
    };
    let old = open(&world.store);
    old.settle();
    assert_eq!(old.themes(&public("azera", None)), whole);
    // A backup.
    let copy = RamStore::new();
    let rows = |take: &mut dyn FnMut(Batch) -> Result<(), Error>| old.memory.record().dump(take).map(drop);
    restore(&copy, rows).unwrap();
    assert!(copy.scan(Table::Themes, b"", None, Order::Ascending, 9).unwrap().is_empty(), "they are made again");
    let restored = open(&copy);
    restored.settle();
    assert_eq!(restored.themes(&public("azera", None)).len(), whole.len());
    relink(&restored.store).unwrap();
    let mended = open(&restored.store);
    mended.settle();
    assert_eq!(mended.themes(&public("azera", None)).len(), whole.len());
    assert!(mended.memory.check().unwrap().is_sound());
}

#[test]
fn a_reader_may_have_places_grouped_at_once_where_anything_is_new_and_nowhere_else() {
    let world = World::new();
    world.facts(1, &BOATS);
    world.fact(dm(), 20, "the boat needs a new mast in secret");
    let changed = |read_scope: &ReadScope| world.memory.themes().changed(read_scope).unwrap();
    assert_eq!(changed(&public("azera", None)), None, "nothing has a vector yet");
    assert_eq!(world.settle(), 5);
    assert_eq!(changed(&with_zoe()).map(|places| places.len()), Some(0), "everything is grouped");
    world.fact(realm(), 30, "another boat came into sight");
    world.index();
    assert!(matches!(world.memory.themes().next_due(None, at(31)).unwrap(), NextPlace::None), "one is few");
    assert_eq!(changed(&public("luna", None)), Some(Vec::new()), "personas share nothing");
    assert_eq!(changed(&public("azera", Some(at(25)))), Some(Vec::new()), "a newcomer is shown no stored theme");
    let places = changed(&with_zoe()).unwrap();
    assert_eq!(places.len(), 1, "in the direct messages, nothing is new");
    assert_eq!(world.memory.themes().group(&places[0]).unwrap(), Some(1));
    assert_eq!(world.themes(&public("azera", None))[0].memories, 5);
    assert_eq!(changed(&with_zoe()), Some(Vec::new()), "the same call twice changes nothing more");
}

#[test]
fn what_is_said_between_two_places_is_not_taken_for_compared() {
    let world = World::new();
    world.facts(1, &BOATS);
    world.fact(dm(), 20, "the boat needs a new mast in secret");
    world.index();
    while world.memory.themes().fill(2).unwrap() {}
    let places = world.memory.themes().changed(&with_zoe()).unwrap().unwrap();
    assert_eq!(places.len(), 2);
    assert!(world.memory.themes().group(&places[0]).unwrap().is_some());
    // It is in one of the two places, and has no vector yet.
    world.fact(realm(), 30, "another boat came into sight");
    world.fact(dm(), 31, "another boat came into sight in secret");
    for place in &places {
        assert_eq!(world.memory.themes().group(place).unwrap(), None, "a memory waits");
    }
    world.index();
    assert_eq!(world.memory.themes().changed(&with_zoe()).unwrap().map(|places| places.len()), Some(2), "both are new");
    world.settle();
    assert_eq!(world.themes(&public("azera", None))[0].memories, 5, "the late one is in the theme, too");
}
