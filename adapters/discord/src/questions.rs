//! Asks somebody who gave no command, with buttons below the question.

use async_trait::async_trait;
use azera_adapter::{Choice, PlatformError, Questions};
use azera_types::{ChatId, PersonId};
use serenity::all::{CreateAllowedMentions, CreateMessage, UserId};

use crate::commands::choices;
use crate::discord::Discord;
use crate::error::refusal;
use crate::id;

#[async_trait]
impl Questions for Discord {
    fn person_named(&self, words: &str) -> Option<PersonId> {
        let number = words.strip_prefix("<@").and_then(|rest| rest.strip_suffix('>')).unwrap_or(words);
        let number: u64 = number.strip_prefix('!').unwrap_or(number).parse().ok()?;
        if number == 0 { None } else { id::person(UserId::new(number)).ok() }
    }

    async fn ask(
        &self,
        chat: &ChatId,
        person: &PersonId,
        question: &str,
        answers: &[Choice],
    ) -> Result<(), PlatformError> {
        let (Some(channel), Some(user)) = (id::channel_of(chat), id::user_of(person)) else {
            return Err(PlatformError::Refused("that chat or person is not on Discord".to_owned()));
        };
        let message = CreateMessage::new()
            .content(format!("<@{user}>, {question}"))
            .components(choices(answers))
            .allowed_mentions(CreateAllowedMentions::new().users([user]));
        let sent = self.connected()?.http.send_message(channel, Vec::new(), &message).await;
        sent.map(drop).map_err(|error| refusal(&error))
    }
}
