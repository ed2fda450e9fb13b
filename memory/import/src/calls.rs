//! Calls of tools in a session: which commands they ran, and whether they worked.

use azera_types::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::commands::{Normal, normal};
use crate::outcome::worked;
use crate::{MAX_COMMAND_BYTES, RanCommand};

/// Most calls for one message; only the last ones are kept.
pub(crate) const MAX_CALLS: usize = 200;

/// Longest id of a call, in bytes.
const MAX_ID_BYTES: usize = 128;

/// Beginning of the names of tools that other servers offer. The program's own tools only read and write files.
const OF_SERVERS: &str = "mcp__";

/// A call of a tool, or its result.
#[derive(Debug, Deserialize)]
pub(crate) struct Call {
    id: Option<Value>,
    name: Option<Value>,
    input: Option<Value>,
    tool_use_id: Option<Value>,
    is_error: Option<Value>,
    content: Option<Value>,
}

/// The calls for one message.
#[derive(Default)]
pub(crate) struct Calls {
    begun: Vec<(RanCommand, bool)>,
}

impl Calls {
    /// Notes a call, if it ran a command or a tool of a server.
    pub(crate) fn begin(&mut self, call: Call, folder: Option<&str>, at: Option<Timestamp>) {
        let text = |value: Option<Value>| match value {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (Some(id), Some(name)) = (text(call.id), text(call.name)) else { return };
        let command = call.input.as_ref().and_then(|input| input.get("command")).and_then(Value::as_str);
        let form = match command {
            Some(command) if name == "Bash" => normal(command, folder),
            _ => tool_name(&name).map(|text| Normal { text, is_exact: true }),
        };
        let Some(Normal { text, is_exact }) = form.filter(|_| id.len() <= MAX_ID_BYTES) else { return };
        if self.begun.len() >= MAX_CALLS {
            self.begun.remove(0);
        }
        self.begun.push((RanCommand { id, text, worked: None, at }, is_exact));
    }

    /// Notes the result of a call. `details` is what the program notes besides.
    pub(crate) fn end(&mut self, result: &Call, details: Option<&Value>) {
        let Some(id) = result.tool_use_id.as_ref().and_then(Value::as_str) else { return };
        let Some((command, is_exact)) = self.begun.iter_mut().rev().find(|(command, _)| command.id == id) else {
            return;
        };
        let is_error = result.is_error.as_ref().and_then(Value::as_bool).unwrap_or(false);
        command.worked = worked(is_error, &output(result.content.as_ref()), details, *is_exact);
    }

    /// Returns the commands, and forgets them.
    pub(crate) fn take(&mut self) -> Vec<RanCommand> {
        std::mem::take(&mut self.begun).into_iter().map(|(command, _)| command).collect()
    }
}

/// Returns the text of a result.
fn output(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().filter_map(|block| block.get("text")).filter_map(Value::as_str);
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Returns the name of a tool of a server, if it is a plain name.
fn tool_name(name: &str) -> Option<String> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    (name.starts_with(OF_SERVERS) && is_plain && name.len() <= MAX_COMMAND_BYTES).then(|| name.to_owned())
}
