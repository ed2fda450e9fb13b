use std::fmt;
use std::path::Path;
use std::sync::Arc;

use azera_model::{ChatMessage, Error};

use crate::backend;
use crate::chat::template;
use crate::prompt::{PromptRequest, Prompter};
use crate::tokenizer::Tokenizer;

/// A model's vocabulary and chat template without its weights: how it would read something.
pub struct LlamaReader {
    prompter: Prompter,
    end: u32,
}

impl LlamaReader {
    /// Reads the vocabulary and the template of a GGUF file.
    ///
    /// # Errors
    /// [`Error::Load`] when the file cannot be read as a chat model.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let model = Arc::new(backend::vocabulary(path)?);
        let end = number(model.vocab().eos().0)?;
        let prompter = Prompter {
            template: template(&model)?,
            tokenizer: Tokenizer::new(Arc::clone(&model)),
            model_identity: String::new(),
        };
        Ok(Self { prompter, end })
    }

    /// The tokens of a prompt with its reply and the token that ends it, and where the reply begins: those the engine makes
    /// of the same messages.
    ///
    /// # Errors
    /// [`Error::Invalid`] for messages that the model's template refuses.
    pub fn exchange(&self, messages: &[ChatMessage], reply: &str) -> Result<(Vec<u32>, usize), Error> {
        let request = PromptRequest {
            messages,
            shared_messages: 0,
            thinking: false,
            must_think: false,
            within: false,
            set: None,
        };
        let prompt = self.prompter.prompt(&request)?;
        let mut tokens = prompt.tokens.iter().map(|token| number(token.0)).collect::<Result<Vec<_>, _>>()?;
        let start = tokens.len();
        tokens.extend(self.text(reply)?);
        tokens.push(self.end);
        Ok((tokens, start))
    }

    /// The tokens of plain text.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the vocabulary gives what is no token.
    pub fn text(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.prompter.tokenizer.content(text).iter().map(|token| number(token.0)).collect()
    }
}

impl fmt::Debug for LlamaReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlamaReader").finish_non_exhaustive()
    }
}

fn number(token: i32) -> Result<u32, Error> {
    u32::try_from(token).map_err(|_| Error::Invalid("the vocabulary has no such token".into()))
}
