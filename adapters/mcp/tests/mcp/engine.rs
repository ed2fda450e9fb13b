//! An engine with memories in a list. It reads by the same law as the real one: a chat is read by its owner alone, and a
//! persona remembers only what was kept with it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use azera_adapter::{
    AutocompleteOption, AutocompleteRequest, BranchSummary, ChatInfo, ChatSummary, CommandAnswer, CommandLine,
    FactPage, Hit, Holding, Host, HostError, InboundEvent, MemoryCounts, MemoryIdText, MemoryPage, MemoryReader,
    MindSummary, ModelSummary, OwnFacts, PersonaSummary, Reader, Reading, Receipt, Recorded, SearchRequest, Searched,
    ShownEntity, ShownMemory, ShownMessage, ShownNames, ShownRelation, ShownTheme, ShownThemes, ShownWriting, State,
    Steps, WritingKind,
};
use azera_types::{Author, ChatId, MemoryId, MessageId, PersonId, PersonaId, PlatformId, Scope, Text, Timestamp};
use tokio::sync::Notify;

pub const PERSONAS: [&str; 2] = ["areza", "luna"];

struct Kept {
    person: PersonId,
    persona: PersonaId,
    memory: ShownMemory,
}

/// A conversation: its number, the one that it goes on with, and the one that its reason points at.
type Conversation = (u64, Option<u64>, Option<u64>);

/// The engine.
#[derive(Default)]
pub struct Engine {
    chats: Mutex<HashMap<ChatId, PersonaId>>,
    kept: Mutex<Vec<Kept>>,
    /// Secrets by person and name.
    pub secrets: Mutex<BTreeMap<(PersonId, String), String>>,
    /// While set, searches wait for ever, and tell `searching` that they began.
    pub hangs: std::sync::atomic::AtomicBool,
    pub searching: Notify,
    /// How many hits the last search asked for.
    pub asked_for: AtomicUsize,
    /// How often memories were read.
    pub reads: AtomicUsize,
    /// How many own facts were read.
    pub facts_read: AtomicUsize,
    /// How many facts that may not be read stand before each other one.
    pub others_between: AtomicUsize,
    /// Further conversations.
    pub talks: Mutex<Vec<Conversation>>,
}

/// Whether a search ended before its answer.
struct Dropped<'a>(&'a Notify);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

pub fn at(second: u64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap()
}

pub fn is_owner(chat: &ChatId, person: &PersonId) -> bool {
    chat.as_str().rsplit_once(':').is_some_and(|(owner, _)| owner == person.as_str())
}

fn next_number(kept: &[Kept]) -> u64 {
    kept.last().map_or(0, |last| last.memory.id.0) + 1
}

impl Engine {
    fn persona(&self, chat: &ChatId) -> PersonaId {
        let known = self.chats.lock().unwrap().get(chat).cloned();
        known.unwrap_or_else(|| PersonaId::new(PERSONAS[0]).unwrap())
    }

    /// Lets another persona answer in a chat.
    pub fn give(&self, chat: &str, persona: &str) {
        let mut chats = self.chats.lock().unwrap();
        chats.insert(ChatId::new(chat).unwrap(), PersonaId::new(persona).unwrap());
    }

    /// Returns what may be shown, newest first.
    pub fn shown(&self, at: &Reading) -> Vec<ShownMemory> {
        if !is_owner(&at.chat, &at.person) {
            return Vec::new();
        }
        let persona = self.persona(&at.chat);
        let kept = self.kept.lock().unwrap();
        let mine = kept.iter().rev().filter(|one| one.person == at.person && one.persona == persona);
        mine.map(|one| one.memory.clone()).collect()
    }

    fn keep(&self, line: &CommandLine, text: &str) -> CommandAnswer {
        let mut kept = self.kept.lock().unwrap();
        let number = next_number(&kept);
        let id = MemoryId(number);
        let memory = ShownMemory {
            id,
            kind: "fact",
            evidence: "told",
            scope: Scope::Dm(line.person.clone()),
            author: Author::Person { id: line.person.clone(), name: line.name.clone() },
            // In this engine, such a text is a part of a long file.
            sources: text.ends_with("(of a file)").then(|| MessageId::new("file").unwrap()).into_iter().collect(),
            text: Text::new(text),
            at: at(number),
            holding: Holding::default(),
        };
        // In this engine, a statement that begins so takes the place of the first one.
        if text.starts_with("no longer")
            && let Some(first) = kept.first_mut()
        {
            first.memory.holding.held_until = Some("2026-08-03".into());
            first.memory.holding.replaced_by = Some(MemoryIdText(id));
        }
        kept.push(Kept { person: line.person.clone(), persona: self.persona(&line.chat), memory });
        CommandAnswer {
            ok: true,
            text: format!("Kept as `{id}`. `/forget {id}` forgets it."),
            ..CommandAnswer::default()
        }
    }

    /// Lets the next statement take the place of one of the person; false if there is none.
    fn replace(&self, line: &CommandLine, id: &str) -> bool {
        let mut kept = self.kept.lock().unwrap();
        let next = MemoryIdText(MemoryId(next_number(&kept)));
        let own = kept.iter_mut().find(|one| one.person == line.person && one.memory.id.to_string() == id);
        let Some(older) = own else { return false };
        older.memory.holding =
            Holding { held_until: Some("2026-08-03".into()), replaced_by: Some(next), holds_since: None };
        true
    }

    fn forget(&self, line: &CommandLine, id: &str) -> CommandAnswer {
        let at = Reading { chat: line.chat.clone(), person: line.person.clone() };
        if !self.shown(&at).iter().any(|memory| memory.id.to_string() == id) {
            let text = format!("I remember no `{id}` that may be shown here.");
            return CommandAnswer { text, ..CommandAnswer::default() };
        }
        self.kept.lock().unwrap().retain(|one| one.memory.id.to_string() != id);
        CommandAnswer { ok: true, text: "Forgotten: messages 0, memories 1.".into(), ..CommandAnswer::default() }
    }
}

#[async_trait]
impl Host for Engine {
    async fn submit(&self, _: &PlatformId, event: InboundEvent) -> Result<Receipt, HostError> {
        if let InboundEvent::Chat(ChatInfo { chat, persona, .. }) = event {
            let persona = persona.unwrap_or_else(|| self.persona(&chat));
            self.chats.lock().unwrap().entry(chat).or_insert(persona);
        }
        Ok(Receipt::unanswered(Recorded::New))
    }

    async fn command(&self, _: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError> {
        if !is_owner(&line.chat, &line.person) {
            return Err(HostError::NotAllowed);
        }
        let text = line.text.to_string();
        Ok(match text.split_once(' ').unwrap_or((&text, "")) {
            ("/remember", text) => self.keep(&line, text),
            ("/forget", id) => self.forget(&line, id.trim_end_matches(" quotes")),
            ("/memory", words) => {
                let mut words = words.splitn(3, ' ');
                match (words.next(), words.next(), words.next()) {
                    (Some("update"), Some(id), Some(text)) if self.replace(&line, id) => self.keep(&line, text),
                    (Some("replace"), Some("m1"), Some("m2")) | (Some("current" | "rate" | "known"), Some("m1"), _) => {
                        CommandAnswer { ok: true, text: format!("ran {text}"), ..CommandAnswer::default() }
                    }
                    _ => CommandAnswer { text: "I remember no such memory.".into(), ..CommandAnswer::default() },
                }
            }
            ("/graph", _) => CommandAnswer { ok: true, text: format!("ran {text}"), ..CommandAnswer::default() },
            ("/why", _) => {
                let about = line.about.as_ref().map_or("the last reply", MessageId::as_str);
                CommandAnswer { ok: true, text: format!("Why {about}: no memories."), ..CommandAnswer::default() }
            }
            (command, _) => CommandAnswer { ok: true, text: format!("{command} ran"), ..CommandAnswer::default() },
        })
    }

    async fn autocomplete(&self, _: &PlatformId, _: AutocompleteRequest) -> Result<Vec<AutocompleteOption>, HostError> {
        Ok(Vec::new())
    }

    /// Finds memories that share a word with the query.
    async fn search(&self, _: &PlatformId, line: SearchRequest) -> Result<Searched, HostError> {
        if self.hangs.load(std::sync::atomic::Ordering::SeqCst) {
            let _dropped = Dropped(&self.searching);
            self.searching.notify_one();
            std::future::pending::<()>().await;
        }
        let mut found = self.shown(&Reading { chat: line.chat, person: line.person });
        found.retain(|memory| line.query.split_whitespace().any(|word| memory.text.contains(word)));
        // In this engine, everything became known in 2026.
        found.retain(|_| line.as_of.as_ref().is_none_or(|time| time.contains("2026")));
        let limit = line.limit.unwrap_or(10);
        self.asked_for.store(limit, Ordering::Relaxed);
        found.truncate(limit);
        let hits: Vec<Hit> = found
            .into_iter()
            .map(|memory| Hit {
                memory: MemoryIdText(memory.id),
                kind: memory.kind.into(),
                scope: memory.scope,
                sources: memory.sources,
                score: 0.5,
                signals: vec!["lexical".into(), "semantic".into()],
                text: memory.text,
                holding: memory.holding,
            })
            .collect();
        // The fake reranker is always away.
        Ok(Searched { hits, missing: vec!["reranker".into()] })
    }

    async fn settle(&self) -> Result<(), HostError> {
        Ok(())
    }
}

#[async_trait]
impl Reader for Engine {
    async fn personas(&self, _: &PlatformId, at_: Reading) -> Result<Vec<PersonaSummary>, HostError> {
        if !is_owner(&at_.chat, &at_.person) {
            return Ok(Vec::new());
        }
        let persona = |id: &str, is_user| PersonaSummary {
            id: PersonaId::new(id).unwrap(),
            name: id.to_owned(),
            is_user,
            intent: String::new(),
            version: 1,
            at: at(0),
            markdown: format!("# {id}"),
        };
        Ok(PERSONAS.map(|id| persona(id, false)).into_iter().chain([persona("protag", true)]).collect())
    }

    async fn chats(&self, _: &PlatformId, at_: Reading) -> Result<Vec<ChatSummary>, HostError> {
        let chats = self.chats.lock().unwrap();
        let mine = chats.iter().filter(|(chat, _)| is_owner(chat, &at_.person));
        let mut mine: Vec<ChatSummary> = mine
            .map(|(chat, persona)| ChatSummary {
                chat: chat.clone(),
                title: Some("talk".into()),
                persona: persona.clone(),
                branch: "main".into(),
                group: None,
                tags: BTreeSet::new(),
                created_at: at(0),
                last_at: Some(at(1)),
            })
            .collect();
        mine.sort_by(|a, b| a.chat.cmp(&b.chat));
        Ok(mine)
    }

    async fn find_chats(&self, platform: &PlatformId, at_: Reading, _: &Text) -> Result<Vec<ChatSummary>, HostError> {
        self.chats(platform, at_).await
    }

    async fn chat(&self, platform: &PlatformId, at_: Reading) -> Result<Option<ChatSummary>, HostError> {
        let chats = self.chats(platform, at_.clone()).await?;
        Ok(chats.into_iter().find(|chat| chat.chat == at_.chat))
    }

    async fn messages(&self, _: &PlatformId, at_: Reading, limit: usize) -> Result<Vec<ShownMessage>, HostError> {
        if !is_owner(&at_.chat, &at_.person) {
            return Ok(Vec::new());
        }
        let messages = (0..5).map(|number| ShownMessage {
            id: MessageId::new(format!("{}:{number}", at_.chat)).unwrap(),
            author: Author::Person { id: at_.person.clone(), name: "Ann".into() },
            text: Text::new(format!("message {number}")),
            spoken: None,
            at: at(number),
            answers: None,
        });
        Ok(messages.take(limit).collect())
    }

    async fn branches(&self, _: &PlatformId, _: Reading) -> Result<Vec<BranchSummary>, HostError> {
        Ok(Vec::new())
    }

    async fn writings(
        &self,
        _: &PlatformId,
        at_: Reading,
        _: WritingKind,
        limit: usize,
    ) -> Result<Vec<ShownWriting>, HostError> {
        if !is_owner(&at_.chat, &at_.person) {
            return Ok(Vec::new());
        }
        let written = |(number, kind): (u64, &'static str)| ShownWriting {
            id: MemoryId(number),
            kind,
            text: Text::new(format!("{kind} {number}")),
            mood: None,
            themes: vec!["soup".to_owned(), "tea".to_owned()],
            at: at(number),
        };
        Ok([(92, "reflection"), (91, "diary"), (90, "diary")].map(written).into_iter().take(limit).collect())
    }

    async fn models(&self) -> Result<Vec<ModelSummary>, HostError> {
        Ok(Vec::new())
    }

    async fn mind(&self, _: &PlatformId, at_: Reading) -> Result<Option<MindSummary>, HostError> {
        let mind = || MindSummary {
            persona: self.persona(&at_.chat),
            state: State::default(),
            last_exchange: None,
            last_dream: None,
        };
        Ok(is_owner(&at_.chat, &at_.person).then(mind))
    }
}

#[async_trait]
impl MemoryReader for Engine {
    async fn memory(&self, _: &PlatformId, at: Reading, id: MemoryId) -> Result<Option<ShownMemory>, HostError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(self.shown(&at).into_iter().find(|memory| memory.id == id))
    }

    async fn memories_by_id(
        &self,
        _: &PlatformId,
        at: Reading,
        ids: Vec<MemoryId>,
    ) -> Result<Vec<ShownMemory>, HostError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let shown = self.shown(&at);
        Ok(ids.iter().filter_map(|id| shown.iter().find(|memory| memory.id == *id).cloned()).collect())
    }

    async fn themes(&self, _: &PlatformId, at: Reading, skip: usize, limit: usize) -> Result<ShownThemes, HostError> {
        // Each memory is a theme of its own.
        let shown = self.shown(&at);
        let theme = |memory: &ShownMemory| ShownTheme {
            words: memory.text.split_whitespace().next().map(str::to_owned).into_iter().collect(),
            scope: memory.scope.clone(),
            memories: 1,
            said: (memory.at, memory.at),
            typical: memory.clone(),
            newest: memory.clone(),
            parts: Vec::new(),
        };
        let is_cut = false;
        Ok(ShownThemes { is_cut, themes: shown.iter().skip(skip).take(limit).map(theme).collect(), total: shown.len() })
    }

    async fn memories(&self, _: &PlatformId, at: Reading, page: MemoryPage) -> Result<Vec<ShownMemory>, HostError> {
        let mut shown = self.shown(&at);
        shown.retain(|memory| page.before.is_none_or(|before| memory.id < before));
        shown.retain(|memory| page.kinds.is_empty() || page.kinds.iter().any(|kind| kind == memory.kind));
        shown.truncate(page.limit);
        Ok(shown)
    }

    async fn own_facts(&self, _: &PlatformId, at: Reading, page: FactPage) -> Result<OwnFacts, HostError> {
        let mut shown = self.shown(&at);
        let has_label = |text: &str| {
            page.label.is_none_or(|label| text.strip_prefix(label).is_some_and(|rest| rest.starts_with(" \"")))
        };
        shown.retain(|memory| memory.kind == "fact" && memory.sources.is_empty() && has_label(&memory.text));
        shown.retain(|memory| page.before.is_none_or(|before| memory.id < before));
        let is_cut = shown.len() > page.limit;
        shown.truncate(page.limit);
        let looked = shown.len() * self.others_between.load(Ordering::Relaxed).max(1);
        // Others may do something meanwhile.
        tokio::task::yield_now().await;
        self.facts_read.fetch_add(shown.len(), Ordering::Relaxed);
        let rest = shown.last().map(|memory| memory.id).filter(|_| is_cut);
        Ok(OwnFacts { facts: shown, looked, rest })
    }

    async fn graph_names(&self, _: &PlatformId, at: Reading) -> Result<ShownNames, HostError> {
        let most = if self.shown(&at).is_empty() {
            Vec::new()
        } else {
            vec![("Oslo".to_owned(), 2), ("Mia K.".to_owned(), 1)]
        };
        Ok(ShownNames { most, is_cut: false })
    }

    async fn entities(&self, _: &PlatformId, at_: Reading, name: String) -> Result<Vec<ShownEntity>, HostError> {
        let relation = |said: &str, other: &str| ShownRelation {
            said: said.to_owned(),
            other: other.to_owned(),
            is_plain: false,
            confidence: 0.9,
            since: at(1),
            until: self.shown(&at_).iter().find_map(|memory| memory.holding.held_until.clone()),
            sources: self.shown(&at_).first().map(|memory| memory.id).into_iter().collect(),
        };
        let relations = match name.to_lowercase().as_str() {
            _ if self.shown(&at_).is_empty() => return Ok(Vec::new()),
            "mia" | "mia k." => vec![relation("Mia lives in Oslo", "Oslo")],
            "oslo" => vec![relation("Mia lives in Oslo", "Mia"), relation("Ben lives in Oslo", "Ben")],
            _ => return Ok(Vec::new()),
        };
        Ok(vec![ShownEntity { name, kind: None, other_names: Vec::new(), mentions: 1, is_cut: false, relations }])
    }

    async fn group_themes(&self, _: &PlatformId, at: Reading, steps: Steps) -> Result<Option<usize>, HostError> {
        // What waits to be indexed in this engine says so. It groups two places, and finds nothing new in one of them.
        (0..2).for_each(|done| steps(done, 2));
        let waits = self.shown(&at).iter().any(|memory| memory.text.contains("unindexed"));
        Ok((!waits).then(|| self.shown(&at).len().min(1)))
    }

    async fn counts(&self, _: &PlatformId, at: Reading) -> Result<MemoryCounts, HostError> {
        Ok(MemoryCounts { by_kind: vec![("fact", self.shown(&at).len())], queued: 0 })
    }
}
