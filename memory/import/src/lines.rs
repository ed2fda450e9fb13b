//! Reads a file line by line, each of bounded length.

use std::io::{self, BufRead};

use crate::MAX_LINE_BYTES;

/// A line of the input.
pub(crate) enum Line {
    /// A whole line, now in the buffer.
    Whole,
    /// A line that is longer than [`MAX_LINE_BYTES`]. It was skipped.
    TooLong,
}

/// The lines of an input.
pub(crate) struct Lines<R> {
    input: R,
    /// The number of the last line, from 1.
    pub(crate) number: usize,
    max: usize,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, number: 0, max: MAX_LINE_BYTES }
    }

    /// Reads the next line into `line`, without its end; returns `None` at the end of the input.
    pub(crate) fn next(&mut self, line: &mut Vec<u8>) -> io::Result<Option<Line>> {
        line.clear();
        let (mut any, mut too_long) = (false, false);
        loop {
            let available = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                available => available?,
            };
            if available.is_empty() {
                break;
            }
            any = true;
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            too_long |= line.len() + part.len() > self.max;
            if !too_long {
                line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        self.number += 1;
        if too_long {
            line.clear();
            return Ok(Some(Line::TooLong));
        }
        if self.number == 1 && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        Ok(Some(Line::Whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_skipped_and_the_next_one_read() {
        let mut lines = Lines { input: &b"\xef\xbb\xbfone\nfar too long\n\nlast"[..], number: 0, max: 6 };
        let mut line = Vec::new();
        let mut read = Vec::new();
        while let Some(found) = lines.next(&mut line).unwrap() {
            read.push(match found {
                Line::Whole => format!("{} {}", lines.number, String::from_utf8_lossy(&line)),
                Line::TooLong => format!("{} too long", lines.number),
            });
        }
        assert_eq!(read, ["1 one", "2 too long", "3 ", "4 last"]);
    }
}
