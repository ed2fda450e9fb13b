//! Groups memories into themes: in quiet times wherever enough is new, and at once for somebody who asks.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_memory::{NextPlace, ReadScope, ThemedPlace};
use azera_types::Timestamp;

use crate::error::Error;
use crate::indexing::{BATCH, Indexer, LONGEST_LULL};
use crate::learning_stages::{LearningStage, StageClock};

/// Minimum time between two looks for themes. Each reads the newest rows of every place.
const LOOK_FOR_THEMES: Duration = Duration::from_secs(10 * 60);

/// How far memories are grouped into themes.
#[derive(Default)]
pub(crate) struct Grouping {
    /// When themes were last looked for.
    looked: Mutex<Option<Timestamp>>,
    /// The last place whose memories were grouped, if the round ended before the last one.
    themed: Mutex<Option<ThemedPlace>>,
    /// Held while a place is grouped: two at once would number its themes differently.
    running: tokio::sync::Mutex<()>,
}

impl Indexer {
    /// Groups the memories of places where enough was said since, for `/memory themes`. Returns how many places were grouped.
    pub(crate) async fn find_themes(&self) -> Result<usize, Error> {
        if !self.fill_themes().await? {
            return Ok(0);
        }
        // A round that ended early goes on where it ended, so that no place waits for those before it.
        let begin = self.themed().clone();
        let mut grouped = if begin.is_some() { self.group_from(begin).await? } else { 0 };
        let is_at_end = self.themed().is_none();
        if is_at_end {
            grouped += self.group_from(None).await?;
            self.services.blocking(|memory| memory.themes().sweep()).await?;
        }
        Ok(grouped)
    }

    fn themed(&self) -> MutexGuard<'_, Option<ThemedPlace>> {
        self.grouping.themed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Groups the memories of the due places after one, and notes how far it came. Returns how many places were grouped.
    async fn group_from(&self, mut after: Option<ThemedPlace>) -> Result<usize, Error> {
        let now = self.services.clock.now();
        let mut grouped = 0;
        loop {
            *self.themed() = after.clone();
            if self.services.stopping.is_cancelled() {
                return Ok(grouped);
            }
            let from = after.clone();
            let next = self.services.blocking(move |memory| memory.themes().next_due(from.as_ref(), now)).await?;
            let place = match next {
                NextPlace::Due(place) => place,
                NextPlace::Later => return Ok(grouped),
                NextPlace::None => break,
            };
            self.services.foreground.until_quiet(LONGEST_LULL).await;
            after = Some(place.clone());
            // The other places need not wait for this one.
            match self.group(place).await {
                Ok(true) => grouped += 1,
                // The next round goes on with this place.
                Ok(false) => return Ok(grouped),
                Err(error) => tracing::warn!(%error, "cannot group the memories of a place by themes"),
            }
        }
        *self.themed() = None;
        Ok(grouped)
    }

    /// Looks for themes, unless that was done a short while ago.
    pub(crate) async fn find_themes_if_due(&self) {
        if self.is_time_for_themes()
            && let Err(error) = self.find_themes().await
        {
            tracing::warn!(%error, "cannot find themes");
        }
    }

    /// Returns true if it is time to look for themes, and notes that.
    fn is_time_for_themes(&self) -> bool {
        let now = self.services.clock.now();
        let mut looked = self.grouping.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = looked.is_none_or(|looked| now.duration_since(looked).unsigned_abs() >= LOOK_FOR_THEMES);
        if is_due {
            *looked = Some(now);
        }
        is_due
    }

    /// Adds the rows of memories that lack them. Returns false if the engine stops first.
    async fn fill_themes(&self) -> Result<bool, Error> {
        while self.services.blocking(|memory| memory.themes().fill(BATCH)).await? {
            if self.services.stopping.is_cancelled() {
                return Ok(false);
            }
            self.services.foreground.until_quiet(LONGEST_LULL).await;
        }
        Ok(true)
    }

    /// Groups the memories of a place. Returns false if it did not, because memories wait to be indexed.
    async fn group(&self, place: ThemedPlace) -> Result<bool, Error> {
        let _one = self.grouping.running.lock().await;
        let clock = StageClock::start(&self.services.measurements.learning, LearningStage::Themes);
        let changed = self.services.blocking(move |memory| memory.themes().group(&place)).await?;
        clock.done();
        tracing::debug!(changed, "memories of a place were grouped by themes");
        Ok(changed.is_some())
    }

    /// Groups the memories of every place in a read scope where anything is new, without waiting until enough is. Returns how
    /// many places were grouped; `None` while memories wait to be indexed. It yields to live turns, and tells `steps` how
    /// many of how many places are done.
    pub(crate) async fn group_readable(
        &self,
        read_scope: ReadScope,
        steps: &(dyn Fn(usize, usize) + Send + Sync),
    ) -> Result<Option<usize>, Error> {
        if !self.fill_themes().await? {
            return Ok(None);
        }
        let changed = self.services.blocking(move |memory| memory.themes().changed(&read_scope)).await?;
        let Some(places) = changed else { return Ok(None) };
        let (mut grouped, all) = (0, places.len());
        for place in places {
            steps(grouped, all);
            if self.services.stopping.is_cancelled() {
                return Err(Error::Interrupted);
            }
            self.services.foreground.until_quiet(LONGEST_LULL).await;
            // Something may have been said since the last place.
            if !self.group(place).await? {
                return Ok(None);
            }
            grouped += 1;
        }
        Ok(Some(grouped))
    }
}
