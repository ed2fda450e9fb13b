//! Whom a session speaks for, and the engine it speaks to.

use std::sync::Arc;

use azera_adapter::{
    ChatInfo, CommandLine, Host, InboundEvent, KnownReader, MemoryReader, Reader, Reading, SessionReader, VaultHost,
};
use azera_types::{ChatId, PersonId, PersonaId, PlatformId, Text};

use crate::failure::Failure;

/// The engine's interfaces.
#[derive(Clone)]
pub struct Contracts {
    /// Commands and searches.
    pub host: Arc<dyn Host>,
    /// Lists of personas, chats, messages and writings.
    pub reader: Arc<dyn Reader>,
    /// Whole memories.
    pub memories: Arc<dyn MemoryReader>,
    /// What counts as known in a whole place.
    pub known: Arc<dyn KnownReader>,
    /// What was learnt in coding sessions.
    pub sessions: Arc<dyn SessionReader>,
    /// The person's vault.
    pub vault: Arc<dyn VaultHost>,
}

/// What a session may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights {
    /// Read the person's chats.
    pub chats: bool,
    /// Read memories.
    pub read: bool,
    /// Add and forget memories.
    pub write: bool,
    /// Have the persona write. This needs a chat model.
    pub compose: bool,
    /// Read the values of the person's vault.
    pub vault: bool,
}

/// One person with one persona, in one chat that nobody else reads.
#[derive(Debug, Clone)]
pub struct Session {
    /// The platform of the person.
    pub platform: PlatformId,
    /// The person.
    pub person: PersonId,
    /// The person's displayed name.
    pub name: String,
    /// The chat in which the session reads and writes.
    pub chat: ChatId,
    /// The persona of that chat; `None` for the one that answers there already.
    pub persona: Option<PersonaId>,
    /// What the session may do.
    pub rights: Rights,
}

/// A session with the engine.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) engine: Contracts,
    pub(crate) session: Session,
}

impl Caller {
    /// Returns where the session reads, after it made sure that the session's persona answers there. Every tool begins here.
    pub(crate) async fn begin(&self) -> Result<Reading, Failure> {
        let Session { platform, chat, persona, .. } = &self.session;
        let at = self.reading(chat.clone());
        if let Some(wanted) = persona {
            self.check_persona(wanted, &at).await?;
        }
        let info = ChatInfo { chat: chat.clone(), title: None, persona: persona.clone() };
        self.engine.host.submit(platform, InboundEvent::Chat(info)).await?;
        let answering = self.engine.reader.mind(platform, at.clone()).await?.map(|mind| mind.persona);
        match (answering, persona) {
            (None, _) => Err(Failure::refused("This person cannot read this chat now.")),
            (Some(answering), Some(wanted)) if answering != *wanted => Err(Failure::refused(format!(
                "The chat of this session was given to the persona {answering}. Connect with that persona, or with none."
            ))),
            _ => Ok(at),
        }
    }

    async fn check_persona(&self, wanted: &PersonaId, at: &Reading) -> Result<(), Failure> {
        let personas = self.engine.reader.personas(&self.session.platform, at.clone()).await?;
        let mut known = personas.iter().filter(|persona| !persona.is_user);
        if known.any(|persona| persona.id == *wanted) {
            return Ok(());
        }
        let names: Vec<&str> =
            personas.iter().filter(|persona| !persona.is_user).map(|persona| persona.id.as_str()).collect();
        Err(Failure::refused(format!("There is no persona {wanted}. Connect with one of: {}.", names.join(", "))))
    }

    /// Returns the persona that answers in the session's chat.
    pub(crate) async fn persona(&self, at: &Reading) -> Result<PersonaId, Failure> {
        let mind = self.engine.reader.mind(&self.session.platform, at.clone()).await?;
        mind.map(|mind| mind.persona).ok_or_else(|| Failure::refused("This person cannot read this chat now."))
    }

    pub(crate) fn reading(&self, chat: ChatId) -> Reading {
        Reading { chat, person: self.session.person.clone() }
    }

    /// Runs a command in the session's chat. Returns its answer; an error if it refuses.
    pub(crate) async fn command(&self, line: &str) -> Result<String, Failure> {
        self.command_in(self.session.chat.clone(), line, None).await
    }

    /// Runs a command in a chat of the person, about a message.
    pub(crate) async fn command_in(
        &self,
        chat: ChatId,
        line: &str,
        about: Option<azera_types::MessageId>,
    ) -> Result<String, Failure> {
        let Session { platform, person, name, .. } = &self.session;
        let line = CommandLine {
            chat,
            person: person.clone(),
            name: name.clone(),
            text: Text::uncut(line),
            about,
            picture: None,
        };
        let answer = self.engine.host.command(platform, line).await?;
        if answer.ok { Ok(answer.text) } else { Err(Failure::refused(answer.text)) }
    }
}
