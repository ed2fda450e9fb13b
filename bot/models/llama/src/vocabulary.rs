use std::fmt;
use std::path::Path;
use std::sync::Arc;

use azera_model_api::{ChatMessage, Error};

use crate::backend;
use crate::chat::template;
use crate::config::Dates;
use crate::prompt::{PromptRequest, PromptTokenizer};
use crate::tokenizer::Tokenizer;

/// A model's vocabulary and chat template without its weights. It tokenizes texts as the model would.
pub struct LlamaVocabulary {
    prompter: PromptTokenizer,
    end: u32,
}

impl LlamaVocabulary {
    /// Reads the vocabulary and the template of a GGUF file.
    ///
    /// # Errors
    /// [`Error::Load`] if the file cannot be read as a chat model.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let model = Arc::new(backend::vocabulary(path)?);
        let end = number(model.vocab().eos().0)?;
        let prompter = PromptTokenizer {
            // A lesson should teach no day.
            template: template(&model, Dates::default())?,
            tokenizer: Tokenizer::new(Arc::clone(&model)),
            state_identity: String::new(),
        };
        Ok(Self { prompter, end })
    }

    /// Returns the tokens of a prompt, its reply and the end token, and the index at which the reply begins. The engine
    /// makes the same tokens of the same messages, except that a template names no day here.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the model's template rejects the messages.
    pub fn exchange(&self, messages: &[ChatMessage], reply: &str) -> Result<(Vec<u32>, usize), Error> {
        let mut tokens = self.tokens(messages, false)?;
        let start = tokens.len();
        tokens.extend(self.text(reply)?);
        tokens.push(self.end);
        Ok((tokens, start))
    }

    /// Returns the tokens of messages up to the end of the last one's content, which ends with `words`, and the index
    /// at which those begin.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the model's template rejects the messages, or if the last one does not end with `words`.
    pub fn within(&self, messages: &[ChatMessage], words: &str) -> Result<(Vec<u32>, usize), Error> {
        let mut messages = messages.to_vec();
        let last = messages.last_mut();
        let before = last.as_ref().and_then(|last| last.content.strip_suffix(words)).map(str::to_owned);
        let (Some(last), Some(before)) = (last, before) else {
            return Err(Error::Invalid("the last message does not end with these words".into()));
        };
        last.content = before;
        let mut tokens = self.tokens(&messages, true)?;
        let start = tokens.len();
        tokens.extend(self.text(words)?);
        Ok((tokens, start))
    }

    fn tokens(&self, messages: &[ChatMessage], within: bool) -> Result<Vec<u32>, Error> {
        let request =
            PromptRequest { messages, shared_messages: 0, thinking: false, must_think: false, within, set: None };
        self.prompter.prompt(&request)?.tokens.iter().map(|token| number(token.0)).collect()
    }

    /// Returns the tokens of plain text.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the vocabulary returns an invalid token.
    pub fn text(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.prompter.tokenizer.content(text).iter().map(|token| number(token.0)).collect()
    }
}

impl fmt::Debug for LlamaVocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlamaVocabulary").finish_non_exhaustive()
    }
}

fn number(token: i32) -> Result<u32, Error> {
    u32::try_from(token).map_err(|_| Error::Invalid("the vocabulary has no such token".into()))
}
