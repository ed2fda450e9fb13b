//! A session over a stream, such as stdio.

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Server;

/// Why a session over a stream ended.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The client did not begin as the protocol asks.
    #[error("the client did not begin a session: {0}")]
    Handshake(Box<dyn std::error::Error + Send + Sync>),
    /// The session broke.
    #[error("the session broke: {0}")]
    Broken(tokio::task::JoinError),
}

impl Server {
    /// Speaks until the client closes its side.
    ///
    /// # Errors
    /// The client does not speak the protocol.
    pub async fn serve<R, W>(self, input: R, output: W) -> Result<(), ServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let running = match ServiceExt::serve(self, (input, output)).await {
            Ok(running) => running,
            // The client left before it said anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Handshake(Box::new(error))),
        };
        running.waiting().await.map(drop).map_err(ServeError::Broken)
    }
}
