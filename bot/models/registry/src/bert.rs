//! Converts BERT sentence encoders (such as all-MiniLM-L6-v2) and cross-encoders (such as ms-marco-MiniLM-L6-v2) from
//! a Hugging Face folder to a GGUF file.
//!
//! Two-dimensional weights become Q8_0 if their rows fill blocks. Norms, biases, positions, token types and the head of a
//! cross-encoder stay f32. A sentence encoder's pooler is left out, because it averages the last layer instead. The same
//! input gives the same bytes on every machine, so the result can be pinned by its SHA-256. For that reason the file
//! contains no name.
//!
//! A cross-encoder reads two segments, question and text, and adds another vector to each token of the second.
//! llama.cpp adds the first segment's vector to every token, and has no input for segments. So the vocabulary is written
//! twice: a token of the second half has the same embedding plus the difference between both segments' vectors. The key
//! [`SECOND_SEGMENT`] holds where the second half begins.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{BufWriter, Read, Write},
    path::Path,
};

use azera_model_gguf::{GgufFile, Q8_0_BLOCK, Tensor, TensorType, Value, quantize_q8_0};
use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::Deserialize;

use crate::error::{Error, IoContext};

/// The required files of the model's folder.
pub(crate) const REQUIRED_FILES: [&str; 3] = ["config.json", "vocab.txt", "model.safetensors"];
/// The optional files.
pub(crate) const OPTIONAL_FILES: [&str; 1] = ["tokenizer_config.json"];

/// The largest weights file, which is held in memory. The largest BERT encoders have 1.3 GiB.
pub(crate) const MAX_WEIGHTS_BYTES: u64 = 2 << 30;
/// The largest vocabulary or configuration file, in bytes.
const MAX_TEXT_BYTES: u64 = 16 << 20;
/// The most encoder layers. The largest BERT has 24.
const MAX_LAYERS: u32 = 256;

/// The value of `general.file_type` for a file that is mostly Q8_0.
const FILE_TYPE_Q8_0: u32 = 7;
/// The value of `general.quantization_version`: ggml's current generation of block formats.
const QUANTIZATION_VERSION: u32 = 2;
/// The values of `bert.pooling_type`: the mean of the last layer over all tokens, and a score by the head.
const POOLING_MEAN: u32 = 1;
const POOLING_RANK: u32 = 4;
/// The key of a cross-encoder's file for the number of the first token of the second segment.
const SECOND_SEGMENT: &str = "azera.second_segment";

/// The token types of `tokenizer.ggml.token_type`.
const TOKEN_NORMAL: i32 = 1;
const TOKEN_UNKNOWN: i32 = 2;
const TOKEN_CONTROL: i32 = 3;
const TOKEN_UNUSED: i32 = 5;
/// The mark before a token that starts a word in GGUF's WordPiece vocabularies.
const WORD_START: char = '\u{2581}';

/// What a model does with the last layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Averages it to a vector.
    Embed,
    /// Turns it into the score of a pair of texts.
    Rank,
}

/// The part of `config.json` that the graph depends on.
#[derive(Debug, Deserialize)]
struct Config {
    hidden_size: u32,
    intermediate_size: u32,
    num_hidden_layers: u32,
    num_attention_heads: u32,
    layer_norm_eps: f32,
    max_position_embeddings: u32,
    type_vocab_size: u32,
    vocab_size: u32,
    model_type: String,
    #[serde(default)]
    architectures: Vec<String>,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct TokenizerConfig {
    #[serde(default)]
    do_lower_case: Option<bool>,
}

/// Returns what the model in `folder` was made for, by its configuration.
pub(crate) fn task_of(folder: &Path) -> Result<Task, Error> {
    let config: Config = parse_json(&folder.join("config.json"))?;
    let ranks = config.architectures.iter().any(|name| name.ends_with("ForSequenceClassification"));
    Ok(if ranks { Task::Rank } else { Task::Embed })
}

/// Converts the model in `folder` to a GGUF file at `target`, which is overwritten.
///
/// Blocks, and reads the whole weights file into memory.
pub(crate) fn convert(folder: &Path, target: &Path, task: Task) -> Result<(), Error> {
    let config: Config = parse_json(&folder.join("config.json"))?;
    if config.model_type != "bert" || config.position_embedding_type.as_deref().is_some_and(|t| t != "absolute") {
        return Err(refuse(format!("a {} model, and only plain BERT encoders are converted", config.model_type)));
    }
    if config.num_hidden_layers > MAX_LAYERS {
        return Err(refuse(format!("{} layers; at most {MAX_LAYERS} are converted", config.num_hidden_layers)));
    }
    let has_segments = task == Task::Rank && config.type_vocab_size > 1;
    let tokenizer_path = folder.join("tokenizer_config.json");
    let tokenizer: TokenizerConfig =
        if tokenizer_path.exists() { parse_json(&tokenizer_path)? } else { TokenizerConfig::default() };
    let vocab = read_text(&folder.join("vocab.txt"))?;

    let mut file = GgufFile::default();
    describe(&mut file, &config, task);
    if has_segments {
        file.set(SECOND_SEGMENT, Value::U32(config.vocab_size));
    }
    let words = words(&config, &vocab)?;
    describe_tokenizer(&mut file, &config, &words, has_segments)?;
    file.set("tokenizer.ggml.normalizer.lowercase", Value::Bool(tokenizer.do_lower_case.unwrap_or(true)));

    let weights = read_limited(&folder.join("model.safetensors"), MAX_WEIGHTS_BYTES)?;
    let weights = SafeTensors::deserialize(&weights).map_err(|e| refuse(format!("unreadable weights: {e}")))?;
    add_tensors(&mut file, &config, &weights, has_segments)?;
    if task == Task::Rank {
        add_head(&mut file, &config, &weights)?;
    }

    let mut out = BufWriter::new(File::create(target).at(target)?);
    file.write(&mut out).at(target)?;
    out.flush().at(target)?;
    Ok(())
}

fn describe(file: &mut GgufFile, config: &Config, task: Task) {
    file.set("general.architecture", Value::String("bert".into()));
    file.set("general.type", Value::String("model".into()));
    file.set("general.file_type", Value::U32(FILE_TYPE_Q8_0));
    file.set("general.quantization_version", Value::U32(QUANTIZATION_VERSION));
    file.set("bert.context_length", Value::U32(config.max_position_embeddings));
    file.set("bert.embedding_length", Value::U32(config.hidden_size));
    file.set("bert.feed_forward_length", Value::U32(config.intermediate_size));
    file.set("bert.block_count", Value::U32(config.num_hidden_layers));
    file.set("bert.attention.head_count", Value::U32(config.num_attention_heads));
    file.set("bert.attention.layer_norm_epsilon", Value::F32(config.layer_norm_eps));
    file.set("bert.attention.causal", Value::Bool(false));
    let pooling = match task {
        Task::Embed => POOLING_MEAN,
        Task::Rank => POOLING_RANK,
    };
    file.set("bert.pooling_type", Value::U32(pooling));
}

/// Returns the words of `vocab.txt`, as many as the configuration says.
fn words<'v>(config: &Config, vocab: &'v str) -> Result<Vec<&'v str>, Error> {
    // Split only at line feeds: `lines` would also remove a carriage return that belongs to a token.
    let words: Vec<&str> = vocab.strip_suffix('\n').unwrap_or(vocab).split('\n').collect();
    if words.len() != config.vocab_size as usize {
        return Err(refuse(format!("{} words in vocab.txt where config.json says {}", words.len(), config.vocab_size)));
    }
    Ok(words)
}

fn describe_tokenizer(file: &mut GgufFile, config: &Config, words: &[&str], has_segments: bool) -> Result<(), Error> {
    let id_of = |special: &str| {
        words
            .iter()
            .position(|word| *word == special)
            .and_then(|id| u32::try_from(id).ok())
            .ok_or_else(|| refuse(format!("no {special} in vocab.txt")))
    };
    let (unknown, separator) = (id_of("[UNK]")?, id_of("[SEP]")?);
    let (padding, mask, class) = (id_of("[PAD]")?, id_of("[MASK]")?, id_of("[CLS]")?);

    let mut tokens: Vec<String> = words.iter().map(|word| gguf_token(word)).collect();
    let mut types: Vec<i32> = words.iter().map(|word| token_type(word)).collect();
    if has_segments {
        // No text contains these names: the tokenizer makes each bracket a word of its own.
        tokens.extend((0..words.len()).map(|id| format!("[second {id}]")));
        types.resize(tokens.len(), TOKEN_UNUSED);
    }
    // llama.cpp ends the process at a vocabulary with a token twice.
    let mut seen = HashSet::new();
    if let Some(token) = tokens.iter().find(|token| !seen.insert(token.as_str())) {
        return Err(refuse(format!("the token {token:?} twice in vocab.txt")));
    }
    file.set("tokenizer.ggml.model", Value::String("bert".into()));
    file.set("tokenizer.ggml.tokens", Value::Strings(tokens));
    file.set("tokenizer.ggml.token_type", Value::I32s(types));
    file.set("tokenizer.ggml.token_type_count", Value::U32(config.type_vocab_size));
    file.set("tokenizer.ggml.unknown_token_id", Value::U32(unknown));
    // The format spells it this way.
    file.set("tokenizer.ggml.seperator_token_id", Value::U32(separator));
    file.set("tokenizer.ggml.padding_token_id", Value::U32(padding));
    file.set("tokenizer.ggml.mask_token_id", Value::U32(mask));
    file.set("tokenizer.ggml.cls_token_id", Value::U32(class));
    file.set("tokenizer.ggml.bos_token_id", Value::U32(class));
    file.set("tokenizer.ggml.eos_token_id", Value::U32(separator));
    Ok(())
}

/// Converts a WordPiece token to GGUF: `##x` continues a word and becomes `x`, a token that starts a word gets a mark,
/// and special tokens in brackets stay as they are.
fn gguf_token(word: &str) -> String {
    if word.starts_with('[') && word.ends_with(']') {
        return word.to_owned();
    }
    match word.strip_prefix("##") {
        Some(rest) => rest.to_owned(),
        None => format!("{WORD_START}{word}"),
    }
}

fn token_type(word: &str) -> i32 {
    match word {
        "[UNK]" => TOKEN_UNKNOWN,
        "[CLS]" | "[SEP]" | "[PAD]" | "[MASK]" => TOKEN_CONTROL,
        _ => TOKEN_NORMAL,
    }
}

fn add_tensors(
    file: &mut GgufFile,
    config: &Config,
    weights: &SafeTensors<'_>,
    has_segments: bool,
) -> Result<(), Error> {
    let hidden = config.hidden_size as usize;
    let inner = config.intermediate_size as usize;
    file.tensors.push(token_table(config, weights, has_segments)?);
    let mut add = |source: &str, target: &str, shape: &[usize], quantized: bool| -> Result<(), Error> {
        file.tensors.push(tensor(weights, source, target, shape, quantized)?);
        Ok(())
    };
    let positions = [config.max_position_embeddings as usize, hidden];
    let types = [config.type_vocab_size as usize, hidden];
    add("embeddings.position_embeddings.weight", "position_embd.weight", &positions, false)?;
    add("embeddings.token_type_embeddings.weight", "token_types.weight", &types, false)?;
    add("embeddings.LayerNorm.weight", "token_embd_norm.weight", &[hidden], false)?;
    add("embeddings.LayerNorm.bias", "token_embd_norm.bias", &[hidden], false)?;
    for layer in 0..config.num_hidden_layers {
        for (source, target, rows, columns) in [
            ("attention.self.query", "attn_q", hidden, hidden),
            ("attention.self.key", "attn_k", hidden, hidden),
            ("attention.self.value", "attn_v", hidden, hidden),
            ("attention.output.dense", "attn_output", hidden, hidden),
            ("intermediate.dense", "ffn_up", inner, hidden),
            ("output.dense", "ffn_down", hidden, inner),
        ] {
            let (source, target) = (format!("encoder.layer.{layer}.{source}"), format!("blk.{layer}.{target}"));
            add(&format!("{source}.weight"), &format!("{target}.weight"), &[rows, columns], true)?;
            add(&format!("{source}.bias"), &format!("{target}.bias"), &[rows], false)?;
        }
        for (source, target) in
            [("attention.output.LayerNorm", "attn_output_norm"), ("output.LayerNorm", "layer_output_norm")]
        {
            let (source, target) = (format!("encoder.layer.{layer}.{source}"), format!("blk.{layer}.{target}"));
            add(&format!("{source}.weight"), &format!("{target}.weight"), &[hidden], false)?;
            add(&format!("{source}.bias"), &format!("{target}.bias"), &[hidden], false)?;
        }
    }
    Ok(())
}

/// Returns the table of token embeddings. With segments it has every row twice: as it is, and for the second segment.
fn token_table(config: &Config, weights: &SafeTensors<'_>, has_segments: bool) -> Result<Tensor, Error> {
    let (words, hidden) = (config.vocab_size as usize, config.hidden_size as usize);
    let mut table = values(weights, "embeddings.word_embeddings.weight", &[words, hidden])?;
    let mut rows = words;
    if has_segments {
        let types = [config.type_vocab_size as usize, hidden];
        let segments = values(weights, "embeddings.token_type_embeddings.weight", &types)?;
        let differences: Vec<f32> = segments
            .iter()
            .zip(segments.iter().skip(hidden))
            .map(|(first, second)| second - first)
            .take(hidden)
            .collect();
        let second: Vec<f32> =
            table.iter().zip(differences.iter().cycle()).map(|(value, difference)| value + difference).collect();
        table.extend(second);
        rows *= 2;
    }
    Ok(stored("token_embd.weight", &[rows, hidden], &table, true))
}

/// Adds what turns the first token's last state into a score: the pooler with its tanh, and one output.
fn add_head(file: &mut GgufFile, config: &Config, weights: &SafeTensors<'_>) -> Result<(), Error> {
    let hidden = config.hidden_size as usize;
    for (source, target, shape) in [
        ("pooler.dense.weight", "cls.weight", vec![hidden, hidden]),
        ("pooler.dense.bias", "cls.bias", vec![hidden]),
        ("classifier.weight", "cls.output.weight", vec![1, hidden]),
        ("classifier.bias", "cls.output.bias", vec![1]),
    ] {
        file.tensors.push(tensor(weights, source, target, &shape, false)?);
    }
    Ok(())
}

fn tensor(
    weights: &SafeTensors<'_>,
    source: &str,
    target: &str,
    shape: &[usize],
    quantized: bool,
) -> Result<Tensor, Error> {
    Ok(stored(target, shape, &values(weights, source, shape)?, quantized))
}

/// Returns a tensor of this shape with these values.
fn stored(target: &str, shape: &[usize], values: &[f32], quantized: bool) -> Tensor {
    let fills_blocks = shape.last().is_some_and(|columns| columns % Q8_0_BLOCK == 0);
    let (tensor_type, data) = if quantized && fills_blocks {
        (TensorType::Q8_0, quantize_q8_0(values))
    } else {
        (TensorType::F32, values.iter().flat_map(|value| value.to_le_bytes()).collect())
    };
    let dimensions = shape.iter().rev().map(|size| *size as u64).collect();
    Tensor { name: target.to_owned(), dimensions, tensor_type, data }
}

/// Returns the values of a tensor of the checkpoint, which must have this shape.
fn values(weights: &SafeTensors<'_>, source: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
    // Checkpoints saved with a task head have the encoder under `bert.`.
    let view = weights
        .tensor(source)
        .or_else(|_| weights.tensor(&format!("bert.{source}")))
        .map_err(|_| refuse(format!("no tensor {source}")))?;
    if view.shape() != shape {
        return Err(refuse(format!("tensor {source} has shape {:?} where {shape:?} was expected", view.shape())));
    }
    floats(&view).ok_or_else(|| refuse(format!("tensor {source} holds {:?} values", view.dtype())))
}

/// Returns a tensor's values as f32, or `None` if they are not floats.
fn floats(view: &TensorView<'_>) -> Option<Vec<f32>> {
    let data = view.data();
    Some(match view.dtype() {
        Dtype::F32 => data.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        Dtype::F16 => data.as_chunks::<2>().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
        Dtype::BF16 => data.as_chunks::<2>().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect(),
        _ => return None,
    })
}

fn refuse(reason: String) -> Error {
    Error::Convert { reason }
}

fn parse_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, Error> {
    serde_json::from_slice(&read_limited(path, MAX_TEXT_BYTES)?)
        .map_err(|e| refuse(format!("{}: {e}", path.file_name().unwrap_or_default().display())))
}

fn read_text(path: &Path) -> Result<String, Error> {
    String::from_utf8(read_limited(path, MAX_TEXT_BYTES)?)
        .map_err(|_| refuse(format!("{} is not UTF-8", path.file_name().unwrap_or_default().display())))
}

fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let size = fs::metadata(path).at(path)?.len();
    if size > limit {
        return Err(refuse(format!("{} is larger than {limit} bytes", path.file_name().unwrap_or_default().display())));
    }
    let mut bytes = Vec::new();
    File::open(path).at(path)?.take(limit).read_to_end(&mut bytes).at(path)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
