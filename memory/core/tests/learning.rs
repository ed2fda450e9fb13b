//! Trainable exchanges: consent is required from everyone whom an exchange rests on, also through quoted replies.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::{self, record};
use azera_memory::{
    Forget, Kind, Memory, MemoryRow, MessageRow, NewChat, NewReply, RamStore, ReadScope, Received, TrainableExchange,
    TrainingConsent, WhyHit, WhyRow,
};
use azera_types::{
    ChatId, MemoryId, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId, Scope,
    Timestamp,
};

const MINUTE: i64 = 60;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn id(name: &str) -> MessageId {
    MessageId::new(name).unwrap()
}

/// Two public channels of one realm. Ann talks to the persona in one; Bob said something in the other.
struct Talk {
    memory: Memory,
    second: i64,
}

impl Talk {
    fn begin() -> Self {
        let memory = record(Arc::new(RamStore::new()));
        for chat in ["square", "market"] {
            let new = NewChat {
                id: ChatId::new(chat).unwrap(),
                platform: PlatformId::new("sim").unwrap(),
                title: None,
                persona: PersonaId::new("azera").unwrap(),
            };
            memory.chats().open(new, at(0)).unwrap();
        }
        Self { memory, second: 0 }
    }

    fn training_consent(&self, who: &str, since: i64) {
        let willing = TrainingConsent { since: at(since), offload: false };
        self.memory.consent().set_training(&PersonId::new(who).unwrap(), Some(willing)).unwrap();
    }

    /// Adds a message and its reply. The prompt contains `recalled` and the whole conversation so far.
    fn exchange(&mut self, chat: &str, who: &str, name: &str, text: &str, answer: &str, recalled: &[MemoryId]) {
        self.second += MINUTE;
        let chat = ChatId::new(chat).unwrap();
        let inbound = conformance::inbound(&id(name), &chat, &PersonId::new(who).unwrap(), text, at(self.second));
        let platform = PlatformId::new("sim").unwrap();
        let received = self.memory.turns().receive(&platform, &inbound, scope(), at(self.second)).unwrap();
        assert!(matches!(received, Received::New(_)), "{received:?}");
        let shown = self.memory.messages().history(&read_scope(), &chat, 100).unwrap();
        self.answer(&shown, name, who, 0, answer, recalled);
        let said = self.memory.messages().get(&read_scope(), &id(name)).unwrap().unwrap();
        self.memory.training().note_surprise(&said, 3.0, 2.0).unwrap();
    }

    /// Adds a reply five seconds later: the first one to a message, or a replacement of another.
    fn answer(&self, shown: &[MessageRow], name: &str, who: &str, number: usize, answer: &str, recalled: &[MemoryId]) {
        let reply = id(&format!("{name}~r{number}"));
        let hit = |memory: &MemoryId| WhyHit {
            memory: *memory,
            score: 1.0,
            signals: vec!["semantic".into()],
            shown: Vec::new(),
            same: Vec::new(),
        };
        let (recalled, shown) = (recalled.iter().map(hit).collect(), Some(shown.iter().map(|row| row.seq).collect()));
        let new = conformance::reply(&reply, &id(name), &PersonId::new(who).unwrap(), answer, at(self.second + 5));
        let (why, platform) = (WhyRow { recalled, shown, ..new.why.clone() }, PlatformId::new("sim").unwrap());
        let replaces = number.checked_sub(1).map(|before| id(&format!("{name}~r{before}")));
        let new = NewReply { platform, from: at(0), why, replaces, ..new };
        self.memory.turns().reply(new).unwrap();
    }

    /// Returns the memory of a message.
    fn memory_of(&self, name: &str) -> MemoryId {
        let recent = self.memory.writings().recent(&read_scope(), Timestamp::MIN, 100).unwrap();
        let of_it = |it: &&MemoryRow| it.kind == Kind::Message && it.sources == [id(name)];
        recent.iter().find(of_it).unwrap().id
    }

    fn trainable_exchanges(&self) -> Vec<TrainableExchange> {
        self.memory.training().exchanges(&read_scope(), false, &|_, _| true, 100).unwrap()
    }

    /// Returns the names of the trainable messages.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.trainable_exchanges().iter().map(|it| it.said.id.to_string()).collect();
        names.sort();
        names
    }
}

fn scope() -> Scope {
    Scope::Realm(RealmId::new("town").unwrap())
}

fn read_scope() -> ReadScope {
    let kind = PlaceKind::Public(RealmId::new("town").unwrap());
    let place = Place { chat: ChatId::new("square").unwrap(), kind, since: None };
    ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &ReadableScopes::default())
}

/// Bob says something in another channel, a reply to Ann recalls it, and Ann goes on.
fn quoting() -> Talk {
    let mut talk = Talk::begin();
    talk.training_consent("ann", 0);
    talk.exchange("market", "bob", "bob", "my boat lies behind the mill", "Noted.", &[]);
    let bobs = talk.memory_of("bob");
    talk.exchange("square", "ann", "asked", "where is the boat of Bob?", "It lies behind the mill.", &[bobs]);
    talk.exchange("square", "ann", "again", "say it once more", "Behind the mill.", &[]);
    talk
}

#[test]
fn people_recalled_for_a_quoted_reply_must_consent_too() {
    let talk = quoting();
    assert_eq!(talk.names(), [""; 0], "the first answer is built on Bob's message, and is in the prompt of the second");
    talk.training_consent("bob", 10 * MINUTE);
    // Bob said it before he consented. So it may be in a prompt, but not be trained on itself.
    assert_eq!(talk.names(), ["again"]);
    let provenance = talk.trainable_exchanges().remove(0).provenance;
    assert!(provenance.messages.contains_key(&id("bob")) && provenance.people.len() == 2, "{provenance:?}");
    assert_eq!(provenance.from, Some(at(MINUTE)));
    talk.training_consent("bob", 0);
    assert_eq!(talk.names(), ["again", "asked", "bob"]);
}

#[test]
fn a_forgotten_or_edited_source_of_a_quoted_reply_prevents_training() {
    let talk = quoting();
    talk.training_consent("bob", 0);
    let provenance = talk.trainable_exchanges().into_iter().find(|it| it.said.id == id("again")).unwrap().provenance;
    assert!(talk.memory.training().provenance_holds(&provenance).unwrap());
    talk.memory.turns().edit(&id("bob"), "never mind".into(), at(20 * MINUTE)).unwrap();
    assert!(!talk.memory.training().provenance_holds(&provenance).unwrap());
    assert_eq!(talk.names(), [""; 0], "each answer had the earlier ones in its prompt");

    let talk = quoting();
    talk.training_consent("bob", 0);
    let provenance = talk.trainable_exchanges().into_iter().find(|it| it.said.id == id("again")).unwrap().provenance;
    talk.memory.forgetting().forget(&Forget::Message(id("bob")), false).unwrap();
    assert!(!talk.memory.training().provenance_holds(&provenance).unwrap());
    assert_eq!(talk.names(), [""; 0]);
}

/// An edit arrives late, and a reply may be in progress at that moment.
#[test]
fn a_reply_right_after_an_edit_may_rest_on_the_old_text() {
    let learned = |changed_before: Option<i64>| {
        let mut talk = Talk::begin();
        talk.training_consent("ann", 0);
        talk.exchange("square", "ann", "first", "the boat is red", "Red!", &[]);
        talk.second += 180 * MINUTE;
        if let Some(minutes) = changed_before {
            let now = talk.second - minutes * MINUTE;
            let changed = talk.memory.turns().edit(&id("first"), "the boat is blue".into(), at(now)).unwrap().unwrap();
            // The reply is regenerated at once.
            talk.second = now;
            talk.answer(&[changed], "first", "ann", 1, "Blue!", &[]);
            talk.second = now + minutes * MINUTE;
        }
        // By the platform's clock, the edit came before this reply.
        talk.exchange("square", "ann", "second", "I like it", "The red one.", &[]);
        talk.names()
    };
    assert_eq!(learned(None), ["first", "second"]);
    assert_eq!(learned(Some(1)), [""; 0]);
    assert_eq!(learned(Some(120)), ["second"], "the edit had arrived everywhere by then");
}
