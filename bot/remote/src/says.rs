//! What servers say when they refuse.

use serde_json::Value;

/// Characters of a server's message that are shown.
const MAX_MESSAGE_CHARS: usize = 300;

/// A server's own words about an error, in one of the forms that are in use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Says {
    /// For people; one line, cut to a length.
    pub(crate) message: String,
    /// For programs, as in `model_not_found`.
    pub(crate) code: Option<String>,
    /// The field of the request it is about.
    pub(crate) parameter: Option<String>,
}

impl Says {
    /// Reads the body of an error. `key` is blotted out wherever it stands.
    pub(crate) fn read(body: &[u8], key: Option<&str>) -> Self {
        let text = String::from_utf8_lossy(body);
        match serde_json::from_str(&text) {
            Ok(value) => Self::of(&value, key),
            // Somebody's error page.
            Err(_) => Self { message: tidy(&text, key), ..Self::default() },
        }
    }

    /// Reads an error that stands in a JSON value: `{"error": {"message", "code", "type", "param"}}` as OpenAI has it,
    /// `{"error": "..."}` as Ollama, `{"message"}` and `{"detail"}` as others.
    pub(crate) fn of(value: &Value, key: Option<&str>) -> Self {
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let text = |name: &str| error[name].as_str().map(str::to_owned);
        // Frameworks list what was wrong; beside it they may repeat what was sent, which is left out.
        let listed = || error["detail"].as_array().and_then(|list| list.first()?["msg"].as_str().map(str::to_owned));
        let message = error.as_str().map(str::to_owned);
        let message = message.or_else(|| text("message")).or_else(|| text("detail")).or_else(listed);
        Self {
            message: tidy(&message.unwrap_or_default(), key),
            code: text("code").or_else(|| text("type")),
            parameter: text("param"),
        }
    }

    /// Whether it is about a model that is not there.
    pub(crate) fn is_no_model(&self) -> bool {
        let lower = self.message.to_lowercase();
        self.code.as_deref() == Some("model_not_found")
            || (lower.contains("model") && ["not found", "does not exist", "no such"].iter().any(|w| lower.contains(w)))
    }

    /// Whether it is about a text longer than the model reads. Servers have no common code for it.
    pub(crate) fn is_too_long(&self) -> bool {
        const CODES: [&str; 3] = ["context_length_exceeded", "exceed_context_size_error", "string_above_max_length"];
        const WORDS: [&str; 6] =
            ["context length", "context size", "context window", "maximum context", "too large", "too long"];
        let lower = self.message.to_lowercase();
        self.code.as_deref().is_some_and(|code| CODES.contains(&code)) || WORDS.iter().any(|word| lower.contains(word))
    }

    /// The field of the request that the server does not know or take.
    pub(crate) fn unknown_parameter(&self) -> Option<&str> {
        const CODES: [&str; 3] = ["unsupported_parameter", "unsupported_value", "unknown_parameter"];
        self.code.as_deref().filter(|code| CODES.contains(code))?;
        // `stream_options.include_usage` is about `stream_options`.
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
    use super::*;

    #[test]
    fn messages_of_many_forms() {
        #[track_caller]
        fn check(body: &str, message: &str, code: Option<&str>) {
            let says = Says::read(body.as_bytes(), Some("sk-hush"));
            assert_eq!((says.message.as_str(), says.code.as_deref()), (message, code), "{body}");
        }
        check(r#"{"error":{"message":"bad\nkey sk-hush","code":"invalid"}}"#, "bad key [key]", Some("invalid"));
        check(r#"{"error":"model \"x\" not found"}"#, "model \"x\" not found", None);
        check(r#"{"object":"error","message":"nope","type":"BadRequest"}"#, "nope", Some("BadRequest"));
        check(r#"{"detail":"Not Found"}"#, "Not Found", None);
        check(r#"{"detail":[{"msg":"field required","input":{"messages":"secret"}}]}"#, "field required", None);
        check("<html>\n502  Bad Gateway</html>", "<html> 502 Bad Gateway</html>", None);
        check("", "no reason given", None);
        check(&"é".repeat(400), &("é".repeat(300) + "..."), None);
    }

    #[test]
    fn what_it_is_about() {
        let says = |body: &str| Says::read(body.as_bytes(), None);
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
