//! What only the operator sees: the places of other platforms, and the backups.

use async_trait::async_trait;
use azera_adapter::{
    AnswerMode, ChatPlace, ConnectionHistory, HostError, Invitation, PlaceChange, PlaceChanged, PlaceHost,
    PlatformPlaces, RealmPlaces, SpokenReplies, Trouble,
};
use azera_adapter_http::{BackupError, BackupList, BackupState, BackupSummary, Backups, StoreError};
use azera_types::{ChatId, PersonId, PlatformId, RealmId, Timestamp};
use serde_json::json;

use crate::engine::Engine;
use crate::{World, program};

#[async_trait]
impl PlaceHost for Engine {
    async fn places(&self, but: &PlatformId) -> Result<Vec<PlatformPlaces>, HostError> {
        assert_eq!(but.as_str(), "web", "the chats of accounts are no places");
        let chat = ChatPlace {
            chat: ChatId::new("harbour").unwrap(),
            name: Some("harbour".into()),
            is_private: true,
            persona: "Azera".into(),
            invited: vec!["Luna".into()],
            answers: AnswerMode::Always,
            spoken: SpokenReplies::Auto,
            journal: Some(ChatId::new("log").unwrap()),
        };
        let realm = RealmPlaces {
            realm: Some(RealmId::new("guild").unwrap()),
            name: Some("Sailors".into()),
            chats: vec![chat],
        };
        Ok(vec![PlatformPlaces {
            platform: PlatformId::new("matrix").unwrap(),
            is_reachable: Some(true),
            connection: Some(ConnectionHistory {
                since: Some(backup().at),
                last_trouble: Some((Trouble::Unreachable, backup().at)),
            }),
            invitation: Some(Invitation::Account("@azera:example.org".into())),
            realms: vec![realm],
            direct: 3,
            unknown: 1,
        }])
    }

    async fn change_place(
        &self,
        operator: &PersonId,
        chat: &ChatId,
        changes: Vec<PlaceChange>,
    ) -> Result<PlaceChanged, HostError> {
        assert!(operator.as_str().starts_with("web:"), "{operator}");
        if chat.as_str() != "harbour:#1" {
            return Err(HostError::NotAllowed);
        }
        let is_known = |change: &&PlaceChange| !matches!(change, PlaceChange::Persona(name) | PlaceChange::Invited(name, _) if name == "nobody");
        let done: Vec<String> = changes.iter().take_while(is_known).map(|change| format!("{change:?}")).collect();
        let refused = (done.len() < changes.len()).then(|| "There is no persona nobody.".to_owned());
        Ok(PlaceChanged { done, refused })
    }
}

/// The backup that can be restored, and one that cannot.
const WHOLE: &str = "azera-whole.zip";
const DAMAGED: &str = "azera-damaged.zip";

fn backup() -> BackupSummary {
    let at = Timestamp::from_second(1_800_000_000).unwrap();
    BackupSummary { name: WHOLE.into(), at, messages: 7, memories: 5, bytes: 1_024 }
}

#[async_trait]
impl Backups for Engine {
    async fn list(&self) -> Result<BackupList, StoreError> {
        Ok(BackupList {
            folder: "/backups".into(),
            every_minutes: Some(5),
            backups: vec![backup()],
            unreadable: vec![DAMAGED.into()],
        })
    }

    async fn make(&self) -> Result<BackupSummary, StoreError> {
        Ok(backup())
    }

    async fn verify(&self, name: &str) -> Result<BackupState, BackupError> {
        match name {
            WHOLE => Ok(BackupState::Whole),
            DAMAGED => Ok(BackupState::Damaged),
            "azera-files.zip" => Ok(BackupState::FilesMissing(2)),
            _ => Err(BackupError::Missing),
        }
    }
}

#[tokio::test]
async fn only_owners_see_the_places_of_other_platforms() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut guest = world.guest(&mut owner, "Bob").await;
    let (mut chatter, _) = program(&mut owner, &["chat", "memory:read", "memory:write", "mcp"]).await;
    for other in [&mut guest, &mut chatter] {
        other.send("GET", "/api/places", None).await.is(403, "scope");
    }
    let chat = json!({
        "id": "harbour", "name": "harbour", "is_private": true, "persona": "Azera", "invited": ["Luna"],
        "answers": "always", "spoken_replies": "auto", "journal": "log",
    });
    let realm = json!({"id": "guild", "name": "Sailors", "chats": [chat]});
    let want = json!({
        "platform": "matrix", "is_reachable": true, "since": "2027-01-15T08:00:00Z",
        "last_trouble": {"kind": "unreachable", "at": "2027-01-15T08:00:00Z"},
        "invitation": {"link": null, "account": "@azera:example.org"}, "realms": [realm], "direct": 3, "unknown": 1,
    });
    assert_eq!(owner.send("GET", "/api/places", None).await.json(), json!({"items": [want], "total": 1}));
    world.stop().await;
}

#[tokio::test]
async fn only_owners_change_places() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut guest = world.guest(&mut owner, "Bob").await;
    let (mut chatter, _) = program(&mut owner, &["chat", "memory:read", "memory:write", "mcp"]).await;
    let path = "/api/places/harbour:%231";
    let change = json!({"persona": "Luna", "answers": "never", "journal_here": true, "spoken_replies": "always"});
    for other in [&mut guest, &mut chatter] {
        other.send("PUT", path, Some(change.clone())).await.is(403, "scope");
    }
    let done = owner.send("PUT", path, Some(change)).await.json();
    let want = ["Persona(\"Luna\")", "Answers(Never)", "Journal(true)", "Spoken(Always)"];
    assert_eq!(done, json!({"done": want}));
    for (body, status, code) in [
        (json!({"persona": "nobody"}), 422, "refused"),
        (json!({"answers": "sometimes"}), 400, "invalid"),
        (json!({"persona": " "}), 400, "invalid"),
        (json!({"invite": "a\nb"}), 400, "invalid"),
        (json!({"limits": 3}), 400, "invalid"),
    ] {
        owner.send("PUT", path, Some(body)).await.is(status, code);
    }
    // What was changed before a refusal stays, so the answer names it.
    let half = owner.send("PUT", path, Some(json!({"persona": "Luna", "invite": "nobody", "answers": "never"}))).await;
    let detail = half.json()["detail"].as_str().unwrap().to_owned();
    half.is(422, "refused");
    assert_eq!(detail, "There is no persona nobody. The changes before it are made: Persona(\"Luna\")");
    let none = owner.send("PUT", path, Some(json!({"persona": "nobody", "answers": "never"}))).await;
    assert_eq!(none.json()["detail"], "There is no persona nobody.");
    for elsewhere in ["nowhere", "..%2f..%2fweb.json", "%00"] {
        let path = format!("/api/places/{elsewhere}");
        owner.send("PUT", &path, Some(json!({"answers": "never"}))).await.is(404, "not_found");
    }
    world.stop().await;
}

#[tokio::test]
async fn only_owners_list_make_and_check_backups() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut guest = world.guest(&mut owner, "Bob").await;
    let (mut chatter, _) = program(&mut owner, &["chat", "memory:read", "memory:write", "mcp"]).await;
    let verify = |name: &str| format!("/api/backups/{name}/verify");
    for other in [&mut guest, &mut chatter] {
        for (method, path) in [("GET", "/api/backups"), ("POST", "/api/backups"), ("POST", verify(WHOLE).as_str())] {
            other.send(method, path, Some(json!({}))).await.is(403, "scope");
        }
    }
    let made = owner.send("POST", "/api/backups", None).await.json();
    let want =
        json!({"name": WHOLE, "created_at": "2027-01-15T08:00:00Z", "messages": 7, "memories": 5, "size": 1_024});
    assert_eq!(made, want);
    let listed = owner.send("GET", "/api/backups", None).await.json();
    let want = json!({
        "items": [made], "total": 1, "folder": "/backups", "every_minutes": 5, "unreadable": [DAMAGED],
    });
    assert_eq!(listed, want);
    for (name, status, missing) in
        [(WHOLE, "whole", 0), (DAMAGED, "damaged", 0), ("azera-files.zip", "files_missing", 2)]
    {
        let found = owner.send("POST", &verify(name), None).await.json();
        assert_eq!(found, json!({"status": status, "missing_files": missing}), "{name}");
    }
    for name in ["other.zip", "..%2f..%2fweb.json", "%00"] {
        owner.send("POST", &verify(name), None).await.is(404, "not_found");
    }
    world.stop().await;
}
