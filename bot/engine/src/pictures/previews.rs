//! Previews: how a picture looks while it is drawn. Nobody checks them, so they are shown only where nobody checks finished
//! pictures either, and never of a picture with somebody under 18 in it.

use azera_model_image::{ImageProgress, Picture, PictureError, PictureLimits, ProgressSender};
use tokio::sync::watch;

use super::{PictureLook, Pictures};

/// The limits of a preview, as the server sends it.
const SENT: PictureLimits = PictureLimits { max_bytes: 2 << 20, max_side: 2_048, max_pixels: 4 << 20 };

/// The longer side of a preview, in pixels.
const SIDE: u32 = 256;

impl Pictures {
    /// Returns true if people may see a picture while it is drawn.
    pub(super) fn shows_previews(&self, look: &PictureLook) -> bool {
        let is_wanted = self.settings().is_some_and(|settings| settings.previews);
        let is_checked = self.services.viewer.get().is_some();
        is_wanted && !is_checked && !look.traits.and(look.start_traits).has_minor
    }

    /// Passes the progress of a drawing on until it is dropped, with each preview written anew, or without previews.
    pub(super) async fn pass_on(
        &self,
        mut from: watch::Receiver<ImageProgress>,
        to: &ProgressSender,
        with_previews: bool,
    ) {
        loop {
            let mut progress = from.borrow_and_update().clone();
            let sent = progress.preview.take().filter(|_| with_previews);
            progress.preview = match sent {
                Some(sent) => self.decode(sent, |sent| small(&sent)).await.ok().and_then(Result::ok),
                None => None,
            };
            to.send_replace(progress);
            if from.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

/// Returns a small JPEG file of a preview.
fn small(sent: &[u8]) -> Result<Vec<u8>, PictureError> {
    Picture::read(sent, &SENT)?.thumbnail(SIDE).to_jpeg()
}
