//! Finds tokens that a file's vocabulary has twice.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;

use crate::read::{Counts, MAX_KEY_BYTES, Reader, limited};
use crate::{GgufError, value_type};

/// The most tokens of a vocabulary. The largest known have 260,000.
const MAX_TOKENS: u64 = 4 << 20;

/// Returns a token that the vocabulary of a file has more than once. llama.cpp ends the process at such a file.
///
/// Reads at most [`crate::MAX_HEADER_BYTES`], and remembers eight bytes of each token.
///
/// # Errors
/// [`GgufError`] if the header is invalid or has more tokens than any model.
pub fn repeated_token(source: impl Read) -> Result<Option<String>, GgufError> {
    let (mut reader, Counts { pairs, .. }) = Reader::start(source)?;
    for _ in 0..pairs {
        let key = reader.key()?;
        let value_type = reader.u32()?;
        if key == "tokenizer.ggml.tokens" && value_type == value_type::ARRAY {
            return first_repeated(&mut reader);
        }
        reader.value(value_type)?;
    }
    Ok(None)
}

fn first_repeated(reader: &mut Reader<impl Read>) -> Result<Option<String>, GgufError> {
    if reader.u32()? != value_type::STRING {
        return Err(GgufError::Invalid("vocabulary"));
    }
    let count = limited("number of tokens", reader.u64()?, MAX_TOKENS)?;
    let (state, mut seen) = (RandomState::new(), HashSet::new());
    for id in 0..count {
        let length = limited("token length", reader.u64()?, MAX_KEY_BYTES)?;
        let mut token = reader.bytes(length)?;
        if token.is_empty() {
            // llama.cpp names it so.
            token = format!("[EMPTY_{id}]").into_bytes();
        }
        if !seen.insert(state.hash_one(&token)) {
            return Ok(Some(String::from_utf8_lossy(&token).into_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GgufFile, Value};

    fn file(tokens: Option<&[&str]>) -> Vec<u8> {
        let mut file = GgufFile::default();
        file.set("general.architecture", Value::String("bert".into()));
        if let Some(tokens) = tokens {
            let tokens = tokens.iter().map(|token| (*token).to_owned()).collect();
            file.set("tokenizer.ggml.tokens", Value::Strings(tokens));
        }
        let mut bytes = Vec::new();
        file.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_repeated_token_is_found() {
        fn check(tokens: Option<&[&str]>, expected: Option<&str>) {
            let found = repeated_token(file(tokens).as_slice()).unwrap();
            assert_eq!(found.as_deref(), expected, "{tokens:?}");
        }
        check(None, None);
        check(Some(&["a", "A", "b", "ab"]), None);
        check(Some(&["a", "b", "a"]), Some("a"));
        // Empty tokens get names of their own, unless a token has that name.
        check(Some(&["", "a", ""]), None);
        check(Some(&["[EMPTY_1]", ""]), Some("[EMPTY_1]"));
    }

    #[test]
    fn an_incomplete_vocabulary_is_rejected() {
        let bytes = file(Some(&["one", "two"]));
        let end = bytes.windows(3).position(|part| part == b"two").unwrap();
        assert!(matches!(repeated_token(&bytes[..end]), Err(GgufError::Truncated)));
    }
}
