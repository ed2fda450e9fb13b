//! Whose an import is, who may read it, and the ids of what it adds.

use std::path::Path;

use anyhow::Context;
use azera_adapter_console::{FIRST_CHAT, Person, chat_id};
use azera_config::Config;
use azera_import::{Format, SourceAuthor};
use azera_memory::{Memory, project_realm};
use azera_types::{ChatId, MessageId, PersonId, PersonaId, Place, PlaceKind, RealmId, Scope};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::cli::Viewer;

/// Characters of an import's id.
const IMPORT_ID_CHARS: usize = 10;

/// Characters of the ids of chats, messages and speakers, after their first part.
const ID_CHARS: usize = 40;

/// The person who imports, the persona that remembers, and the project.
#[derive(Debug, Clone)]
pub struct Target {
    pub person: Person,
    pub persona: PersonaId,
    /// The realm of the project. Only the person may read it.
    pub project: Option<RealmId>,
}

impl Target {
    pub fn new(config: &Config, viewer: &Viewer, project: Option<&str>) -> anyhow::Result<Self> {
        let person = Person::new(&viewer.name).context("--as")?;
        let persona = PersonaId::new(viewer.persona.as_deref().unwrap_or(&config.chat.persona)).context("--persona")?;
        let project = project.map(|name| project_realm(&person.id, name)).transpose().context("--project")?;
        Ok(Self { person, persona, project })
    }

    /// Fails if there is no such persona.
    pub fn check(&self, memory: &Memory) -> anyhow::Result<()> {
        let known = memory.personas().get(None, &self.persona)?;
        known.with_context(|| format!("there is no persona {}; `azera persona list` names them", self.persona))?;
        Ok(())
    }

    /// Returns the scope of the messages.
    pub fn scope(&self) -> Scope {
        match &self.project {
            Some(realm) => Scope::Realm(realm.clone()),
            None => Scope::Dm(self.person.id.clone()),
        }
    }

    /// Returns the place whose memories the messages are.
    pub fn place(&self) -> anyhow::Result<Place> {
        let chat = chat_id(&self.person.id, FIRST_CHAT)?;
        let kind = match &self.project {
            Some(realm) => PlaceKind::Public(realm.clone()),
            None => PlaceKind::Dm(self.person.id.clone()),
        };
        Ok(Place { chat, kind, since: None })
    }

    /// Returns the id of the import of a file.
    pub fn import_id(&self, format: Format, path: &Path) -> String {
        let mut id = self.digest(format, &["file", &path.to_string_lossy()]);
        id.truncate(IMPORT_ID_CHARS);
        id
    }

    /// Returns the id of a conversation. `generation` counts how often its import was undone.
    pub fn chat_id(&self, format: Format, conversation: &str, generation: usize) -> anyhow::Result<ChatId> {
        let digest = self.digest(format, &["chat", conversation, &generation.to_string()]);
        Ok(ChatId::new(format!("import:{digest}"))?)
    }

    /// Returns the id of a message. Formats with ids of their own give a message the same one in every file.
    pub fn message_id(
        &self,
        format: Format,
        conversation: &str,
        message: &str,
        generation: usize,
    ) -> anyhow::Result<MessageId> {
        let conversation = match format {
            // A continued session repeats messages of the one before under another name.
            Format::ClaudeCode => "",
            _ => conversation,
        };
        let digest = self.digest(format, &["message", conversation, message, &generation.to_string()]);
        Ok(MessageId::new(format!("import:{digest}"))?)
    }

    /// Returns the id of an author other than the person who imports. Nobody else's import has the same.
    pub fn speaker_id(&self, format: Format, author: &SourceAuthor) -> anyhow::Result<PersonId> {
        Ok(PersonId::new(format!("import:{}", self.digest(format, &["speaker", &author.id])))?)
    }

    fn digest(&self, format: Format, parts: &[&str]) -> String {
        let scope = self.scope().to_string();
        let whose = [self.person.id.as_str(), self.persona.as_str(), &scope, format.name()];
        let mut hash = Sha256::new();
        for part in whose.iter().chain(parts) {
            // With its length, no part can continue in the next one.
            hash.update(part.len().to_le_bytes());
            hash.update(part.as_bytes());
        }
        let mut digest = HEXLOWER.encode(&hash.finalize());
        digest.truncate(ID_CHARS);
        digest
    }
}
