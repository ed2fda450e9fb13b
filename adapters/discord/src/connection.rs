//! The public asynchronous functions. They return boxed futures, so that their code is compiled once in this crate and
//! not in each binary that awaits them.

use std::sync::Arc;

use azera_adapter::Host;
use futures::future::BoxFuture;

use crate::application::{Application, application_now};
use crate::discord::Discord;
use crate::{Error, Settings};

impl Discord {
    /// Connects, and waits until Discord has described the bot's servers. Retries while Discord is unreachable.
    ///
    /// # Errors
    ///
    /// [`Error::Token`] if Discord does not know the token; other errors if it refuses the bot.
    #[inline(never)]
    pub fn begin(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.begin_now())
    }

    /// Passes events to the engine until [`Discord::leave`] is called or Discord closes the connection for good.
    ///
    /// # Errors
    ///
    /// The reason why Discord closed the connection.
    #[inline(never)]
    pub fn listen(&self, host: Arc<dyn Host>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.listen_until_closed(host))
    }
}

/// Asks Discord for the application of a token.
///
/// # Errors
///
/// [`Error::Token`] if Discord does not know the token; [`Error::Unreachable`] if Discord cannot be reached.
#[inline(never)]
pub fn application(settings: &Settings) -> BoxFuture<'_, Result<Application, Error>> {
    Box::pin(application_now(settings))
}
