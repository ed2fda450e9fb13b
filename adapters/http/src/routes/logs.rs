//! The newest lines of the log, for owners.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::List;
use crate::accounts::Scope;
use crate::endpoint::{Endpoint, Need, Parameter, Params};
use crate::log::{LogLevel, LogLine};
use crate::problem::Problem;
use crate::web::Shared;

/// Most lines of an answer.
const MAX_LINES: usize = 100;

/// A line of the log.
#[derive(Debug, Serialize, JsonSchema)]
struct Line {
    /// When it was written (RFC 3339).
    timestamp: String,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    level: &'static str,
    /// The part of Azera that wrote it.
    target: String,
    /// What happened.
    message: String,
    /// Numbers, and the ids of what it is about.
    fields: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Choice {
    level: Option<String>,
    limit: Option<usize>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    const CHOICE: &[Parameter] = &[
        Parameter {
            name: "level",
            help: "Only lines that are at least as grave: error, warn, info, debug or trace.",
            required: false,
        },
        Parameter { name: "limit", help: "Most lines, up to 100.", required: false },
    ];
    let summary = "Show the newest lines of the log since the start, the newest last";
    vec![
        Endpoint::new(Method::GET, "/api/logs", Need::Scope(Scope::Admin), summary, show)
            .asks(CHOICE)
            .answers::<List<Line>>(),
    ]
}

impl From<LogLine> for Line {
    fn from(line: LogLine) -> Self {
        Self {
            timestamp: line.at.to_string(),
            level: line.level.name(),
            target: line.target,
            message: line.message,
            fields: line.fields.into_iter().collect(),
        }
    }
}

async fn show(
    State(shared): State<Arc<Shared>>,
    Params(choice): Params<Choice>,
) -> Result<axum::Json<List<Line>>, Problem> {
    let least = match choice.level.as_deref() {
        None | Some("") => LogLevel::Trace,
        Some(name) => {
            LogLevel::named(name).ok_or_else(|| Problem::invalid("`level` is error, warn, info, debug or trace."))?
        }
    };
    let lines = shared.operations()?.log(least, choice.limit.unwrap_or(MAX_LINES).min(MAX_LINES));
    Ok(axum::Json(lines.into_iter().map(Line::from).collect::<Vec<_>>().into()))
}
