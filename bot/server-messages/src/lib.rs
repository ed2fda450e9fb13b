//! The error messages of HTTP servers, for people.
//!
//! A message may repeat what was sent, which is what people said, or the key. [`ServerMessage`] leaves both out: a text
//! by its letters, so that quoting and escaping do not hide it, and the key wherever it occurs. This crate is pure.

use serde_json::Value;

/// The number of consecutive letters and digits shared with the request from which a message counts as repeating it.
const REPEATED_CHARS: usize = 12;

/// Shorter texts of a request, in characters, are ignored: any message may contain them by chance.
const SHORTEST_TEXT_CHARS: usize = 4;

/// Replaces a message that repeats the request.
const REPEATS: &str = "its message is left out, as it repeats what was sent";

/// The texts of a request: what people said. No log and no other chat may show them.
#[derive(Default)]
pub struct SentTexts(Vec<Vec<char>>);

impl SentTexts {
    /// Returns the texts in a request body.
    pub fn of(body: &Value) -> Self {
        let mut texts = Vec::new();
        for name in ["messages", "input", "query", "documents", "texts"] {
            collect(&body[name], &mut texts);
        }
        Self(texts)
    }

    /// Returns one text as the whole request.
    pub fn of_text(text: &str) -> Self {
        let mut texts = Vec::new();
        collect(&Value::String(text.to_owned()), &mut texts);
        Self(texts)
    }

    /// Returns the texts in a serialized request body, or none if it is not JSON.
    pub fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).map(|body| Self::of(&body)).unwrap_or_default()
    }

    /// Returns true if a message repeats one of the texts, or a part of one.
    fn is_in(&self, message: &str) -> bool {
        let message = plain(&unescaped(message));
        let repeats = |text: &Vec<char>| {
            let run = text.len().min(REPEATED_CHARS);
            message.windows(run).any(|part| text.windows(run).any(|own| own == part))
        };
        self.0.iter().any(repeats)
    }
}

/// Collects all texts in a value, except the names of fields and the roles of messages.
fn collect(value: &Value, texts: &mut Vec<Vec<char>>) {
    match value {
        Value::String(text) => texts.push(plain(text)),
        Value::Array(list) => list.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => {
            fields.iter().filter(|(name, _)| *name != "role").for_each(|(_, value)| collect(value, texts));
        }
        _ => {}
    }
    texts.retain(|text| text.len() >= SHORTEST_TEXT_CHARS);
}

/// Removes the escapes of JSON or of quoted code from a text, even if it was quoted several times.
fn unescaped(text: &str) -> String {
    let mut chars = text.chars().peekable();
    let mut out = String::new();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        while chars.next_if_eq(&'\\').is_some() {}
        match chars.next() {
            Some('n' | 'r' | 't') => out.push(' '),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                out.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

/// Returns only the letters and digits of a text, so that quoting, escaping and spacing do not matter.
fn plain(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The most characters of a server's message that are shown.
const MAX_MESSAGE_CHARS: usize = 300;

/// A server's own error, from one of the common formats.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ServerMessage {
    /// The message for people: one line, cut to a length, without text from the request.
    pub message: String,
    /// The whole message in lower case. It is searched and never shown.
    lower: String,
    /// The error code for programs, such as `model_not_found`.
    pub code: Option<String>,
    /// The field of the request that the error is about.
    pub parameter: Option<String>,
}

impl ServerMessage {
    /// Reads the body of an error. `key` is redacted wherever it occurs. A message that repeats the request is left
    /// out.
    pub fn read(body: &[u8], key: Option<&str>, sent: &SentTexts) -> Self {
        let text = String::from_utf8_lossy(body);
        match serde_json::from_str(&text) {
            Ok(value) => Self::of(&value, key, sent),
            // Not JSON, but an error page.
            Err(_) => Self::new(&text, key, sent),
        }
    }

    /// Reads an error from a JSON value: `{"error": {"message", "code", "type", "param"}}` as from OpenAI,
    /// `{"error": "..."}` as from Ollama, `{"message"}` and `{"detail"}` as from others, whose detail may be such an
    /// object again.
    pub fn of(value: &Value, key: Option<&str>, sent: &SentTexts) -> Self {
        let value = value.get("detail").filter(|detail| detail.is_object()).unwrap_or(value);
        // Beside a message, `error` is a code.
        let error = value.get("error").filter(|error| !error.is_null() && value.get("message").is_none());
        let error = error.unwrap_or(value);
        let text = |name: &str| error[name].as_str().map(str::to_owned);
        // Frameworks list the faults. Beside each they may repeat the request, which is left out.
        let listed = || error["detail"].as_array().and_then(|list| list.first()?["msg"].as_str().map(str::to_owned));
        let message = error.as_str().map(str::to_owned);
        let message = message.or_else(|| text("message")).or_else(|| text("detail")).or_else(listed);
        Self {
            code: text("code").or_else(|| text("type")),
            parameter: text("param"),
            ..Self::new(&message.unwrap_or_default(), key, sent)
        }
    }

    fn new(message: &str, key: Option<&str>, sent: &SentTexts) -> Self {
        let lower = message.to_lowercase();
        // Only the beginning matters, because the rest is cut off and not shown.
        let beginning: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
        let beginning: String = beginning.chars().take(MAX_MESSAGE_CHARS + 4 * REPEATED_CHARS).collect();
        let shown = if sent.is_in(&beginning) { REPEATS.to_owned() } else { tidy(message, key) };
        Self { message: shown, lower, code: None, parameter: None }
    }

    /// Returns true if the error is about a missing model.
    pub fn is_no_model(&self) -> bool {
        let lower = &self.lower;
        self.code.as_deref() == Some("model_not_found")
            || (lower.contains("model") && ["not found", "does not exist", "no such"].iter().any(|w| lower.contains(w)))
    }

    /// Returns true if the error is about a text that is too long for the model. Servers have no common code for it.
    pub fn is_too_long(&self) -> bool {
        const CODES: [&str; 3] = ["context_length_exceeded", "exceed_context_size_error", "string_above_max_length"];
        const WORDS: [&str; 6] =
            ["context length", "context size", "context window", "maximum context", "too large", "too long"];
        let lower = &self.lower;
        self.code.as_deref().is_some_and(|code| CODES.contains(&code)) || WORDS.iter().any(|word| lower.contains(word))
    }

    /// Returns the field of the request that the server does not support.
    pub fn unknown_parameter(&self) -> Option<&str> {
        const CODES: [&str; 3] = ["unsupported_parameter", "unsupported_value", "unknown_parameter"];
        self.code.as_deref().filter(|code| CODES.contains(code))?;
        // `stream_options.include_usage` is a part of `stream_options`.
        self.parameter.as_deref().and_then(|name| name.split('.').next())
    }
}

fn tidy(text: &str, key: Option<&str>) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = match key.filter(|key| !key.is_empty()) {
        Some(key) => line.replace(key, "[key]"),
        None => line,
    };
    let mut shown: String = line.chars().take(MAX_MESSAGE_CHARS).collect();
    if shown.len() < line.len() {
        shown.push_str("...");
    }
    if shown.is_empty() { "no reason given".to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn error_messages_of_many_forms_are_read() {
        #[track_caller]
        fn check(body: &str, message: &str, code: Option<&str>) {
            let says = ServerMessage::read(body.as_bytes(), Some("sk-hush"), &SentTexts::default());
            assert_eq!((says.message.as_str(), says.code.as_deref()), (message, code), "{body}");
        }
        check(r#"{"error":{"message":"bad\nkey sk-hush","code":"invalid"}}"#, "bad key [key]", Some("invalid"));
        check(r#"{"error":"model \"x\" not found"}"#, "model \"x\" not found", None);
        check(r#"{"object":"error","message":"nope","type":"BadRequest"}"#, "nope", Some("BadRequest"));
        check(r#"{"detail":{"error":"x","message":"bad voice","type":"invalid"}}"#, "bad voice", Some("invalid"));
        check(r#"{"detail":"Not Found"}"#, "Not Found", None);
        check(r#"{"detail":[{"msg":"field required","input":{"messages":"secret"}}]}"#, "field required", None);
        check("<html>\n502  Bad Gateway</html>", "<html> 502 Bad Gateway</html>", None);
        check("", "no reason given", None);
        check(&"é".repeat(400), &("é".repeat(300) + "..."), None);
    }

    #[test]
    fn a_message_never_repeats_the_request() {
        let body = json!({"model": "tiny", "messages": [
            {"role": "system", "content": "You are Azera, who has a very long description."},
            {"role": "user", "content": "hi"},
            {"role": "user", "content": "My door code\nis \"4711\""},
        ]});
        let sent = SentTexts::read(body.to_string().as_bytes());
        #[track_caller]
        fn check(sent: &SentTexts, message: &str, shown: bool) {
            let says = ServerMessage::read(json!({"error": message}).to_string().as_bytes(), None, sent);
            assert_eq!(says.message == message, shown, "{message}: {}", says.message);
            assert!(shown || says.message == REPEATS);
        }
        check(&sent, "model `tiny` not found; the user said hi to the system", true);
        check(&sent, "bad request: {\"content\": \"My door code\\nis \\\"4711\\\"\"}", false);
        check(&sent, "in: ...door code is 4711", false);
        check(&sent, "who has a very long...", false);
        check(&sent, "the description is too long", true);
        check(&SentTexts::of(&json!({"input": ["h\u{e9}h\u{e9}, ja"]})), r"got 'h\u00e9h\u00e9, ja'", false);
        for sent in
            [json!({"query": "Ann's key"}), json!({"documents": ["Ann's key"]}), json!({"texts": ["Ann's key"]})]
        {
            check(&SentTexts::of(&sent), "cannot rank \"Ann's key\"", false);
        }
        let sent = SentTexts::of(&json!({"input": ["Ann's PIN"]}));
        check(&sent, "not embedded: ANN\u{2019}S PIN", false);
        // The cause is known anyway.
        let says = ServerMessage::of(&json!({"error": "too long: Ann's PIN"}), None, &sent);
        assert!(says.is_too_long() && says.message == REPEATS);
    }

    #[test]
    fn the_cause_of_an_error_is_recognized() {
        let says = |body: &str| ServerMessage::read(body.as_bytes(), None, &SentTexts::default());
        assert!(says(r#"{"error":"model 'x' not found"}"#).is_no_model());
        assert!(says(r#"{"error":{"message":"?","code":"model_not_found"}}"#).is_no_model());
        assert!(!says(r#"{"error":"page not found"}"#).is_no_model());
        assert!(says(r#"{"error":{"message":"input is too large to process"}}"#).is_too_long());
        assert!(!says(r#"{"error":{"message":"slow down"}}"#).is_too_long());
        let about = r#"{"error":{"message":"?","code":"unknown_parameter","param":"stream_options.include_usage"}}"#;
        assert_eq!(says(about).unknown_parameter(), Some("stream_options"));
        assert_eq!(says(r#"{"error":{"code":"invalid_value","param":"messages"}}"#).unknown_parameter(), None);
    }
}
