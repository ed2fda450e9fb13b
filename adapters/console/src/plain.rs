use std::io::{self, Write};
use std::path::Path;

use azera_adapter::{CommandAnswer, Outbound, SkipReason, StreamEvent, Turn};
use azera_types::{ChatId, MessageId};

use crate::format::{Sink, View, printable};

/// Complete replies only, for a pipe.
pub(crate) struct Plain {
    out: Sink,
    err: Sink,
}

impl Plain {
    pub(crate) fn new(out: Sink, err: Sink) -> Self {
        Self { out, err }
    }

    fn line(to: &mut Sink, text: &str) -> io::Result<()> {
        writeln!(to, "{}", printable(text))?;
        to.flush()
    }
}

impl View for Plain {
    fn banner(&mut self, _: &[String]) -> io::Result<()> {
        Ok(())
    }

    fn waiting(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, chat: &ChatId, _: &MessageId, event: &StreamEvent) -> io::Result<()> {
        match event {
            StreamEvent::Error { message } => self.error(chat, None, message),
            _ => Ok(()),
        }
    }

    fn reply(&mut self, outbound: &Outbound) -> io::Result<()> {
        Self::line(&mut self.out, &outbound.text)
    }

    fn reply_again(&mut self, outbound: &Outbound) -> io::Result<()> {
        self.reply(outbound)
    }

    fn reply_text(&self, outbound: &Outbound) -> String {
        printable(&outbound.text)
    }

    fn turn(&mut self, _: &Turn) -> io::Result<()> {
        Ok(())
    }

    fn silent(&mut self, _: &ChatId, _: &MessageId, _: SkipReason) -> io::Result<()> {
        Ok(())
    }

    fn command(&mut self, _: &ChatId, answer: &CommandAnswer) -> io::Result<()> {
        if answer.text.is_empty() {
            return Ok(());
        }
        Self::line(if answer.ok { &mut self.out } else { &mut self.err }, &answer.text)
    }

    fn file(&mut self, _: &ChatId, path: &Path, _: Option<&str>) -> io::Result<()> {
        Self::line(&mut self.out, &path.display().to_string())
    }

    fn error(&mut self, _: &ChatId, _: Option<&MessageId>, message: &str) -> io::Result<()> {
        Self::line(&mut self.err, message)
    }

    fn notice(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
}
