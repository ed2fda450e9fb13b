//! Finished pictures, looked at before anybody sees them.

use azera_model_image::{
    DrawnImage, ImageError, Outage, Picture, PictureError, PictureLimits, SeeError, Verdict, Viewer,
};
use azera_pictures::Traits;

use super::draw::{Drawing, FIRST_WAIT, LONGEST_WAIT};
use super::naming::own_texts;
use super::{PictureLook, Pictures};
use crate::error::Error;

/// The longer side of a picture that is looked at, in pixels. It is halved until the model takes the file.
const SIDE: u32 = 1_024;

/// How often the model may give no clear answer about one picture.
const MAX_UNCLEAR: u32 = 3;

/// How often it may not answer at all. With the waits between, that is some minutes.
const MAX_UNANSWERED: u32 = 6;

/// The smallest side in which a picture is looked at.
const MIN_SIDE: u32 = 256;

impl Pictures {
    /// Returns a finished picture if it may be shown. Where something is set up to see, its verdict decides; without a
    /// verdict the picture is not shown. What was seen is noted in the look, for pictures that start from this one.
    pub(super) async fn checked(
        &self,
        drawing: &Drawing<'_>,
        look: &mut PictureLook,
        drawn: DrawnImage,
    ) -> Result<Result<DrawnImage, ImageError>, Error> {
        if self.services.viewer.get().is_none() {
            return Ok(Ok(drawn));
        }
        let verdict = match self.verdict(&drawn).await? {
            Ok(verdict) => verdict,
            Err(error) => return Ok(Err(error)),
        };
        let seen = Traits { is_sexual: verdict.is_sexual, has_minor: verdict.has_minor, ..Traits::default() };
        look.traits = look.traits.and(seen);
        let allowed = drawing.rules.check_from(&own_texts(drawing.row, look), look.traits.and(look.start_traits));
        Ok(allowed.map(|()| drawn).map_err(|refusal| {
            tracing::info!(picture = drawing.row.number, "a finished picture is refused for what it shows");
            ImageError::Refused(format!("what came out breaks a rule. {}", refusal.to_string().trim_end_matches('.')))
        }))
    }

    async fn verdict(&self, drawn: &DrawnImage) -> Result<Result<Verdict, ImageError>, Error> {
        let refused = |why: &str| Ok(Err(ImageError::Refused(why.to_owned())));
        let Some(viewer) = self.services.viewer.get() else { return refused("nothing here sees") };
        let (bytes, most) = (drawn.bytes.clone(), viewer.max_bytes());
        let png = match self.decode(bytes, move |bytes| to_look_at(&bytes, most)).await? {
            Ok(Some(png)) => png,
            Ok(None) => return refused("the picture is too large for me to look at before I show it"),
            Err(error) => return Ok(Err(ImageError::Protocol(format!("the server sent a bad picture: {error}")))),
        };
        match judged(viewer.as_ref(), &png).await {
            Ok(verdict) => Ok(Ok(verdict)),
            Err(error) => {
                tracing::warn!(%error, "a finished picture was not looked at");
                match error {
                    SeeError::Unavailable(_) => {
                        Ok(Err(ImageError::outage(Outage::Unseen, "the model that sees does not answer")))
                    }
                    SeeError::Unclear(_) => {
                        Ok(Err(ImageError::outage(Outage::Unjudged, "the model that sees gives no clear answer")))
                    }
                    SeeError::Unreadable(_) => refused("the model that sees cannot read the picture that came out"),
                    SeeError::Configuration(_) => refused(
                        "I must look at a picture before I show it, and the model that sees does not work as it should; the \
                         operator finds the reason in the log",
                    ),
                }
            }
        }
    }
}

/// Asks for a verdict about one picture until there is a clear one, as often as it may be asked. Another picture is not drawn
/// for that: drawing takes longer than looking, and what does not answer would be asked about that one, too. The error is
/// [`SeeError::Unavailable`] only if the model never answered.
async fn judged(viewer: &dyn Viewer, png: &[u8]) -> Result<Verdict, SeeError> {
    let (mut wait, mut unclear, mut unanswered) = (FIRST_WAIT, 0, 0);
    loop {
        let why = match viewer.judge(png.to_vec()).await {
            Err(SeeError::Unclear(why)) => {
                unclear += 1;
                why
            }
            Err(SeeError::Unavailable(why)) => {
                unanswered += 1;
                why
            }
            verdict => return verdict,
        };
        if unclear >= MAX_UNCLEAR || unanswered >= MAX_UNANSWERED {
            return Err(if unclear > 0 { SeeError::Unclear(why) } else { SeeError::Unavailable(why) });
        }
        tracing::info!(why, "a finished picture is looked at once more");
        tokio::time::sleep(wait).await;
        wait = wait.saturating_mul(2).min(LONGEST_WAIT);
    }
}

/// Returns a picture as a PNG file of at most `most` bytes; `None` if it has more even when it is small.
fn to_look_at(bytes: &[u8], most: u64) -> Result<Option<Vec<u8>>, PictureError> {
    let picture = Picture::read(bytes, &PictureLimits::default())?;
    let mut side = SIDE;
    loop {
        let png = picture.thumbnail(side).to_png(&[])?;
        if png.len() as u64 <= most {
            return Ok(Some(png));
        }
        if side <= MIN_SIDE {
            return Ok(None);
        }
        side /= 2;
    }
}
