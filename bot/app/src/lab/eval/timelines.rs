//! Timelines for evaluations: people of one realm say things over days, the product lives through them with its
//! background work, and somebody asks from another chat.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use azera_adapter::{Hit, Host, InboundEvent, SearchRequest};
use azera_config::Config;
use azera_fake_sim::{PLATFORM, SimPlatform, Timeline};
use azera_memory::ReadScope;
use azera_types::{
    ChatId, Inbound, ManualClock, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes,
    RealmId, Text, Timestamp,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::world;
use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::cli::Half;
use crate::stores;

/// Hits asked for.
const HITS: usize = 5;

/// Virtual time after which a job that stays due runs again.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(5 * 60);

/// Virtual time after the last message in which background work is done. A conversation is over by then.
const QUIET: std::time::Duration = std::time::Duration::from_secs(2 * 3_600);

const REALM: &str = "eval";
const SAID_IN: &str = "said";
const ASKED_IN: &str = "asked";

/// One message of a timeline.
#[derive(Debug, Clone, Deserialize)]
pub struct Said {
    pub id: String,
    pub at: Timestamp,
    pub person: String,
    pub text: String,
}

/// Reads the worlds of a file, or the built-in ones.
pub fn read<T: DeserializeOwned>(file: Option<&Path>, built_in: &str, half: Option<Half>) -> anyhow::Result<Vec<T>> {
    let text = match file {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?,
        None => built_in.to_owned(),
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let chosen = lines.filter(|(index, _)| match half {
        None => true,
        Some(Half::Odd) => index % 2 == 0,
        Some(Half::Even) => index % 2 == 1,
    });
    let worlds = chosen
        .map(|(index, line)| serde_json::from_str(line).with_context(|| format!("line {}", index + 1)))
        .collect::<anyhow::Result<Vec<T>>>()?;
    ensure!(!worlds.is_empty(), "there is no world to live through");
    Ok(worlds)
}

/// The product in the middle of a timeline.
pub struct TimelineRun {
    app: App,
    clock: ManualClock,
    platform: PlatformId,
    _scratch: tempfile::TempDir,
}

impl TimelineRun {
    /// Opens the product in an empty folder, with a realm in `zone` and two public chats, which all `people` may read.
    pub async fn open(
        config: &Config,
        model: &str,
        zone: &str,
        people: &[&str],
        start: Timestamp,
    ) -> anyhow::Result<Self> {
        let scratch = tempfile::tempdir().context("making a folder for the evaluation")?;
        let config = stores::scratch_config(config, scratch.path());
        let clock = ManualClock::new(start);
        let opening = BootstrapOptions {
            answers: ModelChoice::named(model),
            clock: Arc::new(clock.clone()),
            seed: Some(0),
            on_trial: false,
        };
        let app = bootstrap::open(&config, opening).await?;
        let sim = Arc::new(SimPlatform::new(Arc::new(clock.clone()))?);
        app.engine.attach(sim.clone());
        app.engine.start().await?;
        let lines = [
            json!({"type": "realm", "at": start, "realm": REALM, "members": people, "time_zone": zone}),
            json!({"type": "chat", "at": start, "realm": REALM, "chat": SAID_IN, "kind": "public"}),
            json!({"type": "chat", "at": start, "realm": REALM, "chat": ASKED_IN, "kind": "public"}),
        ];
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        world::set_up(&app, &clock, &sim, &Timeline::read(lines.as_bytes())?).await?;
        Ok(Self { app, clock, platform: PlatformId::new(PLATFORM)?, _scratch: scratch })
    }

    /// Lets somebody say something at its time.
    pub async fn say(&self, said: &Said) -> anyhow::Result<()> {
        self.live_until(said.at).await;
        let name: String = named(&said.person);
        let inbound = Inbound {
            id: MessageId::new(&said.id)?,
            chat: ChatId::new(SAID_IN)?,
            person: PersonId::new(&said.person)?,
            name,
            text: Text::new(&said.text),
            at: said.at,
            mentions_bot: false,
            mentions: Vec::new(),
            reply_to: None,
            parts: Vec::new(),
        };
        self.app.engine.submit(&self.platform, InboundEvent::Message(inbound)).await?.outcome().await?;
        self.app.engine.settle().await?;
        Ok(())
    }

    /// Returns what recall finds for a question at its time, and the milliseconds that it took.
    pub async fn ask(&self, at: Timestamp, asker: &str, question: &str) -> anyhow::Result<(Vec<Hit>, f64)> {
        self.live_until(at).await;
        self.app.engine.settle().await?;
        let search = SearchRequest {
            chat: ChatId::new(ASKED_IN)?,
            person: PersonId::new(asker)?,
            query: Text::new(question),
            limit: Some(HITS),
            as_of: None,
        };
        let started = Instant::now();
        let hits = self.app.engine.search(&self.platform, search).await?.hits;
        Ok((hits, started.elapsed().as_secs_f64() * 1_000.0))
    }

    /// Returns the messages of which the product knows that something later took their place.
    pub async fn closed(&self, people: &[&str]) -> anyhow::Result<Vec<String>> {
        let end = self.clock_now().checked_add(QUIET)?;
        self.live_until(end).await;
        self.app.engine.settle().await?;
        let kind = PlaceKind::Public(RealmId::new(REALM)?);
        let place = Place { chat: ChatId::new(ASKED_IN)?, kind, since: None };
        let persona = self.app.memory.chats().get(&ChatId::new(SAID_IN)?)?.map(|chat| chat.persona);
        let Some(persona): Option<PersonaId> = persona else { return Ok(Vec::new()) };
        let read_scope = ReadScope::in_place(persona, &place, &ReadableScopes::default());
        let mut closed = Vec::new();
        for person in people {
            let marked = self.app.memory.memories().salient(&read_scope, &PersonId::new(*person)?, usize::MAX)?;
            let over = marked
                .into_iter()
                .filter(|memory| memory.salience.as_ref().is_some_and(|salience| salience.superseded.is_some()));
            closed.extend(over.flat_map(|memory| memory.sources).map(|id| id.as_str().to_owned()));
        }
        Ok(closed)
    }

    pub async fn close(self) {
        self.app.engine.stop().await;
    }

    fn clock_now(&self) -> Timestamp {
        azera_types::Clock::now(&self.clock)
    }

    /// Runs every job at its time until `to`.
    async fn live_until(&self, to: Timestamp) {
        let mut last_run: Option<Timestamp> = None;
        while let Some(due) = self.app.engine.next_due() {
            let at = match last_run {
                Some(last_run) if due <= last_run => last_run.checked_add(RETRY_AFTER).unwrap_or(Timestamp::MAX),
                _ => due,
            };
            if at > to {
                break;
            }
            self.clock.advance_to(at);
            self.app.engine.run_jobs().await;
            last_run = Some(at);
        }
        self.clock.advance_to(to);
    }
}

/// Returns a person's shown name: the id with a capital.
fn named(person: &str) -> String {
    let mut chars = person.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Returns each person once.
pub fn people<'a>(messages: &'a [Said], askers: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut people: Vec<&str> = messages.iter().map(|said| said.person.as_str()).chain(askers).collect();
    people.sort_unstable();
    people.dedup();
    people
}

/// Shows a question whose first hit is wrong, on standard error.
pub fn show(question: &str, right: &[String], hits: &[Hit]) {
    eprintln!("- {question} (right: {})", right.join(", "));
    for hit in hits {
        let sources: Vec<&str> = hit.sources.iter().map(|id| id.as_str()).collect();
        let text = hit.text.replace('\n', " ");
        eprintln!("      {:.2} {} [{}] {text}", hit.score, sources.join(" "), hit.signals.join(" "));
    }
}
