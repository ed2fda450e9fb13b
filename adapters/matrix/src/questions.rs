//! Asks somebody who gave no command, and names the commands that answer.

use async_trait::async_trait;
use azera_adapter::{Choice, PlatformError, Questions};
use azera_types::{ChatId, PersonId};
use matrix_sdk::ruma::UserId;

use crate::ids::{person_id, place_of, user_of};
use crate::{Error, Matrix};

/// What an address of a person begins with.
const ADDRESS: &str = "https://matrix.to/#/";

#[async_trait]
impl Questions for Matrix {
    fn person_named(&self, words: &str) -> Option<PersonId> {
        person_id(&UserId::parse(words.strip_prefix(ADDRESS).unwrap_or(words)).ok()?).ok()
    }

    async fn ask(
        &self,
        chat: &ChatId,
        person: &PersonId,
        question: &str,
        choices: &[Choice],
    ) -> Result<(), PlatformError> {
        let nowhere = || PlatformError::Refused("that chat or person is not on Matrix".to_owned());
        let (Some((room, _)), Some(user)) = (place_of(chat), user_of(person)) else { return Err(nowhere()) };
        let room = self.client.get_room(&room).ok_or_else(nowhere)?;
        let prefix = self.prefix_in(&room).await;
        let line = |choice: &Choice| {
            format!("- `{prefix} {}`: {}", choice.line.trim_start_matches('/'), choice.label.to_lowercase())
        };
        let lines: Vec<String> = choices.iter().map(line).collect();
        let text = format!("{user}, {question}\n\n{}", lines.join("\n"));
        let sent: Result<(), Error> = self.replies.question(chat, &user, &text).await;
        Ok(sent?)
    }
}
