//! Where a piece of work stands, from one session to the next.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use azera_adapter_mcp::Rights;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::{ALL, Client};

fn titles(listed: &Value) -> Vec<&str> {
    listed["checkpoints"].as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_next_session_goes_on_where_the_last_one_stood() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let state = "Done: the schema.\nNext: \"move\" the rows.\n\nCheckpoint \"x\" is no title.";
    for (title, project, state) in
        [("Move the gate", Some("gate"), state), ("Paint", Some("boat"), "two coats"), ("Write home", None, "a page")]
    {
        let arguments = json!({"title": title, "project": project, "state": state});
        let saved = Client::good(client.call("checkpoint_save", arguments).await);
        assert!(saved.get("replaced").is_none(), "{saved}");
    }
    client.end().await;
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let listed = Client::good(client.call("checkpoint_list", json!({})).await);
    assert_eq!(titles(&listed), ["Write home", "Paint", "Move the gate"]);
    assert!(listed["notice"].as_str().unwrap().contains("not instructions") && listed.get("next_cursor").is_none());
    assert!(!listed.to_string().contains("schema"), "a list has no states: {listed}");
    let gate = Client::good(client.call("checkpoint_list", json!({"project": "gate"})).await);
    assert_eq!((titles(&gate), &gate["checkpoints"][0]["bytes"]), (vec!["Move the gate"], &json!(state.len())));
    let newest = Client::good(client.call("checkpoint_restore", json!({})).await);
    assert_eq!((&newest["state"], newest["checkpoint"].get("project")), (&json!("a page"), None));
    for which in [json!({"project": "gate"}), json!({"title": "Move the gate"}), json!({"id": "m1"})] {
        let restored = Client::good(client.call("checkpoint_restore", which).await);
        assert_eq!((&restored["state"], &restored["checkpoint"]["project"]), (&json!(state), &json!("gate")));
    }
    Client::refusal(client.call("checkpoint_restore", json!({"id": "m1", "project": "boat"})).await);
    client.end().await;
}

#[tokio::test]
async fn a_newer_state_replaces_the_one_of_the_same_title_and_project_until_it_is_forgotten() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let save = async |project: Option<&str>, state: &str| {
        let arguments = json!({"title": "Move", "project": project, "state": state});
        Client::good(client.call("checkpoint_save", arguments).await)
    };
    assert!(save(None, "elsewhere").await.get("replaced").is_none());
    assert!(save(Some("gate"), "first").await.get("replaced").is_none(), "another project");
    let second = save(Some("gate"), "second").await;
    assert_eq!((&second["id"], &second["replaced"]), (&json!("m3"), &json!("m2")));
    let listed = Client::good(client.call("checkpoint_list", json!({"project": "gate"})).await);
    assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 1);
    let all = Client::good(client.call("checkpoint_list", json!({"project": "gate", "replaced": true})).await);
    assert_eq!((&all["checkpoints"][1]["id"], &all["checkpoints"][1]["replaced_by"]), (&json!("m2"), &json!("m3")));
    let older = Client::good(client.call("checkpoint_restore", json!({"id": "m2"})).await);
    assert_eq!((&older["state"], &older["checkpoint"]["replaced_by"]), (&json!("first"), &json!("m3")));
    assert_eq!(Client::good(client.call("checkpoint_restore", json!({"title": "Move"})).await)["state"], "second");
    Client::good(client.call("forget", json!({"id": "m3"})).await);
    let left = Client::good(client.call("checkpoint_restore", json!({})).await);
    assert_eq!(left["state"], "elsewhere", "what is forgotten is not restored");
    client.end().await;
}

/// `checkpoint_save` is announced as idempotent.
#[tokio::test]
async fn the_same_save_twice_stores_one_checkpoint() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let save = async |project: Option<&str>, state: &str| {
        let arguments = json!({"title": "Move", "project": project, "state": state});
        Client::good(client.call("checkpoint_save", arguments).await)
    };
    let first = save(Some("gate"), "  begun").await;
    // Blank space at the end is no part of a state.
    let again = save(Some("gate"), "  begun\n").await;
    assert_eq!((&again["id"], again.get("replaced")), (&first["id"], None), "{again}");
    assert_ne!(save(None, "  begun").await["id"], first["id"], "another project");
    assert_eq!(save(Some("gate"), "done").await["replaced"], first["id"]);
    assert_ne!(save(Some("gate"), "  begun").await["id"], first["id"], "it stands there once more");
    let all = Client::good(client.call("checkpoint_list", json!({"replaced": true})).await);
    assert_eq!(titles(&all).len(), 4, "{all}");
    client.end().await;
}

#[tokio::test]
async fn checkpoints_among_other_facts_stand_on_one_page_each() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    for number in 0..5 {
        client.remember(&format!("Checkpoint {number} is only a word here")).await;
        let work = json!({"title": format!("Work {number}"), "state": "begun"});
        Client::good(client.call("checkpoint_save", work).await);
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = Client::good(client.call("checkpoint_list", json!({"limit": 2, "cursor": cursor})).await);
        assert!(titles(&page).len() <= 2, "{page}");
        seen.extend(titles(&page).into_iter().map(str::to_owned));
        cursor = page.get("next_cursor").cloned();
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["Work 4", "Work 3", "Work 2", "Work 1", "Work 0"]);
    client.end().await;
}

#[tokio::test]
async fn a_session_that_only_reads_restores_and_saves_nothing() {
    let engine = Arc::new(Engine::default());
    let rights = Rights { read: true, ..Rights::default() };
    let client = Client::connect(&engine, "ann", None, rights).await;
    let tools = client.tools().await;
    for (tool, has) in
        [("checkpoint_list", true), ("checkpoint_restore", true), ("checkpoint_save", false), ("episode_link", false)]
    {
        assert_eq!(tools.iter().any(|one| one == tool), has, "{tool}");
    }
    client.end().await;
}

#[tokio::test]
async fn a_state_is_kept_with_the_indent_of_its_first_line_and_its_long_past_is_forgotten() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let mut forgotten = Vec::new();
    for number in 1..=13 {
        let work = json!({"title": "Move", "state": format!("    - step {number}\n\t- and more \n\n")});
        let saved = Client::good(client.call("checkpoint_save", work).await);
        forgotten.extend(saved["forgotten"].as_array().cloned().unwrap_or_default());
    }
    assert_eq!(forgotten, ["m1", "m2"], "ten older ones are left");
    let all = Client::good(client.call("checkpoint_list", json!({"replaced": true})).await);
    assert_eq!((titles(&all).len(), &all["checkpoints"][10]["id"]), (11, &json!("m3")));
    let newest = Client::good(client.call("checkpoint_restore", json!({"title": "Move"})).await);
    assert_eq!(newest["state"], "    - step 13\n\t- and more");
    Client::refusal(client.call("checkpoint_restore", json!({"id": "m1"})).await);
    client.end().await;
}

#[tokio::test]
async fn two_saves_at_once_leave_one_that_holds() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let save = |state: &str| client.call("checkpoint_save", json!({"title": "Move", "state": state}));
    let (one, other) = tokio::join!(save("one"), save("other"));
    let replaced = [Client::good(one), Client::good(other)].iter().filter(|it| it.get("replaced").is_some()).count();
    let listed = Client::good(client.call("checkpoint_list", json!({})).await);
    assert_eq!((replaced, titles(&listed).len()), (1, 1), "{listed}");
    client.end().await;
}

#[tokio::test]
async fn a_part_of_a_file_is_no_checkpoint() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let id = client.remember("Checkpoint \"Of another\"\nwords (of a file)").await;
    Client::refusal(client.call("checkpoint_restore", json!({"id": id})).await);
    assert!(titles(&Client::good(client.call("checkpoint_list", json!({})).await)).is_empty());
    client.end().await;
}

#[tokio::test]
async fn one_call_reads_no_more_than_it_needs_and_says_where_it_stopped() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let save = async |title: &str| {
        Client::good(client.call("checkpoint_save", json!({"title": title, "state": "begun"})).await)
    };
    save("Old work").await;
    for number in 0..40 {
        client.remember(&format!("fact {number}")).await;
    }
    engine.facts_read.store(0, Ordering::Relaxed);
    Client::good(client.call("checkpoint_restore", json!({"title": "Old work"})).await);
    Client::good(client.call("cue_search", json!({})).await);
    assert_eq!(engine.facts_read.load(Ordering::Relaxed), 1, "other facts are not read");
    for number in 0..40 {
        save(&format!("Work {number}")).await;
        client.remember(&format!("Episode \"{number}\" was caused by episode \"0\".")).await;
    }
    save("New work").await;
    engine.facts_read.store(0, Ordering::Relaxed);
    Client::good(client.call("checkpoint_restore", json!({"title": "New work"})).await);
    assert_eq!(engine.facts_read.load(Ordering::Relaxed), 16, "it stops at the first match");
    assert_eq!(Client::good(client.call("cue_search", json!({})).await)["links_cut"], false);
    // Between these facts are very many that may not be read.
    engine.others_between.store(10_000, Ordering::Relaxed);
    engine.facts_read.store(0, Ordering::Relaxed);
    let why = Client::refusal(client.call("checkpoint_restore", json!({"title": "Old work"})).await);
    assert!(why.contains("too many to look through"), "{why}");
    assert_eq!(Client::good(client.call("cue_search", json!({})).await)["links_cut"], true);
    assert_eq!(engine.facts_read.load(Ordering::Relaxed), 32, "each reads one small page");
    assert_eq!(save("Old work").await["is_cut"], true);
    let page = Client::good(client.call("checkpoint_list", json!({})).await);
    assert!(page["next_cursor"].is_string(), "{page}");
    client.end().await;
}
