//! Asks for memories in every way, as everybody and from everywhere. Everything returned is judged.

use std::collections::HashSet;

use azera_adapter::{
    AutocompleteRequest, CommandLine, FileContent, Host, MemoryPage, MemoryReader, OptionKind, PictureHost,
    PictureSearch, PictureState, PictureWish, Platform, Reading, SearchRequest, ShownMemory, ShownPicture,
};
use azera_memory::{
    Account, Calendar, DataSubject, Forget, Hit, Kind, Limits, Memory, MemoryRow, NewFact, Opinion, Query, ReadScope,
    Salience, TrainingConsent, VectorIndex,
};
use azera_types::{
    Author, ChatId, Clock, MemoryId, MessageId, PersonId, PersonaId, PlaceKind, ReadableScopes, Scope, Text, TimeZone,
    Timestamp,
};
use serde::Serialize;

use crate::index::embed;
use crate::numbers::{BY_NUMBER, without_numbers};
use crate::oracle::{DEFAULT_PERSONA, Showing, word};
use crate::picture_choices::SUGGESTED;
use crate::showing::SHOWING;
use crate::test_engine::{TestEngine, chat, person};
use crate::watch::WatchedHost;
use crate::world::{CHATS, HOSTILE, PEOPLE};

/// Hits requested: more than there are.
const MANY: usize = 100;

/// Newest memories looked up by number.
const NUMBERS: usize = 12;

/// Newest messages of all places looked up by id.
const IDS: usize = 3;

/// All kinds of background writings.
const WRITTEN: [Kind; 6] = [Kind::Diary, Kind::Reflection, Kind::Dream, Kind::Note, Kind::Piece, Kind::CheckIn];

/// Somebody in a chat, looking.
struct Looking<'a> {
    engine: &'a TestEngine,
    chat: usize,
    person: usize,
    seen: Vec<String>,
}

/// Lets everybody look at what they can reach, briefly.
pub async fn look_up_all(engine: &TestEngine) {
    for chat in 0..CHATS.len() {
        for person in 0..PEOPLE.len() {
            let mut looking = Looking { engine, chat, person, seen: Vec::new() };
            looking.search("what is the lighthouse password?").await;
            if engine.watch.oracle().can_read(person, chat) {
                looking.command("/why").await;
                looking.read_memory("what is the lighthouse password?").await;
            }
        }
    }
}

/// Lets one person look at one chat in every way. Returns what they were shown, one entry per read.
pub async fn look_closely(engine: &TestEngine, chat: usize, person: usize) -> Vec<String> {
    let mut looking = Looking { engine, chat, person, seen: Vec::new() };
    for command in SHOWING {
        looking.command(command).await;
    }
    for kind in SUGGESTED {
        looking.autocomplete(kind).await;
    }
    looking.read_lists().await;
    looking.read_whole_memories().await;
    looking.read_pictures().await;
    looking.read_places().await;
    let order = engine.watch.oracle().order.clone();
    for id in order.iter().rev().take(IDS) {
        for id in [id.clone(), format!("{id}~r0")] {
            looking.command_about("/why", Some(MessageId::new(id).unwrap())).await;
        }
    }
    let secrets = engine.watch.oracle().secrets.len();
    let all: Vec<String> = (0..secrets).flat_map(|secret| [word(secret, false), word(secret, true)]).collect();
    let all = all.join(" ");
    let asking = ["what is the lighthouse password?", "What did Ann say?", "What did Zelda say?", all.as_str()];
    for query in asking.into_iter().chain(HOSTILE) {
        looking.search(query).await;
        looking.read_memory(query).await;
    }
    looking.seen
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

/// Formats what a person sees of a hit.
fn describe_hit(hit: &Hit) -> String {
    format!("{} {:?} {:.4} {}", json(&hit.memory), hit.signals, hit.score, hit.snippet.as_str())
}

fn state_text(state: &PictureState) -> String {
    match state {
        PictureState::Drawn(picture) => picture.prompt.to_string(),
        PictureState::Failed(why) => why.clone(),
        _ => "it is not drawn yet".to_owned(),
    }
}

/// Calls a read of the memory, and has its result judged under its name.
macro_rules! read {
    ($looking:ident, $memory:ident.$domain:ident().$method:ident($($argument:expr),*), |$found:ident| $text:expr) => {{
        let $found = $memory.$domain().$method($($argument),*).unwrap();
        let text: String = $text;
        $looking.saw(concat!("Memory::", stringify!($domain), "().", stringify!($method)), text);
        $found
    }};
    ($looking:ident, $memory:ident.$method:ident($($argument:expr),*), |$found:ident| $text:expr) => {{
        let $found = $memory.$method($($argument),*).unwrap();
        let text: String = $text;
        $looking.saw(concat!("Memory::", stringify!($method)), text);
        $found
    }};
}

mod episodes;
/// The graph.
mod graph;
mod known;
mod lists;
mod places;
mod sessions;
mod themes;

impl Looking<'_> {
    fn host(&self) -> WatchedHost<'_> {
        WatchedHost { host: &self.engine.azera, watch: &self.engine.watch }
    }

    async fn search(&mut self, query: &str) {
        let line = SearchRequest {
            chat: chat(self.chat),
            person: person(self.person),
            query: Text::new(query),
            limit: Some(MANY),
            as_of: None,
        };
        let platform = self.engine.platform.sim.clone();
        let hits = self.host().search(platform.id(), line).await;
        let found = hits.map_or_else(|error| error.to_string(), |found| crate::watch::hits_text(&found.hits));
        self.seen.push(format!("probe {query:?}: {}", without_numbers(&found)));
    }

    async fn autocomplete(&mut self, kind: OptionKind) {
        let line = AutocompleteRequest {
            chat: chat(self.chat),
            person: person(self.person),
            name: PEOPLE[self.person].1.to_owned(),
            kind,
            typed: String::new(),
        };
        let platform = self.engine.platform.sim.clone();
        let options = self.host().autocomplete(platform.id(), line).await;
        let said = options.map_or_else(|error| error.to_string(), |options| format!("{options:?}"));
        self.seen.push(format!("offer {kind:?}: {}", without_numbers(&said)));
    }

    async fn command(&mut self, text: &str) {
        self.command_about(text, None).await;
    }

    async fn command_about(&mut self, text: &str, about: Option<MessageId>) {
        let line = CommandLine {
            chat: chat(self.chat),
            person: person(self.person),
            name: PEOPLE[self.person].1.to_owned(),
            text: Text::new(text),
            about,
            picture: None,
        };
        let platform = self.engine.platform.sim.clone();
        let answer = self.host().command(platform.id(), line).await;
        let said = match answer {
            Ok(answer) => answer.chart.map_or(answer.text.clone(), |chart| format!("{}\n{chart:?}", answer.text)),
            Err(error) => error.to_string(),
        };
        // The duration says nothing about what was found.
        let said = said.split_once(", recall ").map_or(said.as_str(), |(said, _)| said);
        if text != "/memory export" {
            self.seen.push(format!("{text}: {}", without_numbers(said)));
        }
    }

    /// Lists whole memories, and looks the newest numbers of all places up.
    async fn read_whole_memories(&mut self) {
        let (azera, sim) = (&self.engine.azera, self.engine.platform.sim.clone());
        let (platform, at) = (sim.id(), Reading { chat: chat(self.chat), person: person(self.person) });
        let text = |one: &ShownMemory| {
            format!("{} {} {} {} {:?}", one.kind, one.author.name(), one.scope, one.text.as_str(), one.holding)
        };
        let page = MemoryPage { kinds: Vec::new(), before: None, limit: MANY };
        let listed = azera.memories(platform, at.clone(), page).await.unwrap();
        let counts = azera.counts(platform, at.clone()).await.unwrap();
        self.read_entities(platform, &at).await;
        self.read_shown_known(platform, &at).await;
        self.read_shown_themes(platform, &at).await;
        self.read_coding_sessions(platform, &at).await;
        self.read_shown_conversations(platform, &at).await;
        let mut found = Vec::new();
        let newest: Vec<_> = self.engine.vectors.ids().unwrap().into_iter().rev().take(NUMBERS).collect();
        for id in &newest {
            found.extend(azera.memory(platform, at.clone(), *id).await.unwrap());
        }
        let together = azera.memories_by_id(platform, at, newest).await.unwrap();
        self.saw("MemoryReader::memories", listed.iter().map(text).collect::<Vec<_>>().join("\n"));
        self.saw("MemoryReader::counts", format!("{:?}", counts.by_kind));
        self.saw("MemoryReader::memories_by_id", together.iter().map(text).collect::<Vec<_>>().join("\n"));
        self.saw("MemoryReader::memory", found.iter().map(text).collect::<Vec<_>>().join("\n"));
    }

    /// Lists the pictures, gets each of them, and asks how far the newest of all places are.
    async fn read_pictures(&mut self) {
        let (azera, sim) = (&self.engine.azera, self.engine.platform.sim.clone());
        let (platform, at) = (sim.id(), Reading { chat: chat(self.chat), person: person(self.person) });
        let listed = azera.pictures(platform, at.clone(), &PictureSearch::default()).await.unwrap();
        let (mut got, mut thumbnails, mut states) = (Vec::new(), Vec::new(), Vec::new());
        for row in self.engine.memory.pictures().waiting().unwrap().iter().rev().take(NUMBERS) {
            states.extend(azera.picture_state(platform, at.clone(), row.number).await.unwrap());
        }
        for picture in listed.iter().take(NUMBERS) {
            let whole = azera.picture(platform, at.clone(), picture.number).await.unwrap();
            got.extend(whole.map(|found| found.0.prompt.to_string()));
            thumbnails.extend(azera.thumbnail(platform, at.clone(), picture.number).await.unwrap().map(|it| it.0));
            states.extend(azera.picture_state(platform, at.clone(), picture.number).await.unwrap());
        }
        // An empty wish asks for nothing, so that looking changes nothing.
        let asked = azera.ask(platform, at.clone(), PictureWish::default()).await;
        // The list is of all chats of the person. What is of this one is judged here.
        let mut waiting = azera.waiting_pictures(platform, &at.person).await.unwrap();
        waiting.retain(|it| it.chat == at.chat);
        let kept = azera.keep_reference(platform, at.clone(), FileContent(vec![0; 4])).await;
        let reference = azera.reference(platform, at.clone(), "00112233445566778899aabbccddeeff").await.unwrap();
        let words = |it: &ShownPicture| format!("{} {:?} {:?}", &*it.prompt, it.by.as_deref(), it.place.as_deref());
        self.saw("PictureHost::picture_models", format!("{:?}", azera.picture_models()));
        self.saw("PictureHost::picture_choices", format!("{:?}", azera.picture_choices().await));
        self.saw("PictureHost::pictures", listed.iter().map(words).collect::<Vec<_>>().join("\n"));
        self.saw("PictureHost::picture", got.join("\n"));
        self.saw("PictureHost::thumbnail", thumbnails.iter().map(words).collect::<Vec<_>>().join("\n"));
        self.saw("PictureHost::picture_state", states.iter().map(state_text).collect::<Vec<_>>().join("\n"));
        self.saw("PictureHost::waiting_pictures", waiting.iter().map(|it| &*it.prompt).collect::<Vec<_>>().join("\n"));
        self.saw("PictureHost::ask", format!("{:?}", asked.is_ok()));
        self.saw("PictureHost::upscale", format!("{:?}", azera.upscale(platform, at, u64::MAX).await.is_ok()));
        self.saw("PictureHost::keep_reference", format!("{:?}", kept.is_ok()));
        self.saw("PictureHost::reference", format!("{:?}", reference.is_some()));
    }

    fn saw(&mut self, path: &str, text: String) {
        let persona = self.engine.watch.oracle().persona(self.chat);
        let own_words = path == "Memory::export";
        let asker = Some(self.person);
        self.engine.watch.shown(path, &Showing { chat: self.chat, asker, persona: &persona, own_words }, &text);
        // People may always see their own words, even if others may not; and which memories are looked up by number
        // depends on how many there are.
        if !own_words && !BY_NUMBER.contains(&path) {
            self.seen.push(format!("{path}: {}", without_numbers(&text)));
        }
    }

    /// Returns the read scope of the chat, as the platform reports it; `None` if the person cannot read it.
    async fn right(&self) -> Option<ReadScope> {
        let (chat, person) = (chat(self.chat), person(self.person));
        let sim = &self.engine.platform.sim;
        let place = sim.place(&chat, &person).await.unwrap()?;
        let mut reach = ReadableScopes::default();
        if let PlaceKind::Dm(owner) = &place.kind {
            reach.join(sim.readable_scopes(owner).await.unwrap());
            for Account { person, .. } in self.engine.memory.links().of(owner).unwrap() {
                reach.join(sim.readable_scopes(&person).await.unwrap());
                reach.direct.push(person);
            }
        }
        let known = self.engine.memory.chats().get(&chat).unwrap();
        let persona = known.map_or_else(|| PersonaId::new(DEFAULT_PERSONA).unwrap(), |chat| chat.persona);
        Some(ReadScope::in_place(persona, &place, &reach))
    }

    /// Calls every read of the memory itself, with ids from everywhere.
    async fn read_memory(&mut self, query: &str) {
        let Some(read_scope) = self.right().await else { return };
        let engine = self.engine;
        let memory: &Memory = &engine.memory;
        let (here, me): (ChatId, PersonId) = (chat(self.chat), person(self.person));
        let query_text = Text::new(query);
        let calendar = Calendar::new(engine.clock.now(), TimeZone::UTC);
        let question = read!(
            self,
            memory.recall().question(&read_scope, &query_text, &me, "Azera", &calendar),
            |found| format!("{:?}", found.speaker)
        );
        let query = Query {
            vector: Some(embed(&question.embed)),
            event_vector: question.event.as_ref().map(|event| embed(&event.embed)),
            question,
            asker: Some(me.clone()),
            now: engine.clock.now(),
            include_latest: true,
            exclude: HashSet::new(),
            limits: Limits::default(),
            results: MANY,
        };
        read!(self, memory.recall().find(&read_scope, &query), |found| found.hits.iter().map(describe_hit).collect());
        read!(self, memory.recall().find_unindexed(&read_scope, &query), |found| found
            .iter()
            .map(describe_hit)
            .collect());
        let words = memory.recall().find_words(&read_scope, &query);
        self.saw("Memory::recall().find_words", format!("{words:?}"));
        let shortlist = read!(self, memory.recall().shortlist(&read_scope, &query, words, MANY), |found| found
            .texts(MANY)
            .map(|(id, text)| format!("{id}: {text}\n"))
            .collect());
        // A model that likes the last ones best.
        let scores = shortlist.texts(MANY).enumerate().map(|(place, (id, _))| (id, place as f32)).collect();
        let opinion = Opinion { scores, weight: 0.5 };
        read!(self, memory.recall().finish(&read_scope, &query, shortlist, Some(&opinion)), |found| found
            .hits
            .iter()
            .map(describe_hit)
            .collect());
        read!(self, memory.recall().chats_saying(&read_scope, &query_text, engine.clock.now()), |found| format!(
            "{found:?}"
        ));
        read!(self, memory.messages().history(&read_scope, &here, MANY), |found| json(&found));
        read!(self, memory.chats().branches(&read_scope, &here), |found| json(&found));
        read!(self, memory.stats(&read_scope), |found| format!("{found:?}"));
        self.read_learnt(&read_scope);
        self.read_imports(&read_scope, &here);
        read!(self, memory.files().list(&read_scope), |found| format!("{found:?}"));
        read!(self, memory.files().get(&read_scope, "log.txt"), |found| found
            .as_ref()
            .map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned())
            .unwrap_or_default());
        read!(self, memory.pictures().newest_shown(&read_scope, &here, &me), |found| format!("{found:?}"));
        let page = read!(self, memory.pictures().page(&read_scope, (0, 1_000), |_| true), |found| json(&found.rows));
        let pictures = page.rows;
        for picture in pictures.iter().take(NUMBERS) {
            read!(self, memory.pictures().get(&read_scope, &picture.message), |found| json(&found));
            self.read_picture_file(&read_scope, &picture.message);
        }
        self.read_graph(&read_scope);
        self.read_themes(&read_scope);
        self.read_episodes(&read_scope);
        read!(self, memory.export(&DataSubject(me.clone()), u64::MAX), |found| found.to_string());
        self.read_own_files();
        self.read_trainable(&read_scope);
        self.read_by_id(&read_scope, &here);
        self.read_writings(&read_scope, &here);
    }

    /// Reads what may be trained on, with every message marked as salient.
    fn read_trainable(&mut self, read_scope: &ReadScope) {
        let engine = self.engine;
        let memory: &Memory = &engine.memory;
        let order = engine.watch.oracle().order.clone();
        // Every message is salient here.
        for id in order.iter().rev().take(IDS) {
            let salience = Salience {
                kind: "fact".into(),
                importance: 1.0,
                from: 0,
                to: usize::MAX,
                with: Vec::new(),
                superseded: None,
                used: None,
            };
            let id = MessageId::new(id).unwrap();
            memory.memories().mark(&id, &salience).unwrap();
            if let Some(said) = memory.messages().get(read_scope, &id).unwrap() {
                read!(self, memory.training().note_surprise(&said, 3.0, 2.0), |found| format!("{found:?}"));
            }
        }
        // Every other person consents to training, and every other one of those also to another machine.
        for at in (0..PEOPLE.len()).step_by(2) {
            let consent = TrainingConsent { since: Timestamp::UNIX_EPOCH, offload: at % 4 == 0 };
            memory.consent().set_training(&person(at), Some(consent)).unwrap();
        }
        let mut exchanges = Vec::new();
        for offload in [false, true] {
            let found = read!(self, memory.training().exchanges(read_scope, offload, &|_, _| true, MANY), |found| {
                json(&found.iter().map(|it| (&it.said, &it.reply, &it.before, &it.recalled)).collect::<Vec<_>>())
            });
            exchanges.extend(found.into_iter().map(|it| (offload, it)));
        }
        for (offload, it) in &exchanges {
            assert!(
                !offload || memory.training().may_offload(&it.provenance).unwrap(),
                "{} goes elsewhere",
                it.said.id
            );
            let rows = it.before.iter().chain([&it.said, &it.reply]);
            for row in rows {
                let is_here = row.scope == *read_scope.place()
                    && row.source_scopes.iter().all(|source_scope| source_scope.scope == row.scope);
                assert!(is_here, "{} is learned from in {}", row.id, read_scope.place());
            }
            for person in it.provenance.people.keys() {
                let consent = memory.consent().training(person).unwrap();
                let may = consent.is_some_and(|consent| consent.offload || !offload);
                assert!(may, "{person} did not want to be learned from");
            }
        }
    }

    /// Reads messages and memories by their ids.
    fn read_by_id(&mut self, read_scope: &ReadScope, here: &ChatId) {
        let engine = self.engine;
        let memory: &Memory = &engine.memory;
        let order = engine.watch.oracle().order.clone();
        self.read_statements(read_scope);
        read!(self, memory.memories().newest(read_scope, |_| true, None, MANY), |found| json(&found));
        self.read_known(read_scope);
        for id in order.iter().rev().take(IDS).map(|id| MessageId::new(id).unwrap()) {
            let reply = MessageId::new(format!("{id}~r0")).unwrap();
            for id in [&id, &reply] {
                let found = read!(self, memory.messages().get(read_scope, id), |found| json(&found));
                read!(self, memory.messages().history_to(read_scope, Some(id), MANY), |found| json(&found));
                read!(self, memory.messages().newest_at(read_scope, Some(id)), |found| json(&found));
                if found.is_none() {
                    // Nothing can branch off a message that cannot be read.
                    let refused = memory.chats().branch_from(read_scope, here, id, "stolen", engine.clock.now());
                    self.saw("Memory::chats().branch_from", refused.unwrap_err().to_string());
                }
            }
            read!(self, memory.messages().alternatives(read_scope, &id), |found| json(&found));
            read!(self, memory.messages().present_answer(read_scope, &id), |found| json(&found));
            read!(self, memory.messages().why(read_scope, &reply), |found| {
                let why = found.as_ref().map(|(why, memories, hidden)| (&why.recalled, memories, hidden));
                json(&why)
            });
        }
        for id in engine.vectors.ids().unwrap().into_iter().rev().take(NUMBERS) {
            read!(self, memory.memories().get(read_scope, id), |found| json(&found));
            read!(self, memory.writings().written(read_scope, id), |found| json(&found));
            let me = person(self.person);
            read!(self, memory.memories().may_be_replaced(read_scope, &me, id), |found| format!("{:?}", found.is_ok()))
                .ok();
        }
        // Looking changes nothing, so these are about a memory that does not exist.
        let (me, none, here, now) = (person(self.person), MemoryId(u64::MAX), chat(self.chat), engine.clock.now());
        read!(self, memory.memories().replace(read_scope, &me, none, None), |found| format!("{found:?}")).ok();
        self.rate_nothing(read_scope);
        read!(self, memory.memories().set_apart(read_scope, &me, none, true), |found| format!("{found:?}"));
        let fact = NewFact {
            persona: read_scope.persona().clone(),
            chat: here,
            scope: read_scope.place().clone(),
            author: Author::Person { id: me.clone(), name: String::new() },
            text: Text::new("it is not kept"),
            at: now,
        };
        read!(self, memory.memories().update(read_scope, &me, none, fact), |found| format!("{found:?}")).ok();
        let ids = engine.vectors.ids().unwrap();
        read!(self, memory.memories().said_again(read_scope, &ids), |found| format!("{found:?}"));
    }

    /// Reads what personas wrote, and what rests on everything.
    fn read_writings(&mut self, read_scope: &ReadScope, here: &ChatId) {
        let engine = self.engine;
        let memory: &Memory = &engine.memory;
        let order = engine.watch.oracle().order.clone();
        // A made-up writing that rests on all messages.
        let everything = MemoryRow {
            id: MemoryId(u64::MAX),
            persona: read_scope.persona().clone(),
            kind: Kind::Dream,
            scope: Scope::Global,
            source_scopes: Vec::new(),
            chat: None,
            session: 0,
            author: Author::Forgotten,
            sources: order.iter().rev().take(IDS).map(|id| MessageId::new(id).unwrap()).collect(),
            text: "".into(),
            at: Timestamp::MIN,
            salience: None,
            surprise: None,
            apart: false,
            replaced: None,
        };
        read!(self, memory.writings().behind(read_scope, &everything), |found| json(&found));
        for kind in WRITTEN {
            read!(self, memory.writings().list(read_scope, &[kind], MANY), |found| json(&found));
        }
        read!(self, memory.writings().notes(read_scope, here), |found| json(&found));
        read!(self, memory.writings().recent(read_scope, Timestamp::MIN, MANY), |found| json(&found));
        read!(self, memory.chats().switch_branch(read_scope, here, "stolen"), |found| json(&found));
        let nothing = Forget::Message(MessageId::new("never said").unwrap());
        read!(self, memory.forgetting().forget_as_seen(read_scope, &nothing, true), |found| json(&found));
    }
}
