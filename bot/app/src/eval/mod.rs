//! `azera eval`: measurements anyone can rerun.

pub mod facts;
pub mod recall;
pub mod world;
