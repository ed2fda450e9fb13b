//! Server-sent events of the sidecar, one line of data each, within a limit.

/// The longest line, in bytes: a preview in base64, with what stands around it.
const MAX_LINE_BYTES: usize = 4 << 20;

/// A line that is too long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Splits a stream into the data of its events.
#[derive(Default)]
pub(crate) struct Events {
    buffer: Vec<u8>,
    /// Bytes at the beginning of the buffer that hold no line end.
    searched: usize,
}

impl Events {
    /// Adds bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the data of the next whole event.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        loop {
            let unseen = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(length) = unseen.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return if self.searched > MAX_LINE_BYTES { Err(TooLong) } else { Ok(None) };
            };
            let line: Vec<u8> = self.buffer.drain(..=self.searched + length).collect();
            self.searched = 0;
            // Comments keep the connection alive, and names of events stand in their data, too.
            if let Some(data) = line.strip_prefix(b"data:") {
                return Ok(Some(data.trim_ascii().to_vec()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_however_the_stream_is_cut() {
        let stream = b": alive\nevent: progress\ndata: {\"step\":1}\r\n\ndata:{}\n\n";
        for cut in 0..stream.len() {
            let (mut events, mut found) = (Events::default(), Vec::new());
            for piece in [&stream[..cut], &stream[cut..]] {
                events.push(piece);
                while let Some(data) = events.next().unwrap() {
                    found.push(String::from_utf8(data).unwrap());
                }
            }
            assert_eq!(found, ["{\"step\":1}", "{}"], "{cut}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut events = Events::default();
        events.push(&vec![b'x'; MAX_LINE_BYTES + 1]);
        assert_eq!(events.next(), Err(TooLong));
    }
}
