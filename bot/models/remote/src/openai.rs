//! OpenAI's chat completions, streamed, with the extensions of `llama-server`.
//! <https://platform.openai.com/docs/api-reference/chat-streaming>

use std::collections::BTreeSet;

use azera_model_api::{ChatRequest, FinishReason, Grammar};
use serde_json::{Value, json};

use crate::Api;
use crate::chat::most_tokens;
use crate::halves::without_lone_surrogates;
use crate::sse::Events;
use crate::wire::{Counts, End, Piece, Pieces, UNEXPECTED, WireError, count, is_length, malformed, number, parse};

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
        "max_tokens": most_tokens(api, request),
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
            fields.insert("max_completion_tokens".into(), most_tokens(api, request).into());
        }
    }
    body
}

/// The fields in which servers send thinking. Each server uses one of them.
const THINKING: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// The parser of a stream of chat completion chunks. It also reads a whole chat completion, and JSON objects one after
/// another, because some servers answer with these although a stream of events was requested.
#[derive(Default)]
pub(crate) struct Parser {
    events: Events,
    /// The text so far of an answer that is no stream of events.
    json: Option<String>,
    pieces: Pieces,
    /// True if there was any text.
    spoke: bool,
    finish: Option<FinishReason>,
    counts: Counts,
    cached: Option<usize>,
    done: bool,
}

impl Parser {
    pub(crate) fn line(&mut self, line: &str, out: &mut impl Extend<Piece>) -> Result<(), WireError> {
        if self.json.is_none() && self.events.is_new() && line.starts_with(['{', '[']) {
            self.json = Some(String::new());
        }
        if let Some(json) = &mut self.json {
            json.push_str(line);
            json.push('\n');
            return Ok(());
        }
        match self.events.line(line) {
            Some(data) => self.event(&data, out),
            None => Ok(()),
        }
    }

    /// Ends the stream. Some servers send no `[DONE]`, and some no `finish_reason`; a reply with text is complete then.
    pub(crate) fn end(&mut self, out: &mut impl Extend<Piece>) -> Result<(), WireError> {
        if let Some(data) = self.events.rest() {
            self.event(&data, out)?;
        }
        if let Some(json) = self.json.take() {
            let json = without_lone_surrogates(&json);
            for value in serde_json::Deserializer::from_str(&json).into_iter::<Value>() {
                match value.map_err(|error| malformed(&error))? {
                    Value::Array(list) => list.iter().try_for_each(|value| self.chunk(value, out))?,
                    value => self.chunk(&value, out)?,
                }
            }
        }
        if self.finish.is_some() || self.spoke {
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
        self.chunk(&parse(data)?, out)
    }

    fn chunk(&mut self, chunk: &Value, out: &mut impl Extend<Piece>) -> Result<(), WireError> {
        if !chunk["error"].is_null() {
            return Err(WireError::ServerSaid(chunk.clone()));
        }
        // The request asks for one answer, so there is one choice. The chunk with the usage has none.
        let choice = match &chunk["choices"] {
            Value::Null => &Value::Null,
            Value::Array(choices) => choices.first().unwrap_or(&Value::Null),
            _ => return Err(WireError::Malformed(UNEXPECTED.to_owned())),
        };
        let mut message = &choice["delta"];
        // Some servers repeat the whole message beside the last piece.
        if message.is_null() && !self.spoke {
            message = &choice["message"];
        }
        let thinking = THINKING.iter().map(|name| &message[*name]).find(|text| !text.is_null());
        self.spoke |= thinking.is_some_and(|text| self.pieces.push(text, true, out));
        // A refusal is the model's text when it does not answer.
        for name in ["content", "refusal"] {
            self.spoke |= self.pieces.push(&message[name], false, out);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(if is_length(reason) { FinishReason::Length } else { FinishReason::Stop });
        }
        let usage = &chunk["usage"];
        let first = |names: &[&str]| names.iter().find_map(|name| count(&usage[*name]));
        self.counts.prompt = first(&["prompt_tokens", "input_tokens"]).or(self.counts.prompt);
        self.counts.completion = first(&["completion_tokens", "output_tokens"]).or(self.counts.completion);
        // The second name is an extension of `llama-server`.
        let cached =
            count(&usage["prompt_tokens_details"]["cached_tokens"]).or_else(|| count(&chunk["timings"]["cache_n"]));
        self.cached = cached.or(self.cached);
        Ok(())
    }

    fn finish(&mut self, out: &mut impl Extend<Piece>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        self.pieces.finish(out);
        let cached = self.cached.unwrap_or(0).min(self.counts.prompt.unwrap_or(0));
        let finish = self.finish.unwrap_or(FinishReason::Stop);
        out.extend([Piece::End(End { finish, counts: Counts { cached, ..self.counts } })]);
    }
}
