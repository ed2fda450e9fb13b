//! `azera eval`: measurements anyone can rerun.

pub mod claims;
pub mod dreams;
pub mod extraction;
pub mod facts;
pub mod labels;
pub mod manners;
pub mod moods;
pub mod recall;
pub mod safety;
pub mod world;
