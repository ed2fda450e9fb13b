use std::path::Path;
use std::sync::{Arc, PoisonError};

use azera_model_api::Error;
use llama_cpp_2::LlamaStateSeqFlags;
use llama_cpp_2::SeqState;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use crate::lora::LoadedLoras;

/// The sequences of a llama.cpp context: it hands out their ids, and moves evaluated tokens between them.
pub(crate) struct Kv<'m> {
    context: LlamaContext<'m>,
    free: Vec<i32>,
    /// A sequence that is empty between two calls.
    scratch: i32,
    /// The LoRAs under which batches are evaluated.
    lora: Option<Arc<LoadedLoras>>,
}

impl<'m> Kv<'m> {
    /// Takes over a context that was created for `sequences` sequences, at least two.
    pub(crate) fn new(context: LlamaContext<'m>, sequences: i32) -> Self {
        Self { context, free: (1..sequences).rev().collect(), scratch: 0, lora: None }
    }

    /// Returns the number of free sequences.
    pub(crate) fn free_sequences(&self) -> usize {
        self.free.len()
    }

    /// Hands out an empty sequence.
    pub(crate) fn alloc(&mut self) -> Option<i32> {
        self.free.pop()
    }

    /// Frees a sequence and its content.
    pub(crate) fn release(&mut self, sequence: i32) {
        // Only the removal of a part can fail.
        if let Err(error) = self.context.kv_cache_seq_rm(sequence, None, None) {
            tracing::error!(%error, sequence, "cannot empty a sequence");
        }
        self.free.push(sequence);
    }

    /// Keeps only the first `len` tokens of a sequence.
    pub(crate) fn trim(&mut self, sequence: i32, len: usize) -> Result<(), Error> {
        self.context.kv_cache_seq_rm(sequence, Some(position(len)?), None).map_err(|error| engine("trim", &error))
    }

    /// Lets `to` share the first `len` tokens of `from`. They are in memory once.
    pub(crate) fn share(&mut self, from: i32, to: i32, len: usize) -> Result<(), Error> {
        self.copy(from, to, 0, Some(len))
    }

    fn copy(&mut self, from: i32, to: i32, start: usize, end: Option<usize>) -> Result<(), Error> {
        let end = end.map(position).transpose()?;
        self.context.kv_cache_seq_cp(from, to, Some(position(start)?), end).map_err(|error| engine("share", &error))
    }

    /// Copies the evaluated tokens of a sequence from `start` on to main memory.
    pub(crate) fn save_tail(&mut self, sequence: i32, start: usize) -> Result<SeqState, Error> {
        self.copy(sequence, self.scratch, start, None)?;
        let state = self.context.state_seq_get(self.scratch, LlamaStateSeqFlags::empty());
        self.context
            .kv_cache_seq_rm(self.scratch, None, None)
            .map_err(|error| engine("clear the scratch sequence", &error))?;
        state.map_err(|error| engine("save", &error))
    }

    /// Adds saved tokens to a sequence.
    pub(crate) fn load_tail(&mut self, state: &SeqState, sequence: i32) -> Result<(), Error> {
        self.context.state_seq_set(state, self.scratch).map_err(|error| engine("load", &error))?;
        self.copy(self.scratch, sequence, 0, None)?;
        self.context
            .kv_cache_seq_rm(self.scratch, None, None)
            .map_err(|error| engine("clear the scratch sequence", &error))
    }

    /// Writes a sequence to a file.
    pub(crate) fn save_file(&self, path: &Path, sequence: i32, tokens: &[LlamaToken]) -> Result<(), Error> {
        self.context.state_seq_save_file(path, sequence, tokens).map(|_| ()).map_err(|error| engine("write", &error))
    }

    /// Fills an empty sequence from a file of at most `max_tokens` tokens, and returns these.
    pub(crate) fn load_file(
        &mut self,
        path: &Path,
        sequence: i32,
        max_tokens: usize,
    ) -> Result<Vec<LlamaToken>, Error> {
        self.context
            .state_seq_load_file(path, sequence, max_tokens)
            .map(|(tokens, _)| tokens)
            .map_err(|error| engine("read", &error))
    }

    /// Sets the LoRAs for the next batches. llama.cpp rebuilds its graphs with the first batch after each change.
    pub(crate) fn set_loras(&mut self, wanted: Option<&Arc<LoadedLoras>>) -> Result<(), Error> {
        if wanted.map(|wanted| &wanted.key) == self.lora.as_ref().map(|present| &present.key) {
            return Ok(());
        }
        // The last batch may still be running with the LoRAs to be removed.
        self.context.synchronize();
        if let Some(wanted) = wanted {
            let mut lora = wanted.lora.lock().unwrap_or_else(PoisonError::into_inner);
            self.context.lora_adapter_set(&mut lora, wanted.scale).map_err(|error| engine("set LoRAs", &error))?;
        } else if let Some(present) = &self.lora {
            let mut lora = present.lora.lock().unwrap_or_else(PoisonError::into_inner);
            self.context.lora_adapter_remove(&mut lora).map_err(|error| engine("remove LoRAs", &error))?;
        }
        self.lora = wanted.cloned();
        Ok(())
    }

    /// Removes the LoRAs if nobody else uses them any more.
    pub(crate) fn release_unused_loras(&mut self) -> Result<(), Error> {
        match &self.lora {
            Some(present) if Arc::strong_count(present) == 1 => self.set_loras(None),
            _ => Ok(()),
        }
    }

    /// Evaluates a batch.
    pub(crate) fn decode(&mut self, batch: &mut LlamaBatch<'_>) -> Result<(), Error> {
        self.context.decode(batch).map_err(|error| engine("decode", &error))
    }

    /// Returns the logits of the batch's token `index`, which must have requested them.
    pub(crate) fn logits(&self, index: i32) -> &[f32] {
        self.context.get_logits_ith(index)
    }
}

/// Converts a number of tokens to a position.
pub(crate) fn position(len: usize) -> Result<u32, Error> {
    u32::try_from(len).map_err(|_| Error::Engine("a position does not fit".into()))
}

fn engine(doing: &str, error: &dyn std::error::Error) -> Error {
    Error::Engine(format!("llama.cpp could not {doing}: {error}"))
}
