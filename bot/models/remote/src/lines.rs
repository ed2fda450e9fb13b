use bytes::{Buf, BytesMut};

use crate::halves::marked;

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
}

/// Splits a stream into lines, independent of the network's chunks. A line ends with LF, CRLF or CR. Bytes that are not
/// UTF-8 become marks ([`crate::halves`]). A byte order mark at the beginning is dropped.
#[derive(Default)]
pub(crate) struct Lines {
    buffer: BytesMut,
    /// The bytes at the beginning of the buffer that hold no line end.
    searched: usize,
    /// True if the last line ended with CR, so an LF that follows belongs to that end.
    after_cr: bool,
    begun: bool,
    read: usize,
}

impl Lines {
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
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer.first() == Some(&b'\n') {
                self.buffer.advance(1);
            }
        }
        let unseen = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(length) = unseen.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.searched = self.buffer.len();
            return if self.searched > MAX_LINE_BYTES { Err(LineError::LongLine) } else { Ok(None) };
        };
        let line = self.buffer.split_to(self.searched + length);
        self.searched = 0;
        self.after_cr = self.buffer.first() == Some(&b'\r');
        self.buffer.advance(1);
        if line.len() > MAX_LINE_BYTES {
            return Err(LineError::LongLine);
        }
        Ok(Some(self.decode(&line)))
    }

    /// Returns the text after the last line end, at the end of the stream.
    pub(crate) fn rest(&mut self) -> Option<String> {
        let line = self.buffer.split();
        (!line.is_empty()).then(|| self.decode(&line))
    }

    fn decode(&mut self, line: &[u8]) -> String {
        let line = marked(line);
        if std::mem::replace(&mut self.begun, true) {
            return line;
        }
        line.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(line)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(chunks: &[&[u8]]) -> Result<Vec<String>, LineError> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for chunk in chunks {
            lines.push(chunk)?;
            while let Some(line) = lines.next()? {
                found.push(line);
            }
        }
        found.extend(lines.rest());
        Ok(found)
    }

    #[test]
    fn lines_end_with_lf_crlf_or_cr_and_have_limits() {
        let texts = |texts: &[&str]| Ok(texts.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(all(&[b"a\r\nb\n\nc"]), texts(&["a", "b", "", "c"]));
        assert_eq!(all(&[b"a\r", b"\n", b"\xf0\x9f", b"\xa6\x8a"]), texts(&["a", "🦊"]));
        assert_eq!(all(&[b"a\r\rb\rc\r"]), texts(&["a", "", "b", "c"]));
        assert_eq!(all(&[b"\xef\xbb", b"\xbfa\n"]), texts(&["a"]));
        assert_eq!(all(&[b"\xff\n"]), texts(&[&marked(b"\xff")]));
        assert_eq!(all(&[&vec![b'x'; MAX_LINE_BYTES], b"\n"]).map(|lines| lines.len()), Ok(1));
        assert_eq!(all(&[&vec![b'x'; MAX_LINE_BYTES + 1]]), Err(LineError::LongLine));
        let line = [vec![b'x'; MAX_LINE_BYTES - 1], vec![b'\n']].concat();
        let most = MAX_STREAM_BYTES / line.len();
        assert!(all(&vec![line.as_slice(); most]).is_ok());
        assert_eq!(all(&vec![line.as_slice(); most + 1]), Err(LineError::LongStream));
    }

    proptest! {
        #[test]
        fn cutting_the_bytes_anywhere_does_not_change_the_lines(text in "(\\PC|\\n|\\r\\n|\\r){0,40}", cuts in prop::collection::vec(0_usize..200, 0..8)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(all(&chunks), all(&[bytes]));
        }
    }
}
