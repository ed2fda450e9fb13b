//! Asks the model for a text, only while nobody waits for an answer, and checks the result.

use std::time::Duration;

use azera_model_api::{ChatMessage, ChatRequest, Grammar, Priority, Sampling};
use azera_prompt::{Writing, form_for};
use azera_types::{MessageId, Text};

use super::flaws::{Flaw, themes, whole_sentences};
use super::prompts::own_words;
use crate::engine::Engine;
use crate::error::Error;
use crate::turn::{any_seed, derived_seed};

/// How often the model is asked for one text.
pub(super) const ATTEMPTS: usize = 4;

/// How often a text is given up for live chat. After that only the inference engine makes it yield.
const MAX_YIELDS: usize = 3;

/// Longest wait for live chat to pause; then the text is postponed.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Maximum length of a lead given to a model, in bytes.
const MAX_LEAD_BYTES: usize = 120;

/// A text to be written.
pub(super) struct DraftRequest<'a> {
    pub(super) messages: Vec<ChatMessage>,
    /// The lines that it is about.
    pub(super) given: &'a str,
    /// Its first words, for models that need them.
    pub(super) lead: String,
    /// The message that the seed of a reproducible text is derived from.
    pub(super) about: &'a MessageId,
    pub(super) attempt: usize,
}

/// A text without flaws.
pub(super) struct Draft {
    pub(super) text: Text,
    pub(super) themes: Vec<String>,
    /// The prompt and the model's name; `None` if no model wrote it.
    pub(super) prompt: Option<Text>,
    pub(super) model: Option<String>,
}

impl Engine {
    /// Returns how to ask the current model for writings.
    pub(super) fn writing_form(&self) -> Writing {
        form_for(&self.model().info().family).writing
    }

    /// Makes one attempt at a text. The inner error names its [`Flaw`].
    pub(super) async fn compose(&self, wanted: DraftRequest<'_>) -> Result<Result<Draft, Flaw>, Error> {
        let model = self.model();
        let form = form_for(&model.info().family).writing;
        let seed = match self.0.config.seed {
            Some(seed) => derived_seed(seed, wanted.about, wanted.attempt),
            None => any_seed(),
        };
        let own = own_words(&wanted.messages);
        let prompt: String =
            wanted.messages.iter().map(|it| format!("[{}]\n{}\n\n", it.role.as_str(), it.content)).collect();
        let request = ChatRequest {
            sampling: Sampling { seed: Some(seed), ..form.sampling.clone() },
            max_tokens: form.tokens,
            stop: vec!["\n\n".to_owned()],
            grammar: form.led.then(|| led_by(&wanted.lead)),
            priority: Priority::Background,
            ..ChatRequest::new(wanted.messages)
        };
        let said = self.ask_quietly(request).await?;
        let text = whole_sentences(&said).unwrap_or_default();
        Ok(themes(text, &own, wanted.given).map(|themes| Draft {
            text: Text::new(text),
            themes,
            prompt: Some(Text::new(prompt.trim_end())),
            model: Some(model.info().name.clone()),
        }))
    }

    /// Asks the model when nobody waits for an answer, and stops as soon as somebody does. An inference engine yields
    /// between two steps, but not every server does, and the stages before a reply's first token need the processor,
    /// too.
    pub(crate) async fn ask_quietly(&self, request: ChatRequest) -> Result<String, Error> {
        let foreground = &self.0.foreground;
        for yields in 0..=MAX_YIELDS {
            let still = tokio::select! {
                () = self.0.stopping.cancelled() => false,
                still = foreground.until_idle(MAX_WAIT) => still,
            };
            if !still {
                return Err(Error::Interrupted);
            }
            let model = self.model();
            let written = async { Ok::<_, Error>(model.chat(request.clone()).await?.collect().await?.0) };
            let busy = async {
                if yields < MAX_YIELDS { foreground.until_busy().await } else { std::future::pending().await }
            };
            tokio::select! {
                biased;
                () = self.0.stopping.cancelled() => return Err(Error::Interrupted),
                () = busy => tracing::debug!("a background request yields to live chat"),
                text = written => return text,
            }
        }
        Err(Error::Interrupted)
    }
}

/// Returns a grammar for one paragraph that begins with `lead`.
fn led_by(lead: &str) -> Grammar {
    let lead = lead.get(..lead.floor_char_boundary(MAX_LEAD_BYTES)).unwrap_or_default();
    let quoted: String = lead.chars().filter(|c| !c.is_control()).fold(String::new(), |mut quoted, c| {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
        quoted
    });
    Grammar::Gbnf(format!("root ::= \"{quoted}\" [^\\n]+"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_is_quoted_in_the_grammar() {
        let Grammar::Gbnf(grammar) = led_by("\"A\\\nnn\" told me") else { panic!("another grammar") };
        assert_eq!(grammar, r#"root ::= "\"A\\nn\" told me" [^\n]+"#);
    }
}
