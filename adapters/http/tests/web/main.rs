//! The web from outside: real connections to the real server, with an engine that answers in fixed words.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod account_store;
mod accounts;
mod attacks;
mod client;
mod engine;
mod events;
mod graph;
mod images;
mod isolation;
mod known;
mod local_commands;
mod mcp;
mod models;
mod oauth;
mod oauth_attacks;
mod openai;
mod operator;
mod personas;
mod routes;
mod sessions;
mod speech;
mod studio;
mod tokens;
mod voice;

use std::sync::Arc;

use azera_adapter::Host;
use azera_adapter_http::{Local, Parts, Settings, Web};
use azera_types::{ManualClock, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use account_store::Accounts;
use client::{Answer, Client};
use engine::Engine;

/// A running web.
struct World {
    web: Arc<Web>,
    clock: ManualClock,
    accounts: Arc<Accounts>,
    engine: Arc<Engine>,
    folder: TempDir,
    setup: Option<String>,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

impl World {
    async fn start() -> Self {
        Self::with(Arc::default()).await
    }

    /// Starts a web over accounts that an earlier one stored.
    async fn with(accounts: Arc<Accounts>) -> Self {
        Self::listening("127.0.0.1:0", &[], accounts).await
    }

    async fn listening(address: &str, proxies: &[&str], accounts: Arc<Accounts>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        #[cfg(unix)]
        std::fs::write(folder.path().join("web.new"), "a file that everybody reads").unwrap();
        let clock = ManualClock::new(Timestamp::from_second(1_800_000_000).unwrap());
        let settings = Settings {
            listen: address.parse().unwrap(),
            trusted_proxies: proxies.iter().map(|proxy| proxy.parse().unwrap()).collect(),
            allowed_hosts: vec!["azera.example.org".to_owned()],
            folder: folder.path().to_owned(),
            commands: engine::COMMANDS,
            version: "1.2.3",
        };
        let web = Web::bind(settings, Arc::new(clock.clone())).await.unwrap();
        let engine = Arc::new(Engine::new(web.as_platform()));
        web.open(Parts {
            accounts: accounts.clone(),
            reader: engine.clone(),
            operations: engine.clone(),
            pictures: engine.clone(),
            speech: engine.clone(),
            moods: engine.clone(),
            known: engine.clone(),
            memories: engine.clone(),
            places: engine.clone(),
            samples: engine.clone(),
            backups: engine.clone(),
            personas: engine.clone(),
            commands: engine.clone(),
            mcp: Some(engine.clone()),
        });
        let setup = web.begin().await.unwrap().map(|link| link.rsplit_once('=').unwrap().1.to_owned());
        assert!(Local::read(folder.path()).is_err(), "no command waits for a web that does not answer yet");
        web.announce().unwrap();
        let (stop, host): (_, Arc<dyn Host>) = (CancellationToken::new(), engine.clone());
        let (serving, until) = (web.clone(), stop.clone());
        let served = tokio::spawn(async move { serving.listen(host, until).await });
        Self { web, clock, accounts, engine, folder, setup, stop, served }
    }

    fn client(&self) -> Client {
        Client::new(self.web.address())
    }

    /// Makes the owner's account, and returns its browser.
    async fn owner(&self) -> Client {
        let mut owner = self.client();
        let body = json!({"code": self.setup.as_ref().unwrap(), "name": "Ann", "password": "correct horse battery"});
        let answer = owner.send("POST", "/api/setup", Some(body)).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        owner
    }

    /// Makes a guest's account, and returns its browser.
    async fn guest(&self, owner: &mut Client, name: &str) -> Client {
        let invited = owner.send("POST", "/api/invitations", Some(json!({}))).await.json();
        let mut guest = self.client();
        let body = json!({"code": invited["code"], "name": name, "password": "another long password"});
        let answer = guest.send("POST", "/api/join", Some(body)).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        guest
    }

    fn local(&self) -> Local {
        Local::read(self.folder.path()).unwrap()
    }

    async fn stop(self) {
        self.stop.cancel();
        self.served.await.unwrap();
    }
}

/// Makes a key of a browser's account, and returns a program that uses it.
async fn program(browser: &mut Client, scopes: &[&str]) -> (Client, Value) {
    let made = browser.send("POST", "/api/keys", Some(json!({"name": "program", "scopes": scopes}))).await;
    assert_eq!(made.status, 200, "{}", made.body);
    let made = made.json();
    (browser.with_key(made["key"].as_str().unwrap()), made)
}

#[tokio::test]
async fn health_ready_and_metrics_answer_without_a_login() {
    let world = World::start().await;
    let mut client = world.client();
    let health = client.send("GET", "/health", None).await;
    assert_eq!(health.json(), json!({"status": "ok", "version": "1.2.3", "service": "azera-core"}));
    assert_eq!(client.send("GET", "/ready", None).await.json(), json!({"status": "ready"}));
    let metrics = client.send("GET", "/metrics", None).await;
    assert_eq!((metrics.status, metrics.body.as_str()), (200, "azera_turns_total 0\n"));
    // A reverse proxy on the same machine brings requests from anywhere.
    let through = client.send_with("GET", "/metrics", &[("X-Forwarded-For", "203.0.113.9")], "").await;
    assert_eq!(through.status, 401);
    // Not every proxy says that it is one.
    let named = client.send_with("GET", "/metrics", &[("Host", "azera.example.org")], "").await;
    assert_eq!(named.status, 401);
    world.engine.fail();
    let ready = client.send("GET", "/ready", None).await;
    assert_eq!((ready.status, ready.json()["code"].as_str()), (503, Some("not_ready")));
    world.stop().await;
}

#[tokio::test]
async fn each_answer_forbids_inline_script_and_other_sites() {
    let world = World::start().await;
    for (path, status) in [("/health", 200), ("/api/chats", 401), ("/nowhere", 404), ("/api/session", 200)] {
        let answer = world.client().send("GET", path, None).await;
        assert_eq!(answer.status, status, "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    world.stop().await;
}

#[tokio::test]
async fn every_route_is_described() {
    let world = World::start().await;
    let document = world.client().send("GET", "/api/openapi.json", None).await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    let mut ids = std::collections::BTreeSet::new();
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{path} {method}");
            assert!(!operation["summary"].as_str().unwrap().is_empty());
            // The router answers to each described route: not with 404 or 405 for a route that does not exist.
            let concrete = path.replace("{id}", "x").replace("{name}", "x").replace("{filename}", "x");
            let concrete = concrete.replace("{session_id}", "x");
            let answer = world.client().send(&method.to_uppercase(), &concrete, None).await;
            // Without the console, no file is there.
            let is_file = path == "/assets/{file}";
            let is_there = answer.status != 405 && (is_file || answer.json()["code"] != "not_found");
            assert!(is_there, "{method} {path}: {} {}", answer.status, answer.body);
        }
    }
    for reference in references(&document) {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        assert!(document["components"]["schemas"].get(name).is_some(), "{reference} is nowhere");
    }
    world.stop().await;
}

fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| match value {
                Value::String(to) if name == "$ref" => vec![to.clone()],
                value => references(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// The endpoints of the first interface. Each is there, and works.
#[tokio::test]
async fn every_endpoint_of_the_first_interface_answers() {
    const ENDPOINTS: &str = "POST /api/chat/stream; GET /api/chats; POST /api/chats; GET /api/chats/search; GET /api/chats/{id}; \
        PUT /api/chats/{id}; DELETE /api/chats/{id}; GET /api/personas; POST /api/personas; GET /api/personas/template; \
        GET /api/personas/{id}; PUT /api/personas/{id}; DELETE /api/personas/{id}; GET /api/groups; POST /api/groups; \
        PUT /api/groups/{id}; DELETE /api/groups/{id}; GET /api/tags; POST /api/tags; PUT /api/tags/{id}; DELETE /api/tags/{id}; \
        GET /api/dreams; GET /api/dreams/search; POST /api/dreams/import; GET /api/journal; GET /api/journal/search; \
        POST /api/journal/trigger; POST /api/journal/import; GET /api/logs; POST /api/search; POST /api/memories; \
        GET /api/status; POST /api/status/mood; GET /api/models; POST /api/models/pull; DELETE /api/models/{name}; \
        POST /api/tts/synthesize; POST /api/voice-samples/upload; GET /api/voice-samples/{filename}; POST /api/images/generate; \
        GET /api/images; GET /api/images/models; POST /api/images/upload-reference; GET /api/images/references/{filename}; \
        GET /api/images/{filename}; DELETE /api/images/{filename}; GET /api/settings; PUT /api/settings/editor; \
        PUT /api/settings/ui; POST /api/chat; GET /api/history/{session_id}; POST /api/clear; GET /health";
    let world = World::start().await;
    let document = world.client().send("GET", "/api/openapi.json", None).await.json();
    let mut owner = world.owner().await;
    let mut counted = 0;
    for endpoint in ENDPOINTS.split("; ") {
        let (method, path) = endpoint.trim().split_once(' ').unwrap();
        assert!(document["paths"][path].get(method.to_lowercase()).is_some(), "{endpoint} is not described");
        let concrete = path.replace("{id}", "x").replace("{name}", "x").replace("{filename}", "x");
        let answer = owner.send(method, &concrete.replace("{session_id}", "x"), Some(json!({}))).await;
        assert!(answer.status < 500, "{endpoint}: {} {}", answer.status, answer.body);
        counted += 1;
    }
    assert_eq!(counted, 53);
    world.stop().await;
}

impl Answer {
    #[track_caller]
    fn is(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.json()["code"].as_str()), (status, Some(code)), "{}", self.body);
        assert_eq!(self.json()["error"], self.json()["detail"], "`error` is a plain string");
    }
}
