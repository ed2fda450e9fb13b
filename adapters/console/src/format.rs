use std::io::{self, Write};

use azera_adapter::{CommandAnswer, Outbound, SkipReason, StreamEvent, Turn};
use azera_types::{ChatId, MessageId};

use crate::json::JsonLines;
use crate::plain::Plain;
use crate::terminal::Terminal;

/// How the console shows what happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For somebody who watches: names, pieces of the reply as they come, Markdown made readable.
    Terminal {
        /// Whether colours and other escape sequences may be used.
        colour: bool,
    },
    /// Replies and nothing else; what goes wrong goes to the error output.
    Plain,
    /// One JSON object a line for each event.
    Json,
}

/// What the console can show, in one [`Format`].
pub(crate) trait View: Send {
    /// Who is likely to speak next, until a reply tells.
    fn expect_name(&mut self, _name: &str) {}
    /// The first lines of all.
    fn banner(&mut self, lines: &[String]) -> io::Result<()>;
    /// A message was taken in and its reply is awaited.
    fn waiting(&mut self) -> io::Result<()>;
    /// A piece of a reply in the making.
    fn event(&mut self, chat: &ChatId, reply: &MessageId, event: &StreamEvent) -> io::Result<()>;
    /// A complete reply: shows what of it was not shown yet.
    fn reply(&mut self, outbound: &Outbound) -> io::Result<()>;
    /// A reply shown before, shown again because somebody chose it.
    fn reply_again(&mut self, outbound: &Outbound) -> io::Result<()>;
    /// A complete reply as text, for the line editor to put above what is being typed.
    fn reply_text(&self, outbound: &Outbound) -> String;
    /// The turn is over.
    fn turn(&mut self, turn: &Turn) -> io::Result<()>;
    /// The message is not answered.
    fn silent(&mut self, chat: &ChatId, to: &MessageId, why: SkipReason) -> io::Result<()>;
    /// A command was answered.
    fn command(&mut self, chat: &ChatId, answer: &CommandAnswer) -> io::Result<()>;
    /// Something went wrong with `to`, or with what was typed.
    fn error(&mut self, chat: &ChatId, to: Option<&MessageId>, message: &str) -> io::Result<()>;
    /// A word of the console itself.
    fn notice(&mut self, text: &str) -> io::Result<()>;
}

/// Where a view writes.
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

/// Text without the control characters by which it could move the cursor or change the terminal; line ends and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}
