//! A message is forgotten or edited while its turn ends.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::{Arc, Mutex};

use azera_memory::conformance::{StagedStore, inbound, record, reply};
use azera_memory::{Forget, Memory, NewChat, NewReply, Order, RamStore, Store, Table};
use azera_types::{ChatId, MessageId, PersonId, PersonaId, PlatformId, RealmId, Scope, Text, Timestamp};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

type Meanwhile = Box<dyn FnOnce() + Send>;

/// Returns a store in which something happens behind the next read of a message.
fn interrupted(rows: RamStore, meanwhile: Arc<Mutex<Option<Meanwhile>>>) -> StagedStore {
    StagedStore::new(rows).after_get(move |table| {
        let happens = if table == Table::Messages { meanwhile.lock().unwrap().take() } else { None };
        if let Some(happens) = happens {
            happens();
        }
    })
}

/// A record whose chat has one message with an open turn, and what to do behind the next read of a message.
struct Scene {
    rows: RamStore,
    memory: Arc<Memory>,
    meanwhile: Arc<Mutex<Option<Meanwhile>>>,
    question: MessageId,
}

impl Scene {
    fn open() -> Self {
        let (rows, meanwhile) = (RamStore::new(), Arc::<Mutex<Option<Meanwhile>>>::default());
        let memory = Arc::new(record(Arc::new(interrupted(rows.clone(), Arc::clone(&meanwhile)))));
        let (platform, chat) = (PlatformId::new("test").unwrap(), ChatId::new("square").unwrap());
        let new = NewChat {
            id: chat.clone(),
            platform: platform.clone(),
            title: None,
            persona: PersonaId::new("azera").unwrap(),
        };
        memory.chats().open(new, NOW).unwrap();
        let question = MessageId::new("question").unwrap();
        let said = inbound(&question, &chat, &ann(), "my secret is a boat", NOW);
        memory.turns().receive(&platform, &said, Scope::Realm(RealmId::new("realm").unwrap()), NOW).unwrap();
        Self { rows, memory, meanwhile, question }
    }

    fn meanwhile(&self, happens: impl FnOnce(&Memory) + Send + 'static) {
        let memory = Arc::clone(&self.memory);
        *self.meanwhile.lock().unwrap() = Some(Box::new(move || happens(&memory)));
    }

    /// Returns the rows of memories.
    fn memories(&self) -> Vec<String> {
        let rows = self.rows.scan(Table::Memories, b"", None, Order::Ascending, 99).unwrap();
        rows.into_iter().map(|(_, row)| String::from_utf8_lossy(&row).into_owned()).collect()
    }
}

fn ann() -> PersonId {
    PersonId::new("ann").unwrap()
}

#[test]
fn a_message_that_is_forgotten_as_its_turn_ends_is_not_remembered() {
    let scene = Scene::open();
    let question = scene.question.clone();
    scene.meanwhile(move |memory| {
        memory.forgetting().forget(&Forget::Message(question), true).unwrap();
    });
    scene.memory.turns().leave(&scene.question).unwrap();
    assert_eq!(scene.memories(), [""; 0]);
    assert!(scene.memory.turns().open(&scene.question).unwrap().is_none(), "its turn is over");
    assert!(scene.memory.check().unwrap().is_sound());
}

#[test]
fn a_message_that_is_edited_as_its_turn_ends_is_remembered_as_it_is_now() {
    let scene = Scene::open();
    let question = scene.question.clone();
    scene.meanwhile(move |memory| {
        memory.turns().edit(&question, Text::new("my boat is blue"), NOW).unwrap().unwrap();
    });
    scene.memory.turns().leave(&scene.question).unwrap();
    let memories = scene.memories();
    assert_eq!(memories.len(), 1);
    assert!(memories[0].contains("my boat is blue") && !memories[0].contains("secret"), "{memories:?}");
}

#[test]
fn a_reply_that_is_forgotten_as_it_is_chosen_again_stays_forgotten() {
    let scene = Scene::open();
    let id = |number: usize| MessageId::new(format!("reply-{number}")).unwrap();
    let answer = |number: usize, text: &str| {
        let new = reply(&id(number), &scene.question, &ann(), text, NOW);
        scene.memory.turns().reply(NewReply { replaces: number.checked_sub(1).map(id), ..new }).unwrap()
    };
    let (first, second) = (answer(0, "The first answer."), answer(1, "The second answer."));
    scene.memory.forgetting().forget(&Forget::Message(first.id.clone()), true).unwrap();
    assert!(scene.memory.turns().choose_alternative(&second, &first).is_err());
    assert!(scene.memories().iter().all(|memory| !memory.contains("The first answer.")));
    assert!(scene.memory.check().unwrap().is_sound());
}
