//! The tools for a person's secrets.

use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter::{HostError, Reading, VaultEntry, VaultHost, VaultValue};
use azera_adapter_mcp::Rights;
use azera_types::{PersonId, PlatformId, Timestamp};
use serde_json::json;

use crate::engine::{Engine, is_owner};
use crate::{ALL, Client};

fn owner(at: &Reading) -> Result<PersonId, HostError> {
    if is_owner(&at.chat, &at.person) { Ok(at.person.clone()) } else { Err(HostError::NotAllowed) }
}

#[async_trait]
impl VaultHost for Engine {
    async fn vault_entries(&self, _: &PlatformId, at: Reading) -> Result<Vec<VaultEntry>, HostError> {
        let (of, secrets) = (owner(&at)?, self.secrets.lock().unwrap());
        let mine = secrets.keys().filter(|(person, _)| *person == of);
        Ok(mine.map(|(_, name)| VaultEntry { name: name.clone(), changed_at: Timestamp::UNIX_EPOCH }).collect())
    }

    async fn vault_value(&self, _: &PlatformId, at: Reading, name: String) -> Result<Option<VaultValue>, HostError> {
        Ok(self.secrets.lock().unwrap().get(&(owner(&at)?, name)).cloned().map(VaultValue))
    }

    async fn vault_store(
        &self,
        _: &PlatformId,
        at: Reading,
        name: String,
        value: VaultValue,
    ) -> Result<bool, HostError> {
        if name.contains(' ') {
            return Err(HostError::Refused("a name has no spaces".into()));
        }
        Ok(self.secrets.lock().unwrap().insert((owner(&at)?, name), value.0).is_some())
    }

    async fn vault_delete(&self, _: &PlatformId, at: Reading, name: String) -> Result<bool, HostError> {
        Ok(self.secrets.lock().unwrap().remove(&(owner(&at)?, name)).is_some())
    }
}

#[tokio::test]
async fn a_secret_is_listed_by_name_returned_and_deleted() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let stored = Client::good(client.call("vault_store", json!({"name": "git", "value": "heliotrope"})).await);
    assert_eq!(stored, json!({"name": "git", "replaced": false}));
    let stored = Client::good(client.call("vault_store", json!({"name": "git", "value": "quagmire"})).await);
    assert_eq!(stored["replaced"], true);
    let listed = Client::good(client.call("vault_list", json!({})).await);
    assert_eq!((&listed["entries"][0]["name"], listed["entries"].as_array().unwrap().len()), (&json!("git"), 1));
    assert!(!listed.to_string().contains("quagmire"), "{listed}");
    let got = Client::good(client.call("vault_get", json!({"name": "git"})).await);
    assert_eq!(got, json!({"name": "git", "value": "quagmire"}));
    for shown in [client.call("recall", json!({"query": "quagmire"})).await, client.call("list", json!({})).await] {
        assert!(!format!("{:?}", shown.structured_content.unwrap()["memories"]).contains("quagmire"));
    }
    Client::good(client.call("vault_delete", json!({"name": "git"})).await);
    for tool in ["vault_get", "vault_delete"] {
        let refused = Client::refusal(client.call(tool, json!({"name": "git"})).await);
        assert!(refused.contains("There is no secret \"git\""), "{refused}");
    }
    client.end().await;
}

#[tokio::test]
async fn a_refusal_repeats_no_secret() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    for wrong in [
        json!({"name": "git", "value": ["heliotrope"]}),
        json!({"name": "git", "heliotrope": 1}),
        json!({"name": "a b", "value": "heliotrope"}),
        json!({"value": "heliotrope"}),
    ] {
        let refused = Client::refusal(client.call("vault_store", wrong).await);
        assert!(!refused.contains("heliotrope"), "{refused}");
    }
    client.end().await;
}

#[tokio::test]
async fn values_need_a_right_of_their_own() {
    let engine = Arc::new(Engine::default());
    let none = Rights { vault: false, ..ALL };
    let only = Rights { vault: true, ..Rights::default() };
    let reading = Rights { read: true, ..Rights::default() };
    for (rights, tools) in [
        (ALL, &["vault_store", "vault_list", "vault_get", "vault_delete"][..]),
        (none, &["vault_store", "vault_list", "vault_delete"]),
        (only, &["vault_list", "vault_get"]),
        (reading, &["vault_list"]),
        (Rights::default(), &[]),
    ] {
        let client = Client::connect(&engine, "ann", None, rights).await;
        let listed = client.tools().await;
        let listed: Vec<&str> = listed.iter().map(String::as_str).filter(|name| name.starts_with("vault")).collect();
        assert_eq!(listed, tools);
        if !rights.vault {
            let request = rmcp::model::CallToolRequestParams::new("vault_get");
            assert!(client.peer.call_tool(request).await.is_err(), "a tool that is not declared cannot be called");
        }
        client.end().await;
    }
}

#[tokio::test]
async fn a_secret_belongs_to_one_person() {
    let engine = Arc::new(Engine::default());
    let (ann, bob) =
        (Client::connect(&engine, "ann", None, ALL).await, Client::connect(&engine, "bob", None, ALL).await);
    Client::good(ann.call("vault_store", json!({"name": "git", "value": "heliotrope"})).await);
    Client::good(bob.call("vault_store", json!({"name": "git", "value": "zeppelin"})).await);
    for (client, own) in [(&ann, "heliotrope"), (&bob, "zeppelin")] {
        assert_eq!(Client::good(client.call("vault_get", json!({"name": "git"})).await)["value"], own);
    }
    Client::good(ann.call("vault_delete", json!({"name": "git"})).await);
    assert_eq!(Client::good(bob.call("vault_get", json!({"name": "git"})).await)["value"], "zeppelin");
    // The secrets of a person do not depend on the persona.
    let luna = Client::connect(&engine, "bob", Some("luna"), ALL).await;
    assert_eq!(Client::good(luna.call("vault_get", json!({"name": "git"})).await)["value"], "zeppelin");
    for client in [ann, bob, luna] {
        client.end().await;
    }
}
