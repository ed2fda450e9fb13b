//! Voice channels: consent to being heard, and replies of which only a part was heard.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::{inbound, record, reply};
use azera_memory::{Forget, Memory, NewChat, NewReply, RamStore, ReadScope, Received, VoiceConsent};
use azera_types::{
    ChatId, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, Scope, Text, Timestamp,
};

fn parlour() -> ChatId {
    ChatId::new("parlour").unwrap()
}

fn person(name: &str) -> PersonId {
    PersonId::new(name).unwrap()
}

fn id(name: &str) -> MessageId {
    MessageId::new(name).unwrap()
}

/// What everybody in the room may read.
fn scope() -> ReadScope {
    let kind = PlaceKind::Private { realm: None, all_in_realm: false, realm_since: None };
    let place = Place { chat: parlour(), kind, since: None };
    ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &ReadableScopes::default())
}

/// Stores a question and its reply.
fn exchange(memory: &Memory) {
    let (platform, persona) = (PlatformId::new("sim").unwrap(), PersonaId::new("azera").unwrap());
    let new = NewChat { id: parlour(), platform: platform.clone(), title: None, persona };
    memory.chats().open(new, Timestamp::UNIX_EPOCH).unwrap();
    let inbound = inbound(&id("q"), &parlour(), &person("ann"), "Where is the beach?", Timestamp::UNIX_EPOCH);
    let received = memory.turns().receive(&platform, &inbound, Scope::Chat(parlour()), Timestamp::UNIX_EPOCH).unwrap();
    assert!(matches!(received, Received::New(_)), "{received:?}");
    let text = "Down the hill, behind the church, where the zeppelin landed.";
    let reply = reply(&id("q~r0"), &id("q"), &person("ann"), text, Timestamp::UNIX_EPOCH);
    memory.turns().reply(NewReply { platform, memorable: true, ..reply }).unwrap();
}

#[test]
fn what_nobody_heard_is_neither_in_the_history_nor_in_the_memories() {
    let memory = record(Arc::new(RamStore::new()));
    exchange(&memory);
    assert!(memory.turns().cut_reply(&id("q~r0"), Text::new("Down the hill,\u{2026}")).unwrap());
    let history = memory.messages().history(&scope(), &parlour(), 10).unwrap();
    let texts: Vec<&str> = history.iter().map(|row| &*row.text).collect();
    assert_eq!(texts, ["Where is the beach?", "Down the hill,\u{2026}"]);
    let remembered = memory.writings().recent(&scope(), Timestamp::MIN, 10).unwrap();
    assert_eq!(remembered.len(), 2);
    assert!(remembered.iter().all(|row| !row.text.contains("zeppelin")));
    // Only a persona's own words are cut, and only if they are there.
    assert!(!memory.turns().cut_reply(&id("q"), Text::new("Where")).unwrap());
    assert!(!memory.turns().cut_reply(&id("nothing"), Text::new("Where")).unwrap());
    assert_eq!(&*memory.messages().get(&scope(), &id("q")).unwrap().unwrap().text, "Where is the beach?");
}

#[test]
fn consent_belongs_to_a_person_and_a_channel_and_does_not_outlive_a_restore() {
    let memory = record(Arc::new(RamStore::new()));
    exchange(&memory);
    let consent = |chat: &str, who: &str| memory.consent().voice(&ChatId::new(chat).unwrap(), &person(who)).unwrap();
    memory.consent().set_voice(&parlour(), &person("ann"), VoiceConsent::Given).unwrap();
    memory.consent().set_voice(&parlour(), &person("bob"), VoiceConsent::Refused).unwrap();
    assert_eq!(consent("parlour", "ann"), Some(VoiceConsent::Given));
    assert_eq!(consent("parlour", "bob"), Some(VoiceConsent::Refused));
    assert_eq!((consent("kitchen", "ann"), consent("parlour", "cid")), (None, None));
    // Who asks to be forgotten is asked again.
    memory.forgetting().forget(&Forget::Person(person("ann")), true).unwrap();
    assert_eq!(consent("parlour", "ann"), None);
    memory.record().revoke_training_consent().unwrap();
    assert_eq!(consent("parlour", "bob"), None);
}
