//! An engine that answers in fixed words, and reads by the same law: it asks the platform who may read a chat.

use std::collections::{BTreeSet, HashMap};
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azera_adapter::{
    Access, AutocompleteOption, AutocompleteRequest, BranchSummary, ChatInfo, ChatSummary, Command, CommandAnswer,
    CommandLine, Form, Hit, Holding, Host, HostError, InboundEvent, Making, MemoryIdText, MindSummary, ModelSummary,
    Outcome, PersonaSummary, Platform, Reader, Reading, Receipt, Recorded, SearchRequest, Searched, ShownMessage,
    ShownWriting, State, StreamEvent, Turn, TurnUsage, WritingKind,
};
use azera_adapter_http::{
    LogLevel, LogLine, Operations, PersonaDraft, PersonaError, PersonaStore, PersonaVersion, StoreError,
};
use azera_types::{
    Author, ChatId, Inbound, MemoryId, MessageId, PartKind, PersonId, PersonaId, PlatformId, Scope, Text, Timestamp,
};

use crate::client::Client;
use crate::studio::Studio;

const ALONE: &[Form] = &[Form { name: "", word: "", help: "", access: Access::Member, options: &[] }];

const WORDS: &[Form] = &[Form { word: "search", ..form(Access::Member) }, form(Access::Member)];
const USE: &[Form] = &[Form { word: "use", ..form(Access::Operator) }, form(Access::Member)];

const fn form(access: Access) -> Form {
    Form { name: "", word: "", help: "", access, options: &[] }
}

const fn command(name: &'static str, forms: &'static [Form]) -> Command {
    Command { name, help: "", access: Access::Member, terminal: false, forms }
}

/// The commands of this engine.
pub const COMMANDS: &[Command] = &[
    command("why", ALONE),
    command("memory", WORDS),
    command("remember", WORDS),
    command("forget", WORDS),
    command("link", WORDS),
    command("model", USE),
];

/// A message, and who said it.
#[derive(Clone)]
pub struct Line {
    pub chat: ChatId,
    pub message: ShownMessage,
}

/// The engine.
pub struct Engine {
    platform: Arc<dyn Platform>,
    chats: Mutex<HashMap<ChatId, ChatInfo>>,
    lines: Mutex<Vec<Line>>,
    pub commands: Mutex<Vec<(ChatId, String)>>,
    /// How far a download is at each look, the last one first.
    pub download: Mutex<Vec<u8>>,
    /// The models that are not installed.
    pub absent: Mutex<Vec<&'static str>>,
    /// The personas that an owner added.
    pub added: Mutex<Vec<PersonaSummary>>,
    /// Asks for its chats while everything of a person is forgotten, and what it was answered.
    pub intruder: Mutex<Option<Client>>,
    pub intruded: Mutex<Option<u16>>,
    pub studio: Studio,
    fails: AtomicBool,
}

impl Engine {
    pub fn new(platform: Arc<dyn Platform>) -> Self {
        Self {
            platform,
            chats: Mutex::default(),
            lines: Mutex::default(),
            commands: Mutex::default(),
            download: Mutex::default(),
            absent: Mutex::new(vec!["large"]),
            added: Mutex::default(),
            intruder: Mutex::default(),
            intruded: Mutex::default(),
            studio: Studio::default(),
            fails: AtomicBool::new(false),
        }
    }

    pub fn fail(&self) {
        self.fails.store(true, Ordering::SeqCst);
    }

    pub async fn may_read(&self, chat: &ChatId, person: &PersonId) -> bool {
        self.platform.place(chat, person).await.unwrap().is_some()
    }

    /// Opens chats of a person, each with a title.
    pub fn open_many(&self, person: &PersonId, count: usize) {
        for number in 0..count {
            let chat = ChatId::new(format!("{person}:many-{number}")).unwrap();
            self.open_chat(ChatInfo { chat, title: Some(format!("title {number}")), persona: None });
        }
    }

    /// Returns how many chats have a title.
    pub fn titles(&self) -> usize {
        self.chats.lock().unwrap().values().filter(|chat| chat.title.is_some()).count()
    }

    fn persona() -> PersonaId {
        PersonaId::new("azera").unwrap()
    }

    /// Returns everything that was said in chats that the person can read.
    pub async fn heard(&self, person: &PersonId) -> Vec<Line> {
        let lines = self.lines.lock().unwrap().clone();
        let mut heard = Vec::new();
        for line in lines {
            if self.may_read(&line.chat, person).await {
                heard.push(line);
            }
        }
        heard
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

impl Engine {
    fn open_chat(&self, info: ChatInfo) {
        let mut chats = self.chats.lock().unwrap();
        let known = chats.entry(info.chat.clone()).or_insert_with(|| info.clone());
        if info.title.is_some() {
            known.title = info.title;
        }
    }

    async fn answer(&self, inbound: Inbound) -> Result<Outcome, HostError> {
        if !self.may_read(&inbound.chat, &inbound.person).await {
            return Err(HostError::NotAllowed);
        }
        if self.fails.load(Ordering::SeqCst) {
            return Err(HostError::Unavailable("the model is gone".into()));
        }
        let mut inbound = inbound;
        let mut spoken = None;
        for part in std::mem::take(&mut inbound.parts) {
            // A recording holds its words, and so does a picture behind its first bytes.
            let sound = part.source.fetch(1 << 20).await.unwrap();
            let words = Text::new(String::from_utf8_lossy(&sound));
            if part.part.kind == PartKind::Image {
                let (text, name) = (inbound.text.as_str(), &part.part.name);
                inbound.text = Text::new(format!("{text} [seen in {name}] {}", words.as_str()));
                continue;
            }
            inbound.text = Text::new(format!("[said aloud] {}", words.as_str()));
            spoken = Some(words);
        }
        let reply = MessageId::new(format!("{}~r0", inbound.id)).unwrap();
        let (persona, chat) = (Self::persona(), inbound.chat.clone());
        let making = Making {
            chat: &chat,
            reply: &reply,
            persona: &persona,
            persona_name: "Azera",
            asker: None,
            is_help: false,
        };
        let streaming = self.platform.streaming().unwrap();
        let text = format!("You said: {}", inbound.text.as_str());
        let author = Author::Person { id: inbound.person.clone(), name: inbound.name.clone() };
        let said = ShownMessage {
            id: inbound.id.clone(),
            author,
            text: inbound.text.clone(),
            spoken,
            at: now(),
            answers: None,
        };
        self.lines.lock().unwrap().push(Line { chat: chat.clone(), message: said });
        for event in
            [StreamEvent::ThinkingStart, StreamEvent::Thinking { text: "Hm.".into() }, StreamEvent::ThinkingEnd]
        {
            streaming.event(making, &event).await;
        }
        if inbound.text.as_str() == "withdraw" {
            for event in [StreamEvent::Content { text: "You sai".into() }, StreamEvent::Withdrawn] {
                streaming.event(making, &event).await;
            }
        }
        for piece in ["You said", ": ", inbound.text.as_str()] {
            streaming.event(making, &StreamEvent::Content { text: piece.into() }).await;
            tokio::task::yield_now().await;
        }
        let author = Author::Persona { id: persona.clone(), name: "Azera".into() };
        let answer = ShownMessage {
            id: reply.clone(),
            author,
            text: Text::new(&text),
            spoken: None,
            at: now(),
            answers: Some(inbound.id.clone()),
        };
        self.lines.lock().unwrap().push(Line { chat: chat.clone(), message: answer });
        let usage = TurnUsage { prompt_tokens: 7, completion_tokens: 3, ..TurnUsage::default() };
        let state = State { mood: Some("calm".into()), mood_value: Some(0.5), energy: Some(0.75) };
        Ok(Outcome::Replied(Box::new(Turn {
            reply,
            to: inbound.id,
            chat,
            persona,
            text: Text::new(&text),
            state,
            usage,
            recalled: Vec::new(),
        })))
    }

    fn leave(&self, chats: Vec<ChatId>) {
        self.lines.lock().unwrap().retain(|line| !chats.contains(&line.chat));
        for chat in chats {
            if let Some(info) = self.chats.lock().unwrap().get_mut(&chat) {
                info.title = None;
            }
        }
    }
}

#[async_trait]
impl Host for Engine {
    async fn submit(&self, _: &PlatformId, event: InboundEvent) -> Result<Receipt, HostError> {
        match event {
            InboundEvent::Message(inbound) => {
                return Ok(Receipt::new(Recorded::New, ready(self.answer(inbound).await)));
            }
            InboundEvent::Chat(info) => self.open_chat(info),
            InboundEvent::Left { chats, .. } => self.leave(chats),
            _ => {}
        }
        Ok(Receipt::unanswered(Recorded::New))
    }

    async fn command(&self, _: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError> {
        if !self.may_read(&line.chat, &line.person).await {
            return Err(HostError::NotAllowed);
        }
        self.commands.lock().unwrap().push((line.chat.clone(), line.text.to_string()));
        if line.text.as_str() == "/model pull large" {
            *self.download.lock().unwrap() = vec![100, 60, 60, 0];
        }
        if line.text.starts_with("/picture delete ") {
            self.studio.delete(&line.text);
        }
        if line.text.starts_with("/picture pin ") || line.text.starts_with("/picture unpin ") {
            self.studio.pin(&line.text);
        }
        if line.text.starts_with("/picture cancel ") && !self.studio.take_back(&line.chat, &line.text) {
            return Ok(CommandAnswer { ok: false, text: "No such picture waits.".into(), ..CommandAnswer::default() });
        }
        if line.text.starts_with("/forget me") {
            let intruder = self.intruder.lock().unwrap().take();
            if let Some(mut intruder) = intruder {
                let status = intruder.send("GET", "/api/chats", None).await.status;
                *self.intruded.lock().unwrap() = Some(status);
            }
            let mine = self.heard(&line.person).await;
            let mut lines = self.lines.lock().unwrap();
            lines.retain(|line| mine.iter().all(|gone| gone.message.id != line.message.id));
        }
        // It knows no command about a message, and says which one it was asked about.
        if let Some(about) = line.about {
            return Ok(CommandAnswer { ok: false, text: format!("There is no {about}."), ..CommandAnswer::default() });
        }
        Ok(CommandAnswer { ok: true, text: "Kept as `m7`.".into(), ..CommandAnswer::default() })
    }

    async fn autocomplete(&self, _: &PlatformId, _: AutocompleteRequest) -> Result<Vec<AutocompleteOption>, HostError> {
        Ok(Vec::new())
    }

    async fn search(&self, _: &PlatformId, line: SearchRequest) -> Result<Searched, HostError> {
        if !self.may_read(&line.chat, &line.person).await {
            return Ok(Searched::default());
        }
        let heard = self.heard(&line.person).await;
        let hits = heard.into_iter().enumerate().map(|(number, heard)| Hit {
            memory: MemoryIdText(MemoryId(number as u64)),
            kind: "message".into(),
            scope: Scope::Dm(line.person.clone()),
            sources: vec![heard.message.id],
            score: 0.5,
            signals: vec!["semantic".into()],
            text: heard.message.text,
            holding: Holding {
                holds_since: Some("2026-05".into()),
                held_until: Some("2026-08-03".into()),
                replaced_by: Some(MemoryIdText(MemoryId(9))),
            },
        });
        // No word is indexed.
        Ok(Searched { hits: hits.collect(), missing: vec!["lexical".into()] })
    }

    async fn settle(&self) -> Result<(), HostError> {
        Ok(())
    }
}

#[async_trait]
impl Reader for Engine {
    async fn personas(&self, _: &PlatformId, at: Reading) -> Result<Vec<PersonaSummary>, HostError> {
        if !self.may_read(&at.chat, &at.person).await {
            return Ok(Vec::new());
        }
        let persona = |id: &str, is_user| PersonaSummary {
            id: PersonaId::new(id).unwrap(),
            name: format!("<img src=x onerror=alert(1)> {id}"),
            is_user,
            intent: "A companion".into(),
            version: 1,
            at: now(),
            markdown: "# Azera".into(),
        };
        let added = self.added.lock().unwrap().clone();
        Ok([persona("azera", false), persona("protag", true)].into_iter().chain(added).collect())
    }

    async fn chats(&self, _: &PlatformId, at: Reading) -> Result<Vec<ChatSummary>, HostError> {
        let infos: Vec<ChatInfo> = self.chats.lock().unwrap().values().cloned().collect();
        let mut found = Vec::new();
        for info in infos {
            if self.may_read(&info.chat, &at.person).await {
                let has_lines = self.lines.lock().unwrap().iter().any(|line| line.chat == info.chat);
                found.push(ChatSummary {
                    chat: info.chat,
                    title: info.title,
                    persona: Self::persona(),
                    branch: "main".into(),
                    group: None,
                    tags: BTreeSet::new(),
                    created_at: now(),
                    last_at: has_lines.then(now),
                });
            }
        }
        Ok(found)
    }

    async fn find_chats(
        &self,
        platform: &PlatformId,
        at: Reading,
        words: &Text,
    ) -> Result<Vec<ChatSummary>, HostError> {
        let heard = self.heard(&at.person).await;
        let says = |chat: &ChatSummary| {
            let said = heard.iter().filter(|line| line.chat == chat.chat).map(|line| line.message.text.as_str());
            said.chain(chat.title.as_deref()).any(|text| text.contains(words.as_str()))
        };
        let chats = self.chats(platform, at.clone()).await?;
        Ok(chats.into_iter().filter(says).collect())
    }

    async fn chat(&self, platform: &PlatformId, at: Reading) -> Result<Option<ChatSummary>, HostError> {
        let chats = self.chats(platform, at.clone()).await?;
        Ok(chats.into_iter().find(|chat| chat.chat == at.chat))
    }

    async fn messages(&self, _: &PlatformId, at: Reading, limit: usize) -> Result<Vec<ShownMessage>, HostError> {
        let heard = self.heard(&at.person).await;
        Ok(heard.into_iter().filter(|line| line.chat == at.chat).map(|line| line.message).take(limit).collect())
    }

    async fn branches(&self, _: &PlatformId, _: Reading) -> Result<Vec<BranchSummary>, HostError> {
        Ok(vec![BranchSummary { name: "main".into(), forked_from: None, created_at: now() }])
    }

    /// The persona dreams of everything that it heard from the person.
    async fn writings(
        &self,
        _: &PlatformId,
        at: Reading,
        _: WritingKind,
        limit: usize,
    ) -> Result<Vec<ShownWriting>, HostError> {
        let heard = self.heard(&at.person).await;
        let written = heard.into_iter().map(|line| ShownWriting {
            id: MemoryId(1),
            kind: "dream",
            text: line.message.text,
            mood: None,
            themes: Vec::new(),
            at: now(),
        });
        Ok(written.take(limit).collect())
    }

    async fn mind(&self, _: &PlatformId, at: Reading) -> Result<Option<MindSummary>, HostError> {
        let may = self.may_read(&at.chat, &at.person).await;
        let state = State { mood: Some("calm".into()), mood_value: Some(0.5), energy: Some(0.75) };
        Ok(may.then(|| MindSummary { persona: Self::persona(), state, last_exchange: Some(now()), last_dream: None }))
    }

    async fn models(&self) -> Result<Vec<ModelSummary>, HostError> {
        let fetched = self.download.lock().unwrap().pop();
        if fetched == Some(100) && !self.fails.load(Ordering::SeqCst) {
            self.absent.lock().unwrap().clear();
        }
        let model = |name: &'static str, bytes, fetched| {
            let is_installed = !self.absent.lock().unwrap().contains(&name);
            let bytes = Some(bytes).filter(|_| is_installed);
            ModelSummary { name: name.into(), title: format!("a {name} one"), is_installed, bytes, fetched }
        };
        Ok(vec![model("large", 9_000_000_000, fetched), model("tiny:2", 7, None)])
    }
}

#[async_trait]
impl Operations for Engine {
    async fn trouble(&self) -> Option<String> {
        self.fails.load(Ordering::SeqCst).then(|| "The record cannot be read.".to_owned())
    }

    async fn metrics(&self) -> Result<String, StoreError> {
        Ok("azera_turns_total 0\n".into())
    }

    /// There are many lines, a third of each kind.
    fn log(&self, least: LogLevel, most: usize) -> Vec<LogLine> {
        let levels = [LogLevel::Info, LogLevel::Warn, LogLevel::Error];
        let lines = (0..300).map(|number: usize| LogLine {
            at: now(),
            level: levels[number % levels.len()],
            target: "azera_engine".into(),
            message: format!("line {number}"),
            fields: vec![("tries".into(), (number % 3).into())],
        });
        let wanted: Vec<LogLine> = lines.filter(|line| line.level >= least).collect();
        wanted[wanted.len().saturating_sub(most)..].to_vec()
    }
}

#[async_trait]
impl PersonaStore for Engine {
    async fn add(&self, draft: PersonaDraft) -> Result<PersonaId, PersonaError> {
        let name = draft.name.ok_or_else(|| PersonaError::Refused("A persona needs a name.".into()))?;
        let id = PersonaId::new(name.to_lowercase()).unwrap();
        self.added.lock().unwrap().push(PersonaSummary {
            id: id.clone(),
            name,
            is_user: draft.is_user == Some(true),
            intent: draft.intent.unwrap_or_default(),
            version: 1,
            at: now(),
            markdown: draft.text.unwrap_or_default(),
        });
        Ok(id)
    }

    async fn import(&self, file: Vec<u8>) -> Result<(PersonaId, Vec<String>), PersonaError> {
        let text = String::from_utf8(file).map_err(|_| PersonaError::Refused("That is no card.".into()))?;
        let id = self.add(PersonaDraft { name: Some(text), ..PersonaDraft::default() }).await?;
        Ok((id, vec!["The picture is not kept.".into()]))
    }

    async fn versions(&self, id: &PersonaId) -> Result<Vec<PersonaVersion>, PersonaError> {
        let added = self.added.lock().unwrap();
        let persona = added.iter().find(|persona| persona.id == *id).ok_or(PersonaError::Missing)?;
        let version = |version| PersonaVersion { version, at: now(), markdown: persona.markdown.clone() };
        Ok((1..=persona.version).rev().map(version).collect())
    }

    async fn change(&self, id: &PersonaId, draft: PersonaDraft) -> Result<(), PersonaError> {
        let mut added = self.added.lock().unwrap();
        let persona = added.iter_mut().find(|persona| persona.id == *id).ok_or(PersonaError::Missing)?;
        persona.version += 1;
        persona.name = draft.name.unwrap_or_else(|| persona.name.clone());
        persona.intent = draft.intent.unwrap_or_else(|| persona.intent.clone());
        persona.markdown = draft.text.unwrap_or_else(|| persona.markdown.clone());
        Ok(())
    }

    async fn remove(&self, id: &PersonaId) -> Result<(), PersonaError> {
        let mut added = self.added.lock().unwrap();
        let before = added.len();
        added.retain(|persona| persona.id != *id);
        if added.len() == before { Err(PersonaError::Refused("It is built in.".into())) } else { Ok(()) }
    }
}
