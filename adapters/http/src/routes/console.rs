//! The console: the files that `build.rs` embeds, if the console was built before.

use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};

use crate::endpoint::{Endpoint, Need, Parted};
use crate::problem::Problem;

/// A file of the console.
struct File {
    /// Its path in the built console.
    name: &'static str,
    media_type: &'static str,
    content: &'static [u8],
    /// The content as gzip, if that is smaller.
    compressed: Option<&'static [u8]>,
}

/// The first page.
const INDEX: &str = "index.html";

/// The folder of all other files.
const ASSETS: &str = "assets/";

/// Stands before the hash of the content in a file's name. Such a file never changes.
const HASHED: char = '-';

/// How long a file that never changes is kept.
const FOR_GOOD: &str = "public, max-age=31536000, immutable";

const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/console.rs"));

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoint = Endpoint::new(Method::GET, "/assets/{file}", Need::Public, "A file of the console", asset);
    vec![endpoint.sends("application/octet-stream", "The file, with its own media type.")]
}

/// Answers with the console's first page. `None` if the console was not built.
pub(super) fn index(headers: &HeaderMap) -> Option<Response> {
    found(FILES, INDEX).map(|file| file.answer(headers, "no-cache"))
}

async fn asset(headers: HeaderMap, Parted(name): Parted<String>) -> Result<Response, Problem> {
    let file = found(FILES, &format!("{ASSETS}{name}")).ok_or_else(|| Problem::not_found("file"))?;
    Ok(file.answer(&headers, if name.contains(HASHED) { FOR_GOOD } else { "no-cache" }))
}

fn found(files: &'static [File], name: &str) -> Option<&'static File> {
    files.iter().find(|file| file.name == name)
}

impl File {
    fn answer(&'static self, headers: &HeaderMap, cache: &'static str) -> Response {
        let compressed = self.compressed.filter(|_| takes_gzip(headers));
        let mut response = compressed.unwrap_or(self.content).into_response();
        let answered = response.headers_mut();
        answered.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        answered.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
        answered.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if compressed.is_some() {
            answered.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

/// Returns true if a client takes gzip. A quality of zero refuses it.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let quality = quality.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f32>);
        name.trim().eq_ignore_ascii_case("gzip") && quality.is_ok_and(|quality| quality > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    const MADE: &[File] = &[
        File { name: "assets/a.js", media_type: "text/javascript", content: b"long", compressed: Some(b"l") },
        File { name: "index.html", media_type: "text/html", content: b"page", compressed: None },
    ];

    async fn answered(name: &str, accepts: &'static str) -> (Option<HeaderValue>, Vec<u8>) {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accepts));
        let response = found(MADE, name).unwrap().answer(&headers, "no-cache");
        let coding = response.headers().get(header::CONTENT_ENCODING).cloned();
        (coding, to_bytes(response.into_body(), 100).await.unwrap().to_vec())
    }

    #[tokio::test]
    async fn a_compressed_copy_goes_to_those_who_take_it() {
        let gzip = Some(HeaderValue::from_static("gzip"));
        for accepts in ["gzip", "deflate, gzip;q=0.5, br", "br, GZIP"] {
            assert_eq!(answered("assets/a.js", accepts).await, (gzip.clone(), b"l".to_vec()), "{accepts}");
        }
        for accepts in ["", "br", "gzip;q=0", "gzip;q=x", "xgzip"] {
            assert_eq!(answered("assets/a.js", accepts).await, (None, b"long".to_vec()), "{accepts}");
        }
        assert_eq!(answered("index.html", "gzip").await, (None, b"page".to_vec()));
    }

    #[test]
    fn only_embedded_files_are_found() {
        for name in ["assets/b.js", "assets/../index.html", "", "a.js"] {
            assert!(found(MADE, name).is_none(), "{name}");
        }
    }
}
