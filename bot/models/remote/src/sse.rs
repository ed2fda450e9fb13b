//! Server-sent events, as far as model servers use them: only the data of each event, without name and id.
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>
//!
//! The existing crates for this buffer a line without end in memory. Here the lines have a limit.

/// Joins the lines of an event stream to events.
#[derive(Default)]
pub(crate) struct Events {
    data: Option<String>,
    /// True after the first line that is not blank.
    begun: bool,
}

impl Events {
    /// Returns true if there were only blank lines so far.
    pub(crate) fn is_new(&self) -> bool {
        !self.begun
    }

    /// Adds a line. Returns the data of the event that it ends.
    pub(crate) fn line(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            return self.data.take();
        }
        self.begun = true;
        // A comment begins with a colon, so its field name is empty.
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                None => self.data = Some(value.to_owned()),
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
            }
        }
        None
    }

    /// Returns the event whose final blank line is missing at the end of the stream; several servers end like this.
    pub(crate) fn rest(&mut self) -> Option<String> {
        self.data.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut events = Events::default();
        let mut found: Vec<String> = text.split('\n').filter_map(|line| events.line(line)).collect();
        found.extend(events.rest());
        assert_eq!(found, expected);
    }

    #[test]
    fn events_are_parsed_from_lines() {
        check("data: a\n\ndata:b\n\n", &["a", "b"]);
        check(": hello\nid: 3\nevent: x\ndata: {\n data: no\ndata: }\nretry: 5\n\n", &["{\n}"]);
        check("data:  two spaces\n\n\n\ndata\n\n", &[" two spaces", ""]);
        check("data: [DONE]", &["[DONE]"]);
        check(":\n\n", &[]);
    }
}
