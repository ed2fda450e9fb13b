//! Reads the header of a GGUF file. Time and memory are bounded for any input.

use std::{
    collections::BTreeMap,
    io::{self, BufReader, Read},
};

use crate::{ALIGNMENT, GgufError, MAGIC, TensorType, VERSION, align, tensor_type::file_type_name, value_type};

/// The largest header that is read, in bytes. Real ones reach 12 MiB, nearly all of it the vocabulary.
pub const MAX_HEADER_BYTES: u64 = 128 << 20;
/// The most metadata pairs in a header. Real files have 20 to 60.
pub const MAX_METADATA_PAIRS: u64 = 4_096;
/// The most tensors in a header. Large mixture-of-experts models have about 2,000.
pub const MAX_TENSORS: u64 = 65_536;
/// The longest key that the format allows, in bytes.
pub(crate) const MAX_KEY_BYTES: u64 = 65_535;
/// The longest string that is kept, in bytes. Longer ones are skipped.
const MAX_RETAINED_BYTES: u64 = 1_024;
/// The most dimensions of a tensor in ggml.
pub(crate) const MAX_DIMENSIONS: u32 = 4;

/// The facts about a model in its GGUF header.
#[derive(Clone, Debug, PartialEq)]
pub struct GgufHeader {
    /// The version of the format.
    pub version: u32,
    /// The architecture, such as `llama`, `qwen3` or `bert`.
    pub architecture: String,
    /// The model's name in the file.
    pub name: Option<String>,
    /// The licence in the file.
    pub licence: Option<String>,
    /// For a LoRA: the SHA-256 of the model file that it was trained on, if the file contains it.
    pub base_sha256: Option<String>,
    /// The context length of the training, in tokens.
    pub context_length: Option<u64>,
    /// The width of the hidden states. For an embedding model this is the dimension of its vectors.
    pub embedding_length: Option<u64>,
    /// How token vectors are pooled, if the file says so: 0 none, 1 mean, 2 first token, 3 last token, 4 rank.
    pub pooling_type: Option<u64>,
    /// True if the file has a head that turns a text into scores. Rerankers have one, and often no pooling type.
    pub has_score_head: bool,
    /// The name of the quantization, such as `Q4_K_M`, if it is known.
    pub quantization: Option<&'static str>,
    /// True if the file contains a chat template.
    pub has_chat_template: bool,
    /// The number of files that the model is split into; 1 for a whole model.
    pub split_count: u64,
    /// The number of weights.
    pub parameters: u64,
    /// The least length of the file, in bytes, for all its tensors to be complete.
    pub expected_bytes: u64,
}

/// A metadata value that the reader keeps.
#[derive(Debug)]
pub(crate) enum RetainedValue {
    Number(u64),
    Real(f64),
    Text(String),
    /// Present, but not needed or too long.
    Skipped,
}

impl GgufHeader {
    /// Reads a header from the start of `source`. Uses about a MiB of memory and reads at most [`MAX_HEADER_BYTES`].
    pub fn read(source: impl Read) -> Result<Self, GgufError> {
        let (mut reader, Counts { version, tensors: tensor_count, pairs: pair_count }) = Reader::start(source)?;
        let mut retained = BTreeMap::new();
        for _ in 0..pair_count {
            let key = reader.key()?;
            let value_type = reader.u32()?;
            let value = reader.value(value_type)?;
            if is_of_interest(&key) {
                retained.insert(key, value);
            }
        }
        let alignment = match number(&retained, "general.alignment") {
            None => ALIGNMENT,
            Some(bytes) if bytes.is_power_of_two() => bytes,
            Some(_) => return Err(GgufError::Invalid("alignment")),
        };
        let tensors = reader.tensors(tensor_count)?;
        let data_start = align(reader.position, alignment).ok_or(GgufError::Invalid("header length"))?;
        let expected_bytes = data_start.checked_add(tensors.data_bytes).ok_or(GgufError::Invalid("tensor offset"))?;
        let architecture = text(&retained, "general.architecture").ok_or(GgufError::Invalid("architecture"))?;
        let of_model = |suffix: &str| number(&retained, &format!("{architecture}.{suffix}"));
        Ok(Self {
            version,
            name: text(&retained, "general.name"),
            licence: text(&retained, "general.license"),
            base_sha256: text(&retained, "general.base_model.sha256"),
            context_length: of_model("context_length"),
            embedding_length: of_model("embedding_length"),
            pooling_type: of_model("pooling_type"),
            // Its head is a single layer.
            has_score_head: tensors.has_score || tensors.has_classifier && architecture == "jina-bert-v2",
            quantization: number(&retained, "general.file_type").and_then(file_type_name),
            has_chat_template: retained.contains_key("tokenizer.chat_template"),
            split_count: number(&retained, "split.count").unwrap_or(1).max(1),
            parameters: tensors.parameters,
            expected_bytes,
            architecture,
        })
    }
}

fn is_of_interest(key: &str) -> bool {
    let general = ["architecture", "name", "license", "file_type", "alignment", "base_model.sha256"];
    let model = [".context_length", ".embedding_length", ".pooling_type"];
    key.strip_prefix("general.").is_some_and(|rest| general.contains(&rest))
        || model.iter().any(|suffix| key.ends_with(suffix))
        || key == "tokenizer.chat_template"
        || key == "split.count"
}

fn number(retained: &BTreeMap<String, RetainedValue>, key: &str) -> Option<u64> {
    if let Some(RetainedValue::Number(number)) = retained.get(key) { Some(*number) } else { None }
}

fn text(retained: &BTreeMap<String, RetainedValue>, key: &str) -> Option<String> {
    if let Some(RetainedValue::Text(text)) = retained.get(key) { Some(text.clone()) } else { None }
}

pub(crate) fn limited(what: &'static str, value: u64, limit: u64) -> Result<u64, GgufError> {
    if value > limit { Err(GgufError::TooLarge { what, value, limit }) } else { Ok(value) }
}

/// The counts at the start of a file.
pub(crate) struct Counts {
    pub(crate) version: u32,
    pub(crate) tensors: u64,
    pub(crate) pairs: u64,
}

/// The totals of the tensor descriptions.
struct Tensors {
    parameters: u64,
    /// The end of the last tensor, relative to the start of the tensor data.
    data_bytes: u64,
    /// True if there is a layer that gives scores.
    has_score: bool,
    /// True if there is a layer before it.
    has_classifier: bool,
}

/// Reads the values of a header, and counts the bytes.
pub(crate) struct Reader<R> {
    source: BufReader<R>,
    pub(crate) position: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the start of a file: the magic, the version, and the counts of tensors and metadata pairs.
    pub(crate) fn start(source: R) -> Result<(Self, Counts), GgufError> {
        let mut reader = Self { source: BufReader::new(source), position: 0 };
        if reader.array::<4>()? != MAGIC {
            return Err(GgufError::Magic);
        }
        let version = reader.u32()?;
        if !(2..=VERSION).contains(&version) {
            return Err(GgufError::Version(version));
        }
        let tensors = limited("number of tensors", reader.u64()?, MAX_TENSORS)?;
        let pairs = limited("number of metadata pairs", reader.u64()?, MAX_METADATA_PAIRS)?;
        Ok((reader, Counts { version, tensors, pairs }))
    }

    fn advance(&mut self, bytes: u64) -> Result<(), GgufError> {
        self.position = limited("header length", self.position.saturating_add(bytes), MAX_HEADER_BYTES)?;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        self.advance(N as u64)?;
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn skip(&mut self, bytes: u64) -> Result<(), GgufError> {
        self.advance(bytes)?;
        let skipped = io::copy(&mut self.source.by_ref().take(bytes), &mut io::sink())?;
        if skipped == bytes { Ok(()) } else { Err(GgufError::Truncated) }
    }

    /// Reads `length` bytes. The buffer grows as they arrive, so that a claimed length alone allocates nothing.
    pub(crate) fn bytes(&mut self, length: u64) -> Result<Vec<u8>, GgufError> {
        self.advance(length)?;
        let mut bytes = Vec::new();
        self.source.by_ref().take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(GgufError::Truncated) }
    }

    pub(crate) fn key(&mut self) -> Result<String, GgufError> {
        let length = limited("key length", self.u64()?, MAX_KEY_BYTES)?;
        String::from_utf8(self.bytes(length)?).map_err(|_| GgufError::Invalid("key"))
    }

    pub(crate) fn value(&mut self, value_type: u32) -> Result<RetainedValue, GgufError> {
        Ok(match value_type {
            value_type::U8 | value_type::BOOL => RetainedValue::Number(self.array::<1>()?[0].into()),
            value_type::U16 => RetainedValue::Number(u16::from_le_bytes(self.array()?).into()),
            value_type::U32 => RetainedValue::Number(self.u32()?.into()),
            value_type::U64 => RetainedValue::Number(self.u64()?),
            value_type::I32 => {
                u64::try_from(i32::from_le_bytes(self.array()?)).map_or(RetainedValue::Skipped, RetainedValue::Number)
            }
            value_type::I64 => {
                u64::try_from(i64::from_le_bytes(self.array()?)).map_or(RetainedValue::Skipped, RetainedValue::Number)
            }
            value_type::STRING => {
                let length = self.u64()?;
                if length > MAX_RETAINED_BYTES {
                    self.skip(length)?;
                    RetainedValue::Skipped
                } else {
                    // A name with invalid UTF-8 is no reason to reject a model.
                    RetainedValue::Text(String::from_utf8_lossy(&self.bytes(length)?).into_owned())
                }
            }
            value_type::F32 => RetainedValue::Real(f32::from_le_bytes(self.array()?).into()),
            value_type::F64 => RetainedValue::Real(f64::from_le_bytes(self.array()?)),
            value_type::ARRAY => {
                self.skip_array()?;
                RetainedValue::Skipped
            }
            other => {
                self.skip(scalar_bytes(other).ok_or(GgufError::Invalid("metadata value type"))?)?;
                RetainedValue::Skipped
            }
        })
    }

    fn skip_array(&mut self) -> Result<(), GgufError> {
        let element_type = self.u32()?;
        // Every element takes at least one byte, so a count above the header limit cannot be true.
        let count = limited("array length", self.u64()?, MAX_HEADER_BYTES)?;
        if element_type == value_type::STRING {
            for _ in 0..count {
                let length = self.u64()?;
                self.skip(length)?;
            }
            return Ok(());
        }
        // The format allows arrays of arrays, but ggml does not read them either.
        let size = scalar_bytes(element_type).ok_or(GgufError::Invalid("array element type"))?;
        self.skip(count.saturating_mul(size))
    }

    fn tensors(&mut self, count: u64) -> Result<Tensors, GgufError> {
        let mut sum = Tensors { parameters: 0, data_bytes: 0, has_score: false, has_classifier: false };
        for _ in 0..count {
            let name_length = limited("tensor name length", self.u64()?, MAX_KEY_BYTES)?;
            match self.bytes(name_length)?.as_slice() {
                b"cls.output.weight" => sum.has_score = true,
                b"cls.weight" => sum.has_classifier = true,
                _ => {}
            }
            let dimensions = self.u32()?;
            if dimensions > MAX_DIMENSIONS {
                return Err(GgufError::Invalid("number of tensor dimensions"));
            }
            let mut elements = 1_u64;
            for _ in 0..dimensions {
                elements = elements.checked_mul(self.u64()?).ok_or(GgufError::Invalid("tensor shape"))?;
            }
            let tensor_type = TensorType(self.u32()?);
            let offset = self.u64()?;
            // A type that is not in the table counts as empty, but its start must lie within the file.
            let end = offset
                .checked_add(tensor_type.byte_size(elements).unwrap_or(0))
                .ok_or(GgufError::Invalid("tensor offset"))?;
            sum.data_bytes = sum.data_bytes.max(end);
            sum.parameters = sum.parameters.checked_add(elements).ok_or(GgufError::Invalid("tensor shape"))?;
        }
        Ok(sum)
    }
}

fn scalar_bytes(value_type: u32) -> Option<u64> {
    Some(match value_type {
        value_type::U8 | value_type::I8 | value_type::BOOL => 1,
        value_type::U16 | value_type::I16 => 2,
        value_type::U32 | value_type::I32 | value_type::F32 => 4,
        value_type::U64 | value_type::I64 | value_type::F64 => 8,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{GgufFile, Tensor, Value};

    fn sample() -> Vec<u8> {
        let mut file = GgufFile::default();
        file.set("general.architecture", Value::String("bert".into()));
        file.set("general.name", Value::String("Tiny".into()));
        file.set("general.base_model.sha256", Value::String("5ea".into()));
        file.set("general.file_type", Value::U32(7));
        file.set("bert.context_length", Value::U32(512));
        file.set("bert.embedding_length", Value::U32(32));
        file.set("bert.pooling_type", Value::U32(1));
        file.set("bert.attention.layer_norm_epsilon", Value::F32(1e-12));
        file.set("bert.attention.causal", Value::Bool(false));
        file.set("tokenizer.ggml.tokens", Value::Strings(vec!["a".into(), "bc".into()]));
        file.set("tokenizer.ggml.token_type", Value::I32s(vec![1, -1]));
        file.set("tokenizer.chat_template", Value::String("x".repeat(5_000)));
        for (name, tensor_type, data) in [("a", TensorType::F32, vec![7; 128]), ("b", TensorType::Q8_0, vec![9; 34])] {
            file.tensors.push(Tensor { name: name.into(), dimensions: vec![32], tensor_type, data });
        }
        let mut bytes = Vec::new();
        file.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_written_header_is_read_back() {
        let bytes = sample();
        let header = GgufHeader::read(bytes.as_slice()).unwrap();
        // The last tensor ends 30 bytes before the padded end of the file.
        assert_eq!(header.expected_bytes, bytes.len() as u64 - 30);
        insta::assert_debug_snapshot!(header, @r#"
        GgufHeader {
            version: 3,
            architecture: "bert",
            name: Some(
                "Tiny",
            ),
            licence: None,
            base_sha256: Some(
                "5ea",
            ),
            context_length: Some(
                512,
            ),
            embedding_length: Some(
                32,
            ),
            pooling_type: Some(
                1,
            ),
            has_score_head: false,
            quantization: Some(
                "Q8_0",
            ),
            has_chat_template: true,
            split_count: 1,
            parameters: 64,
            expected_bytes: 5794,
        }
        "#);
    }

    #[test]
    fn a_head_that_scores_is_found() {
        fn check(architecture: &str, tensor: &str, expected: bool) {
            let mut file = GgufFile::default();
            file.set("general.architecture", Value::String(architecture.into()));
            let data = vec![7; 128];
            file.tensors.push(Tensor { name: tensor.into(), dimensions: vec![32], tensor_type: TensorType::F32, data });
            let mut bytes = Vec::new();
            file.write(&mut bytes).unwrap();
            let header = GgufHeader::read(bytes.as_slice()).unwrap();
            assert_eq!(header.has_score_head, expected, "{architecture}, {tensor}");
        }
        check("bert", "cls.output.weight", true);
        check("bert", "cls.weight", false);
        check("jina-bert-v2", "cls.weight", true);
        check("jina-bert-v2", "output.weight", false);
    }

    #[test]
    fn an_invalid_header_is_rejected_with_a_reason() {
        fn check(bytes: &[u8], said: &str) {
            let error = GgufHeader::read(bytes).unwrap_err().to_string();
            assert!(error.contains(said), "{error:?} should say {said:?}");
        }
        let with_counts = |tensors: u64, pairs: u64| {
            [b"GGUF".as_slice(), &3_u32.to_le_bytes(), &tensors.to_le_bytes(), &pairs.to_le_bytes()].concat()
        };
        check(b"", "incomplete");
        check(b"PK\x03\x04 a zip archive", "letters GGUF");
        check(b"GGUF\x01\0\0\0", "version 1");
        check(b"GGUF\0\0\0\x03", "version 50331648");
        check(&with_counts(u64::MAX, 0), "number of tensors");
        check(&with_counts(0, u64::MAX), "number of metadata pairs");
        check(&with_counts(0, 0), "architecture");
        check(&[with_counts(0, 1), u64::MAX.to_le_bytes().to_vec()].concat(), "key length");
        let array = [with_counts(0, 1), 1_u64.to_le_bytes().to_vec(), b"k".to_vec(), 9_u32.to_le_bytes().to_vec()];
        check(&[array.concat(), 9_u32.to_le_bytes().to_vec(), 1_u64.to_le_bytes().to_vec()].concat(), "array element");
        check(
            &[array.concat(), 12_u32.to_le_bytes().to_vec(), (u64::MAX / 8).to_le_bytes().to_vec()].concat(),
            "array length",
        );
    }

    proptest! {
        #[test]
        fn random_bytes_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            prop_assert!(GgufHeader::read(bytes.as_slice()).is_err());
            let headed = [b"GGUF\x03\0\0\0".as_slice(), &bytes].concat();
            prop_assert!(GgufHeader::read(headed.as_slice()).is_err());
        }

        #[test]
        fn every_truncated_header_is_detected(cut in any::<prop::sample::Index>()) {
            let bytes = sample();
            // The tensor data takes 162 bytes, after at most 31 bytes of padding.
            let header_end = GgufHeader::read(bytes.as_slice()).unwrap().expected_bytes as usize - 162 - 31;
            let result = GgufHeader::read(&bytes[..cut.index(header_end)]);
            prop_assert!(matches!(result, Err(GgufError::Truncated)), "{result:?}");
        }

        #[test]
        fn damage_never_panics(position in any::<prop::sample::Index>(), damage in any::<[u8; 8]>()) {
            let mut bytes = sample();
            let position = position.index(bytes.len() - damage.len());
            bytes[position..position + damage.len()].copy_from_slice(&damage);
            if let Ok(header) = GgufHeader::read(bytes.as_slice()) {
                prop_assert!(header.split_count >= 1);
            }
        }

        #[test]
        fn an_endless_string_is_rejected(length in MAX_HEADER_BYTES..=u64::MAX) {
            // A header that promises `length` bytes of text, followed by endless zeros.
            let start = [
                b"GGUF\x03\0\0\0".as_slice(), &0_u64.to_le_bytes(), &1_u64.to_le_bytes(), &1_u64.to_le_bytes(), b"k",
                &8_u32.to_le_bytes(), &length.to_le_bytes(),
            ].concat();
            let result = GgufHeader::read(start.chain(io::repeat(0)));
            prop_assert!(matches!(result, Err(GgufError::TooLarge { what: "header length", .. })), "{result:?}");
        }
    }
}
