//! Models that see, on servers with OpenAI's interface for chat: llama-server with a projector, Ollama, vLLM and others.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use azera_breaker::{Breaker, Limits};
use azera_model_image::{MAX_DESCRIPTION_CHARS, Picture, PictureLimits, SeeError, Verdict, Viewer, decode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Client, RequestBuilder, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::address::{cause, checked, client};
use crate::config::Secret;

/// What the model is asked.
const QUESTION: &str = "Describe what this picture shows in one to three short sentences, for somebody who cannot see \
                        it. Quote text that can be read in it. Do not say who a person is.";

/// What the model is asked about a picture before people see it. It holds no answer that passes: a model that repeats
/// the question says nothing.
const JUDGING: &str = "Look at this picture and answer two questions in exactly one line of this form, and write \
                       nothing else: `sexual: ANSWER, minor: ANSWER`. Each ANSWER is one word, yes or no. sexual: \
                       does it show a naked or nearly naked person, or anything sexual? minor: does it show somebody \
                       who is, or looks, younger than 18? If you are not sure, the answer is yes.";

/// The longer side of the picture that is sent, in pixels. Common models see no more.
const SIDE: u32 = 1_024;

/// The most tokens of an answer. Servers with room for few refuse to be asked for many, and a model that rambles ends.
const MAX_TOKENS: u32 = 200;

/// The most tokens in addition, of a model that was cut before it answered: it thinks first.
const MAX_THOUGHTS: u32 = 4_000;

/// The largest answer, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// A server with a model that sees.
#[derive(Debug, Clone)]
pub struct VisionConfig {
    /// The address with its path, such as `http://127.0.0.1:8080/v1`.
    pub url: String,
    /// The model's name; empty for a server with one model.
    pub model: String,
    /// The key, if the server requires one.
    pub key: Option<Secret>,
    /// The longest wait for a description.
    pub timeout: Duration,
}

/// The client of such a server.
pub struct VisionServer {
    http: Client,
    base: Url,
    config: VisionConfig,
    breaker: Breaker,
}

#[derive(Deserialize)]
struct Answer {
    choices: Vec<AnswerChoice>,
}

#[derive(Deserialize)]
struct AnswerChoice {
    message: AnswerMessage,
    /// Why the answer ends; `length` if it was cut.
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct AnswerMessage {
    /// Missing from some servers while the model still thinks.
    #[serde(default)]
    content: Value,
}

/// What a model said.
#[derive(Default)]
struct Said {
    text: String,
    /// Whether it was cut at the most tokens.
    is_cut: bool,
}

impl Said {
    fn of(choice: &AnswerChoice) -> Self {
        Self { text: words(&choice.message.content), is_cut: choice.finish_reason.as_deref() == Some("length") }
    }
}

impl VisionServer {
    /// Makes the client. Sends nothing yet.
    ///
    /// # Errors
    /// [`SeeError::Configuration`] says which setting is wrong.
    pub fn new(config: VisionConfig) -> Result<Self, SeeError> {
        let base = checked("vision_server", &config.url, config.key.as_ref()).map_err(SeeError::Configuration)?;
        let http = client(CONNECT).map_err(SeeError::Configuration)?;
        Ok(Self { http, base, config, breaker: Breaker::new(Limits::default()) })
    }

    /// Returns the server's name for people.
    pub fn name(&self) -> String {
        format!("the vision server at {}", self.base.as_str().trim_end_matches('/'))
    }

    /// Asks the server for its models, to see whether it answers.
    ///
    /// # Errors
    /// [`SeeError`] says why it does not.
    pub async fn check(&self) -> Result<(), SeeError> {
        self.ask(self.http.get(format!("{}models", self.base))).await.map(drop)
    }

    fn body(&self, question: &str, jpeg: &[u8], max_tokens: u32) -> Value {
        let picture = format!("data:image/jpeg;base64,{}", STANDARD.encode(jpeg));
        let content = json!([
            {"type": "text", "text": question},
            {"type": "image_url", "image_url": {"url": picture}},
        ]);
        let mut body = json!({
            "messages": [{"role": "user", "content": content}],
            "max_tokens": max_tokens,
            "temperature": 0.2,
            "stream": false,
        });
        if !self.config.model.is_empty() {
            body["model"] = json!(self.config.model);
        }
        body
    }

    /// Sends a request and returns the answer's body. Neither the address nor the picture stands in an error.
    async fn ask(&self, request: RequestBuilder) -> Result<Vec<u8>, SeeError> {
        let request = match &self.config.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        };
        let answer = timeout(self.config.timeout, async {
            let mut response = request.send().await.map_err(|error| self.broken(error))?;
            let status = response.status();
            if !status.is_success() {
                return Err(self.refusal(status.as_u16()));
            }
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(error))? {
                if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                    return Err(self.unexpected("it sent more than the limit"));
                }
                body.extend_from_slice(&chunk);
            }
            Ok(body)
        });
        let wait = self.config.timeout.as_secs();
        let late = || SeeError::Unavailable(format!("{} did not answer within {wait} s", self.name()));
        answer.await.unwrap_or_else(|_| Err(late()))
    }

    fn broken(&self, error: reqwest::Error) -> SeeError {
        let what = if error.is_connect() { "cannot be reached" } else { "broke off" };
        SeeError::Unavailable(format!("{} {what} ({})", self.name(), cause(error)))
    }

    fn refusal(&self, code: u16) -> SeeError {
        let name = self.name();
        match code {
            401 | 403 => SeeError::Configuration(format!("{name} refuses the key; set AZERA__VISION_SERVER__KEY")),
            404 | 405 => SeeError::Configuration(format!("{name} has no such path or model; check vision_server")),
            408 | 425 | 429 => SeeError::Unavailable(format!("{name} is busy (status {code})")),
            400..500 => SeeError::Unclear(format!("{name} refused a picture (status {code}); does its model see?")),
            _ => SeeError::Unavailable(format!("{name} cannot answer now (status {code})")),
        }
    }

    fn unexpected(&self, reason: &str) -> SeeError {
        SeeError::Unclear(format!("{} sent an unexpected answer: {reason}", self.name()))
    }
}

impl VisionServer {
    /// Asks the model about a picture. Returns what it said. If it was cut before its answer, it is asked once more, with
    /// room for thoughts.
    async fn said(&self, question: &str, file: Vec<u8>, is_answer: fn(&Said) -> bool) -> Result<Said, SeeError> {
        // Only pixels go to the server: no place and time that a camera wrote into the file.
        let small = |file: Vec<u8>| Picture::read(&file, &PictureLimits::of_photos())?.thumbnail(SIDE).to_jpeg();
        let small = decode(file, small).await;
        let jpeg = small.ok_or_else(|| SeeError::Unreadable("the picture could not be read".into()))?;
        let jpeg = jpeg.map_err(|error| SeeError::Unreadable(error.to_string()))?;
        let said = self.answer(&self.body(question, &jpeg, MAX_TOKENS)).await?;
        if !said.is_cut || is_answer(&said) {
            return Ok(said);
        }
        match self.answer(&self.body(question, &jpeg, MAX_TOKENS + MAX_THOUGHTS)).await {
            // A server with room for few tokens refuses that.
            Err(SeeError::Unclear(_)) => Ok(said),
            answer => answer,
        }
    }

    /// Sends a question, unless the server failed too often. Returns what the model said.
    async fn answer(&self, body: &Value) -> Result<Said, SeeError> {
        let permit = self.breaker.admit(Instant::now()).map_err(|_| {
            SeeError::Unavailable(format!("{} failed several times and is left alone for a while", self.name()))
        })?;
        let post = self.http.post(format!("{}chat/completions", self.base)).json(body);
        let answer = match self.ask(post).await {
            Ok(answer) => answer,
            // It answers, and others may fare better.
            Err(error @ SeeError::Unclear(_)) => {
                permit.succeeded();
                return Err(error);
            }
            Err(error) => {
                permit.failed(Instant::now());
                return Err(error);
            }
        };
        permit.succeeded();
        let answer: Answer =
            serde_json::from_slice(&answer).map_err(|_| self.unexpected("the JSON has an unexpected structure"))?;
        Ok(answer.choices.first().map(Said::of).unwrap_or_default())
    }
}

#[async_trait]
impl Viewer for VisionServer {
    fn max_bytes(&self) -> u64 {
        PictureLimits::default().max_bytes as u64
    }

    async fn describe(&self, file: Vec<u8>) -> Result<String, SeeError> {
        let line = one_line(&self.said(QUESTION, file, |said| !one_line(&said.text).is_empty()).await?.text);
        if line.is_empty() { Err(self.unexpected("it said nothing")) } else { Ok(line) }
    }

    async fn judge(&self, file: Vec<u8>) -> Result<Verdict, SeeError> {
        // Half an answer is none.
        let said = self.said(JUDGING, file, |_| false).await?;
        let verdict = if said.is_cut { None } else { verdict(&said.text) };
        verdict.ok_or_else(|| self.unexpected("it did not say whether the picture may be shown"))
    }
}

/// Reads `sexual: yes, minor: no`. Nothing else may be said: a word more may turn the answer around.
fn verdict(said: &str) -> Option<Verdict> {
    let answer = without_thoughts(said)?.to_lowercase();
    let words: Vec<&str> = answer.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let yes = |word: &str| match word {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    };
    match words[..] {
        ["sexual", sexual, "minor", minor] => Some(Verdict { is_sexual: yes(sexual)?, has_minor: yes(minor)? }),
        _ => None,
    }
}

/// Returns what a model said after its thoughts; `None` if they do not end.
fn without_thoughts(said: &str) -> Option<&str> {
    let said = said.rsplit_once("</think>").map_or(said, |(_, answer)| answer);
    (!said.trim_start().starts_with("<think>")).then_some(said)
}

/// Returns the text of a message's content: a text, or a list of parts.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    }
}

/// Returns a description as one line, without what the model thought before it.
fn one_line(said: &str) -> String {
    let said = without_thoughts(said).unwrap_or_default();
    let line = said.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = line.collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_DESCRIPTION_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_one_line_without_thoughts() {
        assert_eq!(one_line("<think>a cat?</think>\n A cat\tsleeps.\n\nIt is grey. "), "A cat sleeps. It is grey.");
        assert_eq!(words(&json!([{"type": "text", "text": "A"}, {"type": "text", "text": "cat"}])), "A cat");
        assert_eq!(one_line(&"é".repeat(2_000)).chars().count(), MAX_DESCRIPTION_CHARS);
        assert_eq!(words(&Value::Null), "");
        assert_eq!(one_line("<think>a cat, or"), "");
    }

    #[test]
    fn only_two_clear_answers_are_a_verdict() {
        let says = |is_sexual, has_minor| Some(Verdict { is_sexual, has_minor });
        assert_eq!(verdict("sexual: no, minor: no"), says(false, false));
        assert_eq!(verdict("**Sexual**: Yes. **Minor**: No."), says(true, false));
        assert_eq!(verdict("sexual=no; minor=yes"), says(false, true));
        assert_eq!(verdict("<think>sexual: no, minor: no?</think>\nsexual: yes, minor: yes"), says(true, true));
        for unclear in [
            "",
            "no",
            "no, no",
            "sexual: no",
            "minor: no",
            "minor: no, sexual: no",
            "sexual: unsure, minor: no",
            "I cannot help with that.",
            "sexual: ANSWER, minor: ANSWER",
            "sexual: no clothes, minor: no",
            "sexual: no, minor: no, but sexual: perhaps",
            "sexual: no, minor: no, sexual: yes",
            "Not sexual: no, minor: no",
            "<think>Say something like \"sexual: no, minor: no\". I see",
            "<think>sexual: no, minor: no",
            "</think><think>sexual: no, minor: no",
        ] {
            assert_eq!(verdict(unclear), None, "{unclear}");
        }
    }
}
