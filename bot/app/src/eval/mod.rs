//! `azera eval`: evaluations that anyone can run again.
//!
//! Each module is one subcommand. `world` sets up the simulated platform for them, and `timelines` lets people live
//! through days before they ask.

pub mod changes;
pub mod claims;
pub mod dreams;
pub mod extraction;
pub mod facts;
pub mod labels;
pub mod manners;
pub mod moods;
pub mod recall;
pub mod safety;
mod safety_rules;
pub mod talk;
mod talk_language;
mod talk_rules;
pub mod time;
pub mod timelines;
pub mod world;
