use std::fmt;
use std::path::PathBuf;

use thiserror::Error as ThisError;

/// Why there is no configuration.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the configuration {}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file is longer than [`crate::MAX_FILE_BYTES`].
    #[error("the configuration {} is longer than {} bytes", path.display(), crate::MAX_FILE_BYTES)]
    TooLong {
        /// Which file.
        path: PathBuf,
    },
    /// A variable of Azera's holds bytes that are no UTF-8.
    #[error("the environment variable {name} is not UTF-8")]
    NotUnicode {
        /// Which variable.
        name: String,
    },
    /// The configuration does not hold what it should; never empty.
    #[error("{}", list(.0))]
    Invalid(Vec<Problem>),
    /// Nothing says where to keep things.
    #[error("no folder to keep things in: HOME is not set; set data.dir, or AZERA_DATA")]
    NoDataDir,
}

impl Error {
    /// Whether the same call may work later without anybody changing anything: never, somebody has to mend it.
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

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A line of the file, counted from 1.
    Line {
        /// Which file.
        file: PathBuf,
        /// Which line.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// Nobody set it.
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

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where.
    pub origin: Origin,
    /// What, with what would be right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}
