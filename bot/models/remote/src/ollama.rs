//! Ollama's chat, streamed as one JSON object per line. <https://github.com/ollama/ollama/blob/main/docs/api.md>

use azera_model_api::{ChatRequest, FinishReason, Grammar};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::wire::{Counts, End, Piece, WireError, malformed, number, push_piece};

/// Returns the request body. `window` is the context for which Ollama loads the model; without it, Ollama takes a small
/// one and cuts prompts silently. `think` is `None` for a model that cannot think.
pub(crate) fn body(model: &str, request: &ChatRequest, window: usize, think: Option<bool>) -> Value {
    let messages: Vec<Value> = request
        .messages
        .iter()
        .map(|message| json!({"role": message.role.as_str(), "content": message.content}))
        .collect();
    let sampling = &request.sampling;
    let mut options = json!({
        "num_ctx": window,
        "num_predict": request.max_tokens,
        "temperature": number(sampling.temperature),
        "top_k": sampling.top_k,
        "top_p": number(sampling.top_p),
        "min_p": number(sampling.min_p),
        // Ollama's penalties also look at the prompt, which contains remembered facts. They must not make those
        // unlikely.
        "repeat_penalty": 1.0,
        "frequency_penalty": 0.0,
        "presence_penalty": 0.0,
    });
    if let Some(seed) = sampling.seed {
        options["seed"] = seed.into();
    }
    if !request.stop.is_empty() {
        options["stop"] = request.stop.iter().cloned().collect();
    }
    let mut body = json!({"model": model, "messages": messages, "stream": true, "options": options});
    if let Some(think) = think {
        body["think"] = think.into();
    }
    if let Some(Grammar::JsonSchema(schema)) = &request.grammar {
        body["format"] = schema.clone();
    }
    body
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    done_reason: Option<String>,
    #[serde(default)]
    prompt_eval_count: Option<usize>,
    #[serde(default)]
    eval_count: Option<usize>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
}

/// The parser of a stream of chat objects.
#[derive(Default)]
pub(crate) struct Parser {
    done: bool,
}

impl Parser {
    pub(crate) fn line(&mut self, line: &str, out: &mut impl Extend<Piece>) -> Result<(), WireError> {
        if line.trim().is_empty() || self.done {
            return Ok(());
        }
        let value: Value = serde_json::from_str(line).map_err(|error| malformed(&error))?;
        if value.get("error").is_some_and(|error| !error.is_null()) {
            return Err(WireError::ServerSaid(value));
        }
        let line: Line = serde_json::from_value(value).map_err(|error| malformed(&error))?;
        if let Some(message) = line.message {
            push_piece(message.thinking, Piece::Thinking, out);
            push_piece(message.content, Piece::Content, out);
        }
        if line.done {
            self.done = true;
            let length = line.done_reason.as_deref() == Some("length");
            let finish = if length { FinishReason::Length } else { FinishReason::Stop };
            // Ollama does not report how much of the prompt it reused.
            let counts = line.prompt_eval_count.zip(line.eval_count);
            let counts = counts.map(|(prompt, completion)| Counts { prompt, cached: 0, completion });
            out.extend([Piece::End(End { finish, counts })]);
        }
        Ok(())
    }
}
