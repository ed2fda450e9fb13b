//! Converts BERT sentence encoders (such as all-MiniLM-L6-v2) from a Hugging Face folder to a GGUF file.
//!
//! Two-dimensional weights become Q8_0 if their rows fill blocks. Norms, biases, positions and token types stay f32.
//! The pooler is left out, because sentence encoders average the last layer instead. The same input gives the same
//! bytes on every machine, so the result can be pinned by its SHA-256. For that reason the file contains no name.

use std::{
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
/// The value of `bert.pooling_type`: the mean of the last layer over all tokens.
const POOLING_MEAN: u32 = 1;

/// The token types of `tokenizer.ggml.token_type`.
const TOKEN_NORMAL: i32 = 1;
const TOKEN_UNKNOWN: i32 = 2;
const TOKEN_CONTROL: i32 = 3;
/// The mark before a token that starts a word in GGUF's WordPiece vocabularies.
const WORD_START: char = '\u{2581}';

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
    position_embedding_type: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct TokenizerConfig {
    #[serde(default)]
    do_lower_case: Option<bool>,
}

/// Converts the model in `folder` to a GGUF file at `target`, which is overwritten.
///
/// Blocks, and reads the whole weights file into memory.
pub(crate) fn convert(folder: &Path, target: &Path) -> Result<(), Error> {
    let config: Config = parse_json(&folder.join("config.json"))?;
    if config.model_type != "bert" || config.position_embedding_type.as_deref().is_some_and(|t| t != "absolute") {
        return Err(refuse(format!("a {} model, and only plain BERT encoders are converted", config.model_type)));
    }
    if config.num_hidden_layers > MAX_LAYERS {
        return Err(refuse(format!("{} layers; at most {MAX_LAYERS} are converted", config.num_hidden_layers)));
    }
    let tokenizer_path = folder.join("tokenizer_config.json");
    let tokenizer: TokenizerConfig =
        if tokenizer_path.exists() { parse_json(&tokenizer_path)? } else { TokenizerConfig::default() };
    let vocab = read_text(&folder.join("vocab.txt"))?;

    let mut file = GgufFile::default();
    describe(&mut file, &config);
    describe_tokenizer(&mut file, &config, &vocab, tokenizer.do_lower_case.unwrap_or(true))?;

    let weights = read_limited(&folder.join("model.safetensors"), MAX_WEIGHTS_BYTES)?;
    let weights = SafeTensors::deserialize(&weights).map_err(|e| refuse(format!("unreadable weights: {e}")))?;
    add_tensors(&mut file, &config, &weights)?;

    let mut out = BufWriter::new(File::create(target).at(target)?);
    file.write(&mut out).at(target)?;
    out.flush().at(target)?;
    Ok(())
}

fn describe(file: &mut GgufFile, config: &Config) {
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
    file.set("bert.pooling_type", Value::U32(POOLING_MEAN));
}

fn describe_tokenizer(file: &mut GgufFile, config: &Config, vocab: &str, lower_case: bool) -> Result<(), Error> {
    // Split only at line feeds: `lines` would also remove a carriage return that belongs to a token.
    let words: Vec<&str> = vocab.strip_suffix('\n').unwrap_or(vocab).split('\n').collect();
    if words.len() != config.vocab_size as usize {
        return Err(refuse(format!("{} words in vocab.txt where config.json says {}", words.len(), config.vocab_size)));
    }
    let id_of = |special: &str| {
        words
            .iter()
            .position(|word| *word == special)
            .and_then(|id| u32::try_from(id).ok())
            .ok_or_else(|| refuse(format!("no {special} in vocab.txt")))
    };
    let (unknown, separator) = (id_of("[UNK]")?, id_of("[SEP]")?);
    let (padding, mask, class) = (id_of("[PAD]")?, id_of("[MASK]")?, id_of("[CLS]")?);

    file.set("tokenizer.ggml.model", Value::String("bert".into()));
    file.set("tokenizer.ggml.tokens", Value::Strings(words.iter().map(|word| gguf_token(word)).collect()));
    file.set("tokenizer.ggml.token_type", Value::I32s(words.iter().map(|word| token_type(word)).collect()));
    file.set("tokenizer.ggml.token_type_count", Value::U32(config.type_vocab_size));
    file.set("tokenizer.ggml.unknown_token_id", Value::U32(unknown));
    // The format spells it this way.
    file.set("tokenizer.ggml.seperator_token_id", Value::U32(separator));
    file.set("tokenizer.ggml.padding_token_id", Value::U32(padding));
    file.set("tokenizer.ggml.mask_token_id", Value::U32(mask));
    file.set("tokenizer.ggml.cls_token_id", Value::U32(class));
    file.set("tokenizer.ggml.bos_token_id", Value::U32(class));
    file.set("tokenizer.ggml.eos_token_id", Value::U32(separator));
    file.set("tokenizer.ggml.normalizer.lowercase", Value::Bool(lower_case));
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

fn add_tensors(file: &mut GgufFile, config: &Config, weights: &SafeTensors<'_>) -> Result<(), Error> {
    let hidden = config.hidden_size as usize;
    let inner = config.intermediate_size as usize;
    let mut add = |source: &str, target: &str, shape: &[usize], quantized: bool| -> Result<(), Error> {
        file.tensors.push(tensor(weights, source, target, shape, quantized)?);
        Ok(())
    };
    let words = [config.vocab_size as usize, hidden];
    let positions = [config.max_position_embeddings as usize, hidden];
    let types = [config.type_vocab_size as usize, hidden];
    add("embeddings.word_embeddings.weight", "token_embd.weight", &words, true)?;
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

fn tensor(
    weights: &SafeTensors<'_>,
    source: &str,
    target: &str,
    shape: &[usize],
    quantized: bool,
) -> Result<Tensor, Error> {
    // Checkpoints saved with a task head have the encoder under `bert.`.
    let view = weights
        .tensor(source)
        .or_else(|_| weights.tensor(&format!("bert.{source}")))
        .map_err(|_| refuse(format!("no tensor {source}")))?;
    if view.shape() != shape {
        return Err(refuse(format!("tensor {source} has shape {:?} where {shape:?} was expected", view.shape())));
    }
    let values = floats(&view).ok_or_else(|| refuse(format!("tensor {source} holds {:?} values", view.dtype())))?;
    let fills_blocks = shape.last().is_some_and(|columns| columns % Q8_0_BLOCK == 0);
    let (tensor_type, data) = if quantized && fills_blocks {
        (TensorType::Q8_0, quantize_q8_0(&values))
    } else {
        (TensorType::F32, values.iter().flat_map(|value| value.to_le_bytes()).collect())
    };
    let dimensions = shape.iter().rev().map(|size| *size as u64).collect();
    Ok(Tensor { name: target.to_owned(), dimensions, tensor_type, data })
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
mod tests {
    use std::collections::BTreeMap;

    use safetensors::serialize;

    use super::*;
    use azera_model_gguf::GgufHeader;

    /// Writes a BERT encoder with one layer of width 32, whose f16 weights count up.
    fn write_tiny(folder: &Path) {
        let config = r#"{"model_type": "bert", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
            "num_attention_heads": 2, "layer_norm_eps": 1e-12, "max_position_embeddings": 16, "type_vocab_size": 2,
            "vocab_size": 8}"#;
        fs::write(folder.join("config.json"), config).unwrap();
        fs::write(folder.join("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[\nhey\n##ho\n").unwrap();
        let mut shapes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut add = |name: &str, shape: &[usize]| shapes.insert(format!("bert.{name}"), shape.to_vec());
        add("embeddings.word_embeddings.weight", &[8, 32]);
        add("embeddings.position_embeddings.weight", &[16, 32]);
        add("embeddings.token_type_embeddings.weight", &[2, 32]);
        add("embeddings.LayerNorm.weight", &[32]);
        add("embeddings.LayerNorm.bias", &[32]);
        let layer = "encoder.layer.0";
        for part in ["query", "key", "value"] {
            add(&format!("{layer}.attention.self.{part}.weight"), &[32, 32]);
            add(&format!("{layer}.attention.self.{part}.bias"), &[32]);
        }
        for (part, rows, columns) in
            [("attention.output.dense", 32, 32), ("intermediate.dense", 64, 32), ("output.dense", 32, 64)]
        {
            add(&format!("{layer}.{part}.weight"), &[rows, columns]);
            add(&format!("{layer}.{part}.bias"), &[rows]);
        }
        for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
            add(&format!("{layer}.{part}.weight"), &[32]);
            add(&format!("{layer}.{part}.bias"), &[32]);
        }
        let bytes: Vec<u8> =
            (0..2_048_u16).flat_map(|i| f16::from_f32(f32::from(i) / 512.0 - 2.0).to_le_bytes()).collect();
        let views: Vec<(String, TensorView<'_>)> = shapes
            .into_iter()
            .map(|(name, shape)| {
                let length = 2 * shape.iter().product::<usize>();
                (name, TensorView::new(Dtype::F16, shape, &bytes[..length]).unwrap())
            })
            .collect();
        fs::write(folder.join("model.safetensors"), serialize(views, None).unwrap()).unwrap();
    }

    #[test]
    fn the_conversion_gives_exactly_these_bytes() {
        let folder = tempfile::tempdir().unwrap();
        write_tiny(folder.path());
        let target = folder.path().join("model.gguf");
        convert(folder.path(), &target).unwrap();
        let bytes = fs::read(&target).unwrap();
        let header = GgufHeader::read(bytes.as_slice()).unwrap();
        assert_eq!(header.expected_bytes, bytes.len() as u64);
        assert_eq!((header.architecture.as_str(), header.quantization), ("bert", Some("Q8_0")));
        assert_eq!((header.context_length, header.embedding_length), (Some(16), Some(32)));
        // 8 words, 16 positions, 2 types and 5 norms of 32; 4 times 32 x 33, then 64 x 33 and 32 x 65.
        assert_eq!(header.parameters, (8 + 16 + 2 + 2 + 4) * 32 + 4 * 32 * 33 + 64 * 33 + 32 * 65);
        use sha2::{Digest as _, Sha256};
        let sha256 = format!("{:x}", Sha256::digest(&bytes));
        insta::assert_snapshot!(sha256, @"a4672c8db903dc18cfa48f2d0536d3b20fc66bb406c8f3d61eda00b993e8a9dc");
    }

    #[test]
    fn tokens_are_marked_for_gguf() {
        fn check(word: &str, token: &str, kind: i32) {
            assert_eq!((gguf_token(word).as_str(), token_type(word)), (token, kind), "{word}");
        }
        check("hey", "\u{2581}hey", TOKEN_NORMAL);
        check("##ho", "ho", TOKEN_NORMAL);
        check("[", "\u{2581}[", TOKEN_NORMAL);
        check("[unused7]", "[unused7]", TOKEN_NORMAL);
        check("[CLS]", "[CLS]", TOKEN_CONTROL);
        check("[UNK]", "[UNK]", TOKEN_UNKNOWN);
    }

    #[test]
    fn an_unsupported_model_is_rejected_with_a_reason() {
        fn check(file: &str, change: impl Fn(String) -> String, said: &str) {
            let folder = tempfile::tempdir().unwrap();
            write_tiny(folder.path());
            let path = folder.path().join(file);
            // Each byte becomes a Latin-1 letter, so that weights can be changed like text.
            let text: String = fs::read(&path).unwrap().into_iter().map(char::from).collect();
            fs::write(&path, change(text).chars().map(|c| c as u8).collect::<Vec<_>>()).unwrap();
            let error = convert(folder.path(), &folder.path().join("model.gguf")).unwrap_err().to_string();
            assert!(error.contains(said), "{error:?} should say {said:?}");
        }
        check("config.json", |text| text.replace("\"bert\"", "\"t5\""), "only plain BERT encoders");
        check("config.json", |text| text.replace("\"hidden_size\": 32", "\"hidden_size\": 64"), "has shape [8, 32]");
        check("config.json", |text| text.replace("_layers\": 1", "_layers\": 2"), "no tensor encoder.layer.1");
        check("config.json", |text| text.replace("_layers\": 1", "_layers\": 999"), "999 layers");
        check("config.json", |_| "{".to_owned(), "config.json: EOF");
        check("vocab.txt", |text| text.replace("hey\n", ""), "7 words in vocab.txt");
        check("vocab.txt", |text| text.replace("[MASK]", "[MASQ]"), "no [MASK] in vocab.txt");
        check("model.safetensors", |text| text.replacen("F16", "I16", 1), "holds I16 values");
        check("model.safetensors", |text| text.chars().take(500).collect(), "unreadable weights");
    }
}
