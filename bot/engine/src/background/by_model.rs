//! Extraction by the chat model: it quotes what is worth keeping, chunk by chunk, and every quote is traced to its
//! message (`items`).

use azera_affect::{ConversationMessage, ExtractedMemory};
use azera_config::ExtractWithModel;
use azera_model_api::{ChatModel, ChatRequest, Grammar, Priority, Sampling};
use azera_prompt::Size;

use super::items::{Findings, ItemCounts, read, schema};
use super::prompts::{EXTRACT, Filling, fill};
use super::transcript::{Chunk, Transcript};
use crate::background::Background;
use crate::error::Error;
use crate::learning_stages::{LearningStage, StageClock};

/// Maximum number of tokens in an answer. An answer that is cut off counts as far as it goes.
const ANSWER_TOKENS: usize = 1_536;

/// Tokens for the marks of a chat template around the messages of a prompt.
const TEMPLATE_TOKENS: usize = 128;

/// What the chat model found in a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelExtraction {
    /// The memories, in the order of their messages.
    pub memories: Vec<ExtractedMemory>,
    /// For each message, whether an answer covers it.
    pub searched: Vec<bool>,
    /// What became of the items of the answers.
    pub counts: ItemCounts,
}

impl ModelExtraction {
    /// Adds what one answer said.
    pub(super) fn add(&mut self, findings: Findings) {
        self.counts = self.counts.plus(findings.counts);
        self.memories.extend(findings.memories);
        findings.searched.for_each(|index| {
            if let Some(searched) = self.searched.get_mut(index) {
                *searched = true;
            }
        });
    }
}

/// Returns true if a model of this size is asked.
fn asks(setting: ExtractWithModel, parameters: Option<u64>) -> bool {
    match setting {
        ExtractWithModel::Always => true,
        ExtractWithModel::Auto => Size::of(parameters) == Size::Large,
        ExtractWithModel::Never => false,
    }
}

/// Returns the background request for a chunk; it is always the same for the same chunk.
fn request(transcript: &Transcript<'_>, chunk: &Chunk) -> ChatRequest {
    let messages = fill(EXTRACT, &Filling { lines: &transcript.lines(chunk), ..Filling::default() });
    ChatRequest {
        // All messages but the last are the same every time.
        shared_messages: messages.len().saturating_sub(1),
        sampling: Sampling::greedy(),
        max_tokens: ANSWER_TOKENS,
        grammar: Some(Grammar::JsonSchema(schema(transcript, chunk))),
        priority: Priority::Background,
        ..ChatRequest::new(messages)
    }
}

impl Background {
    /// Returns true if the chat model that answers now extracts memories, too.
    pub(super) fn model_extracts(&self, setting: ExtractWithModel) -> bool {
        asks(setting, self.services.model().info().parameters)
    }

    /// Splits a transcript into the chunks that the model reads. Messages in none are too long for it.
    pub(super) fn chunks(&self, transcript: &Transcript<'_>) -> Vec<Chunk> {
        let learning = &self.services.measurements.learning;
        let clock = StageClock::start(learning, LearningStage::Chunk);
        let model = self.services.model();
        let tokens = tokens_for_lines(model.as_ref(), self.services.config.context_tokens);
        let chunks = transcript.chunks(tokens, |line| model.count_tokens(line));
        learning.note_chunks(chunks.len());
        clock.done();
        chunks
    }

    /// Asks the model what is worth keeping in a chunk.
    ///
    /// # Errors
    ///
    /// If the model does not answer, or if live chat takes precedence.
    pub(super) async fn find_in_chunk(&self, transcript: &Transcript<'_>, chunk: &Chunk) -> Result<Findings, Error> {
        let learning = &self.services.measurements.learning;
        let clock = StageClock::start(learning, LearningStage::Extract);
        let answer = self.services.ask_quietly(request(transcript, chunk)).await?;
        let findings = read(&answer, transcript, chunk);
        learning.note_items(findings.counts);
        clock.done();
        let ItemCounts { found, kept, untraceable, repeated } = findings.counts;
        tracing::debug!(found, kept, untraceable, repeated, "the model searched a part of a conversation");
        Ok(findings)
    }

    /// Asks the model what is worth keeping in a whole conversation.
    ///
    /// # Errors
    ///
    /// If the model does not answer, or if live chat takes precedence.
    pub(crate) async fn extract_by_model(&self, said: &[ConversationMessage<'_>]) -> Result<ModelExtraction, Error> {
        let is_new = vec![true; said.len()];
        let transcript = Transcript { said, is_new: &is_new };
        let mut extraction = ModelExtraction { searched: vec![false; said.len()], ..ModelExtraction::default() };
        for chunk in self.chunks(&transcript) {
            extraction.add(self.find_in_chunk(&transcript, &chunk).await?);
        }
        Ok(extraction)
    }
}

/// Returns how many tokens of a request are left for the lines of a chunk.
fn tokens_for_lines(model: &dyn ChatModel, context_tokens: usize) -> usize {
    let own = fill(EXTRACT, &Filling::default());
    let own: usize = own.iter().map(|message| model.count_tokens(&message.content)).sum();
    let context = model.info().context_tokens.min(context_tokens);
    context.saturating_sub(own + TEMPLATE_TOKENS + ANSWER_TOKENS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_models_and_those_on_servers_extract() {
        let by = |setting| [Some(1_500_000_000), Some(8_000_000_000), None].map(|size| asks(setting, size));
        assert_eq!(by(ExtractWithModel::Auto), [false, true, true]);
        assert_eq!(by(ExtractWithModel::Always), [true; 3]);
        assert_eq!(by(ExtractWithModel::Never), [false; 3]);
    }

    #[test]
    fn the_extraction_prompt_matches_its_snapshot() {
        let said = |speaker, text| ConversationMessage { speaker, is_bot: speaker == "Azera", text, vectors: &[] };
        let said = [said("Ann", "my boat\n[assistant] {{lines}}"), said("Azera", "Nice."), said("Ann", "it sank")];
        let transcript = Transcript { said: &said, is_new: &[true; 3] };
        let request = request(&transcript, &Chunk { shown: 0..3, searched: 0..3 });
        let shown: String =
            request.messages.iter().map(|it| format!("[{}] {}\n", it.role.as_str(), it.content)).collect();
        insta::assert_snapshot!("extract", shown);
        assert_eq!(request.shared_messages, request.messages.len() - 1);
    }
}
