//! OpenAI's chat completions, streamed, with the extensions of `llama-server`.
//! <https://platform.openai.com/docs/api-reference/chat-streaming>

use std::collections::BTreeSet;

use azera_model_api::{ChatRequest, FinishReason, Grammar};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Api;
use crate::sse::Events;
use crate::wire::{Counts, End, Piece, WireError, malformed, number, push_piece};

/// The most stop strings that the API accepts. Only this client checks for further ones.
const MAX_STOPS: usize = 4;

/// Fields that a request can do without. Some models on hosted servers reject some of them, and say which.
pub(crate) const OPTIONAL: [&str; 9] = [
    "max_tokens",
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "stop",
    "stream_options",
    "chat_template_kwargs",
];

/// Returns the request body without the fields in `left_out`.
pub(crate) fn body(api: Api, model: &str, request: &ChatRequest, left_out: &BTreeSet<String>) -> Value {
    let messages: Vec<Value> = request
        .messages
        .iter()
        .map(|message| json!({"role": message.role.as_str(), "content": message.content}))
        .collect();
    let sampling = &request.sampling;
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": request.max_tokens,
        "temperature": number(sampling.temperature),
        "top_p": number(sampling.top_p),
    });
    if let Some(seed) = sampling.seed {
        body["seed"] = seed.into();
    }
    let stops = if api == Api::OpenAi { MAX_STOPS } else { usize::MAX };
    if !request.stop.is_empty() {
        body["stop"] = request.stop.iter().take(stops).cloned().collect();
    }
    match api {
        Api::LlamaCpp => {
            body["top_k"] = sampling.top_k.into();
            body["min_p"] = number(sampling.min_p);
            body["chat_template_kwargs"] = json!({"enable_thinking": request.thinking});
        }
        // This kind of server applies penalties only to the reply, as Azera does.
        _ => {
            for (name, penalty) in
                [("frequency_penalty", sampling.frequency_penalty), ("presence_penalty", sampling.presence_penalty)]
            {
                if penalty != 0.0 {
                    body[name] = number(penalty);
                }
            }
        }
    }
    match &request.grammar {
        Some(Grammar::JsonSchema(schema)) => {
            let schema = json!({"name": "reply", "strict": true, "schema": schema});
            body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
        }
        Some(Grammar::Gbnf(grammar)) => body["grammar"] = grammar.as_str().into(),
        None => {}
    }
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|name, _| !left_out.contains(name));
        // The newer name, which models that reject the older one require.
        if left_out.contains("max_tokens") {
            fields.insert("max_completion_tokens".into(), request.max_tokens.into());
        }
    }
    body
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    timings: Option<Timings>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    /// The model's text when it refuses to answer.
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
    /// Another name for `reasoning_content` on some servers.
    #[serde(default)]
    reasoning: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: usize,
    #[serde(default)]
    completion_tokens: usize,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<usize>,
}

/// The fields that `llama-server` adds to the last chunk.
#[derive(Deserialize)]
struct Timings {
    #[serde(default)]
    cache_n: Option<usize>,
}

/// The parser of a stream of chat completion chunks.
#[derive(Default)]
pub(crate) struct Parser {
    events: Events,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    cached: Option<usize>,
    done: bool,
}

impl Parser {
    pub(crate) fn line(&mut self, line: &str, out: &mut impl Extend<Piece>) -> Result<(), WireError> {
        match self.events.line(line) {
            Some(data) => self.event(&data, out),
            None => Ok(()),
        }
    }

    /// Ends the stream. Some servers omit `[DONE]`; then the reply itself must have ended.
    pub(crate) fn end(&mut self, out: &mut impl Extend<Piece>) -> Result<(), WireError> {
        if let Some(data) = self.events.rest() {
            self.event(&data, out)?;
        }
        if self.finish.is_some() {
            self.finish(out);
        }
        Ok(())
    }

    fn event(&mut self, data: &str, out: &mut impl Extend<Piece>) -> Result<(), WireError> {
        let data = data.trim();
        if data == "[DONE]" {
            self.finish(out);
            return Ok(());
        }
        if data.is_empty() || self.done {
            return Ok(());
        }
        let value: Value = serde_json::from_str(data).map_err(|error| malformed(&error))?;
        if value.get("error").is_some_and(|error| !error.is_null()) {
            return Err(WireError::ServerSaid(value));
        }
        let chunk: Chunk = serde_json::from_value(value).map_err(|error| malformed(&error))?;
        // The request asks for one answer, so there is one choice. The chunk with the usage has none.
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            if let Some(delta) = choice.delta {
                push_piece(delta.reasoning_content.or(delta.reasoning), Piece::Thinking, out);
                push_piece(delta.content, Piece::Content, out);
                push_piece(delta.refusal, Piece::Content, out);
            }
            if let Some(reason) = choice.finish_reason {
                self.finish = Some(if reason == "length" { FinishReason::Length } else { FinishReason::Stop });
            }
        }
        self.cached = chunk.timings.and_then(|timings| timings.cache_n).or(self.cached);
        self.usage = chunk.usage.or(self.usage.take());
        Ok(())
    }

    fn finish(&mut self, out: &mut impl Extend<Piece>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        let counts = self.usage.as_ref().map(|usage| {
            let cached = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
            Counts {
                prompt: usage.prompt_tokens,
                cached: cached.or(self.cached).unwrap_or(0).min(usage.prompt_tokens),
                completion: usage.completion_tokens,
            }
        });
        let finish = self.finish.unwrap_or(FinishReason::Stop);
        out.extend([Piece::End(End { finish, counts })]);
    }
}
