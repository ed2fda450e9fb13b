//! The common form of both kinds of stream.

use azera_model_api::FinishReason;
use serde_json::Value;

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
    pub(crate) counts: Option<Counts>,
}

/// The server's token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) prompt: usize,
    pub(crate) cached: usize,
    pub(crate) completion: usize,
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

/// Adds a piece, unless it is empty.
pub(crate) fn push_piece(text: Option<String>, piece: impl Fn(String) -> Piece, out: &mut impl Extend<Piece>) {
    out.extend(text.filter(|text| !text.is_empty()).map(piece));
}

/// Returns the number as JSON in its shortest form: 0.7, not 0.699999988079071.
pub(crate) fn number(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// Describes the kind of error without the text around it.
pub(crate) fn malformed(error: &serde_json::Error) -> WireError {
    let kind = match error.classify() {
        serde_json::error::Category::Eof => "a JSON object that ends too early",
        serde_json::error::Category::Syntax => "what is no JSON",
        serde_json::error::Category::Data | serde_json::error::Category::Io => "a JSON object of another form",
    };
    WireError::Malformed(format!("its stream holds {kind}"))
}

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
                        Piece::End(end) => prop_assert!(end.counts.is_none_or(|counts| counts.cached <= counts.prompt)),
                    }
                }
            }
        }
    }
}
