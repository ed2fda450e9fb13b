//! What is called from outside. Boxed here, so that what it is made of is compiled with this crate once: otherwise each binary
//! that awaits it compiles it again, which took minutes.

use std::sync::Arc;

use azera_adapter::Host;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::login::{LoginStatus, look_now};
use crate::matrix::Matrix;
use crate::{Error, Settings};

impl Matrix {
    /// Connects: logs in or takes up the session, and learns the present state of the rooms.
    #[inline(never)]
    pub fn connect(settings: Settings) -> BoxFuture<'static, Result<Arc<Self>, Error>> {
        Box::pin(Self::connect_now(settings))
    }

    /// Learns the present state of the rooms. To be done before anything is delivered; waits for a homeserver that is away.
    #[inline(never)]
    pub fn begin(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.begin_now())
    }

    /// Listens until `stop` is cancelled, or the session ends.
    #[inline(never)]
    pub fn listen<'a>(
        self: &'a Arc<Self>,
        host: Arc<dyn Host>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.listen_until(host, stop))
    }
}

/// Asks a homeserver whether it is one, and looks whether there is a session. Nothing is changed.
#[inline(never)]
pub fn look(settings: &Settings) -> BoxFuture<'_, Result<LoginStatus, Error>> {
    Box::pin(look_now(settings))
}
