//! A command of a coding session, as its message keeps it.

use azera_types::{Text, Timestamp};
use serde::{Deserialize, Serialize};

/// A command that a coding assistant ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanCommand {
    /// The id of the call, the same in every export of its session.
    pub id: String,
    /// The command in the form of the importer, without secrets.
    pub text: Text,
    /// Whether it worked; `None` if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worked: Option<bool>,
    /// When it was run.
    pub at: Timestamp,
}
