//! Stage *context*: loads where, for whom and as whom a turn takes place, once. Later stages read it and load nothing of this again.
//!
//! Only the permission to show a reply is asked for again, right before its first word and right before its delivery: people may
//! come and go meanwhile.

use std::sync::Arc;

use azera_adapter::Platform;
use azera_memory::{Calendar, ChatRow, InboxRow, MessageRow, ReadScope};
use azera_model_api::ChatModel;
use azera_personas::{Lorebook, Persona};
use azera_prompt::Form;
use azera_types::{PersonId, Place, RealmId, Scope};

use crate::error::Error;
use crate::overrides::Overrides;
use crate::services::LoadedPersona;
use crate::turn::Turns;

/// What a person is told about a recording that was not heard, or a picture that was not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missed {
    /// One sentence or two.
    pub(crate) sentence: String,
    /// The message says nothing else, so there is nothing to answer.
    pub(crate) alone: bool,
}

/// A message whose turn it is.
pub(crate) struct TurnRequest {
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) message: MessageRow,
    pub(crate) inbox: InboxRow,
    /// True to regenerate the current reply.
    pub(crate) again: bool,
    /// What the person is told about recordings and pictures that were missed.
    pub(crate) missed: Option<Missed>,
    /// The message with pictures that it replies to, if it may be read there.
    pub(crate) replied: Option<MessageRow>,
    /// True if it is a picture that nobody saw, for nobody in particular, where the person was told already.
    pub(crate) is_unseen: bool,
    /// A reply that had to be withdrawn has changed the persona's feelings already.
    pub(crate) feelings_changed: bool,
}

impl TurnRequest {
    pub(crate) fn new(platform: Arc<dyn Platform>, message: MessageRow, inbox: InboxRow, again: bool) -> Self {
        let (missed, replied, is_unseen, feelings_changed) = Default::default();
        Self { platform, message, inbox, again, missed, replied, is_unseen, feelings_changed }
    }

    /// Returns the person whom the reply addresses. This is not the admin who has it regenerated.
    pub(crate) fn addressee(&self) -> &PersonId {
        self.message.author.person().unwrap_or(&self.inbox.person)
    }

    /// Whether an earlier reply to this message has changed the persona's feelings.
    pub(crate) fn was_felt(&self) -> bool {
        self.again || self.feelings_changed
    }
}

/// The context of a turn, as the platform reported it when the turn began.
pub(crate) struct TurnContext {
    pub(crate) place: Place,
    pub(crate) scope: Scope,
    pub(crate) read_scope: ReadScope,
    pub(crate) chat: Option<ChatRow>,
    pub(crate) persona: Persona,
    pub(crate) lorebook: Option<Lorebook>,
    /// The realm that the persona belongs to.
    pub(crate) persona_owner: Option<RealmId>,
    pub(crate) overrides: Arc<Overrides>,
    /// When and in which time zone the message is read.
    pub(crate) calendar: Calendar,
    pub(crate) model: Arc<dyn ChatModel>,
    /// How prompts for this model look, with the persona's own limits.
    pub(crate) form: Form,
    /// The conversation before the message, oldest first.
    pub(crate) recent: Vec<MessageRow>,
    /// The reply that the new one takes the place of.
    pub(crate) replaces: Option<MessageRow>,
}

impl Turns {
    /// Loads the context of a turn. Returns `None` if there is no reply to regenerate.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if the person or the persona may not read the place, or the message, any more.
    pub(super) async fn load_context(&self, request: &TurnRequest) -> Result<Option<TurnContext>, Error> {
        let (platform, message) = (request.platform.as_ref(), &request.message);
        let place =
            self.services.place(platform, &message.chat, &request.inbox.person).await?.ok_or(Error::NotAllowed)?;
        let LoadedPersona { persona, lorebook, owner } =
            self.services.persona(place.shared_realm(), &message.persona).await?;
        let read_scope = self.access.read_scope(platform, &place, &message.persona).await?;
        // A new reader may not be allowed to see the question, so do not answer it.
        if !request.again && !read_scope.allows(&message.persona, &message.scope, &message.source_scopes, message.at) {
            return Err(Error::NotAllowed);
        }
        let Some((chat, recent, replaces)) = self.load_conversation(request, &read_scope).await? else {
            return Ok(None);
        };
        let scope = place.scope();
        let overrides = self.minds.overrides(platform.id(), &scope).await?;
        let calendar = self.minds.calendar(&self.access, platform.id(), &scope).await?;
        let model = self.services.model();
        let mut form = self.services.config.form(model.info());
        let own_limit = persona.memory.top_k.map(|lines| lines as usize);
        if let Some(lines) = self.services.config.recalled.or(own_limit) {
            form.recalled_lines = lines;
        }
        Ok(Some(TurnContext {
            place,
            scope,
            read_scope,
            chat,
            persona,
            lorebook,
            persona_owner: owner,
            overrides,
            calendar,
            model,
            form,
            recent,
            replaces,
        }))
    }

    /// Loads the chat, the messages before this one, and the reply to regenerate. Returns `None` if there is no such reply.
    async fn load_conversation(
        &self,
        request: &TurnRequest,
        read_scope: &ReadScope,
    ) -> Result<Option<(Option<ChatRow>, Vec<MessageRow>, Option<MessageRow>)>, Error> {
        let (limit, again) = (self.services.config.history_messages, request.again);
        let (read_scope, message) = (read_scope.clone(), request.message.clone());
        self.services
            .blocking(move |memory| {
                let chat = memory.chats().get(&message.chat)?;
                if again {
                    let Some(present) = memory.messages().present_answer(&read_scope, &message.id)? else {
                        return Ok(None);
                    };
                    // A regenerated reply rests on what came before its message.
                    let recent = memory.messages().history_to(&read_scope, message.parent.as_ref(), limit)?;
                    return Ok(Some((chat, recent, Some(present))));
                }
                let mut recent = memory.messages().history(&read_scope, &message.chat, limit)?;
                // Later messages belong to later turns. Keep replies that arrived meanwhile.
                recent.retain(|row| row.seq < message.seq || row.answers.is_some());
                Ok(Some((chat, recent, None)))
            })
            .await
    }
}
