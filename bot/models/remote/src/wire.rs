//! The common form of both kinds of stream.

use azera_model_api::FinishReason;
use serde_json::Value;

use crate::halves::{Halves, without_lone_surrogates};
use crate::{ollama, openai};

/// A part of a streamed reply.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    /// A piece of thinking from a separate field.
    Thinking(String),
    /// A piece of the reply, which may contain thinking in tags.
    Content(String),
    /// The reply is complete.
    End(End),
}

/// The end of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) finish: FinishReason,
    pub(crate) counts: Counts,
}

/// The server's token counts. `None` means that it did not report the count, or nothing that is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) prompt: Option<usize>,
    pub(crate) cached: usize,
    pub(crate) completion: Option<usize>,
}

/// The reasons to reject a line of a stream.
pub(crate) enum WireError {
    /// The line is malformed.
    Malformed(String),
    /// The server reports an error, in its own words.
    ServerSaid(Value),
}

/// The state of a stream.
pub(crate) enum Wire {
    OpenAi(openai::Parser),
    Ollama(ollama::Parser),
}

impl Wire {
    /// Parses a line and adds its pieces to `out`.
    pub(crate) fn line(&mut self, line: &str, out: &mut impl Extend<Piece>) -> Result<(), WireError> {
        match self {
            Self::OpenAi(parser) => parser.line(line, out),
            Self::Ollama(parser) => parser.line(line, out),
        }
    }

    /// Ends the stream and adds the last pieces. Adds nothing if the reply was cut off.
    pub(crate) fn end(&mut self, out: &mut impl Extend<Piece>) -> Result<(), WireError> {
        match self {
            Self::OpenAi(parser) => parser.end(out),
            Self::Ollama(_) => Ok(()),
        }
    }
}

/// Joins the characters of a reply that arrive in halves, and adds what is whole as pieces.
#[derive(Default)]
pub(crate) struct Pieces {
    content: Halves,
    thinking: Halves,
}

impl Pieces {
    /// Adds the texts in a value: a text, a list of parts, or one part. Parts can hold thinking. Returns true if there
    /// was any text.
    pub(crate) fn push(&mut self, value: &Value, is_thinking: bool, out: &mut impl Extend<Piece>) -> bool {
        match value {
            Value::String(text) if is_thinking => {
                push_piece(self.thinking.join(text.clone()), Piece::Thinking, out);
                !text.is_empty()
            }
            Value::String(text) => {
                push_piece(self.content.join(text.clone()), Piece::Content, out);
                !text.is_empty()
            }
            Value::Array(list) => {
                let mut any = false;
                for value in list {
                    any |= self.push(value, is_thinking, out);
                }
                any
            }
            Value::Object(fields) => {
                let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
                let thinks = is_thinking || kind.starts_with("thinking") || kind.starts_with("reasoning");
                let texts = [("thinking", true), ("text", thinks), ("content", thinks), ("value", thinks)];
                let mut any = false;
                for (name, thinks) in texts {
                    any |= fields.get(name).is_some_and(|value| self.push(value, thinks, out));
                }
                any
            }
            _ => false,
        }
    }

    /// Adds the replacements of halves whose other half never came.
    pub(crate) fn finish(&mut self, out: &mut impl Extend<Piece>) {
        push_piece(self.thinking.finish(), Piece::Thinking, out);
        push_piece(self.content.finish(), Piece::Content, out);
    }
}

/// Adds a piece, unless it is empty.
fn push_piece(text: String, piece: impl Fn(String) -> Piece, out: &mut impl Extend<Piece>) {
    out.extend(Some(text).filter(|text| !text.is_empty()).map(piece));
}

/// Parses JSON. The lone surrogates in it become marks.
pub(crate) fn parse(json: &str) -> Result<Value, WireError> {
    serde_json::from_str(&without_lone_surrogates(json)).map_err(|error| malformed(&error))
}

/// Reads a token count: a number, or a number as text.
pub(crate) fn count(value: &Value) -> Option<usize> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (0.0..=f64::from(u32::MAX)).contains(&number).then_some(number as usize)
}

/// Returns true if a finish reason says that the reply was cut for its length.
pub(crate) fn is_length(reason: &str) -> bool {
    ["length", "max_tokens"].iter().any(|name| reason.eq_ignore_ascii_case(name))
}

/// Returns the number as JSON in its shortest form: 0.7, not 0.699999988079071.
pub(crate) fn number(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// Describes the kind of error without the text around it.
pub(crate) fn malformed(error: &serde_json::Error) -> WireError {
    let kind = match error.classify() {
        serde_json::error::Category::Eof => "a part of the reply ends in the middle of its JSON",
        serde_json::error::Category::Syntax => "a part of the reply is not valid JSON",
        serde_json::error::Category::Data | serde_json::error::Category::Io => UNEXPECTED,
    };
    WireError::Malformed(kind.to_owned())
}

/// Says that a value in a stream has another type than it should.
pub(crate) const UNEXPECTED: &str = "a part of the reply has an unexpected structure";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates lines that look like a stream, valid or almost valid.
    fn lines() -> impl Strategy<Value = Vec<String>> {
        let value = prop_oneof![
            Just("null".to_owned()),
            Just("\"stop\"".to_owned()),
            Just("true".to_owned()),
            Just("[{\"delta\":{\"content\":\"x\"}}]".to_owned()),
            Just("{\"content\":\"y\",\"thinking\":\"z\"}".to_owned()),
            Just("{\"prompt_tokens\":1,\"prompt_tokens_details\":{\"cached_tokens\":9}}".to_owned()),
            Just("{\"prompt_tokens\":\"7\",\"completion_tokens\":null,\"total_tokens\":2.5}".to_owned()),
            "-?[0-9]{1,20}",
            "\\PC{0,8}",
        ];
        let key = prop::sample::select(&["choices", "usage", "message", "done", "error", "eval_count", "timings"][..]);
        let object = prop::collection::vec((key, value), 0..4).prop_map(|fields| {
            let fields: Vec<String> = fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
            format!("{{{}}}", fields.join(","))
        });
        let line = prop_oneof![object, Just(String::new()), Just("[DONE]".to_owned()), "\\PC{0,20}"];
        let prefix = prop::sample::select(&["data: ", "data:", "", ": ", "event: "][..]);
        prop::collection::vec((prefix, line).prop_map(|(prefix, line)| format!("{prefix}{line}")), 0..24)
    }

    #[test]
    fn counts_are_read_from_numbers_and_texts() {
        let read = |json: &str| count(&serde_json::from_str(json).unwrap());
        assert_eq!([read("7"), read("7.9"), read("\" 7 \"")], [Some(7); 3]);
        for none in ["null", "-1", "1e300", "\"many\"", "\"NaN\"", "[7]", "{}", "true"] {
            assert_eq!(read(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn any_lines_are_parsed_or_rejected_and_nothing_follows_the_end(lines in lines()) {
            for mut wire in [Wire::OpenAi(openai::Parser::default()), Wire::Ollama(ollama::Parser::default())] {
                let mut out: Vec<Piece> = Vec::new();
                let taken = lines.iter().all(|line| wire.line(line, &mut out).is_ok());
                if taken {
                    wire.end(&mut out).ok();
                }
                let end = out.iter().position(|piece| matches!(piece, Piece::End(_)));
                prop_assert!(end.is_none_or(|end| end + 1 == out.len()));
                for piece in &out {
                    match piece {
                        Piece::Thinking(text) | Piece::Content(text) => prop_assert!(!text.is_empty()),
                        Piece::End(end) => prop_assert!(end.counts.cached <= end.counts.prompt.unwrap_or(0)),
                    }
                }
            }
        }
    }
}
