//! The picture that a drawing starts from, before it is drawn: read, made smaller, and looked at if nobody described it.

use azera_adapter::Platform;
use azera_memory::{Memory, PictureRow};
use azera_model_image::{ImageError, SeeError};
use azera_pictures::{PromptRules, Traits};

use super::naming::own_texts;
use super::start::{REFERENCE_SIDE, as_reference};
use super::{PictureLook, Pictures};
use crate::error::Error;

/// Why a drawing has no picture to start from.
pub(super) enum NoStart {
    /// It never will. The text is for the person.
    Refused(String),
    /// The model that sees does not answer now.
    Unseen,
}

impl NoStart {
    /// Returns the error of the drawing. On the last try, a picture that was not looked at is refused.
    pub(super) fn into_error(self, is_last_try: bool) -> ImageError {
        match self {
            Self::Refused(why) => ImageError::Refused(why),
            Self::Unseen if is_last_try => ImageError::Refused(
                "I must look at the picture that it starts from, and the model that sees does not answer".to_owned(),
            ),
            Self::Unseen => ImageError::unavailable("the model that sees does not answer"),
        }
    }
}

impl Pictures {
    /// Returns the picture to start from as PNG; `None` if it starts from nothing. A picture that nobody described is
    /// looked at, if something here is set up to see. The inner error says why there is none.
    pub(super) async fn start_bytes(
        &self,
        platform: &dyn Platform,
        row: &PictureRow,
        look: &mut PictureLook,
        rules: &PromptRules,
    ) -> Result<Result<Option<Vec<u8>>, NoStart>, Error> {
        if row.starts_from.is_none() && look.uploaded.is_none() {
            return Ok(Ok(None));
        }
        let Some(bytes) = self.reference(platform, row, look).await? else {
            return Ok(Err(NoStart::Refused("the picture that it starts from is gone".into())));
        };
        let most = if look.is_upscaled { u32::MAX } else { REFERENCE_SIDE };
        let png = match self.decode(bytes, move |bytes| as_reference(&bytes, most)).await? {
            Ok(png) => png,
            Err(error) => return Ok(Err(NoStart::Refused(format!("I cannot start from that picture: {error}")))),
        };
        if look.is_unseen && self.services.viewer.get().is_some() {
            let words = match self.seen_in(&png).await? {
                Ok(words) => words,
                Err(why) => return Ok(Err(why)),
            };
            if let Err(why) = check_seen(row, look, rules, &words) {
                return Ok(Err(NoStart::Refused(why)));
            }
        }
        Ok(Ok(Some(png)))
    }

    /// Returns the bytes of the picture to start from, if it may still be read there.
    async fn reference(
        &self,
        platform: &dyn Platform,
        row: &PictureRow,
        look: &PictureLook,
    ) -> Result<Option<Vec<u8>>, Error> {
        if let Some(id) = &look.uploaded {
            let uploaded = self.services.references.get(&row.person, id, self.services.clock.now());
            let message = row.message.clone();
            return match uploaded {
                None => {
                    self.services.blocking(move |memory| unless_damaged(memory.pictures().start_of(&message))).await
                }
                uploaded => Ok(uploaded),
            };
        }
        let Some(from) = row.starts_from.clone() else { return Ok(None) };
        let Some(place) = self.services.place(platform, &row.chat, &row.person).await? else { return Ok(None) };
        let read_scope = self.access.read_scope(platform, &place, &row.persona).await?;
        let found = move |memory: &Memory| unless_damaged(memory.pictures().file(&read_scope, &from));
        let found = self.services.blocking(found).await?;
        Ok(found.map(|(_, bytes)| bytes))
    }

    /// Returns the words of the model that sees for a picture. Without them nothing is drawn: a picture that nobody looked
    /// at may show a child.
    async fn seen_in(&self, png: &[u8]) -> Result<Result<String, NoStart>, Error> {
        let refused = |why: &str| Ok(Err(NoStart::Refused(why.to_owned())));
        let Some(viewer) = self.services.viewer.get() else { return Ok(Err(NoStart::Unseen)) };
        let mut file = png.to_vec();
        if file.len() as u64 > viewer.max_bytes() {
            let Ok(smaller) = self.decode(file, |file| as_reference(&file, REFERENCE_SIDE)).await? else {
                return refused("I cannot read the picture that it starts from");
            };
            file = smaller;
        }
        if file.len() as u64 > viewer.max_bytes() {
            return refused("the picture that it starts from is too large for me to look at");
        }
        match viewer.describe(file).await {
            Ok(words) => Ok(Ok(words)),
            Err(error) => {
                tracing::warn!(%error, "a picture to start from was not looked at");
                match error {
                    SeeError::Unreadable(_) => refused("I cannot read the picture that it starts from"),
                    SeeError::Unavailable(_) | SeeError::Unclear(_) => Ok(Err(NoStart::Unseen)),
                    SeeError::Configuration(_) => refused(
                        "I must look at the picture that it starts from, and the model that sees does not work as it should; \
                         the operator finds the reason in the log",
                    ),
                }
            }
        }
    }
}

/// Takes a damaged file for one that is gone: no later try reads it either.
fn unless_damaged<T>(found: Result<Option<T>, azera_memory::Error>) -> Result<Option<T>, azera_memory::Error> {
    match found {
        Err(error @ azera_memory::Error::Damaged { .. }) => {
            tracing::warn!(%error, "a picture to start from is damaged");
            Ok(None)
        }
        found => found,
    }
}

/// Checks a picture once more, with what was seen in the one that it starts from, and notes that in its look. The error
/// names the rule that refuses it.
fn check_seen(row: &PictureRow, look: &mut PictureLook, rules: &PromptRules, words: &str) -> Result<(), String> {
    let seen = Traits::of(&[words]);
    look.is_unseen = false;
    (look.traits, look.start_traits) = (look.traits.and(seen), look.start_traits.and(seen));
    let texts: Vec<&str> = own_texts(row, look).into_iter().chain([words]).collect();
    rules.check_from(&texts, look.traits.and(look.start_traits)).map_err(|refusal| {
        tracing::info!(chat = %row.chat, "a picture is refused for what it starts from");
        refusal.to_string().trim_end_matches('.').to_owned()
    })
}
