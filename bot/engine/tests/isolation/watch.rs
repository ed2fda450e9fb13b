//! Judges everything that is shown, on its way to somebody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use async_trait::async_trait;
use azera_adapter::{
    Access, AutocompleteOption, AutocompleteRequest, Choice, CommandAnswer, CommandLine, Edit, Hit, Host, HostError,
    InboundEvent, Making, Outbound, Outcome, PictureProgress, PlaceNames, Platform, PlatformError, Post, Questions,
    RealmPreferences, Receipt, Recorded, SearchRequest, Searched, StreamEvent, Streaming, VoiceChannels, VoiceMessages,
};
use azera_affect::Help;
use azera_fake_sim::SimPlatform;
use azera_types::{ChatId, Inbound, MessageId, PersonId, Place, PlatformId, ReadableScopes, RealmId, Timestamp};
use tokio::sync::Notify;

use crate::drawing::Drawing;
use crate::oracle::{DEFAULT_PERSONA, Oracle, Showing, secrets_in};
use crate::world::{CHATS, PEOPLE};

/// Counts showings that are only allowed because accounts are linked.
pub const BY_A_LINK: &str = "for the sake of a link";

/// What was called and judged, over all worlds.
#[derive(Default)]
pub struct Record {
    /// By way: how many showings were judged, and how many secrets they held.
    judged: BTreeMap<String, (usize, usize)>,
    went: BTreeSet<String>,
}

impl Record {
    /// Returns whether this way was called.
    pub fn has(&self, path: &str) -> bool {
        self.judged.contains_key(path) || self.went.contains(path)
    }

    /// Returns every way by which something was judged.
    pub fn paths(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        self.judged.iter().map(|(path, (cases, secrets))| (path.as_str(), *cases, *secrets))
    }

    /// Returns how many secrets were rightly shown this way.
    pub fn secrets(&self, path: &str) -> usize {
        self.judged.get(path).map_or(0, |(_, secrets)| *secrets)
    }
}

/// The judge of one world.
pub struct Watch {
    pub oracle: Mutex<Oracle>,
    pub record: Arc<Mutex<Record>>,
    leaks: Mutex<Vec<String>>,
}

fn chat_number(chat: &ChatId) -> Option<usize> {
    CHATS.iter().position(|(id, _)| *id == chat.as_str())
}

fn person_number(person: &PersonId) -> Option<usize> {
    PEOPLE.iter().position(|(id, _)| *id == person.as_str())
}

impl Watch {
    pub fn new(oracle: Oracle, record: Arc<Mutex<Record>>) -> Self {
        Self { oracle: Mutex::new(oracle), record, leaks: Mutex::default() }
    }

    pub fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock().unwrap()
    }

    /// Judges something that is shown.
    pub fn shown(&self, path: &str, showing: &Showing<'_>, text: &str) {
        let secrets = secrets_in(text);
        {
            let mut record = self.record.lock().unwrap();
            let (cases, shown) = record.judged.entry(path.to_owned()).or_default();
            *cases += 1;
            *shown += secrets.len();
        }
        let oracle = self.oracle();
        for secret in secrets {
            if oracle.is_by_a_link(secret, showing) {
                self.record.lock().unwrap().judged.entry(BY_A_LINK.to_owned()).or_default().1 += 1;
            }
            if let Err(why) = oracle.judge(secret, showing) {
                let (chat, asker) = (CHATS[showing.chat].0, showing.asker.map_or("everybody", |who| PEOPLE[who].0));
                let leak = format!("{path} showed secret {secret} to {asker} in {chat} at {}: {why}", oracle.now);
                self.leaks.lock().unwrap().push(leak);
            }
        }
    }

    /// Judges what is shown in a chat by the persona that answers there now.
    pub fn shown_in(&self, path: &str, chat: &ChatId, asker: &PersonId, text: &str) {
        let Some(chat) = chat_number(chat) else { return };
        self.shown_about(path, (chat, None), asker, text);
    }

    /// Judges what is shown by the persona whose message somebody points at.
    fn shown_about(&self, path: &str, (chat, about): (usize, Option<&MessageId>), asker: &PersonId, text: &str) {
        let persona = self.oracle().spoken_of(chat, about);
        let showing = Showing { chat, asker: person_number(asker), persona: &persona, own_words: false };
        self.shown(path, &showing, text);
    }

    /// Judges what is shown as the answer to a message, in its chat and by the persona it was said to.
    pub fn shown_for(&self, path: &str, message: Option<&MessageId>, text: &str) {
        let message = message.and_then(|id| self.oracle().messages.get(id.as_str()).cloned());
        match message {
            Some(message) => {
                let showing = Showing { chat: message.chat, asker: None, persona: &message.persona, own_words: false };
                self.shown(path, &showing, text);
            }
            None => assert!(secrets_in(text).is_empty(), "{path}: an answer to a message nobody wrote"),
        }
    }

    /// Records a call that shows nothing.
    pub fn went(&self, path: &str) {
        self.record.lock().unwrap().went.insert(path.to_owned());
    }

    /// Returns the first leak, if there was any.
    pub fn verdict(&self) -> Result<(), String> {
        let leaks = std::mem::take(&mut *self.leaks.lock().unwrap());
        leaks.into_iter().next().map_or(Ok(()), Err)
    }
}

type Act = Box<dyn FnOnce() + Send>;

/// Something that is done once, in the middle of something else.
#[derive(Clone, Default)]
pub struct Meanwhile(Arc<Mutex<Option<Act>>>);

impl Meanwhile {
    pub fn set(&self, act: impl FnOnce() + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(act));
    }

    pub fn forget(&self) {
        *self.0.lock().unwrap() = None;
    }

    pub fn happen(&self) {
        let act = self.0.lock().unwrap().take();
        if let Some(act) = act {
            act();
        }
    }
}

/// The sim platform, watched.
pub struct WatchedPlatform {
    pub sim: Arc<SimPlatform>,
    pub watch: Arc<Watch>,
    /// What is done when the first piece of a reply is streamed.
    pub at_first_piece: Meanwhile,
    /// What was streamed of replies, in order.
    pub streamed: Mutex<Vec<(MessageId, StreamEvent)>>,
    /// The delivered messages, in order.
    pub delivered: Mutex<Vec<Outbound>>,
    /// Its voice channels, if it has some.
    pub channels: OnceLock<Arc<dyn VoiceChannels>>,
    /// If set, deliveries never return: `Some(true)` after the reply was shown, `Some(false)` before.
    pub hang: Mutex<Option<bool>>,
    pub hung: Notify,
    /// Why no reply can be retracted.
    pub retract_fails: Mutex<Option<fn() -> PlatformError>>,
    pub retracted: Mutex<Vec<MessageId>>,
    /// The voice messages that people sent.
    pub spoken: Mutex<BTreeMap<MessageId, Vec<u8>>>,
    /// The newest sound that each person sent.
    pub given: Mutex<BTreeMap<PersonId, Vec<u8>>>,
    /// The sounds that were sent, each with its reply.
    pub sounds: Mutex<Vec<(MessageId, String)>>,
    pub drawing: Drawing,
    /// Whether the files of an answer are lost.
    pub loses_files: AtomicBool,
    /// Whether every chat is marked as one for adults.
    pub adults: AtomicBool,
    /// Whether every chat is a call.
    pub is_call: AtomicBool,
    /// The commands that answer what people were asked, in order. `None` if nobody can be asked.
    pub asked: Mutex<Option<Vec<Vec<Choice>>>>,
}

impl WatchedPlatform {
    /// Judges a post where it is shown, as the words of the persona that wrote it.
    fn watched_post(&self, path: &str, outbound: &Outbound) {
        let Some(chat) = chat_number(&outbound.chat) else { return };
        let persona = outbound.persona.as_str().replace('@', " of ");
        let showing = Showing { chat, asker: None, persona: &persona, own_words: false };
        self.watch.shown(path, &showing, &outbound.text);
        self.watch.shown(path, &showing, &outbound.persona_name);
    }

    fn watched(&self, path: &str, outbound: &Outbound) {
        self.watch.shown_for(path, outbound.reply_to.as_ref(), &outbound.text);
        self.watch.shown_for(path, outbound.reply_to.as_ref(), &outbound.persona_name);
    }
}

#[async_trait]
impl Platform for WatchedPlatform {
    fn id(&self) -> &PlatformId {
        self.watch.went("Platform::id");
        self.sim.id()
    }

    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError> {
        self.watch.went("Platform::place");
        self.sim.place(chat, asker).await
    }

    async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError> {
        self.watch.went("Platform::readable_scopes");
        self.sim.readable_scopes(person).await
    }

    async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, PlatformError> {
        self.watch.went("Platform::access");
        self.sim.access(chat, person).await
    }

    async fn deliver(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        let hang = *self.hang.lock().unwrap();
        if hang != Some(false) {
            self.watched("Platform::deliver", outbound);
            self.sim.deliver(outbound).await?;
            self.delivered.lock().unwrap().push(outbound.clone());
        }
        if hang.is_some() {
            self.hung.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    fn chat_prefix(&self, person: &PersonId) -> Option<String> {
        self.watch.went("Platform::chat_prefix");
        self.sim.chat_prefix(person)
    }

    async fn place_for_all(&self, chat: &ChatId) -> Result<Option<Place>, PlatformError> {
        self.watch.went("Platform::place_for_all");
        self.sim.place_for_all(chat).await
    }

    async fn realm(&self, realm: &RealmId) -> Result<RealmPreferences, PlatformError> {
        self.watch.went("Platform::realm");
        self.sim.realm(realm).await
    }

    fn delivers_files(&self) -> bool {
        self.watch.went("Platform::delivers_files");
        !self.loses_files.load(Ordering::SeqCst)
    }

    fn is_heard(&self, _: &ChatId) -> bool {
        self.watch.went("Platform::is_heard");
        self.is_call.load(Ordering::SeqCst)
    }

    async fn is_for_adults(&self, chat: &ChatId) -> Result<bool, PlatformError> {
        self.watch.went("Platform::is_for_adults");
        Ok(self.adults.load(Ordering::SeqCst) || self.sim.is_for_adults(chat).await?)
    }

    async fn post(&self, post: &Post) -> Result<(), PlatformError> {
        self.watched_post("Platform::post", &post.outbound);
        self.sim.post(post).await?;
        self.delivered.lock().unwrap().push(post.outbound.clone());
        Ok(())
    }

    async fn show_again(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        self.watched("Platform::show_again", outbound);
        self.sim.show_again(outbound).await
    }

    async fn retract(&self, chat: &ChatId, reply: &MessageId, at: Timestamp) -> Result<(), PlatformError> {
        self.watch.went("Platform::retract");
        if let Some(error) = self.retract_fails.lock().unwrap().as_ref() {
            return Err(error());
        }
        self.retracted.lock().unwrap().push(reply.clone());
        self.sim.retract(chat, reply, at).await
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        self.watch.went("Platform::streaming");
        Some(self)
    }

    fn questions(&self) -> Option<&dyn Questions> {
        self.watch.went("Platform::questions");
        Some(self)
    }

    fn place_names(&self) -> Option<&dyn PlaceNames> {
        self.watch.went("Platform::place_names");
        self.sim.place_names()
    }

    fn voice(&self) -> Option<&dyn VoiceChannels> {
        self.watch.went("Platform::voice");
        self.channels.get().map(AsRef::as_ref)
    }

    fn voice_messages(&self) -> Option<&dyn VoiceMessages> {
        self.watch.went("Platform::voice_messages");
        Some(self)
    }
}

#[async_trait]
impl Questions for WatchedPlatform {
    fn person_named(&self, words: &str) -> Option<PersonId> {
        self.watch.went("Questions::person_named");
        PersonId::new(words.strip_prefix('@')?).ok()
    }

    async fn ask(&self, chat: &ChatId, _: &PersonId, question: &str, choices: &[Choice]) -> Result<(), PlatformError> {
        if let Some(chat) = chat_number(chat) {
            let showing = Showing { chat, asker: None, persona: DEFAULT_PERSONA, own_words: false };
            self.watch.shown("Questions::ask", &showing, question);
        }
        let mut asked = self.asked.lock().unwrap();
        let asked = asked.as_mut().ok_or_else(|| PlatformError::Refused("nobody can be asked".to_owned()))?;
        asked.push(choices.to_vec());
        Ok(())
    }
}

#[async_trait]
impl Streaming for WatchedPlatform {
    async fn event(&self, Making { chat, reply, is_help, .. }: Making<'_>, event: &StreamEvent) {
        self.streamed.lock().unwrap().push((reply.clone(), event.clone()));
        let text = match event {
            StreamEvent::Thinking { text } | StreamEvent::Content { text } => text,
            StreamEvent::Error { message } => message,
            StreamEvent::ThinkingStart
            | StreamEvent::ThinkingEnd
            | StreamEvent::Retracted
            | StreamEvent::Withdrawn
            | StreamEvent::Done { .. } => "",
        };
        // A platform that speaks must know that this is for the eyes alone.
        assert!(is_help || !Help::Crisis.stands_in(text), "{text}");
        if let Some(chat) = chat_number(chat) {
            // Only the reply tells whose turn it is. Personas are judged at delivery.
            let secret = secrets_in(text).into_iter().next();
            let heard_by = secret.and_then(|secret| match self.watch.oracle().secrets.get(secret) {
                Some(crate::oracle::Origin::Stated { persona, .. }) => Some(persona.clone()),
                _ => None,
            });
            let persona = heard_by.unwrap_or_default();
            let showing = Showing { chat, asker: None, persona: &persona, own_words: false };
            self.watch.shown("Streaming::event", &showing, text);
        }
        if matches!(event, StreamEvent::Content { .. }) {
            self.at_first_piece.happen();
        }
    }

    async fn progress(&self, Making { chat, persona, reply, .. }: Making<'_>, progress: PictureProgress<'_>) {
        let Some(chat) = chat_number(chat) else { return };
        let persona = persona.as_str().replace('@', " of ");
        let showing = Showing { chat, asker: None, persona: &persona, own_words: false };
        self.watch.shown("Streaming::progress", &showing, progress.text);
        self.drawing.show(&self.delivered, reply, progress).await;
    }
}

/// A host, watched.
pub struct WatchedHost<'a> {
    pub host: &'a dyn Host,
    pub watch: &'a Watch,
}

impl WatchedHost<'_> {
    fn outcome(&self, path: &str, chat: &ChatId, person: &PersonId, outcome: &Result<Outcome, HostError>) {
        match outcome {
            Ok(Outcome::Replied(turn)) => {
                self.watch.shown_for(path, Some(&turn.to), &turn.text);
                self.watch.shown_for(path, Some(&turn.to), &hits_text(&turn.recalled));
            }
            Ok(Outcome::Skipped(reason)) => self.watch.shown_in(path, chat, person, reason.why()),
            Err(error) => self.watch.shown_in(path, chat, person, &error.to_string()),
        }
    }
}

/// Formats hits as adapters print them.
pub fn hits_text(hits: &[Hit]) -> String {
    serde_json::to_string(hits).unwrap()
}

/// Events that the worlds submit. What the receipts tell is judged.
impl WatchedHost<'_> {
    pub async fn message(&self, platform: &PlatformId, inbound: Inbound) -> Result<Outcome, HostError> {
        let (chat, person) = (inbound.chat.clone(), inbound.person.clone());
        let outcome = self.ended(platform, InboundEvent::Message(inbound)).await;
        self.outcome("Receipt of a message", &chat, &person, &outcome);
        outcome
    }

    /// Submits a message and does not wait for its reply.
    pub async fn take_in(&self, platform: &PlatformId, inbound: Inbound) -> Result<Recorded, HostError> {
        let (chat, person) = (inbound.chat.clone(), inbound.person.clone());
        let taken = self.submit(platform, InboundEvent::Message(inbound)).await;
        if let Err(error) = &taken {
            self.watch.shown_in("Receipt of a message", &chat, &person, &error.to_string());
        }
        taken.map(|receipt| receipt.recorded())
    }

    pub async fn edited(&self, platform: &PlatformId, id: &MessageId, edit: Edit) -> Result<Outcome, HostError> {
        let message = self.watch.oracle().messages[id.as_str()].clone();
        let outcome = self.ended(platform, InboundEvent::Edit { message: id.clone(), edit }).await;
        let chat = ChatId::new(CHATS[message.chat].0).unwrap();
        self.outcome("Receipt of an edit", &chat, &PersonId::new(PEOPLE[message.by].0).unwrap(), &outcome);
        outcome
    }

    async fn ended(&self, platform: &PlatformId, event: InboundEvent) -> Result<Outcome, HostError> {
        self.submit(platform, event).await?.outcome().await
    }
}

#[async_trait]
impl Host for WatchedHost<'_> {
    /// Submits an event. Nothing of the answer is judged here: the platform judges what is delivered, and
    /// [`WatchedHost::message`] and [`WatchedHost::edited`] what the receipt tells.
    async fn submit(&self, platform: &PlatformId, event: InboundEvent) -> Result<Receipt, HostError> {
        self.watch.went("Host::submit");
        self.host.submit(platform, event).await
    }

    async fn command(&self, platform: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError> {
        self.watch.went("Host::command");
        let (chat, person, text) = (line.chat.clone(), line.person.clone(), line.text.clone());
        let about = line.about.clone();
        let answer = self.host.command(platform, line).await;
        let said = match &answer {
            Ok(answer) => {
                let files: String = answer.files.iter().map(|file| String::from_utf8_lossy(&file.content.0)).collect();
                format!("{} {:?} {:?} {files}", answer.text, answer.go_to, answer.chart)
            }
            Err(error) => error.to_string(),
        };
        let mut words = text.trim_start_matches('/').split_whitespace();
        let path = format!("/{}", words.next().unwrap_or_default());
        for word in words.filter(|word| secrets_in(word).is_empty()) {
            self.watch.went(&format!("{path} {word}"));
        }
        if &*text == "/memory export" {
            let number = chat_number(&chat).unwrap();
            let persona = self.watch.oracle().persona(number);
            let asker = person_number(&person);
            self.watch.shown(&path, &Showing { chat: number, asker, persona: &persona, own_words: true }, &said);
        } else {
            self.watch.shown_about(&path, (chat_number(&chat).unwrap(), about.as_ref()), &person, &said);
        }
        answer
    }

    async fn autocomplete(
        &self,
        platform: &PlatformId,
        line: AutocompleteRequest,
    ) -> Result<Vec<AutocompleteOption>, HostError> {
        let (chat, person) = (line.chat.clone(), line.person.clone());
        let options = self.host.autocomplete(platform, line).await;
        let said = options.as_ref().map_or_else(ToString::to_string, |options| format!("{options:?}"));
        self.watch.shown_in("Host::autocomplete", &chat, &person, &said);
        options
    }

    async fn search(&self, platform: &PlatformId, line: SearchRequest) -> Result<Searched, HostError> {
        let (chat, person) = (line.chat.clone(), line.person.clone());
        let hits = self.host.search(platform, line).await;
        let said = hits.as_ref().map_or_else(ToString::to_string, |found| hits_text(&found.hits));
        self.watch.shown_in("Host::search", &chat, &person, &said);
        hits
    }

    async fn settle(&self) -> Result<(), HostError> {
        self.watch.went("Host::settle");
        self.host.settle().await
    }
}
