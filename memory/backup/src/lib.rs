//! Backups of the record: one file each, made while the record is in use, kept by a rule, gone through when something is
//! forgotten.
//!
//! - A backup is a zip archive: `record` holds every row, `manifest.json` says of what and of when it is and has the
//!   SHA-256 of `record`. Nothing in it depends on the store the rows came from.
//! - A file bears its name only once it is whole and on the disk ([`Folder::make`]), and replaces another one only then
//!   ([`Folder::forget`]).
//! - A folder may hold backups of several records; what is kept or gone through is one record's alone.
//! - What is kept is a pure function of what there is and of the time ([`RetentionRule`]).

mod error;
mod file;
mod folder;
mod manifest;
mod marker;
mod retention;
mod rows;

pub use error::Error;
pub use file::Backup;
pub use folder::{Folder, FolderListing, ForgetOutcome};
pub use manifest::Manifest;
pub use retention::{BackupTime, RetentionRule};
