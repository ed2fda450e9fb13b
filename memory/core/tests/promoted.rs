//! What was said in three chats of a realm counts as known there, by whomever it was said, if it speaks of none of them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{Forget, Known, Memory, NewChat, NewFact, RamStore, ReadScope};
use azera_types::{
    Author, ChatId, MemoryId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId, Scope, Text,
    Timestamp,
};

const HARBOUR: &str = "The harbour closes at nine.";

fn person(name: &str) -> PersonId {
    PersonId::new(name).unwrap()
}

fn persona() -> PersonaId {
    PersonaId::new("azera").unwrap()
}

fn town() -> RealmId {
    RealmId::new("town").unwrap()
}

fn reading(chat: &str, kind: PlaceKind) -> ReadScope {
    let place = Place { chat: ChatId::new(chat).unwrap(), kind, since: None };
    ReadScope::in_place(persona(), &place, &ReadableScopes::default())
}

fn in_town() -> ReadScope {
    reading("square", PlaceKind::Public(town()))
}

struct World {
    memory: Memory,
}

impl World {
    fn new() -> Self {
        Self { memory: record(Arc::new(RamStore::new())) }
    }

    fn keep(&self, who: &str, chat: &str, scope: Scope, text: &str) -> MemoryId {
        let (chat, platform) = (ChatId::new(chat).unwrap(), PlatformId::new("test").unwrap());
        let new = NewChat { id: chat.clone(), platform, title: None, persona: persona() };
        self.memory.chats().open(new, Timestamp::UNIX_EPOCH).unwrap();
        let author = Author::Person { id: person(who), name: who.into() };
        let at = Timestamp::UNIX_EPOCH;
        let fact = NewFact { persona: persona(), chat, scope, author, text: Text::new(text), at };
        self.memory.memories().store_fact(fact).unwrap()
    }

    /// Somebody says something in an open channel of the town.
    fn say(&self, who: &str, chat: &str, text: &str) -> MemoryId {
        self.keep(who, chat, Scope::Realm(town()), text)
    }

    fn known(&self) -> Vec<Known> {
        self.memory.memories().known(&in_town(), 0, 10).unwrap().0
    }

    /// Returns the numbers of chats and of people of the only statement that is known.
    fn counts(&self) -> (usize, usize) {
        let known = self.known();
        assert_eq!(known.len(), 1, "{known:?}");
        (known[0].chats, known[0].people)
    }

    fn set_apart(&self, who: &str, id: MemoryId, apart: bool) -> Option<usize> {
        self.memory.memories().set_apart(&in_town(), &person(who), id, apart).unwrap()
    }
}

#[test]
fn what_three_people_say_in_three_chats_is_known() {
    let world = World::new();
    world.say("ann", "square", HARBOUR);
    world.say("bob", "market", HARBOUR);
    world.say("bob", "square", HARBOUR);
    assert_eq!(world.known(), [], "two chats are too few");
    let last = world.say("cy", "pier", HARBOUR);
    assert_eq!(world.counts(), (3, 3));
    let known = world.known();
    assert_eq!((known[0].newest.id, known[0].again.len()), (last, 3));
    assert!(known[0].was_known_before(Timestamp::from_second(1).unwrap()));
    assert!(!known[0].was_known_before(Timestamp::UNIX_EPOCH));
    let elsewhere = reading("square", PlaceKind::Public(RealmId::new("village").unwrap()));
    assert_eq!(world.memory.memories().known(&elsewhere, 0, 10).unwrap().1, 0);
    world.memory.forgetting().forget(&Forget::Chat(ChatId::new("pier").unwrap()), true).unwrap();
    assert_eq!(world.known(), [], "it is gone with a chat");
}

#[test]
fn what_denies_it_does_not_count_for_it() {
    let world = World::new();
    for (who, chat, text) in [
        ("ann", "square", "There is no parking here."),
        ("bob", "market", "There is parking here."),
        ("cy", "pier", "There is parking here."),
    ] {
        world.say(who, chat, text);
    }
    assert_eq!(world.known(), []);
}

#[test]
fn what_is_said_in_private_adds_nothing() {
    let world = World::new();
    world.say("ann", "square", HARBOUR);
    world.say("bob", "market", HARBOUR);
    let den = ChatId::new("den").unwrap();
    world.keep("cy", "den", Scope::Chat(den), HARBOUR);
    world.keep("cy", "dm", Scope::Dm(person("cy")), HARBOUR);
    assert_eq!(world.known(), []);
}

#[test]
fn what_people_say_of_themselves_is_each_ones_own() {
    for text in ["My boat is blue.", "Moved to the harbour.", "Ich wohne am Hafen.", "Vivo en Madrid desde enero."] {
        let world = World::new();
        for (who, chat) in [("ann", "square"), ("bob", "market"), ("cy", "pier")] {
            world.say(who, chat, text);
        }
        assert_eq!(world.known(), [], "{text}");
        world.say("ann", "market", text);
        world.say("ann", "pier", text);
        assert_eq!(world.counts(), (3, 1), "{text}");
    }
}

#[test]
fn each_person_takes_back_their_own_words_alone() {
    let world = World::new();
    let own = world.say("ann", "square", HARBOUR);
    for (who, chat) in [("bob", "market"), ("cy", "pier"), ("di", "gate")] {
        world.say(who, chat, HARBOUR);
    }
    assert_eq!(world.counts(), (4, 4));
    let state = || {
        let known = world.known();
        (known[0].chats, known[0].is_apart, ["ann", "bob"].map(|who| known[0].is_set_apart_by(&person(who))))
    };
    assert_eq!(world.set_apart("eve", own, true), None, "she did not say it");
    assert_eq!(world.set_apart("ann", own, true), Some(1));
    assert_eq!(state(), (3, false, [true, false]), "the others said it often enough");
    assert!(world.known()[0].was_said_by(&person("ann")));
    // The shown memory is another person's. It names the statement for him, too.
    assert_eq!(world.set_apart("bob", world.known()[0].newest.id, true), Some(1));
    assert_eq!(state(), (4, true, [true, true]));
    assert_eq!(world.set_apart("ann", own, false), Some(1));
    assert_eq!(state(), (3, false, [false, true]));
}

#[test]
fn whoever_says_something_else_instead_no_longer_counts() {
    let world = World::new();
    world.say("ann", "square", HARBOUR);
    world.say("bob", "market", HARBOUR);
    let old = world.say("cy", "pier", HARBOUR);
    let author = Author::Person { id: person("cy"), name: "cy".into() };
    let (chat, scope, text) = (ChatId::new("pier").unwrap(), Scope::Realm(town()), "The harbour closes at ten.".into());
    let at = Timestamp::from_second(60).unwrap();
    let newer = NewFact { persona: persona(), chat, scope, author, text, at };
    let replaced = world.memory.memories().update(&in_town(), &person("cy"), old, newer).unwrap();
    assert_eq!(world.known(), [], "two people are left");
    world.memory.forgetting().forget(&Forget::Memory(replaced.unwrap()), true).unwrap();
    assert_eq!(world.counts(), (3, 3), "it holds again");
}
