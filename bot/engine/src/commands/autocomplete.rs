//! Autocomplete: suggestions for a command that somebody is typing.

use azera_adapter::{
    AutocompleteOption, AutocompleteRequest, CommandLine, MAX_AUTOCOMPLETE_OPTIONS, OptionKind, Theme,
};
use azera_memory::shortened;
use azera_types::{PlatformId, Text, composed};

use super::CommandContext;
use crate::commands::Commands;
use crate::error::Error;

/// Newest memories suggested.
const LOOKED_AT: usize = 100;

/// Maximum number of characters shown of a memory.
const PREVIEW_CHARS: usize = 80;

impl Commands {
    /// Returns the matching suggestions that may be shown to the person there.
    pub(crate) async fn autocomplete_options(
        &self,
        platform: &PlatformId,
        line: AutocompleteRequest,
    ) -> Result<Vec<AutocompleteOption>, Error> {
        let adapter = self.services.platform(platform)?;
        let command_line = CommandLine {
            chat: line.chat,
            person: line.person,
            name: line.name,
            text: Text::default(),
            about: None,
            picture: None,
        };
        let at = match self.load_command_context(platform, adapter.as_ref(), &command_line).await {
            Ok(at) => at,
            Err(Error::NotAllowed) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut options = match line.kind {
            OptionKind::Persona => self.persona_options(&at).await?,
            OptionKind::Model => self.model_options(),
            OptionKind::Branch => self.branch_options(&at).await?,
            OptionKind::Memory => self.memory_options(&at).await?,
            OptionKind::Theme => themes(),
            OptionKind::PictureModel => named(self.pictures.choices().await.models),
            OptionKind::Sampler => named(self.pictures.choices().await.samplers),
            OptionKind::Voice => self.voice_options(&at).await?,
            OptionKind::Text
            | OptionKind::Word
            | OptionKind::Sound
            | OptionKind::Count
            | OptionKind::Flag
            | OptionKind::Setting
            | OptionKind::Page
            | OptionKind::Picture
            | OptionKind::File => Vec::new(),
        };
        let typed = composed(line.typed.trim()).to_lowercase();
        options.retain(|option| {
            option.label.to_lowercase().contains(&typed) || option.value.to_lowercase().contains(&typed)
        });
        options.truncate(MAX_AUTOCOMPLETE_OPTIONS);
        Ok(options)
    }

    async fn persona_options(&self, at: &CommandContext<'_>) -> Result<Vec<AutocompleteOption>, Error> {
        let rows = self.personas_here(at).await?;
        let named = rows.into_iter().filter_map(|row| {
            let persona = azera_personas::parse(&row.markdown).ok()?;
            Some(AutocompleteOption { label: persona.name, value: row.id.to_string() })
        });
        Ok(named.collect())
    }

    fn model_options(&self) -> Vec<AutocompleteOption> {
        let models = self.services.models.list().into_iter();
        models
            .map(|model| AutocompleteOption { label: format!("{}: {}", model.name, model.title), value: model.name })
            .collect()
    }

    async fn branch_options(&self, at: &CommandContext<'_>) -> Result<Vec<AutocompleteOption>, Error> {
        let (read_scope, chat) = (at.read_scope.clone(), at.chat.id.clone());
        let branches = self.services.blocking(move |memory| memory.chats().branches(&read_scope, &chat)).await?;
        Ok(branches
            .into_iter()
            .map(|branch| AutocompleteOption { label: branch.name.clone(), value: branch.name })
            .collect())
    }

    async fn memory_options(&self, at: &CommandContext<'_>) -> Result<Vec<AutocompleteOption>, Error> {
        let (read_scope, person) = (at.read_scope.clone(), at.line.person.clone());
        let salient =
            self.services.blocking(move |memory| memory.memories().salient(&read_scope, &person, LOOKED_AT)).await?;
        let options = salient.iter().map(|memory| {
            let glimpse = shortened(memory.gist(), "", PREVIEW_CHARS);
            AutocompleteOption { label: format!("{} {}", memory.id, glimpse.as_str()), value: memory.id.to_string() }
        });
        Ok(options.collect())
    }
}

fn named(names: Vec<String>) -> Vec<AutocompleteOption> {
    names.into_iter().map(|name| AutocompleteOption { label: name.clone(), value: name }).collect()
}

fn themes() -> Vec<AutocompleteOption> {
    let options =
        |theme: Theme| AutocompleteOption { label: theme.as_str().to_owned(), value: theme.as_str().to_owned() };
    Theme::ALL.map(options).to_vec()
}
