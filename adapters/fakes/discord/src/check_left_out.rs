//! Replaces `check` in a build without the feature `openapi`, which needs a JSON schema validator.

use std::path::Path;

use serde_json::Value;

/// Discord's API description, which this build does not have.
pub(crate) enum Description {}

impl Description {
    pub(crate) fn read(path: &Path) -> Self {
        panic!("to check requests against {}, build with the feature azera-fake-discord/openapi", path.display())
    }

    pub(crate) fn problem(
        &self,
        _method: &str,
        _path: &str,
        _query: &[(String, String)],
        _body: Option<&Value>,
    ) -> Option<String> {
        match *self {}
    }
}
