//! Health, readiness and measurements.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::endpoint::{Endpoint, Need};
use crate::problem::Problem;
use crate::web::Shared;

/// The service's name for clients.
const SERVICE: &str = "azera-core";

/// The media type of Prometheus' text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The server runs.
#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The version of Azera.
    version: &'static str,
    /// Always `azera-core`.
    service: &'static str,
}

/// Azera can answer people.
#[derive(Debug, Serialize, JsonSchema)]
struct Ready {
    /// Always `ready`.
    status: &'static str,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/health", Need::Public, "Tell whether the server runs", health).answers::<Health>(),
        Endpoint::new(Method::GET, "/ready", Need::Public, "Tell whether Azera can answer people", ready)
            .answers::<Ready>()
            .also(&[(503, "It cannot. The body says why.")]),
        Endpoint::new(
            Method::GET,
            "/metrics",
            Need::LocalOrAdmin,
            "Measurements for Prometheus. Requests from this machine need no key",
            metrics,
        )
        .sends("text/plain", "Prometheus' text format, version 0.0.4."),
    ]
}

async fn health(State(shared): State<Arc<Shared>>) -> axum::Json<Health> {
    axum::Json(Health { status: "ok", version: shared.settings.version, service: SERVICE })
}

async fn ready(State(shared): State<Arc<Shared>>) -> Result<axum::Json<Ready>, Problem> {
    shared.host()?;
    match shared.operations()?.trouble().await {
        None => Ok(axum::Json(Ready { status: "ready" })),
        Some(trouble) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", trouble)),
    }
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Result<Response, Problem> {
    let text = shared.operations()?.metrics().await.map_err(|error| Problem::internal(&error))?;
    Ok(([(header::CONTENT_TYPE, PROMETHEUS)], text).into_response())
}
