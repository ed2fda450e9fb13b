//! Imports a person's own GGUF file, or a folder with a BERT model, which is converted.

use std::{fs, path::Path};

use azera_model_gguf::GgufHeader;

use crate::{
    bert,
    digest::sha256_of,
    entry::{Embedding, Family, ModelEntry, Pooling},
    error::{Error, IoContext},
    kind::Kind,
    manifest::{CheckedAgainst, Manifest},
    progress::{Progress, Step},
    pull::{blocking, inspect_gguf},
    store::{STAGED_FILE, Store, remove_folder},
};

/// The context length of a file that names none, in tokens.
const DEFAULT_CONTEXT: u32 = 2_048;
/// The similarity floor of an uncalibrated embedding model. It is low, because recalling too much is better than
/// nothing.
const UNCALIBRATED_FLOOR: f32 = 0.2;
/// The memory for a modest context, besides the weights, in MiB.
const CONTEXT_MIB: u64 = 256;
const MIB: u64 = 1 << 20;
/// The pooling type of models that score a pair of texts, and those of models that make vectors.
const POOLING_RANK: u64 = 4;
const POOLING_VECTORS: std::ops::RangeInclusive<u64> = 1..=3;
/// The architecture of models that recognise speech.
pub(crate) const WHISPER: &str = "whisper";

/// The result of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The manifest of the installed model.
    pub manifest: Manifest,
    /// The file's header.
    pub header: GgufHeader,
    /// Warnings for the person, one sentence each.
    pub warnings: Vec<String>,
}

/// What a file is installed as.
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a str,
    /// The purpose; `None` if the file decides.
    pub(crate) kind: Option<Kind>,
    /// The registry's entry with that name, if there is one.
    pub(crate) known: Option<&'a ModelEntry>,
    /// The caller's time, for the manifest.
    pub(crate) installed_at: &'a str,
}

/// Installs a file, or what a folder with a BERT model is converted to. A file with the name of a registry entry must
/// have a pinned SHA-256, if the registry pins one, and always the entry's kind. The caller holds the lock and has
/// checked that the name is free.
pub(crate) async fn import(
    store: &Store,
    given: &Path,
    wanted: &Wanted<'_>,
    progress: Progress<'_>,
) -> Result<Imported, Error> {
    if !given.is_dir() {
        return import_file(store, given, given, wanted, progress).await;
    }
    let folder = store.staging(wanted.name).join("converted");
    let imported = import_folder(store, given, &folder, wanted, progress).await;
    if imported.is_err() {
        remove_folder(&folder)?;
    }
    imported
}

/// Converts the model in `given`, with `folder` for the result, and installs it.
async fn import_folder(
    store: &Store,
    given: &Path,
    folder: &Path,
    wanted: &Wanted<'_>,
    progress: Progress<'_>,
) -> Result<Imported, Error> {
    progress(Step::Converting);
    let file = folder.join(STAGED_FILE);
    {
        let (given, folder, file) = (given.to_owned(), folder.to_owned(), file.clone());
        blocking(move || {
            fs::create_dir_all(&folder).at(&folder)?;
            bert::convert(&given, &file, bert::task_of(&given)?)
        })
        .await?;
    }
    import_file(store, given, &file, wanted, progress).await
}

/// Installs `file`, which was `given` or converted from it.
async fn import_file(
    store: &Store,
    given: &Path,
    file: &Path,
    wanted: &Wanted<'_>,
    progress: Progress<'_>,
) -> Result<Imported, Error> {
    let &Wanted { name, kind, known, installed_at } = wanted;
    let header = {
        let file = file.to_owned();
        blocking(move || inspect_gguf(&file)).await?
    };
    if header.split_count > 1 {
        return Err(Error::SplitModel { path: file.to_owned(), parts: header.split_count });
    }
    let kind = kind.or(known.map(|entry| entry.kind)).unwrap_or_else(|| guess_kind(&header));
    let fits_known = known.is_none_or(|entry| entry.kind == kind);
    if !fits_kind(&header, kind) || !fits_known {
        return Err(Error::WrongKind { path: given.to_owned(), architecture: header.architecture, wanted: kind });
    }
    let staging = store.staging(name).join("import");
    let staged = staging.join(STAGED_FILE);
    {
        let (file, staging, staged) = (file.to_owned(), staging.clone(), staged.clone());
        blocking(move || take(&file, &staging, &staged)).await?;
    }
    let (sha256, size) = sha256_of(&staged, progress).await?;
    let mut warnings = Vec::new();
    let mut checked_against = CheckedAgainst::Nothing;
    let model = match known {
        Some(entry) => {
            let pinned: Vec<&str> = entry.sources.iter().filter_map(|source| source.sha256()).collect();
            if let Some(expected) = pinned.first() {
                if !pinned.contains(&sha256.as_str()) {
                    fs::remove_file(&staged).at(&staged)?;
                    let what = given.display().to_string();
                    return Err(Error::WrongHash { what, expected: (*expected).to_owned(), actual: sha256 });
                }
                checked_against = CheckedAgainst::Registry;
            } else {
                warnings.push(format!(
                    "The registry pins no SHA-256 for {name}, so nobody vouches that the file is that model."
                ));
            }
            entry.clone()
        }
        None => describe(name, kind, &header, size, &mut warnings),
    };
    let manifest = Manifest {
        source: format!("import of {}", given.display()),
        sha256,
        size,
        installed_at: installed_at.to_owned(),
        checked_against,
        model,
    };
    let store = store.clone();
    let manifest = blocking(move || store.install(&staged, &manifest).map(|()| manifest)).await?;
    progress(Step::Installed);
    Ok(Imported { manifest, header, warnings })
}

/// Adds the file to the staging area: as a hard link on the same file system, else as a copy.
fn take(file: &Path, staging: &Path, staged: &Path) -> Result<(), Error> {
    // A hard link to a symbolic link would share the link and not the file.
    let file = fs::canonicalize(file).at(file)?;
    crate::store::remove_folder(staging)?;
    fs::create_dir_all(staging).at(staging)?;
    if fs::hard_link(&file, staged).is_err() {
        fs::copy(&file, staged).at(&file)?;
    }
    Ok(())
}

/// Returns true if a model of this architecture can do what the kind asks.
fn fits_kind(header: &GgufHeader, kind: Kind) -> bool {
    match kind {
        Kind::Chat => !is_encoder(header) && !is_recogniser(header),
        Kind::Embedding => !is_recogniser(header) && (!ranks(header) || pools_vectors(header)),
        // Without a head, its scores would be worthless.
        Kind::Reranker => is_encoder(header) && header.has_score_head,
        Kind::Speech => is_recogniser(header),
        // Their files are not GGUF.
        Kind::Voice | Kind::Vad => false,
    }
}

/// Returns true if the architecture recognises speech.
fn is_recogniser(header: &GgufHeader) -> bool {
    header.architecture == WHISPER
}

/// Returns true if the architecture only reads text and cannot generate any.
fn is_encoder(header: &GgufHeader) -> bool {
    let architecture = header.architecture.as_str();
    architecture.contains("bert") || matches!(architecture, "t5encoder" | "gemma-embedding")
}

/// Returns true if the file is made to score pairs of texts: it has a head for that, or says so.
fn ranks(header: &GgufHeader) -> bool {
    header.has_score_head || header.pooling_type == Some(POOLING_RANK)
}

/// Returns true if the file says how it makes vectors.
fn pools_vectors(header: &GgufHeader) -> bool {
    header.pooling_type.is_some_and(|pooling| POOLING_VECTORS.contains(&pooling))
}

fn guess_kind(header: &GgufHeader) -> Kind {
    if is_recogniser(header) {
        Kind::Speech
    } else if ranks(header) {
        Kind::Reranker
    } else if is_encoder(header) || header.pooling_type.is_some_and(|pooling| pooling > 0) {
        Kind::Embedding
    } else {
        Kind::Chat
    }
}

/// Creates an entry for a file that the registry does not know.
fn describe(name: &str, kind: Kind, header: &GgufHeader, size: u64, warnings: &mut Vec<String>) -> ModelEntry {
    let context_length = match header.context_length.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)) {
        Some(tokens @ 1..) => tokens,
        _ => {
            warnings.push(format!("The file names no context length; {DEFAULT_CONTEXT} tokens are assumed."));
            DEFAULT_CONTEXT
        }
    };
    if kind == Kind::Chat && !header.has_chat_template {
        warnings.push("The file has no chat template, so it may not be made for conversation.".to_owned());
    }
    let embedding = (kind == Kind::Embedding).then(|| {
        warnings.push(format!(
            "Nobody calibrated this embedding model: its similarity floor is set to {UNCALIBRATED_FLOOR}."
        ));
        Embedding {
            dimension: header.embedding_length.and_then(|width| u32::try_from(width).ok()).unwrap_or(1).max(1),
            similarity_floor: UNCALIBRATED_FLOOR,
            max_tokens: context_length,
            pooling: match header.pooling_type {
                Some(2) => Pooling::Cls,
                Some(3) => Pooling::Last,
                _ => Pooling::Mean,
            },
            query_prefix: String::new(),
            document_prefix: String::new(),
        }
    });
    let title = header.name.clone().filter(|title| !title.trim().is_empty()).unwrap_or_else(|| name.to_owned());
    ModelEntry {
        name: name.to_owned(),
        kind,
        family: guess_family(kind, &header.architecture, header.name.as_deref().unwrap_or_default()),
        description: match header.quantization {
            Some(quantization) => format!("Imported; architecture {}, {quantization}.", header.architecture),
            None => format!("Imported; architecture {}.", header.architecture),
        },
        title,
        parameters: header.parameters.max(1),
        ram_mib: size.div_ceil(MIB) + CONTEXT_MIB,
        download_mib: size.div_ceil(MIB),
        licence: header.licence.clone().filter(|l| !l.trim().is_empty()).unwrap_or_else(|| "unknown".to_owned()),
        context_length,
        default: false,
        talks: false,
        embedding,
        lora: None,
        reading_lora: None,
        voices: Vec::new(),
        sources: Vec::new(),
    }
}

fn guess_family(kind: Kind, architecture: &str, name: &str) -> Family {
    let name = name.to_lowercase();
    match (kind, architecture) {
        (Kind::Chat, "llama") if name.contains("smollm2") => Family::Smollm2,
        (Kind::Chat, "qwen2") => Family::Qwen2,
        (Kind::Chat, architecture) if architecture.starts_with("qwen3") => Family::Qwen3,
        (Kind::Chat, architecture) if architecture.starts_with("gemma") => Family::Gemma3,
        (Kind::Chat, "llama") if name.contains("llama") && name.contains('3') => Family::Llama3,
        (Kind::Chat, "llama" | "mistral3") if name.contains("mistral") => Family::Mistral,
        (Kind::Embedding, "bert") if name.contains("minilm") => Family::Minilm,
        (Kind::Embedding, "qwen3") => Family::Qwen3Embedding,
        (Kind::Speech, _) => Family::Whisper,
        _ => Family::Generic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_the_family_of_its_architecture() {
        for (architecture, name, family) in [
            ("gemma2", "Gemma 2 2b It", Family::Gemma3),
            ("gemma3", "Gemma 3 4b It", Family::Gemma3),
            ("gemma3n", "Gemma 3n E2B It", Family::Gemma3),
            ("gemma4", "Gemma 4", Family::Gemma3),
            ("qwen2", "Qwen2.5 1.5B Instruct", Family::Qwen2),
            ("qwen3moe", "Qwen3 30B A3B", Family::Qwen3),
            ("llama", "Llama 3.2 1B Instruct", Family::Llama3),
            ("llama", "Mistral Small 24B", Family::Mistral),
            ("llama", "SmolLM2 135M Instruct", Family::Smollm2),
            ("phi3", "Phi 3 Mini", Family::Generic),
        ] {
            assert_eq!(guess_family(Kind::Chat, architecture, name), family, "{name}");
        }
    }
}
