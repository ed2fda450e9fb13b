//! Commands about the conversation itself.

use std::sync::Arc;

use azera_adapter::{CommandAnswer, Outbound, Outcome, Platform, State};
use azera_memory::{Answering, ChatChange, ChatRow, MessageRow, ReadScope, persona_file, shortened};
use azera_types::{Author, ChatId, MessageId, PlaceKind, TimeZone, Timestamp};

use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;

/// Newest messages searched for the last reply or message.
const LOOK_BACK: usize = 200;

/// Characters of a message that are enough to recognise it.
const GLIMPSE: usize = 60;

/// A chat that may be listed.
pub(super) struct ListedChat {
    pub(super) row: ChatRow,
    /// When the newest message that may be shown here was said; `None` if none may.
    pub(super) last: Option<Timestamp>,
}

impl Commands {
    pub(super) async fn new_chat(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        if !matches!(at.place.kind, PlaceKind::Dm(_)) {
            return Ok(refused("Chats are made by the platform here; open a new thread or channel.".into()));
        }
        let number = ulid::Ulid::from_parts(self.services.clock.now().as_millisecond().unsigned_abs(), rand_bits());
        let base = at.chat.id.as_str().rsplit_once(':').map_or(at.chat.id.as_str(), |(base, _)| base);
        let id = ChatId::new(format!("{base}:{number}")).map_err(|_| Error::NotAllowed)?;
        let text = "A new chat. I still remember the others.".to_owned();
        Ok(CommandAnswer { go_to: Some(id), ..done(text) })
    }

    /// Returns the chats that match `wanted`, that the person can read, and that everybody who reads here may know of.
    /// Newest first. The platform is only asked about matching chats.
    pub(super) async fn chats_of(
        &self,
        at: &CommandContext<'_>,
        wanted: impl Fn(&ChatRow) -> bool + Send,
    ) -> Result<Vec<ListedChat>, Error> {
        let platform = at.platform.clone();
        let (dm, reach) =
            (matches!(at.place.kind, PlaceKind::Dm(_)), self.access.readable_scopes(at.adapter, &at.place).await?);
        let mut mine = Vec::new();
        let mut rows = self.services.blocking(move |memory| memory.chats().list(&platform)).await?;
        rows.retain(wanted);
        for row in rows {
            // A chat that the platform cannot vouch for now is not listed.
            let Ok(Some(place)) = self.services.place(at.adapter, &row.id, &at.line.person).await else { continue };
            // Where others read along, only chats are listed that they may know of.
            if !dm && !at.read_scope.grants().iter().any(|grant| grant.scope == place.scope()) {
                continue;
            }
            // The time of a message that may not be shown here, because it is forgotten or from before somebody joined,
            // is not revealed either.
            let (read_scope, chat) = (ReadScope::in_place(row.persona.clone(), &at.place, &reach), row.id.clone());
            let last =
                self.services.blocking(move |memory| memory.messages().history(&read_scope, &chat, 1)).await?.pop();
            mine.push(ListedChat { row, last: last.map(|last| last.at) });
        }
        mine.sort_by(|a, b| (b.last, &a.row.id).cmp(&(a.last, &b.row.id)));
        Ok(mine)
    }

    pub(super) async fn list_chats(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        let mine = self.chats_of(at, |_| true).await?;
        if let Ok(number) = arguments.parse::<usize>() {
            let Some(chat) = number.checked_sub(1).and_then(|index| mine.get(index)) else {
                return Ok(refused("There is no chat of that number; `/chats` lists them.".into()));
            };
            let go_to = Some(chat.row.id.clone());
            return Ok(CommandAnswer { go_to, ..done(format!("Back to chat {number}.")) });
        }
        let mut text = String::from("Your chats, the newest first; `/chats NUMBER` goes to one:\n");
        for (number, chat) in mine.iter().enumerate() {
            let persona = persona_file(&chat.row.persona);
            text.push_str(&format!(
                "{}. {}, with {persona}{}\n",
                number + 1,
                chat.label("%F %H:%M", &at.calendar.zone),
                here(at, chat)
            ));
        }
        Ok(done(text))
    }

    /// Returns the conversation as it may be read here, newest last.
    pub(super) async fn recent(&self, at: &CommandContext<'_>) -> Result<Vec<MessageRow>, Error> {
        self.recent_under(at, &at.read_scope).await
    }

    /// Returns the conversation as far as `read_scope` goes, newest last.
    pub(super) async fn recent_under(
        &self,
        at: &CommandContext<'_>,
        read_scope: &ReadScope,
    ) -> Result<Vec<MessageRow>, Error> {
        let (read_scope, chat) = (read_scope.clone(), at.chat.id.clone());
        self.services.blocking(move |memory| memory.messages().history(&read_scope, &chat, LOOK_BACK)).await
    }

    /// Returns the message that a command points at, if it is in this chat and may be read here.
    pub(super) async fn pointed_at(
        &self,
        at: &CommandContext<'_>,
        id: &MessageId,
    ) -> Result<Option<MessageRow>, Error> {
        let (read_scope, id) = (at.read_scope.clone(), id.clone());
        let found = self.services.blocking(move |memory| memory.messages().get(&read_scope, &id)).await?;
        Ok(found.filter(|message| message.chat == at.chat.id))
    }

    /// Returns an answered message and its answer on the current branch: the one the command points at, or the last.
    pub(super) async fn exchange(&self, at: &CommandContext<'_>) -> Result<Option<(MessageRow, MessageRow)>, Error> {
        if let Some(id) = &at.line.about {
            let Some(named) = self.pointed_at(at, id).await? else { return Ok(None) };
            let question = match &named.answers {
                Some(to) => self.pointed_at(at, to).await?,
                None => Some(named),
            };
            let Some(question) = question else { return Ok(None) };
            let (read_scope, to) = (at.read_scope.clone(), question.id.clone());
            let answer =
                self.services.blocking(move |memory| memory.messages().present_answer(&read_scope, &to)).await?;
            return Ok(answer.map(|answer| (question, answer)));
        }
        let recent = self.recent(at).await?;
        let Some(reply) = recent.iter().rev().find(|row| row.answers.is_some()) else { return Ok(None) };
        let question = recent.iter().find(|row| Some(&row.id) == reply.answers.as_ref());
        Ok(question.map(|question| (question.clone(), reply.clone())))
    }

    pub(super) async fn regenerate_command(
        &self,
        adapter: Arc<dyn Platform>,
        at: &CommandContext<'_>,
    ) -> Result<CommandAnswer, Error> {
        let Some((question, _)) = self.exchange(at).await? else {
            return Ok(no_reply(at));
        };
        if question.author.person() != Some(&at.line.person) && at.access < azera_adapter::Access::Admin {
            return Ok(refused("Only the person I answered, or an admin, can have it answered again.".into()));
        }
        let turn = self.turns.answer_again(adapter, at.platform, question, at.line.person.clone())?;
        match turn.await?? {
            Outcome::Replied(_) => Ok(done(String::new())),
            Outcome::Skipped(reason) => Ok(refused(reason.why().to_owned())),
        }
    }

    pub(super) async fn swipe_command(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        let ticket = self.turns.queues.enter(&at.chat.id).ok_or(Error::QueueFull)?;
        ticket.turn().await;
        // People may have joined or left while the command waited.
        let at = &self.load_command_context(at.platform, at.adapter, at.line).await?;
        let Some((question, present)) = self.exchange(at).await? else {
            return Ok(no_reply(at));
        };
        let (read_scope, to) = (at.read_scope.clone(), question.id.clone());
        let replies = self.services.blocking(move |memory| memory.messages().alternatives(&read_scope, &to)).await?;
        let here = replies.iter().position(|row| row.id == present.id).unwrap_or(0);
        let next = match arguments {
            "" | "next" => (here + 1) % replies.len().max(1),
            "previous" => (here + replies.len().max(1) - 1) % replies.len().max(1),
            _ => return Ok(refused("`/swipe next` or `/swipe previous`.".into())),
        };
        let Some(chosen) = replies.get(next).filter(|row| row.id != present.id).cloned() else {
            return Ok(refused("There is only one answer; `/regenerate` makes another.".into()));
        };
        let count = replies.len();
        let shown = chosen.clone();
        self.services.blocking(move |memory| memory.turns().choose_alternative(&present, &chosen)).await?;
        self.indexer.wake();
        self.show_again(at, &shown).await?;
        Ok(done(format!("Answer {} of {count}.", next + 1)))
    }

    /// Shows an earlier reply again.
    async fn show_again(&self, at: &CommandContext<'_>, reply: &MessageRow) -> Result<(), Error> {
        let Author::Persona { id, name } = &reply.author else { return Ok(()) };
        let outbound = Outbound {
            id: reply.id.clone(),
            chat: reply.chat.clone(),
            persona: id.clone(),
            persona_name: name.clone(),
            text: reply.text.clone(),
            reply_to: reply.reply_to.clone(),
            asker: Some(at.line.person.clone()),
            state: State::default(),
            help: String::new(),
            files: Vec::new(),
            can_upscale: false,
        };
        at.adapter.show_again(&outbound).await.map_err(Error::Platform)
    }

    pub(super) async fn branch_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let chat = at.chat.id.clone();
        if arguments.is_empty() || arguments == "list" {
            let read_scope = at.read_scope.clone();
            let branches = self.services.blocking(move |memory| memory.chats().branches(&read_scope, &chat)).await?;
            let mut text = String::from("Branches of this chat:\n");
            for branch in branches {
                let here = if branch.name == at.chat.branch { " (here)" } else { "" };
                text.push_str(&format!("- {}{here}\n", branch.name));
            }
            text.push_str("`/branch NAME` begins one here, `/branch NAME 4` four messages back.");
            return Ok(done(text));
        }
        if let Some(name) = arguments.strip_prefix("switch ") {
            let name = name.trim().to_owned();
            let (read_scope, wanted) = (at.read_scope.clone(), name.clone());
            let switched =
                self.services.blocking(move |memory| memory.chats().switch_branch(&read_scope, &chat, &wanted)).await?;
            return Ok(match switched {
                Some(_) => done(format!("On branch {name}.{}", self.last_words(at).await?)),
                None => refused(format!("There is no branch {name} here; `/branch list` names them.")),
            });
        }
        let (name, back) = match arguments.rsplit_once(char::is_whitespace) {
            Some((name, number)) => match number.parse::<usize>() {
                Ok(back) => (name.trim(), back),
                Err(_) => (arguments, 0),
            },
            None => (arguments, 0),
        };
        let from = match &at.line.about {
            Some(id) => self.pointed_at(at, id).await?,
            None => {
                let recent = self.recent(at).await?;
                recent.len().checked_sub(back + 1).and_then(|index| recent.get(index)).cloned()
            }
        };
        let Some(from) = from else {
            return Ok(refused("The chat does not reach back that far.".into()));
        };
        let (read_scope, from, wanted, now) =
            (at.read_scope.clone(), from.id, name.to_owned(), self.services.clock.now());
        let made = self
            .services
            .blocking(move |memory| memory.chats().branch_from(&read_scope, &chat, &from, &wanted, now))
            .await;
        match made {
            Ok(_) => Ok(done(format!("On the new branch {name}.{}", self.last_words(at).await?))),
            Err(Error::Memory(azera_memory::Error::Invalid(why))) => {
                Ok(refused(format!("I cannot make this branch: {why}.")))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the end of the current branch, so that people see where they are.
    async fn last_words(&self, at: &CommandContext<'_>) -> Result<String, Error> {
        let recent = self.recent(at).await?;
        Ok(recent.last().map_or_else(String::new, |row| {
            let glimpse = shortened(&row.text, "", GLIMPSE);
            format!(" It ends with {}: \"{}\"", row.author.name(), glimpse.as_str())
        }))
    }

    pub(super) async fn answer_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let answering = match arguments {
            "" => {
                let present = self.services.config.answering_in(&at.place, at.chat.answering);
                return Ok(done(format!("Here I answer: {}.", when(present))));
            }
            "addressed" => Answering::Addressed,
            "always" => Answering::Always,
            "never" => Answering::Never,
            _ => return Ok(refused("`/answer addressed`, `/answer always` or `/answer never`.".into())),
        };
        let chat = at.chat.id.clone();
        self.services
            .blocking(move |memory| memory.chats().change(&chat, ChatChange::Answering(Some(answering))))
            .await?;
        Ok(done(format!("From now on I answer here: {}.", when(answering))))
    }
}

impl ListedChat {
    /// Returns the chat's title, and when its newest message was said, in the format `day` and the zone.
    pub(super) fn label(&self, day: &str, zone: &TimeZone) -> String {
        let title = self.row.title.clone().unwrap_or_else(|| self.row.id.to_string());
        match self.last {
            Some(last) => format!("{title}, {}", last.to_zoned(zone.clone()).strftime(day)),
            None => title,
        }
    }
}

/// Returns a mark for the chat that the command was given in.
pub(super) fn here(at: &CommandContext<'_>, chat: &ListedChat) -> &'static str {
    if chat.row.id == at.chat.id { " (here)" } else { "" }
}

/// Returns the answer when there is no reply to act on.
pub(super) fn no_reply(at: &CommandContext<'_>) -> CommandAnswer {
    refused(match at.line.about {
        None => "There is no reply here yet.".into(),
        Some(_) => "There is no reply of mine to that.".into(),
    })
}

pub(super) fn when(answering: Answering) -> &'static str {
    match answering {
        Answering::Addressed => "when I am mentioned, replied to or called by name",
        Answering::Always => "everything that is not meant for somebody else",
        Answering::Never => "never",
    }
}

fn rand_bits() -> u128 {
    (u128::from(crate::turn::any_seed()) << 32) | u128::from(crate::turn::any_seed())
}
