//! Why a tool did not do what it was asked, in words that a model can act on.

use azera_adapter::HostError;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use serde_json::json;
use thiserror::Error;

/// Why a call failed.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The arguments are wrong; other arguments may work.
    #[error("{0}")]
    Invalid(String),
    /// The engine refuses, or there is no such thing.
    #[error("{0}")]
    Refused(String),
    /// The engine failed.
    #[error("{}", .0.in_words())]
    Engine(HostError),
    /// The client cancelled the call.
    #[error("The call was cancelled.")]
    Cancelled,
}

impl Failure {
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::Invalid(detail.into())
    }

    pub(crate) fn refused(detail: impl Into<String>) -> Self {
        Self::Refused(detail.into())
    }

    /// Returns the failure as the result of a tool, which the model reads.
    pub(crate) fn result(&self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(self.to_string())])
    }

    /// Returns the failure as an error of the protocol, for requests that no model makes.
    pub(crate) fn protocol_error(&self) -> ErrorData {
        match self {
            Self::Invalid(_) => ErrorData::invalid_params(self.to_string(), None),
            Self::Refused(_) => ErrorData::resource_not_found(self.to_string(), None),
            Self::Engine(_) | Self::Cancelled => ErrorData::internal_error(self.to_string(), None),
        }
    }

    /// Returns the failure to read a resource as an error of the protocol, which names the resource.
    pub(crate) fn resource_error(&self, uri: &str) -> ErrorData {
        let mut error = self.protocol_error();
        error.data = Some(json!({"uri": uri}));
        error
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        if matches!(error, HostError::Unavailable(_) | HostError::Storage(_) | HostError::Internal(_)) {
            tracing::warn!(%error, "a call over MCP failed");
        }
        Self::Engine(error)
    }
}
