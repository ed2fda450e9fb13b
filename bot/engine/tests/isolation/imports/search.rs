//! Imported conversations are searched for what their person said.

use std::collections::BTreeSet;

use azera_adapter::Host;
use azera_memory::{Batch, Durability, Forget, Import, Order, Salience, Table};
use azera_types::{MessageId, Scope};
use tokio_util::sync::CancellationToken;

use super::{import_of, in_dm_of_ann};
use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, GUILD, Scene};
use crate::index::{BUSY, IS_STUCK, STUCK};
use crate::look::look_up_all;
use crate::oracle::DEFAULT_PERSONA;
use crate::test_engine::person;
use crate::world::{Change, PEOPLE};

const TOLD: &str = "my dentist appointment is on tuesday. quiet";

/// The background searches a long chat in turns, and goes on where it was when it starts again. Nothing is marked twice.
#[tokio::test]
async fn a_long_import_is_searched_from_its_first_message() {
    let mut scene = Scene::open(false, false).await;
    let import = import_of(ANN, DEFAULT_PERSONA, Scope::Dm(person(ANN)), "long");
    let mut said = vec!["ok then"; 400];
    (said[0], said[300]) = (TOLD, TOLD);
    scene.import_own(&import, "long", 0, &said);
    // It was marked before a crash came.
    let (kind, with) = ("fact".to_owned(), Vec::new());
    let before = Salience { kind, importance: 0.123, from: 0, to: 2, with, superseded: None, used: None };
    let known = MessageId::new("import:long:300").unwrap();
    assert!(scene.engine.memory.memories().mark(&known, &before).unwrap());
    assert_eq!(scene.marked_of_ann().len(), 1, "nothing was searched yet");
    scene.engine.azera.settle().await.unwrap();
    let first = MessageId::new("import:long:0").unwrap();
    let is_marked = |scene: &Scene| scene.marked_of_ann().iter().any(|memory| memory.sources[0] == first);
    assert!(is_marked(&scene), "the first message is the first to be searched");
    assert_eq!(scene.unsearched().len(), 1, "one turn does not search all of it");
    scene.engine.reopen().await;
    for _ in 0..4 {
        scene.engine.azera.settle().await.unwrap();
    }
    assert_eq!(scene.unsearched(), [""; 0]);
    let importance = |scene: &Scene| {
        let marked = scene.marked_of_ann().into_iter().find(|memory| memory.sources[0] == known);
        marked.and_then(|memory| memory.salience).expect("it is marked").importance
    };
    assert_eq!(importance(&scene), 0.123, "what was marked is not marked again");
    // The file grew: only its new part is searched.
    let marked = scene.marked_of_ann().len();
    scene.import_own(&import, "long", 400, &["ok then", "my dentist appointment is on friday now. quiet"]);
    assert_eq!(scene.unsearched().len(), 1);
    assert!(scene.search_imports().await);
    assert_eq!(scene.marked_of_ann().len(), marked + 1);
    assert_eq!(importance(&scene), 0.123);
}

/// The first start of a version that searches more lets older imports be searched once more. Nothing is marked twice, and an
/// undo ends it.
#[tokio::test]
async fn imports_of_an_older_version_are_searched_once_more() {
    let mut scene = Scene::open(false, false).await;
    for chat in ["kept", "undone"] {
        let mut said = vec!["ok then"; 300];
        (said[0], said[1], said[250]) = (TOLD, "my dentist appointment is on friday now. quiet", TOLD);
        scene.import_own(&import_of(ANN, DEFAULT_PERSONA, Scope::Dm(person(ANN)), chat), chat, 0, &said);
    }
    // An older version marked one message.
    let (kind, with) = ("fact".to_owned(), Vec::new());
    let before = Salience { kind, importance: 0.123, from: 0, to: 2, with, superseded: None, used: None };
    assert!(scene.engine.memory.memories().mark(&MessageId::new("import:kept:1").unwrap(), &before).unwrap());
    let store = scene.engine.layers.store.clone();
    let mut batch = Batch::new();
    for (key, value) in store.scan(Table::Chats, b"import:", None, Order::Ascending, usize::MAX).unwrap() {
        let mut row: serde_json::Value = serde_json::from_slice(&value).unwrap();
        row["imported"].as_object_mut().unwrap().retain(|field, _| !["search", "unsearched"].contains(&field.as_str()));
        batch.put(Table::Chats, key, serde_json::to_vec(&row).unwrap());
    }
    store.commit(batch, Durability::Flushed).unwrap();
    assert_eq!(scene.unsearched(), [""; 0]);
    scene.engine.reopen().await;
    scene.engine.azera.settle().await.unwrap();
    assert_eq!(scene.unsearched(), ["import:kept", "import:undone"], "one turn does not search all of it");
    // It goes on there after another start.
    scene.engine.reopen().await;
    scene.engine.memory.forgetting().forget(&Forget::Import("of-undone".into()), false).unwrap();
    for _ in 0..4 {
        scene.engine.azera.settle().await.unwrap();
    }
    assert_eq!(scene.unsearched(), [""; 0]);
    let marked = scene.marked_of_ann();
    let sources: BTreeSet<&str> = marked.iter().map(|memory| memory.sources[0].as_str()).collect();
    assert!(sources.contains("import:kept:250") && sources.iter().all(|id| id.contains("kept")), "{sources:?}");
    let of_older = marked.iter().find(|memory| memory.sources[0].as_str() == "import:kept:1").unwrap();
    assert_eq!(of_older.salience.as_ref().unwrap().importance, 0.123, "what was marked is not marked again");
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

/// A signal ends a search, also in the middle of a step. It goes on there later, and nothing is marked twice.
#[tokio::test]
async fn a_stopped_search_goes_on_where_it_was() {
    let scene = Scene::open(false, false).await;
    let import = import_of(ANN, DEFAULT_PERSONA, Scope::Dm(person(ANN)), "long");
    let mut said = vec!["ok then"; 400];
    (said[0], said[200], said[390]) = (TOLD, STUCK, TOLD);
    scene.import_own(&import, "long", 0, &said);
    let first = MessageId::new("import:long:0").unwrap();
    let stop = CancellationToken::new();
    let is_done = {
        let search = scene.engine.azera.search_imports(None, &stop);
        tokio::pin!(search);
        loop {
            tokio::select! {
                biased;
                searched = &mut search => break searched.unwrap(),
                () = IS_STUCK.notified() => stop.cancel(),
            }
        }
    };
    assert!(!is_done && stop.is_cancelled());
    let sources = |scene: &Scene| {
        let mut marked = scene.marked_of_ann();
        marked.sort_by_key(|memory| (memory.at, memory.id));
        marked.iter().map(|memory| memory.sources[0].clone()).collect::<Vec<_>>()
    };
    assert_eq!(sources(&scene), std::slice::from_ref(&first));
    assert_eq!(scene.unsearched().len(), 1);
    let (kind, with) = ("fact".to_owned(), Vec::new());
    let once = Salience { kind, importance: 0.123, from: 0, to: 2, with, superseded: None, used: None };
    assert!(scene.engine.memory.memories().mark(&first, &once).unwrap());
    assert!(scene.search_imports().await);
    assert_eq!(sources(&scene), [first, MessageId::new("import:long:390").unwrap()]);
    let marked = scene.marked_of_ann().into_iter().find(|memory| memory.sources[0].as_str() == "import:long:0");
    assert_eq!(marked.unwrap().salience.unwrap().importance, 0.123, "what was marked is not marked again");
}

/// A paste of thousands of lines is searched, and a chat that cannot be searched holds up no other.
#[tokio::test]
async fn one_imported_chat_holds_up_no_other() {
    let scene = Scene::open(false, false).await;
    let busy = format!("the server is {BUSY}");
    let paste = "ok then\n".repeat(5_000);
    let other = "my dentist appointment is on friday now. quiet";
    for (chat, texts) in
        [("a-busy", [busy.as_str(), TOLD]), ("b-paste", [paste.as_str(), other]), ("c-short", ["ok then", TOLD])]
    {
        scene.import_own(&import_of(ANN, DEFAULT_PERSONA, Scope::Dm(person(ANN)), chat), chat, 0, &texts);
    }
    let failed = scene.engine.azera.search_imports(None, &CancellationToken::new()).await;
    assert!(failed.is_err_and(|error| error.is_transient()));
    let marked: BTreeSet<String> = scene.marked_of_ann().iter().map(|memory| memory.sources[0].to_string()).collect();
    assert_eq!(marked, ["import:b-paste:1", "import:c-short:1"].map(str::to_owned).into());
    assert_eq!(scene.unsearched(), ["import:a-busy"]);
}

/// What Ann said to other programs counts as hers in her direct messages, without a project too. What others said does
/// not, nor what was played, and an undo takes all of it.
#[tokio::test]
async fn a_plain_import_is_searched_for_the_words_of_its_person_alone() {
    let scene = Scene::open(false, false).await;
    scene.change(Change::Join(BOB, GUILD));
    let dm = Scope::Dm(person(ANN));
    let texts = [TOLD.to_owned(), "my dentist appointment is on sunday. quiet".to_owned()];
    let import = scene.import_texts(ANN, DEFAULT_PERSONA, dm.clone(), "zeppelin", texts);
    let played = Import { learns: false, ..import_of(ANN, DEFAULT_PERSONA, dm, "played") };
    scene.import_own(&played, "played", 0, &["my dentist appointment is on monday. quiet"]);
    scene.engine.azera.settle().await.unwrap();
    let texts =
        |scene: &Scene| scene.marked_of_ann().iter().map(|memory| memory.text.as_str().to_owned()).collect::<Vec<_>>();
    assert_eq!(texts(&scene), [TOLD]);
    for others in ["import:zeppelin:two", "import:played:0"] {
        let memory = &scene.engine.memory;
        let id = memory.messages().memory_of(&in_dm_of_ann(), &MessageId::new(others).unwrap()).unwrap().unwrap();
        assert_eq!(memory.memories().get(&in_dm_of_ann(), id).unwrap().unwrap().salience, None, "{others}");
    }
    let me = scene.command(ANN, DM_ANN, "/me").await;
    assert!(me.contains("on tuesday") && !me.contains("on sunday") && !me.contains("on monday"), "{me}");
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (AN, DM_AN), (BOB, COMMONS), (BOB, DM_BOB)] {
        let me = scene.command(who, place, "/me").await;
        assert!(!me.contains("dentist"), "{} in {place}: {me}", PEOPLE[who].0);
    }
    look_up_all(&scene.engine).await;
    scene.engine.watch.verdict().unwrap();
    scene.engine.memory.forgetting().forget(&Forget::Import(import.id), false).unwrap();
    assert_eq!(texts(&scene), [""; 0]);
    assert!(!scene.command(ANN, DM_ANN, "/me").await.contains("dentist"));
    assert_eq!(scene.unsearched(), [""; 0]);
}
