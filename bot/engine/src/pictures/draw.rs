//! Draws what waits, one picture after another.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use azera_adapter::{Making, PictureProgress, Platform};
use azera_memory::{DrawnPicture, MessageRow, OutboxRow, PictureOutcome, PictureRow};
use azera_model_image::{DrawnImage, ImageError, ImageProgress, Outage, Picture, PictureLimits, ProgressSender};
use azera_pictures::PromptRules;
use azera_types::Text;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::pace::Pace;
use super::{MAX_SERVED, PictureLook, PictureSettings, Pictures, Running, caption, naming};
use crate::error::Error;
use crate::outbox::{DELIVERY_ATTEMPTS, DeliverableReply};

/// How often a picture is tried while its server does not work.
const MAX_TRIES: u32 = 3;

/// The wait before a picture is tried again; it doubles each time.
pub(super) const FIRST_WAIT: Duration = Duration::from_secs(5);

/// The longest wait before a picture is tried again.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Time between two texts about the progress. It is the edit limit of the platforms.
const BETWEEN_TEXTS: Duration = Duration::from_secs(1);

/// How often a picture is made smaller until its file is one that is kept.
const MAX_SHRINKS: usize = 4;

/// Said if other people would read the picture now than when it was asked for.
const OTHER_READERS: &str = "Other people read here now than when you asked. Ask again.";

/// Said if it was begun as often as it may be, and never ended.
const STOPPED_TOO_OFTEN: &str =
    "Azera was stopped three times while it was drawn. Ask again, with fewer steps or smaller.";

/// Said if a message that it is built on was forgotten.
pub(super) const FORGOTTEN: &str = "A message that it was built on was deleted or forgotten.";

/// How it goes on after a picture.
pub(super) enum Onward {
    /// The next one may be drawn.
    Next,
    /// The server does not work; wait before the next try.
    Wait(Duration),
}

/// A picture that is being drawn.
pub(super) struct Drawing<'a> {
    settings: &'a PictureSettings,
    platform: &'a dyn Platform,
    pub(super) row: &'a PictureRow,
    pub(super) rules: &'a PromptRules,
    is_last_try: bool,
    token: &'a CancellationToken,
    /// Takes the progress as the server reports it.
    sender: &'a ProgressSender,
}

impl Pictures {
    /// Draws what waits until the engine stops.
    pub(crate) async fn keep_drawing(self: Arc<Self>) {
        loop {
            // A new picture does not shorten the wait for a server that does not work: each try counts.
            let wait = match self.draw_next().await {
                Ok(Some(Onward::Next)) => continue,
                Ok(Some(Onward::Wait(wait))) => Some(wait),
                Ok(None) => None,
                Err(error) => {
                    tracing::warn!(%error, "cannot draw a picture now");
                    Some(FIRST_WAIT)
                }
            };
            let go_on = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => self.wake.notified().await,
                }
            };
            tokio::select! {
                () = self.services.stopping.cancelled() => return,
                () = go_on => {}
            }
        }
    }

    /// Draws everything that waits. Stops at the first picture whose server does not work now.
    pub(crate) async fn draw_all(&self) -> Result<(), Error> {
        while let Some(Onward::Next) = self.draw_next().await? {}
        Ok(())
    }

    /// Draws the next picture; `None` if there is none.
    async fn draw_next(&self) -> Result<Option<Onward>, Error> {
        let _turn = self.turn.lock().await;
        if self.services.stopping.is_cancelled() {
            return Ok(None);
        }
        let Some(settings) = self.settings() else {
            // A typo in the configuration ends nobody's picture.
            if !self.is_set_aside.load(Ordering::Relaxed) {
                self.end_waiting().await?;
            }
            return Ok(None);
        };
        let mut failed = None;
        for row in self.queue().await? {
            // The picture waits until its platform is attached.
            let Ok(platform) = self.services.platform(&row.platform) else {
                self.drop_old_start(&row).await?;
                continue;
            };
            let token = self.services.stopping.child_token();
            let (sender, progress) = watch::channel(ImageProgress::default());
            self.progress().running.insert(row.message.clone(), Running { token: token.clone(), progress });
            let onward = self.draw(settings, platform.as_ref(), &row, (&token, &sender)).await;
            self.progress().running.remove(&row.message);
            match onward {
                Ok(onward) => return Ok(Some(onward)),
                // Its platform or the record fails. The others need not wait for that.
                Err(error) => {
                    tracing::warn!(picture = row.number, %error, "a picture is tried again later");
                    failed = Some(Onward::Wait(FIRST_WAIT));
                }
            }
        }
        Ok(failed)
    }

    async fn draw(
        &self,
        settings: &PictureSettings,
        platform: &dyn Platform,
        row: &PictureRow,
        (token, sender): (&CancellationToken, &ProgressSender),
    ) -> Result<Onward, Error> {
        if !self.outbox.may_be_shown(platform, &deliverable(row)).await? {
            return self.take_away(platform, row, OTHER_READERS).await;
        }
        let Some(place) = platform.place_for_all(&row.chat).await? else {
            self.give_up(platform, row).await?;
            return Ok(Onward::Next);
        };
        // The channel or the rules may have changed while it waited.
        let rules = self.rules(platform, &place).await?;
        if let Err(refusal) = naming::check(&rules, row) {
            return self.take_away(platform, row, &refusal.to_string()).await;
        }
        let message = row.message.clone();
        let Some(tries) = self.services.blocking(move |memory| memory.pictures().tried(&message)).await? else {
            return Ok(Onward::Next);
        };
        if tries > MAX_TRIES {
            return self.end_saying(platform, row, STOPPED_TOO_OFTEN).await;
        }
        let Ok(mut look) = serde_json::from_value::<PictureLook>(row.settings.clone()) else {
            return self.end_saying(platform, row, "How it was to look is no longer known. Ask again.").await;
        };
        let is_last_try = tries >= MAX_TRIES;
        let (reports, reported) = watch::channel(ImageProgress::default());
        let drawing = Drawing { settings, platform, row, rules: &rules, is_last_try, token, sender: &reports };
        let with_previews = self.shows_previews(&look);
        let drawn = tokio::select! {
            biased;
            drawn = self.make(&drawing, &mut look) => drawn?,
            () = self.pass_on(reported, sender, with_previews) => Err(ImageError::Cancelled),
            () = self.show_progress(platform, row, sender.subscribe(), token) => Err(ImageError::Cancelled),
            () = self.stop_when_unwanted(row, token) => Err(ImageError::Cancelled),
        };
        if let Some(onward) = self.wait_while_away(platform, row, drawn.as_ref().err(), token).await? {
            return Ok(onward);
        }
        match drawn {
            // It is drawn after the next start. This was no try.
            Err(ImageError::Cancelled) if self.services.stopping.is_cancelled() => {
                let message = row.message.clone();
                self.services.blocking(move |memory| memory.pictures().interrupted(&message)).await?;
                Ok(Onward::Next)
            }
            // A person who took it back knows: its row is gone. If it still waits, a source is gone.
            Err(ImageError::Cancelled) if token.is_cancelled() => self.take_away(platform, row, FORGOTTEN).await,
            Err(ImageError::Cancelled) => self.end_saying(platform, row, "The server cancelled it. Ask again.").await,
            // One that was drawn and cannot be judged is not drawn anew: its check was asked more than once.
            Err(ImageError::Unavailable { why, retry_in, outage })
                if !is_last_try && !matches!(outage, Outage::Away | Outage::Unjudged | Outage::Unseen) =>
            {
                tracing::warn!(picture = row.number, tries, why, "a picture is tried again later");
                let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(tries - 1));
                Ok(Onward::Wait(retry_in.unwrap_or(wait).clamp(FIRST_WAIT, LONGEST_WAIT)))
            }
            drawn => self.end(platform, row, drawn, &look).await,
        }
    }

    /// Ends a picture that is not drawn, and says why.
    async fn end_saying(&self, platform: &dyn Platform, row: &PictureRow, why: &str) -> Result<Onward, Error> {
        self.give_up_saying(platform, row, why).await?;
        Ok(Onward::Next)
    }

    /// Ends a picture whose prompt must not be read there any more, and says why.
    pub(super) async fn take_away(
        &self,
        platform: &dyn Platform,
        row: &PictureRow,
        why: &str,
    ) -> Result<Onward, Error> {
        self.take_away_saying(platform, row, why).await?;
        Ok(Onward::Next)
    }

    /// Reads the picture to start from, looks at it if nobody has, draws, and looks at what came out.
    async fn make(
        &self,
        drawing: &Drawing<'_>,
        look: &mut PictureLook,
    ) -> Result<Result<DrawnImage, ImageError>, Error> {
        let Drawing { settings, platform, row, rules, is_last_try, token, sender } = *drawing;
        let start = tokio::select! {
            biased;
            start = self.start_bytes(platform, row, look, rules) => start?,
            () = token.cancelled() => return Ok(Err(ImageError::Cancelled)),
        };
        let start = match start {
            Ok(start) => start,
            Err(why) => return Ok(Err(why.into_error(is_last_try))),
        };
        let drawn = match settings.make(row.prompt.as_str(), look, start, (token, sender)).await {
            Ok(drawn) => drawn,
            Err(error) => return Ok(Err(error)),
        };
        tokio::select! {
            biased;
            checked = self.checked(drawing, look, drawn) => checked,
            () = token.cancelled() => Ok(Err(ImageError::Cancelled)),
        }
    }

    /// Stops the drawing once the picture is no longer wanted: somebody cancelled it, or forgot what it is built on. Runs
    /// until it is dropped.
    async fn stop_when_unwanted(&self, row: &PictureRow, token: &CancellationToken) {
        loop {
            let message = row.message.clone();
            match self.services.blocking(move |memory| memory.pictures().is_wanted(&message)).await {
                Ok(true) => {}
                Ok(false) => {
                    // The server must be told, so its client goes on until it ends by itself.
                    token.cancel();
                    return std::future::pending().await;
                }
                // At its end it is read again, before anything is shown.
                Err(error) => {
                    tracing::warn!(picture = row.number, %error, "cannot tell whether a picture is still wanted");
                }
            }
            tokio::time::sleep(BETWEEN_TEXTS).await;
        }
    }

    /// Shows how far a picture is, and tells others their places in the queue, until it is dropped.
    async fn show_progress(
        &self,
        platform: &dyn Platform,
        row: &PictureRow,
        mut receiver: watch::Receiver<ImageProgress>,
        token: &CancellationToken,
    ) {
        let Some(streaming) = platform.streaming() else { return std::future::pending().await };
        let (chat, reply, persona, persona_name) = (&row.chat, &row.message, &row.persona, &*row.persona_name);
        let making = Making { chat, reply, persona, persona_name, asker: Some(&row.person), is_help: false };
        let (begun, mut pace) = (Instant::now(), Pace::default());
        let (mut is_due, mut was_progress) = (true, false);
        loop {
            // One text in all each time: how far it is, and in turn the new place of somebody who waits.
            if (was_progress || !is_due) && self.tell_a_place().await {
                was_progress = false;
            } else if is_due {
                let progress = receiver.borrow_and_update().clone();
                let since = begun.elapsed();
                let left = pace.left(&progress, since);
                let shown = PictureProgress {
                    since: row.asked_at,
                    text: &caption::progress(row, &progress, since, left),
                    preview: progress.preview.as_deref(),
                };
                streaming.progress(making, shown).await;
                (is_due, was_progress) = (false, true);
            }
            tokio::time::sleep(BETWEEN_TEXTS).await;
            if !is_due {
                is_due = tokio::select! {
                    changed = receiver.changed() => match changed {
                        Ok(()) => true,
                        Err(_) => return std::future::pending().await,
                    },
                    () = tokio::time::sleep(BETWEEN_TEXTS) => false,
                };
            }
            if token.is_cancelled() {
                return std::future::pending().await;
            }
        }
    }

    /// Ends a picture: keeps it, or what went wrong, and delivers the message.
    async fn end(
        &self,
        platform: &dyn Platform,
        row: &PictureRow,
        drawn: Result<DrawnImage, ImageError>,
        look: &PictureLook,
    ) -> Result<Onward, Error> {
        let outcome = match drawn {
            Ok(drawn) => self.encode(row, drawn, look).await,
            Err(error) => Err(error),
        };
        let at = self.services.clock.now();
        let outcome = outcome.unwrap_or_else(|error| {
            tracing::warn!(picture = row.number, %error, "a picture was not drawn");
            // Where the server is concerns the operator alone.
            let text = match self.settings() {
                Some(settings) => caption::failed(row, &error).replace(settings.model.name(), settings.model.title()),
                None => caption::failed(row, &error),
            };
            // What the server refused to draw was asked of it, and counts. So does what was drawn and judged unclearly:
            // else a check that does not work would let everybody draw without limit. Its outage is nobody's fault.
            let is_unjudged = matches!(error, ImageError::Unavailable { outage: Outage::Unjudged, .. });
            let is_given_back = !is_unjudged && !matches!(error, ImageError::Flagged | ImageError::Refused(_));
            PictureOutcome { text: Text::new(text), picture: None, at, is_given_back }
        });
        let is_drawn = outcome.picture.is_some();
        let _hold = self.hold_delivery(&row.message);
        let message = row.message.clone();
        let post = self.services.blocking(move |memory| memory.pictures().finish(&message, outcome)).await?;
        let Some(post) = post else { return self.take_away(platform, row, FORGOTTEN).await };
        if is_drawn {
            if let Err(error) = self.minds.drew(&row.platform, &row.persona, &row.scope).await {
                tracing::warn!(picture = row.number, %error, "a persona does not pay for a picture");
            }
            let mut progress = self.progress();
            progress.served.push_back((row.scope.clone(), row.person.clone()));
            if progress.served.len() > MAX_SERVED {
                progress.served.pop_front();
            }
        }
        self.deliver(platform, row, &post).await?;
        if is_drawn {
            self.keep_at_most(row.number).await;
        }
        Ok(Onward::Next)
    }

    /// Removes the oldest files beyond the limit, but not that of the picture that was just drawn.
    async fn keep_at_most(&self, newest: u64) {
        let Some(most) = self.settings().map(|settings| settings.kept) else { return };
        if let Err(error) = self.services.blocking(move |memory| memory.pictures().keep_at_most(most, newest)).await {
            tracing::warn!(%error, "cannot remove the oldest pictures yet");
        }
    }

    /// Decodes what the server sent within limits, and writes it anew with what it was made from.
    async fn encode(
        &self,
        row: &PictureRow,
        drawn: DrawnImage,
        look: &PictureLook,
    ) -> Result<PictureOutcome, ImageError> {
        let largest = self.services.memory.files().largest();
        let look = PictureLook { seed: drawn.seed.unwrap_or(look.seed), ..look.clone() };
        let model: String = drawn.model.chars().filter(|c| !c.is_control()).take(80).collect();
        let (row, at) = (row.clone(), self.services.clock.now());
        let work = move |file: Vec<u8>| {
            let broken = |error: azera_model_image::PictureError| {
                ImageError::Protocol(format!("the server sent a bad picture: {error}"))
            };
            let drawn = Picture::read(&file, &PictureLimits::default()).map_err(broken)?;
            let seed = look.seed.to_string();
            let texts = [
                ("prompt", row.prompt.as_str()),
                ("seed", seed.as_str()),
                ("model", model.as_str()),
                ("persona", row.persona.as_str()),
            ];
            let (picture, png) = within(drawn, &texts, largest)
                .map_err(broken)?
                .ok_or_else(|| ImageError::Refused("the picture is larger than the files that are kept here".into()))?;
            let look = PictureLook { drawn: Some((picture.width(), picture.height())), ..look };
            let text = caption::drawn(&row, &look, (picture.width(), picture.height()), &model);
            let picture = DrawnPicture {
                png,
                name: caption::file_name(&row),
                alt: caption::shortened(row.prompt.as_str(), 900),
                model,
                settings: serde_json::to_value(&look).unwrap_or_default(),
            };
            Ok(PictureOutcome { text: Text::new(text), picture: Some(picture), at, is_given_back: false })
        };
        let encoded = azera_model_image::decode(drawn.bytes, work).await;
        encoded.ok_or_else(|| ImageError::Protocol("the picture could not be encoded".into()))?
    }

    /// Delivers a picture's message. The caller holds the delivery.
    pub(super) async fn deliver(
        &self,
        platform: &dyn Platform,
        row: &PictureRow,
        post: &MessageRow,
    ) -> Result<(), Error> {
        self.placed().await;
        let delivered = async {
            let outbox = OutboxRow {
                message: post.id.clone(),
                platform: row.platform.clone(),
                asker: Some(row.person.clone()),
                from: Some(row.from),
                state: serde_json::Value::Null,
                help: String::new(),
            };
            if self.outbox.may_be_shown(platform, &deliverable(row)).await? {
                return self.outbox.deliver(platform, post, &outbox, DELIVERY_ATTEMPTS).await;
            }
            self.outbox.withdraw(platform, post, &outbox).await
        };
        if let Err(error) = delivered.await {
            tracing::warn!(message = %post.id, %error, "a picture waits in the outbox");
        }
        Ok(())
    }
}

/// Returns a picture and its file, made smaller until the file has at most `largest` bytes; `None` if that takes too long.
fn within(
    drawn: Picture,
    texts: &[(&str, &str)],
    largest: u64,
) -> Result<Option<(Picture, Vec<u8>)>, azera_model_image::PictureError> {
    let mut picture = drawn;
    for _ in 0..MAX_SHRINKS {
        let png = picture.to_png(texts)?;
        if png.len() as u64 <= largest {
            return Ok(Some((picture, png)));
        }
        // The bytes grow with the pixels, and a bit faster.
        let share = (largest as f64 / png.len() as f64).sqrt() * 0.95;
        let side = picture.width().max(picture.height());
        picture = picture.thumbnail(((f64::from(side) * share) as u32).max(1));
    }
    Ok(None)
}

/// A picture as a question of permission: who may read what it is built on.
pub(super) fn deliverable(row: &PictureRow) -> DeliverableReply<'_> {
    DeliverableReply {
        chat: &row.chat,
        asker: Some(&row.person),
        persona: &row.persona,
        scope: &row.scope,
        from: row.from,
        source_scopes: &row.source_scopes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_made_smaller_until_its_file_may_be_kept() {
        // Noise, which no encoder makes smaller.
        let noise = |at: u32| {
            let mixed = (at ^ 0x5bd1_e995).wrapping_mul(2_654_435_761);
            let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(2_246_822_519);
            (mixed ^ (mixed >> 13)) as u8
        };
        let noise = Picture::from_rgb(200, 100, (0..200 * 100 * 3).map(noise).collect()).unwrap();
        let (whole, png) = within(noise.clone(), &[], 100_000).unwrap().unwrap();
        assert!(whole == noise && png.len() > 50_000);
        let (smaller, png) = within(noise.clone(), &[("prompt", "a boat")], 20_000).unwrap().unwrap();
        assert!(png.len() <= 20_000 && smaller.width() > 80 && smaller.width() / smaller.height() == 2);
        assert_eq!(within(noise, &[("prompt", "a boat")], 10).unwrap(), None);
    }
}
