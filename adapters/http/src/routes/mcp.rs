//! The mount point of the Model Context Protocol.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use azera_types::PersonaId;
use serde::Deserialize;

use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Need, Parameter, Params};
use crate::mcp::McpCaller;
use crate::platform::chat_id;
use crate::problem::Problem;
use crate::web::Shared;

/// The chat of sessions that name no persona.
const HOME: &str = "main";

/// Characters of a digest that name a persona's chat.
const DIGEST_CHARS: usize = 32;

/// Longest text of a refusal, in bytes.
const MAX_REFUSAL_BYTES: usize = 4 << 10;

/// The header that names a persona.
const PERSONA_HEADER: &str = "azera-persona";

#[derive(Deserialize)]
struct Choice {
    persona: Option<String>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    const PERSONA: &[Parameter] = &[Parameter {
        name: "persona",
        help: "The persona whose memory to use. The header Azera-Persona says the same.",
        required: false,
    }];
    let mut endpoint =
        Endpoint::new(Method::POST, "/mcp", Need::Scope(Scope::Mcp), "Speak the Model Context Protocol", answer)
            .asks(PERSONA)
            .sends("application/json", "A message of JSON-RPC 2.0.")
            .also(&[(202, "A notification was taken."), (501, "This build does not speak the protocol.")]);
    endpoint.may_stream = true;
    vec![endpoint]
}

/// Gives a refusal that is a plain text the form of every other problem.
async fn as_problem(response: Response) -> Response {
    let media_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_json = media_type.is_some_and(|media_type| media_type.starts_with("application/json"));
    let status = response.status();
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let text = axum::body::to_bytes(response.into_body(), MAX_REFUSAL_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let detail = if text.is_empty() { status.canonical_reason().unwrap_or("It is refused.") } else { text.as_ref() };
    Problem::new(status, "protocol", detail).into_response()
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Params(choice): Params<Choice>,
    request: Request,
) -> Result<Response, Problem> {
    let service = shared.mcp()?;
    let named = request.headers().get(PERSONA_HEADER).map(|value| value.to_str().unwrap_or_default().to_owned());
    let persona = named.or(choice.persona).map(PersonaId::new).transpose()?;
    let chat = match &persona {
        None => chat_id(&caller.account, HOME)?,
        Some(persona) => {
            // A persona's id may hold characters that the end of a chat's id may not.
            let digest: String = crate::secrets::digest(persona.as_str()).chars().take(DIGEST_CHARS).collect();
            chat_id(&caller.account, &format!("mcp-{digest}"))?
        }
    };
    let may = |scope| caller.scopes.contains(&scope);
    let whom = McpCaller {
        person: caller.person()?,
        name: caller.name.clone(),
        chat,
        persona,
        may_chat: may(Scope::Chat),
        may_read: may(Scope::MemoryRead),
        may_write: may(Scope::MemoryWrite),
        may_read_vault: may(Scope::Vault),
    };
    let mut response = as_problem(service.answer(whom, request).await).await;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
