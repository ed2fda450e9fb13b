//! `azera voice`: talks by the machine's microphone and loudspeaker. The conversation is the one of voice channels, with one
//! person in it; what is said also stands in the terminal.

mod aloud;
mod loudspeaker;
mod microphone;
mod programs;
mod questions;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use azera_adapter::{CallManner, CallPersona, ExpectedMessage, VoiceHost as _};
use azera_adapter_console::{
    Console, FIRST_CHAT, Format, Input, MessagePer, Options, Person, chat_id, run as type_and_read,
};
use azera_config::Config;
use azera_engine::COMMANDS;
use azera_types::{ChatId, MessageId, PersonaId, PlatformId, SystemClock, Text};
use azera_voice_api::{Manner, VoiceActivity};
use azera_voice_call::{Report, Request, Talk, Told};
use azera_voice_room::{Event, Said, Settings, StreamId};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, Stdin};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::bootstrap::{self, BootstrapOptions, ModelChoice};
use crate::cli::TalkOptions;
use crate::{catch_up, speech, voice_engines};
use aloud::{Aloud, Begins, ToSay};
use loudspeaker::{Loudspeaker, News};
use microphone::Frame;
use questions::{Asking, Questions};

/// Bytes of lines that wait for the engine.
const PIPE: usize = 64 << 10;

/// The only stream of sound.
const STREAM: StreamId = StreamId(1);

pub async fn run(config: &Config, options: TalkOptions) -> anyhow::Result<ExitCode> {
    let person = Person::new(&options.name).context("the name in --as cannot be used")?;
    let persona = options.persona.as_deref().map(PersonaId::new).transpose().context("--persona")?;
    let frames = microphone::open()?;
    let (tell, news) = mpsc::unbounded_channel();
    let loudspeaker = Loudspeaker::open(tell)?;
    let engines = voice_engines::load(config).await?;
    let clock = Arc::new(SystemClock);
    let answers = options.model.as_deref().map_or(ModelChoice::Chosen, ModelChoice::named);
    let app = bootstrap::open(config, BootstrapOptions { answers, clock: clock.clone(), seed: None, on_trial: false })
        .await?;
    let (out, err) = (Box::new(std::io::stdout()), Box::new(std::io::stderr()));
    let console = Arc::new(Console::new(person.clone(), Format::Plain, out, err, clock)?);
    let (say, requests) = mpsc::unbounded_channel();
    app.engine.attach(Arc::new(Aloud::new(console.clone(), say.clone())));
    speech::keep_samples(&app.engine, config)?;
    catch_up::prepare(&app).await;
    app.engine.start().await?;
    let chat = chat_id(&person.id, FIRST_CHAT)?;
    let platform = azera_adapter::Platform::id(&*console).clone();
    let CallPersona { names, manner: own } = app.engine.call_persona(&platform, &chat).await?;
    let engines = engines.with_manner(&manner(own));
    engines.check()?;
    let first = engines.clone();
    tokio::task::spawn_blocking(move || first.load()).await??;
    let (reports, reported) = mpsc::unbounded_channel();
    let activity = (engines.activity)();
    let (mut talk, told) = Talk::begin(engines, Settings { names, ..Settings::default() }, loudspeaker, reports);
    let (id, name) = (person.id.clone(), person.name.clone());
    talk.request(Request::Joined { person: id, name, decision: Some(true) }).await;
    let (lines, from) = tokio::io::duplex(PIPE);
    let questions = Questions::default();
    let host = Asking { engine: app.engine.clone(), questions: questions.clone(), say };
    let session = Session {
        talk,
        activity,
        engine: app.engine.clone(),
        platform,
        chat,
        person,
        lines,
        questions,
        is_open: options.hands_free,
        hands_free: options.hands_free,
        is_written_alone: false,
        begun: Begun::default(),
    };
    let channels = Channels { frames, requests, told, reported, news };
    let typed = Options { commands: COMMANDS, persona, ..Options::default() };
    let input = Input::Pipe { from: Box::new(BufReader::new(from)), per: MessagePer::Line };
    let (heard, read) = tokio::join!(session.run(channels), type_and_read(&console, &host, typed, input));
    app.engine.stop().await;
    heard?;
    read?;
    Ok(ExitCode::SUCCESS)
}

/// Returns how a persona speaks, as engines of speech take it.
fn manner(own: CallManner) -> Manner {
    let CallManner { voice, needs_voice, pace, pitch, liveliness, language } = own;
    Manner { voice, needs_voice, pace, pitch, liveliness, language }
}

/// What the session hears of.
struct Channels {
    frames: mpsc::Receiver<Frame>,
    requests: mpsc::UnboundedReceiver<ToSay>,
    told: mpsc::UnboundedReceiver<Told>,
    reported: mpsc::UnboundedReceiver<Report>,
    news: mpsc::UnboundedReceiver<News>,
}

/// A conversation at this machine.
struct Session {
    talk: Talk<Loudspeaker>,
    activity: Box<dyn VoiceActivity>,
    engine: azera_engine::Engine,
    platform: PlatformId,
    chat: ChatId,
    person: Person,
    /// Where messages go.
    lines: DuplexStream,
    /// What was asked aloud.
    questions: Questions,
    /// True while the microphone is listened to.
    is_open: bool,
    hands_free: bool,
    /// True once nothing plays sound any more. Replies then stand in the terminal alone.
    is_written_alone: bool,
    begun: Begun,
}

/// The newest reply that began.
#[derive(Default)]
struct Begun(Option<MessageId>);

impl Begun {
    /// Returns true if a request begins a reply, also one that broke off before and is tried again.
    fn is_new(&self, begins: &Begins) -> bool {
        self.0.as_ref() != Some(&begins.reply)
    }

    /// Forgets the reply if the request ends it because it broke off.
    fn end_broken_off(&mut self, request: &Request) {
        if let Request::Whole(reply, text) = request
            && text.is_empty()
            && self.0.as_ref() == Some(reply)
        {
            self.0 = None;
        }
    }
}

impl Session {
    /// Talks until the standard input ends, or the microphone does.
    async fn run(mut self, mut channels: Channels) -> anyhow::Result<()> {
        eprintln!("{}", self.hint());
        let mut typed = BufReader::new(tokio::io::stdin()).lines();
        loop {
            let wake = self.talk.deadline().map(|at| self.talk.moment(at));
            let wake = wake.unwrap_or_else(|| Instant::now() + std::time::Duration::from_secs(3_600));
            tokio::select! {
                line = next_line(&mut typed) => match line? {
                    Some(line) => self.typed(&line).await?,
                    None => break,
                },
                frame = channels.frames.recv() => self.frame(frame.context("the microphone stopped")?).await,
                Some(what) = channels.requests.recv() => self.say(what).await?,
                Some(told) = channels.told.recv() => self.talk.told(told).await,
                Some(news) = channels.news.recv() => {
                    // What was interrupted before counts as interrupted.
                    self.report_all(&mut channels.reported).await?;
                    self.played(&news).await;
                }
                Some(report) = channels.reported.recv() => self.report(report).await?,
                () = tokio::time::sleep_until(wake) => self.talk.tick().await,
            }
        }
        // What was said to its end before is a message.
        self.report_all(&mut channels.reported).await?;
        self.talk.end().await;
        while let Ok(report) = channels.reported.try_recv() {
            self.report(cut_short(report)).await?;
        }
        Ok(())
    }

    /// Handles the reports that wait.
    async fn report_all(&mut self, reported: &mut mpsc::UnboundedReceiver<Report>) -> anyhow::Result<()> {
        while let Ok(report) = reported.try_recv() {
            self.report(report).await?;
        }
        Ok(())
    }

    /// Lets the conversation say something, unless nothing would play it.
    async fn say(&mut self, ToSay { begins, request }: ToSay) -> anyhow::Result<()> {
        if self.is_written_alone {
            return Ok(());
        }
        if let Some(Begins { reply, persona, asker }) = begins.filter(|begins| self.begun.is_new(begins)) {
            if let Some(asker) = asker {
                self.talk.request(Request::AskedBy(reply.clone(), asker)).await;
            }
            let own = self.engine.call_manner(&self.platform, &self.chat, &persona).await?;
            self.talk.request(Request::Manner(reply.clone(), manner(own))).await;
            self.begun.0 = Some(reply);
        }
        self.begun.end_broken_off(&request);
        self.talk.request(request).await;
        Ok(())
    }

    /// Takes in what happens to the loudspeaker.
    async fn played(&mut self, news: &News) {
        match news {
            News::PieceOver => {}
            News::Ended { program, next: Some(next) } => eprintln!("({program} stopped; {next} plays from here on)"),
            News::Ended { program, next: None } => {
                self.is_written_alone = true;
                eprintln!("({program} stopped, and nothing else here plays sound: my answers are text from here on)");
                self.talk.request(Request::Stop).await;
            }
        }
        self.talk.speak_on().await;
    }

    fn hint(&self) -> &'static str {
        match self.hands_free {
            true => "I listen. Use headphones; a typed line is a message, and Ctrl-D ends.",
            false => "Press Enter and talk; I listen until you pause. A typed line is a message, and Ctrl-D ends.",
        }
    }

    /// Handles a line: Enter opens the microphone, or stops what is said; anything else is a message.
    async fn typed(&mut self, line: &str) -> anyhow::Result<()> {
        if !line.trim().is_empty() {
            self.talk.request(Request::Stop).await;
            return self.submit(line).await;
        }
        self.talk.request(Request::Stop).await;
        if !self.is_open {
            self.is_open = true;
            eprintln!("(listening)");
        }
        Ok(())
    }

    async fn submit(&mut self, text: &str) -> anyhow::Result<()> {
        let line = format!("{}\n", one_line(text));
        self.lines.write_all(line.as_bytes()).await.context("the chat is over")
    }

    async fn frame(&mut self, samples: Frame) {
        if !self.is_open {
            return;
        }
        let probability = self.activity.probability(&samples).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot tell speech from other sounds");
            0.0
        });
        let person = self.person.id.clone();
        self.talk.event(Event::Frame { stream: STREAM, person, samples, probability }).await;
    }

    async fn report(&mut self, report: Report) -> anyhow::Result<()> {
        match report {
            Report::Said(said, _) => {
                self.is_open = self.hands_free;
                println!("{}: {}", said.name, said.text.as_str());
                if said.is_for_bot {
                    self.questions.ask(&one_line(said.text.as_str()));
                    self.submit(said.text.as_str()).await?;
                }
            }
            Report::Expected(expected) => self.expect(expected.text),
            // The whole reply stands in the terminal.
            Report::Heard { .. } if self.is_written_alone => {}
            Report::Heard { reply, heard, is_whole } => {
                self.engine.heard(&reply, Text::new(heard), is_whole).await?;
            }
            Report::CannotHear => eprintln!("(recognition of speech failed; the log says why)"),
            Report::Voiceless | Report::ChosenVoiceAway => eprintln!("(the voice failed; the log says why)"),
            Report::Muted(true) => eprintln!("(quiet; say \"you can talk again\")"),
            Report::Muted(false) => eprintln!("(no longer quiet)"),
            Report::Alone | Report::Uttered { .. } => {}
        }
        Ok(())
    }

    /// Lets the engine prepare the answer.
    fn expect(&self, text: Text) {
        let (engine, platform) = (self.engine.clone(), self.platform.clone());
        let Person { id: person, name } = self.person.clone();
        let message = ExpectedMessage { chat: self.chat.clone(), person, name, text };
        tokio::spawn(async move { engine.expect(&platform, message).await });
    }
}

/// Returns a report of what the end of the conversation cut short. Nobody waits for an answer to half a sentence: it is
/// shown, and the end does not wait for the model.
fn cut_short(report: Report) -> Report {
    match report {
        Report::Said(said, ago) => Report::Said(Said { is_for_bot: false, ..said }, ago),
        report => report,
    }
}

/// Returns a message as a line of input.
fn one_line(text: &str) -> String {
    text.trim().replace(['\n', '\r'], " ")
}

async fn next_line(typed: &mut Lines<BufReader<Stdin>>) -> anyhow::Result<Option<String>> {
    typed.next_line().await.context("the standard input")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use azera_types::PersonId;

    use super::*;

    #[test]
    fn a_sentence_that_the_end_cuts_short_is_shown_and_not_answered() {
        let said = Said {
            person: PersonId::new("console:ann").unwrap(),
            name: "Ann".to_owned(),
            text: Text::new("Where is the old"),
            began: Duration::ZERO,
            ended: Duration::from_secs(1),
            is_for_bot: true,
        };
        let Report::Said(said, ago) = cut_short(Report::Said(said, Duration::from_secs(2))) else {
            panic!("it is shown")
        };
        assert_eq!((said.text.as_str(), ago), ("Where is the old", Duration::from_secs(2)));
        assert!(!said.is_for_bot);
    }

    #[test]
    fn a_reply_that_broke_off_begins_again_and_no_other_does() {
        let [first, other] = ["a", "b"].map(|id| MessageId::new(id).unwrap());
        let begins = Begins { reply: first.clone(), persona: PersonaId::new("azera").unwrap(), asker: None };
        let mut begun = Begun::default();
        assert!(begun.is_new(&begins));
        begun.0 = Some(first.clone());
        for request in [
            Request::Piece(first.clone(), "It leaves".to_owned()),
            Request::Retracted(first.clone()),
            Request::Whole(first.clone(), "It leaves at six.".to_owned()),
            Request::Whole(other, String::new()),
        ] {
            begun.end_broken_off(&request);
            assert!(!begun.is_new(&begins), "its voice and its asker are known");
        }
        begun.end_broken_off(&Request::Whole(first, String::new()));
        assert!(begun.is_new(&begins));
    }
}
