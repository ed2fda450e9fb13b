//! Asking the model for something to be written, in quiet times alone, until it is worth keeping.

use std::time::Duration;

use azera_model_api::{ChatMessage, ChatRequest, Grammar, Priority, Sampling};
use azera_prompt::{Writing, form_for};
use azera_types::{MessageId, Text};

use super::flaws::{Flaw, themes, whole_sentences};
use super::prompts::own_words;
use crate::engine::Engine;
use crate::error::Error;
use crate::generate::{any_seed, derived_seed};

/// How often the model is asked for one text.
pub(super) const ATTEMPTS: usize = 4;

/// How often a text is given up for somebody who wants an answer. After that only the engine makes it wait.
const GIVE_WAY: usize = 3;

/// How long those who talk hold up what is written; then it is left for another time.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Bytes of a first line given to a model.
const MAX_LEAD_BYTES: usize = 120;

/// What is to be written.
pub(super) struct DraftRequest<'a> {
    pub(super) messages: Vec<ChatMessage>,
    /// What it is about.
    pub(super) given: &'a str,
    /// Its first words, for models that need them.
    pub(super) lead: String,
    /// What the seed of a reproducible text is made of.
    pub(super) about: &'a MessageId,
    pub(super) attempt: usize,
}

/// A text worth keeping.
pub(super) struct Draft {
    pub(super) text: Text,
    pub(super) themes: Vec<String>,
    /// What a model was asked, and which; nothing if none was.
    pub(super) prompt: Option<Text>,
    pub(super) model: Option<String>,
}

impl Engine {
    /// How the present model is asked.
    pub(super) fn writing_form(&self) -> Writing {
        form_for(&self.model().info().family).writing
    }

    /// One attempt at a text; `Err` of a [`Flaw`] if it is not worth keeping.
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

    /// Asks the model when nobody waits for an answer, and stops asking as soon as somebody does: an engine gives way
    /// between two steps, but not every server does, and what comes before a reply's first word needs the processor, too.
    pub(crate) async fn ask_quietly(&self, request: ChatRequest) -> Result<String, Error> {
        let foreground = &self.0.foreground;
        for way in 0..=GIVE_WAY {
            let still = tokio::select! {
                () = self.0.stopping.cancelled() => false,
                still = foreground.until_idle(LONGEST_WAIT) => still,
            };
            if !still {
                return Err(Error::Interrupted);
            }
            let model = self.model();
            let written = async { Ok::<_, Error>(model.chat(request.clone()).await?.collect().await?.0) };
            let stirs =
                async { if way < GIVE_WAY { foreground.until_busy().await } else { std::future::pending().await } };
            tokio::select! {
                biased;
                () = self.0.stopping.cancelled() => return Err(Error::Interrupted),
                () = stirs => tracing::debug!("what is being written gives way"),
                text = written => return text,
            }
        }
        Err(Error::Interrupted)
    }
}

/// One paragraph that begins with these words.
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
    fn first_words_are_quoted() {
        let Grammar::Gbnf(grammar) = led_by("\"A\\\nnn\" told me") else { panic!("another grammar") };
        assert_eq!(grammar, r#"root ::= "\"A\\nn\" told me" [^\n]+"#);
    }
}
