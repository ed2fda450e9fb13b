//! Two people and two personas: no session is shown what belongs to another.

use std::sync::Arc;

use rmcp::model::{GetPromptRequestParams, ReadResourceRequestParams};
use serde_json::json;

use crate::engine::{Engine, PERSONAS};
use crate::{ALL, Client};

/// Returns everything that a client can be shown.
async fn everything(client: &Client) -> String {
    let mut shown = String::new();
    for (tool, arguments) in [
        ("recall", json!({"query": "word"})),
        ("hybrid_search", json!({"query": "word"})),
        ("search", json!({"query": "word"})),
        ("list", json!({})),
        ("stats", json!({})),
        ("sessions", json!({})),
        ("timeline", json!({})),
        ("why", json!({})),
        ("core_memory", json!({})),
        ("relations", json!({"name": "Oslo"})),
        ("graph_explore", json!({"name": "Mia"})),
        ("themes", json!({})),
        ("known", json!({})),
        ("raptor_status", json!({})),
        ("reflection_insights", json!({})),
        ("optimize_context", json!({"query": "word"})),
        ("compact_restore", json!({})),
        ("episodes", json!({})),
        ("cue_search", json!({})),
        ("reflections", json!({})),
        ("checkpoint_list", json!({"replaced": true})),
        ("checkpoint_restore", json!({})),
        ("episode_chain", json!({"session": "import:2"})),
        ("vault_list", json!({})),
        ("vault_get", json!({"name": "git"})),
    ] {
        shown.push_str(&format!("{:?}\n", client.call(tool, arguments).await));
    }
    for number in 1..9 {
        let id = format!("m{number}");
        for tool in ["get", "similar", "checkpoint_restore"] {
            shown.push_str(&format!("{:?}\n", client.call(tool, json!({"id": id})).await));
        }
        let uri = format!("azera://memory/{id}");
        shown.push_str(&format!("{:?}\n", client.peer.read_resource(ReadResourceRequestParams::new(uri)).await));
    }
    shown.push_str(&format!("{:?}\n", client.peer.list_resources(None).await));
    let prompt = GetPromptRequestParams::new("what_you_know_about");
    let arguments = json!({"topic": "word"}).as_object().unwrap().clone();
    shown.push_str(&format!("{:?}\n", client.peer.get_prompt(prompt.with_arguments(arguments)).await));
    shown
}

#[tokio::test]
async fn nobody_is_shown_what_belongs_to_another_person_or_persona() {
    let engine = Arc::new(Engine::default());
    let mut clients = Vec::new();
    for (person, secrets) in [("ann", ["heliotrope", "quagmire"]), ("bob", ["zeppelin", "marzipan"])] {
        for (persona, secret) in PERSONAS.into_iter().zip(secrets) {
            let client = Client::connect(&engine, person, Some(persona), ALL).await;
            let id = client.remember(&format!("the word is {secret}")).await;
            let work =
                json!({"title": format!("Find {secret}"), "project": "gate", "state": format!("{secret} is next")});
            Client::good(client.call("checkpoint_save", work).await);
            clients.push((client, secret, id));
        }
    }
    let secrets: Vec<&str> = clients.iter().map(|(_, secret, _)| *secret).collect();
    for (client, own, _) in &clients {
        let shown = everything(client).await;
        for secret in &secrets {
            assert_eq!(shown.contains(secret), secret == own, "{own} sees {secret}: {shown}");
        }
    }
    let ids: Vec<String> = clients.iter().map(|(.., id)| id.clone()).collect();
    for (client, _, own) in &clients {
        for id in ids.iter().filter(|id| *id != own) {
            let refused = Client::refusal(client.call("forget", json!({"id": id})).await);
            assert!(refused.contains("no `m"), "{refused}");
        }
        let others = if own == "m1" || own == "m3" { "bob" } else { "ann" };
        for tool in ["timeline", "why"] {
            let refused = Client::refusal(client.call(tool, json!({"session": format!("{others}:mcp-areza")})).await);
            assert!(refused.contains("There is no session"), "{refused}");
        }
    }
    for (client, secret, _) in clients {
        assert!(everything(&client).await.contains(secret), "nobody forgot what belongs to another");
        client.end().await;
    }
}

#[tokio::test]
async fn a_session_never_reads_with_another_persona() {
    let engine = Arc::new(Engine::default());
    let unknown = Client::connect(&engine, "ann", Some("nobody"), ALL).await;
    let refused = Client::refusal(unknown.call("list", json!({})).await);
    assert!(refused.contains("areza, luna") && !refused.contains("protag"), "{refused}");
    let role = Client::connect(&engine, "ann", Some("protag"), ALL).await;
    Client::refusal(role.call("list", json!({})).await);
    // Somebody gives the chat of a session to another persona.
    let luna = Client::connect(&engine, "ann", Some("luna"), ALL).await;
    engine.give("ann:mcp-luna", "areza");
    let refused = Client::refusal(luna.call("list", json!({})).await);
    assert!(refused.contains("was given to the persona areza"), "{refused}");
    for client in [unknown, role, luna] {
        client.end().await;
    }
}
