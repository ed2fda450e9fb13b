//! One message to a persona: it is submitted, and its reply comes as steps.

use std::sync::Arc;

use axum::http::StatusCode;
use azera_adapter::{
    ChatInfo, CommandAnswer, CommandLine, GivenPicture, HostError, InboundEvent, Outcome, SkipReason, StreamEvent,
    Turn, Typed, suggestion, typed,
};
use azera_types::{ChatId, Inbound, InboundPart, MessageId, PersonaId, Text};
use futures::Stream;
use tokio::task::JoinHandle;
use uuid::{NoContext, Uuid};

use crate::accounts::Caller;
use crate::guard;
use crate::live::{Listener, remainder};
use crate::platform::PLATFORM;
use crate::problem::Problem;
use crate::shown::Shown;
use crate::web::Shared;

/// A step of a reply.
pub(crate) enum Step {
    ThinkingStart,
    Thinking(String),
    ThinkingEnd,
    Content(String),
    /// What came so far was thinking and is no part of the reply.
    Retracted,
    /// What came so far is no reply. It goes, and is no thinking either.
    Withdrawn,
    /// The reply is complete.
    Done(Box<Reply>),
    /// There is no reply.
    Failed(Problem),
}

/// A complete reply.
pub(crate) struct Reply {
    pub(crate) text: String,
    /// What of the text came with no step before.
    pub(crate) rest: String,
    /// The turn; `None` if a command was answered.
    pub(crate) turn: Option<Turn>,
    /// Whether a command did what it was asked; `None` for a reply.
    pub(crate) ok: Option<bool>,
}

/// A message that was submitted.
pub(crate) struct Saying {
    message: MessageId,
    listener: Listener,
    /// The turn goes on, and is recorded, even if nobody waits for it any more.
    outcome: JoinHandle<Result<Outcome, HostError>>,
}

/// What a person wrote.
pub(crate) enum Said {
    Message(Saying),
    /// It was a command. `ok` tells whether it did what it was asked.
    Answer {
        text: String,
        ok: bool,
    },
}

impl Shared {
    /// Submits what a person wrote in a chat of theirs, with the pictures that they show. `persona` answers there, if the chat
    /// is new. `about` is the message that a command is about.
    pub(crate) async fn say(
        self: &Arc<Self>,
        caller: &Caller,
        chat: ChatId,
        persona: Option<PersonaId>,
        (text, pictures): (&str, Vec<Shown>),
        about: Option<MessageId>,
    ) -> Result<Said, Problem> {
        self.count_message(caller)?;
        if text.trim().is_empty() && pictures.is_empty() {
            return Err(Problem::invalid("The message is empty."));
        }
        if text.len() > azera_types::MAX_TEXT_BYTES {
            let detail = format!("A message has at most {} bytes.", azera_types::MAX_TEXT_BYTES);
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail));
        }
        self.open_chat(chat.clone(), persona).await?;
        match typed(text, &self.commands, &[]) {
            Typed::Talk => {}
            Typed::Unknown(name) => {
                return Ok(Said::Answer { text: suggestion(name, &self.commands), ok: false });
            }
            Typed::Command => {
                guard::permit(crate::typed::need(text, &self.commands), caller)?;
                // What a command does with a picture is its own matter; none takes more than one.
                let picture = pictures.into_iter().next().map(Shown::into_given);
                let CommandAnswer { text, ok, .. } = self.command_about(caller, chat, text, about, picture).await?;
                return Ok(Said::Answer { text: if text.is_empty() { "Done.".to_owned() } else { text }, ok });
            }
        }
        let parts = pictures.into_iter().map(Shown::into_part).collect();
        Ok(Said::Message(self.submit(caller, chat, Text::new(text.trim_end()), parts)?))
    }

    /// Submits what a person said aloud in a chat of theirs. The engine hears it before it answers. Returns the message's
    /// id, too.
    pub(crate) async fn say_aloud(
        self: &Arc<Self>,
        caller: &Caller,
        chat: ChatId,
        persona: Option<PersonaId>,
        sound: InboundPart,
    ) -> Result<(MessageId, Said), Problem> {
        self.count_message(caller)?;
        self.open_chat(chat.clone(), persona).await?;
        let saying = self.submit(caller, chat, Text::default(), vec![sound])?;
        Ok((saying.message.clone(), Said::Message(saying)))
    }

    async fn open_chat(&self, chat: ChatId, persona: Option<PersonaId>) -> Result<(), Problem> {
        let info = ChatInfo { chat, title: None, persona };
        self.host()?.submit(&self.platform, InboundEvent::Chat(info)).await?;
        Ok(())
    }

    fn submit(&self, caller: &Caller, chat: ChatId, text: Text, parts: Vec<InboundPart>) -> Result<Saying, Problem> {
        let (host, platform) = (self.host()?.clone(), self.platform.clone());
        let inbound = Inbound {
            id: self.message_id()?,
            chat,
            person: caller.person()?,
            name: caller.name.clone(),
            text,
            at: self.clock.now(),
            parts,
            mentions_bot: false,
            mentions: Vec::new(),
            reply_to: None,
        };
        let (message, listener) = (inbound.id.clone(), self.live.listen(&inbound.id));
        let outcome =
            tokio::spawn(async move { host.submit(&platform, InboundEvent::Message(inbound)).await?.outcome().await });
        Ok(Saying { message, listener, outcome })
    }

    /// Counts something that costs as much as a message.
    pub(crate) fn count_message(&self, caller: &Caller) -> Result<(), Problem> {
        self.messages.take(&caller.account, self.clock.now()).map_err(Problem::too_many)
    }

    /// Runs a command in a chat of the person.
    pub(crate) async fn command(&self, caller: &Caller, chat: ChatId, text: &str) -> Result<CommandAnswer, Problem> {
        self.command_about(caller, chat, text, None, None).await
    }

    /// Runs a command in a chat of the person, about one of its messages. Another chat's message counts as missing.
    async fn command_about(
        &self,
        caller: &Caller,
        chat: ChatId,
        text: &str,
        about: Option<MessageId>,
        picture: Option<GivenPicture>,
    ) -> Result<CommandAnswer, Problem> {
        let line = CommandLine {
            chat,
            person: caller.person()?,
            name: caller.name.clone(),
            text: Text::uncut(text.trim()),
            about,
            picture,
        };
        Ok(self.host()?.command(&self.platform, line).await?)
    }

    /// Runs a command in a chat of the person. A command that refuses is an error.
    pub(crate) async fn perform(&self, caller: &Caller, chat: ChatId, text: &str) -> Result<String, Problem> {
        let answer = self.command(caller, chat, text).await?;
        if answer.ok {
            return Ok(answer.text);
        }
        Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", answer.text))
    }

    fn message_id(&self) -> Result<MessageId, Problem> {
        let now = self.clock.now();
        let seconds = u64::try_from(now.as_second()).unwrap_or(0);
        let nanoseconds = u32::try_from(now.subsec_nanosecond()).unwrap_or(0);
        let unique = Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, seconds, nanoseconds));
        Ok(MessageId::new(format!("{PLATFORM}:{unique}"))?)
    }
}

impl Said {
    /// Waits for the whole reply.
    pub(crate) async fn reply(self) -> Result<Reply, Problem> {
        match self {
            Self::Answer { text, ok } => Ok(Reply { text, rest: String::new(), turn: None, ok: Some(ok) }),
            Self::Message(saying) => {
                let turn = finished(saying.outcome.await)?;
                Ok(Reply { text: turn.text.to_string(), rest: String::new(), turn: Some(turn), ok: None })
            }
        }
    }

    /// Returns the reply step by step. The last step is [`Step::Done`] or [`Step::Failed`].
    pub(crate) fn steps(self) -> impl Stream<Item = Step> + Send {
        let begun = match self {
            Self::Answer { text, ok } => {
                let reply = Reply { rest: text.clone(), text, turn: None, ok: Some(ok) };
                Progress { saying: None, ready: vec![Step::Done(Box::new(reply))], shown: String::new() }
            }
            Self::Message(saying) => Progress { saying: Some(saying), ready: Vec::new(), shown: String::new() },
        };
        futures::stream::unfold(begun, |mut progress| async move {
            let step = progress.next().await?;
            Some((step, progress))
        })
    }
}

/// Where a stream of steps is.
struct Progress {
    saying: Option<Saying>,
    /// Steps that come next, the last one first.
    ready: Vec<Step>,
    /// The content so far.
    shown: String,
}

impl Progress {
    async fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.ready.pop() {
                return Some(step);
            }
            let saying = self.saying.as_mut()?;
            let (events, ended) = tokio::select! {
                biased;
                events = saying.listener.next() => (events, None),
                outcome = &mut saying.outcome => (saying.listener.take(), Some(outcome)),
            };
            let mut steps: Vec<Step> = events.into_iter().filter_map(|event| self.step(event)).collect();
            if let Some(outcome) = ended {
                self.saying = None;
                steps.push(match finished(outcome) {
                    Ok(turn) => {
                        let text = turn.text.to_string();
                        let rest = remainder(&self.shown, &text);
                        Step::Done(Box::new(Reply { rest, text, turn: Some(turn), ok: None }))
                    }
                    Err(problem) => Step::Failed(problem),
                });
            }
            steps.reverse();
            self.ready = steps;
        }
    }

    fn step(&mut self, event: StreamEvent) -> Option<Step> {
        Some(match event {
            StreamEvent::ThinkingStart => Step::ThinkingStart,
            StreamEvent::Thinking { text } => Step::Thinking(text),
            StreamEvent::ThinkingEnd => Step::ThinkingEnd,
            StreamEvent::Content { text } => {
                self.shown.push_str(&text);
                Step::Content(text)
            }
            StreamEvent::Retracted => {
                self.shown.clear();
                Step::Retracted
            }
            StreamEvent::Withdrawn => {
                self.shown.clear();
                Step::Withdrawn
            }
            // The outcome says the same.
            StreamEvent::Done { .. } | StreamEvent::Error { .. } => return None,
        })
    }
}

fn finished(outcome: Result<Result<Outcome, HostError>, tokio::task::JoinError>) -> Result<Turn, Problem> {
    match outcome.map_err(|error| Problem::internal(&error))?? {
        Outcome::Replied(turn) => Ok(*turn),
        Outcome::Skipped(SkipReason::Muted) => Err(Problem::new(
            StatusCode::CONFLICT,
            "muted",
            "This chat is set to silent. `/answer always` changes that.",
        )),
        Outcome::Skipped(reason) => {
            Err(Problem::new(StatusCode::CONFLICT, "unanswered", format!("There is no reply: {}.", reason.why())))
        }
    }
}
