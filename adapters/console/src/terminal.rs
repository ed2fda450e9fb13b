use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use azera_adapter::{CommandAnswer, Outbound, SkipReason, StreamEvent, Turn};
use azera_types::{ChatId, MessageId};
use nu_ansi_term::{Color, Style};

use crate::format::{Sink, View, printable};
use crate::markdown::Markdown;

/// Shown while a reply is awaited, and removed when its first piece comes.
const WAITING: &str = "…";

/// Moves to the start of the line and clears it.
const WIPE: &str = "\r\u{1b}[K";

/// The view for a terminal.
pub(crate) struct Terminal {
    out: Sink,
    colour: bool,
    /// True if the line contains [`WAITING`] only.
    waits: bool,
    current: Option<ReplyInProgress>,
    /// The last speaker's name in each chat, for streamed replies, whose pieces come without a name.
    names: HashMap<ChatId, String>,
    /// The last speaker of all, for chats without one.
    last_name: Option<String>,
}

/// A reply that is being streamed.
struct ReplyInProgress {
    reply: MessageId,
    /// The name shown before it.
    name: Option<String>,
    /// The text shown so far, as received.
    text: String,
    thinking: bool,
    markdown: Markdown,
}

impl Terminal {
    pub(crate) fn new(out: Sink, colour: bool) -> Self {
        Self { out, colour, waits: false, current: None, names: HashMap::new(), last_name: None }
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour { style.paint(text).to_string() } else { text.to_owned() }
    }

    fn stop_waiting(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.waits) { self.out.write_all(WIPE.as_bytes()) } else { Ok(()) }
    }

    /// Ends the line of an interrupted reply.
    fn break_off(&mut self) -> io::Result<()> {
        self.stop_waiting()?;
        if let Some(mut current) = self.current.take()
            && (current.thinking || !current.text.is_empty())
        {
            self.end(&mut current)?;
        }
        Ok(())
    }

    /// Ends the line of a reply and resets the style.
    fn end(&mut self, current: &mut ReplyInProgress) -> io::Result<()> {
        let rest = if self.colour { current.markdown.finish() } else { String::new() };
        writeln!(self.out, "{rest}{}", if current.thinking { self.reset() } else { "" })
    }

    fn reset(&self) -> &'static str {
        if self.colour { nu_ansi_term::ansi::RESET } else { "" }
    }

    fn label(&self, name: Option<&str>) -> String {
        let style = Style::new().bold().fg(Color::Magenta);
        self.paint(style, &name.map_or_else(|| "›".to_owned(), |name| format!("{} ›", printable(name))))
    }

    /// Returns the current reply; starts a new one if the id differs.
    fn begin(&mut self, chat: &ChatId, reply: &MessageId) -> io::Result<ReplyInProgress> {
        if let Some(current) = self.current.take_if(|current| current.reply == *reply) {
            return Ok(current);
        }
        self.break_off()?;
        let name = self.names.get(chat).or(self.last_name.as_ref()).cloned();
        Ok(ReplyInProgress {
            reply: reply.clone(),
            name,
            text: String::new(),
            thinking: false,
            markdown: Markdown::default(),
        })
    }

    fn content(&mut self, current: &mut ReplyInProgress, text: &str) -> io::Result<()> {
        self.stop_thinking(current)?;
        // Models often begin with a line end, which would separate the name from the text.
        let text = if current.text.is_empty() { text.trim_start() } else { text };
        if text.is_empty() {
            return Ok(());
        }
        if current.text.is_empty() {
            self.stop_waiting()?;
            let label = self.label(current.name.as_deref());
            write!(self.out, "{label} ")?;
        }
        current.text.push_str(text);
        let text = printable(text);
        let text = if self.colour { current.markdown.push(&text) } else { text };
        self.out.write_all(text.as_bytes())
    }

    fn thinking(&mut self, current: &mut ReplyInProgress, text: &str) -> io::Result<()> {
        if !std::mem::replace(&mut current.thinking, true) {
            self.stop_waiting()?;
            let dim = if self.colour { Style::new().dimmed().prefix().to_string() } else { String::new() };
            write!(self.out, "{dim}thinking: ")?;
        }
        self.out.write_all(printable(text).as_bytes())
    }

    fn stop_thinking(&mut self, current: &mut ReplyInProgress) -> io::Result<()> {
        if std::mem::take(&mut current.thinking) { writeln!(self.out, "{}", self.reset()) } else { Ok(()) }
    }

    /// Renders Markdown for the terminal.
    fn rendered(&self, text: &str) -> String {
        let text = printable(text);
        if !self.colour {
            return text;
        }
        let mut markdown = Markdown::default();
        let mut out = markdown.push(&text);
        out.push_str(&markdown.finish());
        out
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.break_off()?;
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }
}

impl View for Terminal {
    fn expect_name(&mut self, name: &str) {
        self.last_name = Some(name.to_owned());
    }

    fn banner(&mut self, lines: &[String]) -> io::Result<()> {
        for line in lines {
            let line = self.paint(Style::new().dimmed(), line);
            writeln!(self.out, "{line}")?;
        }
        self.out.flush()
    }

    fn waiting(&mut self) -> io::Result<()> {
        if !self.colour {
            return Ok(());
        }
        let mark = self.paint(Style::new().dimmed(), WAITING);
        write!(self.out, "{mark}")?;
        self.waits = true;
        self.out.flush()
    }

    fn event(&mut self, chat: &ChatId, reply: &MessageId, event: &StreamEvent) -> io::Result<()> {
        let mut current = self.begin(chat, reply)?;
        match event {
            StreamEvent::Thinking { text } => self.thinking(&mut current, text)?,
            StreamEvent::ThinkingEnd => self.stop_thinking(&mut current)?,
            StreamEvent::Content { text } => self.content(&mut current, text)?,
            StreamEvent::Retracted if !current.text.is_empty() => {
                self.end(&mut current)?;
                let note = self.paint(Style::new().dimmed(), "(The text above was thinking, not the reply.)");
                writeln!(self.out, "{note}")?;
                current.text.clear();
                current.markdown = Markdown::default();
            }
            StreamEvent::Error { message } => {
                self.current = Some(current);
                return self.error(chat, None, message);
            }
            StreamEvent::Withdrawn => {
                // A terminal cannot take back its output.
                let is_shown = !current.text.is_empty();
                self.current = Some(current);
                self.break_off()?;
                if is_shown {
                    let note = self.paint(Style::new().dimmed(), "(The text above is no reply.)");
                    writeln!(self.out, "{note}")?;
                }
                return self.out.flush();
            }
            // The line ends when the complete reply is there to compare with.
            _ => {}
        }
        self.current = Some(current);
        self.out.flush()
    }

    fn progress(&mut self, _: &ChatId, _: &MessageId, text: &str) -> io::Result<()> {
        if !self.colour || self.current.is_some() {
            return Ok(());
        }
        // It stands in one line, which the next one takes the place of.
        let line = self.paint(Style::new().dimmed(), &printable(text).replace('\n', "  "));
        write!(self.out, "{WIPE}{line}")?;
        self.waits = true;
        self.out.flush()
    }

    fn reply(&mut self, outbound: &Outbound) -> io::Result<()> {
        let mut current = self.begin(&outbound.chat, &outbound.id)?;
        self.names.insert(outbound.chat.clone(), outbound.persona_name.clone());
        self.last_name = Some(outbound.persona_name.clone());
        if current.text.is_empty() {
            current.name = Some(outbound.persona_name.clone());
        }
        match outbound.text.trim_start().strip_prefix(current.text.trim_end()) {
            Some(rest) => {
                let rest =
                    rest.strip_prefix(current.text.get(current.text.trim_end().len()..).unwrap_or("")).unwrap_or(rest);
                self.content(&mut current, rest.trim_end())?;
                self.end(&mut current)?;
            }
            // The complete reply differs from the streamed text.
            None => {
                self.end(&mut current)?;
                let label = self.label(Some(&outbound.persona_name));
                let text = self.rendered(outbound.text.trim());
                writeln!(self.out, "{label} {text}")?;
            }
        }
        if current.name.as_deref() != Some(&outbound.persona_name) {
            let name = self.paint(Style::new().dimmed(), &format!("({})", printable(&outbound.persona_name)));
            writeln!(self.out, "{name}")?;
        }
        self.out.flush()
    }

    fn reply_again(&mut self, outbound: &Outbound) -> io::Result<()> {
        let text = self.reply_text(outbound);
        self.line(&text)
    }

    fn reply_text(&self, outbound: &Outbound) -> String {
        format!("{} {}", self.label(Some(&outbound.persona_name)), self.rendered(outbound.text.trim()))
    }

    fn turn(&mut self, _: &Turn) -> io::Result<()> {
        self.break_off()?;
        writeln!(self.out)?;
        self.out.flush()
    }

    fn silent(&mut self, _: &ChatId, _: &MessageId, why: SkipReason) -> io::Result<()> {
        let text = self.paint(Style::new().dimmed(), &format!("(no answer: {})", why.why()));
        self.line(&text)
    }

    fn command(&mut self, _: &ChatId, answer: &CommandAnswer) -> io::Result<()> {
        if answer.text.is_empty() {
            return Ok(());
        }
        let text = if answer.ok {
            self.rendered(answer.text.trim_end())
        } else {
            self.paint(Style::new().fg(Color::Red), &printable(answer.text.trim_end()))
        };
        self.line(&format!("{text}\n"))
    }

    fn file(&mut self, _: &ChatId, path: &Path, picture: Option<&str>) -> io::Result<()> {
        if let Some(picture) = picture {
            self.line(picture)?;
        }
        self.line(&printable(&path.display().to_string()))
    }

    fn error(&mut self, _: &ChatId, _: Option<&MessageId>, message: &str) -> io::Result<()> {
        let text = self.paint(Style::new().fg(Color::Red), &printable(message));
        self.line(&text)
    }

    fn notice(&mut self, text: &str) -> io::Result<()> {
        let text = self.paint(Style::new().dimmed(), &printable(text));
        self.line(&text)
    }
}
