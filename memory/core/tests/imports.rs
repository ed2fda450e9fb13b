//! Imported conversations in the record: what is imported once, what is forgotten, and what may come back.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{
    Batch, Calendar, Forget, Forgotten, Import, ImportState, MAX_IMPORTED_TITLE_CHARS, Memory, NewImported, Order,
    RamStore, ReadScope, Store, Table, project_realm,
};
use azera_types::{
    ChatId, MessageId, PersonId, PersonaId, Place, PlaceKind, ReadableScopes, Scope, Text, TimeZone, Timestamp,
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn person(id: &str) -> PersonId {
    PersonId::new(id).unwrap()
}

fn import(id: &str, by: &str, scope: Scope) -> Import {
    let persona = PersonaId::new("azera").unwrap();
    let (id, by, file, format) = (id.into(), person(by), "plum.json".into(), "chatgpt".into());
    Import { id, by, persona, scope, file, format, learns: true }
}

fn message(chat: &str, number: i64, author: &str, text: &str) -> NewImported {
    NewImported {
        id: MessageId::new(format!("{chat}:{number}")).unwrap(),
        chat: ChatId::new(chat).unwrap(),
        title: Some("quince".into()),
        after: None,
        person: person(author),
        name: author.to_uppercase(),
        text: Text::new(text),
        at: at(number),
    }
}

fn dm(who: &str) -> Scope {
    Scope::Dm(person(who))
}

/// Returns what may be read in the person's direct messages.
fn read_scope(memory: &Memory, who: &str, chat: &ChatId) -> ReadScope {
    let place = Place { chat: chat.clone(), kind: PlaceKind::Dm(person(who)), since: None };
    let reach = ReadableScopes {
        realms: memory.imports().projects_of(&person(who)).unwrap().into_iter().map(|realm| (realm, None)).collect(),
        ..ReadableScopes::default()
    };
    ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &reach)
}

/// Returns what the chat shows in the person's direct messages.
fn shown(memory: &Memory, who: &str, chat: &str) -> Vec<String> {
    let chat = ChatId::new(chat).unwrap();
    let rows = memory.messages().history(&read_scope(memory, who, &chat), &chat, 100).unwrap();
    rows.iter().map(|row| format!("{} {}: {}", row.at.as_second(), row.author.name(), row.text.as_str())).collect()
}

/// Returns the tables in which a word stands.
fn tables_with(store: &RamStore, word: &str) -> Vec<&'static str> {
    let holds = |bytes: &[u8]| bytes.windows(word.len()).any(|part| part == word.as_bytes());
    let mut found = Vec::new();
    for table in Table::ALL {
        let rows = store.scan(table, b"", None, Order::Ascending, usize::MAX).unwrap();
        if rows.iter().any(|(key, value)| holds(key) || holds(value)) {
            found.push(table.name());
        }
    }
    found
}

#[test]
fn a_message_is_imported_once_and_a_longer_file_adds_its_rest() {
    let memory = record(Arc::new(RamStore::new()));
    let first = import("i1", "ann", dm("ann"));
    let said = [message("c", 1, "ann", "where is the damson?"), message("c", 2, "bot", "in the cellar")];
    for want in [ImportState::New, ImportState::Kept] {
        for new in said.clone() {
            assert_eq!(memory.imports().add(&first, new, at(100)).unwrap(), want);
        }
    }
    assert_eq!(memory.imports().add(&first, message("c", 3, "ann", "thanks"), at(200)).unwrap(), ImportState::New);
    assert_eq!(shown(&memory, "ann", "c"), ["1 ANN: where is the damson?", "2 BOT: in the cellar", "3 ANN: thanks"]);
    assert_eq!(shown(&memory, "bob", "c"), [""; 0]);
    assert_eq!(memory.turns().all_open().unwrap().len(), 0, "nothing waits for an answer");
    let list = memory.imports().list(&person("ann")).unwrap();
    assert_eq!((list.len(), list[0].chats, list[0].messages), (1, 1, 3));
    assert_eq!((list[0].file.first_at, list[0].file.last_at), (at(100), at(200)));
    assert_eq!(memory.imports().list(&person("bob")).unwrap(), []);
    assert!(memory.check().unwrap().is_sound());
}

#[test]
fn another_branch_follows_the_message_that_it_leaves() {
    let memory = record(Arc::new(RamStore::new()));
    let first = import("i1", "ann", dm("ann"));
    for number in 1..=3 {
        memory.imports().add(&first, message("c", number, "ann", "old"), at(9)).unwrap();
    }
    let after = Some(MessageId::new("c:1").unwrap());
    memory.imports().add(&first, NewImported { after, ..message("c", 4, "ann", "new") }, at(9)).unwrap();
    assert_eq!(shown(&memory, "ann", "c"), ["1 ANN: old", "4 ANN: new"]);
}

#[test]
fn a_chat_belongs_to_one_person_persona_and_scope() {
    let memory = record(Arc::new(RamStore::new()));
    memory.imports().add(&import("i1", "ann", dm("ann")), message("c", 1, "ann", "one"), at(9)).unwrap();
    let areza = PersonaId::new("areza").unwrap();
    let gate = Scope::Realm(project_realm(&person("ann"), "gate").unwrap());
    for other in [
        import("i2", "bob", dm("bob")),
        import("i2", "ann", gate),
        Import { persona: areza, ..import("i2", "ann", dm("ann")) },
    ] {
        assert!(memory.imports().add(&other, message("c", 2, "ann", "two"), at(9)).is_err(), "{other:?}");
    }
    assert_eq!(shown(&memory, "ann", "c"), ["1 ANN: one"]);
}

#[test]
fn what_was_forgotten_is_not_imported_again_and_what_was_undone_may_be() {
    let memory = record(Arc::new(RamStore::new()));
    let first = import("i1", "ann", dm("ann"));
    let chats = ["kept", "undone", "gone"].map(|chat| ChatId::new(chat).unwrap());
    for chat in &chats {
        memory.imports().add(&first, message(chat.as_str(), 1, "ann", "damson"), at(9)).unwrap();
    }
    let [kept, undone, gone] = &chats;
    memory.forgetting().forget(&Forget::Message(MessageId::new("kept:1").unwrap()), false).unwrap();
    let again = memory.imports().add(&first, message("kept", 1, "ann", "damson"), at(9)).unwrap();
    assert_eq!((again, memory.imports().chat_state(kept).unwrap()), (ImportState::Forgotten, ImportState::Kept));
    memory.forgetting().forget(&Forget::Chat(gone.clone()), false).unwrap();
    assert_eq!(memory.imports().chat_state(gone).unwrap(), ImportState::Forgotten);
    assert!(memory.imports().add(&first, message("gone", 2, "ann", "damson"), at(9)).is_err());
    memory.forgetting().forget(&Forget::Import("i1".into()), false).unwrap();
    assert_eq!(memory.imports().chat_state(undone).unwrap(), ImportState::Undone);
    assert_eq!(memory.imports().chat_state(gone).unwrap(), ImportState::Forgotten, "it stays forgotten");
    assert!(!memory.is_known(&Forget::Import("i1".into())).unwrap());
    assert!(memory.check().unwrap().is_sound());
}

#[test]
fn a_message_that_was_forgotten_before_an_undo_is_not_undone() {
    let memory = record(Arc::new(RamStore::new()));
    let first = import("i1", "ann", dm("ann"));
    let ids = [1, 2, 3].map(|number| MessageId::new(format!("c:{number}")).unwrap());
    for number in 1..=3 {
        memory.imports().add(&first, message("c", number, "ann", "damson"), at(9)).unwrap();
    }
    let states = || ids.each_ref().map(|id| memory.imports().message_state(id).unwrap());
    memory.forgetting().forget(&Forget::Message(ids[0].clone()), false).unwrap();
    memory.forgetting().forget(&Forget::Import("i1".into()), false).unwrap();
    assert_eq!(states(), [ImportState::Forgotten, ImportState::Undone, ImportState::Undone]);
    for id in &ids {
        let number = id.as_str().rsplit(':').next().unwrap().parse().unwrap();
        let again = memory.imports().add(&first, message("c", number, "ann", "damson"), at(9)).unwrap();
        assert_ne!(again, ImportState::New, "an id is used once");
    }
    memory.forgetting().forget(&Forget::Message(ids[1].clone()), false).unwrap();
    assert_eq!(states(), [ImportState::Forgotten, ImportState::Forgotten, ImportState::Undone]);
    assert!(memory.check().unwrap().is_sound());
}

/// Opens a backup of a record after everything was cleaned out of it that the log names.
fn restored(backup: &[Batch], log: &Forgotten) -> Memory {
    let store = RamStore::new();
    let mut cleaning = log.cleaning();
    for batch in backup {
        let (batch, _): (Batch, bool) = cleaning.clean(batch).unwrap();
        store.commit(batch, azera_memory::Durability::Flushed).unwrap();
    }
    record(Arc::new(store))
}

#[test]
fn a_restored_backup_knows_what_was_undone_and_what_was_forgotten() {
    let memory = record(Arc::new(RamStore::new()));
    let first = import("i1", "ann", dm("ann"));
    let (chat, other) = (ChatId::new("c").unwrap(), ChatId::new("d").unwrap());
    let [one, two, three] = ["c:1", "c:2", "d:3"].map(|id| MessageId::new(id).unwrap());
    for number in 1..=2 {
        memory.imports().add(&first, message("c", number, "ann", "damson"), at(9)).unwrap();
    }
    memory.imports().add(&first, message("d", 3, "ann", "medlar"), at(9)).unwrap();
    let mut backup = Vec::new();
    let mut take = |batch| {
        backup.push(batch);
        Ok(())
    };
    memory.record().dump(&mut take).unwrap();
    memory.forgetting().forget(&Forget::Message(one.clone()), false).unwrap();
    memory.forgetting().forget(&Forget::Chat(other.clone()), false).unwrap();
    memory.forgetting().forget(&Forget::Import("i1".into()), false).unwrap();
    let states = |memory: &Memory| {
        let imports = memory.imports();
        let messages = [&one, &two, &three].map(|id| imports.message_state(id).unwrap());
        (messages, imports.chat_state(&chat).unwrap(), imports.chat_state(&other).unwrap())
    };
    let (forgotten, undone) = (ImportState::Forgotten, ImportState::Undone);
    let want = ([forgotten, undone, forgotten], undone, forgotten);
    assert_eq!(states(&memory), want);
    memory.record().forget_again().unwrap();
    assert_eq!(states(&memory), want, "the log repeated on the record itself");
    let log = memory.record().pending_backup_forgets().unwrap().what;
    assert_eq!(states(&restored(&backup, &log)), want, "a backup");
    // A log of before such marks names no more than what is gone.
    let mut old = serde_json::to_value(&log).unwrap();
    for field in ["undone", "undone_chats"] {
        old.as_object_mut().unwrap().remove(field).unwrap();
    }
    let old: Forgotten = serde_json::from_value(old).unwrap();
    assert_eq!(states(&restored(&backup, &old)), ([forgotten; 3], forgotten, forgotten), "an older log");
}

#[test]
fn a_title_is_cut_and_has_no_control_characters() {
    let memory = record(Arc::new(RamStore::new()));
    let first = import("i1", "ann", dm("ann"));
    let chat = ChatId::new("c").unwrap();
    for (number, title, want) in [
        (1, "ä".repeat(100_000), Some("ä".repeat(MAX_IMPORTED_TITLE_CHARS))),
        (2, " two\nlines\u{7}\n".into(), Some("two lines".into())),
        (3, "\n\t".into(), None),
    ] {
        let new = NewImported { title: Some(title), ..message("c", number, "ann", "damson") };
        memory.imports().add(&first, new, at(9)).unwrap();
        assert_eq!(memory.chats().get(&chat).unwrap().unwrap().title, want);
    }
}

/// Returns how a name belongs together with others, in the person's direct messages.
fn relations(memory: &Memory, who: &str, name: &str) -> Vec<String> {
    let (chat, calendar) = (ChatId::new("c").unwrap(), Calendar::new(at(1_000_000), TimeZone::UTC));
    let entities = memory.graph().about(&read_scope(memory, who, &chat), name, &calendar).unwrap();
    let links = entities.iter().flat_map(|entity| &entity.links);
    links.map(|link| link.label.phrase(&link.subject, &link.object)).collect()
}

#[test]
fn names_in_an_import_are_in_the_graph_until_it_is_undone() {
    let store = RamStore::new();
    let memory = record(Arc::new(store.clone()));
    let gate = project_realm(&person("ann"), "gate").unwrap();
    for (id, chat, scope, text) in [
        ("i1", "c", Scope::Realm(gate), "Miranda lives in Tallinn."),
        ("i2", "d", dm("ann"), "Miranda works at Harbour Radio."),
    ] {
        memory.imports().add(&import(id, "ann", scope), message(chat, 1, "ann", text), at(9)).unwrap();
    }
    let both = relations(&memory, "ann", "Miranda");
    for phrase in ["Miranda lives in Tallinn", "Miranda works at Harbour Radio"] {
        assert!(both.iter().any(|said| said == phrase), "{phrase} is not in {both:?}");
    }
    assert_eq!(relations(&memory, "bob", "Miranda"), [""; 0]);
    memory.forgetting().forget(&Forget::Import("i1".into()), false).unwrap();
    assert_eq!(relations(&memory, "ann", "Miranda"), ["Miranda works at Harbour Radio"]);
    assert_eq!(tables_with(&store, "tallinn"), [""; 0]);
    assert_eq!(relations(&memory, "ann", "Tallinn"), [""; 0]);
    memory.forgetting().forget(&Forget::Import("i2".into()), false).unwrap();
    assert_eq!(tables_with(&store, "miranda"), [""; 0]);
    while memory.graph().build(10).unwrap() {}
    assert!(memory.check().unwrap().is_sound());
}

#[test]
fn forgetting_takes_titles_files_projects_and_the_words_of_others_along() {
    let gate = project_realm(&person("ann"), "gate").unwrap();
    for what in [
        Forget::Import("i1".into()),
        Forget::Person(person("ann")),
        Forget::Realm(gate.clone(), Vec::new()),
        Forget::Chat(ChatId::new("c").unwrap()),
    ] {
        let store = RamStore::new();
        let memory = record(Arc::new(store.clone()));
        let in_gate = import("i1", "ann", Scope::Realm(gate.clone()));
        memory.imports().add(&in_gate, message("c", 1, "ann", "a damson"), at(9)).unwrap();
        memory.imports().add(&in_gate, message("c", 2, "bot", "a medlar"), at(9)).unwrap();
        let other = import("i2", "bob", dm("bob"));
        memory.imports().add(&other, message("d", 1, "bob", "a sorb"), at(9)).unwrap();
        assert_eq!(memory.imports().projects_of(&person("ann")).unwrap(), std::slice::from_ref(&gate));
        let mut backup = Vec::new();
        let mut take = |batch| {
            backup.push(batch);
            Ok(())
        };
        memory.record().dump(&mut take).unwrap();
        memory.forgetting().forget(&what, false).unwrap();
        let restored = RamStore::new();
        let pending = memory.record().pending_backup_forgets().unwrap();
        let mut cleaning = pending.what.cleaning();
        for batch in &backup {
            let (batch, _): (Batch, bool) = cleaning.clean(batch).unwrap();
            restored.commit(batch, azera_memory::Durability::Flushed).unwrap();
        }
        // The queue of the index names memories by numbers alone.
        for word in ["damson", "medlar"] {
            assert_eq!(tables_with(&store, word), [""; 0], "{word} after {what:?}");
            assert_eq!(tables_with(&restored, word), [""; 0], "{word} in a backup after {what:?}");
        }
        let here = |store: &RamStore, word| tables_with(store, word).contains(&"chats");
        assert_eq!(memory.imports().list(&person("ann")).unwrap(), [], "{what:?}");
        assert_eq!(memory.imports().projects_of(&person("ann")).unwrap(), [], "{what:?}");
        assert_eq!(shown(&memory, "bob", "d"), ["1 BOB: a sorb"], "{what:?}");
        // Bob's import of a file of that name is still there.
        for store in [&store, &restored] {
            assert!(here(store, "plum.json") && here(store, "quince"), "{what:?}");
        }
        memory.forgetting().forget(&Forget::Import("i2".into()), false).unwrap();
        for word in ["plum.json", "quince"] {
            assert_eq!(tables_with(&store, word), [""; 0], "{word} after {what:?} and the other import");
        }
        assert!(memory.check().unwrap().is_sound());
    }
}

/// Returns the numbers of the messages that are searched next, and where the next part begins.
fn to_search(memory: &Memory, who: &str, chat: &str, limit: usize) -> Option<(Vec<i64>, u64)> {
    let chat = ChatId::new(chat).unwrap();
    let part = memory.imports().to_search(&read_scope(memory, who, &chat), &chat, limit).unwrap()?;
    Some((part.rows.iter().map(|row| row.at.as_second()).collect(), part.next))
}

#[test]
fn an_imported_chat_is_searched_once_from_its_first_message_and_then_where_it_grew() {
    let memory = record(Arc::new(RamStore::new()));
    let first = import("i1", "ann", dm("ann"));
    let add = |import: &Import, number: i64, author: &str| {
        memory.imports().add(import, message("c", number, author, "plum"), at(100)).unwrap();
    };
    let chat = ChatId::new("c").unwrap();
    let unsearched = || memory.imports().pending().unwrap().iter().filter(|import| !import.is_searched).count();
    add(&first, 1, "bot");
    assert_eq!((unsearched(), to_search(&memory, "ann", "c", 9)), (0, None), "only the words of Ann are searched");
    (2..=4).for_each(|number| add(&first, number, "ann"));
    assert_eq!(to_search(&memory, "bob", "c", 9).unwrap().0, [0; 0], "Bob may read none of it");
    let (part, next) = to_search(&memory, "ann", "c", 2).unwrap();
    assert_eq!(part, [2, 3]);
    assert_eq!(to_search(&memory, "ann", "c", 2).unwrap().0, [2, 3], "what was not noted is searched again");
    memory.imports().note_searched(&chat, next).unwrap();
    let (part, end) = to_search(&memory, "ann", "c", 2).unwrap();
    assert_eq!(part, [4]);
    memory.imports().note_searched(&chat, end).unwrap();
    memory.imports().note_searched(&chat, next).unwrap();
    assert_eq!((unsearched(), to_search(&memory, "ann", "c", 2)), (0, None), "a late note brings nothing back");
    add(&first, 4, "ann");
    assert_eq!(unsearched(), 0, "a message that is known is not searched again");
    add(&first, 5, "ann");
    assert_eq!(to_search(&memory, "ann", "c", 2).unwrap().0, [5]);
    // There somebody plays.
    let played = Import { learns: false, ..import("i2", "ann", dm("ann")) };
    memory.imports().add(&played, message("d", 6, "ann", "plum"), at(100)).unwrap();
    assert_eq!(to_search(&memory, "ann", "d", 2), None);
    memory.forgetting().forget(&Forget::Import("i1".into()), false).unwrap();
    memory.imports().note_searched(&chat, end).unwrap();
    assert_eq!((unsearched(), to_search(&memory, "ann", "c", 2)), (0, None));
    assert!(memory.check().unwrap().is_sound());
}

/// Returns the numbers of the messages that a chat model reads next, with those before them, and where the next part begins.
fn to_read(memory: &Memory, who: &str, chat: &str) -> Option<(Vec<i64>, u64)> {
    let chat = ChatId::new(chat).unwrap();
    let part = memory.imports().to_read(&read_scope(memory, who, &chat), &chat, 2, 1).unwrap()?;
    Some((part.rows.iter().map(|row| row.at.as_second()).collect(), part.next))
}

#[test]
fn a_chat_model_reads_an_import_once_and_apart_from_the_search() {
    let memory = record(Arc::new(RamStore::new()));
    let first = import("i1", "ann", dm("ann"));
    let chat = ChatId::new("c").unwrap();
    (1..=3).for_each(|number| {
        memory.imports().add(&first, message("c", number, "ann", "plum"), at(100)).unwrap();
    });
    let (part, next) = to_read(&memory, "ann", "c").unwrap();
    assert_eq!(part, [1, 2]);
    assert_eq!(to_read(&memory, "bob", "c").unwrap().0, [0; 0], "Bob may read none of it");
    assert!(memory.imports().note_read(&chat, next).unwrap());
    let (part, end) = to_read(&memory, "ann", "c").unwrap();
    assert_eq!(part, [2, 3], "with the message before it");
    let pending = memory.imports().pending().unwrap();
    assert_eq!((pending.len(), pending[0].is_searched, pending[0].is_read, pending[0].waits), (1, false, false, false));
    assert!(!memory.imports().note_read(&chat, end).unwrap());
    let pending = memory.imports().pending().unwrap();
    assert!(pending[0].is_read && pending[0].waits && to_read(&memory, "ann", "c").is_none());
    assert_eq!(memory.imports().list(&person("ann")).unwrap()[0].unsearched, 3, "it was not searched");
    memory.forgetting().forget(&Forget::Message(MessageId::new("c:3").unwrap()), false).unwrap();
    assert_eq!(memory.imports().list(&person("ann")).unwrap()[0].unsearched, 2, "nobody searches a forgotten one");
    assert!(!memory.imports().note_searched(&chat, end).unwrap());
    memory.imports().set_waiting(&chat, false).unwrap();
    assert_eq!(memory.imports().pending().unwrap(), []);
    assert_eq!(memory.imports().list(&person("ann")).unwrap()[0].unsearched, 0);
    memory.imports().add(&first, message("c", 4, "ann", "plum"), at(200)).unwrap();
    assert_eq!(to_read(&memory, "ann", "c").unwrap().0, [4], "only what came later");
    memory.forgetting().forget(&Forget::Import("i1".into()), false).unwrap();
    assert!(!memory.imports().note_read(&chat, end).unwrap(), "a late note brings nothing back");
    assert_eq!((memory.imports().pending().unwrap().len(), to_read(&memory, "ann", "c")), (0, None));
}

/// Rewrites the rows of all chats as an older version wrote them.
fn make_older(store: &RamStore) {
    let mut batch = Batch::new();
    for (key, value) in store.scan(Table::Chats, b"", None, Order::Ascending, usize::MAX).unwrap() {
        let mut row: serde_json::Value = serde_json::from_slice(&value).unwrap();
        if let Some(imported) = row["imported"].as_object_mut() {
            imported.retain(|field, _| !["search", "unsearched", "unread"].contains(&field.as_str()));
        }
        batch.put(Table::Chats, key, serde_json::to_vec(&row).unwrap());
    }
    store.commit(batch, azera_memory::Durability::Flushed).unwrap();
}

#[test]
fn an_import_of_an_older_version_is_searched_once_more() {
    let store = RamStore::new();
    let memory = record(Arc::new(store.clone()));
    let played = Import { format: "sillytavern".into(), learns: false, ..import("i3", "ann", dm("ann")) };
    for (import, chat) in [(import("i1", "ann", dm("ann")), "c"), (import("i2", "ann", dm("ann")), "d"), (played, "e")]
    {
        (1..=2).for_each(|number| {
            memory.imports().add(&import, message(chat, number, "ann", "plum"), at(100)).unwrap();
        });
    }
    memory.forgetting().forget(&Forget::Import("i2".into()), false).unwrap();
    assert_eq!(memory.imports().search_older().unwrap(), 0, "these are new");
    make_older(&store);
    let memory = record(Arc::new(store.clone()));
    assert_eq!(memory.imports().pending().unwrap(), []);
    assert_eq!(memory.imports().search_older().unwrap(), 1, "what was undone or played is left out");
    let pending: Vec<String> = memory.imports().pending().unwrap().iter().map(|one| one.chat.to_string()).collect();
    assert_eq!(pending, ["c"]);
    assert_eq!(memory.imports().list(&person("ann")).unwrap()[0].unsearched, 2);
    let (part, end) = to_search(&memory, "ann", "c", 9).unwrap();
    assert_eq!((part, to_read(&memory, "ann", "c").unwrap().0), (vec![1, 2], vec![1, 2]));
    let chat = ChatId::new("c").unwrap();
    assert!(!memory.imports().note_searched(&chat, end).unwrap() && !memory.imports().note_read(&chat, end).unwrap());
    memory.imports().set_waiting(&chat, false).unwrap();
    assert_eq!(
        (memory.imports().search_older().unwrap(), memory.imports().pending().unwrap()),
        (0, Vec::new()),
        "once"
    );
    assert!(memory.check().unwrap().is_sound());
}
