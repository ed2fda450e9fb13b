//! What may be learnt from: of whom and of what an exchange rests on is asked, also by way of the replies that it quotes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{
    Forget, Kind, Memory, MemoryRow, MessageRow, NewChat, NewReply, RamStore, ReadScope, Received, TrainableExchange,
    TrainingConsent, WhyHit, WhyRow,
};
use azera_types::{
    ChatId, Inbound, MemoryId, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId,
    Scope, Timestamp,
};

const MINUTE: i64 = 60;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn id(name: &str) -> MessageId {
    MessageId::new(name).unwrap()
}

/// Two public channels of one realm, where Ann talks to the persona in one, and Bob told something in the other.
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
            memory.open_chat(new, at(0)).unwrap();
        }
        Self { memory, second: 0 }
    }

    fn training_consent(&self, who: &str, since: i64) {
        let willing = TrainingConsent { since: at(since), offload: false };
        self.memory.set_training_consent(&PersonId::new(who).unwrap(), Some(willing)).unwrap();
    }

    /// Something said and the answer, to which some memories were recalled and all that was said in the chat before was shown.
    fn exchange(&mut self, chat: &str, who: &str, name: &str, text: &str, answer: &str, recalled: &[MemoryId]) {
        self.second += MINUTE;
        let chat = ChatId::new(chat).unwrap();
        let inbound = Inbound {
            id: id(name),
            chat: chat.clone(),
            person: PersonId::new(who).unwrap(),
            name: who.into(),
            text: text.into(),
            at: at(self.second),
            mentions_bot: true,
            mentions: Vec::new(),
            reply_to: None,
        };
        let platform = PlatformId::new("sim").unwrap();
        let received = self.memory.receive(&platform, &inbound, scope(), at(self.second)).unwrap();
        assert!(matches!(received, Received::New(_)), "{received:?}");
        let shown = self.memory.history(&right(), &chat, 100).unwrap();
        self.answer(&shown, name, who, 0, answer, recalled);
        let said = self.memory.message(&right(), &id(name)).unwrap().unwrap();
        self.memory.note_surprise(&said, 3.0, 2.0).unwrap();
    }

    /// The answer to something said, the first or one in the place of another, five seconds later.
    fn answer(&self, shown: &[MessageRow], name: &str, who: &str, number: usize, answer: &str, recalled: &[MemoryId]) {
        let reply = id(&format!("{name}~r{number}"));
        let new = NewReply {
            id: reply.clone(),
            to: id(name),
            platform: PlatformId::new("sim").unwrap(),
            asker: PersonId::new(who).unwrap(),
            persona: PersonaId::new("azera").unwrap(),
            persona_name: "Azera".into(),
            text: answer.into(),
            at: at(self.second + 5),
            from: at(0),
            source_scopes: Vec::new(),
            built_on: Vec::new(),
            built_on_facts: Vec::new(),
            memorable: false,
            state: serde_json::Value::Null,
            why: WhyRow {
                reply,
                recalled: recalled
                    .iter()
                    .map(|memory| WhyHit { memory: *memory, score: 1.0, signals: vec!["semantic".into()] })
                    .collect(),
                missing: Vec::new(),
                fragments: Vec::new(),
                model: "none".into(),
                seed: 0,
                usage: serde_json::Value::Null,
                recall_ms: 0.0,
                shown: Some(shown.iter().map(|row| row.seq).collect()),
            },
            replaces: number.checked_sub(1).map(|before| id(&format!("{name}~r{before}"))),
        };
        self.memory.reply(new).unwrap();
    }

    /// The memory of something said.
    fn memory_of(&self, name: &str) -> MemoryId {
        let recent = self.memory.recent(&right(), Timestamp::MIN, 100).unwrap();
        let of_it = |it: &&MemoryRow| it.kind == Kind::Message && it.sources == [id(name)];
        recent.iter().find(of_it).unwrap().id
    }

    fn trainable_exchanges(&self) -> Vec<TrainableExchange> {
        self.memory.trainable_exchanges(&right(), false, &|_, _| true, 100).unwrap()
    }

    /// Whose words may be learnt from, by their names.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.trainable_exchanges().iter().map(|it| it.said.id.to_string()).collect();
        names.sort();
        names
    }
}

fn scope() -> Scope {
    Scope::Realm(RealmId::new("town").unwrap())
}

fn right() -> ReadScope {
    let kind = PlaceKind::Public(RealmId::new("town").unwrap());
    let place = Place { chat: ChatId::new("square").unwrap(), kind, since: None };
    ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &ReadableScopes::default())
}

/// Bob told something elsewhere in the realm; it was recalled for an answer to Ann; and she went on.
fn quoting() -> Talk {
    let mut talk = Talk::begin();
    talk.training_consent("ann", 0);
    talk.exchange("market", "bob", "bob", "my boat lies behind the mill", "Noted.", &[]);
    let reported = talk.memory_of("bob");
    talk.exchange("square", "ann", "asked", "where is the boat of Bob?", "It lies behind the mill.", &[reported]);
    talk.exchange("square", "ann", "again", "say it once more", "Behind the mill.", &[]);
    talk
}

#[test]
fn who_was_recalled_for_a_quoted_reply_must_want_it_too() {
    let talk = quoting();
    assert_eq!(talk.names(), [""; 0], "the first answer rests on Bob, and stands before the second");
    talk.training_consent("bob", 10 * MINUTE);
    // He said it before he wanted it: so it may stand before something, and not be learnt itself.
    assert_eq!(talk.names(), ["again"]);
    let provenance = talk.trainable_exchanges().remove(0).provenance;
    assert!(provenance.messages.contains_key(&id("bob")) && provenance.people.len() == 2, "{provenance:?}");
    assert_eq!(provenance.from, Some(at(MINUTE)));
    talk.training_consent("bob", 0);
    assert_eq!(talk.names(), ["again", "asked", "bob"]);
}

#[test]
fn what_was_recalled_for_a_quoted_reply_and_is_gone_or_changed_is_not_learnt_by_way_of_it() {
    let talk = quoting();
    talk.training_consent("bob", 0);
    let provenance = talk.trainable_exchanges().into_iter().find(|it| it.said.id == id("again")).unwrap().provenance;
    assert!(talk.memory.provenance_holds(&provenance).unwrap());
    talk.memory.edit(&id("bob"), "never mind".into(), at(20 * MINUTE)).unwrap();
    assert!(!talk.memory.provenance_holds(&provenance).unwrap());
    assert_eq!(talk.names(), [""; 0], "each answer was given with what it said before in sight");

    let talk = quoting();
    talk.training_consent("bob", 0);
    let provenance = talk.trainable_exchanges().into_iter().find(|it| it.said.id == id("again")).unwrap().provenance;
    talk.memory.forget(&Forget::Message(id("bob")), false).unwrap();
    assert!(!talk.memory.provenance_holds(&provenance).unwrap());
    assert_eq!(talk.names(), [""; 0]);
}

/// Word of a change comes late, and an answer may be under way as it comes.
#[test]
fn what_was_answered_right_after_a_change_may_have_been_answered_before_it() {
    let learnt = |changed_before: Option<i64>| {
        let mut talk = Talk::begin();
        talk.training_consent("ann", 0);
        talk.exchange("square", "ann", "first", "the boat is red", "Red!", &[]);
        talk.second += 180 * MINUTE;
        if let Some(minutes) = changed_before {
            let now = talk.second - minutes * MINUTE;
            let changed = talk.memory.edit(&id("first"), "the boat is blue".into(), at(now)).unwrap().unwrap();
            // It is answered anew at once.
            talk.second = now;
            talk.answer(&[changed], "first", "ann", 1, "Blue!", &[]);
            talk.second = now + minutes * MINUTE;
        }
        // By the platform's clock it was changed before this was answered.
        talk.exchange("square", "ann", "second", "I like it", "The red one.", &[]);
        talk.names()
    };
    assert_eq!(learnt(None), ["first", "second"]);
    assert_eq!(learnt(Some(1)), [""; 0]);
    assert_eq!(learnt(Some(120)), ["second"], "by then everybody had heard of it");
}
