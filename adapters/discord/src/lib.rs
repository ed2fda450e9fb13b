//! Discord as a platform. It translates and nothing else: what happens on Discord goes to the core through
//! [`azera_adapter::Host`], what the core says is shown through [`azera_adapter::Platform`].
//!
//! - A guild is a realm; a channel, a thread, a forum post or a DM is a chat; a user is a person.
//! - A channel that everybody in the guild can read from its beginning, and nobody is kept out of, is public in its realm;
//!   every other channel is private to those who can view it at that moment. Permissions come from the gateway, so that a
//!   change counts at once.
//! - Everything is shown once: see [`Discord`] for how.

mod application;
mod arrival;
mod attachments;
mod channels;
mod commands;
mod direct;
mod directory;
mod discord;
mod error;
mod gateway;
mod id;
mod inbound;
mod ledger;
mod manners;
mod mark;
mod menus;
mod offers;
mod outside;
mod pace;
mod pages;
mod places;
mod presence;
mod reactions;
mod saying;
mod search;
mod servers;
mod settings;
mod shown;
mod split;
mod stream;
mod typing;
mod webhooks;

pub use application::Application;
pub use discord::Discord;
pub use error::Error;
pub use id::PLATFORM;
pub use outside::application;
pub use settings::{Limits, Settings, invite};
