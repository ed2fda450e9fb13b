//! What both kinds of stream come down to.

use azera_model_api::FinishReason;
use serde_json::Value;

use crate::{ollama, openai};

/// A part of a streamed reply.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    /// A piece of thinking that the server told apart.
    Thinking(String),
    /// A piece of the reply, which may hold thinking in tags.
    Content(String),
    /// The reply is complete.
    End(End),
}

/// How a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) finish: FinishReason,
    pub(crate) counts: Option<Counts>,
}

/// Tokens as the server counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) prompt: usize,
    pub(crate) cached: usize,
    pub(crate) completion: usize,
}

/// Why a line of a stream could not be taken.
pub(crate) enum WireError {
    /// It is not what such a server writes.
    Malformed(String),
    /// It is an error of the server's, in its own words.
    ServerSaid(Value),
}

/// The state of a stream.
pub(crate) enum Wire {
    OpenAi(openai::Parser),
    Ollama(ollama::Parser),
}

impl Wire {
    /// Takes a line and adds what it holds.
    pub(crate) fn line(&mut self, line: &str, out: &mut impl Extend<Piece>) -> Result<(), WireError> {
        match self {
            Self::OpenAi(parser) => parser.line(line, out),
            Self::Ollama(parser) => parser.line(line, out),
        }
    }

    /// Takes the end of the stream and adds what that completes; nothing, if the reply was cut off.
    pub(crate) fn end(&mut self, out: &mut impl Extend<Piece>) -> Result<(), WireError> {
        match self {
            Self::OpenAi(parser) => parser.end(out),
            Self::Ollama(_) => Ok(()),
        }
    }
}

/// Adds a piece unless it is empty.
pub(crate) fn give(text: Option<String>, piece: impl Fn(String) -> Piece, out: &mut impl Extend<Piece>) {
    out.extend(text.filter(|text| !text.is_empty()).map(piece));
}

/// The number as JSON as it would be written by hand: 0.7, not 0.699999988079071.
pub(crate) fn number(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// Names the kind of mistake, never the text around it.
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

    /// Lines that look like a stream, right or nearly so.
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
        fn any_lines_are_taken_or_refused_and_nothing_follows_the_end(lines in lines()) {
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
