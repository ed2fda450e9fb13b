//! `/settings` and `/notes`: how things are set in a chat, and what the persona noted of it.

use azera_adapter::CommandAnswer;
use azera_memory::persona_file;

use super::mind::keeps_the_place;
use super::{Setting, done};
use crate::azera::Azera;
use crate::error::Error;

impl Azera {
    /// How things are set here, and which command sets them.
    pub(super) async fn settings_command(&self, at: &Setting<'_>) -> Result<CommandAnswer, Error> {
        let persona = self.persona(at.place.shared_realm(), &at.chat.persona).await?.persona;
        let answering = at.chat.answering.unwrap_or(self.0.config.answering);
        let home = Self::home(at.platform, &at.place, &at.chat.persona);
        let journal = match self.journal_of(&home).await? {
            Some(chat) if chat == at.chat.id => "here",
            Some(_) => "in another channel",
            None => "nowhere",
        };
        let mut text = format!(
            "- {} answers here (`{}`): `/persona use NAME`\n- I answer {}: `/answer`\n- Dreams and journal entries are posted \
             {journal}: `/journal channel here`\n- {} answers: `/model`\n",
            persona.name,
            persona_file(&at.chat.persona),
            super::chat::when(answering),
            self.model().info().name,
        );
        let invited = self.invited_here(&at.place, &at.chat).await?;
        if !invited.is_empty() {
            let names: Vec<&str> = invited.iter().map(|(_, played)| played.persona.name.as_str()).collect();
            text.push_str(&format!("- Called by name, {} answers, too: `/persona invite NAME`\n", names.join(" or ")));
        }
        // In a place of many these are the admins'.
        if keeps_the_place(at) {
            let customs = self.customs_of(at).await?;
            let saved = customs.saved.clone().unwrap_or_default();
            let (own, off, tuned) = (saved.rules.own.len(), saved.rules.off.len(), saved.tuned.len());
            text.push_str(&format!(
                "- Rules of this place: {own} added, {off} taken out: `/rules list`\n- Numbers of my inner life that are others here: \
                 {tuned}: `/tune`\n"
            ));
        }
        Ok(done(text))
    }

    /// The working notes of the chat, where everybody who reads here may read what they were made of.
    pub(super) async fn notes_command(&self, at: &Setting<'_>) -> Result<CommandAnswer, Error> {
        let (right, chat) = (at.right.clone(), at.chat.id.clone());
        Ok(done(match self.blocking(move |memory| memory.notes(&right, &chat)).await? {
            Some(notes) => {
                let when = notes.at.strftime("%F %H:%M UTC");
                format!("My working notes of this chat, written {when}:\n\n{}", notes.text.as_str())
            }
            None => "I have no notes of this chat that may be shown here; I take some when it has gone on for a while."
                .into(),
        }))
    }
}
