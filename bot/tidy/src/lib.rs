//! The project's own rules: those that a machine can check, and that rustc and clippy do not.
//!
//! `cargo run -p azera-tidy` checks the checkout. `cargo run -p azera-tidy -- bless` writes the files that are
//! generated from code. The tests of this crate check the checkout too, so that `cargo test` fails if a rule is broken.
//!
//! `layout.rs` says which crate may use which. A new crate, or a new edge between crates, is a new line there, so that
//! every change of the architecture is visible. `rules/` holds the checks. Start with [`check`].

mod layout;
mod rules;
mod source;
mod tree;

use std::fmt;

pub use layout::{CORE, EDGES, Edge, HELD, MAX_FILE_LINES, PURE, VAGUE_NAMES};
pub use tree::{MAX_FILE_BYTES, Tree};

/// The reasons why nothing could be checked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file or folder.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A source file is longer than [`MAX_FILE_BYTES`].
    #[error("{path} is longer than {MAX_FILE_BYTES} bytes")]
    TooLong {
        /// The file.
        path: std::path::PathBuf,
    },
}

/// A broken rule, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file's path from the checkout's root.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The rule's name.
    pub rule: &'static str,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} [{}]", self.path, self.line, self.message, self.rule)
    }
}

/// Checks every rule. Returns the findings sorted by path and line; none if all rules hold.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    rules::manifests(tree, &mut findings);
    rules::files(tree, &mut findings);
    rules::code(tree, &mut findings);
    findings.sort();
    findings
}
