//! Problems of a persona file, and how to fix them.

use std::fmt;

use crate::limits::MAX_PROBLEMS;

/// Whether a problem makes the file unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is used; its author should know.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// A problem in a persona file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line in the file, from 1.
    pub line: usize,
    /// Number of the character in the line, from 1, if the problem has one position.
    pub column: Option<usize>,
    /// Whether the file is refused because of it.
    pub severity: Severity,
    /// What is wrong and how to fix it, in plain words for the file's author.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(f, "line {}, column {}: {}: {}", self.line, column, self.severity, self.message),
            None => write!(f, "line {}: {}: {}", self.line, self.severity, self.message),
        }
    }
}

/// Collects problems up to [`MAX_PROBLEMS`].
#[derive(Debug, Default)]
pub(crate) struct Problems {
    list: Vec<Problem>,
    errors: usize,
    unlisted: usize,
}

impl Problems {
    pub(crate) fn error(&mut self, line: usize, message: impl Into<String>) {
        self.push(line, None, Severity::Error, message.into());
    }

    pub(crate) fn error_at(&mut self, line: usize, column: usize, message: impl Into<String>) {
        self.push(line, Some(column), Severity::Error, message.into());
    }

    pub(crate) fn warning(&mut self, line: usize, message: impl Into<String>) {
        self.push(line, None, Severity::Warning, message.into());
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    fn push(&mut self, line: usize, column: Option<usize>, severity: Severity, message: String) {
        if severity == Severity::Error {
            self.errors += 1;
        }
        if self.list.len() < MAX_PROBLEMS {
            self.list.push(Problem { line, column, severity, message });
        } else {
            self.unlisted += 1;
        }
    }

    /// Returns the problems by line. If there was an error, the list contains one, so that a list cut at its limit
    /// never looks like a valid file.
    pub(crate) fn into_sorted(mut self) -> Vec<Problem> {
        self.list.sort_by_key(|p| (p.line, p.column, p.severity));
        if self.unlisted > 0 {
            let last_line = self.list.last().map_or(1, |p| p.line);
            let severity = if self.errors > 0 { Severity::Error } else { Severity::Warning };
            let message = format!("{} more problems are not listed; mend these first", self.unlisted);
            self.list.push(Problem { line: last_line, column: None, severity, message });
        }
        self.list
    }
}
