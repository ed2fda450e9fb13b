//! The adapter for the Model Context Protocol (MCP): other programs' assistants use one person's memory as tools.
//!
//! Begin with [`Server`], which speaks for one [`Session`]: one person, one persona, and what they may do. `tools` declares
//! the tools, `resources` and `prompts` the rest. [`Server::serve`] speaks over a stream such as stdio, [`Server::answer`]
//! answers one HTTP request. [`Upstream`] passes a session on to a running Azera, [`relay`]
//! to whichever process has the memory now.
//!
//! Invariants:
//! - A session is fixed before the first message. No argument of a client chooses another person or persona.
//! - Every read goes through the engine's interfaces, which make a `ReadScope` at that moment. This crate filters nothing in.
//! - A tool that the session may not use, or that the program cannot do, is not declared.
//! - Texts of memories are data. Each answer that holds some says so.

mod chats;
mod checkpoints;
mod coding;
mod context;
mod declared;
mod episodes;
mod failure;
mod graph;
mod http;
mod known;
mod memories;
mod paging;
mod prompts;
mod proxy;
mod relay;
mod resources;
mod search;
mod server;
mod session;
mod statements;
mod stream;
mod texts;
mod themes;
mod tools;
mod vault;
mod writing;
mod writings;

pub use proxy::{ProxyError, Upstream};
pub use relay::{Link, Servers, relay};
pub use server::Server;
pub use session::{Contracts, Rights, Session};
pub use stream::ServeError;
