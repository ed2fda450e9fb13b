//! `/forget`: forgets for good, with a receipt.

use azera_adapter::{Access, CommandAnswer};
use azera_memory::{Forget, ForgetReceipt, ReadScope};
use azera_types::{MemoryId, MessageId};

use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;

/// The answer if a person does not say what to forget.
const ASKS_WHAT: &str = "What should I forget? `/forget last` takes the last thing you said here, `/forget m42` the \
                         memory with that id, `/forget chat` everything in this chat, and `/forget me` everything you \
                         ever said to me.";

impl Commands {
    pub(super) async fn forget_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let (what, quotes) = match arguments.strip_suffix("quotes") {
            Some(what) => (what.trim(), true),
            None => (arguments, false),
        };
        let mut read_scope = at.read_scope.clone();
        let target = match what {
            "" if at.line.about.is_none() => return Ok(refused(ASKS_WHAT.into())),
            "" | "last" => match &at.line.about {
                Some(id) => match self.message_of_theirs(at, id).await? {
                    Ok(target) => target,
                    Err(answer) => return Ok(answer),
                },
                None => self.last_of_theirs(at).await?.map(|(last, heard)| {
                    read_scope = heard;
                    last
                }),
            },
            "me" => Some(Forget::Person(at.line.person.clone())),
            "chat" => {
                let dm = matches!(at.place.kind, azera_types::PlaceKind::Dm(_));
                if !dm && at.access < Access::Admin {
                    return Ok(refused("Only admins can forget a chat that several people use.".into()));
                }
                Some(Forget::Chat(at.chat.id.clone()))
            }
            id => match id.parse::<MemoryId>() {
                Ok(id) => match self.memory_of_theirs(at, id).await? {
                    Ok(target) => Some(target),
                    Err(answer) => return Ok(answer),
                },
                Err(_) => return Ok(refused(ASKS_WHAT.into())),
            },
        };
        let Some(target) = target else { return Ok(refused("There is nothing of yours here to forget.".into())) };
        let is_whole_person = matches!(target, Forget::Person(_));
        let recordings = if is_whole_person { self.services.recordings_of(&at.line.person).await?.len() } else { 0 };
        // The links go with the person.
        let linked = if is_whole_person { self.what_stays_with_links(at).await? } else { String::new() };
        let receipt = self.forgetting.forget(target, quotes, Some(read_scope)).await?;
        if is_whole_person
            && let Some(voice) = at.adapter.voice()
            && let Some(voice_chat) = voice.chat_of(&at.line.chat, &at.line.person).await
        {
            voice.decided(&voice_chat, &at.line.person, false).await;
        }
        let mut text = receipt_text(&receipt);
        if recordings > 0 {
            text.push_str(&format!(" Recordings of calls deleted for everybody: {recordings}."));
        }
        text.push_str(&linked);
        Ok(done(text))
    }

    /// Returns the person's last message in the chat, to any of its personas, and the read scope of that persona.
    async fn last_of_theirs(&self, at: &CommandContext<'_>) -> Result<Option<(Forget, ReadScope)>, Error> {
        let mut read_scopes = vec![at.read_scope.clone()];
        for (persona, _) in self.access.invited_here(&at.place, &at.chat).await? {
            read_scopes.push(self.access.read_scope(at.adapter, &at.place, &persona).await?);
        }
        let mut last: Option<(u64, Forget, ReadScope)> = None;
        for read_scope in read_scopes {
            let recent = self.recent_under(at, &read_scope).await?;
            let theirs = recent.iter().rev().find(|row| row.author.person() == Some(&at.line.person));
            if let Some(row) = theirs.filter(|row| last.as_ref().is_none_or(|(seq, ..)| *seq < row.seq)) {
                last = Some((row.seq, Forget::Message(row.id.clone()), read_scope));
            }
        }
        Ok(last.map(|(_, what, read_scope)| (what, read_scope)))
    }

    /// Returns the message pointed at, if the person may have it forgotten: their own message, a reply to it, or, for
    /// an admin, any message of this place.
    async fn message_of_theirs(
        &self,
        at: &CommandContext<'_>,
        id: &MessageId,
    ) -> Result<Result<Option<Forget>, CommandAnswer>, Error> {
        let Some(message) = self.pointed_at(at, id).await? else { return Ok(Ok(None)) };
        let question = match &message.answers {
            Some(to) => self.pointed_at(at, to).await?,
            None => None,
        };
        let own = [Some(&message), question.as_ref()]
            .into_iter()
            .flatten()
            .any(|row| row.author.person() == Some(&at.line.person));
        if !own && at.access < Access::Admin {
            return Ok(Err(refused("That is somebody else's; they, or an admin, can have it forgotten.".into())));
        }
        Ok(Ok(Some(Forget::Message(message.id))))
    }

    /// Returns a memory that the person may have forgotten: their own words or, for an admin, anything said in this
    /// place.
    async fn memory_of_theirs(
        &self,
        at: &CommandContext<'_>,
        id: MemoryId,
    ) -> Result<Result<Forget, CommandAnswer>, Error> {
        let read_scope = at.read_scope.clone();
        let Some(memory) = self.services.blocking(move |memory| memory.memories().get(&read_scope, id)).await? else {
            return Ok(Err(refused(format!("I remember no `{id}` that may be shown here."))));
        };
        let own = memory.author.person() == Some(&at.line.person);
        // An admin manages what was said in this place, not everything that may be shown here.
        let manages = at.access >= Access::Admin && memory.scope == at.place.scope();
        if !own && !manages {
            return Ok(Err(refused(
                "Those are somebody else's words; they, or an admin, can have them forgotten.".into(),
            )));
        }
        Ok(Ok(Forget::Memory(id)))
    }
}

fn receipt_text(receipt: &ForgetReceipt) -> String {
    let mut text = format!(
        "Forgotten: messages {}, replies {}, memories with their index entries {}, records for `/why` \
         {}. They are out of every search and prompt now; their bytes are overwritten on disk as soon as I am idle, in \
         backups within ten minutes.",
        receipt.messages, receipt.replies, receipt.memories, receipt.why
    );
    if receipt.chats > 0 {
        text.push_str(&format!(" Chats emptied: {}.", receipt.chats));
    }
    if !receipt.quoted_by.is_empty() {
        let ids = receipt.quoted_by.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        text.push_str(&match receipt.quoted_by.len() {
            1 => format!(
                "\nOne of my replies was built on it. I will not recall it, but it stays in the conversation. Add `quotes` \
                 to the command to forget it too: {ids}."
            ),
            replies => format!(
                "\n{replies} of my replies were built on it. I will not recall them, but they stay in the conversation. \
                 Add `quotes` to the command to forget them too: {ids}."
            ),
        });
    }
    text
}
