use std::io::{self, Write};
use std::path::Path;

use azera_adapter::{CommandAnswer, Hit, Outbound, SkipReason, State, StreamEvent, Turn, TurnUsage};
use azera_types::{ChatId, MessageId, PersonaId};
use serde::Serialize;

use crate::format::{Sink, View};

/// Events as JSON lines. A [`StreamEvent`] is printed with `chat` and `reply` added. Each reply is printed as a
/// `reply`, and again with `again` when somebody chooses an old one. A `turn` with its usage and recalled memories
/// follows. A turn that failed ends with an `error` whose `to` is the message, whether or not an error was streamed.
/// After a crash, a `reply` may come again with the same id; readers that store replies should store each id once.
pub(crate) struct JsonLines {
    out: Sink,
}

#[derive(Serialize)]
struct Streamed<'a> {
    chat: &'a ChatId,
    reply: &'a MessageId,
    #[serde(flatten)]
    event: &'a StreamEvent,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum JsonEvent<'a> {
    Reply {
        id: &'a MessageId,
        to: Option<&'a MessageId>,
        chat: &'a ChatId,
        persona: &'a PersonaId,
        persona_name: &'a str,
        text: &'a str,
        #[serde(flatten)]
        state: &'a State,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    Turn {
        reply: &'a MessageId,
        to: &'a MessageId,
        chat: &'a ChatId,
        persona: &'a PersonaId,
        usage: &'a TurnUsage,
        recalled: &'a [Hit],
    },
    #[serde(rename = "silent")]
    Skipped {
        to: &'a MessageId,
        chat: &'a ChatId,
        why: &'static str,
    },
    Command {
        chat: &'a ChatId,
        ok: bool,
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        go_to: Option<&'a ChatId>,
    },
    Progress {
        chat: &'a ChatId,
        picture: &'a MessageId,
        text: &'a str,
    },
    File {
        chat: &'a ChatId,
        path: &'a Path,
    },
    Error {
        chat: &'a ChatId,
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<&'a MessageId>,
        message: &'a str,
    },
}

impl JsonLines {
    pub(crate) fn new(out: Sink) -> Self {
        Self { out }
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }
}

impl<'a> JsonEvent<'a> {
    fn reply(outbound: &'a Outbound, again: bool) -> Self {
        Self::Reply {
            id: &outbound.id,
            to: outbound.reply_to.as_ref(),
            chat: &outbound.chat,
            persona: &outbound.persona,
            persona_name: &outbound.persona_name,
            text: &outbound.text,
            state: &outbound.state,
            again,
        }
    }
}

impl View for JsonLines {
    fn names_failed_messages(&self) -> bool {
        true
    }

    fn banner(&mut self, _: &[String]) -> io::Result<()> {
        Ok(())
    }

    fn waiting(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, chat: &ChatId, reply: &MessageId, event: &StreamEvent) -> io::Result<()> {
        self.line(&Streamed { chat, reply, event })
    }

    fn progress(&mut self, chat: &ChatId, picture: &MessageId, text: &str) -> io::Result<()> {
        self.line(&JsonEvent::Progress { chat, picture, text })
    }

    fn reply(&mut self, outbound: &Outbound) -> io::Result<()> {
        self.line(&JsonEvent::reply(outbound, false))
    }

    fn reply_again(&mut self, outbound: &Outbound) -> io::Result<()> {
        self.line(&JsonEvent::reply(outbound, true))
    }

    fn reply_text(&self, outbound: &Outbound) -> String {
        outbound.text.to_string()
    }

    fn turn(&mut self, turn: &Turn) -> io::Result<()> {
        self.line(&JsonEvent::Turn {
            reply: &turn.reply,
            to: &turn.to,
            chat: &turn.chat,
            persona: &turn.persona,
            usage: &turn.usage,
            recalled: &turn.recalled,
        })
    }

    fn silent(&mut self, chat: &ChatId, to: &MessageId, why: SkipReason) -> io::Result<()> {
        self.line(&JsonEvent::Skipped { to, chat, why: why.why() })
    }

    fn command(&mut self, chat: &ChatId, answer: &CommandAnswer) -> io::Result<()> {
        self.line(&JsonEvent::Command { chat, ok: answer.ok, text: &answer.text, go_to: answer.go_to.as_ref() })
    }

    fn file(&mut self, chat: &ChatId, path: &Path, _: Option<&str>) -> io::Result<()> {
        self.line(&JsonEvent::File { chat, path })
    }

    fn error(&mut self, chat: &ChatId, to: Option<&MessageId>, message: &str) -> io::Result<()> {
        self.line(&JsonEvent::Error { chat, to, message })
    }

    fn notice(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
}
