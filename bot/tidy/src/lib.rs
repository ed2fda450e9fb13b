//! The rules of Azera's house that a machine can check, and neither rustc nor clippy does.
//!
//! `cargo run -p azera-tidy` checks the checkout, `cargo run -p azera-tidy -- bless` writes the files that are generated
//! from code, and the tests of this crate check the checkout too, so that `cargo test` fails where the house does.
//!
//! What the rules say about whom stands in one place, `house.rs`: a new crate, or a new edge between crates, is a line
//! there, so that a change of the architecture shows as one.

mod layout;
mod rules;
mod source;
mod tree;

use std::fmt;

pub use layout::{CORE, EDGES, Edge, HELD, MAX_FILE_LINES, PURE, VAGUE_NAMES};
pub use tree::{MAX_FILE_BYTES, Tree};

/// Why nothing could be checked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Which.
        path: std::path::PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A source file is longer than [`MAX_FILE_BYTES`].
    #[error("{path} is longer than {MAX_FILE_BYTES} bytes")]
    TooLong {
        /// Which.
        path: std::path::PathBuf,
    },
}

/// A place where a rule is broken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the checkout's root.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The rule's name.
    pub rule: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} [{}]", self.path, self.line, self.message, self.rule)
    }
}

/// Checks every rule; what is returned is sorted by place, and empty where the house is in order.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    rules::manifests(tree, &mut findings);
    rules::files(tree, &mut findings);
    rules::code(tree, &mut findings);
    findings.sort();
    findings
}
