//! Everything about pictures that needs no model, no store and no platform: tags in replies ([`TagFilter`]), what a
//! prompt may ask for ([`PromptRules`]), the options of `/imagine` ([`Wish`]), and whose turn it is ([`fair_order`]).
//!
//! This crate is pure. Drawing is in `azera-model-image`, and the engine decides about places, limits and delivery.
//!
//! Invariants:
//! - No part of a tag is ever shown, however a reply is cut into pieces.
//! - No setting allows sexual pictures of minors.

mod fair;
mod opening;
mod rules;
mod tag;
mod tag_fields;
mod wish;
mod words;

pub use fair::{Waiting, fair_order};
pub use rules::{MAX_FORBIDDEN_CHARS, PromptRules, Refusal, Traits, forbidden_word};
pub use tag::{PictureTag, TagFilter};
pub use wish::{MAX_NEGATIVE_CHARS, Wish, WishError};
