//! Files as answers: whole or a part of them, and nothing where the client has them already (RFC 9110).

use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Response as HttpResponse, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::problem::Problem;

/// A file to send. The name has letters, digits, `-`, `_` and `.` only.
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) media_type: &'static str,
    pub(crate) name: String,
}

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Whole,
    /// From the first to the last byte, both included.
    Part(usize, usize),
    /// A part that does not exist.
    Nothing,
}

/// Returns the tag of what is made from these bytes in a way.
pub(crate) fn tag_of(way: &str, bytes: &[u8]) -> String {
    let digest = Sha256::new().chain_update(way).chain_update(bytes).finalize();
    format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest))
}

/// Answers that the client has the file already, if its request names the file's tag.
pub(crate) fn unchanged(request: &HeaderMap, tag: &str) -> Option<Response> {
    let known = request.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    known.filter(|known| names(known, tag)).map(|_| described(StatusCode::NOT_MODIFIED.into_response(), tag))
}

/// Answers with a file. Clients may keep it, but ask each time whether it is still there: it can be deleted.
pub(crate) fn answer(request: &HeaderMap, file: File) -> Response {
    let tag = tag_of("", &file.bytes);
    tagged(request, file, &tag)
}

/// Answers with a file in the same way, under this tag.
pub(crate) fn tagged(request: &HeaderMap, file: File, tag: &str) -> Response {
    if let Some(unchanged) = unchanged(request, tag) {
        return unchanged;
    }
    let text = |name: HeaderName| request.get(name).and_then(|value| value.to_str().ok());
    let length = file.bytes.len();
    let is_current = text(header::IF_RANGE).is_none_or(|known| known.trim() == tag);
    let wanted = text(header::RANGE).filter(|_| is_current).map_or(Wanted::Whole, |range| wanted(range, length));
    let mut response = match wanted {
        Wanted::Whole => whole(&file.bytes),
        Wanted::Part(first, last) => part(&file.bytes, first, last),
        Wanted::Nothing => {
            let detail = format!("The file has {length} bytes.");
            let mut refused = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "no_such_range", detail).into_response();
            set(&mut refused, header::CONTENT_RANGE, &format!("bytes */{length}"));
            return refused;
        }
    };
    set(&mut response, header::CONTENT_TYPE, file.media_type);
    set(&mut response, header::CONTENT_DISPOSITION, &format!("inline; filename=\"{}\"", file.name));
    described(response, tag)
}

/// Adds what every answer about a file says.
fn described(mut response: Response, tag: &str) -> Response {
    set(&mut response, header::ACCEPT_RANGES, "bytes");
    set(&mut response, header::CACHE_CONTROL, "private, no-cache");
    set(&mut response, header::ETAG, tag);
    response
}

fn whole(bytes: &[u8]) -> Response {
    HttpResponse::new(Body::from(bytes.to_vec()))
}

fn part(bytes: &[u8], first: usize, last: usize) -> Response {
    let piece = bytes.get(first..=last).unwrap_or_default();
    let mut response = whole(piece);
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    set(&mut response, header::CONTENT_RANGE, &format!("bytes {first}-{last}/{}", bytes.len()));
    response
}

fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Returns true if a list of tags names this one.
fn names(list: &str, tag: &str) -> bool {
    list.split(',').map(|one| one.trim().trim_start_matches("W/")).any(|one| one == "*" || one == tag)
}

/// Reads a `Range`. Units and lists that are not understood are ignored, as the standard asks.
fn wanted(range: &str, length: usize) -> Wanted {
    let Some((first, last)) = range.strip_prefix("bytes=").and_then(|range| range.trim().split_once('-')) else {
        return Wanted::Whole;
    };
    let end = length.saturating_sub(1);
    match (first.trim(), last.trim()) {
        ("", last) => match last.parse::<usize>() {
            Ok(0) => Wanted::Nothing,
            Ok(_) if length == 0 => Wanted::Nothing,
            Ok(count) => Wanted::Part(length.saturating_sub(count), end),
            Err(_) => Wanted::Whole,
        },
        (first, last) => {
            let last = if last.is_empty() { Ok(end) } else { last.parse::<usize>() };
            match (first.parse::<usize>(), last) {
                (Ok(first), Ok(last)) if last < first && first < length => Wanted::Whole,
                (Ok(first), Ok(last)) if first < length => Wanted::Part(first, last.min(end)),
                (Ok(_), Ok(_)) => Wanted::Nothing,
                _ => Wanted::Whole,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        for (range, want) in [
            ("bytes=0-3", Wanted::Part(0, 3)),
            ("bytes=4-", Wanted::Part(4, 9)),
            ("bytes=-3", Wanted::Part(7, 9)),
            ("bytes=-30", Wanted::Part(0, 9)),
            ("bytes=8-100", Wanted::Part(8, 9)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=5-2", Wanted::Whole),
            ("bytes=0-1,4-5", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=99999999999999999999999-", Wanted::Whole),
        ] {
            assert_eq!(wanted(range, 10), want, "{range}");
        }
        assert_eq!(wanted("bytes=0-", 0), Wanted::Nothing);
    }

    #[test]
    fn a_copy_that_is_current_is_not_sent_again() {
        let file = || File { bytes: b"0123456789".to_vec(), media_type: "image/png", name: "a.png".into() };
        let first = answer(&HeaderMap::new(), file());
        let tag = first.headers()[header::ETAG].clone();
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, tag.clone());
        assert_eq!(answer(&headers, file()).status(), StatusCode::NOT_MODIFIED);
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, HeaderValue::from_static("bytes=0-1"));
        headers.insert(header::IF_RANGE, HeaderValue::from_static("\"older\""));
        assert_eq!(answer(&headers, file()).status(), StatusCode::OK, "the part of another file is no use");
        headers.insert(header::IF_RANGE, tag);
        assert_eq!(answer(&headers, file()).status(), StatusCode::PARTIAL_CONTENT);
    }
}
