//! Random histories of a record: people talk in chats, get replies, and change their minds.

use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{
    Account, Error, Forget, Kind, Memory, NewChat, NewFact, NewReply, NewWriting, RamStore, Salience, WhyRow,
};
use azera_types::{
    Author, ChatId, Inbound, MemoryId, MessageId, PersonId, PersonaId, PlatformId, RealmId, Scope, Timestamp,
};

/// The secret of [`History::tell_secret`].
pub const SECRET: &str = "xylophonist77";

pub fn open(store: &RamStore) -> Memory {
    record(Arc::new(store.clone()))
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Returns a chat: 0 is private, 1 is a DM of ann, the others are public in the realm `guild`.
pub fn chat(number: u8) -> ChatId {
    ChatId::new(format!("chat{}", number % 4)).unwrap()
}

fn scope(number: u8) -> Scope {
    match number % 4 {
        0 => Scope::Chat(chat(0)),
        1 => Scope::Dm(person(0)),
        _ => Scope::Realm(RealmId::new("guild").unwrap()),
    }
}

fn person(number: u8) -> PersonId {
    PersonId::new(["ann", "ben", "cid"][usize::from(number % 3)]).unwrap()
}

pub fn persona() -> PersonaId {
    PersonaId::new("azera").unwrap()
}

/// Closes every open turn without a reply.
pub fn leave_all(memory: &Memory) {
    for (message, _) in memory.turns().all_open().unwrap() {
        memory.turns().leave(&message.id).unwrap();
    }
}

/// A record and the messages in it.
pub struct History {
    pub memory: Memory,
    /// What was forgotten, and whether with the replies built on it.
    pub forgot: Vec<(Forget, bool)>,
    said: Vec<MessageId>,
    second: i64,
}

impl History {
    pub fn of(store: &RamStore) -> Self {
        let memory = open(store);
        for number in 0..4 {
            let platform = PlatformId::new("test").unwrap();
            let new = NewChat { id: chat(number), platform, title: None, persona: persona() };
            memory.chats().open(new, at(0)).unwrap();
        }
        Self { memory, forgot: Vec::new(), said: Vec::new(), second: 0 }
    }

    /// Plays a script; any bytes are a valid script.
    pub fn play(&mut self, script: &[u8]) {
        for [what, which] in script.as_chunks::<2>().0 {
            self.second += 10;
            let earlier = self.said.get(usize::from(*which) % self.said.len().max(1)).cloned();
            match (what % 10, earlier) {
                (8..=9, earlier) => self.write(*which, earlier),
                (0..=2, _) => self.say(*which, &format!("said{}", self.second), "some words of mine", true),
                (3, _) => self.say(*which, &format!("said{}", self.second), "words nobody answers", false),
                (4, _) => {
                    let text = format!("fact {}", self.second).as_str().into();
                    let fact = NewFact {
                        persona: persona(),
                        chat: chat(*which),
                        scope: scope(*which),
                        author: author(*which),
                        text,
                        at: at(self.second),
                    };
                    self.memory.memories().store_fact(fact).unwrap();
                }
                (5, Some(id)) => {
                    let text = format!("changed {}", self.second).as_str().into();
                    self.memory.turns().edit(&id, text, at(self.second)).unwrap();
                }
                (6, Some(id)) => {
                    if let Some((reply, _)) = self.memory.outbox().pending().unwrap().first() {
                        self.memory.outbox().delivered(reply).unwrap();
                    }
                    self.answer(&id, vec![id.clone()], true);
                }
                (7, Some(id)) if which % 5 == 0 => {
                    self.forget(Forget::Message(id), which % 2 == 0);
                }
                _ => {}
            }
        }
    }

    /// The persona writes something in a chat about any message.
    fn write(&self, which: u8, about: Option<MessageId>) {
        let kinds = [Kind::Dream, Kind::Diary, Kind::Reflection, Kind::Note];
        let kind = kinds[usize::from(which / 4 % 4)];
        let new = NewWriting {
            persona: persona(),
            persona_name: "Azera".into(),
            kind,
            chat: chat(which),
            scope: scope(which),
            source_scopes: Vec::new(),
            imported_by: (about.is_none() && kind != Kind::Note).then(|| person(which)),
            sources: about.into_iter().collect(),
            text: format!("written {}", self.second).as_str().into(),
            at: at(self.second),
            prompt: Some("about what was said".into()),
            model: None,
            title: None,
            themes: Vec::new(),
            mood: None,
            post: which.is_multiple_of(3).then(|| PlatformId::new("test").unwrap()),
            tended: None,
        };
        let platform = PlatformId::new("test").unwrap();
        self.memory.places().set_overrides(&platform, &Scope::Dm(person(which)), &which.into()).unwrap();
        if which.is_multiple_of(5) {
            self.memory.links().link(&account(which), &account(which / 3)).unwrap();
        }
        // Its source may be forgotten.
        self.memory.writings().write(new).unwrap();
    }

    pub fn forget(&mut self, what: Forget, quotes: bool) {
        self.memory.forgetting().forget(&what, quotes).unwrap();
        self.forgot.push((what, quotes));
    }

    /// Ann tells the secret in chat 0, as a message and as a fact. A reply there repeats it, and so does one in the
    /// realm that rests on another message of hers.
    pub fn tell_secret(&mut self) {
        self.say(0, "secret", SECRET, false);
        self.answer_with("secret", &format!("you said {SECRET}"), Vec::new());
        let fact = NewFact {
            persona: persona(),
            chat: chat(0),
            scope: Scope::Realm(RealmId::new("guild").unwrap()),
            author: author(0),
            text: "something else".into(),
            at: at(1),
        };
        self.memory.memories().store_fact(fact).unwrap();
        self.say(1, "innocent", "good morning", true);
    }

    /// Returns an existing item to forget.
    pub fn target(&self, what: u8, which: u8) -> Forget {
        let message = self.said.get(usize::from(which) % self.said.len().max(1)).cloned();
        match (what, message) {
            (0, Some(id)) => Forget::Message(id),
            (1, _) => Forget::Person(person(which)),
            (2, _) => Forget::Chat(chat(which)),
            (3, _) => Forget::Realm(RealmId::new("guild").unwrap(), vec![chat(0)]),
            (4, _) => Forget::Memory(MemoryId(u64::from(which))),
            _ => Forget::Span { chat: chat(which), from: at(100), to: at(100 + i64::from(which) * 5) },
        }
    }

    /// A person says something in a chat.
    pub fn say(&mut self, which: u8, id: &str, text: &str, answered: bool) {
        let id = MessageId::new(id).unwrap();
        let inbound = Inbound {
            id: id.clone(),
            chat: chat(which),
            person: person(which),
            name: person(which).to_string(),
            text: text.into(),
            at: at(self.second),
            parts: Vec::new(),
            mentions_bot: false,
            mentions: Vec::new(),
            reply_to: None,
        };
        let platform = PlatformId::new("test").unwrap();
        self.memory.turns().receive(&platform, &inbound, scope(which), at(self.second)).unwrap();
        if answered {
            let built_on = self.said.iter().rev().step_by(3).take(2).cloned().chain([id.clone()]).collect();
            self.answer(&id, built_on, false);
        } else if which.is_multiple_of(3) && text != SECRET {
            self.memory.turns().leave(&id).unwrap();
        }
        if which.is_multiple_of(2) && answered {
            let salience = Salience {
                kind: "fact".into(),
                importance: 0.5,
                from: 0,
                to: text.len(),
                with: Vec::new(),
                superseded: None,
                used: None,
            };
            assert!(self.memory.memories().mark(&id, &salience).unwrap());
        }
        self.said.push(id);
    }

    fn answer(&self, to: &MessageId, built_on: Vec<MessageId>, again: bool) {
        let number = self.memory.turns().answer_count(to).unwrap();
        let replaces = again.then(|| MessageId::new(format!("{to}~r{}", number.saturating_sub(1))).unwrap());
        if again && number == 0 {
            return;
        }
        self.reply(to, number, &format!("answer {number} to {to}"), built_on, replaces);
    }

    fn answer_with(&self, to: &str, text: &str, built_on: Vec<MessageId>) {
        let to = MessageId::new(to).unwrap();
        self.reply(&to, 0, text, built_on.into_iter().chain([to.clone()]).collect(), None);
    }

    fn reply(&self, to: &MessageId, number: usize, text: &str, built_on: Vec<MessageId>, replaces: Option<MessageId>) {
        let id = MessageId::new(format!("{to}~r{number}")).unwrap();
        let new = NewReply {
            id: id.clone(),
            to: to.clone(),
            platform: PlatformId::new("test").unwrap(),
            asker: person(0),
            persona: persona(),
            persona_name: "Azera".into(),
            text: text.into(),
            at: at(self.second + 1),
            from: at(0),
            source_scopes: Vec::new(),
            built_on,
            built_on_facts: Vec::new(),
            memorable: true,
            state: serde_json::Value::Null,
            help: String::new(),
            why: WhyRow {
                reply: id,
                recalled: Vec::new(),
                missing: Vec::new(),
                fragments: Vec::new(),
                model: "none".into(),
                seed: 0,
                usage: serde_json::Value::Null,
                recall_ms: 0.0,
                shown: None,
            },
            replaces,
        };
        match self.memory.turns().reply(new) {
            // The question was forgotten or is no longer on the path, so nothing needs a reply.
            Ok(_) | Err(Error::Invalid(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Returns a person's account.
pub fn account(which: u8) -> Account {
    let platform = PlatformId::new("test").unwrap();
    Account { platform, person: person(which), name: format!("{} of test", person(which)) }
}

pub fn author(which: u8) -> Author {
    Author::Person { id: person(which), name: person(which).to_string() }
}
