//! Requests for pictures: counted against the limits of a day, and queued. A request of a reply is queued with the reply, so
//! that none without the other outlives a crash.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use azera_types::{PersonId, PlatformId, Scope};
use serde::{Deserialize, Serialize};

use crate::domains::Pictures;
use crate::forget_log::Forgotten;
use crate::pictures::{Asked, NewPicture, PictureQuota, PictureRow, message_of};
use crate::rows::MessageRow;
use crate::{Batch, Durability, Error, Table, blob_id, codec, keys};

// First parts of the keys of counts.
const ASKED_BY: &str = "pictures-by";
const ASKED_IN: &str = "pictures-in";

/// How many pictures were asked for on a day.
#[derive(Default, Serialize, Deserialize)]
struct DayCount {
    day: String,
    count: u32,
}

impl DayCount {
    fn on(self, day: &str) -> Self {
        if self.day == day { self } else { Self { day: day.to_owned(), count: 0 } }
    }
}

fn by_key(person: &PersonId) -> Vec<u8> {
    keys::prefix(&[ASKED_BY, &Scope::Dm(person.clone()).to_string()])
}

fn in_key(platform: &PlatformId, scope: &Scope) -> Vec<u8> {
    keys::prefix(&[ASKED_IN, platform.as_str(), &scope.to_string()])
}

impl<'a> Pictures<'a> {
    /// Queues a picture, within the limits. The row and the counts are one flushed transaction.
    pub fn ask(self, mut new: NewPicture) -> Result<Asked, Error> {
        self.0.store.room()?;
        let start = new.start.take();
        new.row.start = start.as_deref().map(blob_id).transpose()?;
        let _asking = self.asking();
        self.0.store.ready()?;
        let mut batch = Batch::new();
        let asked = self.put_asked(&mut batch, vec![new])?.pop().unwrap_or(Asked::QueueFull);
        if let Asked::Waits(row) = &asked {
            let held = self.put_start(&mut batch, row, start.as_deref().unwrap_or_default())?;
            self.0.store.commit(batch, Durability::Flushed)?;
            if let Some(held) = held {
                held.committed();
            }
            self.note_asked(std::slice::from_ref(&asked))?;
        }
        Ok(asked)
    }

    /// Returns the lock of all requests. One for all chats, because the limits are about all of them.
    pub(crate) fn asking(self) -> MutexGuard<'a, ()> {
        self.0.asking_for_pictures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds pictures of one person in one place to a transaction, within the limits. The caller holds the lock of all
    /// requests until it has committed and noted them.
    pub(crate) fn put_asked(self, batch: &mut Batch, pictures: Vec<NewPicture>) -> Result<Vec<Asked>, Error> {
        let (mut asked, mut before) = (Vec::new(), 0);
        for NewPicture { mut row, quota, .. } in pictures {
            if let Some(limit) = self.limit_behind(&row.person, (&row.platform, &row.scope), &quota, before)? {
                asked.push(limit);
                continue;
            }
            before += 1;
            for key in [by_key(&row.person), in_key(&row.platform, &row.scope)] {
                let mut count = self.count(&key, &quota.day)?;
                count.count = count.count.saturating_add(before);
                codec::put(batch, Table::Settings, key, &count)?;
            }
            row.number = self.0.next_number()?;
            row.message = message_of(row.number)?;
            row.day = quota.day;
            codec::put(batch, Table::Pictures, keys::message(&row.message), &row)?;
            asked.push(Asked::Waits(Box::new(row)));
        }
        Ok(asked)
    }

    /// Notes pictures that are queued now.
    pub(crate) fn note_asked(self, asked: &[Asked]) -> Result<(), Error> {
        let mut order = self.order()?;
        for asked in asked {
            if let Asked::Waits(row) = asked {
                order.note(row);
            }
        }
        Ok(())
    }

    /// Returns the limit that keeps a person from asking for another picture in a place now; `None` if there is none. It
    /// counts nothing: [`Pictures::ask`] decides.
    pub fn limit(
        self,
        person: &PersonId,
        place: (&PlatformId, &Scope),
        quota: &PictureQuota,
    ) -> Result<Option<Asked>, Error> {
        self.limit_behind(person, place, quota, 0)
    }

    /// Returns the same for a request behind `before` others of the same person and place that are not committed yet.
    fn limit_behind(
        self,
        person: &PersonId,
        (platform, scope): (&PlatformId, &Scope),
        quota: &PictureQuota,
        before: u32,
    ) -> Result<Option<Asked>, Error> {
        let waiting = self.waiting()?;
        let more = before as usize;
        let of_person = waiting.iter().filter(|row| row.person == *person).count() + more;
        let in_place = waiting.iter().filter(|row| row.platform == *platform && row.scope == *scope).count() + more;
        let today = |key: &[u8]| Ok::<_, Error>(self.count(key, &quota.day)?.count.saturating_add(before));
        Ok(if waiting.len() + more >= quota.waiting {
            Some(Asked::QueueFull)
        } else if of_person >= quota.waiting_by_person {
            Some(Asked::PersonWaits)
        } else if in_place >= quota.waiting_in_place {
            Some(Asked::PlaceWaits)
        } else if today(&by_key(person))? >= quota.by_person {
            Some(Asked::PersonHadEnough)
        } else if today(&in_key(platform, scope))? >= quota.in_place {
            Some(Asked::PlaceHadEnough)
        } else {
            None
        })
    }

    /// Gives a picture that was not drawn back to the limits of its day. The caller holds the lock of all requests.
    pub(crate) fn give_back(self, batch: &mut Batch, row: &PictureRow) -> Result<(), Error> {
        for key in [by_key(&row.person), in_key(&row.platform, &row.scope)] {
            let mut count = self.count(&key, &row.day)?;
            if !row.day.is_empty() && count.count > 0 {
                count.count -= 1;
                codec::put(batch, Table::Settings, key, &count)?;
            }
        }
        Ok(())
    }

    /// Removes the waiting pictures that the tags of a reply asked for, and gives them back to the limits of their day.
    /// The caller holds the lock of the reply's chat and that of all requests.
    pub(crate) fn take_back_with(
        self,
        batch: &mut Batch,
        gone: &mut Forgotten,
        reply: &MessageRow,
    ) -> Result<(), Error> {
        let is_of_tag = |row: &PictureRow| row.starts_from.is_none() && row.sources == std::slice::from_ref(&reply.id);
        let mut given_back: BTreeMap<(Vec<u8>, String), u32> = BTreeMap::new();
        for row in self.waiting_of(|row| row.chat == reply.chat && is_of_tag(row))? {
            batch.remove(Table::Pictures, keys::message(&row.message));
            gone.message(row.message);
            // One that was begun counts, as for whoever takes it back.
            if row.tries == 0 && !row.day.is_empty() {
                for key in [by_key(&row.person), in_key(&row.platform, &row.scope)] {
                    *given_back.entry((key, row.day.clone())).or_default() += 1;
                }
            }
        }
        for ((key, day), pictures) in given_back {
            let mut count = self.count(&key, &day)?;
            if count.count > 0 {
                count.count = count.count.saturating_sub(pictures);
                codec::put(batch, Table::Settings, key, &count)?;
            }
        }
        Ok(())
    }

    fn count(self, key: &[u8], day: &str) -> Result<DayCount, Error> {
        Ok(self.0.read_setting::<DayCount>(key)?.unwrap_or_default().on(day))
    }
}
