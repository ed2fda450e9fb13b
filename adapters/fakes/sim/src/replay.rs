use std::io::Write;
use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter::{
    ChatInfo, CommandLine, Edit, Host, HostError, InboundEvent, Outcome, Platform, Recorded, SearchRequest,
};
use azera_types::{ChatId, Inbound, MessageId, PersonId, Timestamp};

use crate::out::{OutFile, OutLine};
use crate::{
    ChatLine, CommandGiven, DeleteLine, EditLine, Error, Event, FileLine, MessageLine, Output, SearchLine, SimPlatform,
    Timeline,
};

/// The error of a [`Session`].
pub type SessionError = Box<dyn std::error::Error + Send + Sync>;

/// The product under replay: opens it, closes it and moves its clock.
#[async_trait]
pub trait Session: Send {
    /// Returns the running engine. The replay holds it for one line at most, so that [`Session::reopen`] can close
    /// everything.
    fn host(&self) -> Arc<dyn Host>;

    /// Advances the time to `to`. Due work runs at its own time. A past time changes nothing.
    async fn advance_to(&mut self, to: Timestamp) -> Result<(), SessionError>;

    /// Closes everything and opens it again from disk, with the same platform.
    async fn reopen(&mut self) -> Result<(), SessionError>;
}

/// The result of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Played {
    /// Number of lines played.
    pub lines: usize,
    /// Number of replies in the output.
    pub replies: usize,
    /// Number of errors in the output.
    pub errors: usize,
}

/// Plays a timeline and writes its output, one JSON line per event, flushed at once.
///
/// An error stops the replay: the output cannot be written, or the session fails. Failures of the product and
/// violations of the world's rules are lines of the output.
pub async fn replay(
    timeline: &Timeline,
    platform: &SimPlatform,
    session: &mut dyn Session,
    out: &mut (dyn Write + Send),
) -> Result<Played, Error> {
    let mut player = Player { platform, session, out, played: Played::default() };
    for line in timeline.lines() {
        let failed = |source| Error::Session { number: line.number, source };
        if let Some(at) = line.event.at() {
            player.session.advance_to(at).await.map_err(failed)?;
        }
        player.tell_delivered()?;
        if let Event::Restart(_) = line.event {
            player.session.reopen().await.map_err(failed)?;
        } else {
            player.play(&line.event).await?;
        }
        if let Err(e) = player.session.host().settle().await {
            player.tell_error(Subject::default(), e)?;
        }
        player.tell_delivered()?;
        player.played.lines += 1;
    }
    Ok(player.played)
}

struct Player<'a> {
    platform: &'a SimPlatform,
    session: &'a mut dyn Session,
    out: &'a mut (dyn Write + Send),
    played: Played,
}

/// What an error is about.
#[derive(Default, Clone, Copy)]
struct Subject<'a> {
    to: Option<&'a MessageId>,
    chat: Option<&'a ChatId>,
    person: Option<&'a PersonId>,
}

impl Player<'_> {
    async fn play(&mut self, event: &Event) -> Result<(), Error> {
        match event {
            Event::Realm(line) => {
                self.platform.with_world(|world| world.set_realm(line));
                Ok(())
            }
            Event::Chat(line) => self.chat(line).await,
            Event::Join(line) => {
                let done = self.platform.with_world(|world| world.join(&line.target, &line.person, line.at));
                self.tell_failure(Subject { person: Some(&line.person), ..Subject::default() }, done)
            }
            Event::Leave(line) => {
                let done = self.platform.with_world(|world| world.leave(&line.target, &line.person));
                self.tell_failure(Subject { person: Some(&line.person), ..Subject::default() }, done)
            }
            Event::Message(line) => self.message(line).await,
            Event::Edit(line) => self.edit(line).await,
            Event::Delete(line) => self.delete(line).await,
            Event::Command(line) => self.command(line).await,
            Event::Search(line) => self.search(line).await,
            // The time was advanced already, and a restart is not an event for the engine.
            Event::Wait(_) | Event::Restart(_) => Ok(()),
        }
    }

    async fn chat(&mut self, line: &ChatLine) -> Result<(), Error> {
        let about = Subject { chat: Some(&line.chat), ..Subject::default() };
        if let Err(e) = self.platform.with_world(|world| world.set_chat(line)) {
            return self.tell_error(about, e);
        }
        let info = ChatInfo { chat: line.chat.clone(), title: None, persona: line.persona.clone() };
        let done = self.session.host().submit(self.platform.id(), InboundEvent::Chat(info)).await;
        self.tell_failure(about, done.map(drop))
    }

    async fn message(&mut self, line: &MessageLine) -> Result<(), Error> {
        let about = Subject { to: Some(&line.id), chat: Some(&line.chat), person: Some(&line.person) };
        if let Err(e) = self.platform.with_world(|world| world.say(line)) {
            return self.tell_error(about, e);
        }
        let inbound = Inbound {
            id: line.id.clone(),
            chat: line.chat.clone(),
            person: line.person.clone(),
            name: line.shown_name(),
            text: line.text.clone(),
            at: line.at,
            parts: line.files.iter().map(FileLine::inbound).collect(),
            mentions_bot: line.mentions_bot.unwrap_or(false),
            mentions: line.mentions.clone().unwrap_or_default(),
            reply_to: line.reply_to.clone(),
        };
        match self.submit(InboundEvent::Message(inbound)).await {
            Ok((_, outcome)) => self.tell_outcome(about, outcome),
            Err(e) => self.tell_error(about, e),
        }
    }

    /// Submits an event and waits for its end.
    async fn submit(&self, event: InboundEvent) -> Result<(Recorded, Outcome), HostError> {
        let receipt = self.session.host().submit(self.platform.id(), event).await?;
        Ok((receipt.recorded(), receipt.outcome().await?))
    }

    async fn edit(&mut self, line: &EditLine) -> Result<(), Error> {
        let about = Subject { to: Some(&line.id), ..Subject::default() };
        let said = match self.platform.with_world(|world| world.reachable(&line.id).map(|said| said.cloned())) {
            Ok(said) => said,
            Err(e) => return self.tell_error(about, e),
        };
        let about = Subject { chat: said.as_ref().map(|said| &said.chat), ..about };
        let parts = line.files.iter().map(FileLine::inbound).collect();
        let edit = Edit { text: line.text.clone(), parts, at: line.at };
        match self.submit(InboundEvent::Edit { message: line.id.clone(), edit }).await {
            Ok((Recorded::Ignored(_), _)) => self.tell_error(about, "there is no such message"),
            Ok((_, outcome)) => self.tell_outcome(about, outcome),
            Err(e) => self.tell_error(about, e),
        }
    }

    async fn delete(&mut self, line: &DeleteLine) -> Result<(), Error> {
        let about = Subject { to: Some(&line.id), ..Subject::default() };
        if let Err(e) = self.platform.with_world(|world| world.reachable(&line.id).map(|_| ())) {
            return self.tell_error(about, e);
        }
        let event = InboundEvent::Deletion { message: line.id.clone() };
        let done = self.session.host().submit(self.platform.id(), event).await;
        self.tell_failure(about, done.map(drop))
    }

    async fn command(&mut self, line: &CommandGiven) -> Result<(), Error> {
        let about = Subject { to: None, chat: Some(&line.chat), person: Some(&line.person) };
        if let Err(e) = self.platform.with_world(|world| world.check_read(&line.chat, &line.person)) {
            return self.tell_error(about, e);
        }
        let given = CommandLine {
            chat: line.chat.clone(),
            person: line.person.clone(),
            name: line.person.to_string(),
            text: line.text.clone(),
            about: None,
            picture: None,
        };
        match self.session.host().command(self.platform.id(), given).await {
            Ok(answer) => {
                // Replies that the command delivered come before its answer.
                self.tell_delivered()?;
                self.tell(Output::Command {
                    chat: &line.chat,
                    person: &line.person,
                    ok: answer.ok,
                    text: &answer.text,
                    go_to: answer.go_to.as_ref(),
                    files: answer.files.iter().map(OutFile::of).collect(),
                })
            }
            Err(e) => self.tell_error(about, e),
        }
    }

    async fn search(&mut self, line: &SearchLine) -> Result<(), Error> {
        let request = SearchRequest {
            chat: line.chat.clone(),
            person: line.person.clone(),
            query: line.query.clone(),
            limit: line.limit,
            as_of: None,
        };
        // By the format, a person who cannot read the chat finds nothing.
        let known = self.platform.with_world(|world| world.has_chat(&line.chat));
        let searched = match known {
            true => self.session.host().search(self.platform.id(), request).await.map(|found| found.hits),
            false => Ok(Vec::new()),
        };
        let hits = match searched {
            Ok(hits) => hits,
            Err(HostError::NotAllowed) => Vec::new(),
            Err(e) => {
                let about = Subject { to: None, chat: Some(&line.chat), person: Some(&line.person) };
                return self.tell_error(about, e);
            }
        };
        self.tell(Output::Search { query: &line.query, chat: &line.chat, person: &line.person, hits: &hits })
    }

    fn tell_outcome(&mut self, about: Subject<'_>, outcome: Outcome) -> Result<(), Error> {
        match outcome {
            Outcome::Replied(turn) => {
                for delivered in self.platform.take_delivered() {
                    if delivered.outbound.id != turn.reply {
                        self.tell_at(delivered.at, Output::delivered(&delivered))?;
                    }
                }
                if !self.platform.was_shown(&turn.reply) {
                    return self.tell_error(about, "the reply was made and never delivered");
                }
                self.tell(Output::turn(&turn))
            }
            Outcome::Skipped(reason) => match about.to {
                Some(to) => self.tell(Output::skipped(to, about.chat, reason)),
                None => Ok(()),
            },
        }
    }

    /// Prints replies that were delivered outside a turn: from before a restart, or by a command.
    fn tell_delivered(&mut self) -> Result<(), Error> {
        for delivered in self.platform.take_delivered() {
            self.tell_at(delivered.at, Output::delivered(&delivered))?;
        }
        Ok(())
    }

    fn tell_failure<E: std::fmt::Display>(&mut self, about: Subject<'_>, done: Result<(), E>) -> Result<(), Error> {
        done.or_else(|e| self.tell_error(about, e))
    }

    fn tell_error(&mut self, about: Subject<'_>, error: impl std::fmt::Display) -> Result<(), Error> {
        let Subject { to, chat, person } = about;
        self.tell(Output::Error { to, chat, person, text: error.to_string() })
    }

    fn tell(&mut self, output: Output<'_>) -> Result<(), Error> {
        self.tell_at(self.platform.now(), output)
    }

    fn tell_at(&mut self, at: Timestamp, output: Output<'_>) -> Result<(), Error> {
        match &output {
            Output::Reply { .. } => self.played.replies += 1,
            Output::Error { .. } => self.played.errors += 1,
            _ => {}
        }
        let mut line = serde_json::to_vec(&OutLine { at, output }).map_err(|e| Error::Write(e.into()))?;
        line.push(b'\n');
        self.out.write_all(&line).and_then(|()| self.out.flush()).map_err(Error::Write)
    }
}
