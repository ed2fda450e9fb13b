//! The server through the SDK's own client, over a pipe, with an engine of a few lines.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod checkpoints;
mod context;
mod engine;
mod isolation;
mod known;
mod links;
mod protocol;
mod sessions;
mod tools;
mod vault;

use std::sync::{Arc, Mutex};

use azera_adapter_mcp::{Contracts, Rights, Server, Session};
use azera_types::{ChatId, PersonId, PersonaId, PlatformId};
use engine::Engine;
use rmcp::model::{CallToolRequestParams, CallToolResult, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Every right.
const ALL: Rights = Rights { chats: true, read: true, write: true, compose: true, vault: true };

/// A client that notes progress.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<f64>>>);

impl ClientHandler for Listener {
    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.lock().unwrap().push(progress.progress);
    }
}

/// A client, and the server that it talks with.
struct Client {
    peer: RunningService<RoleClient, Listener>,
    progress: Listener,
    served: JoinHandle<()>,
}

impl Client {
    async fn connect(engine: &Arc<Engine>, person: &str, persona: Option<&str>, rights: Rights) -> Self {
        let end = persona.map_or_else(|| "main".to_owned(), |persona| format!("mcp-{persona}"));
        let session = Session {
            platform: PlatformId::new("test").unwrap(),
            person: PersonId::new(person).unwrap(),
            name: person.to_owned(),
            chat: ChatId::new(format!("{person}:{end}")).unwrap(),
            persona: persona.map(|persona| PersonaId::new(persona).unwrap()),
            rights,
        };
        let contracts = Contracts {
            host: engine.clone(),
            reader: engine.clone(),
            memories: engine.clone(),
            known: engine.clone(),
            sessions: engine.clone(),
            vault: engine.clone(),
        };
        let server = Server::new(contracts, session);
        let (here, there) = tokio::io::duplex(1 << 16);
        let served = tokio::spawn(async move {
            let (input, output) = tokio::io::split(there);
            server.serve(input, output).await.unwrap();
        });
        let progress = Listener::default();
        Self { peer: progress.clone().serve(here).await.unwrap(), progress, served }
    }

    async fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        self.peer.call_tool(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)).await.unwrap()
    }

    /// Calls a tool that works, and returns its structured answer.
    #[track_caller]
    fn good(result: CallToolResult) -> Value {
        assert_ne!(result.is_error, Some(true), "{result:?}");
        result.structured_content.unwrap()
    }

    /// Returns the words of a refusal.
    #[track_caller]
    fn refusal(result: CallToolResult) -> String {
        assert_eq!(result.is_error, Some(true), "{result:?}");
        result.content.first().and_then(|block| block.as_text()).unwrap().text.clone()
    }

    async fn remember(&self, text: &str) -> String {
        let kept = Self::good(self.call("remember", json!({"text": text})).await);
        kept["id"].as_str().unwrap().to_owned()
    }

    async fn tools(&self) -> Vec<String> {
        let listed = self.peer.list_tools(None).await.unwrap();
        listed.tools.into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    async fn end(self) {
        self.peer.cancel().await.unwrap();
        self.served.await.unwrap();
    }
}
