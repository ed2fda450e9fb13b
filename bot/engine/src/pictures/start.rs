//! Pictures that drawings start from: one that was drawn or shown in a message, or one that came with the request. The
//! bytes of a message are read through the message, once when a picture is asked for and again when it is drawn.

use azera_adapter::GivenPicture;
use azera_memory::{MessageRow, PictureRow, ReadScope, SourceScope};
use azera_model_image::{Picture, PictureError, PictureLimits, SeeError};
use azera_pictures::{PromptRules, Traits};
use azera_types::{MessageId, Part, PartKind, PersonId, Scope, Timestamp};

use super::{PictureLook, Pictures};
use crate::error::Error;

/// The longest side of a picture to start from, in pixels. Larger ones are made smaller: no server draws larger pictures.
pub(super) const REFERENCE_SIDE: u32 = 1_536;

/// The limits of pictures to start from. Decoding takes at most some 350 MB.
const PHOTO: PictureLimits = PictureLimits { max_bytes: 20 << 20, max_side: 8_192, max_pixels: 24_000_000 };

/// The message that a picture is built on, as far as the law of reading asks.
#[derive(Clone)]
pub(crate) struct Basis {
    pub(crate) message: MessageId,
    scope: Scope,
    source_scopes: Vec<SourceScope>,
    from: Timestamp,
}

impl Basis {
    /// Returns a drawn picture as a basis.
    pub(crate) fn drawn(row: &PictureRow) -> Self {
        let (scope, source_scopes) = (row.scope.clone(), row.source_scopes.clone());
        Self { message: row.message.clone(), scope, source_scopes, from: row.from }
    }

    fn shown(message: &MessageRow) -> Self {
        let (scope, source_scopes) = (message.scope.clone(), message.source_scopes.clone());
        Self { message: message.id.clone(), scope, source_scopes, from: message.at }
    }

    /// Notes in a row that it is built on this message.
    pub(super) fn under(self, row: &mut PictureRow) {
        if row.sources.contains(&self.message) {
            return;
        }
        row.sources.push(self.message);
        row.source_scopes.extend(self.source_scopes);
        if self.scope == row.scope {
            row.from = row.from.min(self.from);
        } else {
            row.source_scopes.push(SourceScope { scope: self.scope, from: self.from });
        }
    }
}

/// Where the bytes of a picture to start from are.
pub(crate) enum StartBytes {
    /// In a message.
    Message(Basis),
    /// Among what the person uploaded, under this id.
    Uploaded(String),
}

/// A picture that a drawing starts from.
pub(crate) struct Start {
    pub(crate) bytes: StartBytes,
    /// Width and height in pixels.
    pub(crate) size: (u32, u32),
    /// The words that its own picture was drawn from; empty for pictures of people.
    pub(crate) prompt: String,
    /// What is said about it.
    pub(crate) traits: Traits,
    /// True if nobody has described what it shows.
    pub(crate) is_unseen: bool,
}

impl Start {
    /// Notes in a row and its look that they start from this picture.
    pub(super) fn under(self, row: &mut PictureRow, look: &mut PictureLook) {
        (look.start_traits, look.is_unseen) = (self.traits, self.is_unseen);
        match self.bytes {
            StartBytes::Message(basis) => {
                row.starts_from = Some(basis.message.clone());
                basis.under(row);
            }
            StartBytes::Uploaded(id) => look.uploaded = Some(id),
        }
    }
}

impl Pictures {
    /// Returns the picture in a message as a start; `None` if no message that may be read here has one. The inner error
    /// says why a picture cannot be one.
    pub(crate) async fn start_of_message(
        &self,
        read_scope: &ReadScope,
        message: MessageId,
    ) -> Result<Result<Option<Start>, String>, Error> {
        let read_scope = read_scope.clone();
        let found = self.services.blocking(move |memory| {
            let Some(shown) = memory.messages().get(&read_scope, &message)? else { return Ok(None) };
            if !shown.parts.iter().any(|part| part.kind == PartKind::Image) {
                return Ok(None);
            }
            let file = memory.pictures().file(&read_scope, &message)?;
            let row = memory.pictures().get(&read_scope, &message)?;
            Ok(Some((shown, row, file.map(|(part, bytes)| (part, Picture::size_of(&bytes, &PHOTO))))))
        });
        let (shown, row, (part, size)) = match found.await? {
            None => return Ok(Ok(None)),
            Some((_, _, None)) => return Ok(Err("That picture is not kept.".to_owned())),
            Some((shown, row, Some(file))) => (shown, row, file),
        };
        let size = match size {
            Ok(size) => size,
            Err(error) => return Ok(Err(format!("I cannot start from that picture: {error}."))),
        };
        Ok(Ok(Some(match row {
            Some(row) => Start {
                bytes: StartBytes::Message(Basis::drawn(&row)),
                size,
                prompt: row.prompt.as_str().to_owned(),
                traits: traits(&row),
                is_unseen: false,
            },
            None => Start {
                bytes: StartBytes::Message(Basis::shown(&shown)),
                size,
                prompt: String::new(),
                traits: said_about(&shown, &part),
                is_unseen: !part.is_seen,
            },
        })))
    }

    /// Keeps a picture that came with a request for its person alone, decoded within limits and written anew. Returns its
    /// id and its size; the inner error says why it is not used.
    pub(crate) async fn keep_upload(
        &self,
        person: &PersonId,
        file: Vec<u8>,
    ) -> Result<Result<(String, (u32, u32)), String>, Error> {
        let work = move || {
            let picture = Picture::read(&file, &PHOTO)?.thumbnail(REFERENCE_SIDE);
            Ok((picture.to_png(&[])?, (picture.width(), picture.height())))
        };
        let read: Result<_, PictureError> = tokio::task::spawn_blocking(work).await.map_err(|_| Error::Interrupted)?;
        Ok(match read {
            Ok((png, size)) => {
                let kept = self.services.references.keep(person, png, self.services.clock.now());
                kept.map(|id| (id, size)).ok_or_else(|| "the system gives no random bytes".to_owned())
            }
            Err(error) => Err(error.to_string()),
        })
    }

    /// Keeps a picture that came with a command, as [`Pictures::keep_upload`] does, and returns it as a start.
    pub(crate) async fn start_of_upload(
        &self,
        person: &PersonId,
        given: &GivenPicture,
    ) -> Result<Result<Start, String>, Error> {
        let description = given.description.as_deref().unwrap_or_default();
        let kept = self.keep_upload(person, given.content.0.clone()).await?;
        let start = |(id, size)| Start {
            bytes: StartBytes::Uploaded(id),
            size,
            prompt: String::new(),
            traits: Traits::of(&[description]),
            is_unseen: true,
        };
        Ok(kept.map(start).map_err(|why| format!("I cannot start from that picture: {why}.")))
    }

    /// Returns what a picture started from itself, to start from it once more; `None` if it started from nothing. The
    /// inner error says why that is no longer possible.
    pub(crate) async fn start_once_more(
        &self,
        read_scope: &ReadScope,
        person: &PersonId,
        row: &PictureRow,
        look: &PictureLook,
    ) -> Result<Result<Option<Start>, String>, Error> {
        let gone = || {
            format!(
                "The picture that it started from is not kept any more. `/picture vary {}` starts from the picture itself.",
                row.number
            )
        };
        let inherited = |start: Start| Start { traits: start.traits.and(look.start_traits), ..start };
        Ok(match (&row.starts_from, &look.uploaded) {
            (Some(message), _) => {
                let start = self.start_of_message(read_scope, message.clone()).await?;
                start.ok().flatten().map(|start| Some(inherited(start))).ok_or_else(gone)
            }
            (None, Some(id)) => {
                let start = self.uploaded_start(person, id);
                start.map(|start| Some(inherited(start))).ok_or_else(gone)
            }
            (None, None) => Ok(None),
        })
    }

    /// Returns a picture that this person uploaded as a start, while it is kept.
    pub(crate) fn uploaded_start(&self, person: &PersonId, id: &str) -> Option<Start> {
        let png = self.services.references.get(person, id, self.services.clock.now())?;
        let size = Picture::size_of(&png, &PHOTO).ok()?;
        let bytes = StartBytes::Uploaded(id.to_owned());
        Some(Start { bytes, size, prompt: String::new(), traits: Traits::default(), is_unseen: true })
    }

    /// Returns what a picture to start from names, by the words of the model that sees; nothing without one.
    pub(super) async fn seen_in(&self, png: &[u8]) -> Traits {
        let Some(viewer) = self.services.viewer.get().filter(|viewer| png.len() as u64 <= viewer.max_bytes()) else {
            return Traits::default();
        };
        match viewer.describe(png.to_vec()).await {
            Ok(words) => Traits::of(&[&words]),
            Err(error) => {
                let is_wrong = matches!(error, SeeError::Configuration(_));
                tracing::warn!(%error, is_wrong, "a picture to start from was not looked at");
                Traits::default()
            }
        }
    }
}

/// Returns a picture to start from as the servers take it, with sides of at most `side` pixels.
pub(super) fn as_reference(bytes: &[u8], side: u32) -> Result<Vec<u8>, PictureError> {
    Picture::read(bytes, &PHOTO)?.thumbnail(side).to_png(&[])
}

/// Returns what a drawn picture names: its own words, and what it started from.
pub(crate) fn traits(row: &PictureRow) -> Traits {
    let look = serde_json::from_value::<PictureLook>(row.settings.clone()).ok();
    let style = look.as_ref().and_then(|look| look.style.as_deref()).unwrap_or_default();
    let own = Traits::of(&[row.prompt.as_str(), row.name.as_deref().unwrap_or_default(), style]);
    own.and(look.map(|look| look.start_traits).unwrap_or_default())
}

/// Returns true if the rules of a place allow a picture to be drawn and shown there: one for adults is shown only where
/// such pictures may be drawn.
pub(crate) fn is_suitable(rules: &PromptRules, row: &PictureRow) -> bool {
    rules.check_from(&[row.prompt.as_str(), row.name.as_deref().unwrap_or_default()], traits(row)).is_ok()
}

/// Returns what the sender of a picture, and the model that saw it, say about it.
fn said_about(message: &MessageRow, part: &Part) -> Traits {
    Traits::of(&[message.text.as_str(), part.alt.as_deref().unwrap_or_default(), &part.name])
}
