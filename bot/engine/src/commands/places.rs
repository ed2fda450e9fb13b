//! What the operator changes in shared places without being there. Each change is a command of that place, so its rules, its
//! limits and its answer are the same.

use azera_adapter::{
    Access, AnswerMode, CommandAnswer, CommandLine, PlaceChange, PlaceChanged, Platform, SpokenReplies,
};
use azera_types::{ChatId, PersonId, PlaceKind, PlatformId, Text};

use super::CommandContext;
use crate::commands::Commands;
use crate::error::Error;

/// The name of the operator in the commands' context. No command here shows it.
const OPERATOR: &str = "operator";

impl Commands {
    /// Changes a shared place in the name of an operator, until a change is refused.
    pub(crate) async fn change_place(
        &self,
        operator: &PersonId,
        chat: &ChatId,
        changes: Vec<PlaceChange>,
    ) -> Result<PlaceChanged, Error> {
        let known = chat.clone();
        let row = self.services.blocking(move |memory| memory.chats().get(&known)).await?;
        let platform = row.filter(|row| row.imported.is_none()).ok_or(Error::NotAllowed)?.platform;
        let adapter = self.services.platform(&platform)?;
        let mut made = PlaceChanged { done: Vec::new(), refused: None };
        for change in changes {
            let line = CommandLine {
                chat: chat.clone(),
                person: operator.clone(),
                name: OPERATOR.to_owned(),
                text: Text::default(),
                about: None,
                picture: None,
            };
            let at = self.context_for_operator(&platform, adapter.as_ref(), &line).await?;
            let kind = kind_of(&change);
            let CommandAnswer { ok, text, .. } = self.make_change(&at, change).await?;
            if !ok {
                made.refused = Some(text);
                break;
            }
            tracing::info!(%chat, "the operator changed a place: {kind}");
            made.done.push(text);
        }
        Ok(made)
    }

    /// Loads the context of a shared place for the operator, who need not be there. A direct message is none of their
    /// business.
    async fn context_for_operator<'a>(
        &self,
        platform: &'a PlatformId,
        adapter: &'a dyn Platform,
        line: &'a CommandLine,
    ) -> Result<CommandContext<'a>, Error> {
        let place = adapter.place_for_all(&line.chat).await?.ok_or(Error::NotAllowed)?;
        if matches!(place.kind, PlaceKind::Dm(_)) {
            return Err(Error::NotAllowed);
        }
        let id = line.chat.clone();
        let chat = self.services.blocking(move |memory| memory.chats().get(&id)).await?.ok_or(Error::NotAllowed)?;
        let read_scope = self.access.read_scope(adapter, &place, &chat.persona).await?;
        let calendar = self.minds.calendar(&self.access, platform, &place.scope()).await?;
        Ok(CommandContext { platform, adapter, place, calendar, read_scope, chat, access: Access::Operator, line })
    }

    async fn make_change(&self, at: &CommandContext<'_>, change: PlaceChange) -> Result<CommandAnswer, Error> {
        match change {
            PlaceChange::Persona(name) => self.persona_command(at, &format!("use {name}")).await,
            PlaceChange::Invited(name, true) => self.persona_command(at, &format!("invite {name}")).await,
            PlaceChange::Invited(name, false) => self.persona_command(at, &format!("dismiss {name}")).await,
            PlaceChange::Answers(mode) => self.answer_command(at, word_of(mode)).await,
            PlaceChange::Journal(true) => self.journal_command(at, "channel here").await,
            PlaceChange::Journal(false) => self.journal_command(at, "channel off").await,
            PlaceChange::Spoken(SpokenReplies::Auto) => self.voice_replies(at, "auto").await,
            PlaceChange::Spoken(SpokenReplies::Always) => self.voice_replies(at, "always").await,
            PlaceChange::Spoken(SpokenReplies::Never) => self.voice_replies(at, "never").await,
        }
    }
}

fn word_of(mode: AnswerMode) -> &'static str {
    match mode {
        AnswerMode::Addressed => "addressed",
        AnswerMode::Always => "always",
        AnswerMode::Never => "never",
    }
}

/// Returns what changes, for the log.
fn kind_of(change: &PlaceChange) -> &'static str {
    match change {
        PlaceChange::Persona(_) => "who answers",
        PlaceChange::Invited(..) => "who answers when called",
        PlaceChange::Answers(_) => "when a persona answers",
        PlaceChange::Journal(_) => "where the journal is posted",
        PlaceChange::Spoken(_) => "when replies are spoken",
    }
}
