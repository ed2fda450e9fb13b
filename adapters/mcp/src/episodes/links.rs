//! `episode_link`: the person states that one episode came from another. The statement is a memory of the person, so the link
//! is forgotten with it. It counts only where both episodes may be read.

use std::collections::{BTreeMap, BTreeSet};

use azera_adapter::ShownMemory;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Timed;
use super::chains::Chains;
use crate::failure::Failure;
use crate::session::Caller;
use crate::statements::{name, stating};
use crate::writing::{Kept, kept};

/// Most links that are read: the newest ones.
const MAX_LINKS: usize = 1_000;

/// Most characters of an id.
const MAX_ID_CHARS: usize = 1_000;

/// The word that a statement begins with, and the words around its two ids.
const LABEL: &str = "Episode";
const EPISODE: &str = "Episode \"";
const CAUSED_BY: &str = "\" was caused by episode \"";
const END: &str = "\".";

/// Two episodes of which one came from the other.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TwoEpisodes {
    /// The id of the later episode, from `cue_search`.
    session: String,
    /// The id of the earlier episode that it came from.
    caused_by: String,
}

/// An episode that the person named as the cause of another.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatedCause {
    /// The id of the earlier episode.
    session: String,
    /// The memory that states it. Forgetting it undoes the link.
    memory: String,
}

/// A statement.
struct Link {
    effect: String,
    cause: String,
    memory: String,
}

fn statement(effect: &str, cause: &str) -> String {
    format!("{EPISODE}{effect}{CAUSED_BY}{cause}{END}")
}

fn parse(fact: &ShownMemory) -> Option<Link> {
    let (effect, cause) = fact.text.strip_prefix(EPISODE)?.strip_suffix(END)?.split_once(CAUSED_BY)?;
    Some(Link { effect: effect.to_owned(), cause: cause.to_owned(), memory: fact.id.to_string() })
}

/// Adds the causes that the person stated, and lets the chains of both episodes be one.
fn apply(found: &mut [Timed], links: Vec<Link>) {
    let ids: BTreeMap<String, usize> =
        found.iter().enumerate().map(|(number, one)| (one.episode.session.clone(), number)).collect();
    let mut chains = Chains::default();
    for (number, one) in found.iter().enumerate() {
        one.episode.linked.iter().filter_map(|id| ids.get(id)).for_each(|other| chains.join(number, *other));
    }
    let mut begin = BTreeSet::new();
    for Link { effect, cause, memory } in links {
        let (Some(later), Some(earlier)) = (ids.get(&effect), ids.get(&cause)) else { continue };
        chains.join(*later, *earlier);
        if let Some(one) = found.get_mut(*later)
            && one.episode.stated_causes.iter().all(|known| known.session != cause)
        {
            one.episode.stated_causes.push(StatedCause { session: cause, memory });
            begin.insert(*later);
        }
    }
    chains.name_in(found, begin);
}

impl Caller {
    /// Adds what the person stated about these episodes. Returns true if only the newest links were looked for.
    pub(super) async fn add_stated_links(&self, found: &mut [Timed]) -> Result<bool, Failure> {
        let at = self.begin().await?;
        let (mut walk, mut links) = (self.walk(&at, LABEL, None), Vec::new());
        while links.len() < MAX_LINKS {
            let Some((_, link)) = walk.next(parse).await? else { break };
            links.push(link);
        }
        apply(found, links);
        Ok(walk.rest().is_some())
    }

    pub(crate) async fn episode_link(&self, two: TwoEpisodes) -> Result<Kept, Failure> {
        let (later, earlier) =
            (name(&two.session, "session", MAX_ID_CHARS)?, name(&two.caused_by, "caused_by", MAX_ID_CHARS)?);
        let _one = stating(&self.session.person).await;
        let (found, _) = self.all_episodes().await?;
        let episode = |id: &str| {
            let one = found.iter().find(|one| one.episode.session == id);
            one.ok_or_else(|| Failure::refused(format!("There is no episode {id:?}. `cue_search` lists them.")))
        };
        let (effect, cause) = (episode(&later)?, episode(&earlier)?);
        if later == earlier || cause.span.0 > effect.span.0 {
            return Err(Failure::invalid("`caused_by` must be another episode, which began before `session` began."));
        }
        if let Some(known) = cause.episode.stated_causes.iter().find(|known| known.session == later) {
            let memory = &known.memory;
            return Err(Failure::refused(format!("{memory} states it the other way round. Forget {memory} first.")));
        }
        if let Some(known) = effect.episode.stated_causes.iter().find(|known| known.session == earlier) {
            return Ok(Kept { id: known.memory.clone() });
        }
        self.begin().await?;
        kept(self.command(&format!("/remember {}", statement(&later, &earlier))).await?)
    }
}
