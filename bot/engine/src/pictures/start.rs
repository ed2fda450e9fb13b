//! Pictures that drawings start from: one that was drawn or shown in a message, or one that came with the request. The
//! bytes of a message are read through the message, once when a picture is asked for and again when it is drawn.

use std::collections::HashSet;

use azera_adapter::GivenPicture;
use azera_memory::{MessageRow, PictureRow, ReadScope, SourceScope};
use azera_model_image::{Picture, PictureError, PictureLimits};
use azera_pictures::Traits;
use azera_types::{MessageId, Part, PartKind, PersonId, Scope, Timestamp};

use super::naming::{said_about, traits};
use super::{NO_BACKEND, PictureLook, Pictures};
use crate::error::Error;

/// The longest side of a picture to start from, in pixels. Larger ones are made smaller: no server draws larger pictures.
pub(super) const REFERENCE_SIDE: u32 = 1_536;

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
    /// Here, as PNG. They came with the request, and are kept once it is accepted.
    Given(Vec<u8>),
}

/// A picture that a drawing starts from.
pub(crate) struct Start {
    pub(crate) bytes: StartBytes,
    /// Width and height in pixels.
    pub(crate) size: (u32, u32),
    /// The size of its file in bytes; 0 if that does not matter.
    pub(crate) file_bytes: u64,
    /// What is said about it: the words that it was drawn from, or those of the message that shows it.
    pub(crate) words: Vec<String>,
    /// What it names, by these words and by those about what it started from itself.
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
            // It is kept, and has an id, before there is a row.
            StartBytes::Given(_) => {}
        }
    }
}

/// A message with a picture, its row if it was drawn, and the kept file with its size.
type Shown = (MessageRow, Option<PictureRow>, Option<(Part, Result<(u32, u32), PictureError>)>);

impl Pictures {
    /// Returns the picture in a message as a start; `None` if no message that may be read here has one. The inner error
    /// says why a picture cannot be one.
    pub(crate) async fn start_of_message(
        &self,
        read_scope: &ReadScope,
        message: MessageId,
    ) -> Result<Result<Option<Start>, String>, Error> {
        let mut found = self.shown_picture(read_scope, &message).await?;
        // Somebody may want a picture that was sent just now.
        if matches!(found, Some((_, _, None))) {
            self.files.arrived(&message).await;
            found = self.shown_picture(read_scope, &message).await?;
        }
        let (shown, row, (part, size)) = match found {
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
                file_bytes: part.bytes,
                words: [Some(&row.prompt), row.name.as_ref()]
                    .into_iter()
                    .flatten()
                    .map(|text| text.as_str().to_owned())
                    .collect(),
                traits: traits(&row),
                // It may show what nobody saw in the picture that it started from itself.
                is_unseen: serde_json::from_value::<PictureLook>(row.settings).is_ok_and(|look| look.is_unseen),
            },
            None => {
                let words = said_about(&shown, &part);
                Start {
                    bytes: StartBytes::Message(Basis::shown(&shown)),
                    size,
                    file_bytes: part.bytes,
                    traits: Traits::of(&words.iter().map(String::as_str).collect::<Vec<_>>()),
                    words,
                    is_unseen: !part.is_seen,
                }
            }
        })))
    }

    /// Returns a message with a picture that may be read here, its row if it was drawn, and its file if that is kept.
    async fn shown_picture(&self, read_scope: &ReadScope, message: &MessageId) -> Result<Option<Shown>, Error> {
        let (read_scope, message) = (read_scope.clone(), message.clone());
        let found = self.services.blocking(move |memory| {
            let Some(shown) = memory.messages().get(&read_scope, &message)? else { return Ok(None) };
            if !shown.parts.iter().any(|part| part.kind == PartKind::Image) {
                return Ok(None);
            }
            let file = memory.pictures().file(&read_scope, &message)?;
            let row = memory.pictures().get(&read_scope, &message)?;
            Ok(Some((
                shown,
                row,
                file.map(|(part, bytes)| (part, Picture::size_of(&bytes, &PictureLimits::of_photos()))),
            )))
        });
        found.await
    }

    /// Keeps a picture that a person uploaded for later requests. Returns its id; the inner error says why it is not used.
    pub(crate) async fn keep_upload(&self, person: &PersonId, file: Vec<u8>) -> Result<Result<String, String>, Error> {
        if self.settings().is_none() {
            return Ok(Err(NO_BACKEND.to_owned()));
        }
        match self.written_anew(file).await? {
            Ok((png, _)) => Ok(self.keep(person, png).await?.map_err(str::to_owned)),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Returns a picture that came with a command as a start. Ask for [`Pictures::obstacle`] first, because decoding it
    /// takes time.
    pub(crate) async fn start_of_upload(&self, given: &GivenPicture) -> Result<Result<Start, String>, Error> {
        let description = given.description.clone().unwrap_or_default();
        let start = |(png, size)| Start {
            bytes: StartBytes::Given(png),
            size,
            file_bytes: 0,
            traits: Traits::of(&[description.as_str()]),
            words: vec![description.as_str().to_owned()],
            is_unseen: true,
        };
        let written = self.written_anew(given.content.0.clone()).await?;
        Ok(written.map(start).map_err(|error| format!("I cannot start from that picture: {error}.")))
    }

    /// Decodes a picture within limits, and returns it as PNG with its size.
    async fn written_anew(&self, file: Vec<u8>) -> Result<Result<(Vec<u8>, (u32, u32)), PictureError>, Error> {
        self.decode(file, |file| {
            let picture = Picture::read(&file, &PictureLimits::of_photos())?.thumbnail(REFERENCE_SIDE);
            Ok((picture.to_png(&[])?, (picture.width(), picture.height())))
        })
        .await
    }

    /// Keeps a picture for its person alone. Returns its id; the inner error says why it is not kept.
    pub(super) async fn keep(&self, person: &PersonId, png: Vec<u8>) -> Result<Result<String, &'static str>, Error> {
        let waiting = self.services.blocking(|memory| memory.pictures().waiting()).await?;
        // A request that keeps a copy of its own needs none here.
        let waiting = waiting.into_iter().filter(|row| row.start.is_none());
        let needed = |row: PictureRow| serde_json::from_value::<PictureLook>(row.settings).ok()?.uploaded;
        let needed: HashSet<String> = waiting.filter_map(needed).collect();
        Ok(self.services.references.keep(person, png, self.services.clock.now(), &needed))
    }

    /// Does work that decodes a picture file, within the bound on all such work.
    pub(crate) async fn decode<T: Send + 'static>(
        &self,
        file: Vec<u8>,
        work: impl FnOnce(Vec<u8>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        azera_model_image::decode(file, work).await.ok_or(Error::Interrupted)
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
        let size = Picture::size_of(&png, &PictureLimits::of_photos()).ok()?;
        let bytes = StartBytes::Uploaded(id.to_owned());
        Some(Start { bytes, size, file_bytes: 0, words: Vec::new(), traits: Traits::default(), is_unseen: true })
    }
}

/// Returns a picture to start from as the servers take it, with sides of at most `side` pixels.
pub(super) fn as_reference(bytes: &[u8], side: u32) -> Result<Vec<u8>, PictureError> {
    Picture::read(bytes, &PictureLimits::of_photos())?.thumbnail(side).to_png(&[])
}
