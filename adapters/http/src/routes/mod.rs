//! The routes by area. Each area returns its [`Endpoint`]s, and [`router`] serves all of them.

mod backups;
mod chats;
mod console;
mod drawing;
mod events;
mod form;
mod grants;
mod graph;
mod images;
mod inner;
mod keys;
mod known;
mod local;
mod logs;
mod mcp;
mod models;
mod mood;
mod oauth;
pub(crate) mod openai;
mod organise;
mod page;
mod personas;
mod picture_wish;
mod places;
mod session;
mod speech;
mod system;
mod talk;
mod tokens;
mod voice;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::{Endpoint, Parameter};
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

/// A part of a list.
#[derive(Deserialize)]
pub(crate) struct Page {
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

impl Page {
    /// The parameters of a query that name a part.
    pub(crate) const ASKS: &[Parameter] = &[
        Parameter { name: "offset", help: "How many to leave out at the beginning.", required: false },
        Parameter { name: "limit", help: "How many to show; all without it.", required: false },
    ];

    /// Returns the part of a whole list. The total stays that of the whole.
    pub(crate) fn of<T>(&self, all: Vec<T>) -> List<T> {
        let total = all.len();
        let items = all.into_iter().skip(self.offset).take(self.limit.unwrap_or(usize::MAX)).collect();
        List { items, total }
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
        local::endpoints(),
        tokens::endpoints(),
        grants::endpoints(),
        oauth::endpoints(),
        mcp::endpoints(),
        openai::endpoints(),
        talk::endpoints(),
        voice::endpoints(),
        chats::endpoints(),
        organise::endpoints(),
        inner::endpoints(),
        known::endpoints(),
        graph::endpoints(),
        models::endpoints(),
        personas::endpoints(),
        mood::endpoints(),
        drawing::endpoints(),
        images::endpoints(),
        speech::endpoints(),
        places::endpoints(),
        backups::endpoints(),
        logs::endpoints(),
        events::endpoints(),
        page::endpoints(),
        console::endpoints(),
    ];
    areas.into_iter().flatten().collect()
}

/// Returns the router of every route.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    let mut router: Router<Arc<Shared>> = Router::new();
    for endpoint in endpoints() {
        let (shared, path) = (shared.clone(), endpoint.path);
        let admission = Admission { shared, path, need: endpoint.need, body_bytes: endpoint.body_bytes };
        let handler = endpoint.handler.route_layer(from_fn_with_state(admission, guard::admit));
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
