//! Asks the model for a text, only while nobody waits for an answer, and checks the result.

use azera_model_api::{ChatMessage, ChatRequest, Grammar, Priority, Sampling};
use azera_prompt::{Writing, form_of};
use azera_types::{MessageId, Text};

use super::flaws::{Flaw, themes, whole_sentences};
use super::prompts::own_words;
use crate::background::Background;
use crate::error::Error;
use crate::turn::{any_seed, derived_seed};

/// How often the model is asked for one text.
pub(super) const ATTEMPTS: usize = 4;

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

impl Draft {
    /// Returns the text with further lines below it, as they stand.
    pub(super) fn followed_by(self, lines: &str) -> Self {
        if lines.is_empty() {
            return self;
        }
        Self { text: Text::new(format!("{}\n\n{lines}", self.text.as_str())), ..self }
    }
}

impl Background {
    /// Returns how to ask the current model for writings.
    pub(super) fn writing_form(&self) -> Writing {
        form_of(self.services.model().info()).writing
    }

    /// Makes one attempt at a text. The inner error names its [`Flaw`].
    pub(super) async fn compose(&self, wanted: DraftRequest<'_>) -> Result<Result<Draft, Flaw>, Error> {
        let model = self.services.model();
        let form = form_of(model.info()).writing;
        let seed = match self.services.config.seed {
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
            grammar: (form.led && model.takes_gbnf()).then(|| led_by(&wanted.lead)),
            priority: Priority::Background,
            ..ChatRequest::new(wanted.messages)
        };
        let said = self.services.ask_quietly(request).await?;
        let text = whole_sentences(&said).unwrap_or_default();
        Ok(themes(text, &own, wanted.given).map(|themes| Draft {
            text: Text::new(text),
            themes,
            prompt: Some(Text::new(prompt.trim_end())),
            model: Some(model.info().name.clone()),
        }))
    }
}

/// Returns a grammar for a text that begins with `lead`, or with as much of it as a grammar may hold.
fn led_by(lead: &str) -> Grammar {
    Grammar::paragraph(lead.get(..lead.floor_char_boundary(MAX_LEAD_BYTES)).unwrap_or_default())
}
