use async_trait::async_trait;
use azera_types::{ChatId, PersonId};

use crate::{Choice, PlatformError};

/// A platform that can ask somebody who gave no command.
#[async_trait]
pub trait Questions: Send + Sync {
    /// Returns the person whom these words mention, such as `@ann:example.org`. They may be somebody who is not there.
    fn person_named(&self, words: &str) -> Option<PersonId>;

    /// Asks a person in a chat, with the commands that answer the question. Others who read the chat see it, too.
    ///
    /// # Errors
    /// The platform cannot be reached, or the bot may not write there.
    async fn ask(
        &self,
        chat: &ChatId,
        person: &PersonId,
        question: &str,
        choices: &[Choice],
    ) -> Result<(), PlatformError>;
}
