#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azera_adapter::{
    Access, ChatInfo, CommandAnswer, CommandLine, Hit, Host, HostError, Outbound, Outcome, Platform, PlatformError,
    ProbeLine, Silence, State, StreamEvent, Turn, TurnUsage,
};
use azera_adapter_console::{Console, Error, ExitSummary, Format, Input, Options, Person, chat_id, run};
use azera_types::{ChatId, Inbound, ManualClock, MessageId, PersonaId, PlaceKind, PlatformId, Text, Timestamp};

/// A writer the test can look into.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A core that says back what it hears, streamed in two pieces.
struct Core {
    console: Arc<Console>,
    heard: Mutex<Vec<String>>,
}

impl Core {
    fn outbound(&self, n: usize, inbound: &Inbound) -> Outbound {
        Outbound {
            id: MessageId::new(format!("r{n}")).unwrap(),
            chat: inbound.chat.clone(),
            persona: PersonaId::new("azera").unwrap(),
            persona_name: "Azera".into(),
            text: Text::new(format!("**You** said:\n{}", &*inbound.text)),
            reply_to: Some(MessageId::new("m").unwrap()),
            state: State { mood: Some("calm".into()), ..State::default() },
        }
    }
}

#[async_trait]
impl Host for Core {
    async fn open_chat(&self, _: &PlatformId, info: ChatInfo) -> Result<(), HostError> {
        self.heard.lock().unwrap().push(format!("open {}", info.chat));
        Ok(())
    }

    async fn message(&self, _: &PlatformId, inbound: Inbound) -> Result<Outcome, HostError> {
        let n = {
            let mut heard = self.heard.lock().unwrap();
            heard.push(format!("{} in {}: {}", inbound.name, inbound.chat, &*inbound.text));
            heard.len()
        };
        let outbound = self.outbound(n, &inbound);
        let streaming = self.console.streaming().unwrap();
        let events = match &*inbound.text {
            "be quiet" => return Ok(Outcome::Silent(Silence::Muted)),
            "fail" => return Err(HostError::Busy),
            "break" => {
                let content = StreamEvent::Content { text: "I was ab".into() };
                vec![content, StreamEvent::Error { message: "the model is gone".into() }]
            }
            "think" => vec![
                StreamEvent::ThinkingStart,
                StreamEvent::Thinking { text: "hmm".into() },
                StreamEvent::ThinkingEnd,
                StreamEvent::Content { text: "**You** said".into() },
                StreamEvent::Content { text: ":\nthink".into() },
                StreamEvent::Done { state: outbound.state.clone() },
            ],
            // What is streamed is the beginning of the reply, then something else.
            "half" => vec![StreamEvent::Content { text: "\n**You** sa".into() }],
            "other" => vec![StreamEvent::Content { text: "Something else".into() }],
            _ => Vec::new(),
        };
        for event in &events {
            streaming.event(&inbound.chat, &outbound.id, event).await;
        }
        if &*inbound.text == "break" {
            return Err(HostError::Failed("the model is gone".into()));
        }
        for _ in 0..2 {
            self.console.deliver(&outbound).await.map_err(|e| HostError::Failed(e.to_string()))?;
        }
        Ok(Outcome::Replied(Box::new(Turn {
            reply: outbound.id,
            to: MessageId::new("m").unwrap(),
            chat: outbound.chat,
            persona: outbound.persona,
            text: outbound.text,
            state: outbound.state,
            usage: TurnUsage { prompt_tokens: 9, cached_tokens: 6, evaluated_tokens: 3, ..TurnUsage::default() },
            recalled: Vec::new(),
        })))
    }

    async fn edited(&self, _: &PlatformId, _: &MessageId, _: Text, _: Timestamp) -> Result<Option<Outcome>, HostError> {
        Ok(None)
    }

    async fn deleted(&self, _: &PlatformId, _: &MessageId) -> Result<(), HostError> {
        Ok(())
    }

    async fn command(&self, _: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError> {
        self.heard.lock().unwrap().push(format!("command in {}: {}", line.chat, &*line.text));
        Ok(match &*line.text {
            "/new" => {
                let owner = azera_adapter_console::owner(&line.chat).unwrap();
                let go_to = Some(chat_id(&owner, "2").unwrap());
                CommandAnswer { ok: true, text: "A new chat.".into(), go_to, leave: false }
            }
            "/quit" => CommandAnswer { ok: true, leave: true, ..CommandAnswer::default() },
            _ => CommandAnswer { text: "There is no such command.".into(), ..CommandAnswer::default() },
        })
    }

    async fn probe(&self, _: &PlatformId, _: ProbeLine) -> Result<Vec<Hit>, HostError> {
        Ok(Vec::new())
    }

    async fn settle(&self) -> Result<(), HostError> {
        Ok(())
    }
}

struct Session {
    out: String,
    err: String,
    heard: String,
    summary: ExitSummary,
}

fn console(format: Format, out: impl Write + Send + 'static, err: impl Write + Send + 'static) -> Arc<Console> {
    let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let ann = Person::new("Ann").unwrap();
    Arc::new(Console::new(ann, format, Box::new(out), Box::new(err), Arc::new(clock)).unwrap())
}

async fn talk(format: Format, input: &str) -> Session {
    let (out, err) = (Shared::default(), Shared::default());
    let console = console(format, out.clone(), err.clone());
    let core = Core { console: console.clone(), heard: Mutex::default() };
    let options = Options {
        banner: vec!["This is Azera.".into()],
        persona_name: (format == Format::Terminal { colour: true }).then(|| "Areza".into()),
        ..Options::default()
    };
    let input = Input::Lines(Box::new(Cursor::new(input.as_bytes().to_vec())));
    let summary = run(&console, &core, options, input).await.unwrap();
    let heard = core.heard.into_inner().unwrap().join("\n");
    Session { out: out.text(), err: err.text(), heard, summary }
}

/// The ids of messages are random; their beginning is not.
fn with_ids_hidden(out: &str) -> String {
    let mut parts = out.split("\"console:019");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("\"console:ID\"");
        text.push_str(part.split_once('"').map_or("", |(_, rest)| rest));
    }
    text
}

fn main() {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
        let console = console(Format::Terminal { colour: true }, io::stdout(), io::stderr());
        let core = Core { console: console.clone(), heard: Mutex::default() };
        let commands = ["new", "persona", "quit"].map(|name| azera_adapter_console::CommandHint {
            name: name.into(),
            args: if name == "persona" { "use NAME".into() } else { String::new() },
            help: "helps".into(),
        });
        let options = Options {
            banner: vec!["This is Azera.".into()],
            commands: commands.into(),
            earlier: vec!["earlier words".into()],
            ..Options::default()
        };
        println!("{:?}", run(&console, &core, options, Input::Terminal { colour: true }).await);
    });
}
