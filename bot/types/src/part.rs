use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{IdError, Text};

/// Most parts of one message; adapters leave out others.
pub const MAX_PARTS: usize = 16;

/// The longest name of a part, in characters.
pub const MAX_PART_NAME_CHARS: usize = 128;

/// The longest media type, in bytes.
const MAX_MIME_BYTES: usize = 127;

/// The media type of bytes about which nothing is known.
const UNKNOWN_MIME: &str = "application/octet-stream";

/// Number of digits of a [`BlobId`].
const BLOB_ID_DIGITS: usize = 64;

/// The SHA-256 of some bytes, in lower-case hexadecimal. It names the bytes; it gives nobody a right to them.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BlobId(Arc<str>);

impl BlobId {
    /// Creates an id from its 64 lower-case hexadecimal digits.
    pub fn new(digits: impl AsRef<str>) -> Result<Self, IdError> {
        let digits = digits.as_ref();
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match digits.len() == BLOB_ID_DIGITS && digits.bytes().all(is_digit) {
            true => Ok(Self(digits.into())),
            false => Err(IdError::NotABlob),
        }
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobId({})", &self.0)
    }
}

impl FromStr for BlobId {
    type Err = IdError;

    fn from_str(digits: &str) -> Result<Self, IdError> {
        Self::new(digits)
    }
}

impl TryFrom<String> for BlobId {
    type Error = IdError;

    fn try_from(digits: String) -> Result<Self, IdError> {
        Self::new(digits)
    }
}

impl From<BlobId> for String {
    fn from(id: BlobId) -> Self {
        id.as_str().to_owned()
    }
}

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// A picture.
    Image,
    /// A recording, such as a voice message.
    Audio,
    /// Any other file, text files included.
    File,
}

/// What is known about a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Recording {
    /// Somebody spoke it into their client, in the place of a text.
    pub is_voice_message: bool,
    /// Its length in milliseconds, as the platform says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Its words stand in the text of its message, or it has none.
    pub is_heard: bool,
}

/// What a message carries besides its text: a picture, a recording or a file. `Debug` shows neither name nor
/// description.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The kind.
    pub kind: PartKind,
    /// The media type, such as `text/plain`, without parameters.
    pub mime: String,
    /// The size in bytes: of the stored bytes, or else as the platform says.
    pub bytes: u64,
    /// The stored bytes; `None` if they were not kept.
    #[serde(rename = "sha256", default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<BlobId>,
    /// The file's name, without folders.
    pub name: String,
    /// A description in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt: Option<Text>,
    /// What is known about a recording; `None` for other parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,
    /// What a picture shows stands in the text of its message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_seen: bool,
}

impl Part {
    /// Creates a part without stored bytes. Removes from the name what could lead to another folder, and control
    /// characters.
    pub fn new(name: &str, mime: Option<&str>, bytes: u64) -> Self {
        let mime = mime.and_then(essence).unwrap_or_else(|| UNKNOWN_MIME.to_owned());
        let kind = match mime.split('/').next() {
            Some("image") => PartKind::Image,
            Some("audio") => PartKind::Audio,
            _ => PartKind::File,
        };
        let recording = (kind == PartKind::Audio).then(Recording::default);
        Self { kind, mime, bytes, blob: None, name: plain_name(name), alt: None, recording, is_seen: false }
    }

    /// Marks a part as a voice message of this length in milliseconds.
    pub fn spoken(self, duration_ms: Option<u64>) -> Self {
        let recording = Recording { is_voice_message: true, duration_ms, is_heard: false };
        Self { kind: PartKind::Audio, recording: Some(recording), ..self }
    }

    /// Returns true if it is a voice message.
    pub fn is_voice_message(&self) -> bool {
        self.recording.is_some_and(|recording| recording.is_voice_message)
    }

    /// Adds a description, unless it is empty.
    pub fn described(self, alt: Option<&str>) -> Self {
        Self { alt: alt.map(str::trim).filter(|alt| !alt.is_empty()).map(Text::new), ..self }
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("kind", &self.kind).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Returns a media type without parameters, in lower case; `None` if it is malformed.
fn essence(mime: &str) -> Option<String> {
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_token = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    let (kind, subtype) = mime.split_once('/')?;
    (mime.len() <= MAX_MIME_BYTES && is_token(kind) && is_token(subtype)).then_some(mime)
}

/// Returns the last component of a name, without leading dots and control characters.
fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().filter(|c| !c.is_control()).collect();
    let plain: String = plain.trim().trim_start_matches('.').chars().take(MAX_PART_NAME_CHARS).collect();
    if plain.is_empty() { "file".to_owned() } else { plain }
}

/// An error of [`PartSource::fetch`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FetchError {
    /// There are more bytes than the caller wants.
    #[error("it is too large")]
    TooLarge,
    /// The bytes cannot be had.
    #[error("it could not be fetched: {0}")]
    Failed(String),
}

/// Bytes on their way.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, FetchError>> + Send + 'a>>;

/// Where the bytes of a part come from. An adapter downloads them only when it is asked here.
pub trait PartSource: Send + Sync {
    /// Returns all bytes, if there are at most `limit`.
    fn fetch(&self, limit: u64) -> Fetching<'_>;
}

/// Bytes that are already there.
impl PartSource for Vec<u8> {
    fn fetch(&self, limit: u64) -> Fetching<'_> {
        let fits = self.len() as u64 <= limit;
        Box::pin(std::future::ready(if fits { Ok(self.clone()) } else { Err(FetchError::TooLarge) }))
    }
}

/// A part of a message as an adapter hands it in.
#[derive(Clone)]
pub struct InboundPart {
    /// The part, without stored bytes.
    pub part: Part,
    /// Where its bytes come from.
    pub source: Arc<dyn PartSource>,
}

/// Two are equal if they describe the same part. Sources cannot be compared.
impl PartialEq for InboundPart {
    fn eq(&self, other: &Self) -> bool {
        self.part == other.part
    }
}

impl Eq for InboundPart {}

impl fmt::Debug for InboundPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.part.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_to_another_folder() {
        #[track_caller]
        fn check(name: &str, want: &str) {
            assert_eq!(Part::new(name, None, 0).name, want, "{name:?}");
        }
        check("notes.txt", "notes.txt");
        check("../../etc/passwd", "passwd");
        check("C:\\temp\\x.txt", "x.txt");
        check("..", "file");
        check("/", "file");
        check(".bashrc", "bashrc");
        check("a\0b\n.txt", "ab.txt");
        check(&"é".repeat(500), &"é".repeat(MAX_PART_NAME_CHARS));
    }

    #[test]
    fn a_media_type_decides_the_kind() {
        #[track_caller]
        fn check(mime: Option<&str>, kind: PartKind, want: &str) {
            let part = Part::new("x", mime, 0);
            assert_eq!((part.kind, part.mime.as_str()), (kind, want), "{mime:?}");
        }
        check(Some("Text/Plain; charset=utf-8"), PartKind::File, "text/plain");
        check(Some("image/png"), PartKind::Image, "image/png");
        check(Some("audio/ogg"), PartKind::Audio, "audio/ogg");
        check(None, PartKind::File, UNKNOWN_MIME);
        check(Some("image"), PartKind::File, UNKNOWN_MIME);
        check(Some("image/../x"), PartKind::File, UNKNOWN_MIME);
        check(Some("a/\"\r\nX: y"), PartKind::File, UNKNOWN_MIME);
    }

    #[test]
    fn a_blob_id_is_a_digest_and_nothing_else() {
        assert!(BlobId::new("0123456789abcdef".repeat(4)).is_ok());
        for text in ["", "../../etc/passwd", &"0".repeat(63), &"A".repeat(64), &"g".repeat(64)] {
            assert_eq!(BlobId::new(text), Err(IdError::NotABlob), "{text:?}");
        }
    }

    #[test]
    fn debug_shows_neither_name_nor_description() {
        let part = Part::new("secret.txt", None, 3).described(Some("a secret"));
        assert!(!format!("{part:?}").contains("secret"));
    }
}
