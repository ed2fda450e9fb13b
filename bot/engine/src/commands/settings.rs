//! `/settings` and `/notes`: the settings of a chat, and the persona's working notes of it.

use azera_adapter::CommandAnswer;
use azera_affect::{helped_countries, helps_in};
use azera_memory::persona_file;

use super::mind::may_configure_place;
use super::{CommandContext, done, refused};
use crate::background::Background;
use crate::commands::Commands;
use crate::error::Error;
use crate::overrides::NO_COUNTRY;
use crate::zones;

/// The word for the installation's locale.
const DEFAULT: &str = "default";

impl Commands {
    pub(super) async fn settings_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let mut words = arguments.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (None, ..) => self.show_settings(at).await,
            (Some("locale"), None, _) => {
                let lines = self.help_lines(at).await?;
                let known: Vec<String> = helped_countries().map(|(code, name)| format!("{name} ({code})")).collect();
                Ok(done(format!(
                    "People in danger are shown {lines} here. `/settings locale LOCALE` changes that, as in `/settings locale en-GB`; \
                     `/settings locale {NO_COUNTRY}` shows an international directory, and `/settings locale {DEFAULT}` follows \
                     the configuration. I know the help lines of {}.",
                    known.join(", ")
                )))
            }
            (Some("locale"), Some(locale), None) => self.set_locale(at, locale).await,
            _ => Ok(refused("`/settings`, `/settings locale` or `/settings locale LOCALE`.".into())),
        }
    }

    /// Describes whose help lines are shown in a place.
    async fn help_lines(&self, at: &CommandContext<'_>) -> Result<String, Error> {
        let overrides = self.overrides_of(at).await?;
        let country = overrides.locale(self.services.config.locale.as_deref()).and_then(helps_in);
        Ok(country.map_or_else(
            || "where there are help lines in any country".to_owned(),
            |country| format!("the help lines of {country}"),
        ))
    }

    async fn set_locale(&self, at: &CommandContext<'_>, locale: &str) -> Result<CommandAnswer, Error> {
        if !may_configure_place(at) {
            return Ok(refused("Only admins can choose the help lines of a shared place.".into()));
        }
        let chosen = (locale != DEFAULT).then(|| locale.to_owned());
        if locale != DEFAULT && locale != NO_COUNTRY && helps_in(locale).is_none() {
            return Ok(refused(
                "I know no help lines for that country; `/settings locale` lists those that I know.".into(),
            ));
        }
        let changed =
            self.minds.change_overrides(at.platform, &at.place.scope(), |saved| saved.locale = chosen).await?;
        Ok(match changed {
            Ok(()) => done(format!("People in danger are shown {} here from now on.", self.help_lines(at).await?)),
            Err(why) => refused(format!("Nothing was changed: {why}.")),
        })
    }

    /// Shows the settings of this place, and the commands that change them.
    async fn show_settings(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let persona = self.services.persona(at.place.shared_realm(), &at.chat.persona).await?.persona;
        let answering = self.services.config.answering_in(&at.place, at.chat.answering);
        let home = Background::home(at.platform, &at.place, &at.chat.persona);
        let journal = match self.background.journal_of(&home).await? {
            Some(chat) if chat == at.chat.id => "here",
            Some(_) => "in another channel",
            None => "nowhere",
        };
        let mut text = format!(
            "- {} answers here (`{}`): `/persona use NAME`\n- I answer {}: `/answer`\n- {}: `/voice replies`\n- Dreams and journal \
             entries are posted {journal}: `/journal channel here`\n- {} answers: `/model`\n",
            persona.name,
            persona_file(&at.chat.persona),
            super::chat::when(answering),
            self.spoken_replies(at).trim_end_matches('.'),
            self.services.model().info().name,
        );
        let invited = self.access.invited_here(&at.place, &at.chat).await?;
        if !invited.is_empty() {
            let names: Vec<&str> = invited.iter().map(|(_, loaded)| loaded.persona.name.as_str()).collect();
            text.push_str(&format!("- Called by name, {} answers, too: `/persona invite NAME`\n", names.join(" or ")));
        }
        text.push_str(&format!("- People in danger are shown {}: `/settings locale`\n", self.help_lines(at).await?));
        // Where many people read, only admins see these.
        if may_configure_place(at) {
            let overrides = self.overrides_of(at).await?;
            let saved = overrides.saved.clone().unwrap_or_default();
            let (own, off, tuned) = (saved.rules.own.len(), saved.rules.off.len(), saved.tuned.len());
            text.push_str(&format!(
                "- Rules of this place: {own} added, {off} removed: `/rules list`\n- Numbers of my mind that differ here: {tuned}: \
                 `/tune`\n"
            ));
        }
        Ok(done(text))
    }

    /// Shows the working notes of the chat, if everybody who reads here may read their sources.
    pub(super) async fn notes_command(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let (read_scope, chat) = (at.read_scope.clone(), at.chat.id.clone());
        Ok(done(match self.services.blocking(move |memory| memory.writings().notes(&read_scope, &chat)).await? {
            Some(notes) => {
                let when = zones::minute(notes.at, &at.calendar.zone);
                format!("My working notes of this chat, written {when}:\n\n{}", notes.text.as_str())
            }
            None => "I have no notes of this chat that may be shown here; I take some when it has gone on for a while."
                .into(),
        }))
    }
}
