/// Estimates tokens where no tokenizer can be asked. The same text always counts the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens {
    bytes_per_token: f64,
}

impl Tokens {
    /// One token for every `bytes_per_token` bytes; less than one byte counts as one.
    pub(crate) fn new(bytes_per_token: f32) -> Self {
        Self { bytes_per_token: f64::from(bytes_per_token).max(1.0) }
    }

    pub(crate) fn of(self, text: &str) -> usize {
        self.of_bytes(text.len())
    }

    pub(crate) fn of_bytes(self, bytes: usize) -> usize {
        (bytes as f64 / self.bytes_per_token).ceil() as usize
    }

    /// The beginning of a text that has so many tokens at most; whole characters.
    pub(crate) fn cut(self, text: &str, tokens: usize) -> &str {
        cut_bytes(text, (tokens as f64 * self.bytes_per_token) as usize)
    }
}

/// The beginning of a text that has so many bytes at most; whole characters.
pub(crate) fn cut_bytes(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_and_cuts() {
        let tokens = Tokens::new(3.0);
        assert_eq!([tokens.of(""), tokens.of("a"), tokens.of("abc"), tokens.of("abcd")], [0, 1, 1, 2]);
        assert_eq!(tokens.of("記憶"), 2);
        assert_eq!(tokens.cut("記憶x", 1), "記");
        assert_eq!(tokens.cut("ab", 5), "ab");
        assert_eq!(Tokens::new(0.0).of("abc"), 3);
        assert_eq!(cut_bytes("🦊", 3), "");
    }
}
