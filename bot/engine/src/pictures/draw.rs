//! Draws what waits, one picture after another.

use std::sync::Arc;
use std::time::Duration;

use azera_adapter::{Making, Platform};
use azera_memory::{DrawnPicture, MessageRow, OutboxRow, PictureOutcome, PictureRow};
use azera_model_image::{DrawnImage, ImageError, ImageProgress, Picture, PictureLimits, ProgressSender};
use azera_types::Text;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{PictureLook, PictureSettings, Pictures, Running, caption};
use crate::error::Error;
use crate::outbox::{DELIVERY_ATTEMPTS, DeliverableReply};

/// How often a picture is tried while its server does not work.
const MAX_TRIES: u32 = 3;

/// The wait before a picture is tried again; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_secs(5);

/// The longest wait before a picture is tried again.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Time between two texts about the progress. It is the edit limit of the platforms.
const BETWEEN_TEXTS: Duration = Duration::from_secs(1);

/// Pictures whose places and people are remembered for a fair order.
const MAX_SERVED: usize = 500;

/// How it goes on after a picture.
enum Onward {
    /// The next one may be drawn.
    Next,
    /// The server does not work; wait before the next try.
    Wait(Duration),
}

impl Pictures {
    /// Draws what waits until the engine stops.
    pub(crate) async fn keep_drawing(self: Arc<Self>) {
        if self.settings().is_none() {
            return;
        }
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
        let Some(settings) = self.settings() else { return Ok(None) };
        let _turn = self.turn.lock().await;
        if self.services.stopping.is_cancelled() {
            return Ok(None);
        }
        let mut failed = None;
        for row in self.queue().await? {
            // The picture waits until its platform is attached.
            let Ok(platform) = self.services.platform(&row.platform) else { continue };
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
            self.give_up(platform, row).await?;
            return Ok(Onward::Next);
        }
        // The channel or the rules may have changed while it waited.
        let allowed = match platform.place_for_all(&row.chat).await? {
            None => false,
            Some(place) => {
                let texts = [row.prompt.as_str(), row.name.as_deref().unwrap_or_default()];
                self.rules(platform, &place).await?.check(&texts).is_ok()
            }
        };
        if !allowed {
            self.give_up(platform, row).await?;
            return Ok(Onward::Next);
        }
        let message = row.message.clone();
        let Some(tries) = self.services.blocking(move |memory| memory.pictures().tried(&message)).await? else {
            return Ok(Onward::Next);
        };
        if tries > MAX_TRIES {
            self.give_up(platform, row).await?;
            return Ok(Onward::Next);
        }
        let Ok(look) = serde_json::from_value::<PictureLook>(row.settings.clone()) else {
            self.give_up(platform, row).await?;
            return Ok(Onward::Next);
        };
        let reference = match (&row.starts_from, &look.uploaded) {
            (None, None) => None,
            _ => match self.reference(platform, row, &look).await? {
                Some(png) => Some(png),
                None => {
                    let gone = ImageError::Refused("the picture that it starts from is gone".into());
                    return self.end(platform, row, Err(gone), &look).await;
                }
            },
        };
        let request = settings.request(row.prompt.as_str(), &look, reference);
        let drawn = tokio::select! {
            biased;
            drawn = settings.model.generate(&request, sender, token) => drawn,
            () = self.show_progress(platform, row, sender.subscribe()) => Err(ImageError::Cancelled),
            () = self.stop_when_unwanted(row, token) => Err(ImageError::Cancelled),
        };
        match drawn {
            // It is drawn after the next start. This was no try.
            Err(ImageError::Cancelled) if self.services.stopping.is_cancelled() => {
                let message = row.message.clone();
                self.services.blocking(move |memory| memory.pictures().interrupted(&message)).await?;
                Ok(Onward::Next)
            }
            Err(ImageError::Cancelled) => {
                self.give_up(platform, row).await?;
                Ok(Onward::Next)
            }
            Err(ImageError::Unavailable { why, retry_in }) if tries < MAX_TRIES => {
                tracing::warn!(picture = row.number, tries, why, "a picture is tried again later");
                let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(tries - 1));
                Ok(Onward::Wait(retry_in.unwrap_or(wait).clamp(FIRST_WAIT, LONGEST_WAIT)))
            }
            drawn => self.end(platform, row, drawn, &look).await,
        }
    }

    /// Stops the drawing once the picture is no longer wanted: somebody cancelled it, or forgot what it is built on. Runs
    /// until it is dropped.
    async fn stop_when_unwanted(&self, row: &PictureRow, token: &CancellationToken) {
        loop {
            let message = row.message.clone();
            match self.services.blocking(move |memory| memory.pictures().is_wanted(&message)).await {
                Ok(true) => tokio::time::sleep(BETWEEN_TEXTS).await,
                unwanted => {
                    if let Err(error) = unwanted {
                        tracing::warn!(picture = row.number, %error, "cannot tell whether a picture is still wanted");
                    }
                    // The server must be told, so its client goes on until it ends by itself.
                    token.cancel();
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Shows how far a picture is, until it is dropped.
    async fn show_progress(
        &self,
        platform: &dyn Platform,
        row: &PictureRow,
        mut receiver: watch::Receiver<ImageProgress>,
    ) {
        let Some(streaming) = platform.streaming() else { return std::future::pending().await };
        let (chat, reply, persona, persona_name) = (&row.chat, &row.message, &row.persona, &*row.persona_name);
        let begun = Instant::now();
        loop {
            let text = caption::progress(row, &receiver.borrow_and_update().clone(), begun.elapsed());
            streaming
                .progress(Making { chat, reply, persona, persona_name, is_help: false }, row.asked_at, &text)
                .await;
            tokio::time::sleep(BETWEEN_TEXTS).await;
            if receiver.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Returns the picture to start from, if it may still be read there.
    async fn reference(
        &self,
        platform: &dyn Platform,
        row: &PictureRow,
        look: &PictureLook,
    ) -> Result<Option<Vec<u8>>, Error> {
        if let Some(id) = &look.uploaded {
            return Ok(self.services.references.get(&row.person, id, self.services.clock.now()));
        }
        let Some(from) = row.starts_from.clone() else { return Ok(None) };
        let Some(place) = self.services.place(platform, &row.chat, &row.person).await? else { return Ok(None) };
        let read_scope = self.access.read_scope(platform, &place, &row.persona).await?;
        let found = self.services.blocking(move |memory| memory.pictures().file(&read_scope, &from)).await?;
        Ok(found.map(|(_, bytes)| bytes))
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
            PictureOutcome { text: Text::new(caption::failed(row, &error)), picture: None, at }
        });
        let is_drawn = outcome.picture.is_some();
        let message = row.message.clone();
        let post = self.services.blocking(move |memory| memory.pictures().finish(&message, outcome)).await?;
        let Some(post) = post else {
            self.give_up(platform, row).await?;
            return Ok(Onward::Next);
        };
        if is_drawn {
            let mut progress = self.progress();
            progress.served.push_back((row.scope.clone(), row.person.clone()));
            if progress.served.len() > MAX_SERVED {
                progress.served.pop_front();
            }
        }
        self.deliver(platform, row, &post).await?;
        Ok(Onward::Next)
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
        let work = move || {
            let broken = |error: azera_model_image::PictureError| {
                ImageError::Protocol(format!("the server sent a bad picture: {error}"))
            };
            let picture = Picture::read(&drawn.bytes, &PictureLimits::default()).map_err(broken)?;
            let seed = look.seed.to_string();
            let texts = [
                ("prompt", row.prompt.as_str()),
                ("seed", seed.as_str()),
                ("model", model.as_str()),
                ("persona", row.persona.as_str()),
            ];
            let png = picture.to_png(&texts).map_err(broken)?;
            if png.len() as u64 > largest {
                return Err(ImageError::Configuration(format!(
                    "the picture has {} bytes, and memory.blob_max_bytes allows {largest}",
                    png.len()
                )));
            }
            let look = PictureLook { drawn: Some((picture.width(), picture.height())), ..look };
            let text = caption::drawn(&row, &look, (picture.width(), picture.height()), &model);
            let picture = DrawnPicture {
                png,
                name: caption::file_name(&row),
                alt: caption::shortened(row.prompt.as_str(), 900),
                model,
                settings: serde_json::to_value(&look).unwrap_or_default(),
            };
            Ok(PictureOutcome { text: Text::new(text), picture: Some(picture), at })
        };
        let encoded = tokio::task::spawn_blocking(work).await;
        encoded.map_err(|_| ImageError::Protocol("the picture could not be encoded".into()))?
    }

    async fn deliver(&self, platform: &dyn Platform, row: &PictureRow, post: &MessageRow) -> Result<(), Error> {
        self.progress().delivering.insert(post.id.clone());
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
            self.outbox.withdraw(post, &outbox).await
        };
        let delivered = delivered.await;
        self.progress().delivering.remove(&post.id);
        if let Err(error) = delivered {
            tracing::warn!(message = %post.id, %error, "a picture waits in the outbox");
        }
        Ok(())
    }
}

/// A picture as a question of permission: who may read what it is built on.
fn deliverable(row: &PictureRow) -> DeliverableReply<'_> {
    DeliverableReply {
        chat: &row.chat,
        asker: Some(&row.person),
        persona: &row.persona,
        scope: &row.scope,
        from: row.from,
        source_scopes: &row.source_scopes,
    }
}
