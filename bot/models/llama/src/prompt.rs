use std::fmt;

use azera_model_api::{ChatMessage, Error, Role};
use data_encoding::HEXLOWER;
use llama_cpp_2::token::LlamaToken;
use sha2::{Digest, Sha256};

use crate::lora::LoraSetKey;
use crate::template::{ChatTemplate, Part};
use crate::tokenizer::Tokenizer;

/// A shared prefix with fewer tokens is not worth a sequence of its own.
pub const MIN_SHARED_TOKENS: usize = 32;

/// Changes whenever evaluated tokens of one version cannot be read by another: the version of llama.cpp's crate, and
/// that of the files written here.
pub(crate) const STATE_FORMAT: &str = "llama-cpp-2 0.1.160, file 1";

/// Identifies an evaluated prefix: the model and its LoRAs, the format of its state, and its tokens.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PrefixKey([u8; 32]);

impl PrefixKey {
    pub(crate) fn new(state_identity: &str, set: Option<&LoraSetKey>, tokens: &[LlamaToken]) -> Self {
        let mut hasher = Sha256::new();
        for part in [STATE_FORMAT, state_identity] {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part);
        }
        for token in tokens {
            hasher.update(token.0.to_le_bytes());
        }
        // This value is no token of any vocabulary, so no sequence of tokens gives the same input.
        if let Some(set) = set {
            hasher.update(i32::MIN.to_le_bytes());
            hasher.update(set.digest());
        }
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for PrefixKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for PrefixKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The part of a prompt with which many conversations begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared {
    pub(crate) key: PrefixKey,
    pub(crate) len: usize,
}

/// A prompt as tokens.
pub(crate) struct Prompt {
    pub(crate) tokens: Vec<LlamaToken>,
    pub(crate) shared: Option<Shared>,
    /// True if the prompt ends inside a thinking block.
    pub(crate) inside_thinking: bool,
}

/// Converts messages to tokens with the model's template.
#[derive(Debug)]
pub(crate) struct PromptTokenizer {
    pub(crate) template: ChatTemplate,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) state_identity: String,
}

/// The parts of a request that determine its prompt.
pub(crate) struct PromptRequest<'a> {
    pub(crate) messages: &'a [ChatMessage],
    pub(crate) shared_messages: usize,
    pub(crate) thinking: bool,
    /// True if a thinking model must think first, because a grammar constrains the reply.
    pub(crate) must_think: bool,
    /// True if the prompt ends with the last message's content, so that the model can continue it.
    pub(crate) within: bool,
    /// The LoRAs under which the prompt is evaluated.
    pub(crate) set: Option<&'a LoraSetKey>,
}

impl PromptTokenizer {
    pub(crate) fn prompt(&self, request: &PromptRequest<'_>) -> Result<Prompt, Error> {
        if request.messages.is_empty() {
            return Err(Error::Invalid("there are no messages".into()));
        }
        let last_shared = match request.shared_messages {
            0 => None,
            n if n <= request.messages.len() => Some(n - 1),
            n => return Err(Error::Invalid(format!("{n} of {} messages are shared", request.messages.len()))),
        };
        let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
        let rendered = self
            .template
            .render(&roles, request.thinking, request.must_think)
            .map_err(|error| Error::Invalid(format!("the chat template refuses these messages: {error}")))?;
        let mut tokens = Vec::new();
        let mut shared_len = 0;
        for part in &rendered.parts {
            match part {
                Part::Markup(text) => tokens.extend(self.tokenizer.markup(text)),
                Part::Content(i) => {
                    if let Some(message) = request.messages.get(*i) {
                        tokens.extend(self.tokenizer.content(&message.content));
                    }
                    if last_shared == Some(*i) {
                        shared_len = tokens.len();
                    }
                    if request.within && i + 1 == request.messages.len() {
                        break;
                    }
                }
            }
        }
        if let Some(begin) = self.tokenizer.begin().filter(|begin| tokens.first() != Some(begin)) {
            tokens.insert(0, begin);
            shared_len += usize::from(shared_len > 0);
        }
        let shared = tokens
            .get(..shared_len)
            .filter(|shared| shared.len() >= MIN_SHARED_TOKENS)
            .map(|shared| Shared { key: PrefixKey::new(&self.state_identity, request.set, shared), len: shared_len });
        Ok(Prompt { tokens, shared, inside_thinking: rendered.inside_thinking })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_format_names_the_crates_version() {
        let lock = include_str!("../../../../Cargo.lock");
        let version = STATE_FORMAT.split([' ', ',']).nth(1).unwrap();
        assert!(
            lock.contains(&format!("name = \"llama-cpp-2\"\nversion = \"{version}\"")),
            "llama-cpp-2 is no longer {version}: bring STATE_FORMAT up to date"
        );
    }
}
