//! Thumbs that go: their reaction was removed, or the reply above them is forgotten.

use std::collections::{BTreeSet, HashSet};
use std::sync::MutexGuard;

use azera_types::{ChatId, MemoryId, MessageId, PersonId};

use super::{RatingRow, ThumbRow};
use crate::domains::Memories;
use crate::{Batch, Durability, Error, Table, codec, keys};

impl Memories<'_> {
    /// Removes thumbs below a reply whose reactions are gone: those of one person, or of everybody. `is_gone` is asked with
    /// the name of the reaction, and whether it is a thumb up. The name is `None` for a thumb of an older version, which
    /// stands for all answers to its message. This shows nothing, and works for people who can no longer read the place.
    /// Returns how many ratings it changed.
    pub fn remove_reactions(
        self,
        reply: &MessageId,
        person: Option<&PersonId>,
        is_gone: impl Fn(Option<&str>, bool) -> bool,
    ) -> Result<usize, Error> {
        let recalled = self.0.messages().recalled_by(reply)?;
        let about = self.0.messages().raw_message(reply)?.and_then(|row| row.answers);
        let _writing = self.writing_about(&recalled, None)?;
        let mut batch = Batch::new();
        let changed = self.drop_thumbs(&mut batch, &recalled, |row, thumb| {
            let is_gone = match (&thumb.reply, thumb.reaction.as_deref()) {
                (None, None) => about.as_ref() == Some(&thumb.about) && is_gone(None, thumb.is_up),
                // It was typed.
                (Some(_), None) => false,
                (below, name) => below.as_ref() == Some(reply) && is_gone(name, thumb.is_up),
            };
            is_gone && person.is_none_or(|person| row.person == *person)
        })?;
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(changed)
    }

    /// Removes all thumbs below replies that the same batch forgets. The caller holds [`Self::writing_below`], and removes
    /// memories later in the batch, since they take their ratings along.
    pub(crate) fn forget_thumbs(self, batch: &mut Batch, replies: &HashSet<MessageId>) -> Result<(), Error> {
        let recalled = self.recalled_below(replies)?;
        if recalled.is_empty() {
            return Ok(());
        }
        // An older version did not note the reply.
        let mut answered = HashSet::new();
        for reply in replies {
            answered.extend(self.0.messages().raw_message(reply)?.and_then(|row| row.answers));
        }
        let is_gone = |thumb: &ThumbRow| match &thumb.reply {
            Some(reply) => replies.contains(reply),
            None => answered.contains(&thumb.about),
        };
        self.drop_thumbs(batch, &recalled, |_, thumb| is_gone(thumb)).map(drop)
    }

    /// Locks out everybody who writes in a chat, or may rate what these replies recalled.
    pub(crate) fn writing_below<'m>(
        &self,
        chat: &ChatId,
        replies: impl IntoIterator<Item = &'m MessageId>,
    ) -> Result<Vec<MutexGuard<'_, ()>>, Error> {
        self.writing_about(&self.recalled_below(replies)?, Some(chat))
    }

    /// Returns the memories that replies recalled.
    fn recalled_below<'m>(self, replies: impl IntoIterator<Item = &'m MessageId>) -> Result<Vec<MemoryId>, Error> {
        let mut recalled = Vec::new();
        for reply in replies {
            recalled.extend(self.0.messages().recalled_by(reply)?);
        }
        Ok(recalled)
    }

    /// Removes thumbs on some memories, of everybody and in every place. Returns how many ratings that changes.
    fn drop_thumbs(
        self,
        batch: &mut Batch,
        memories: &[MemoryId],
        goes: impl Fn(&RatingRow, &ThumbRow) -> bool,
    ) -> Result<usize, Error> {
        let mut changed = 0;
        for id in memories.iter().collect::<BTreeSet<_>>() {
            let mut rows: Vec<RatingRow> = codec::rows(self.0.store.as_ref(), Table::Ratings, &keys::memory(*id))?;
            rows.retain(|row| row.memory == *id && row.thumbs.iter().any(|thumb| goes(row, thumb)));
            for row in rows {
                let key = (*id, &row.scope, &row.person);
                self.retain_thumbs(batch, key, |thumb| !goes(&row, thumb))?;
                changed += 1;
            }
        }
        Ok(changed)
    }
}
