//! SHA-256 of files.

use std::{fmt::Write as _, path::Path};

use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;

use crate::{
    error::{Error, IoContext},
    progress::{Progress, Step},
};

/// The bytes to hash between two yields to other tasks: about a millisecond of work.
const CHUNK_BYTES: usize = 1 << 20;

/// Returns the SHA-256 of the file at `path` in lower-case hexadecimal, and its length in bytes.
pub(crate) async fn sha256_of(path: &Path, progress: Progress<'_>) -> Result<(String, u64), Error> {
    let mut file = tokio::fs::File::open(path).await.at(path)?;
    let total = file.metadata().await.at(path)?.len();
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut done = 0;
    loop {
        progress(Step::Verifying { done, total });
        let read = file.read(&mut chunk).await.at(path)?;
        if read == 0 {
            return Ok((hexadecimal(&hash.finalize()), done));
        }
        hash.update(&chunk[..read]);
        done += read as u64;
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

/// Returns an error if `actual` is not the `expected` SHA-256 of `what`.
pub(crate) fn require_sha256(what: &str, expected: &str, actual: &str) -> Result<(), Error> {
    if expected == actual {
        return Ok(());
    }
    Err(Error::WrongHash { what: what.to_owned(), expected: expected.to_owned(), actual: actual.to_owned() })
}

/// Returns an error if `actual` is not the `expected` length of `what`.
pub(crate) fn require_size(what: &str, expected: u64, actual: u64) -> Result<(), Error> {
    if expected == actual { Ok(()) } else { Err(Error::WrongSize { what: what.to_owned(), expected, actual }) }
}
