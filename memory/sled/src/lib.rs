//! The record and working memory on [sled](https://docs.rs/sled). Begin with [`SledStore`] and [`SledWorking`].
//!
//! - All tables of the record share one sled tree; the table's number comes before the key. sled applies a batch to one
//!   tree atomically, and a batch of the record touches many tables.
//! - sled appends, and reuses space later, so a removed value stays on disk for an unknown time. To erase values, the
//!   rest is copied into a new *generation* next to the old one, which then replaces it (`generation`).
//! - sled writes its log without fsync, and its overflow files without any flush. `database` adds what durability
//!   needs.
//! - sled takes damage in its log for the end of the log, and continues without the rest. A number outside of sled
//!   reveals this (`watermark`).
//! - After a failed write, for example on a full disk, the store opens the files again (`reopening`).
//! - If damage keeps sled from opening a store, its rows are read without sled (`salvage`, `carving`, `log`, `page`).
//! - Only one process at a time: the directory is locked.

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
