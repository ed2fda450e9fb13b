//! The terminal as a platform that also says its replies.

use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter::{Access, Making, Outbound, PictureProgress, Platform, PlatformError, StreamEvent, Streaming};
use azera_adapter_console::Console;
use azera_types::{ChatId, MessageId, PersonId, PersonaId, Place, PlatformId, ReadableScopes, Timestamp};
use azera_voice_call::Request;
use tokio::sync::mpsc;

/// Said in the place of a reply to somebody in danger.
const READ_THIS: &str = "I wrote something important on the screen. Please read it now.";

/// What a conversation is to say.
pub struct ToSay {
    /// The reply that it is about.
    pub begins: Option<Begins>,
    /// The request.
    pub request: Request,
}

/// A reply that may begin with a request.
pub struct Begins {
    /// The reply.
    pub reply: MessageId,
    /// The persona that says it.
    pub persona: PersonaId,
    /// The person whom it answers; `None` if nobody asked.
    pub asker: Option<PersonId>,
}

/// Shows replies in the terminal, and lets a conversation say them.
pub struct Aloud {
    console: Arc<Console>,
    say: mpsc::UnboundedSender<ToSay>,
}

impl Aloud {
    pub fn new(console: Arc<Console>, say: mpsc::UnboundedSender<ToSay>) -> Self {
        Self { console, say }
    }

    fn say(&self, begins: Option<Begins>, request: Request) {
        // A conversation that is over says nothing more.
        self.say.send(ToSay { begins, request }).ok();
    }
}

#[async_trait]
impl Platform for Aloud {
    fn id(&self) -> &PlatformId {
        self.console.id()
    }

    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError> {
        self.console.place(chat, asker).await
    }

    async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError> {
        self.console.readable_scopes(person).await
    }

    async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, PlatformError> {
        self.console.access(chat, person).await
    }

    async fn deliver(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        self.console.deliver(outbound).await?;
        if outbound.help.is_empty() {
            let whole = Request::Whole(outbound.id.clone(), outbound.text.as_str().to_owned());
            let Outbound { id: reply, persona, asker, .. } = outbound.clone();
            self.say(Some(Begins { reply, persona, asker }), whole);
        } else {
            // The sentence is no reply, and nothing else answers the question aloud.
            self.say(None, Request::Unanswered(outbound.asker.clone()));
            self.say(None, Request::Say(READ_THIS.to_owned()));
        }
        Ok(())
    }

    async fn show_again(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        self.console.show_again(outbound).await
    }

    fn chat_prefix(&self, person: &PersonId) -> Option<String> {
        self.console.chat_prefix(person)
    }

    async fn place_for_all(&self, chat: &ChatId) -> Result<Option<Place>, PlatformError> {
        self.console.place_for_all(chat).await
    }

    fn is_heard(&self, _: &ChatId) -> bool {
        true
    }

    async fn retract(&self, chat: &ChatId, reply: &MessageId, at: Timestamp) -> Result<(), PlatformError> {
        self.console.retract(chat, reply, at).await
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        Some(self)
    }
}

#[async_trait]
impl Streaming for Aloud {
    async fn event(&self, making: Making<'_>, event: &StreamEvent) {
        if let Some(streaming) = self.console.streaming() {
            streaming.event(making, event).await;
        }
        let reply = making.reply.clone();
        let begins = || {
            let (persona, asker) = (making.persona.clone(), making.asker.cloned());
            Some(Begins { reply: making.reply.clone(), persona, asker })
        };
        match event {
            // Help for somebody in danger is read, and not heard.
            _ if making.is_help => {}
            StreamEvent::Content { text } => {
                self.say(begins(), Request::Piece(reply, text.clone()));
            }
            StreamEvent::Retracted => self.say(None, Request::Retracted(reply)),
            StreamEvent::Error { .. } | StreamEvent::Withdrawn => {
                self.say(begins(), Request::Retracted(reply.clone()));
                self.say(None, Request::Whole(reply, String::new()));
            }
            StreamEvent::ThinkingStart
            | StreamEvent::Thinking { .. }
            | StreamEvent::ThinkingEnd
            | StreamEvent::Done { .. } => {}
        }
    }

    async fn progress(&self, making: Making<'_>, progress: PictureProgress<'_>) {
        if let Some(streaming) = self.console.streaming() {
            streaming.progress(making, progress).await;
        }
    }
}
