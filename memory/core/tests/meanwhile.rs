//! A message is forgotten or edited while its turn ends, or comes while its place is forgotten.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use azera_memory::conformance::{StagedStore, inbound, record, reply};
use azera_memory::{
    Batch, Durability, Error, Forget, Import, ImportState, Memory, NewChat, NewImported, NewReply, Order, RamStore,
    Store, Table,
};
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
        Self::staged(|store, _| store)
    }

    /// Opens a scene on a store with further steps. They may read its rows.
    fn staged(stage: impl FnOnce(StagedStore, &RamStore) -> StagedStore) -> Self {
        let (rows, meanwhile) = (RamStore::new(), Arc::<Mutex<Option<Meanwhile>>>::default());
        let store = stage(interrupted(rows.clone(), Arc::clone(&meanwhile)), &rows);
        let memory = Arc::new(record(Arc::new(store)));
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

/// An older version could remember a message while it was forgotten. Nothing but the memory tells whose it was.
#[test]
fn forgetting_a_person_finds_what_was_kept_of_their_forgotten_messages() {
    let scene = Scene::open();
    scene.memory.turns().leave(&scene.question).unwrap();
    let (platform, chat) = (PlatformId::new("test").unwrap(), ChatId::new("square").unwrap());
    let (other, bob) = (MessageId::new("other").unwrap(), PersonId::new("bob").unwrap());
    let said = inbound(&other, &chat, &bob, "my boat is blue", NOW);
    scene.memory.turns().receive(&platform, &said, Scope::Realm(RealmId::new("realm").unwrap()), NOW).unwrap();
    scene.memory.turns().leave(&other).unwrap();
    let mut kept = Batch::new();
    for table in [Table::Memories, Table::MemoryByMessage, Table::MemoryByChat] {
        for (key, value) in scene.rows.scan(table, b"", None, Order::Ascending, 99).unwrap() {
            kept.put(table, key, value);
        }
    }
    scene.memory.forgetting().forget(&Forget::Message(scene.question.clone()), false).unwrap();
    scene.rows.commit(kept, Durability::Flushed).unwrap();
    assert!(scene.memories().iter().any(|memory| memory.contains("secret")), "an older version kept it");
    let receipt = scene.memory.forgetting().forget(&Forget::Person(ann()), false).unwrap();
    let memories = scene.memories();
    assert_eq!((receipt.messages, receipt.memories, memories.len()), (0, 1, 1), "{memories:?}");
    assert!(memories[0].contains("my boat is blue"), "Bob's memory stays: {memories:?}");
    assert!(scene.memory.check().unwrap().is_sound());
}

/// Adds a message of Ann to an import of hers.
fn import(memory: &Memory, chat: &str, number: u32, text: &str) -> MessageId {
    let import = Import {
        id: "i1".into(),
        by: ann(),
        persona: PersonaId::new("azera").unwrap(),
        scope: Scope::Dm(ann()),
        file: "plum.json".into(),
        format: "chatgpt".into(),
        learns: true,
    };
    let id = MessageId::new(format!("{chat}:{number}")).unwrap();
    let new = NewImported {
        id: id.clone(),
        chat: ChatId::new(chat).unwrap(),
        title: None,
        after: None,
        person: ann(),
        name: "Ann".into(),
        text: Text::new(text),
        at: NOW,
    };
    assert_eq!(memory.imports().add(&import, new, NOW).unwrap(), ImportState::New);
    id
}

const LATE: &str = "the late secret";

#[test]
fn what_an_import_adds_while_it_is_undone_is_undone_too() {
    for quotes in [false, true] {
        let scene = Scene::open();
        import(&scene.memory, "old", 1, "the early secret");
        let question = scene.question.clone();
        let answer = MessageId::new("answer").unwrap();
        let built_on = answer.clone();
        scene.meanwhile(move |memory| {
            let late = import(memory, "old", 2, LATE);
            import(memory, "new", 1, LATE);
            let new = reply(&answer, &question, &ann(), LATE, NOW);
            memory.turns().reply(NewReply { built_on: vec![late], memorable: true, ..new }).unwrap();
        });
        let receipt = scene.memory.forgetting().forget(&Forget::Import("i1".into()), quotes).unwrap();
        let memories = scene.memories();
        assert!(memories.iter().all(|memory| !memory.contains(LATE)), "{memories:?}");
        let imports = scene.memory.imports();
        for id in ["old:1", "old:2", "new:1"].map(|id| MessageId::new(id).unwrap()) {
            assert_eq!(imports.message_state(&id).unwrap(), ImportState::Undone, "{id}");
        }
        for chat in ["old", "new"].map(|id| ChatId::new(id).unwrap()) {
            assert_eq!(imports.chat_state(&chat).unwrap(), ImportState::Undone, "{chat}");
        }
        let counted = (receipt.messages, receipt.chats, receipt.replies, receipt.quoted_by);
        let want = if quotes { (3, 2, 1, Vec::new()) } else { (3, 2, 0, vec![built_on]) };
        assert_eq!(counted, want, "quotes: {quotes}");
        assert!(scene.memory.check().unwrap().is_sound());
    }
}

/// The record fails after the late message is forgotten, before the reply that was built on it is.
#[test]
fn another_undo_finishes_what_a_crash_left_of_late_messages() {
    for quotes in [false, true] {
        let fails = Arc::new(AtomicBool::new(true));
        let failing = Arc::clone(&fails);
        let scene = Scene::staged(move |store, rows| {
            let rows = rows.clone();
            store.before_commit(move || {
                let late = rows.get(Table::Messages, b"old:2")?;
                let is_forgotten = late.is_some_and(|row| !String::from_utf8_lossy(&row).contains(LATE));
                let fails = is_forgotten && failing.load(Ordering::SeqCst);
                if fails { Err(Error::Full { what: "writing" }) } else { Ok(()) }
            })
        });
        import(&scene.memory, "old", 1, "the early secret");
        let (question, answer) = (scene.question.clone(), MessageId::new("answer").unwrap());
        let built_on = answer.clone();
        scene.meanwhile(move |memory| {
            let late = import(memory, "old", 2, LATE);
            let new = reply(&answer, &question, &ann(), LATE, NOW);
            memory.turns().reply(NewReply { built_on: vec![late], memorable: true, ..new }).unwrap();
        });
        let (undo, imports) = (Forget::Import("i1".into()), scene.memory.imports());
        let (chat, late) = (ChatId::new("old").unwrap(), MessageId::new("old:2").unwrap());
        scene.memory.forgetting().forget(&undo, quotes).unwrap_err();
        assert_eq!(imports.message_state(&late).unwrap(), ImportState::Undone);
        assert_eq!(imports.chat_state(&chat).unwrap(), ImportState::Kept, "another undo finds the chat");
        fails.store(false, Ordering::SeqCst);
        let receipt = scene.memory.forgetting().forget(&undo, quotes).unwrap();
        let memories = scene.memories();
        assert!(memories.iter().all(|memory| !memory.contains(LATE)), "{memories:?}");
        let states = (imports.message_state(&late).unwrap(), imports.chat_state(&chat).unwrap());
        assert_eq!(states, (ImportState::Undone, ImportState::Undone), "it may be imported again");
        let want = if quotes { (1, Vec::new()) } else { (0, vec![built_on]) };
        assert_eq!((receipt.replies, receipt.quoted_by), want, "quotes: {quotes}");
        assert!(scene.memory.check().unwrap().is_sound());
    }
}

#[test]
fn what_an_import_adds_while_its_chat_or_its_person_is_forgotten_stays_forgotten() {
    let chat = ChatId::new("old").unwrap();
    for what in [Forget::Chat(chat.clone()), Forget::Person(ann())] {
        let scene = Scene::open();
        import(&scene.memory, "old", 1, "the early secret");
        scene.meanwhile(|memory| drop(import(memory, "old", 2, LATE)));
        scene.memory.forgetting().forget(&what, false).unwrap();
        let memories = scene.memories();
        assert!(memories.iter().all(|memory| !memory.contains(LATE)), "{what:?}: {memories:?}");
        let late = MessageId::new("old:2").unwrap();
        let imports = scene.memory.imports();
        let states = (imports.message_state(&late).unwrap(), imports.chat_state(&chat).unwrap());
        assert_eq!(states, (ImportState::Forgotten, ImportState::Forgotten), "{what:?}");
        assert!(scene.memory.check().unwrap().is_sound());
    }
}
