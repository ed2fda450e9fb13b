//! Tools that return as much as fits, and those that tell what is there.

use std::sync::Arc;

use azera_adapter_mcp::Rights;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::{ALL, Client};

#[tokio::test]
async fn a_context_holds_what_fits_best_first() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    client.remember("boats sail at night").await;
    client.remember(&format!("boats {}", "and more boats ".repeat(300))).await;
    client.remember("boats are wet").await;
    let all = Client::good(client.call("optimize_context", json!({"query": "boats"})).await);
    assert_eq!((all["memories"].as_array().unwrap().len(), &all["left_out"]), (3, &json!(0)));
    let few = Client::good(client.call("optimize_context", json!({"query": "boats", "tokens": 200})).await);
    let texts: Vec<&str> =
        few["memories"].as_array().unwrap().iter().map(|memory| memory["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["boats are wet", "boats sail at night"], "the long one does not fit: {few}");
    assert_eq!((&few["left_out"], &few["missing"]), (&json!(1), &json!(["reranker"])));
    assert!(few["tokens"].as_u64().unwrap() <= 200, "{few}");
    for wrong in [json!({"query": " "}), json!({"query": "boats", "tokens": 0})] {
        Client::refusal(client.call("optimize_context", wrong).await);
    }
    client.end().await;
}

#[tokio::test]
async fn a_conversation_goes_on_with_its_newest_messages() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    client.remember("hello").await;
    let all = Client::good(client.call("compact_restore", json!({})).await);
    assert_eq!((&all["session"], &all["is_cut"]), (&json!("ann:main"), &json!(false)), "{all}");
    assert_eq!(all["messages"].as_array().unwrap().len(), 5);
    let some = Client::good(client.call("compact_restore", json!({"session": "ann:main", "tokens": 140})).await);
    let texts: Vec<&str> =
        some["messages"].as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap()).collect();
    assert_eq!((texts.as_slice(), &some["is_cut"]), (["message 3", "message 4"].as_slice(), &json!(true)));
    // The newest one alone does not fit.
    let short = Client::good(client.call("compact_restore", json!({"tokens": 62})).await);
    let texts: Vec<&Value> = short["messages"].as_array().unwrap().iter().map(|message| &message["text"]).collect();
    assert_eq!((texts, &short["tokens"], &short["is_cut"]), (vec![&json!("messag…")], &json!(62), &json!(true)));
    let refused = Client::refusal(client.call("compact_restore", json!({"session": "bob:main"})).await);
    assert!(refused.contains("There is no session"), "{refused}");
    client.end().await;
    let blind = Client::connect(&engine, "ann", None, Rights { read: true, ..Rights::default() }).await;
    assert!(!blind.tools().await.contains(&"compact_restore".to_owned()));
    blind.end().await;
}

#[tokio::test]
async fn insights_and_the_state_of_themes_are_counted() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    for text in ["boats are wet", "soup is hot"] {
        client.remember(text).await;
    }
    let found = Client::good(client.call("reflection_insights", json!({"limit": 1})).await);
    let first = &found["insights"][0];
    assert_eq!((&first["word"], &first["entries"], &first["writings"]), (&json!("soup"), &json!(1), &json!(["m92"])));
    let rest = json!({"limit": 1, "cursor": found["next_cursor"]});
    let rest = Client::good(client.call("reflection_insights", rest).await);
    assert_eq!(rest["insights"][0]["word"], "tea");
    assert!(rest.get("next_cursor").is_none(), "{rest}");
    let status = Client::good(client.call("raptor_status", json!({})).await);
    assert_eq!(
        status,
        json!({"themes": 2, "parts": 0, "memories": 2, "waiting": 0, "is_cut": false}),
        "each memory is a theme here"
    );
    client.end().await;
}
