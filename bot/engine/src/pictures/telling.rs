//! Tells the person who asked for a picture why it is not drawn, where they asked. The message shows no prompt: other people
//! may read there by then.

use azera_adapter::Platform;
use azera_memory::PictureRow;
use azera_types::{Span, Text, Timestamp};

use super::draw::deliverable;
use super::{NO_BACKEND, PictureRequest, Pictures};
use crate::error::Error;
use crate::references::KEPT_HOURS;

impl Pictures {
    /// Tells a person why a picture that a reply asks for is not queued.
    pub(crate) async fn tell(&self, request: &PictureRequest<'_>, why: &str) -> Result<(), Error> {
        let row = self.row(request)?;
        self.say(request.platform, row, &format!("No picture: {why}")).await.map(drop)
    }

    /// Takes a picture out of the queue, stops drawing it, and says why. Says nothing if the person does not read there any
    /// more, or if the picture waits no more.
    pub(super) async fn give_up_saying(
        &self,
        platform: &dyn Platform,
        row: &PictureRow,
        why: &str,
    ) -> Result<(), Error> {
        // Its row goes first: who draws it sees then that it is over, and says nothing else.
        if self.say(platform, row.clone(), &not_drawn(row, why)).await? {
            self.stop(row);
        } else {
            self.give_up(platform, row).await?;
        }
        Ok(())
    }

    /// Takes a picture out of the queue, stops drawing it, removes the message about its progress, and says why in a message
    /// of its own: a platform may show what a message said before, and that was the prompt. Says nothing if the picture waits
    /// no more, or if the person does not read there any more.
    pub(super) async fn take_away_saying(
        &self,
        platform: &dyn Platform,
        row: &PictureRow,
        why: &str,
    ) -> Result<(), Error> {
        if self.give_up(platform, row).await? {
            let fresh = PictureRow { number: 0, asked_at: self.services.clock.now(), ..row.clone() };
            self.say(platform, fresh, &not_drawn(row, why)).await?;
        }
        Ok(())
    }

    /// Ends the pictures that wait for a server that is not configured any more.
    pub(super) async fn end_waiting(&self) -> Result<(), Error> {
        for row in self.services.blocking(|memory| memory.pictures().waiting()).await? {
            // The picture waits until its platform is attached.
            let Ok(platform) = self.services.platform(&row.platform) else {
                self.drop_old_start(&row).await?;
                continue;
            };
            self.give_up_saying(platform.as_ref(), &row, NO_BACKEND).await?;
        }
        Ok(())
    }

    /// Drops what a picture came with that waits for its platform longer than uploads are kept: the platform may never come
    /// back.
    pub(super) async fn drop_old_start(&self, row: &PictureRow) -> Result<(), Error> {
        let until = row.asked_at.checked_add(Span::new().hours(KEPT_HOURS)).unwrap_or(Timestamp::MAX);
        if row.start.is_none() || self.services.clock.now() < until {
            return Ok(());
        }
        let message = row.message.clone();
        self.services.blocking(move |memory| memory.pictures().let_start_go(&message)).await
    }

    /// Stops drawing a picture.
    pub(super) fn stop(&self, row: &PictureRow) {
        if let Some(running) = self.progress().running.get(&row.message) {
            running.token.cancel();
        }
    }

    /// Puts a message in the place of a picture; false if nobody may be told, or the picture waits no more.
    async fn say(&self, platform: &dyn Platform, row: PictureRow, text: &str) -> Result<bool, Error> {
        let Some(place) = self.services.place(platform, &row.chat, &row.person).await? else { return Ok(false) };
        // It is built on nothing, and stands where the person reads now.
        let row = PictureRow {
            scope: place.scope(),
            source_scopes: Vec::new(),
            sources: Vec::new(),
            from: self.services.clock.now(),
            ..row
        };
        if !self.outbox.may_be_shown(platform, &deliverable(&row)).await? {
            return Ok(false);
        }
        let (told, text) = (row.clone(), Text::new(text));
        let _hold = self.hold_delivery(&row.message);
        let post = self.services.blocking(move |memory| memory.pictures().tell(told, text)).await?;
        let Some(post) = post else { return Ok(false) };
        self.deliver(platform, &row, &post).await?;
        Ok(true)
    }
}

fn not_drawn(row: &PictureRow, why: &str) -> String {
    format!("Picture {} is not drawn: {why}", row.number)
}
