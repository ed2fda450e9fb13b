//! The plain chat page and the page of the interface: files without a build step. The plain page is served where the console
//! was not built.

use axum::http::{HeaderMap, Method, header};
use axum::response::IntoResponse;

use super::console;
use crate::endpoint::{Endpoint, Need};

/// A file of the pages.
struct Page {
    path: &'static str,
    summary: &'static str,
    media_type: &'static str,
    content: &'static str,
}

pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

const PAGES: [Page; 6] = [
    Page {
        path: "/",
        summary: "The console, or a plain chat page",
        media_type: HTML,
        content: include_str!("../../page/index.html"),
    },
    Page {
        path: "/page.js",
        summary: "The plain page's script",
        media_type: SCRIPT,
        content: include_str!("../../page/page.js"),
    },
    Page {
        path: "/markdown.js",
        summary: "The script that shows Markdown on the plain page",
        media_type: SCRIPT,
        content: include_str!("../../page/markdown.js"),
    },
    Page {
        path: "/page.css",
        summary: "The pages' style sheet",
        media_type: STYLE,
        content: include_str!("../../page/page.css"),
    },
    Page {
        path: "/api/docs",
        summary: "A page that shows this description",
        media_type: HTML,
        content: include_str!("../../page/docs.html"),
    },
    Page {
        path: "/docs.js",
        summary: "That page's script",
        media_type: SCRIPT,
        content: include_str!("../../page/docs.js"),
    },
];

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoint = |page: Page| {
        let Page { path, summary, media_type, content } = page;
        let headers = [(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "no-cache")];
        let answer = async move |asked: HeaderMap| {
            let built = (path == "/").then(|| console::index(&asked)).flatten();
            built.unwrap_or_else(|| (headers, content).into_response())
        };
        Endpoint::new(Method::GET, path, Need::Public, summary, answer).sends(media_type, "The file.")
    };
    PAGES.into_iter().map(endpoint).collect()
}
