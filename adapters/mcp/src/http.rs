//! One request of streamable HTTP. There are no sessions: each request carries its key, and is answered on its own.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::Server;

impl Server {
    /// Answers a request. The caller has checked host, origin and key before, and limits the body.
    pub async fn answer(self, request: Request) -> Response {
        // Host and origin are the web's business; the web also stops all connections at its end.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_legacy_session_mode(false)
            .with_json_response(true);
        let service =
            StreamableHttpService::new(move || Ok(self.clone()), Arc::new(NeverSessionManager::default()), config);
        service.handle(request).await.map(Body::new)
    }
}
