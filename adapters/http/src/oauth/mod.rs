//! OAuth 2.1 for `/mcp`: a program asks, the person allows it on a page, and the program gets tokens for `/mcp` alone.
//!
//! `client` is the registration of a program, `request` what it asks for, `codes` the codes that it gets first, and `grants` what
//! a person allowed and the tokens that stand for it. `origin` names this server as the program sees it, `error` answers as the
//! protocol wants. The routes are in `routes/oauth.rs` and `routes/grants.rs`.
//!
//! Invariants:
//! - A registration proves nothing, so it is not stored: the id of a client is the registration, and each use checks it.
//! - A code works once, for a minute, with the verifier, the client and the address of its request. A second use revokes what the
//!   first one got.
//! - A refresh token works once. A second use revokes the grant.
//! - Nobody is sent to an address without a click of the person on a page that names it.

mod client;
mod codes;
mod error;
mod grants;
mod origin;
mod request;

pub(crate) use client::{Registered, Registration, place_of};
pub(crate) use codes::{Code, Codes};
pub(crate) use error::OAuthError;
pub(crate) use grants::{ACCESS_PREFIX, ACCESS_S, Grant, GrantInfo, Issued, TokenWish};
pub(crate) use origin::{Origin, challenge};
pub(crate) use request::{Asked, Wanted, scopes_in};

use crate::accounts::Scope;

/// What programs may ask for. Administration is not among it.
pub(crate) const SCOPES: [Scope; 5] = [Scope::Mcp, Scope::Chat, Scope::MemoryRead, Scope::MemoryWrite, Scope::Vault];

/// What a program gets that asks for nothing in particular. Secrets are not among it.
pub(crate) const USUAL: [Scope; 4] = [Scope::Mcp, Scope::Chat, Scope::MemoryRead, Scope::MemoryWrite];

/// Returns scopes as the protocol writes them.
pub(crate) fn joined(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ")
}

/// Returns what a scope allows, in words for the person.
pub(crate) fn in_words(scope: Scope) -> &'static str {
    match scope {
        Scope::Mcp => "use Azera's tools in your name",
        Scope::Chat => "read your conversations",
        Scope::MemoryRead => "read what Azera remembers of you, and the names of your secrets",
        Scope::MemoryWrite => "add and forget memories, store and delete secrets",
        Scope::Vault => "read your secrets",
        Scope::Admin => "administer Azera",
    }
}
