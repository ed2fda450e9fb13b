//! What commands of this machine ask of the `azera mcp` that has the data folder.

use std::time::Duration;

use anyhow::{Context, bail};
use azera_adapter_mcp::Link;
use azera_config::Config;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use super::Speaker;
use super::guests::join;
use crate::cli::Viewer;

/// Longest wait. A coding session does not wait longer for its beginning.
const PATIENCE: Duration = Duration::from_secs(20);

/// The version of the protocol that is spoken.
const VERSION: &str = "2025-06-18";

/// The id of the question.
const ASKED: u64 = 1;

/// Returns what is remembered of a project for the start of a session; `None` if no `azera mcp` has the data folder.
///
/// # Errors
///
/// Fails if it does not speak for this person, or does not answer.
pub async fn project_context(
    config: &Config,
    viewer: &Viewer,
    project: &str,
    tokens: usize,
) -> anyhow::Result<Option<String>> {
    let asking = async {
        let Some(link) = join(&config.data_dir()?, &Speaker::of(config, viewer)).await? else { return Ok(None) };
        ask(link, &json!({"name": "context_budget", "arguments": {"project": project, "tokens": tokens}}))
            .await
            .map(Some)
    };
    let answer =
        timeout(PATIENCE, asking).await.context("the `azera mcp` that has the data folder does not answer")??;
    // It refuses a project of which nothing is known.
    let text = |answer: Value| answer.pointer("/structuredContent/text").and_then(Value::as_str).map(str::to_owned);
    Ok(answer.map(|answer| text(answer).unwrap_or_default()))
}

/// Calls a tool.
async fn ask(link: Link, call: &Value) -> anyhow::Result<Value> {
    let (mut output, mut heard) = (link.output, BufReader::new(link.input).lines());
    let client = json!({"name": "azera", "version": env!("CARGO_PKG_VERSION")});
    let begin = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client});
    for message in [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": ASKED, "method": "tools/call", "params": call}),
    ] {
        output.write_all(format!("{message}\n").as_bytes()).await?;
    }
    while let Some(line) = heard.next_line().await? {
        let mut message: Value = serde_json::from_str(&line)?;
        if message.get("id").and_then(Value::as_u64) == Some(ASKED) {
            return message.get_mut("result").map(Value::take).context("the `azera mcp` that has the folder refuses");
        }
    }
    bail!("the `azera mcp` that had the data folder ended before it answered")
}
