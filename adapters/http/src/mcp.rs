use async_trait::async_trait;
use axum::extract::Request;
use axum::response::Response;
use azera_types::{ChatId, PersonId, PersonaId};

/// Whom a request to `/mcp` speaks for. The web has checked its host, its origin and its key.
#[derive(Debug, Clone)]
pub struct McpCaller {
    /// The person of the key.
    pub person: PersonId,
    /// The person's name.
    pub name: String,
    /// The chat of the person in which the request reads and writes.
    pub chat: ChatId,
    /// The persona that the request names; `None` for the one that answers in the chat.
    pub persona: Option<PersonaId>,
    /// Whether the key has the scope `chat`.
    pub may_chat: bool,
    /// Whether the key has the scope `memory:read`.
    pub may_read: bool,
    /// Whether the key has the scope `memory:write`.
    pub may_write: bool,
    /// Whether the key has the scope `vault`.
    pub may_read_vault: bool,
}

/// What answers at `/mcp`: the Model Context Protocol, which this crate does not know.
#[async_trait]
pub trait Mcp: Send + Sync {
    /// Answers a request.
    async fn answer(&self, caller: McpCaller, request: Request) -> Response;
}
