use std::collections::HashMap;
use std::pin::{Pin, pin};

use azera_adapter::{
    ChatInfo, Command, CommandAnswer, CommandLine, GivenPicture, Host, HostError, InboundEvent, Outcome, Platform,
    Typed as Kind, suggestion, typed,
};
use azera_types::{ChatId, IdError, Inbound, InboundPart, MessageId, PersonId, PersonaId, PlatformId, Text};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::io::AsyncBufRead;

use crate::editor::{Editor, Typed};
use crate::files::{with_file, with_picture, with_recording, with_shown_picture};
use crate::id::message_id;
use crate::lines::Messages;
use crate::saved::save;
use crate::{Console, Error, MAX_PERSON_BYTES, MessagePer, Person, chat_id, owner};

/// Last part of the id of a person's first chat, unless another is given.
pub const FIRST_CHAT: &str = "main";

/// Most chats with turns in progress at once.
const MAX_UNDER_WAY: usize = 256;

/// The source of the input.
pub enum Input {
    /// The terminal through the line editor. Input and output must both be terminals.
    Terminal {
        /// True if the line editor may use colours.
        colour: bool,
    },
    /// A pipe.
    Pipe {
        /// The pipe.
        from: Box<dyn AsyncBufRead + Send + Unpin>,
        /// How much of it is one message.
        per: MessagePer,
    },
}

/// Options of a session at the console.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// First lines in a terminal: which model runs, where the data is.
    pub banner: Vec<String>,
    /// The engine's commands.
    pub commands: &'static [Command],
    /// Earlier inputs to recall, oldest first. They come from the record and not from a file of the console, so that
    /// forgotten messages are forgotten here, too.
    pub earlier: Vec<String>,
    /// The chat to begin in; the person's first one if `None`.
    pub chat: Option<ChatId>,
    /// The persona of a new chat; the configured default if `None`.
    pub persona: Option<PersonaId>,
    /// Name of the persona in the chat to begin in, if known.
    pub persona_name: Option<String>,
}

/// The result of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExitSummary {
    /// Messages that were answered.
    pub answered: usize,
    /// Messages and commands that failed. A program in a pipe should exit with an error if there are any.
    pub failed: usize,
}

/// Lets people talk until they leave or the input ends. Messages are handled one at a time. In
/// [`Format::Json`](crate::Format::Json), people talk at the same time: a message waits only for the reply to the same
/// person's message before it, and a command waits for everything.
///
/// In a terminal, Ctrl-C during a reply hides the rest of it, and a second one leaves; the session handles the signal
/// itself. An error ends the session. Failures of single messages are shown and counted.
pub async fn run(console: &Console, host: &dyn Host, options: Options, input: Input) -> Result<ExitSummary, Error> {
    let Options { banner, commands, earlier, chat, persona, persona_name } = options;
    let speaker = console.speaker();
    let chat = match chat {
        Some(chat) if owner(&chat).as_ref() == Some(&speaker.id) => chat,
        Some(chat) => return Err(Error::NotYours(chat)),
        None => chat_id(&speaker.id, FIRST_CHAT)?,
    };
    let mut talk = Talk {
        console,
        host,
        commands,
        persona,
        chat,
        unsent: None,
        left_in: HashMap::new(),
        interactive: false,
        under_way: FuturesUnordered::new(),
        summary: ExitSummary::default(),
    };
    talk.open().await?;
    let mut source = match input {
        Input::Pipe { from, per } => Source::Pipe(Messages::new(from, per)),
        Input::Terminal { colour } => {
            talk.interactive = true;
            let (editor, above) = Editor::start(commands, &earlier, colour)?;
            console.set_above_prompt(above);
            Source::Editor(editor)
        }
    };
    let shown = console.show(|view| {
        if let Some(name) = &persona_name {
            view.expect_name(name);
        }
        view.banner(&banner)
    });
    shown.map_err(Error::Output)?;
    loop {
        let text = match talk.listen(&mut source).await? {
            Typed::End => break,
            Typed::Text(text) => text,
            Typed::GivenUp => {
                console.show(|view| view.notice("Ctrl-D or /quit leaves.")).map_err(Error::Output)?;
                continue;
            }
        };
        if text.trim().is_empty() {
            continue;
        }
        let onward = tokio::select! {
            onward = talk.take(&text) => onward?,
            e = console.output_broken() => return Err(Error::Output(e)),
        };
        if let Some(e) = console.take_broken() {
            return Err(Error::Output(e));
        }
        if onward == Onward::Leave {
            break;
        }
    }
    tokio::select! {
        ended = talk.end_all() => ended?,
        e = console.output_broken() => return Err(Error::Output(e)),
    }
    Ok(talk.summary)
}

/// The only command of the console itself, because only the console knows who sits at it.
const AS: &str = "as";

/// Words that ask for help without a slash.
const HELP_WORDS: [&str; 2] = ["help", "?"];

enum Source {
    Editor(Editor),
    Pipe(Messages),
}

impl Source {
    /// Reads the next input. In a terminal the line begins with `begun`.
    async fn next(&mut self, console: &Console, begun: Option<String>) -> Result<Typed, Error> {
        match self {
            Self::Editor(editor) => {
                console.set_at_prompt(true);
                let typed = editor.read(&console.speaker().name, begun).await;
                console.set_at_prompt(false);
                typed
            }
            Self::Pipe(messages) => Ok(messages.next().await.map_err(Error::Input)?.map_or(Typed::End, Typed::Text)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Onward {
    Stay,
    Leave,
}

struct Talk<'a> {
    console: &'a Console,
    host: &'a dyn Host,
    commands: &'static [Command],
    persona: Option<PersonaId>,
    /// The current chat.
    chat: ChatId,
    /// The chats of people who spoke before.
    left_in: HashMap<PersonId, ChatId>,
    /// What was typed and not sent. A terminal offers it again.
    unsent: Option<String>,
    /// True if Ctrl-C comes from a key press in this session.
    interactive: bool,
    /// Turns in progress that nobody waits for, at most one per chat.
    under_way: FuturesUnordered<UnderWay<'a>>,
    summary: ExitSummary,
}

/// A turn about a message.
type UnderWay<'a> = Pin<Box<dyn Future<Output = Ended> + Send + 'a>>;

/// The end of a turn.
struct Ended {
    chat: ChatId,
    message: MessageId,
    outcome: Result<Outcome, HostError>,
}

impl Talk<'_> {
    /// Reads the next input while turns in progress end.
    async fn listen(&mut self, source: &mut Source) -> Result<Typed, Error> {
        let console = self.console;
        let mut typed = pin!(source.next(console, self.unsent.take()));
        loop {
            tokio::select! {
                typed = &mut typed => return typed,
                Some(ended) = self.under_way.next() => self.tell(ended)?,
                e = console.output_broken() => return Err(Error::Output(e)),
            }
        }
    }

    async fn take(&mut self, text: &str) -> Result<Onward, Error> {
        let hears_all = self.console.hears_all();
        let is_plea = HELP_WORDS.iter().any(|word| text.trim().eq_ignore_ascii_case(word));
        match typed(text, self.commands, &[AS]) {
            // A program speaks for people, who may say these words to the persona.
            Kind::Talk if is_plea && !hears_all => self.help().await,
            Kind::Talk if hears_all => {
                self.begin(text).await?;
                Ok(Onward::Stay)
            }
            Kind::Talk => match with_shown_picture(text) {
                Ok((text, picture)) => self.message(text, picture).await,
                Err(why) => {
                    self.unsent = Some(text.trim().to_owned());
                    self.refuse(why)
                }
            },
            Kind::Unknown(name) => {
                self.end_all().await?;
                self.unsent = Some(text.trim().to_owned());
                self.refuse(format!("{} Not sent: {}", suggestion(name, self.commands), text.trim()))
            }
            Kind::Command => {
                let command = text.trim().trim_start_matches('/');
                let (name, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
                if name.eq_ignore_ascii_case(AS) {
                    return self.speak_as(arguments).await;
                }
                self.end_all().await?;
                // Programs pass on what people write, and these must not read the files of the machine.
                if hears_all {
                    return self.command(text, None).await;
                }
                let read = with_file(text, self.commands)
                    .and_then(|line| with_recording(&line, self.commands))
                    .and_then(|line| with_picture(&line, self.commands));
                match read {
                    Ok((line, picture)) => self.command(&line, picture).await,
                    Err(why) => {
                        self.unsent = Some(text.trim().to_owned());
                        self.refuse(why)
                    }
                }
            }
        }
    }

    /// Shows why something typed was not done.
    fn refuse(&mut self, why: String) -> Result<Onward, Error> {
        self.summary.failed += 1;
        let answer = CommandAnswer { text: why, ..CommandAnswer::default() };
        self.console.show(|view| view.command(&self.chat, &answer)).map_err(Error::Output)?;
        Ok(Onward::Stay)
    }

    /// Answers the word `help`, which is no command without a slash.
    async fn help(&mut self) -> Result<Onward, Error> {
        self.end_all().await?;
        let onward = self.command("/help", None).await?;
        let note = "To say `help` to the persona, write a sentence with it.";
        self.console.show(|view| view.notice(note)).map_err(Error::Output)?;
        Ok(onward)
    }

    /// Starts a turn without waiting for its end. First waits for the previous turn in the chat.
    async fn begin(&mut self, text: &str) -> Result<(), Error> {
        while self.console.in_turn(&self.chat) || self.under_way.len() >= MAX_UNDER_WAY {
            let Some(ended) = self.under_way.next().await else { break };
            self.tell(ended)?;
        }
        let inbound = self.inbound(text, None)?;
        let (host, platform, chat, message) = (self.host, self.console.id(), self.chat.clone(), inbound.id.clone());
        self.console.begin_turn(&chat, Some(&message));
        self.under_way.push(Box::pin(async move {
            let outcome = answered(host, platform, inbound).await;
            Ended { chat, message, outcome }
        }));
        // A turn starts when it is first polled. The next message must not overtake it.
        while let Some(Some(ended)) = self.under_way.next().now_or_never() {
            self.tell(ended)?;
        }
        Ok(())
    }

    /// Waits for all turns in progress.
    async fn end_all(&mut self) -> Result<(), Error> {
        while let Some(ended) = self.under_way.next().await {
            self.tell(ended)?;
        }
        Ok(())
    }

    async fn open(&self) -> Result<(), Error> {
        let info = ChatInfo { chat: self.chat.clone(), title: None, persona: self.persona.clone() };
        self.host.submit(self.console.id(), InboundEvent::Chat(info)).await?;
        Ok(())
    }

    fn inbound(&self, text: &str, picture: Option<InboundPart>) -> Result<Inbound, Error> {
        let Person { id: person, name } = self.console.speaker();
        Ok(Inbound {
            id: message_id(self.console.clock())?,
            chat: self.chat.clone(),
            person,
            name,
            text: Text::new(text.trim_end()),
            at: self.console.clock().now(),
            parts: picture.into_iter().collect(),
            mentions_bot: false,
            mentions: Vec::new(),
            reply_to: None,
        })
    }

    /// Runs one turn to its end.
    async fn message(&mut self, text: &str, picture: Option<InboundPart>) -> Result<Onward, Error> {
        let inbound = self.inbound(text, picture)?;
        let (chat, message) = (self.chat.clone(), inbound.id.clone());
        self.console.begin_turn(&chat, Some(&message));
        self.console.show(|view| view.waiting()).map_err(Error::Output)?;
        let mut turn = pin!(answered(self.host, self.console.id(), inbound));
        let outcome = loop {
            tokio::select! {
                outcome = &mut turn => break outcome,
                () = interrupt(), if self.interactive => {
                    if !self.console.mute() {
                        return Ok(Onward::Leave);
                    }
                    let hidden = "The rest is not shown, but it is kept. Ctrl-C once more leaves.";
                    self.console.show(|view| view.notice(hidden)).map_err(Error::Output)?;
                }
            }
        };
        self.tell(Ended { chat, message, outcome })?;
        Ok(Onward::Stay)
    }

    /// Shows the end of a turn, as far as it was not shown already.
    fn tell(&mut self, ended: Ended) -> Result<(), Error> {
        let Ended { chat, message, outcome } = ended;
        let had_error = self.console.end_turn(&chat);
        let shown = match outcome {
            Ok(Outcome::Replied(turn)) => {
                self.summary.answered += 1;
                self.console.show(|view| view.turn(&turn))
            }
            Ok(Outcome::Skipped(why)) => self.console.show(|view| view.silent(&chat, &message, why)),
            Err(e) => {
                self.summary.failed += 1;
                if had_error {
                    Ok(())
                } else {
                    self.console.show(|view| view.error(&chat, Some(&message), &e.to_string()))
                }
            }
        };
        shown.map_err(Error::Output)
    }

    async fn command(&mut self, text: &str, picture: Option<GivenPicture>) -> Result<Onward, Error> {
        let Person { id: person, name } = self.console.speaker();
        let line = CommandLine {
            chat: self.chat.clone(),
            person: person.clone(),
            name,
            // It may hold a file, whose size is limited where it is read.
            text: Text::uncut(text.trim()),
            about: None,
            picture,
        };
        self.console.begin_turn(&self.chat, None);
        let answer = match self.host.command(self.console.id(), line).await {
            Ok(answer) => answer,
            Err(e) => CommandAnswer { text: e.to_string(), ..CommandAnswer::default() },
        };
        self.console.end_turn(&self.chat);
        if !answer.ok {
            self.summary.failed += 1;
        }
        self.console.show(|view| view.command(&self.chat, &answer)).map_err(Error::Output)?;
        let name = message_id(self.console.clock())?;
        let paths = save(&answer.files, name.as_str()).map_err(Error::Output)?;
        let files: Vec<_> = answer.files.iter().zip(paths).collect();
        self.console.show_answer_files(&self.chat, &files).map_err(Error::Output)?;
        if let Some(chat) = answer.go_to {
            self.go_to(person, chat).await?;
        }
        Ok(if answer.leave { Onward::Leave } else { Onward::Stay })
    }

    async fn speak_as(&mut self, name: &str) -> Result<Onward, Error> {
        let person = match Person::new(name) {
            Ok(person) => person,
            Err(error) => return self.refuse(name_trouble(&error)),
        };
        self.left_in.insert(self.console.speaker().id, self.chat.clone());
        let chat = match self.left_in.remove(&person.id) {
            Some(chat) => chat,
            None => chat_id(&person.id, FIRST_CHAT)?,
        };
        self.console.set_speaker(person.clone());
        self.go_to(person.id, chat).await?;
        self.console.show(|view| view.notice(&format!("{} speaks now.", person.name))).map_err(Error::Output)?;
        Ok(Onward::Stay)
    }

    /// Continues in another chat, if it belongs to the speaker and the engine opens it.
    async fn go_to(&mut self, person: PersonId, chat: ChatId) -> Result<(), Error> {
        if owner(&chat) != Some(person) {
            return Err(Error::NotYours(chat));
        }
        self.chat = chat;
        self.open().await
    }
}

/// Says why a name cannot be used, and how to write one.
fn name_trouble(error: &IdError) -> String {
    match error {
        IdError::Empty => "Write who speaks: `/as NAME`, for example `/as Ann`.".to_owned(),
        IdError::TooLong(length) => {
            format!("That name is too long: {length} bytes with its prefix, and {MAX_PERSON_BYTES} at most.")
        }
        error => format!("That name cannot be used: {error}."),
    }
}

/// Waits for Ctrl-C.
async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        // The signal cannot be received, so it never comes.
        std::future::pending::<()>().await;
    }
}

/// Submits a message and waits for its reply.
async fn answered(host: &dyn Host, platform: &PlatformId, inbound: Inbound) -> Result<Outcome, HostError> {
    host.submit(platform, InboundEvent::Message(inbound)).await?.outcome().await
}
