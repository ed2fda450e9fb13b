//! `/why mNUMBER`: one memory with who said it, when and where.

use azera_adapter::CommandAnswer;
use azera_memory::{MemoryRow, shortened};
use azera_types::{MemoryId, Scope};

use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::display_names::DisplayNames;
use crate::error::Error;

/// Maximum number of characters shown of the memory.
const SHOWN: usize = 1_500;

/// Maximum number of characters shown of a chat's name.
const PLACE_CHARS: usize = 48;

impl Commands {
    pub(super) async fn why_memory(&self, at: &CommandContext<'_>, id: &str) -> Result<CommandAnswer, Error> {
        let Ok(id) = id.parse::<MemoryId>() else {
            return Ok(refused("`/why m42`: the number of a memory. `/why` alone is about the last reply.".into()));
        };
        let read_scope = at.read_scope.clone();
        let found = self.services.blocking(move |memory| memory.memories().get(&read_scope, id)).await?;
        let Some(memory) = found else {
            return Ok(refused(format!("I remember no `{id}` that may be shown here.")));
        };
        let recent = self.recent(at).await?;
        let talking = recent.iter().map(|row| &row.author);
        let names = DisplayNames::new(&at.place.scope(), talking, [&memory.author]);
        let replaced = self.replaced(at, std::slice::from_ref(&memory)).await?.pop().flatten();
        let said = shortened(&memory.text, "", SHOWN);
        Ok(done(format!(
            "`{id}` {}, {}, {}, {}{}{}:\n{}",
            names.of(&memory.author),
            memory.kind.evidence().as_str(),
            at.day(memory.at),
            self.place_of(at, &memory).await?,
            at.since(&memory),
            at.until(replaced),
            said.as_str()
        )))
    }

    /// Returns where a memory is from: the name of its chat for those who read that chat, or else who can read it.
    async fn place_of(&self, at: &CommandContext<'_>, memory: &MemoryRow) -> Result<String, Error> {
        let chat = memory.chat.clone().map(|chat| (chat, memory.scope.clone()));
        let named = self.services.chat_names(at.adapter, &at.line.person, chat.into_iter().collect()).await?;
        Ok(match (named.into_values().next(), &memory.scope) {
            (Some(name), _) => format!("in {}", shortened(&name, "", PLACE_CHARS).as_str()),
            (None, Scope::Dm(_)) => "in direct messages".to_owned(),
            (None, scope) => scope.to_string(),
        })
    }
}
