//! Pictures that people show in a message: `data:` URLs in a body of JSON. They become parts of the message, as on the other
//! platforms. So they are looked at, kept without EXIF and forgotten like those.

use std::sync::Arc;

use azera_adapter::{FileContent, GivenPicture};
use azera_types::{InboundPart, Part};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::problem::Problem;

/// The most pictures of a message. The engine looks at no more.
const MAX_PICTURES: usize = 4;

/// The largest picture, and the most bytes of all of a message.
const MAX_PICTURE_BYTES: usize = 8 << 20;
const MAX_BYTES: usize = 16 << 20;

/// The largest body with pictures in base64, with room for the rest of it.
pub(crate) const MAX_BODY_BYTES: usize = MAX_BYTES / 3 * 4 + (2 << 20);

/// A picture that somebody shows.
pub(crate) struct Shown {
    media_type: &'static str,
    extension: &'static str,
    bytes: Vec<u8>,
}

impl Shown {
    /// Returns the picture as a part of a message.
    pub(crate) fn into_part(self) -> InboundPart {
        let size = u64::try_from(self.bytes.len()).unwrap_or(u64::MAX);
        let part = Part::new(&format!("picture.{}", self.extension), Some(self.media_type), size);
        InboundPart { part, source: Arc::new(self.bytes) }
    }

    /// Returns the picture as one that a command takes.
    pub(crate) fn into_given(self) -> GivenPicture {
        GivenPicture { description: None, content: FileContent(self.bytes) }
    }
}

/// Returns the media type and the usual extension of a picture, by its first bytes: what somebody calls it counts for
/// nothing.
fn kind_of(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some(("image/png", "png")),
        [0xff, 0xd8, 0xff, ..] => Some(("image/jpeg", "jpg")),
        [b'G', b'I', b'F', b'8', ..] => Some(("image/gif", "gif")),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(("image/webp", "webp")),
        _ => None,
    }
}

/// Returns the pictures of `data:` URLs. `field` names them in errors. Other addresses are refused: Azera fetches none.
pub(crate) fn pictures<'a>(field: &str, urls: impl IntoIterator<Item = &'a str>) -> Result<Vec<Shown>, Problem> {
    let (mut pictures, mut total) = (Vec::new(), 0);
    for url in urls {
        if pictures.len() == MAX_PICTURES {
            return Err(Problem::invalid(format!("A message shows at most {MAX_PICTURES} pictures (`{field}`).")));
        }
        let wrong = |what: &str| Problem::invalid(format!("`{field}` {what}."));
        let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let Some((_, data)) = data else {
            return Err(wrong("takes pictures as `data:` URLs in base64; Azera fetches nothing from addresses"));
        };
        let bytes = STANDARD.decode(data.trim()).map_err(|_| wrong("holds a picture whose base64 is broken"))?;
        total += bytes.len();
        if bytes.len() > MAX_PICTURE_BYTES || total > MAX_BYTES {
            let detail = format!(
                "A picture has at most {} MB, and all of a message have {} MB (`{field}`).",
                MAX_PICTURE_BYTES >> 20,
                MAX_BYTES >> 20
            );
            return Err(Problem::new(axum::http::StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail));
        }
        let (media_type, extension) =
            kind_of(&bytes).ok_or_else(|| wrong("holds something that is no PNG, JPEG, WebP or GIF"))?;
        pictures.push(Shown { media_type, extension, bytes });
    }
    Ok(pictures)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(bytes: &[u8]) -> String {
        format!("data:text/html;base64,{}", STANDARD.encode(bytes))
    }

    #[test]
    fn a_picture_is_what_its_bytes_say() {
        for (bytes, name, mime) in [
            (b"\x89PNG\r\n".as_slice(), "picture.png", "image/png"),
            (b"\xff\xd8\xff\xe0", "picture.jpg", "image/jpeg"),
            (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "picture.webp", "image/webp"),
            (b"GIF89a", "picture.gif", "image/gif"),
        ] {
            let part = pictures("pictures", [url(bytes).as_str()]).unwrap().remove(0).into_part().part;
            assert_eq!((part.name.as_str(), part.mime.as_str(), part.bytes), (name, mime, bytes.len() as u64));
        }
    }

    #[test]
    fn what_is_no_picture_is_refused_in_words() {
        for (url, part) in [
            ("https://example.org/cat.png".to_owned(), "fetches nothing"),
            ("file:///etc/passwd".to_owned(), "fetches nothing"),
            ("data:,".to_owned(), "fetches nothing"),
            ("data:image/png;base64,%%%".to_owned(), "base64 is broken"),
            (url(b"<svg onload=alert(1)>"), "no PNG"),
            (url(b""), "no PNG"),
            (url(&[b"\x89PNG".as_slice(), &vec![0; MAX_PICTURE_BYTES]].concat()), "at most 8 MB"),
        ] {
            let error = pictures("image_url", [url.as_str()]).err().unwrap();
            assert!(error.detail.contains(part) && error.detail.contains("image_url"), "{}", error.detail);
        }
        let small = url(b"\x89PNG");
        assert!(pictures("pictures", [small.as_str(); 5]).is_err());
        assert_eq!(pictures("pictures", [small.as_str(); 4]).unwrap().len(), 4);
        let half = url(&[b"\x89PNG".as_slice(), &vec![0; MAX_PICTURE_BYTES - 4]].concat());
        assert_eq!(pictures("pictures", [half.as_str(), half.as_str()]).unwrap().len(), 2);
        assert!(pictures("pictures", [half.as_str(), half.as_str(), small.as_str()]).is_err());
    }
}
