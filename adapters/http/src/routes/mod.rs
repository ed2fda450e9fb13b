//! The routes by area. Each area returns its [`Endpoint`]s, and [`router`] serves all of them.

mod chats;
mod console;
mod inner;
mod keys;
mod mcp;
mod missing;
mod models;
mod openai;
mod organise;
mod page;
mod personas;
mod session;
mod system;
mod talk;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use schemars::JsonSchema;
use serde::Serialize;

use crate::endpoint::Endpoint;
use crate::guard::{self, Admission};
use crate::openapi;
use crate::problem::Problem;
use crate::web::Shared;

/// A list, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct List<T> {
    /// The items.
    pub(crate) items: Vec<T>,
    /// How many there are.
    pub(crate) total: usize,
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        Self { total: items.len(), items }
    }
}

/// What was done.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Done {
    /// The word for it.
    pub(crate) status: &'static str,
}

/// Returns every route.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let areas = [
        system::endpoints(),
        session::endpoints(),
        keys::endpoints(),
        mcp::endpoints(),
        openai::endpoints(),
        talk::endpoints(),
        chats::endpoints(),
        organise::endpoints(),
        inner::endpoints(),
        models::endpoints(),
        personas::endpoints(),
        missing::endpoints(),
        page::endpoints(),
        console::endpoints(),
    ];
    areas.into_iter().flatten().collect()
}

/// Returns the router of every route.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    let mut router: Router<Arc<Shared>> = Router::new();
    for endpoint in endpoints() {
        let admission = Admission { shared: shared.clone(), need: endpoint.need, body_bytes: endpoint.body_bytes };
        let mut handler = endpoint.handler.route_layer(from_fn_with_state(admission, guard::admit));
        if openai::speaks_openai(endpoint.path) {
            handler = handler.route_layer(axum::middleware::map_response(openai::errors_of_openai));
        }
        router = router.route(endpoint.path, handler);
    }
    router = router.route("/api/openapi.json", axum::routing::get(openapi::serve));
    router
        .fallback(async || Problem::not_found("address"))
        .method_not_allowed_fallback(async || {
            let detail = "This address does not answer to that method.";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", detail)
        })
        // `admit` has read the body already, within the limit of its endpoint.
        .layer(axum::extract::DefaultBodyLimit::disable())
        .layer(from_fn_with_state(shared.clone(), guard::outer))
        .with_state(shared.clone())
}
