//! `/memory known`: what counts as known in a whole place because it was said in many chats, with its sources, and the way
//! to take one's own words back.

use azera_adapter::CommandAnswer;
use azera_memory::{KNOWN_IN_CHATS, Known, shortened};
use azera_types::MemoryId;

use super::memory::others;
use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::display_names::DisplayNames;
use crate::error::Error;

/// Statements of a page.
const PAGE: usize = 10;

/// Maximum number of characters shown of a memory.
const SHOWN: usize = 160;

const USAGE: &str =
    "`/memory known`, `/memory known 2` for the second page, `/memory known m42 off` or `/memory known m42 on`.";

impl Commands {
    pub(super) async fn known_memory(&self, at: &CommandContext<'_>, rest: &str) -> Result<CommandAnswer, Error> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        match words.as_slice() {
            [] => self.list_known(at, 1).await,
            [id, "off"] => self.set_apart(at, id, true).await,
            [id, "on"] => self.set_apart(at, id, false).await,
            [page] => match page.parse::<usize>() {
                Ok(page) if page > 0 => self.list_known(at, page).await,
                _ => Ok(refused(USAGE.into())),
            },
            _ => Ok(refused(USAGE.into())),
        }
    }

    async fn list_known(&self, at: &CommandContext<'_>, page: usize) -> Result<CommandAnswer, Error> {
        let (read_scope, skip) = (at.read_scope.clone(), (page - 1).saturating_mul(PAGE));
        let (known, total) =
            self.services.blocking(move |memory| memory.memories().known(&read_scope, skip, PAGE)).await?;
        if total == 0 {
            return Ok(done(format!(
                "Nothing that may be shown here was said in {KNOWN_IN_CHATS} or more chats of one place."
            )));
        }
        let pages = total.div_ceil(PAGE);
        if known.is_empty() {
            return Ok(refused(format!("The last page is {pages}. `/memory known {pages}` shows it.")));
        }
        let recent = self.recent(at).await?;
        let talking = recent.iter().map(|row| &row.author);
        let names = DisplayNames::new(&at.place.scope(), talking, known.iter().map(|known| &known.newest.author));
        let mut text =
            format!("Known in a whole place, because it was said in {KNOWN_IN_CHATS} or more of its chats:\n");
        for known in &known {
            text.push_str(&line(at, &names, known));
        }
        if page < pages {
            text.push_str(&format!("Page {page} of {pages}; `/memory known {}` goes on.\n", page + 1));
        }
        text.push_str("`/memory known mNUMBER off` lets your own words count only where you said them.");
        Ok(done(text))
    }

    async fn set_apart(&self, at: &CommandContext<'_>, id: &str, apart: bool) -> Result<CommandAnswer, Error> {
        let Ok(id) = id.parse::<MemoryId>() else { return Ok(refused(USAGE.into())) };
        let (read_scope, person) = (at.read_scope.clone(), at.line.person.clone());
        let changed =
            self.services.blocking(move |memory| memory.memories().set_apart(&read_scope, &person, id, apart)).await?;
        Ok(match (changed, apart) {
            (None, _) => {
                refused(format!("`{id}` is nothing of yours that counts as known here. `/memory known` lists it."))
            }
            (Some(_), true) => done(format!(
                "Your own words that say what `{id}` says now count only where you said them. `/memory known {id} on` undoes that."
            )),
            (Some(_), false) => {
                done(format!("Your own words that say what `{id}` says count in the whole place again."))
            }
        })
    }
}

fn line(at: &CommandContext<'_>, names: &DisplayNames, known: &Known) -> String {
    let memory = &known.newest;
    let body = shortened(memory.gist(), "", SHOWN);
    let own = if known.is_set_apart_by(&at.line.person) { "; your own words do not count" } else { "" };
    let off = if known.is_apart { "; does not count, because its speakers took it back" } else { "" };
    let people = if known.people > 1 { format!(", by {} people", known.people) } else { String::new() };
    format!(
        "- `{}` {}, last {}, in {} chats of {}{people} (also {}){off}{own}: \"{}\"\n",
        memory.id,
        names.of(&memory.author),
        at.day(memory.at),
        known.chats,
        memory.scope,
        others(&known.again),
        body.as_str()
    )
}
