//! The record and working memory on [sled](https://docs.rs/sled).
//!
//! - All tables of the record lie in one sled tree, the table's number before the key: sled applies a batch to one
//!   tree atomically, and a batch of the record touches many tables.
//! - sled appends and reuses space later, so a removed value stays on disk for an unknown time. What has to be gone is
//!   made so by writing all that is left into a new *generation* beside the old one and pointing to it (`generation`).
//! - sled writes its log without an fsync and its overflow files without any: durability is completed here
//!   (`database`).
//! - sled takes a damaged log for the end of it and goes on without the rest: a number kept outside tells
//!   (`watermark`).
//! - After a write that failed, as on a full disk, the store goes on by opening again what is on disk (`reopening`).
//! - What sled cannot open for damage is read without it (`salvage`, `carving`, `log`, `page`).
//! - One process at a time: the directory is locked.

mod carving;
mod copying;
mod database;
mod generation;
mod key_ranges;
mod log;
mod page;
mod recording;
mod reopening;
mod salvage;
mod store;
mod watermark;
mod working;

pub use salvage::SalvageReport;
pub use store::SledStore;
pub use working::SledWorking;
