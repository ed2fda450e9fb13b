use std::io;

use azera_types::MAX_TEXT_BYTES;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Messages from a pipe, one per line. Lines longer than a message are cut; bytes that are not UTF-8 become replacement
/// characters.
pub(crate) struct Lines {
    from: Box<dyn AsyncBufRead + Send + Unpin>,
}

impl Lines {
    pub(crate) fn new(from: Box<dyn AsyncBufRead + Send + Unpin>) -> Self {
        Self { from }
    }

    /// Reads the next line without its end; `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let mut read_any = false;
        loop {
            let buffer = self.from.fill_buf().await?;
            if buffer.is_empty() {
                break;
            }
            read_any = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            let room = (MAX_TEXT_BYTES + 1).saturating_sub(line.len());
            line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            if end.is_some() {
                break;
            }
        }
        Ok(read_any.then(|| String::from_utf8_lossy(&line).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn any_lines_can_be_read() {
        let long = "x".repeat(MAX_TEXT_BYTES * 3);
        let input = format!("one\n\n{long}\nlast");
        let mut bytes = input.into_bytes();
        bytes.extend(b"\xff");
        let reader = tokio::io::BufReader::with_capacity(7, io::Cursor::new(bytes));
        let mut lines = Lines::new(Box::new(reader));
        assert_eq!(lines.next().await.unwrap().as_deref(), Some("one"));
        assert_eq!(lines.next().await.unwrap().as_deref(), Some(""));
        assert_eq!(lines.next().await.unwrap().map(|line| line.len()), Some(MAX_TEXT_BYTES + 1));
        assert_eq!(lines.next().await.unwrap().as_deref(), Some("last\u{fffd}"));
        assert_eq!(lines.next().await.unwrap(), None);
    }
}
