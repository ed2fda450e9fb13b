//! What answers at `/mcp`.

use async_trait::async_trait;
use axum::extract::Request;
use axum::response::Response;
use azera_adapter_http::{Mcp, McpCaller};
use azera_adapter_mcp::{Contracts, Rights, Server, Session};
use azera_types::PlatformId;

use crate::bootstrap::App;

/// Connects the web's mount point to the protocol's server.
pub struct Mounted {
    engine: Contracts,
    platform: PlatformId,
}

impl Mounted {
    pub fn new(app: &App, platform: PlatformId) -> Self {
        Self { engine: crate::mcp::contracts(app), platform }
    }
}

#[async_trait]
impl Mcp for Mounted {
    async fn answer(&self, caller: McpCaller, request: Request) -> Response {
        let McpCaller { person, name, chat, persona, may_chat, may_read, may_write, may_read_vault } = caller;
        let rights = Rights { chats: may_chat, read: may_read, write: may_write, compose: true, vault: may_read_vault };
        let session = Session { platform: self.platform.clone(), person, name, chat, persona, rights };
        Server::new(self.engine.clone(), session).answer(request).await
    }
}
