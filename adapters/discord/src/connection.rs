//! What is called from outside. Boxed here, so that what it is made of is compiled with this crate once: otherwise each binary
//! that awaits it compiles it again.

use std::sync::Arc;

use azera_adapter::Host;
use futures::future::BoxFuture;

use crate::application::{Application, application_now};
use crate::discord::Discord;
use crate::{Error, Settings};

impl Discord {
    /// Connects, and waits until Discord has described the servers the bot is in. Where Discord is away it is tried again
    /// until it is there.
    ///
    /// # Errors
    /// [`Error::Token`] if Discord does not know the token; others if it refuses the bot.
    #[inline(never)]
    pub fn begin(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.begin_now())
    }

    /// Tells the core what happens, until [`Discord::leave`] is called or Discord closes the connection for good.
    ///
    /// # Errors
    /// Why Discord closed it.
    #[inline(never)]
    pub fn listen(&self, host: Arc<dyn Host>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.listen_until_closed(host))
    }
}

/// Asks Discord about the bot of a token.
///
/// # Errors
/// [`Error::Token`] if Discord does not know the token, [`Error::Unreachable`] if it cannot be asked now.
#[inline(never)]
pub fn application(settings: &Settings) -> BoxFuture<'_, Result<Application, Error>> {
    Box::pin(application_now(settings))
}
