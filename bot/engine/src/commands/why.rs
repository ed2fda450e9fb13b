//! `/why`: what the last reply or a post was built on.

use azera_adapter::CommandAnswer;
use azera_memory::{Again, MemoryRow, Stretch, WhyHit, chats_of, shortened, show};
use azera_types::MessageId;

use super::chat::no_reply;
use super::memory::again;
use super::writings::Shown;
use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::display_names::DisplayNames;
use crate::error::Error;
use crate::turn::heard_words;

/// Maximum number of characters shown of a memory.
const SHOWN: usize = 160;

/// Says what was heard in the recordings of the message that was answered.
fn told_heard(words: String) -> String {
    if words.is_empty() { "I heard no words in the recording.\n".to_owned() } else { format!("I heard: \"{words}\"\n") }
}

impl Commands {
    pub(super) async fn why_command(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        if let Some(id) = &at.line.about
            && let Some(answer) = self.why_posted(at, id).await?
        {
            return Ok(answer);
        }
        let reply = match &at.line.about {
            // It need not be the reply on the current branch.
            Some(id) => match self.pointed_at(at, id).await? {
                Some(named) if named.answers.is_some() => Some(named),
                _ => self.exchange(at).await?.map(|(_, reply)| reply),
            },
            None => self.recent(at).await?.into_iter().rev().find(|row| row.answers.is_some()),
        };
        let Some(reply) = reply else { return Ok(no_reply(at)) };
        let (read_scope, id) = (at.read_scope.clone(), reply.id.clone());
        let Some((why, memories, hidden)) =
            self.services.blocking(move |memory| memory.messages().why(&read_scope, &id)).await?
        else {
            return Ok(refused("Nothing is kept about that reply.".into()));
        };
        let replaced = self.replaced(at, &memories).await?;
        let said_again = self.said_again(at, &why.recalled).await?;
        let asked = match reply.answers.clone() {
            Some(asked) => {
                let read_scope = at.read_scope.clone();
                self.services.blocking(move |memory| memory.messages().get(&read_scope, &asked)).await?
            }
            None => None,
        };
        let mut text = asked.as_ref().and_then(heard_words).map(told_heard).unwrap_or_default();
        let asked = asked.map(|message| message.text).unwrap_or_default();
        if memories.is_empty() {
            text.push_str("No memories were in the prompt.\n");
        } else {
            let recent = self.recent(at).await?;
            let talking = recent.iter().map(|row| &row.author);
            let names = DisplayNames::new(&at.place.scope(), talking, memories.iter().map(|memory| &memory.author));
            text.push_str("Memories in the prompt:\n");
            for (((hit, memory), replaced), same) in why.recalled.iter().zip(&memories).zip(replaced).zip(said_again) {
                let body = shortened(&show(&memory.text, &hit.shown), &asked, SHOWN);
                text.push_str(&format!(
                    "- `{}` {}, {}, {}{}{}{}: \"{}\" (score {:.2}; {})\n",
                    memory.id,
                    names.of(&memory.author),
                    memory.kind.evidence().as_str(),
                    at.day(memory.at),
                    at.since(memory),
                    again(chats_of(memory, &same), &same),
                    at.until(replaced),
                    body.as_str(),
                    hit.score,
                    hit.signals.join(", ")
                ));
            }
        }
        if !memories.is_empty() {
            text.push_str("`/memory rate mNUMBER helpful` or `unhelpful` tells me whether one of them helps here.\n");
        }
        if hidden > 0 {
            text.push_str(&format!("{hidden} more were forgotten since, or may not be shown here now.\n"));
        }
        if !why.missing.is_empty() {
            text.push_str(&format!("Not available then: {}.\n", why.missing.join(", ")));
        }
        let parts: Vec<String> = why.fragments.iter().map(|(name, tokens)| format!("{name} {tokens}")).collect();
        text.push_str(&format!("Prompt in tokens: {}.\n", parts.join(", ")));
        text.push_str(&format!("Model {}, seed {}, recall {:.0} ms.", why.model, why.seed, why.recall_ms));
        Ok(done(text))
    }

    /// Returns for each memory until when it held, as far as that may be shown here; `None` while it holds.
    pub(super) async fn replaced(
        &self,
        at: &CommandContext<'_>,
        memories: &[MemoryRow],
    ) -> Result<Vec<Option<Stretch>>, Error> {
        let (read_scope, memories, calendar) = (at.read_scope.clone(), memories.to_vec(), at.calendar.clone());
        self.services
            .blocking(move |memory| {
                let until = |row| Ok(memory.memories().validity(&read_scope, row, &calendar)?.until);
                memories.iter().map(until).collect()
            })
            .await
    }

    /// Returns for each memory the others that said the same, as far as they may be shown here now.
    async fn said_again(&self, at: &CommandContext<'_>, hits: &[WhyHit]) -> Result<Vec<Vec<Again>>, Error> {
        let (read_scope, same): (_, Vec<_>) =
            (at.read_scope.clone(), hits.iter().map(|hit| hit.same.clone()).collect());
        self.services
            .blocking(move |memory| same.iter().map(|same| memory.memories().said_again(&read_scope, same)).collect())
            .await
    }

    /// Shows how a post came to be; `None` if the message pointed at is not a post.
    async fn why_posted(&self, at: &CommandContext<'_>, id: &MessageId) -> Result<Option<CommandAnswer>, Error> {
        let Some(post) = self.pointed_at(at, id).await?.filter(|row| row.answers.is_none()) else { return Ok(None) };
        let Some((written, _)) = self.services.blocking(move |memory| memory.writings().posted_as(&post)).await? else {
            return Ok(None);
        };
        Ok(self.whole(at, written.id, Shown::WithPrompt).await?.map(done))
    }
}
