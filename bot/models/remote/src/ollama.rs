//! Ollama's chat, streamed as one JSON object per line. <https://github.com/ollama/ollama/blob/main/docs/api.md>

use azera_model_api::{ChatRequest, FinishReason, Grammar};
use serde_json::{Value, json};

use crate::chat::most_tokens;
use crate::config::Api;
use crate::wire::{Counts, End, Piece, Pieces, WireError, count, is_length, number, parse};

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
        "num_predict": most_tokens(Api::Ollama, request),
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

/// The parser of a stream of chat objects.
#[derive(Default)]
pub(crate) struct Parser {
    pieces: Pieces,
    done: bool,
}

impl Parser {
    pub(crate) fn line(&mut self, line: &str, out: &mut impl Extend<Piece>) -> Result<(), WireError> {
        if line.trim().is_empty() || self.done {
            return Ok(());
        }
        let value = parse(line)?;
        if !value["error"].is_null() {
            return Err(WireError::ServerSaid(value));
        }
        let message = &value["message"];
        self.pieces.push(&message["thinking"], true, out);
        self.pieces.push(&message["content"], false, out);
        if value["done"] == Value::Bool(true) {
            self.done = true;
            self.pieces.finish(out);
            let length = value["done_reason"].as_str().is_some_and(is_length);
            let finish = if length { FinishReason::Length } else { FinishReason::Stop };
            // Ollama does not report how much of the prompt it reused.
            let counts = Counts {
                prompt: count(&value["prompt_eval_count"]),
                cached: 0,
                completion: count(&value["eval_count"]),
            };
            out.extend([Piece::End(End { finish, counts })]);
        }
        Ok(())
    }
}
