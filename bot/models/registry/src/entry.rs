//! The registry's entry for a model.

use serde::{Deserialize, Serialize};

use crate::{
    bundled::BundledLora,
    error::Error,
    kind::{Format, Kind},
    source::{Convert, Source},
};

/// The longest name of a model, in bytes.
pub const MAX_NAME_BYTES: usize = 64;
/// The most sources in one entry.
pub const MAX_SOURCES: usize = 8;
/// The most voices in one model.
const MAX_VOICES: usize = 100;

/// Models that need the same form of prompt. The prompt forms are in the prompt crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// SmolLM2 instruct models.
    Smollm2,
    /// Qwen2 and Qwen2.5 instruct models.
    Qwen2,
    /// Qwen3 chat models and later ones, with their thinking blocks.
    Qwen3,
    /// Llama 3 instruct models.
    Llama3,
    /// Gemma instruct models: 2, 3, 3n and 4.
    Gemma3,
    /// Mistral instruct models.
    Mistral,
    /// MiniLM sentence encoders and similar ones.
    Minilm,
    /// Qwen3 embedding models, which need an instruction before a query.
    Qwen3Embedding,
    /// Whisper speech recognisers.
    Whisper,
    /// All others: their own chat template, or plain text.
    Generic,
}

/// How token vectors are pooled into one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// The mean over all tokens.
    Mean,
    /// The first token.
    Cls,
    /// The last token.
    Last,
}

/// The parameters of an embedding model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// The number of components in a vector.
    pub dimension: u32,
    /// The cosine similarity below which texts are unrelated. It is calibrated for each model.
    pub similarity_floor: f32,
    /// The most tokens that the model reads of a text; the rest is cut off.
    pub max_tokens: u32,
    /// How token vectors are pooled.
    pub pooling: Pooling,
    /// The prefix of a query; empty for models without one.
    #[serde(default)]
    pub query_prefix: String,
    /// The prefix of a stored text; empty for models without one.
    #[serde(default)]
    pub document_prefix: String,
}

/// One model of the registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// The short name, which is also the name of the model's folder.
    pub name: String,
    /// The purpose.
    pub kind: Kind,
    /// The family, which decides the form of prompts.
    pub family: Family,
    /// The full name.
    pub title: String,
    /// The facts that a person needs to choose the model.
    pub description: String,
    /// The number of weights.
    pub parameters: u64,
    /// The memory for running the model with a modest context, in MiB. On a GPU this is GPU memory.
    pub ram_mib: u64,
    /// The approximate size of the download in MiB, for people. It is used if no exact size is known.
    pub download_mib: u64,
    /// The licence, as an SPDX identifier if there is one.
    pub licence: String,
    /// The context length of the training, in tokens. Models of speech have none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub context_length: u32,
    /// True if this model is used when nobody chose another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
    /// True if a first pull may choose this model for a machine that can run it, because it was tried and can talk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub talks: bool,
    /// The embedding parameters. Embedding models have them, and only those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<Embedding>,
    /// The LoRA that ships with this program and is used with the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "adapter")]
    pub lora: Option<BundledLora>,
    /// The LoRA that is added when the model extracts JSON from people's messages. It was trained together with `lora`,
    /// and is worth little without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "reading_adapter")]
    pub reading_lora: Option<BundledLora>,
    /// The voices of a model that has several, its usual one first. People choose them by these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub voices: Vec<String>,
    /// The sources, in the order to try. Empty for an imported model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

impl ModelEntry {
    /// Returns the LoRAs that ship for this model.
    pub(crate) fn shipped(&self) -> impl Iterator<Item = &BundledLora> {
        self.lora.iter().chain(&self.reading_lora)
    }

    /// Checks the entry. The error says what is wrong.
    pub(crate) fn validate(&self) -> Result<(), String> {
        check_name(&self.name).map_err(|error| error.to_string())?;
        let about = |problem: &str| Err(format!("model {}: {problem}", self.name));
        if self.title.trim().is_empty() || self.licence.trim().is_empty() {
            return about("title and licence must say something");
        }
        let has_context = self.context_length > 0 || self.kind.format() == Format::Onnx;
        if self.parameters == 0 || self.ram_mib == 0 || !has_context {
            return about("parameters, ram_mib and context_length must be above zero");
        }
        match (self.kind, &self.embedding) {
            (Kind::Embedding, None) => return about("an embedding model needs its [embedding] section"),
            (Kind::Chat, None) => {}
            (kind, Some(_)) if kind != Kind::Embedding => {
                return about(&format!("a {kind} model has no [embedding] section"));
            }
            _ if self.shipped().next().is_some() => return about("adapters are for chat models"),
            (_, None) => {}
            (_, Some(embedding)) => {
                if embedding.dimension == 0 || embedding.max_tokens == 0 {
                    return about("dimension and max_tokens must be above zero");
                }
                if embedding.max_tokens > self.context_length {
                    return about("max_tokens is more than its context_length");
                }
                if !(-1.0..=1.0).contains(&embedding.similarity_floor) {
                    return about("similarity_floor is a cosine: it lies between -1 and 1");
                }
            }
        }
        if self.reading_lora.is_some() && self.lora.is_none() {
            return about("a reading_adapter is added to an adapter, and there is none");
        }
        for lora in self.shipped() {
            lora.validate().or_else(|problem| about(&problem))?;
        }
        if self.sources.len() > MAX_SOURCES {
            return about(&format!("at most {MAX_SOURCES} sources are tried"));
        }
        self.validate_voices().or_else(about)?;
        self.sources.iter().try_for_each(|source| source.validate().or_else(|problem| about(&problem)))
    }

    fn validate_voices(&self) -> Result<(), &'static str> {
        let has_several = self.sources.iter().any(|source| source.convert() == Convert::KokoroOnnx);
        match self.voices.len() {
            0 if has_several => Err("voices must name the voices of the model"),
            1.. if self.kind != Kind::Voice => Err("voices are for voice models"),
            0..=MAX_VOICES if self.voices.iter().all(|voice| check_name(voice).is_ok()) => Ok(()),
            _ => Err("voices must be at most 100 names of a-z, 0-9, dot, dash and underscore"),
        }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Refuses a name that is not safe as a folder's.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name.starts_with(plain)
        && name.chars().all(|c| plain(c) || matches!(c, '.' | '-' | '_'))
        // These ends name other files in the models folder, or Windows drops them.
        && [".toml", ".lock", "."].iter().all(|end| !name.ends_with(end));
    if fits { Ok(()) } else { Err(Error::InvalidName { name: name.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_are_safe_as_folders_are_accepted() {
        fn check(name: &str, fits: bool) {
            assert_eq!(check_name(name).is_ok(), fits, "{name:?}");
        }
        check("qwen3-0.6b", true);
        check("a", true);
        check(&"a".repeat(MAX_NAME_BYTES), true);
        check(&"a".repeat(MAX_NAME_BYTES + 1), false);
        for name in ["", ".", "..", ".staging", "a/b", "a\\b", "A", "é", "a b", "ledger.toml", "a.lock", "a.", "-a"] {
            check(name, false);
        }
    }
}
