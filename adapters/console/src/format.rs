use std::io::{self, Write};
use std::path::Path;

use azera_adapter::{CommandAnswer, Outbound, SkipReason, StreamEvent, Turn};
use azera_types::{ChatId, MessageId};

use crate::json::JsonLines;
use crate::plain::Plain;
use crate::terminal::Terminal;

/// How the console shows events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For a person: names, replies as they are generated, Markdown as styles.
    Terminal {
        /// True if colours and other escape sequences may be used.
        colour: bool,
    },
    /// Replies only; errors go to the error output.
    Plain,
    /// One JSON object per line and event.
    Json,
}

/// Shows events in one [`Format`].
pub(crate) trait View: Send {
    /// Whether a failed turn ends with an error that names its message, even if one was streamed before. A program that
    /// waits for the end of a turn needs it; a person would read the same twice.
    fn names_failed_messages(&self) -> bool {
        false
    }
    /// Sets the name of the persona that probably speaks next.
    fn expect_name(&mut self, _name: &str) {}
    /// Shows the first lines.
    fn banner(&mut self, lines: &[String]) -> io::Result<()>;
    /// Shows that a message was received and its reply is awaited.
    fn waiting(&mut self) -> io::Result<()>;
    /// Shows a piece of a reply that is being generated.
    fn event(&mut self, chat: &ChatId, reply: &MessageId, event: &StreamEvent) -> io::Result<()>;
    /// Shows how far a picture is.
    fn progress(&mut self, _chat: &ChatId, _picture: &MessageId, _text: &str) -> io::Result<()> {
        Ok(())
    }
    /// Shows the parts of a complete reply that were not streamed.
    fn reply(&mut self, outbound: &Outbound) -> io::Result<()>;
    /// Shows an earlier reply again, because somebody chose it.
    fn reply_again(&mut self, outbound: &Outbound) -> io::Result<()>;
    /// Returns a complete reply as text, for the line editor to print above the line being typed.
    fn reply_text(&self, outbound: &Outbound) -> String;
    /// Shows that the turn is over.
    fn turn(&mut self, turn: &Turn) -> io::Result<()>;
    /// Shows that the message gets no reply.
    fn silent(&mut self, chat: &ChatId, to: &MessageId, why: SkipReason) -> io::Result<()>;
    /// Shows the answer to a command.
    fn command(&mut self, chat: &ChatId, answer: &CommandAnswer) -> io::Result<()>;
    /// Shows where a file of an answer was saved. `picture` is what a terminal is sent to show it.
    fn file(&mut self, chat: &ChatId, path: &Path, picture: Option<&str>) -> io::Result<()>;
    /// Shows an error about `to`, or about the input.
    fn error(&mut self, chat: &ChatId, to: Option<&MessageId>, message: &str) -> io::Result<()>;
    /// Shows a message of the console itself.
    fn notice(&mut self, text: &str) -> io::Result<()>;
}

/// The output of a view.
pub(crate) type Sink = Box<dyn Write + Send>;

impl Format {
    pub(crate) fn view(self, out: Sink, err: Sink) -> Box<dyn View> {
        match self {
            Self::Terminal { colour } => Box::new(Terminal::new(out, colour)),
            Self::Plain => Box::new(Plain::new(out, err)),
            Self::Json => Box::new(JsonLines::new(out)),
        }
    }
}

/// Removes control characters that could move the cursor or change the terminal; keeps line ends and tabs.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}
