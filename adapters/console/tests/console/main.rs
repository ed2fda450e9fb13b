//! Sessions at the console with a fake engine.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod commands;
mod streams;

use std::future::ready;
use std::io::{self, Cursor, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azera_adapter::{
    Access, AnswerFile, AutocompleteOption, AutocompleteRequest, Command, CommandAnswer, CommandLine, CommandOption,
    FileContent, Form, Host, HostError, InboundEvent, Making, OptionKind, Outbound, Outcome, Platform, PlatformError,
    Receipt, Recorded, SearchRequest, Searched, SkipReason, State, StreamEvent, Turn, TurnUsage,
};
use azera_adapter_console::{Console, Error, ExitSummary, Format, Input, MessagePer, Options, Person, chat_id, run};
use azera_types::{ChatId, Inbound, ManualClock, MessageId, Part, PersonaId, PlaceKind, PlatformId, Text};

/// A writer whose output the test can read.
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

/// A fake engine that repeats messages, streamed in two pieces.
struct Core {
    console: Arc<Console>,
    heard: Mutex<Vec<String>>,
    /// Notified when Bob was answered.
    bob: tokio::sync::Notify,
}

impl Core {
    fn outbound(&self, inbound: &Inbound) -> Outbound {
        Outbound {
            id: MessageId::new(format!("{}~r0", inbound.id)).unwrap(),
            chat: inbound.chat.clone(),
            persona: PersonaId::new("azera").unwrap(),
            persona_name: "Azera".into(),
            text: Text::new(format!("**You** said:\n{}", &*inbound.text)),
            reply_to: Some(MessageId::new("m").unwrap()),
            asker: None,
            state: State { mood: Some("calm".into()), ..State::default() },
            help: String::new(),
            files: Vec::new(),
            can_upscale: false,
        }
    }
}

impl Core {
    async fn message(&self, inbound: Inbound) -> Result<Outcome, HostError> {
        let shown: String = inbound.parts.iter().map(|shown| format!(" [{}]", shown.part.name)).collect();
        self.heard.lock().unwrap().push(format!("{} in {}: {}{shown}", inbound.name, inbound.chat, &*inbound.text));
        if &*inbound.text == "wait for Bob" {
            self.bob.notified().await;
        }
        if inbound.name == "Bob" {
            self.bob.notify_one();
        }
        let outbound = self.outbound(&inbound);
        let streaming = self.console.streaming().unwrap();
        let events = match &*inbound.text {
            "be quiet" => return Ok(Outcome::Skipped(SkipReason::Muted)),
            "fail" => return Err(HostError::Busy),
            "break" => {
                let content = StreamEvent::Content { text: "I was ab".into() };
                vec![content, StreamEvent::Error { message: "the model is gone".into() }]
            }
            "fail again" => vec![StreamEvent::Error { message: "the model is gone".into() }],
            "forget" => vec![StreamEvent::Content { text: "I was ab".into() }, StreamEvent::Withdrawn],
            "think" => vec![
                StreamEvent::ThinkingStart,
                StreamEvent::Thinking { text: "hmm".into() },
                StreamEvent::ThinkingEnd,
                StreamEvent::Content { text: "**You** said".into() },
                StreamEvent::Content { text: ":\nthink".into() },
                StreamEvent::Done { state: outbound.state.clone() },
            ],
            "retract" => vec![
                StreamEvent::Content { text: "They want".into() },
                StreamEvent::Retracted,
                StreamEvent::Content { text: "**You** said:".into() },
            ],
            // First the streamed text begins like the reply, then it differs.
            "half" => vec![StreamEvent::Content { text: "\n**You** sa".into() }],
            "other" => vec![StreamEvent::Content { text: "Something else".into() }],
            _ => Vec::new(),
        };
        // The turn of an earlier message is tried again amid this one, and fails.
        let other = MessageId::new("console:earlier~r0").unwrap();
        let making = Making {
            chat: &inbound.chat,
            reply: if &*inbound.text == "fail again" { &other } else { &outbound.id },
            persona: &outbound.persona,
            persona_name: &outbound.persona_name,
            asker: None,
            is_help: false,
        };
        for event in &events {
            streaming.event(making, event).await;
        }
        match &*inbound.text {
            "break" => return Err(HostError::Unavailable("the model is gone".into())),
            "fail again" => return Err(HostError::Busy),
            "forget" => return Ok(Outcome::Skipped(SkipReason::Forgotten)),
            _ => {}
        }
        for _ in 0..2 {
            self.console.deliver(&outbound).await.map_err(|e| HostError::Internal(e.into()))?;
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
}

#[async_trait]
impl Host for Core {
    async fn submit(&self, _: &PlatformId, event: InboundEvent) -> Result<Receipt, HostError> {
        Ok(match event {
            InboundEvent::Message(inbound) => {
                let outcome = self.message(inbound).await?;
                Receipt::new(Recorded::New, ready(Ok(outcome)))
            }
            InboundEvent::Chat(info) => {
                self.heard.lock().unwrap().push(format!("open {}", info.chat));
                Receipt::unanswered(Recorded::New)
            }
            other => panic!("the console sends no {other:?}"),
        })
    }

    async fn command(&self, _: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError> {
        self.heard.lock().unwrap().push(format!("command in {}: {}", line.chat, &*line.text));
        Ok(match line.text.to_lowercase().as_str() {
            "/new" => {
                let owner = azera_adapter_console::owner(&line.chat).unwrap();
                let go_to = Some(chat_id(&owner, "2").unwrap());
                CommandAnswer { ok: true, text: "A new chat.".into(), go_to, ..CommandAnswer::default() }
            }
            "/help" => CommandAnswer { ok: true, text: "Ask away.".into(), ..CommandAnswer::default() },
            "/memory file two" => {
                // The same name twice, and one that would lead elsewhere.
                let file = |name: &str, bytes: &[u8]| AnswerFile {
                    part: Part::new(name, None, bytes.len() as u64),
                    content: FileContent(bytes.to_vec()),
                };
                let files = vec![file("note.txt", b"first"), file("../note.txt", b"second")];
                CommandAnswer { ok: true, text: "From Ann:".into(), files, ..CommandAnswer::default() }
            }
            "/quit" => CommandAnswer { ok: true, leave: true, ..CommandAnswer::default() },
            _ => CommandAnswer { text: "There is no such command.".into(), ..CommandAnswer::default() },
        })
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

fn pipe(input: &[u8]) -> Input {
    Input::Pipe { from: Box::new(Cursor::new(input.to_vec())), per: MessagePer::Line }
}

const FILE: CommandOption = CommandOption { name: "file", help: "", kind: OptionKind::File, required: true };
const WHICH: CommandOption = CommandOption { name: "which", help: "", kind: OptionKind::Text, required: true };

const fn command(name: &'static str, forms: &'static [Form]) -> Command {
    Command { name, help: "", access: Access::Member, terminal: false, forms }
}

const fn form(word: &'static str, options: &'static [CommandOption]) -> Form {
    Form { name: word, word, help: "", access: Access::Member, options }
}

const COMMANDS: &[Command] = &[
    command("help", &[form("", &[])]),
    command("new", &[form("", &[])]),
    command("quit", &[form("", &[])]),
    command("journal", &[form("import", &[FILE])]),
    command("memory", &[form("file", &[WHICH])]),
];

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
    let core = Core { console: console.clone(), heard: Mutex::default(), bob: tokio::sync::Notify::new() };
    let options = Options {
        banner: vec!["This is Azera.".into()],
        commands: COMMANDS,
        persona_name: (format == Format::Terminal { colour: true }).then(|| "Areza".into()),
        ..Options::default()
    };
    let input = pipe(input.as_bytes());
    let summary = run(&console, &core, options, input).await.unwrap();
    let heard = core.heard.into_inner().unwrap().join("\n");
    Session { out: out.text(), err: err.text(), heard, summary }
}

#[tokio::test]
async fn a_pipe_gets_replies_and_nothing_else() {
    let session = talk(Format::Plain, "hello\n\nthink\nfail\nbe quiet\nbreak\n/nonsense\nother\n").await;
    insta::assert_snapshot!(session.out, @"
    **You** said:
    hello
    **You** said:
    think
    **You** said:
    other
    ");
    insta::assert_snapshot!(session.err, @"
    too many messages are waiting
    the model is gone
    There is no command `/nonsense`. `/help` lists all commands. Not sent: /nonsense
    ");
    assert_eq!(session.summary, ExitSummary { answered: 3, failed: 3 });
}

#[tokio::test]
async fn json_prints_every_event_and_each_reply_once() {
    let session = talk(Format::Json, "think\nfail\nbreak\nbe quiet\n/nonsense\n/new\n").await;
    let out = with_ids_hidden(&session.out);
    insta::assert_snapshot!(out, @r#"
    {"chat":"console:ann:main","reply":"console:ID~r0","type":"thinking_start"}
    {"chat":"console:ann:main","reply":"console:ID~r0","type":"thinking","text":"hmm"}
    {"chat":"console:ann:main","reply":"console:ID~r0","type":"thinking_end"}
    {"chat":"console:ann:main","reply":"console:ID~r0","type":"content","text":"**You** said"}
    {"chat":"console:ann:main","reply":"console:ID~r0","type":"content","text":":\nthink"}
    {"chat":"console:ann:main","reply":"console:ID~r0","type":"done","mood":"calm","mood_value":null,"energy":null}
    {"type":"reply","id":"console:ID~r0","to":"m","chat":"console:ann:main","persona":"azera","persona_name":"Azera","text":"**You** said:\nthink","mood":"calm","mood_value":null,"energy":null}
    {"type":"turn","reply":"console:ID~r0","to":"m","chat":"console:ann:main","persona":"azera","usage":{"prompt_tokens":9,"cached_tokens":6,"evaluated_tokens":3,"completion_tokens":0,"ttft_ms":0.0,"tokens_per_s":0.0},"recalled":[]}
    {"type":"error","chat":"console:ann:main","to":"console:ID","message":"too many messages are waiting"}
    {"chat":"console:ann:main","reply":"console:ID~r0","type":"content","text":"I was ab"}
    {"chat":"console:ann:main","reply":"console:ID~r0","type":"error","message":"the model is gone"}
    {"type":"error","chat":"console:ann:main","to":"console:ID","message":"the model is gone"}
    {"type":"silent","to":"console:ID","chat":"console:ann:main","why":"the chat is set to silent"}
    {"type":"command","chat":"console:ann:main","ok":false,"text":"There is no command `/nonsense`. `/help` lists all commands. Not sent: /nonsense"}
    {"type":"command","chat":"console:ann:main","ok":true,"text":"A new chat.","go_to":"console:ann:2"}
    "#);
    assert_eq!(session.err, "");
}

/// Replaces the ids of messages, which are random after their first part.
fn with_ids_hidden(out: &str) -> String {
    let mut parts = out.split("\"console:019");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("\"console:ID");
        // The number of a reply stays.
        text.push_str(part.find(['~', '"']).map_or("", |end| part.split_at(end).1));
    }
    text
}

#[tokio::test]
async fn files_of_an_answer_are_saved_for_the_person_alone() {
    let session = talk(Format::Plain, "/memory file two\n").await;
    let mut lines = session.out.lines();
    assert_eq!(lines.next(), Some("From Ann:"));
    let paths: Vec<PathBuf> = lines.map(PathBuf::from).collect();
    let contents: Vec<String> = paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert_eq!(contents, ["first", "second"]);
    for path in &paths {
        assert!(path.is_absolute() && path.ends_with("note.txt"), "{}", path.display());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
    std::fs::remove_dir_all(paths[0].parent().unwrap()).unwrap();
    let session = talk(Format::Json, "/memory file two\n").await;
    let shown: Vec<serde_json::Value> = session.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&shown[1]["type"], shown.len()), (&"file".into(), 3));
    let path = PathBuf::from(shown[1]["path"].as_str().unwrap());
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[tokio::test]
async fn a_terminal_shows_each_reply_once() {
    let session =
        talk(Format::Terminal { colour: false }, "hello\nthink\nhalf\nother\nfail\nbreak\nbe quiet\n/nonsense\n").await;
    insta::assert_snapshot!(session.out, @"
    This is Azera.
    Azera › **You** said:
    hello

    thinking: hmm
    Azera › **You** said:
    think

    Azera › **You** said:
    half

    Azera › Something else
    Azera › **You** said:
    other

    too many messages are waiting
    Azera › I was ab
    the model is gone
    (no answer: the chat is set to silent)
    There is no command `/nonsense`. `/help` lists all commands. Not sent: /nonsense
    ");
}

#[tokio::test]
async fn a_terminal_in_colour() {
    let session = talk(Format::Terminal { colour: true }, "think\nother\nbe quiet\n").await;
    insta::assert_snapshot!(session.out.replace('\u{1b}', "^").replace('\r', "~"), @"
    ^[2mThis is Azera.^[0m
    ^[2m…^[0m~^[K^[2mthinking: hmm^[0m
    ^[1;35mAreza ›^[0m ^[1mYou^[0m said:
    think
    ^[2m(Azera)^[0m

    ^[2m…^[0m~^[K^[1;35mAzera ›^[0m Something else
    ^[1;35mAzera ›^[0m ^[1mYou^[0m said:
    other

    ^[2m…^[0m~^[K^[2m(no answer: the chat is set to silent)^[0m
    ");
}

#[tokio::test]
async fn people_speak_in_chats_of_their_own() {
    let session = talk(Format::Plain, "one\n/new\ntwo\n/as Bob\nthree\n/as\n/as ANN\nfour\n/quit\nfive\n").await;
    insta::assert_snapshot!(session.heard, @"
    open console:ann:main
    Ann in console:ann:main: one
    command in console:ann:main: /new
    open console:ann:2
    Ann in console:ann:2: two
    open console:bob:main
    Bob in console:bob:main: three
    open console:ann:2
    ANN in console:ann:2: four
    command in console:ann:2: /quit
    ");
    assert_eq!(session.summary, ExitSummary { answered: 4, failed: 1 });
}

/// As JSON lines: Ann's reply waits until Bob has said something, so Bob is handled before it comes. Ann's next message
/// waits for it, and so does a command.
#[tokio::test]
async fn in_json_people_talk_at_the_same_time() {
    let session = talk(Format::Json, "wait for Bob\n/as Bob\nthree\n/as Ann\nfour\n/nonsense\n").await;
    insta::assert_snapshot!(session.heard, @"
    open console:ann:main
    Ann in console:ann:main: wait for Bob
    open console:bob:main
    Bob in console:bob:main: three
    open console:ann:main
    Ann in console:ann:main: four
    ");
    let printed: Vec<(&str, &str)> = session
        .out
        .lines()
        .filter_map(|line| Some((line.split_once("\"chat\":\"console:")?.1.split_once(':')?.0, line)))
        .filter(|(_, line)| line.contains("\"type\":\"turn\"") || line.contains("\"type\":\"command\""))
        .map(|(person, line)| (person, if line.contains("turn") { "turn" } else { "command" }))
        .collect();
    assert_eq!(printed, [("bob", "turn"), ("ann", "turn"), ("ann", "turn"), ("ann", "command")]);
    assert_eq!(session.summary, ExitSummary { answered: 3, failed: 1 });
}

#[tokio::test]
async fn only_the_owner_sees_a_chat() {
    let console = console(Format::Plain, io::sink(), io::sink());
    let (ann, bob) = (Person::new("ann").unwrap().id, Person::new("bob").unwrap().id);
    let chat = chat_id(&ann, "main").unwrap();
    assert_eq!(console.place(&chat, &ann).await.unwrap().unwrap().kind, PlaceKind::Dm(ann.clone()));
    assert_eq!(console.place(&chat, &bob).await.unwrap(), None);
    assert_eq!(console.place(&ChatId::new("hall").unwrap(), &ann).await.unwrap(), None);
    assert_eq!(console.access(&chat, &ann).await.unwrap(), Access::Operator);
    assert_eq!(console.access(&chat, &bob).await.unwrap(), Access::Member);
    assert_eq!(console.access(&chat_id(&bob, "main").unwrap(), &bob).await.unwrap(), Access::Admin);
}

#[tokio::test]
async fn a_reply_waits_for_its_owner() {
    let out = Shared::default();
    let console = console(Format::Plain, out.clone(), io::sink());
    let bob = Person::new("bob").unwrap();
    let mut outbound = Outbound {
        id: MessageId::new("r1").unwrap(),
        chat: chat_id(&bob.id, "main").unwrap(),
        persona: PersonaId::new("azera").unwrap(),
        persona_name: "Azera".into(),
        text: "for Bob".into(),
        reply_to: None,
        asker: None,
        state: State::default(),
        help: String::new(),
        files: Vec::new(),
        can_upscale: false,
    };
    assert!(console.deliver(&outbound).await.unwrap_err().is_transient());
    assert_eq!(out.text(), "");
    outbound.chat = ChatId::new("hall").unwrap();
    assert!(matches!(console.deliver(&outbound).await, Err(PlatformError::Refused(_))));
    outbound.chat = chat_id(&Person::new("ann").unwrap().id, "old").unwrap();
    console.deliver(&outbound).await.unwrap();
    console.deliver(&outbound).await.unwrap();
    assert_eq!(out.text(), "for Bob\n");
}

#[tokio::test]
async fn a_reply_cannot_command_the_terminal() {
    assert_eq!(talk(Format::Plain, "\u{1b}[2Jboo\u{7}\n").await.out, "**You** said:\n[2Jboo\n");
}

#[tokio::test]
async fn output_that_cannot_be_written_ends_the_session() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let console = console(Format::Plain, Closed, io::sink());
    let core = Core { console: console.clone(), heard: Mutex::default(), bob: tokio::sync::Notify::new() };
    let ended = run(&console, &core, Options::default(), pipe(b"one\ntwo\n")).await;
    assert!(matches!(ended, Err(Error::Output(_))), "{ended:?}");
    assert_eq!(core.heard.into_inner().unwrap().len(), 2, "nothing is sent after the output was closed");
}

#[tokio::test]
async fn nobody_can_begin_in_a_chat_of_somebody_else() {
    let console = console(Format::Plain, io::sink(), io::sink());
    let core = Core { console: console.clone(), heard: Mutex::default(), bob: tokio::sync::Notify::new() };
    let chat = chat_id(&Person::new("bob").unwrap().id, "main").unwrap();
    let options = Options { chat: Some(chat), ..Options::default() };
    let ended = run(&console, &core, options, pipe(b"")).await;
    assert!(matches!(ended, Err(Error::NotYours(_))), "{ended:?}");
}
