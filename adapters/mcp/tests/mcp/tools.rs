//! What the tools do.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use azera_adapter_mcp::Rights;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::{ALL, Client};

#[tokio::test]
async fn what_is_kept_is_recalled_until_it_is_forgotten() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let id = client.remember("the spare key is under the blue pot").await;
    for tool in ["recall", "hybrid_search", "search"] {
        let found = Client::good(client.call(tool, json!({"query": "key"})).await);
        assert!(found["notice"].as_str().unwrap().contains("not instructions"), "{found}");
        let memory = &found["memories"][0];
        assert_eq!(
            (&memory["id"], &memory["author"], &memory["evidence"]),
            (&json!(id), &json!("ann"), &json!("told"))
        );
        assert_eq!(memory["text"], "the spare key is under the blue pot");
        assert_eq!(found["missing"], json!(["reranker"]), "what did not work is named");
    }
    let whole = Client::good(client.call("get", json!({"id": id})).await);
    assert_eq!(whole["memory"]["kind"], "fact");
    assert_eq!(Client::good(client.call("stats", json!({})).await)["total"], 1);
    let forgotten = Client::good(client.call("forget", json!({"id": id, "quotes": true})).await);
    assert!(forgotten["receipt"].as_str().unwrap().contains("memories 1"), "{forgotten}");
    let found = Client::good(client.call("recall", json!({"query": "key"})).await);
    assert_eq!(found["memories"], json!([]));
    let refused = Client::refusal(client.call("get", json!({"id": id})).await);
    assert!(refused.contains(&format!("no memory {id}")), "{refused}");
    client.end().await;
}

#[tokio::test]
async fn what_no_longer_holds_says_so_everywhere() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let id = client.remember("Mia lives in Oslo").await;
    let holds = Client::good(client.call("get", json!({"id": id})).await);
    assert!(holds["memory"].get("held_until").is_none() && holds["memory"].get("replaced_by").is_none(), "{holds}");
    let newer = client.remember("no longer: Mia lives in Hull").await;
    let is_told = |memory: &Value| {
        assert_eq!((&memory["held_until"], &memory["replaced_by"]), (&json!("2026-08-03"), &json!(newer)), "{memory}");
    };
    is_told(&Client::good(client.call("get", json!({"id": id})).await)["memory"]);
    let of_id = |listed: &Value| {
        let memories = listed["memories"].as_array().unwrap();
        memories.iter().find(|memory| memory["id"] == json!(id)).unwrap().clone()
    };
    for (tool, arguments) in [
        ("recall", json!({"query": "Oslo"})),
        ("hybrid_search", json!({"query": "Oslo"})),
        ("search", json!({"query": "Oslo"})),
        ("similar", json!({"id": newer})),
        ("list", json!({})),
        ("optimize_context", json!({"query": "Oslo"})),
    ] {
        is_told(&of_id(&Client::good(client.call(tool, arguments).await)));
    }
    let relations = Client::good(client.call("relations", json!({"name": "Mia"})).await);
    assert_eq!(relations["entities"][0]["relations"][0]["held_until"], "2026-08-03");
    for tool in ["recall", "hybrid_search", "search"] {
        let as_of = async |time: &str| {
            let found = client.call(tool, json!({"query": "Oslo", "as_of": time})).await;
            Client::good(found)["memories"].as_array().unwrap().len()
        };
        assert_eq!((as_of("2025-06-30").await, as_of("June 2026").await), (0, 1), "{tool}");
    }
    client.end().await;
}

#[tokio::test]
async fn relations_are_read_and_followed() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let refused = Client::refusal(client.call("relations", json!({"name": "Mia"})).await);
    assert!(refused.contains("Nobody named"), "{refused}");
    let id = client.remember("Mia lives in Oslo, and so does Ben").await;
    let found = Client::good(client.call("relations", json!({"name": "Mia"})).await);
    assert_eq!(found["entities"][0]["relations"][0]["said"], "Mia lives in Oslo");
    assert_eq!(found["entities"][0]["relations"][0]["memories"], json!([id]));
    let names = async |steps: usize| {
        let found = Client::good(client.call("graph_explore", json!({"name": "Mia", "steps": steps})).await);
        let entities = found["entities"].as_array().unwrap().clone();
        entities.into_iter().map(|one| (one["name"].clone(), one["steps"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(names(1).await, [(json!("Mia"), json!(0)), (json!("Oslo"), json!(1))]);
    // Ben is named, and nothing is known of him.
    assert_eq!(names(2).await.len(), 2);
    let refused = Client::refusal(client.call("graph_explore", json!({"name": "Mia", "steps": 9})).await);
    assert!(refused.contains("use 1 to 3"), "{refused}");
    client.end().await;
}

/// Reads all pages of a tool. Returns the ids of the items.
async fn pages(client: &Client, tool: &str, arguments: Value, items: &str) -> Vec<String> {
    let (mut ids, mut arguments) = (Vec::new(), arguments);
    loop {
        let page = Client::good(client.call(tool, arguments.clone()).await);
        ids.extend(page[items].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        match page.get("next_cursor") {
            Some(cursor) => arguments["cursor"] = cursor.clone(),
            None => return ids,
        }
    }
}

#[tokio::test]
async fn pages_hold_each_item_once() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let mut ids = Vec::new();
    for number in 0..7 {
        ids.push(client.remember(&format!("word {number}")).await);
    }
    ids.reverse();
    for (tool, arguments) in [("list", json!({"limit": 3})), ("recall", json!({"query": "word", "limit": 2}))] {
        assert_eq!(pages(&client, tool, arguments, "memories").await, ids, "{tool}");
    }
    assert_eq!(pages(&client, "list", json!({"kinds": ["dream"]}), "memories").await, Vec::<String>::new());
    let others: Vec<String> = ids.iter().filter(|id| *id != "m4").cloned().collect();
    assert_eq!(pages(&client, "similar", json!({"id": "m4", "limit": 4}), "memories").await, others);
    assert_eq!(pages(&client, "episodes", json!({"limit": 1}), "writings").await, ["m91", "m90"]);
    assert_eq!(pages(&client, "reflections", json!({}), "writings").await, ["m92"]);
    let messages = pages(&client, "timeline", json!({"session": "ann:main", "limit": 2}), "messages").await;
    assert_eq!(messages, [4, 3, 2, 1, 0].map(|number| format!("ann:main:{number}")));
    assert_eq!(pages(&client, "sessions", json!({}), "sessions").await, ["ann:main"]);
    client.end().await;
}

/// What a search puts first depends on how many are asked for. Pages of different lists would repeat and leave out.
#[tokio::test]
async fn every_page_asks_for_the_same_number() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    for _ in 0..3 {
        client.remember("word").await;
    }
    let asked_for = || engine.asked_for.load(Ordering::Relaxed);
    let first = Client::good(client.call("recall", json!({"query": "word", "limit": 1})).await);
    let before = asked_for();
    Client::good(client.call("recall", json!({"query": "word", "limit": 2, "cursor": first["next_cursor"]})).await);
    assert_eq!((before, asked_for()), (100, 100));
    client.end().await;
}

#[tokio::test]
async fn the_memories_of_a_page_are_read_at_once() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    for number in 0..7 {
        client.remember(&format!("word {number}")).await;
    }
    let before = engine.reads.load(Ordering::Relaxed);
    let found = Client::good(client.call("recall", json!({"query": "word", "limit": 5})).await);
    assert_eq!(found["memories"].as_array().unwrap().len(), 5);
    assert_eq!(engine.reads.load(Ordering::Relaxed) - before, 1, "a read asks the platform who may see what");
    client.end().await;
}

#[tokio::test]
async fn themes_come_with_their_memories_page_by_page() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let long = format!("boats are wet{}", " and wet".repeat(100));
    for text in [long.as_str(), "soup is hot", "trains are late"] {
        client.remember(text).await;
    }
    let first = Client::good(client.call("themes", json!({"limit": 2})).await);
    assert_eq!((&first["total"], &first["themes"][0]["words"]), (&json!(3), &json!(["trains"])));
    assert_eq!(first["themes"][1]["newest"]["text"], "soup is hot");
    let rest = Client::good(client.call("themes", json!({"limit": 2, "cursor": first["next_cursor"]})).await);
    let shown = rest["themes"][0]["typical"]["text"].as_str().unwrap();
    assert!(shown.starts_with("boats are wet and wet") && shown.ends_with('…'), "{shown}");
    assert!(shown.chars().count() <= 401 && long.len() > 800, "{shown}");
    assert_eq!(rest["is_cut"], json!(false));
    assert!(rest.get("next_cursor").is_none(), "{rest}");
    let list = Client::good(client.call("list", json!({"limit": 1})).await);
    let refused = Client::refusal(client.call("themes", json!({"cursor": list["next_cursor"]})).await);
    assert!(refused.contains("belongs to another call"), "{refused}");
    client.end().await;
}

#[tokio::test]
async fn what_coding_sessions_taught_is_listed() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let steps = async |arguments: Value| {
        let found = Client::good(client.call("procedures", arguments).await);
        let procedures = found["procedures"].as_array().unwrap().clone();
        procedures.into_iter().map(|one| one["steps"][1].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(steps(json!({})).await, ["make test", "make install", "git push"]);
    assert_eq!(steps(json!({"min_tries": 3})).await, ["make test", "make install"]);
    assert_eq!(steps(json!({"words": "PUSH git"})).await, ["git push"]);
    assert_eq!(steps(json!({"project": "boat"})).await, [""; 0]);
    let first = Client::good(client.call("procedures", json!({"limit": 1})).await);
    let one = &first["procedures"][0];
    assert_eq!((&one["tries"], &one["successes"], &one["memories"]), (&json!(9), &json!(8), &json!(["m7"])));
    let cursor = first["next_cursor"].clone();
    assert_eq!(steps(json!({"limit": 1, "cursor": cursor})).await, ["make install"]);

    let sessions = async |arguments: Value| {
        let found = Client::good(client.call("cue_search", arguments).await);
        let sessions = found["sessions"].as_array().unwrap().clone();
        sessions.into_iter().map(|one| one["session"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(sessions(json!({"what": "gate mend"})).await.len(), 4);
    assert_eq!(sessions(json!({"ending": "open"})).await, ["import:4"]);
    assert_eq!(sessions(json!({"what": "fence"})).await, ["talk:6", "talk:5"], "conversations are episodes, too");
    assert_eq!(sessions(json!({"why": "grey"})).await, ["talk:5"]);
    assert_eq!(sessions(json!({"place": "garden"})).await, ["talk:5"]);
    let there = Client::good(client.call("cue_search", json!({"place": "garden"})).await);
    assert_eq!(there["sessions"][0]["place"], "The garden");
    assert_eq!(sessions(json!({"kind": "conversation", "ending": "resolved"})).await, ["talk:5"]);
    assert_eq!(sessions(json!({"what": "ann", "project": "gate"})).await, [""; 0], "they belong to no project");
    assert_eq!(sessions(json!({"why": "test", "project": "gate"})).await, ["import:4", "import:2", "import:1"]);
    assert_eq!(sessions(json!({"what": "part 3", "why": "test"})).await, [""; 0]);
    let one =
        Client::good(client.call("cue_search", json!({"ending": "resolved", "kind": "coding"})).await)["sessions"][0]
            .clone();
    assert_eq!((&one["problem"]["memory"], &one["solved"]["kind"]), (&json!("m2"), &json!("solved")), "{one}");
    let (since, until) = (one["began_at"].clone(), one["ended_at"].clone());
    assert_eq!(sessions(json!({"since": since, "kind": "coding"})).await, ["import:4", "import:3", "import:2"]);
    assert_eq!(sessions(json!({"until": until, "kind": "coding"})).await, ["import:1"]);

    let chain = Client::good(client.call("episode_chain", json!({"session": "import:2"})).await);
    let ids: Vec<&str> =
        chain["sessions"].as_array().unwrap().iter().map(|one| one["session"].as_str().unwrap()).collect();
    assert_eq!(ids, ["import:1", "import:2"], "the oldest first");
    let chain = Client::good(client.call("episode_chain", json!({"session": "talk:6"})).await);
    assert_eq!(
        (&chain["sessions"][0]["session"], &chain["sessions"][1]["session"]),
        (&json!("talk:5"), &json!("talk:6"))
    );
    let plan = &chain["sessions"][0];
    assert_eq!((&plan["problem"]["kind"], &plan["solved"]["memory"]), (&json!("plan"), &json!("m6")), "{plan}");
    let context = Client::good(client.call("context_budget", json!({"project": "gate", "tokens": 300})).await);
    assert_eq!(context["text"], "Of the gate, in 300 tokens.");
    client.end().await;
    // Bob's session reads nothing of Ann's chat.
    engine.give("bob:main", "areza");
    let client = Client::connect(&engine, "bob", None, Rights { write: true, ..Rights::default() }).await;
    assert!(client.tools().await.iter().all(|tool| tool != "procedures"));
    client.end().await;
}

#[tokio::test]
async fn statements_are_corrected_and_rated() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    assert_eq!(client.remember("the key is under the blue pot").await, "m1");
    let updated = client.call("update", json!({"id": "m1", "text": "the key is under the red pot"})).await;
    assert_eq!(Client::good(updated)["id"], "m2");
    let answer = async |tool: &'static str, arguments: Value| {
        Client::good(client.call(tool, arguments).await)["answer"].as_str().unwrap().to_owned()
    };
    assert_eq!(answer("supersede", json!({"older": "m1", "newer": "m2"})).await, "ran /memory replace m1 m2");
    assert_eq!(answer("supersede", json!({"older": "m1"})).await, "ran /memory current m1");
    let names = json!({"name": " Ann ", "other": "Annie Ek"});
    assert_eq!(answer("relate", names.clone()).await, "ran /graph merge Ann = Annie Ek");
    assert_eq!(answer("unrelate", names).await, "ran /graph split Ann = Annie Ek");
    for rating in ["helpful", "unhelpful", "none"] {
        let want = format!("ran /memory rate m1 {rating}");
        assert_eq!(answer("search_feedback", json!({"id": "m1", "rating": rating})).await, want);
    }
    let found = Client::good(client.call("cross_project", json!({"query": "red", "project": "gate"})).await);
    assert_eq!(found["memories"][0]["id"], "m2");
    let found = Client::good(client.call("cross_project", json!({"query": "red", "project": "boat"})).await);
    assert_eq!(found["memories"], json!([]));
    client.end().await;
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    for number in 0..3 {
        client.remember(&format!("word {number}")).await;
    }
    let page = Client::good(client.call("list", json!({"limit": 1})).await);
    for (tool, arguments, says) in [
        ("recall", json!({"query": "  "}), "`query` is empty"),
        ("recall", json!({}), "query"),
        ("recall", json!({"query": "x", "person": "bob"}), "unknown field `person`"),
        ("recall", json!({"query": "x", "persona": "luna"}), "unknown field `persona`"),
        ("recall", json!({"query": "x", "limit": 0}), "at least 1"),
        ("recall", json!({"query": "x", "kinds": ["secret"]}), "unknown variant"),
        ("recall", json!({"query": "x", "cursor": page["next_cursor"]}), "belongs to another call"),
        ("list", json!({"cursor": "nonsense"}), "belongs to another call"),
        ("get", json!({"id": "42"}), "Ids look like m42"),
        ("forget", json!({"id": "me"}), "Ids look like m42"),
        ("delete", json!({"id": "m1 quotes"}), "Ids look like m42"),
        ("forget", json!({"id": "m77"}), "no `m77`"),
        ("remember", json!({"text": "\n"}), "`text` is empty"),
        ("save", json!({"text": "x".repeat(70_000)}), "several memories"),
        ("update", json!({"id": "m9", "text": "x"}), "no such memory"),
        ("update", json!({"id": "m1", "text": " "}), "`text` is empty"),
        ("supersede", json!({"older": "m1", "newer": "second"}), "Ids look like m42"),
        ("search_feedback", json!({"id": "m1", "rating": "good"}), "unknown variant"),
        ("cross_project", json!({"query": " "}), "`query` is empty"),
        ("relate", json!({"name": "Ann = Bob", "other": "Eve"}), "`name` must be a name"),
        ("unrelate", json!({"name": "Ann", "other": "Eve\n/forget me"}), "`other` must be a name"),
        ("relate", json!({"name": "Ann"}), "missing field `other`"),
        ("stats", json!({"all": true}), "unknown field"),
        ("cue_search", json!({"since": "yesterday"}), "`since` is no time"),
        ("cue_search", json!({"ending": "lost"}), "unknown variant"),
        ("episode_chain", json!({"session": "import:9"}), "`cue_search` lists them"),
        ("episode_link", json!({"session": "import:1", "caused_by": "import:9"}), "`cue_search` lists them"),
        ("episode_link", json!({"session": "import:1", "caused_by": "import:3"}), "must be another episode"),
        ("episode_link", json!({"session": "import:1", "caused_by": "import:1"}), "must be another episode"),
        ("checkpoint_save", json!({"title": "a\nb", "state": "x"}), "`title` must be on one line"),
        ("checkpoint_save", json!({"title": "a", "project": "\"", "state": "x"}), "`project` must be on one line"),
        ("checkpoint_save", json!({"title": "x".repeat(201), "state": "x"}), "at most 200 characters"),
        ("checkpoint_save", json!({"title": "a", "state": " "}), "0 bytes: use 1 to 32768"),
        ("checkpoint_save", json!({"title": "a", "state": "x".repeat(33_000)}), "use 1 to 32768"),
        ("checkpoint_restore", json!({}), "no such checkpoint"),
        ("checkpoint_restore", json!({"id": "m1"}), "no such checkpoint"),
        ("checkpoint_restore", json!({"id": "m77"}), "no such checkpoint"),
        ("checkpoint_list", json!({"cursor": page["next_cursor"]}), "belongs to another call"),
        ("raptor_rebuild", json!({"all": true}), "unknown field"),
        ("context_budget", json!({"project": "boat"}), "no project"),
        ("context_budget", json!({"project": "gate", "tokens": 0}), "use 1 to"),
        ("procedures", json!({"cursor": page["next_cursor"]}), "belongs to another call"),
        ("timeline", json!({"session": "bob:main"}), "`sessions` lists them"),
    ] {
        let refused = Client::refusal(client.call(tool, arguments.clone()).await);
        assert!(refused.contains(says), "{tool} {arguments}: {refused}");
    }
    client.end().await;
}

#[tokio::test]
async fn a_session_has_only_the_tools_that_it_may_use() {
    let engine = Arc::new(Engine::default());
    let nothing = Rights::default();
    for (rights, has, lacks) in [
        (nothing, vec![], vec!["recall", "remember", "sessions"]),
        (
            Rights { read: true, ..nothing },
            vec!["recall", "get", "stats"],
            vec!["remember", "forget", "why", "timeline"],
        ),
        (Rights { write: true, ..nothing }, vec!["remember", "save", "forget", "delete"], vec!["recall", "list"]),
        (Rights { chats: true, ..nothing }, vec!["sessions", "timeline"], vec!["why", "recall"]),
        (Rights { compose: false, ..ALL }, vec!["why", "recall", "remember"], vec!["create_reflection"]),
        (ALL, vec!["create_reflection"], vec![]),
    ] {
        let client = Client::connect(&engine, "ann", None, rights).await;
        let tools = client.tools().await;
        for name in has {
            assert!(tools.iter().any(|tool| tool == name), "{rights:?} has no {name}");
        }
        for name in lacks {
            assert!(tools.iter().all(|tool| tool != name), "{rights:?} has {name}");
            let call = rmcp::model::CallToolRequestParams::new(name);
            let error = client.peer.call_tool(call).await.unwrap_err();
            assert!(error.to_string().contains("this session has no tool"), "{error}");
        }
        client.end().await;
    }
}
