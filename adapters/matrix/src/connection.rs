//! The public asynchronous functions. They return boxed futures, so that their code is compiled once in this crate and
//! not in each binary that awaits them, which took minutes.

use std::sync::Arc;

use azera_adapter::Host;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::login::{LoginStatus, look_now};
use crate::matrix::Matrix;
use crate::{Error, Settings};

impl Matrix {
    /// Connects: logs in or restores the session, and reads the current state of the rooms.
    #[inline(never)]
    pub fn connect(settings: Settings) -> BoxFuture<'static, Result<Arc<Self>, Error>> {
        Box::pin(Self::connect_now(settings))
    }

    /// Reads the current state of the rooms. Call it before anything is delivered. Waits while the homeserver is
    /// unavailable.
    #[inline(never)]
    pub fn begin(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.begin_now())
    }

    /// Listens until `stop` is cancelled or the session ends.
    #[inline(never)]
    pub fn listen<'a>(
        self: &'a Arc<Self>,
        host: Arc<dyn Host>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.listen_until(host, stop))
    }
}

/// Checks that the address is a homeserver, and whether there is a session. Changes nothing.
#[inline(never)]
pub fn look(settings: &Settings) -> BoxFuture<'_, Result<LoginStatus, Error>> {
    Box::pin(look_now(settings))
}
