use bytes::BytesMut;
use tokio_util::codec::{Decoder, LinesCodec, LinesCodecError};

/// The longest line of a stream, in bytes. A line holds one piece of a reply; the longest seen had a few thousand.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The longest stream, in bytes.
pub const MAX_STREAM_BYTES: usize = 64 << 20;

/// The reasons why a stream cannot be split into lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineError {
    /// A line is longer than [`MAX_LINE_BYTES`].
    LongLine,
    /// The stream is longer than [`MAX_STREAM_BYTES`].
    LongStream,
    /// A line is not UTF-8.
    NotUtf8,
}

/// Splits a stream into lines, independent of the network's chunks. A line ends with LF or CRLF. The format also allows
/// a lone CR, but no known model server writes it.
pub(crate) struct Lines {
    codec: LinesCodec,
    buffer: BytesMut,
    read: usize,
}

impl Lines {
    pub(crate) fn new() -> Self {
        Self { codec: LinesCodec::new_with_max_length(MAX_LINE_BYTES), buffer: BytesMut::new(), read: 0 }
    }

    /// Adds a chunk.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), LineError> {
        self.read += chunk.len();
        if self.read > MAX_STREAM_BYTES {
            return Err(LineError::LongStream);
        }
        self.buffer.extend_from_slice(chunk);
        Ok(())
    }

    /// Returns the next complete line, without its end.
    pub(crate) fn next(&mut self) -> Result<Option<String>, LineError> {
        self.codec.decode(&mut self.buffer).map_err(LineError::from)
    }

    /// Returns the text after the last line end, at the end of the stream.
    pub(crate) fn rest(&mut self) -> Result<Option<String>, LineError> {
        self.codec.decode_eof(&mut self.buffer).map_err(LineError::from)
    }
}

impl From<LinesCodecError> for LineError {
    fn from(error: LinesCodecError) -> Self {
        match error {
            LinesCodecError::MaxLineLengthExceeded => Self::LongLine,
            LinesCodecError::Io(_) => Self::NotUtf8,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(chunks: &[&[u8]]) -> Result<Vec<String>, LineError> {
        let (mut lines, mut found) = (Lines::new(), Vec::new());
        for chunk in chunks {
            lines.push(chunk)?;
            while let Some(line) = lines.next()? {
                found.push(line);
            }
        }
        found.extend(lines.rest()?);
        Ok(found)
    }

    #[test]
    fn lines_end_with_lf_or_crlf_and_have_limits() {
        let texts = |texts: &[&str]| Ok(texts.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(all(&[b"a\r\nb\n\nc"]), texts(&["a", "b", "", "c"]));
        assert_eq!(all(&[b"a\r", b"\n", b"\xf0\x9f", b"\xa6\x8a"]), texts(&["a", "🦊"]));
        assert_eq!(all(&[b"\xff\n"]), Err(LineError::NotUtf8));
        assert_eq!(all(&[&vec![b'x'; MAX_LINE_BYTES], b"\n"]).map(|lines| lines.len()), Ok(1));
        assert_eq!(all(&[&vec![b'x'; MAX_LINE_BYTES + 1]]), Err(LineError::LongLine));
        let line = [vec![b'x'; MAX_LINE_BYTES - 1], vec![b'\n']].concat();
        let most = MAX_STREAM_BYTES / line.len();
        assert!(all(&vec![line.as_slice(); most]).is_ok());
        assert_eq!(all(&vec![line.as_slice(); most + 1]), Err(LineError::LongStream));
    }

    proptest! {
        #[test]
        fn cutting_the_bytes_anywhere_does_not_change_the_lines(text in "(\\PC|\\n|\\r\\n){0,40}", cuts in prop::collection::vec(0_usize..200, 0..8)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(all(&chunks), all(&[bytes]));
        }
    }
}
