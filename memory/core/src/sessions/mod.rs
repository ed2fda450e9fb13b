//! What was learnt in coding sessions that people imported: which commands work in a project ([`procedures`]), and what
//! each session was about and whether it left a problem open ([`episodes`], [`chains`]).
//!
//! Nothing of it is stored. It is computed from the imported messages and from what was run for them, each read under
//! the [`ReadScope`], so it is forgotten with them. Begin with [`Sessions::learnt`].

mod chains;
mod command;
mod episodes;
mod failing;
mod heard;
mod procedures;
mod says;
mod topics;

use azera_types::{ChatId, MessageId, PersonId, Scope, Text, Timestamp};

use crate::domains::Sessions;
use crate::imports::ImportedChat;
use crate::rows::{ChatRow, MessageRow};
use crate::{Error, MAX_HISTORY, ReadScope, Table, codec, keys};

use heard::Heard;
pub use procedures::Procedure;

/// Most sessions that are read, the newest ones.
pub const MAX_SESSIONS: usize = 200;

/// Most messages that are read of all sessions together.
const MAX_MESSAGES: usize = 20_000;

/// Most commands that are read of all sessions together, and most bytes of their messages.
const MAX_COMMANDS: usize = 50_000;
const MAX_BYTES: usize = 64 << 20;

/// What shows that something is not solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// The last run of a command failed.
    Command,
    /// The person said that it still fails.
    Said,
    /// The assistant's last words say that it failed.
    Admitted,
    /// The person's last question got no answer.
    Unanswered,
    /// The person said what they are going to do.
    Plan,
    /// The person said that something is broken, lost or stuck.
    Trouble,
}

impl ProblemKind {
    /// Returns the displayed name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "failing command",
            Self::Said => "said to fail",
            Self::Admitted => "not managed",
            Self::Unanswered => "unanswered question",
            Self::Plan => "plan",
            Self::Trouble => "problem",
        }
    }
}

/// Something that is not solved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What shows it.
    pub kind: ProblemKind,
    /// The command, or the words.
    pub text: Text,
    /// The message that it rests on.
    pub message: MessageId,
    /// When it was seen.
    pub at: Timestamp,
}

/// What shows that a problem is solved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The session or chat.
    pub chat: ChatId,
    /// The command that worked, or the person's words.
    pub text: Text,
    /// The message that it rests on.
    pub message: MessageId,
    /// When it was seen.
    pub at: Timestamp,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Without a known problem.
    Plain,
    /// With a problem that nothing shows to be solved.
    Open(Problem),
    /// With a problem that a later session, in this chat, went on with.
    Continued(Problem, ChatId),
    /// With a problem that was solved, in it or later.
    Resolved(Problem, Resolution),
}

impl Ending {
    /// Returns the problem.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Plain => None,
            Self::Open(problem) | Self::Continued(problem, _) | Self::Resolved(problem, _) => Some(problem),
        }
    }

    /// Returns the displayed name.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Plain => "ended",
            Self::Open(_) => "open",
            Self::Continued(..) => "continued",
            Self::Resolved(..) => "resolved",
        }
    }
}

/// A session: who, what, where and when, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episode {
    /// The imported chat.
    pub chat: ChatId,
    /// The project.
    pub scope: Scope,
    /// The person who asked.
    pub person: PersonId,
    /// What was asked first.
    pub title: Text,
    /// The message that says so.
    pub asked: MessageId,
    /// When its first and its last message were said.
    pub span: (Timestamp, Timestamp),
    /// Number of the person's messages.
    pub requests: usize,
    /// Number of commands that were run.
    pub commands: usize,
    /// How it ended.
    pub ending: Ending,
    /// Sessions about the same problem, the oldest first.
    pub linked: Vec<ChatId>,
}

/// What was learnt in the sessions of some projects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learnt {
    /// The sessions, the newest first.
    pub episodes: Vec<Episode>,
    /// The commands that were run more than once, the surest first.
    pub procedures: Vec<Procedure>,
    /// True if there are older sessions, which were too many to be read.
    pub is_cut: bool,
}

/// A session as it is read.
pub(crate) struct Log {
    pub(crate) chat: ChatRow,
    pub(crate) by: PersonId,
    pub(crate) scope: Scope,
    pub(crate) messages: Vec<MessageRow>,
}

impl Log {
    fn is_own(&self, message: &MessageRow) -> bool {
        message.author.person() == Some(&self.by)
    }
}

impl Sessions<'_> {
    /// Returns what was learnt in the projects that `read_scope` allows. Reads at most [`MAX_SESSIONS`] sessions.
    pub fn learnt(self, read_scope: &ReadScope) -> Result<Learnt, Error> {
        let (logs, is_cut) = self.logs(read_scope)?;
        let heard: Vec<Heard<'_>> = logs.iter().map(Heard::new).collect();
        let read: Vec<_> = heard.iter().filter_map(episodes::of).collect();
        let mut episodes = chains::linked(&read);
        episodes.reverse();
        Ok(Learnt { episodes, procedures: procedures::of(&logs), is_cut })
    }

    /// Returns the sessions, the oldest first, and whether older ones were left out.
    fn logs(self, read_scope: &ReadScope) -> Result<(Vec<Log>, bool), Error> {
        let mut chats = self.0.imports().project_chats(read_scope, MAX_SESSIONS + 1)?;
        let mut is_cut = chats.len() > MAX_SESSIONS;
        chats.drain(..chats.len().saturating_sub(MAX_SESSIONS));
        let (mut logs, mut left) = (Vec::with_capacity(chats.len()), MAX_MESSAGES);
        let (mut bytes, mut commands) = (0, 0);
        for chat in chats.into_iter().rev() {
            let Some(ImportedChat::Kept { by, scope, .. }) = chat.imported.clone() else { continue };
            if left == 0 {
                is_cut = true;
                break;
            }
            let messages = self.0.messages().history(read_scope, &chat.id, left.min(MAX_HISTORY))?;
            left -= messages.len();
            bytes += messages.iter().map(|message| message.text.len()).sum::<usize>();
            commands += messages.iter().map(|message| message.ran.len()).sum::<usize>();
            if bytes > MAX_BYTES || commands > MAX_COMMANDS {
                is_cut = true;
                break;
            }
            if !messages.is_empty() {
                logs.push(Log { chat, by, scope, messages });
            }
        }
        logs.reverse();
        Ok((logs, is_cut))
    }

    /// Returns the number of commands that are kept in all messages. It shows nobody anything.
    pub fn kept_commands(self) -> Result<usize, Error> {
        let mut count = 0;
        for chat in self.0.imports().all_project_chats()? {
            let prefix = keys::prefix(&[chat.id.as_str()]);
            let ids: Vec<MessageId> = codec::rows(self.0.store.as_ref(), Table::ChatLog, &prefix)?;
            for id in ids {
                count += self.0.messages().raw_message(&id)?.map_or(0, |message| message.ran.len());
            }
        }
        Ok(count)
    }
}
