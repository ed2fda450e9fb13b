//! Answers to commands: how they are shown in a room, in words, as files, and as pictures of their numbers.

use azera_adapter::{AnswerFile, Chart, Choice, CommandAnswer, CommandLine, GivenPicture, Host};
use azera_types::{ChatId, MessageId, Part, Text};
use matrix_sdk::ruma::TransactionId;

use crate::content::transaction;
use crate::events::Said;
use crate::ids::{message_id, person_id, place_of};
use crate::markdown::{PART_BYTES, parts};
use crate::{Error, Matrix};

/// Most messages of an answer; a longer one is sent as a file.
const MAX_PARTS: usize = 4;

/// The name of a picture of numbers.
const CHART: &str = "azera.png";

/// Returns the picture of a chart; `None` if it cannot be drawn.
async fn drawn(chart: Chart) -> Option<Vec<u8>> {
    match tokio::task::spawn_blocking(move || azera_charts::draw(&chart)).await.ok()? {
        Ok(picture) => Some(picture),
        Err(error) => {
            tracing::error!(%error, "cannot draw a chart; answering without it");
            None
        }
    }
}

impl Matrix {
    /// Runs a command. The text of its answer names what people can type next.
    pub(crate) async fn ask(
        &self,
        host: &dyn Host,
        said: &Said,
        chat: ChatId,
        line: String,
        (about, picture): (Option<MessageId>, Option<GivenPicture>),
    ) -> CommandAnswer {
        let Ok(person) = person_id(&said.by) else { return CommandAnswer::default() };
        let name = self.name_in(said).await;
        // A file in it is limited where it is read.
        let line = CommandLine { chat, person, name, text: Text::uncut(line), about, picture };
        match host.command(&self.id, line).await {
            Ok(mut answer) => {
                if !answer.choices.is_empty() {
                    answer.text.push_str(&self.choices_in(said, &answer.choices).await);
                } else if let Some((room, _)) = answer.go_to.as_ref().and_then(place_of) {
                    let newest = self.succession.newest(&room);
                    answer.text.push_str(&format!("\n\nhttps://matrix.to/#/{newest}"));
                }
                answer
            }
            Err(error) => {
                tracing::warn!(%error, "a command failed");
                CommandAnswer { text: error.in_words(), ..CommandAnswer::default() }
            }
        }
    }

    /// Returns the suggested commands as people type them there; empty in a direct chat, where a slash works.
    async fn choices_in(&self, said: &Said, choices: &[Choice]) -> String {
        let Some(room) = self.room_of(said) else { return String::new() };
        if self.audience.is_direct(&room).await.unwrap_or(false) {
            return String::new();
        }
        let prefix = self.prefix_in(&room).await;
        let line = |choice: &Choice| {
            format!("`{prefix} {}` ({})", choice.line.trim_start_matches('/'), choice.label.to_lowercase())
        };
        format!("\n\nIn this room: {}.", choices.iter().map(line).collect::<Vec<_>>().join(", "))
    }

    /// Sends the answer to a command: a picture of its numbers with its words, or its words alone; and its files.
    pub(crate) async fn show(&self, chat: &ChatId, to: Option<&Said>, mut answer: CommandAnswer) -> Result<(), Error> {
        let drawn = match answer.chart.take() {
            Some(chart) => drawn(chart).await,
            None => None,
        };
        let words = answer.text.replace(['`', '*'], "");
        let words = words.trim();
        match drawn {
            Some(picture) if parts(words, PART_BYTES).len() == 1 => {
                self.send_chart(chat, to, words, &picture).await?;
            }
            // So many words do not fit below a picture.
            Some(picture) => {
                self.tell(chat, to, &answer.text).await?;
                self.send_chart(chat, None, CHART, &picture).await?;
            }
            None => self.tell(chat, to, &answer.text).await?,
        }
        self.send_files(chat, &answer.files).await
    }

    /// Sends the picture of a chart with words that say the same.
    async fn send_chart(&self, chat: &ChatId, to: Option<&Said>, words: &str, picture: &[u8]) -> Result<(), Error> {
        let about = to.map(|said| message_id(&said.event)).transpose()?;
        let id = match &about {
            Some(about) => transaction("chart", about, 0),
            None => TransactionId::new(),
        };
        let part = Part::new(CHART, Some("image/png"), picture.len() as u64);
        let part = Part { alt: Some(words.into()), ..part };
        self.replies.file(chat, about.as_ref(), &part, picture, &id).await
    }

    /// Sends words in answer to a command, unless they are empty.
    pub(crate) async fn tell(&self, chat: &ChatId, to: Option<&Said>, text: &str) -> Result<(), Error> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let about = to.map(|said| message_id(&said.event)).transpose()?;
        let id = match &about {
            Some(about) => transaction("command", about, 0),
            None => TransactionId::new(),
        };
        if parts(text, PART_BYTES).len() > MAX_PARTS {
            let name = if text.starts_with(['{', '[']) { "answer.json" } else { "answer.md" };
            let part = Part::new(name, Some("text/plain"), text.len() as u64);
            return self.replies.file(chat, about.as_ref(), &part, text.as_bytes(), &id).await;
        }
        self.replies.notice(chat, about.as_ref(), text, &id).await
    }

    /// Sends the files of an answer.
    async fn send_files(&self, chat: &ChatId, files: &[AnswerFile]) -> Result<(), Error> {
        for file in files {
            self.replies.file(chat, None, &file.part, &file.content.0, &TransactionId::new()).await?;
        }
        Ok(())
    }
}
