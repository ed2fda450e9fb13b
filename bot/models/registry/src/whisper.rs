//! Converts Whisper models from CTranslate2's form to one GGUF file, which holds the weights, the tokens and the
//! settings of decoding.
//!
//! Weights stay as they are: 16-bit floats under CTranslate2's names. The same input gives the same bytes on every
//! machine, so the result can be pinned by its SHA-256.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufWriter, Read, Write},
    path::Path,
};

use azera_model_gguf::{GgufFile, Tensor, TensorType, Value};
use serde::Deserialize;

use crate::{
    ctranslate::{self, FLOAT16, INT16, Variable},
    error::{Error, IoContext},
};

/// The weights, which may come in parts.
pub(crate) const WEIGHTS_FILE: &str = "model.bin";
/// The files of the model's folder.
pub(crate) const REQUIRED_FILES: [&str; 3] = ["config.json", "tokenizer.json", WEIGHTS_FILE];

/// The largest weights file, which is held in memory. The largest Whisper has 3.1 GB, and large-v3-turbo 1.6 GB.
const MAX_WEIGHTS_BYTES: u64 = 4 << 30;
/// The largest vocabulary or configuration file, in bytes.
const MAX_TEXT_BYTES: u64 = 16 << 20;
/// The most tokens. Whisper has 51,866.
const MAX_TOKENS: usize = 200_000;

/// ggml's number for bytes.
const BYTES: TensorType = TensorType(24);
/// ggml's number for 32-bit integers.
const INTEGERS: TensorType = TensorType(26);

/// The part of `config.json` that decoding depends on.
#[derive(Debug, Deserialize)]
struct Config {
    suppress_ids: Vec<i32>,
    suppress_ids_begin: Vec<i32>,
    alignment_heads: Vec<[i32; 2]>,
}

#[derive(Debug, Deserialize)]
struct Tokenizer {
    added_tokens: Vec<AddedToken>,
    model: TokenModel,
}

#[derive(Debug, Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
}

#[derive(Debug, Deserialize)]
struct TokenModel {
    vocab: BTreeMap<String, u32>,
}

/// Converts the model in `folder` to a GGUF file at `target`, which is overwritten.
///
/// Blocks, and reads the whole weights file into memory.
pub(crate) fn convert(folder: &Path, target: &Path) -> Result<(), Error> {
    let config: Config = parse_json(&folder.join("config.json"))?;
    let tokenizer: Tokenizer = parse_json(&folder.join("tokenizer.json"))?;
    let weights = read_limited(&folder.join(WEIGHTS_FILE), MAX_WEIGHTS_BYTES)?;
    let file = assemble(&config, &tokenizer, &weights).map_err(|reason| Error::Convert { reason })?;
    drop(weights);
    let mut out = BufWriter::new(File::create(target).at(target)?);
    file.write(&mut out).at(target)?;
    out.flush().at(target)?;
    Ok(())
}

fn assemble(config: &Config, tokenizer: &Tokenizer, weights: &[u8]) -> Result<GgufFile, String> {
    let (form, variables) = ctranslate::read(weights)?;
    if form != "WhisperSpec" {
        return Err(format!("the form {form}, and only WhisperSpec is converted"));
    }
    let mut file = GgufFile::default();
    file.set("general.architecture", Value::String("whisper".into()));
    file.set("general.type", Value::String("model".into()));
    for side in ["encoder", "decoder"] {
        let heads = number(&variables, &format!("{side}/num_heads"))?;
        file.set(format!("whisper.{side}.attention.head_count"), Value::U32(heads));
    }
    for (key, content) in [
        ("end", "<|endoftext|>"),
        ("start", "<|startoftranscript|>"),
        ("transcribe", "<|transcribe|>"),
        ("no_timestamps", "<|notimestamps|>"),
        ("first_language", "<|en|>"),
        ("after_languages", "<|translate|>"),
    ] {
        file.set(format!("whisper.token.{key}"), Value::U32(special(tokenizer, &[content])?));
    }
    let no_speech = special(tokenizer, &["<|nospeech|>", "<|nocaptions|>"])?;
    file.set("whisper.token.no_speech", Value::U32(no_speech));
    file.tensors.push(integers("suppressed", &config.suppress_ids));
    file.tensors.push(integers("suppressed_at_start", &config.suppress_ids_begin));
    file.tensors.push(integers("alignment_heads", config.alignment_heads.as_flattened()));
    let tokens = token_table(tokenizer)?;
    file.tensors.push(tensor("tokens", vec![tokens.len() as u64], BYTES, tokens));
    for variable in variables.iter().filter(|variable| !variable.shape.is_empty()) {
        if variable.element_type != FLOAT16 {
            return Err(format!("other elements than 16-bit floats in {}", variable.name));
        }
        let dimensions = variable.shape.iter().rev().copied().collect();
        file.tensors.push(tensor(variable.name, dimensions, TensorType::F16, variable.data.to_vec()));
    }
    Ok(file)
}

fn tensor(name: &str, dimensions: Vec<u64>, tensor_type: TensorType, data: Vec<u8>) -> Tensor {
    Tensor { name: name.to_owned(), dimensions, tensor_type, data }
}

fn integers(name: &str, values: &[i32]) -> Tensor {
    let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tensor(name, vec![values.len() as u64], INTEGERS, data)
}

/// Returns a variable that is a single number above zero.
fn number(variables: &[Variable<'_>], name: &str) -> Result<u32, String> {
    let found = variables.iter().find(|variable| variable.name == name && variable.element_type == INT16);
    let value = found.and_then(|variable| variable.data.try_into().ok()).map(i16::from_le_bytes);
    value.and_then(|value| u32::try_from(value).ok()).filter(|value| *value > 0).ok_or_else(|| format!("no {name}"))
}

/// Returns the id of the special token with one of these spellings.
fn special(tokenizer: &Tokenizer, spellings: &[&str]) -> Result<u32, String> {
    let found = tokenizer.added_tokens.iter().find(|token| spellings.contains(&token.content.as_str()));
    found.map(|token| token.id).ok_or_else(|| format!("no token {}", spellings.join(" or ")))
}

/// Returns the bytes of all tokens by id, each after its length as one byte.
fn token_table(tokenizer: &Tokenizer) -> Result<Vec<u8>, String> {
    let mut tokens: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for (word, id) in &tokenizer.model.vocab {
        let bytes = word.chars().map(byte_of).collect::<Option<Vec<u8>>>();
        tokens.insert(*id, bytes.ok_or_else(|| format!("a token {id} that is not spelt in bytes"))?);
    }
    for token in &tokenizer.added_tokens {
        tokens.insert(token.id, token.content.clone().into_bytes());
    }
    let count = tokens.last_key_value().map_or(0, |(id, _)| *id as usize + 1);
    if count > MAX_TOKENS {
        return Err(format!("{count} tokens, and at most {MAX_TOKENS} are converted"));
    }
    let mut table = Vec::new();
    for id in 0..count as u32 {
        let bytes = tokens.get(&id).map_or(&[][..], Vec::as_slice);
        table.push(u8::try_from(bytes.len()).map_err(|_| format!("a token {id} of more than 255 bytes"))?);
        table.extend_from_slice(bytes);
    }
    Ok(table)
}

/// Returns the byte that a character of a byte-level vocabulary stands for. Printable characters of Latin-1 stand for
/// themselves. The other bytes, in order, are written as the characters from U+0100 on.
fn byte_of(spelt: char) -> Option<u8> {
    let is_printable = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    match u32::from(spelt) {
        code @ 0..=0xFF => u8::try_from(code).ok().filter(is_printable),
        code => (0..=u8::MAX).filter(|byte| !is_printable(byte)).nth(code.checked_sub(0x100)? as usize),
    }
}

fn parse_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, Error> {
    let name = path.file_name().unwrap_or_default().display();
    serde_json::from_slice(&read_limited(path, MAX_TEXT_BYTES)?)
        .map_err(|error| Error::Convert { reason: format!("an unreadable {name} ({error})") })
}

fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    File::open(path).at(path)?.take(limit + 1).read_to_end(&mut bytes).at(path)?;
    if bytes.len() as u64 > limit {
        let name = path.file_name().unwrap_or_default().display();
        return Err(Error::Convert { reason: format!("a {name} of more than {limit} bytes") });
    }
    Ok(bytes)
}

/// Joins the parts of the weights: appends `part` to the weights file in `folder`, and deletes `part`.
pub(crate) fn append_weights(part: &Path, folder: &Path) -> Result<(), Error> {
    let whole = folder.join(WEIGHTS_FILE);
    let mut from = File::open(part).at(part)?;
    let mut to = fs::OpenOptions::new().create(true).append(true).open(&whole).at(&whole)?;
    std::io::copy(&mut from, &mut to).at(&whole)?;
    fs::remove_file(part).at(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_level_spellings_become_bytes() {
        fn check(spelt: &str, bytes: &[u8]) {
            assert_eq!(spelt.chars().map(byte_of).collect::<Option<Vec<u8>>>().as_deref(), Some(bytes), "{spelt}");
        }
        check("Ġhello", b" hello");
        check("Ċ", b"\n");
        check("Ã©", "é".as_bytes());
        check("ł", &[0xA0]);
        check("Ń", &[0xAD]);
        assert_eq!(byte_of(' '), None);
        assert_eq!(byte_of('日'), None);
    }

    #[test]
    fn tokens_are_listed_by_id_with_their_lengths() {
        let tokenizer = Tokenizer {
            added_tokens: vec![AddedToken { id: 3, content: "<|en|>".into() }],
            model: TokenModel { vocab: BTreeMap::from([("Ġa".into(), 1), ("b".into(), 0)]) },
        };
        assert_eq!(token_table(&tokenizer).unwrap(), b"\x01b\x02 a\x00\x06<|en|>");
        assert_eq!(special(&tokenizer, &["<|en|>"]), Ok(3));
        assert!(special(&tokenizer, &["<|de|>"]).unwrap_err().contains("<|de|>"));
    }
}
