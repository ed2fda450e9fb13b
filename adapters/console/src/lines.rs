use std::io;

use azera_types::MAX_TEXT_BYTES;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// How much of a pipe is one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessagePer {
    /// Each line.
    #[default]
    Line,
    /// The lines between blank lines. A blank line inside a code block ends nothing.
    Paragraph,
    /// The text between NUL bytes.
    Nul,
    /// The whole input.
    File,
}

/// Messages from a pipe. Longer ones than a message can be are cut; bytes that are not UTF-8 become replacement
/// characters.
pub(crate) struct Messages {
    from: Box<dyn AsyncBufRead + Send + Unpin>,
    per: MessagePer,
    begun: bool,
}

impl Messages {
    pub(crate) fn new(from: Box<dyn AsyncBufRead + Send + Unpin>, per: MessagePer) -> Self {
        Self { from, per, begun: false }
    }

    /// Reads the next message; `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        let message = match self.per {
            MessagePer::Line => self.part(Some(b'\n')).await,
            MessagePer::Nul => self.part(Some(0)).await,
            MessagePer::File => self.part(None).await,
            MessagePer::Paragraph => self.paragraph().await,
        };
        let message = message?;
        if std::mem::replace(&mut self.begun, true) {
            return Ok(message);
        }
        // The mark that some editors write at the beginning of a file.
        Ok(message.map(|text| text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
    }

    async fn paragraph(&mut self) -> io::Result<Option<String>> {
        let mut lines: Vec<String> = Vec::new();
        let (mut length, mut in_code) = (0, false);
        while let Some(line) = self.part(Some(b'\n')).await? {
            let line = line.trim_end_matches('\r');
            if line.trim().is_empty() && !in_code {
                if lines.is_empty() {
                    continue;
                }
                break;
            }
            in_code ^= line.trim_start().starts_with("```");
            if length <= MAX_TEXT_BYTES {
                length += line.len() + 1;
                lines.push(line.to_owned());
            }
        }
        Ok((!lines.is_empty()).then(|| lines.join("\n")))
    }

    /// Reads up to a byte that ends a message, or up to the end of the input.
    async fn part(&mut self, end_byte: Option<u8>) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let mut read_any = false;
        loop {
            let buffer = self.from.fill_buf().await?;
            if buffer.is_empty() {
                break;
            }
            read_any = true;
            let end = buffer.iter().position(|byte| Some(*byte) == end_byte);
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

    async fn all(input: &[u8], per: MessagePer) -> Vec<String> {
        let reader = tokio::io::BufReader::with_capacity(7, io::Cursor::new(input.to_vec()));
        let mut messages = Messages::new(Box::new(reader), per);
        let mut found = Vec::new();
        while let Some(message) = messages.next().await.unwrap() {
            found.push(message);
        }
        found
    }

    #[tokio::test]
    async fn any_lines_can_be_read() {
        let long = "x".repeat(MAX_TEXT_BYTES * 3);
        let mut input = format!("one\n\n{long}\nlast").into_bytes();
        input.extend(b"\xff");
        let lines = all(&input, MessagePer::Line).await;
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [3, 0, MAX_TEXT_BYTES + 1, 7]);
        assert_eq!((lines[0].as_str(), lines[3].as_str()), ("one", "last\u{fffd}"));
    }

    #[tokio::test]
    async fn a_message_can_have_several_lines() {
        let code = "```\nfn a() {}\n\nfn b() {}\n```";
        let text = format!("\u{feff}one\ntwo\r\n\n \n\n{code}\nwhat is it?\n\nlast");
        let paragraphs = all(text.as_bytes(), MessagePer::Paragraph).await;
        assert_eq!(paragraphs, ["one\ntwo".to_owned(), format!("{code}\nwhat is it?"), "last".to_owned()]);
        assert_eq!(all(b"one\ntwo\0three\0", MessagePer::Nul).await, ["one\ntwo", "three"]);
        assert_eq!(all(b"one\n\ntwo\n", MessagePer::File).await, ["one\n\ntwo\n"]);
        assert_eq!(all(b"", MessagePer::File).await, Vec::<String>::new());
        let long = "word\n".repeat(MAX_TEXT_BYTES);
        assert!(all(long.as_bytes(), MessagePer::Paragraph).await[0].len() <= MAX_TEXT_BYTES + 5);
    }
}
