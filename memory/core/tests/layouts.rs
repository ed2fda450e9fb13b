//! Records of older layouts are migrated when they are opened, and those of newer versions are refused.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::{record, record_with_files, settings};
use azera_memory::{
    Batch, Durability, Import, ImportState, NewChat, NewFact, NewImported, Order, RamBlobs, RamStore, RanCommand,
    Store, Table,
};
use azera_types::{Author, ChatId, MessageId, PersonId, PersonaId, PlatformId, RealmId, Scope, Text, Timestamp};

fn rows(store: &RamStore, table: Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    store.scan(table, b"", None, Order::Ascending, usize::MAX).unwrap()
}

/// Returns a record with a chat and a fact.
fn filled() -> RamStore {
    let store = RamStore::new();
    let memory = record(Arc::new(store.clone()));
    let (platform, persona) = (PlatformId::new("test").unwrap(), PersonaId::new("azera").unwrap());
    let chat = ChatId::new("chat").unwrap();
    let new = NewChat { id: chat.clone(), platform, title: Some("damson".into()), persona: persona.clone() };
    memory.chats().open(new, Timestamp::UNIX_EPOCH).unwrap();
    let author = Author::Person { id: PersonId::new("zoe").unwrap(), name: "Zoe".into() };
    let scope = Scope::Realm(RealmId::new("realm").unwrap());
    let text = Text::new("My sister Miranda lives in Tallinn.");
    memory.memories().store_fact(NewFact { persona, chat, scope, author, text, at: Timestamp::UNIX_EPOCH }).unwrap();
    while memory.graph().build(10).unwrap() {}
    store
}

fn set_layout(store: &RamStore, layout: u32) {
    let mut batch = Batch::new();
    batch.put(Table::Meta, b"schema".to_vec(), format!(r#"{{"schema":{layout}}}"#).into_bytes());
    store.commit(batch, Durability::Flushed).unwrap();
}

#[test]
fn a_record_of_layout_4_opens_and_gets_its_graph() {
    let store = filled();
    let (meta, graph) = (rows(&store, Table::Meta), rows(&store, Table::Graph));
    assert!(!graph.is_empty());
    let mut old = Batch::new();
    graph.iter().for_each(|(key, _)| {
        old.remove(Table::Graph, key.clone());
    });
    old.remove(Table::Meta, b"graph".to_vec());
    store.commit(old, Durability::Flushed).unwrap();
    set_layout(&store, 4);
    let memory = record(Arc::new(store.clone()));
    while memory.graph().build(10).unwrap() {}
    assert_eq!(rows(&store, Table::Graph), graph);
    assert_eq!(rows(&store, Table::Meta), meta, "the record has today's layout");
    assert!(memory.check().unwrap().is_sound());
}

/// Layout 5 has a graph and no imported chats.
#[test]
fn a_record_of_layout_5_opens_as_it_is_and_takes_imports() {
    let store = filled();
    let all = || Table::ALL.map(|table| rows(&store, table));
    let before = all();
    set_layout(&store, 5);
    let memory = record(Arc::new(store.clone()));
    assert_eq!(all(), before, "only the layout changes");
    let zoe = PersonId::new("zoe").unwrap();
    let import = Import {
        id: "i1".into(),
        by: zoe.clone(),
        persona: PersonaId::new("azera").unwrap(),
        scope: Scope::Dm(zoe.clone()),
        file: "plum.json".into(),
        format: "chatgpt".into(),
        learns: false,
    };
    let new = NewImported {
        id: MessageId::new("import:1").unwrap(),
        chat: ChatId::new("import:c").unwrap(),
        title: None,
        after: None,
        person: zoe,
        name: "Zoe".into(),
        text: Text::new("Miranda met Rosalind."),
        at: Timestamp::UNIX_EPOCH,
    };
    assert_eq!(memory.imports().add(&import, new, Timestamp::UNIX_EPOCH).unwrap(), ImportState::New);
    assert!(memory.check().unwrap().is_sound());
}

/// Layout 6 has imported chats and no commands of sessions.
#[test]
fn a_record_of_layout_6_opens_as_it_is_and_takes_commands() {
    let store = filled();
    let zoe = PersonId::new("zoe").unwrap();
    let import = Import {
        id: "i1".into(),
        by: zoe.clone(),
        persona: PersonaId::new("azera").unwrap(),
        scope: Scope::Dm(zoe.clone()),
        file: "plum.jsonl".into(),
        format: "claude-code".into(),
        learns: false,
    };
    let id = MessageId::new("import:1").unwrap();
    let new = NewImported {
        id: id.clone(),
        chat: ChatId::new("import:c").unwrap(),
        title: None,
        after: None,
        person: zoe,
        name: "Zoe".into(),
        text: Text::new("Mend the gate."),
        at: Timestamp::UNIX_EPOCH,
    };
    record(Arc::new(store.clone())).imports().add(&import, new, Timestamp::UNIX_EPOCH).unwrap();
    let all = || Table::ALL.map(|table| rows(&store, table));
    let before = all();
    assert!(
        !String::from_utf8_lossy(&before.concat().into_iter().flat_map(|row| row.1).collect::<Vec<_>>())
            .contains("\"ran\":")
    );
    set_layout(&store, 6);
    let memory = record(Arc::new(store.clone()));
    assert_eq!(all(), before, "only the layout changes");
    let ran = RanCommand { id: "t1".into(), text: "make test".into(), worked: Some(true), at: Timestamp::UNIX_EPOCH };
    assert_eq!(memory.imports().ran(&import, &id, vec![ran]).unwrap(), 1);
    assert!(memory.check().unwrap().is_sound());
}

#[test]
fn a_record_of_a_newer_layout_is_refused_and_left_as_it_is() {
    let store = filled();
    set_layout(&store, 99);
    let before = rows(&store, Table::Meta);
    let opened = record_with_files(Arc::new(store.clone()), Arc::new(RamBlobs::default()), settings());
    assert!(opened.unwrap_err().to_string().contains("written by a newer version (layout 99"));
    assert_eq!(rows(&store, Table::Meta), before);
}
