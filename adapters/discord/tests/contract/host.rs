//! A minimal engine: it recognises a message by its id, and delivers a reply until Discord has it.

use std::collections::HashSet;
use std::future::ready;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use async_trait::async_trait;
use azera_adapter::{
    Access, AutocompleteOption, AutocompleteRequest, Command, CommandAnswer, CommandLine, CommandOption, Form, Host,
    HostError, IgnoreReason, InboundEvent, Making, MessageAction, OptionKind, Outbound, Outcome, Platform, Receipt,
    Recorded, SearchRequest, Searched, SkipReason, State, StreamEvent,
};
use azera_adapter_discord::Discord;
use azera_types::{ChatId, Inbound, MessageId, PersonaId, PlaceKind, PlatformId, Text, Timestamp};
use tokio::sync::watch;

pub const COMMANDS: &[Command] = &[Command {
    name: "why",
    help: "what stood behind it",
    access: Access::Member,
    terminal: false,
    forms: &[Form { name: "", word: "", help: "", access: Access::Member, options: &[] }],
}];

/// A message that it cannot answer.
pub const UNANSWERABLE: &str = "unanswerable";

/// A message that it cannot receive at the first attempt.
pub const LATE: &str = "late";

pub const ACTIONS: &[MessageAction] = &[
    MessageAction { name: "Why?", line: "/why", asks: None },
    MessageAction {
        name: "Branch from here",
        line: "/branch",
        asks: Some(CommandOption { name: "name", help: "its name", kind: OptionKind::Word, required: true }),
    },
];

/// The engine's data that survives restarts, and its settings.
pub struct Record {
    pub answered: Mutex<HashSet<MessageId>>,
    /// The last message addressed to the bot.
    pub heard: Mutex<String>,
    /// Replies do not start while this is false.
    pub begin: watch::Sender<bool>,
    /// The persona that answers.
    pub persona: String,
    /// Replies stop in the middle while this is false.
    pub go_on: watch::Sender<bool>,
    /// Number of chunks received.
    pub brought: watch::Sender<usize>,
    /// Number of servers it was asked to forget.
    pub left: watch::Sender<usize>,
    /// Messages that it could not receive once.
    pub late: Mutex<HashSet<MessageId>>,
    /// Forgetting a server does not finish while this is false.
    pub forget: watch::Sender<bool>,
}

pub struct Core {
    pub record: Arc<Record>,
    /// Messages that this process received.
    pub taken: Mutex<HashSet<MessageId>>,
    pub discord: OnceLock<Arc<Discord>>,
    pub myself: Weak<Core>,
}

impl Core {
    fn discord(&self) -> &Discord {
        self.discord.get().expect("it is attached")
    }

    /// Fails the first time for a [`LATE`] message.
    fn receive(&self, inbound: &Inbound) -> Result<(), HostError> {
        let mut late = self.record.late.lock().expect("no test panics while it holds this");
        if inbound.text.contains(LATE) && late.insert(inbound.id.clone()) {
            return Err(HostError::Unavailable("the store is away".into()));
        }
        Ok(())
    }

    /// Returns true if this process must answer a message. A message that another process received and did not answer
    /// is continued, as the engine does at a start.
    fn is_new(&self, id: &MessageId) -> bool {
        self.taken.lock().expect("no test panics while it holds this").insert(id.clone())
            && !self.record.answered.lock().expect("no test panics while it holds this").contains(id)
    }

    async fn answer(&self, inbound: &Inbound) -> Result<Outcome, HostError> {
        let discord = self.discord();
        let place = discord.place(&inbound.chat, &inbound.person).await.map_err(|e| HostError::Internal(e.into()))?;
        let place = place.ok_or(HostError::NotAllowed)?;
        let for_it =
            inbound.mentions_bot || matches!(place.kind, PlaceKind::Dm(_)) || inbound.text.starts_with("Azera");
        if inbound.text.contains(UNANSWERABLE) {
            return Err(HostError::Internal("the model is ill".into()));
        }
        if !for_it {
            return Ok(Outcome::Skipped(SkipReason::NotAddressed));
        }
        inbound.text.as_str().clone_into(&mut self.record.heard.lock().expect("no test panics while it holds this"));
        let reply = MessageId::new(format!("{}~r0", inbound.id)).expect("an id");
        let streaming = discord.streaming().expect("Discord streams");
        self.record.begin.subscribe().wait_for(|begin| *begin).await.expect("the record lives");
        let (first, second) = ("Half ", "and half.");
        let persona = PersonaId::new(self.record.persona.to_lowercase()).expect("an id");
        let persona_name = self.record.persona.clone();
        let making = Making {
            chat: &inbound.chat,
            reply: &reply,
            persona: &persona,
            persona_name: &persona_name,
            asker: None,
            is_help: false,
        };
        streaming.event(making, &StreamEvent::Content { text: first.to_owned() }).await;
        self.record.go_on.subscribe().wait_for(|go_on| *go_on).await.expect("the record lives");
        let outbound = Outbound {
            id: reply,
            chat: inbound.chat.clone(),
            persona,
            persona_name,
            text: Text::new(format!("{first}{second}")),
            reply_to: Some(inbound.id.clone()),
            asker: None,
            state: State { mood: Some("curious".to_owned()), ..State::default() },
            help: String::new(),
            files: Vec::new(),
            can_upscale: false,
        };
        while let Err(error) = discord.deliver(&outbound).await {
            if !error.is_transient() {
                break;
            }
            tokio::task::yield_now().await;
        }
        self.record.answered.lock().expect("no test panics while it holds this").insert(inbound.id.clone());
        Ok(Outcome::Skipped(SkipReason::Empty))
    }
}

impl Core {
    /// Receives a message; it is answered in the background, as the engine does.
    fn received(&self, inbound: Inbound) -> Result<Receipt, HostError> {
        self.receive(&inbound)?;
        if !self.is_new(&inbound.id) {
            return Ok(Receipt::new(Recorded::Known, ready(Ok(Outcome::Skipped(SkipReason::Duplicate)))));
        }
        let core = self.myself.upgrade().ok_or(HostError::Stopping)?;
        let answer = tokio::spawn(async move { core.answer(&inbound).await });
        Ok(Receipt::new(Recorded::New, async move { answer.await.map_err(|_| HostError::Interrupted)? }))
    }

    async fn deleted(&self, id: &MessageId) -> Result<(), HostError> {
        let reply = MessageId::new(format!("{id}~r0")).expect("an id");
        let chat = ChatId::new("discord:1").expect("an id");
        self.discord()
            .retract(&chat, &reply, Timestamp::UNIX_EPOCH)
            .await
            .map_err(|error| HostError::Internal(error.into()))
    }
}

#[async_trait]
impl Host for Core {
    async fn submit(&self, _: &PlatformId, event: InboundEvent) -> Result<Receipt, HostError> {
        match event {
            InboundEvent::Message(inbound) => return self.received(inbound),
            InboundEvent::Edit { .. } => {
                return Ok(Receipt::unanswered(Recorded::Ignored(IgnoreReason::UnknownMessage)));
            }
            InboundEvent::Deletion { message } => self.deleted(&message).await?,
            InboundEvent::Chunks { pieces, .. } => {
                self.record.brought.send_modify(|brought| *brought += pieces.len());
            }
            InboundEvent::Left { .. } => {
                self.record.left.send_modify(|left| *left += 1);
                self.record.forget.subscribe().wait_for(|forget| *forget).await.expect("the record lives");
            }
            InboundEvent::Chat(_) | InboundEvent::ReactionsRemoved { .. } => {}
        }
        Ok(Receipt::unanswered(Recorded::New))
    }

    async fn command(&self, _: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError> {
        let about = line.about.map_or_else(String::new, |reply| format!(" about {reply}"));
        let text = format!("{} by {}{about}", line.text.as_str(), line.name);
        Ok(CommandAnswer { ok: true, text, ..CommandAnswer::default() })
    }

    async fn autocomplete(&self, _: &PlatformId, _: AutocompleteRequest) -> Result<Vec<AutocompleteOption>, HostError> {
        Ok(Vec::new())
    }

    async fn search(&self, _: &PlatformId, _: SearchRequest) -> Result<Searched, HostError> {
        Ok(Searched::default())
    }

    async fn settle(&self) -> Result<(), HostError> {
        Ok(())
    }
}
