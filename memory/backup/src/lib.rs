//! Backups of the record: one file each, made while the record is in use. Old ones are removed by a rule, and forgotten
//! items are removed from all. Begin with [`Folder`]; the rows themselves come from `azera_memory::Record`.
//!
//! - A backup is a zip archive. `record` contains every row; `manifest.json` names the record and the time, and has the
//!   SHA-256 of `record`. The format does not depend on the store.
//! - Files of messages lie beside the backups, each once. A backup made at a path of its own contains them.
//! - A file gets its final name only when it is complete and flushed ([`Folder::make`]), and replaces another file only
//!   then ([`Folder::forget`]).
//! - A folder may hold backups of several records. Pruning and cleaning concern one record only.
//! - Which backups stay is a pure function of the existing ones and the time ([`RetentionRule`]).

mod error;
mod file;
mod files;
mod folder;
mod manifest;
mod marker;
mod retention;
mod rows;

pub use error::Error;
pub use file::{Backup, Inspection};
pub use folder::{Folder, FolderListing, ForgetOutcome};
pub use manifest::Manifest;
pub use retention::{BackupTime, RetentionRule};
