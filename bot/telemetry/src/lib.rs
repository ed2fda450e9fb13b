//! Sends Azera's spans to an OpenTelemetry collector, as OTLP over HTTP with JSON. Begin with [`telemetry`].
//!
//! [`SpanLayer`] records the spans of Azera's own code, [`Exporter`] sends them in batches. Events, which are the log, are
//! not sent.
//!
//! Invariants:
//! - Attributes are numbers, and words from a fixed list of fields. Ids of people, chats and messages never leave, and
//!   neither do texts.
//! - Nobody waits for the collector. Spans that it does not take in time are dropped and counted.

mod exporter;
mod layer;
mod span;

use thiserror::Error;
use tokio::sync::mpsc;

pub use exporter::Exporter;
pub use layer::SpanLayer;

/// Most finished spans that wait to be sent.
const MAX_WAITING: usize = 4_096;

/// Why spans cannot be sent.
#[derive(Debug, Error)]
pub enum Error {
    /// The address is not one that can be sent to.
    #[error("{0:?} is no address of a collector, such as http://127.0.0.1:4318")]
    Address(String),
    /// The client cannot be made.
    #[error("no client for the collector: {0}")]
    Client(String),
}

/// Returns what records spans, and what sends them to the collector at `address` (`http://127.0.0.1:4318`). `version` is that
/// of the program.
///
/// # Errors
/// The address is no address of a server.
pub fn telemetry(address: &str, version: &str) -> Result<(SpanLayer, Exporter), Error> {
    let (sender, waiting) = mpsc::channel(MAX_WAITING);
    let layer = SpanLayer::new(sender);
    let exporter = Exporter::new(address, version, waiting, layer.dropped())?;
    Ok((layer, exporter))
}
