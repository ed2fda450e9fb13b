//! Publishing: posts the best garden pieces of a persona to the journal channel.

use azera_affect::{Bond, Origin, Rules};
use azera_memory::{BackgroundProgress, Kind, MemoryRow, Publication, SourceScope, WritingRow};
use azera_types::{Dimension, Timestamp};

use super::agenda::PersonaPlace;
use super::schedule::{before, days, is_past};
use super::write::WritingContext;
use crate::background::Background;
use crate::error::Error;
use crate::overrides::Overrides;
use crate::vectors::cosine;

/// Newest pieces searched.
const LOOKED_AT: usize = 512;

/// Newest candidates that are ranked, and newest posted pieces that they are compared with.
const RANKED: usize = 32;

/// Days after which a piece that was never the best is no longer a candidate.
const FRESH_DAYS: u32 = 60;

/// Dimensions of the bond that a rule raises if it disapproves of something.
const DISAPPROVING: [Dimension; 3] = [Dimension::Tension, Dimension::Irritation, Dimension::Concern];

/// Why a piece is not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unpublished {
    /// The place has no journal channel.
    NoChannel,
    /// It belongs to another place.
    OtherPlace,
    /// Not everybody who reads the channel may read its sources.
    NotForAll,
    /// The rules of the place disapprove of what it says.
    AgainstTheRules,
    /// The classifiers are not ready yet.
    NotLearnedYet,
    /// It is posted already, or forgotten.
    Gone,
}

impl Background {
    /// Posts the best piece that was not posted yet, if it is time to.
    pub(super) async fn publish_if_due(
        &self,
        home: &PersonaPlace,
        overrides: &Overrides,
        now: Timestamp,
    ) -> Result<(), Error> {
        let every = overrides.garden.publish_days;
        let last = self.background_progress(home).await?.published;
        if every == 0 || last.is_some_and(|last| !is_past(last, days(every), now)) {
            return Ok(());
        }
        let Some(at) = self.writing_context(home).await?.filter(|at| at.posted) else { return Ok(()) };
        let best = self.best_first(home, &at, now).await?;
        for memory in &best {
            match self.publish(home, &at, memory, overrides, now).await? {
                Ok(()) | Err(Unpublished::NotLearnedYet) => return Ok(()),
                Err(why) => tracing::debug!(?why, memory = %memory.id, "a piece is not published"),
            }
        }
        if !best.is_empty() {
            // They are considered again when the next publication is due.
            let progress = BackgroundProgress { published: Some(now), ..self.background_progress(home).await? };
            self.set_background_progress(home, progress, now).await?;
        }
        Ok(())
    }

    /// Posts one piece, if everybody who would read it may read its sources and no rule disapproves.
    pub(crate) async fn publish_now(
        &self,
        home: &PersonaPlace,
        memory: &MemoryRow,
    ) -> Result<Result<(), Unpublished>, Error> {
        let _writing = self.writing.lock().await;
        let overrides = self.minds.overrides(&home.platform, &home.place).await?;
        let Some(at) = self.writing_context(home).await?.filter(|at| at.posted) else {
            return Ok(Err(Unpublished::NoChannel));
        };
        self.publish(home, &at, memory, &overrides, self.services.clock.now()).await
    }

    async fn publish(
        &self,
        home: &PersonaPlace,
        at: &WritingContext,
        memory: &MemoryRow,
        overrides: &Overrides,
        now: Timestamp,
    ) -> Result<Result<(), Unpublished>, Error> {
        let scope = at.place.scope();
        if !is_of(home, at, memory) {
            return Ok(Err(Unpublished::OtherPlace));
        }
        let mut source_scopes = memory.source_scopes.clone();
        source_scopes.push(SourceScope { scope: memory.scope.clone(), from: memory.at });
        if !at.read_scope.allows(&home.persona, &scope, &source_scopes, now) {
            return Ok(Err(Unpublished::NotForAll));
        }
        if self.judge.classifiers.now().is_none() {
            return Ok(Err(Unpublished::NotLearnedYet));
        }
        let vector = self.indexer.embed(vec![memory.text.as_str().to_owned()]).await?.pop().unwrap_or_default();
        if frowned_on(&overrides.rules, &self.judge.tags(&memory.text, &vector)) {
            return Ok(Err(Unpublished::AgainstTheRules));
        }
        let progress = BackgroundProgress { published: Some(now), ..self.background_progress(home).await? };
        let publication = Publication {
            memory: memory.id,
            platform: home.platform.clone(),
            chat: at.chat.clone(),
            scope,
            source_scopes,
            at: now,
            tended: (home.platform.clone(), home.place.clone(), progress),
        };
        if self.services.blocking(move |memory| memory.writings().publish(publication)).await?.is_none() {
            return Ok(Err(Unpublished::Gone));
        }
        self.indexer.wake();
        self.deliver_what_waits().await;
        Ok(Ok(()))
    }

    /// Returns the pieces that were not posted yet, best first: those with more themes, and less similar to earlier
    /// posts.
    async fn best_first(
        &self,
        home: &PersonaPlace,
        at: &WritingContext,
        now: Timestamp,
    ) -> Result<Vec<MemoryRow>, Error> {
        let read_scope = at.read_scope.clone();
        let pieces = self
            .services
            .blocking(move |memory| memory.writings().list(&read_scope, &[Kind::Piece], LOOKED_AT))
            .await?;
        let pieces = pieces.into_iter().filter(|(memory, _)| is_of(home, at, memory));
        let since = before(now, days(FRESH_DAYS));
        let is_candidate = |(memory, writing): &(MemoryRow, WritingRow)| {
            writing.posted.is_none() && writing.imported_by.is_none() && memory.at >= since
        };
        let (mut candidates, others): (Vec<_>, Vec<_>) = pieces.partition(is_candidate);
        candidates.truncate(RANKED);
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        let posted = others.iter().filter(|(_, writing)| writing.posted.is_some()).take(RANKED);
        let texts = candidates.iter().chain(posted).map(|(memory, _)| memory.text.as_str().to_owned());
        let vectors = self.indexer.embed(texts.collect()).await?;
        let (own, posted) = vectors.split_at(candidates.len().min(vectors.len()));
        let mut ranked: Vec<(f32, MemoryRow)> = candidates
            .into_iter()
            .zip(own)
            .map(|((memory, writing), vector)| {
                let alike = posted.iter().map(|other| cosine(vector, other)).fold(0.0, f32::max);
                (writing.themes.len() as f32 * (1.0 - alike), memory)
            })
            .collect();
        ranked.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(y.id.cmp(&x.id)));
        Ok(ranked.into_iter().map(|(_, memory)| memory).collect())
    }
}

/// Returns true if a piece belongs to this place and not to another one that may be read there. A private channel's
/// journal does not use up the realm's pieces.
fn is_of(home: &PersonaPlace, at: &WritingContext, memory: &MemoryRow) -> bool {
    memory.scope == home.place || memory.scope == at.place.scope()
}

/// Returns true if a rule disapproves of a text: a safety rule, or one that raises tension, irritation or concern.
pub(super) fn frowned_on(rules: &Rules, tags: &[azera_affect::Tag]) -> bool {
    let matched = rules.matching(tags, &Bond::new());
    rules.iter().filter(|(rule, _)| matched.rules.contains(&rule.name)).any(|(rule, origin)| {
        origin == Origin::Safety || rule.deltas.iter().any(|(of, delta)| DISAPPROVING.contains(&of) && delta > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use azera_affect::Tag;

    use super::*;

    #[test]
    fn rules_disapprove_of_harm_and_not_of_pleasant_things() {
        let frowned = |name: &str| frowned_on(&Rules::builtin(), &[Tag::named(name).unwrap()]);
        assert!(["self_harm", "threat", "hostility", "insult"].into_iter().all(frowned));
        assert!(!["joke", "gratitude", "good_news"].into_iter().any(frowned));
    }
}
