use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// Traces for operators who run an OpenTelemetry collector: how long the stages of a turn, background jobs and requests
/// take. They hold numbers and fixed words, and neither texts nor people.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// The address of the collector, which takes OTLP over HTTP. Nothing is sent without it.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:4318")]
    pub otlp: Option<String>,
}
