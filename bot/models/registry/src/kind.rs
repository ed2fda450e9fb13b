//! What a model is for, and the format of its file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The purpose of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Writes replies.
    Chat,
    /// Turns text into vectors.
    Embedding,
    /// Recognises speech.
    Speech,
    /// Speaks text.
    Voice,
    /// Tells speech from other sounds.
    Vad,
    /// Reads a question and a text together, and tells how well the text answers (a cross-encoder).
    Reranker,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Chat, Self::Embedding, Self::Speech, Self::Voice, Self::Vad, Self::Reranker];

    /// Returns true if everything works without a model of this kind. There is no default for it: an installed one is
    /// used.
    pub fn is_optional(self) -> bool {
        self == Self::Reranker
    }

    /// Returns the format of the kind's model files.
    pub(crate) fn format(self) -> Format {
        match self {
            Self::Chat | Self::Embedding | Self::Speech | Self::Reranker => Format::Gguf,
            Self::Voice | Self::Vad => Format::Onnx,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Chat => "chat",
            Self::Embedding => "embedding",
            Self::Speech => "speech",
            Self::Voice => "voice",
            Self::Vad => "vad",
            Self::Reranker => "reranker",
        })
    }
}

/// The format of a model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// What llama.cpp reads.
    Gguf,
    /// What ONNX runtimes read.
    Onnx,
}

impl Format {
    /// Returns the name of the model file in its folder.
    pub(crate) fn file_name(self) -> &'static str {
        match self {
            Self::Gguf => "model.gguf",
            Self::Onnx => "model.onnx",
        }
    }
}
