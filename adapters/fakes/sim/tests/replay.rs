//! A whole timeline, played against a fake engine.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azera_adapter::{
    AutocompleteOption, AutocompleteRequest, CommandAnswer, CommandLine, Hit, Holding, Host, HostError, IgnoreReason,
    InboundEvent, MemoryIdText, Outbound, Outcome, Platform, Receipt, Recorded, SearchRequest, Searched, SkipReason,
    State, Turn, TurnUsage,
};
use azera_fake_sim::{Error, Played, Session, SessionError, SimPlatform, Timeline, replay};
use azera_types::{Clock, Inbound, ManualClock, MemoryId, MessageId, PersonaId, PlatformId, Scope, Text, Timestamp};

/// The fake engine's data on disk.
#[derive(Default)]
struct Disk {
    inbound: HashMap<MessageId, Inbound>,
    seen: HashSet<MessageId>,
    outbox: Vec<Outbound>,
    made: usize,
}

/// A fake engine that repeats messages which mention the bot, and finds every message of a chat that the asker can
/// read.
struct Core {
    platform: Arc<SimPlatform>,
    disk: Arc<Mutex<Disk>>,
}

impl Core {
    fn compose(&self, inbound: &Inbound) -> Outbound {
        let mut disk = self.disk.lock().unwrap();
        disk.made += 1;
        Outbound {
            id: MessageId::new(format!("r{}", disk.made)).unwrap(),
            chat: inbound.chat.clone(),
            persona: PersonaId::new("azera").unwrap(),
            persona_name: "Azera".into(),
            text: Text::new(format!("{} said: {}", inbound.name, &*inbound.text)),
            reply_to: Some(inbound.id.clone()),
            asker: None,
            state: State::default(),
            help: String::new(),
            files: Vec::new(),
            can_upscale: false,
        }
    }

    async fn answer(&self, inbound: &Inbound) -> Result<Outcome, HostError> {
        if !inbound.mentions_bot && inbound.reply_to.is_none() {
            return Ok(Outcome::Skipped(SkipReason::NotAddressed));
        }
        let outbound = self.compose(inbound);
        if inbound.text.starts_with("later") {
            self.disk.lock().unwrap().outbox.push(outbound);
            return Err(HostError::Unavailable("the model is gone".into()));
        }
        for _ in 0..2 {
            self.platform.deliver(&outbound).await.unwrap();
        }
        Ok(Outcome::Replied(Box::new(Turn {
            reply: outbound.id,
            to: inbound.id.clone(),
            chat: outbound.chat,
            persona: outbound.persona,
            text: outbound.text,
            state: State { mood: Some("calm".into()), mood_value: Some(0.5), energy: Some(1.0) },
            usage: TurnUsage { prompt_tokens: 9, cached_tokens: 6, evaluated_tokens: 3, ..TurnUsage::default() },
            recalled: Vec::new(),
        })))
    }
}

impl Core {
    async fn message(&self, platform: &PlatformId, inbound: Inbound) -> Result<Outcome, HostError> {
        assert_eq!(platform.as_str(), "sim");
        if !self.disk.lock().unwrap().seen.insert(inbound.id.clone()) {
            return Ok(Outcome::Skipped(SkipReason::Duplicate));
        }
        self.disk.lock().unwrap().inbound.insert(inbound.id.clone(), inbound.clone());
        self.answer(&inbound).await
    }

    async fn edited(&self, id: &MessageId, text: Text) -> Result<Receipt, HostError> {
        let known = self.disk.lock().unwrap().inbound.get(id).cloned();
        let Some(mut inbound) = known else {
            return Ok(Receipt::unanswered(Recorded::Ignored(IgnoreReason::UnknownMessage)));
        };
        inbound.text = text;
        let outcome = self.answer(&inbound).await?;
        Ok(Receipt::new(Recorded::New, ready(Ok(outcome))))
    }
}

#[async_trait]
impl Host for Core {
    async fn submit(&self, platform: &PlatformId, event: InboundEvent) -> Result<Receipt, HostError> {
        Ok(match event {
            InboundEvent::Message(inbound) => {
                let outcome = self.message(platform, inbound).await?;
                Receipt::new(Recorded::New, ready(Ok(outcome)))
            }
            InboundEvent::Edit { message, edit } => self.edited(&message, edit.text).await?,
            InboundEvent::Deletion { message } => {
                self.disk.lock().unwrap().inbound.remove(&message);
                Receipt::unanswered(Recorded::New)
            }
            InboundEvent::Chat(_)
            | InboundEvent::Chunks { .. }
            | InboundEvent::ReactionsRemoved { .. }
            | InboundEvent::Left { .. } => Receipt::unanswered(Recorded::New),
        })
    }

    async fn command(&self, _: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError> {
        if &*line.text == "/swipe" {
            let inbound = self.disk.lock().unwrap().inbound[&MessageId::new("m1").unwrap()].clone();
            let first = Outbound { id: MessageId::new("r1").unwrap(), ..self.compose(&inbound) };
            self.platform.show_again(&first).await.unwrap();
        }
        let access = self.platform.access(&line.chat, &line.person).await.unwrap();
        Ok(CommandAnswer { ok: &*line.text == "/why", text: format!("{access:?}"), ..CommandAnswer::default() })
    }

    async fn autocomplete(&self, _: &PlatformId, _: AutocompleteRequest) -> Result<Vec<AutocompleteOption>, HostError> {
        Ok(Vec::new())
    }

    async fn search(&self, _: &PlatformId, line: SearchRequest) -> Result<Searched, HostError> {
        if self.platform.place(&line.chat, &line.person).await.unwrap().is_none() {
            return Err(HostError::NotAllowed);
        }
        let disk = self.disk.lock().unwrap();
        let mut found: Vec<_> = disk.inbound.values().filter(|inbound| inbound.chat == line.chat).collect();
        found.sort_by_key(|inbound| inbound.id.clone());
        let hit = |inbound: &Inbound| Hit {
            memory: MemoryIdText(MemoryId(1)),
            kind: "exchange".into(),
            scope: Scope::Chat(inbound.chat.clone()),
            sources: vec![inbound.id.clone()],
            score: 0.5,
            signals: vec!["text".into()],
            text: inbound.text.clone(),
            holding: Holding::default(),
        };
        let hits = found.into_iter().take(line.limit.unwrap_or(10)).map(hit).collect();
        Ok(Searched { hits, missing: Vec::new() })
    }

    async fn settle(&self) -> Result<(), HostError> {
        Ok(())
    }
}

struct TestSession {
    clock: ManualClock,
    core: Arc<Core>,
}

#[async_trait]
impl Session for TestSession {
    fn host(&self) -> Arc<dyn Host> {
        self.core.clone()
    }

    async fn advance_to(&mut self, to: Timestamp) -> Result<(), SessionError> {
        self.clock.advance_to(to);
        Ok(())
    }

    async fn reopen(&mut self) -> Result<(), SessionError> {
        assert_eq!(Arc::strong_count(&self.core), 1, "the replay still holds the core that must be closed");
        self.core = Arc::new(Core { platform: self.core.platform.clone(), disk: self.core.disk.clone() });
        let left = std::mem::take(&mut self.core.disk.lock().unwrap().outbox);
        for outbound in left {
            self.core.platform.deliver(&outbound).await?;
        }
        Ok(())
    }
}

async fn play(lines: &str) -> (String, Played) {
    let timeline = Timeline::read(lines.as_bytes()).unwrap();
    let clock = ManualClock::new(timeline.start().unwrap());
    let platform = Arc::new(SimPlatform::new(Arc::new(clock.clone()) as Arc<dyn Clock>).unwrap());
    let core = Arc::new(Core { platform: platform.clone(), disk: Arc::default() });
    let mut session = TestSession { clock, core };
    let mut out = Vec::new();
    let played = replay(&timeline, &platform, &mut session, &mut out).await.unwrap();
    (String::from_utf8(out).unwrap(), played)
}

/// Adds times to timeline lines: the line's number in minutes.
fn timed(lines: &[&str]) -> String {
    let line =
        |(n, line): (usize, &&str)| line.replacen('{', &format!(r#"{{"at":"2026-01-01T00:{n:02}:00Z","type":"#), 1);
    lines.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_timeline_is_played_line_by_line() {
    let (out, played) = play(&timed(&[
        r#"{"realm","realm":"guild","members":["ann","bob"],"time_zone":"Europe/Berlin"}"#,
        r#"{"chat","chat":"hall","kind":"public","realm":"guild","persona":"azera"}"#,
        r#"{"chat","chat":"den","kind":"private","realm":"guild","members":["ann"]}"#,
        r#"{"message","id":"m1","chat":"hall","person":"ann","name":"Ann","text":"hello","mentions_bot":true}"#,
        r#"{"message","id":"m2","chat":"hall","person":"bob","text":"hello ann","mentions":["ann"]}"#,
        r#"{"message","id":"m1","chat":"hall","person":"ann","text":"hello","mentions_bot":true}"#,
        r#"{"message","id":"m3","chat":"den","person":"bob","text":"let me in","mentions_bot":true}"#,
        r#"{"edit","id":"m1","text":"good morning"}"#,
        r#"{"edit","id":"m9","text":"never said"}"#,
        r#"{"probe","chat":"hall","person":"bob","query":"hello","limit":1}"#,
        r#"{"probe","chat":"den","person":"bob","query":"hello"}"#,
        r#"{"command","chat":"hall","person":"ann","text":"/why"}"#,
        r#"{"command","chat":"hall","person":"ann","text":"/swipe"}"#,
        r#"{"command","chat":"den","person":"bob","text":"/why"}"#,
        r#"{"delete","id":"m2"}"#,
        r#"{"message","id":"m4","chat":"hall","person":"bob","text":"later","reply_to":"r1"}"#,
        r#"{"restart"}"#,
        r#"{"leave","realm":"guild","person":"bob"}"#,
        r#"{"probe","chat":"hall","person":"bob","query":"hello"}"#,
        r#"{"edit","id":"m4","text":"from outside"}"#,
    ]))
    .await;
    assert_eq!(played, Played { lines: 20, replies: 3, errors: 5 });
    insta::assert_snapshot!(out, @r#"
    {"at":"2026-01-01T00:03:00Z","type":"reply","id":"r1","to":"m1","chat":"hall","persona":"azera","text":"Ann said: hello","mood":"calm","mood_value":0.5,"energy":1.0,"prompt_tokens":9,"cached_tokens":6,"evaluated_tokens":3,"completion_tokens":0,"recalled":[]}
    {"at":"2026-01-01T00:04:00Z","type":"silent","to":"m2","chat":"hall","why":"not addressed"}
    {"at":"2026-01-01T00:05:00Z","type":"silent","to":"m1","chat":"hall","why":"already taken in"}
    {"at":"2026-01-01T00:06:00Z","type":"error","to":"m3","chat":"den","person":"bob","text":"bob cannot read den"}
    {"at":"2026-01-01T00:07:00Z","type":"reply","id":"r2","to":"m1","chat":"hall","persona":"azera","text":"Ann said: good morning","mood":"calm","mood_value":0.5,"energy":1.0,"prompt_tokens":9,"cached_tokens":6,"evaluated_tokens":3,"completion_tokens":0,"recalled":[]}
    {"at":"2026-01-01T00:08:00Z","type":"error","to":"m9","text":"there is no such message"}
    {"at":"2026-01-01T00:09:00Z","type":"probe","query":"hello","chat":"hall","person":"bob","hits":[{"memory":"m1","kind":"exchange","scope":"chat:hall","sources":["m1"],"score":0.5,"signals":["text"],"text":"hello"}]}
    {"at":"2026-01-01T00:10:00Z","type":"probe","query":"hello","chat":"den","person":"bob","hits":[]}
    {"at":"2026-01-01T00:11:00Z","type":"command","chat":"hall","person":"ann","ok":true,"text":"Admin"}
    {"at":"2026-01-01T00:12:00Z","type":"shown_again","id":"r1","chat":"hall"}
    {"at":"2026-01-01T00:12:00Z","type":"command","chat":"hall","person":"ann","ok":false,"text":"Admin"}
    {"at":"2026-01-01T00:13:00Z","type":"error","chat":"den","person":"bob","text":"bob cannot read den"}
    {"at":"2026-01-01T00:15:00Z","type":"error","to":"m4","chat":"hall","person":"bob","text":"the model is gone"}
    {"at":"2026-01-01T00:16:00Z","type":"reply","id":"r4","to":"m4","chat":"hall","persona":"azera","text":"bob said: later","mood":null,"mood_value":null,"energy":null,"prompt_tokens":null,"cached_tokens":null,"evaluated_tokens":null,"completion_tokens":null,"recalled":[]}
    {"at":"2026-01-01T00:18:00Z","type":"probe","query":"hello","chat":"hall","person":"bob","hits":[]}
    {"at":"2026-01-01T00:19:00Z","type":"error","to":"m4","text":"bob cannot read hall"}
    "#);
}

#[tokio::test]
async fn a_wait_lets_time_pass_and_a_restart_needs_no_time() {
    let (out, _) = play(concat!(
        r#"{"type":"chat","at":"2026-01-01T00:00:00Z","chat":"dm","kind":"dm","members":["ann"]}"#,
        "\n",
        r#"{"type":"wait","until":"2026-01-04T00:00:00Z"}"#,
        "\n",
        r#"{"type":"restart"}"#,
        "\n",
        r#"{"type":"join","at":"2026-01-04T00:00:00Z","chat":"dm","person":"bob"}"#,
    ))
    .await;
    insta::assert_snapshot!(out, @r#"{"at":"2026-01-04T00:00:00Z","type":"error","person":"bob","text":"nobody can join or leave the direct message dm"}"#);
}

#[test]
fn nothing_is_played_of_a_timeline_with_a_bad_line() {
    let lines = timed(&[r#"{"realm","realm":"guild","members":["ann"]}"#, r#"{"message","chat":"hall"}"#]);
    let error = Timeline::read(lines.as_bytes()).unwrap_err();
    assert!(matches!(error, Error::Line { number: 2, .. }), "{error}");
    assert_eq!(error.to_string(), "line 2: missing field `id`");
}

struct Full;

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn output_that_cannot_be_written_stops_the_replay() {
    let timeline = Timeline::read(timed(&[r#"{"join","realm":"nowhere","person":"ann"}"#]).as_bytes()).unwrap();
    let clock = ManualClock::new(timeline.start().unwrap());
    let platform = Arc::new(SimPlatform::new(Arc::new(clock.clone())).unwrap());
    let core = Arc::new(Core { platform: platform.clone(), disk: Arc::default() });
    let error = replay(&timeline, &platform, &mut TestSession { clock, core }, &mut Full).await.unwrap_err();
    assert!(matches!(error, Error::Write(_)), "{error}");
}
