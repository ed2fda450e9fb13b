/// Estimates token counts if no tokenizer can be asked. Equal texts have equal counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens {
    bytes_per_token: f64,
}

impl Tokens {
    /// Counts one token for every `bytes_per_token` bytes. Values below 1 count as 1.
    pub(crate) fn new(bytes_per_token: f32) -> Self {
        Self { bytes_per_token: f64::from(bytes_per_token).max(1.0) }
    }

    pub(crate) fn of(self, text: &str) -> usize {
        self.of_bytes(text.len())
    }

    pub(crate) fn of_bytes(self, bytes: usize) -> usize {
        (bytes as f64 / self.bytes_per_token).ceil() as usize
    }

    /// Returns the longest beginning of a text with at most `tokens` tokens, cut at a character boundary.
    pub(crate) fn cut(self, text: &str, tokens: usize) -> &str {
        cut_bytes(text, (tokens as f64 * self.bytes_per_token) as usize)
    }
}

/// Returns the longest beginning of a text with at most `bytes` bytes, cut at a character boundary.
pub(crate) fn cut_bytes(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_estimated_and_texts_cut_at_characters() {
        let tokens = Tokens::new(3.0);
        assert_eq!([tokens.of(""), tokens.of("a"), tokens.of("abc"), tokens.of("abcd")], [0, 1, 1, 2]);
        assert_eq!(tokens.of("記憶"), 2);
        assert_eq!(tokens.cut("記憶x", 1), "記");
        assert_eq!(tokens.cut("ab", 5), "ab");
        assert_eq!(Tokens::new(0.0).of("abc"), 3);
        assert_eq!(cut_bytes("🦊", 3), "");
    }
}
