//! Accepts connections and speaks HTTP/1.1 on them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::connection::{Place, Places, TimedStream};
use crate::guard::Peer;
use crate::local_connection::Ends;

/// Most connections at once. Further ones wait.
const MAX_CONNECTIONS: usize = 2_048;

/// Longest time in which the head of a request must arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest head of a request.
const MAX_HEAD_BYTES: usize = 32 << 10;

/// Most header lines of a request.
const MAX_HEADERS: usize = 64;

/// How long running requests may take to end when the program stops.
const GRACE: Duration = Duration::from_secs(5);

/// Wait after the system refused a connection, such as for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` is cancelled, then lets running requests end.
pub(crate) async fn serve(listener: TcpListener, router: Router, places: Places, stop: CancellationToken) {
    let (graceful, free) = (GracefulShutdown::new(), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
    loop {
        let accepted = async {
            let free = free.clone().acquire_owned().await.ok();
            (free, listener.accept().await)
        };
        let (free, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => match places.take(peer.ip().to_canonical()) {
                Some(place) => connect(stream, peer, router.clone(), &graceful, (place, free)),
                None => tracing::debug!("an address has too many connections"),
            },
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were cut off by the shutdown");
    }
}

fn connect(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    graceful: &GracefulShutdown,
    held: (Place, Option<OwnedSemaphorePermit>),
) {
    // The pieces of a reply are small and must not wait for each other.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
    let local = stream.local_addr().ok();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer.ip().to_canonical()));
        if let Some(local) = local {
            request.extensions_mut().insert(Ends::new(peer, local));
        }
        router.clone().oneshot(request.map(axum::body::Body::new) as Request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(TimedStream::new(stream)), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
        drop(held);
    });
}
