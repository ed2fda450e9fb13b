//! Ratings of memories are bounded, and go with their memory, their person and their place.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use azera_memory::conformance::{StagedStore, inbound, record, reply};
use azera_memory::{
    Batch, DataSubject, Durability, Error, Forget, Memory, NewChat, NewFact, NewReply, Order, RamStore, ReadScope,
    ReplyRating, Store, Table, WhyHit, WhyRow,
};
use azera_types::{
    Author, ChatId, MemoryId, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId,
    Scope, Text, Timestamp,
};

fn person(name: &str) -> PersonId {
    PersonId::new(name).unwrap()
}

fn persona() -> PersonaId {
    PersonaId::new("azera").unwrap()
}

fn in_dm(name: &str, realm: &RealmId) -> ReadScope {
    let place = Place { chat: ChatId::new("dm").unwrap(), kind: PlaceKind::Dm(person(name)), since: None };
    ReadScope::in_place(
        persona(),
        &place,
        &ReadableScopes { realms: vec![(realm.clone(), None)], ..ReadableScopes::default() },
    )
}

fn fact(memory: &Memory, who: &str, scope: Scope) -> MemoryId {
    let chat = ChatId::new("chat").unwrap();
    let platform = PlatformId::new("test").unwrap();
    let new = NewChat { id: chat.clone(), platform, title: None, persona: persona() };
    memory.chats().open(new, Timestamp::UNIX_EPOCH).unwrap();
    let author = Author::Person { id: person(who), name: who.into() };
    let fact =
        NewFact { persona: persona(), chat, scope, author, text: Text::new("A boat."), at: Timestamp::UNIX_EPOCH };
    memory.memories().store_fact(fact).unwrap()
}

/// Lets Ann ask something in a channel of a realm. Returns the answer, which rests on a memory.
fn answered(memory: &Memory, realm: &RealmId, chat: &str, recalled: MemoryId) -> MessageId {
    let (now, platform) = (Timestamp::UNIX_EPOCH, PlatformId::new("test").unwrap());
    let (id, chat) = (MessageId::new(format!("q-{chat}")).unwrap(), ChatId::new(chat).unwrap());
    let new = NewChat { id: chat.clone(), platform: platform.clone(), title: None, persona: persona() };
    memory.chats().open(new, now).unwrap();
    let asked = inbound(&id, &chat, &person("ann"), "what floats?", now);
    memory.turns().receive(&platform, &asked, Scope::Realm(realm.clone()), now).unwrap();
    answered_again(memory, &id, 0, recalled)
}

/// Answers a question, or answers it once more.
fn answered_again(memory: &Memory, question: &MessageId, number: usize, recalled: MemoryId) -> MessageId {
    let id = |number: usize| MessageId::new(format!("{question}~r{number}")).unwrap();
    let new = reply(&id(number), question, &person("ann"), "A boat.", Timestamp::UNIX_EPOCH);
    let hit = WhyHit { memory: recalled, score: 1.0, signals: Vec::new(), shown: Vec::new(), same: Vec::new() };
    let why = WhyRow { recalled: vec![hit], ..new.why.clone() };
    memory.turns().reply(NewReply { why, replaces: number.checked_sub(1).map(id), ..new }).unwrap();
    id(number)
}

/// Returns the read scope of everybody in an open channel.
fn in_channel(chat: &ChatId, realm: &RealmId) -> ReadScope {
    let place = Place { chat: chat.clone(), kind: PlaceKind::Public(realm.clone()), since: None };
    ReadScope::in_place(persona(), &place, &ReadableScopes::default())
}

/// Open channels of a server are one place, so one rating holds the thumbs of all of them.
#[test]
fn a_forgotten_channel_takes_its_thumbs_along_and_no_others() {
    let memory = record(Arc::new(RamStore::new()));
    let realm = RealmId::new("realm").unwrap();
    let recalled = fact(&memory, "ann", Scope::Realm(realm.clone()));
    let now = Timestamp::UNIX_EPOCH;
    let thumbs = || {
        let export = memory.export(&DataSubject(person("ann")), 0).unwrap();
        let ratings = export["ratings"].as_array().unwrap().clone();
        let thumbs = ratings.into_iter().flat_map(|rating| rating["thumbs"].as_array().unwrap().clone());
        thumbs.map(|thumb| thumb["about"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let helpful = || memory.export(&DataSubject(person("ann")), 0).unwrap()["ratings"][0]["helpful"].clone();
    let (ann, place) = (person("ann"), |chat: &ChatId| in_channel(chat, &realm));
    let forget = |chat: &str| {
        memory.forgetting().forget(&Forget::Chat(ChatId::new(chat).unwrap()), true).unwrap();
        assert!(memory.check().unwrap().is_sound());
    };
    for (chat, is_up) in [("square", true), ("market", false), ("garden", false)] {
        let reply = answered(&memory, &realm, chat, recalled);
        let chat = ChatId::new(chat).unwrap();
        let rating =
            ReplyRating { reply: &reply, chat: &chat, person: &ann, is_helpful: is_up, reaction: None, at: now };
        assert_eq!(memory.memories().rate_reply(&place(&chat), rating).unwrap(), Some(1));
    }
    // What she says of the memory itself, in a third channel, keeps the thumbs.
    let garden = ChatId::new("garden").unwrap();
    memory.memories().rate(&place(&garden), &garden, recalled, &person("ann"), Some(false), now).unwrap().unwrap();
    assert_eq!((thumbs(), helpful()), (vec!["q-square".into(), "q-market".into(), "q-garden".into()], false.into()));
    forget("market");
    assert_eq!((thumbs(), helpful()), (vec!["q-square".into(), "q-garden".into()], false.into()));
    forget("garden");
    assert_eq!((thumbs(), helpful()), (vec!["q-square".to_owned()], true.into()), "the thumb in the square counts");
    forget("square");
    assert_eq!(thumbs(), [""; 0]);
}

/// A person may give several thumbs for one message: below each answer, in each colour, up and down. The newest that still
/// stands counts.
#[test]
fn of_several_thumbs_the_newest_that_stands_counts() {
    let memory = record(Arc::new(RamStore::new()));
    let realm = RealmId::new("realm").unwrap();
    let (square, now) = (ChatId::new("square").unwrap(), Timestamp::UNIX_EPOCH);
    let here = in_channel(&square, &realm);
    let [first, second] = [(); 2].map(|()| fact(&memory, "ann", Scope::Realm(realm.clone())));
    let reply = answered(&memory, &realm, "square", first);
    let other = answered_again(&memory, &MessageId::new("q-square").unwrap(), 1, second);
    let rate = |who: &str, reply: &MessageId, is_helpful: bool, reaction: Option<&str>| {
        let rating = ReplyRating { reply, chat: &square, person: &person(who), is_helpful, reaction, at: now };
        assert_eq!(memory.memories().rate_reply(&here, rating).unwrap(), Some(1));
    };
    let opinions = |who: &str| {
        let export = memory.export(&DataSubject(person(who)), 0).unwrap();
        let ratings = export["ratings"].as_array().unwrap().iter();
        let mut all: Vec<(String, Option<bool>)> = ratings
            .map(|rating| (rating["memory"].as_str().unwrap().to_owned(), rating["helpful"].as_bool()))
            .collect();
        all.sort();
        all
    };
    let says = |id: MemoryId, is_helpful: bool| (id.to_string(), Some(is_helpful));
    let gone = |reply: &MessageId, who: Option<&str>, reaction: &str| {
        let who = who.map(person);
        memory.memories().remove_reactions(reply, who.as_ref(), |known, _| known == Some(reaction)).unwrap()
    };
    rate("ann", &reply, true, Some("1 👍"));
    rate("ann", &reply, true, Some("1 👍🏽"));
    rate("ann", &reply, true, Some("1 👍"));
    rate("ann", &reply, false, Some("1 👎"));
    rate("ben", &reply, false, Some("1 👎"));
    assert_eq!((opinions("ann"), opinions("ben")), (vec![says(first, false)], vec![says(first, false)]));
    assert_eq!(gone(&reply, Some("ann"), "1 👎"), 1);
    assert_eq!((opinions("ann"), opinions("ben")), (vec![says(first, true)], vec![says(first, false)]));
    assert_eq!(gone(&reply, Some("ann"), "1 👍"), 1);
    assert_eq!(opinions("ann"), [says(first, true)], "one of them still stands");
    assert_eq!(
        (gone(&reply, Some("ann"), "1 👍"), gone(&other, Some("ann"), "1 👍🏽")),
        (0, 0),
        "it is gone, or elsewhere"
    );
    // A thumb below another answer is about what that one recalled.
    rate("ann", &other, false, Some("2 👎"));
    assert_eq!(opinions("ann"), [says(first, true), says(second, false)]);
    // What is typed takes the place of all of them.
    rate("ann", &other, true, None);
    assert_eq!(opinions("ann"), [says(second, true)]);
    assert_eq!(gone(&other, Some("ann"), "2 👎"), 0);
    // A moderator removes everybody's.
    rate("ann", &reply, true, Some("1 👍"));
    let below_first = |known: Option<&str>, _| known.is_some_and(|known| known.starts_with("1 "));
    assert_eq!(memory.memories().remove_reactions(&reply, None, below_first).unwrap(), 2);
    assert_eq!((opinions("ann"), opinions("ben")), (vec![says(second, true)], Vec::new()));
    assert!(memory.check().unwrap().is_sound());
}

#[test]
fn a_forgotten_answer_takes_the_thumbs_below_it_along_and_no_others() {
    let store = RamStore::new();
    let memory = record(Arc::new(store.clone()));
    let realm = RealmId::new("realm").unwrap();
    let (square, now) = (ChatId::new("square").unwrap(), Timestamp::UNIX_EPOCH);
    let here = in_channel(&square, &realm);
    let recalled = fact(&memory, "ann", Scope::Realm(realm.clone()));
    let reply = answered(&memory, &realm, "square", recalled);
    let other = answered_again(&memory, &MessageId::new("q-square").unwrap(), 1, recalled);
    let rate = |who: &str, reply: &MessageId, is_helpful: bool| {
        let reaction = Some(reply.as_str());
        let rating = ReplyRating { reply, chat: &square, person: &person(who), is_helpful, reaction, at: now };
        memory.memories().rate_reply(&here, rating).unwrap()
    };
    assert_eq!([rate("ann", &reply, true), rate("ann", &other, false), rate("ben", &reply, true)], [Some(1); 3]);
    let rows = || store.scan(Table::Ratings, b"", None, Order::Ascending, 99).unwrap();
    memory.forgetting().forget(&Forget::Message(reply.clone()), true).unwrap();
    assert_eq!(rows().len() / 2, 1, "Ben's is gone");
    let left: Vec<u8> = rows().into_iter().flat_map(|(_, value)| value).collect();
    let left = String::from_utf8(left).unwrap();
    assert!(!left.contains(reply.as_str()) && left.contains(other.as_str()), "{left}");
    assert_eq!(rate("ben", &reply, true), None, "nothing is left to have an opinion on");
    memory.forgetting().forget(&Forget::Message(other), true).unwrap();
    assert_eq!(rows().len(), 0);
    assert!(memory.check().unwrap().is_sound());
}

/// An older version kept neither the answer nor the reaction of a thumb.
#[test]
fn a_thumb_of_an_older_version_goes_with_a_reaction_of_its_direction() {
    let store = RamStore::new();
    let memory = record(Arc::new(store.clone()));
    let realm = RealmId::new("realm").unwrap();
    let (square, now) = (ChatId::new("square").unwrap(), Timestamp::UNIX_EPOCH);
    let here = in_channel(&square, &realm);
    let recalled = fact(&memory, "ann", Scope::Realm(realm.clone()));
    let reply = answered(&memory, &realm, "square", recalled);
    let other = answered(&memory, &realm, "market", recalled);
    let rows = || store.scan(Table::Ratings, b"", None, Order::Ascending, 99).unwrap();
    let give = |who: &str, is_helpful: bool| {
        let (person, reaction) = (&person(who), Some("1"));
        let rating = ReplyRating { reply: &reply, chat: &square, person, is_helpful, reaction, at: now };
        memory.memories().rate_reply(&here, rating).unwrap();
    };
    let age = || {
        let mut batch = Batch::new();
        for (key, value) in rows() {
            let mut row: serde_json::Value = serde_json::from_slice(&value).unwrap();
            for thumb in row["thumbs"].as_array_mut().unwrap() {
                let thumb = thumb.as_object_mut().unwrap();
                assert!(thumb.remove("reply").is_some() && thumb.remove("reaction").is_some());
            }
            batch.put(Table::Ratings, key, serde_json::to_vec(&row).unwrap());
        }
        store.commit(batch, Durability::Flushed).unwrap();
    };
    let gone = |reply: &MessageId, who: Option<&str>, is_up: bool| {
        let who = who.map(person);
        let is_gone = |name: Option<&str>, up: bool| name.is_none() && up == is_up;
        memory.memories().remove_reactions(reply, who.as_ref(), is_gone).unwrap()
    };
    give("ann", true);
    give("ben", true);
    age();
    assert_eq!(gone(&other, Some("ann"), true), 0, "it stands elsewhere");
    assert_eq!(gone(&reply, Some("ann"), false), 0, "it is up");
    assert_eq!((gone(&reply, Some("ann"), true), rows().len() / 2), (1, 1), "Ben's stays");
    assert_eq!((gone(&reply, None, true), rows().len()), (1, 0));
    // It goes with the answer, too.
    give("ann", false);
    age();
    memory.forgetting().forget(&Forget::Message(other), true).unwrap();
    assert_eq!(rows().len() / 2, 1);
    memory.forgetting().forget(&Forget::Message(reply), true).unwrap();
    assert_eq!(rows().len(), 0);
    assert!(memory.check().unwrap().is_sound());
}

/// Returns a store that fails after some more commits.
fn failing(rows: RamStore, left: Arc<AtomicUsize>) -> StagedStore {
    StagedStore::new(rows).before_commit(move || {
        let less = |left: usize| left.checked_sub(1);
        let counted = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        counted.map(drop).map_err(|_| Error::Full { what: "writing" })
    })
}

/// Only the answer tells which memories it recalled, so a thumb must not stay behind.
#[test]
fn a_crash_while_an_answer_is_forgotten_leaves_no_thumb_without_it() {
    let realm = RealmId::new("realm").unwrap();
    let square = ChatId::new("square").unwrap();
    for commits in 0.. {
        let (rows, left) = (RamStore::new(), Arc::new(AtomicUsize::new(usize::MAX)));
        let memory = record(Arc::new(failing(rows.clone(), left.clone())));
        let here = in_channel(&square, &realm);
        let recalled = fact(&memory, "ann", Scope::Realm(realm.clone()));
        let reply = answered(&memory, &realm, "square", recalled);
        let (person, reaction, at) = (&person("ben"), Some("1"), Timestamp::UNIX_EPOCH);
        let rating = ReplyRating { reply: &reply, chat: &square, person, is_helpful: true, reaction, at };
        assert_eq!(memory.memories().rate_reply(&here, rating).unwrap(), Some(1));
        left.store(commits, Ordering::SeqCst);
        let is_done = memory.forgetting().forget(&Forget::Message(reply.clone()), true).is_ok();
        left.store(usize::MAX, Ordering::SeqCst);
        let are_there = [Table::Why, Table::Ratings].map(|table| {
            let rows = rows.scan(table, b"", None, Order::Ascending, 99).unwrap();
            !rows.is_empty()
        });
        assert_eq!(are_there[0], are_there[1], "after {commits} commits");
        if is_done {
            assert_eq!((are_there, commits > 1), ([false; 2], true));
            return;
        }
    }
}

#[test]
fn a_rating_goes_with_its_memory_and_its_person() {
    let store = RamStore::new();
    let memory = record(Arc::new(store.clone()));
    let realm = RealmId::new("realm").unwrap();
    let ratings = || store.scan(Table::Ratings, b"", None, Order::Ascending, 99).unwrap().len() / 2;
    let now = Timestamp::UNIX_EPOCH;
    let dm = ChatId::new("dm").unwrap();
    let rate = |who: &str, id, helpful| {
        memory.memories().rate(&in_dm(who, &realm), &dm, id, &person(who), helpful, now).unwrap().is_some()
    };
    let shared = fact(&memory, "ann", Scope::Realm(realm.clone()));
    let own = fact(&memory, "ann", Scope::Dm(person("ann")));
    assert!(rate("ann", shared, Some(true)) && rate("ann", own, Some(false)) && rate("ben", shared, Some(true)));
    assert!(!rate("ben", own, Some(true)), "Ben may not read it");
    assert!(rate("ann", shared, Some(false)), "the last word counts");
    assert_eq!(ratings(), 3);
    let export = memory.export(&DataSubject(person("ann")), 0).unwrap();
    assert_eq!(export["ratings"].as_array().unwrap().len(), 2, "{export}");
    assert!(rate("ann", own, None));
    assert_eq!(ratings(), 2);
    assert!(memory.check().unwrap().is_sound());
    memory.forgetting().forget(&Forget::Person(person("ben")), true).unwrap();
    assert_eq!(ratings(), 1, "Ben's is gone, in the memory of Ann");
    memory.forgetting().forget(&Forget::Memory(shared), true).unwrap();
    assert_eq!(ratings(), 0);
    assert!(memory.check().unwrap().is_sound());
}

/// A correction is undone by forgetting the newer statement, and nothing of that remains.
#[test]
fn a_correction_goes_with_the_newer_statement() {
    let store = RamStore::new();
    let memory = record(Arc::new(store.clone()));
    let realm = RealmId::new("realm").unwrap();
    let older = fact(&memory, "ann", Scope::Realm(realm.clone()));
    let here = in_dm("ann", &realm);
    let said = |text: &str, at: i64| NewFact {
        persona: persona(),
        chat: ChatId::new("chat").unwrap(),
        scope: Scope::Realm(realm.clone()),
        author: Author::Person { id: person("ann"), name: "ann".into() },
        text: Text::new(text),
        at: Timestamp::from_second(at).unwrap(),
    };
    let early = memory.memories().update(&here, &person("ann"), older, said("A ship.", -1)).unwrap();
    assert!(early.is_err(), "{early:?}");
    let other = memory.memories().update(&in_dm("ben", &realm), &person("ben"), older, said("A raft.", 1)).unwrap();
    assert!(other.is_err(), "{other:?}");
    let memories = || store.scan(Table::Memories, b"", None, Order::Ascending, 99).unwrap();
    assert_eq!(memories().len(), 1, "what replaces nothing is not stored");
    let newer = memory.memories().update(&here, &person("ann"), older, said("A ship.", 1)).unwrap().unwrap();
    let replaced = || {
        let export = memory.export(&DataSubject(person("ann")), 0).unwrap();
        let all = export["memories"].as_array().unwrap().clone();
        all.into_iter().find(|memory| memory["id"] == older.to_string()).unwrap()["replaced"].clone()
    };
    assert_eq!(replaced()["by"], newer.to_string());
    memory.forgetting().forget(&Forget::Memory(newer), true).unwrap();
    assert!(replaced().is_null(), "{}", replaced());
    let work = memory.indexing().work(99).unwrap().into_iter();
    let embedded = work.filter_map(|work| work.with_vectors(&mut std::iter::repeat(vec![1.0]))).collect();
    memory.indexing().index(embedded).unwrap();
    assert!(memory.forgetting().scrub().unwrap());
    let bytes = memories().into_iter().flat_map(|(_, value)| value).collect::<Vec<u8>>();
    assert!(!String::from_utf8(bytes).unwrap().contains("replaced"));
}
