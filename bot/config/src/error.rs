use std::fmt;
use std::path::PathBuf;

use thiserror::Error as ThisError;

/// The reasons why the configuration cannot be loaded.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the configuration {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is longer than [`crate::MAX_FILE_BYTES`].
    #[error("the configuration {} is longer than {} bytes", path.display(), crate::MAX_FILE_BYTES)]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// An `AZERA` environment variable is not UTF-8.
    #[error("the environment variable {name} is not UTF-8")]
    NotUnicode {
        /// The variable.
        name: String,
    },
    /// Keys or values are wrong. The list is never empty.
    #[error("{}", list(.0))]
    Invalid(Vec<Problem>),
    /// Neither the configuration nor the environment names a data folder.
    #[error("no folder to keep things in: HOME is not set; set data.dir, or AZERA_DATA")]
    NoDataDir,
}

impl Error {
    /// Returns true if the same call may succeed later with nothing changed. This is always false: a person must fix
    /// the configuration.
    pub fn is_transient(&self) -> bool {
        false
    }
}

fn list(problems: &[Problem]) -> String {
    match problems {
        [only] => only.to_string(),
        many => {
            let lines: String = many.iter().map(|problem| format!("\n  {problem}")).collect();
            format!("the configuration has {} problems:{lines}", many.len())
        }
    }
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A line of the file.
    Line {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// The default, because the key is not set.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{}:{line}", file.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One fault in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The source of the faulty value.
    pub origin: Origin,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}
