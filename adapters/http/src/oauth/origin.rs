//! This server as a program sees it: its origin, its issuer and its resource.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::{USUAL, joined};
use crate::guard::Client;
use crate::problem::Problem;

/// The path of the protected resource.
const RESOURCE: &str = "/mcp";

/// The path of its metadata, by RFC 9728.
const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// The origin of a request, such as `https://azera.example.org`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin(String);

impl Origin {
    /// Returns the origin by which a request reached this server. `host` is the authority of the request, which was checked.
    pub(crate) fn of(host: &str, client: &Client) -> Self {
        let scheme = if client.is_secure { "https" } else { "http" };
        Self(format!("{scheme}://{}", host.to_ascii_lowercase()))
    }

    /// Returns the issuer of tokens, which is the origin itself.
    pub(crate) fn issuer(&self) -> &str {
        &self.0
    }

    /// Returns the address of a path on this server.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// Returns the resource that tokens are for.
    pub(crate) fn resource(&self) -> String {
        self.at(RESOURCE)
    }
}

/// Adds to a refusal of `/mcp` where a program learns how to ask for access, by RFC 9728 and RFC 6750. `sent` tells whether the
/// request carried a token.
pub(crate) fn challenge(response: &mut Response, origin: &Origin, sent: bool) {
    let lacks_scope = response.extensions().get::<Problem>().is_some_and(|problem| problem.code == "scope");
    let error = match response.status() {
        StatusCode::UNAUTHORIZED if sent => "error=\"invalid_token\", ",
        StatusCode::UNAUTHORIZED => "",
        StatusCode::FORBIDDEN if lacks_scope => "error=\"insufficient_scope\", ",
        _ => return,
    };
    let value = format!("Bearer {error}resource_metadata=\"{}\", scope=\"{}\"", origin.at(METADATA), joined(&USUAL));
    if let Ok(value) = HeaderValue::from_str(&value) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
}
