//! A model's header without its vocabulary.

use std::io::{Read, Seek};

use crate::read::{Counts, Reader};
use crate::write::{put_string, put_value};
use crate::{ALIGNMENT, GgufError, Layout, MAGIC, Value, align};

/// A model without its vocabulary and weights: the shape of everything in it.
#[derive(Debug)]
pub struct Skeleton {
    /// A complete header, up to the first byte of the tensors.
    pub header: Vec<u8>,
    /// The size in bytes of a file with this header and the tensors.
    pub file_bytes: u64,
    /// The layout of the model's own header.
    pub layout: Layout,
}

impl Skeleton {
    /// Reads a model's header and replaces its vocabulary by one without words, as large as the token embedding has
    /// rows. llama.cpp reads such a file like the model, except for the words.
    ///
    /// # Errors
    /// [`GgufError`] if the header is invalid or has no token embedding.
    pub fn read(mut model: impl Read + Seek) -> Result<Self, GgufError> {
        let layout = Layout::read(&mut model)?;
        model.rewind()?;
        let mut file = Vec::new();
        model.take(layout.data_at).read_to_end(&mut file)?;
        let architecture = layout.texts.get("general.architecture").ok_or(GgufError::Invalid("architecture"))?;
        let vocab_size = format!("{architecture}.vocab_size");
        let embedding = layout.tensors.iter().find(|tensor| tensor.name == b"token_embd.weight");
        let words = embedding.and_then(|embedding| embedding.dimensions.get(1)).copied();
        let words = words.and_then(|words| u32::try_from(words).ok()).ok_or(GgufError::Invalid("token embedding"))?;

        let (mut reader, Counts { version, tensors, pairs }) = Reader::start(file.as_slice())?;
        let (mut retained, mut count) = (Vec::new(), 2_u64);
        for _ in 0..pairs {
            let start = reader.position;
            let key = reader.key()?;
            let value_type = reader.u32()?;
            reader.value(value_type)?;
            if !key.starts_with("tokenizer.") && key != vocab_size {
                retained.extend_from_slice(part(&file, start, reader.position)?);
                count += 1;
            }
        }
        for (key, value) in
            [("tokenizer.ggml.model", Value::String("no_vocab".into())), (&vocab_size, Value::U32(words))]
        {
            put_string(&mut retained, key);
            put_value(&mut retained, &value);
        }
        let described = reader.position;
        for _ in 0..tensors {
            let length = reader.u64()?;
            reader.bytes(length)?;
            let dimensions = reader.u32()?;
            reader.bytes(u64::from(dimensions) * 8 + 4 + 8)?;
        }

        let mut header = Vec::new();
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&version.to_le_bytes());
        header.extend_from_slice(&tensors.to_le_bytes());
        header.extend_from_slice(&count.to_le_bytes());
        header.extend_from_slice(&retained);
        header.extend_from_slice(part(&file, described, reader.position)?);
        header.resize(header.len().next_multiple_of(ALIGNMENT as usize), 0);
        let mut data_bytes = 0;
        for tensor in &layout.tensors {
            let bytes = tensor.byte_size().ok_or(GgufError::Invalid("tensor type"))?;
            data_bytes = tensor.offset.checked_add(bytes).ok_or(GgufError::Invalid("tensor offset"))?.max(data_bytes);
        }
        let file_bytes = align(data_bytes, ALIGNMENT).and_then(|bytes| bytes.checked_add(header.len() as u64));
        Ok(Self { header, file_bytes: file_bytes.ok_or(GgufError::Invalid("tensor offset"))?, layout })
    }
}

fn part(file: &[u8], start: u64, end: u64) -> Result<&[u8], GgufError> {
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    range.and_then(|(start, end)| file.get(start..end)).ok_or(GgufError::Truncated)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::{GgufFile, Tensor, TensorType};

    fn model(embedding: &str) -> Vec<u8> {
        let mut file = GgufFile::default();
        file.set("general.architecture", Value::String("llama".into()));
        file.set("tokenizer.ggml.model", Value::String("gpt2".into()));
        file.set("tokenizer.ggml.tokens", Value::Strings(vec!["a".into(), "bc".into(), "d".into()]));
        file.set("llama.vocab_size", Value::U32(3));
        file.set("llama.rope.freq_base", Value::F32(1e4));
        for (name, rows) in [(embedding, 5_u64), ("blk.0.attn_q.weight", 2)] {
            let data = vec![1; usize::try_from(rows * 4 * 4).unwrap()];
            file.tensors.push(Tensor {
                name: name.into(),
                dimensions: vec![4, rows],
                tensor_type: TensorType::F32,
                data,
            });
        }
        let mut bytes = Vec::new();
        file.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_skeleton_keeps_all_but_vocabulary_and_weights() {
        let skeleton = Skeleton::read(Cursor::new(model("token_embd.weight"))).unwrap();
        let read = Layout::read(skeleton.header.as_slice()).unwrap();
        assert_eq!(read.data_at, skeleton.header.len() as u64);
        assert_eq!(skeleton.file_bytes, read.data_at + 96 + 32);
        assert_eq!(read.texts["tokenizer.ggml.model"], "no_vocab");
        assert_eq!(read.numbers["llama.vocab_size"], 5);
        assert_eq!(read.reals["llama.rope.freq_base"], 1e4);
        let shapes = |layout: &Layout| -> Vec<_> {
            layout
                .tensors
                .iter()
                .map(|it| (it.name.clone(), it.dimensions.clone(), it.tensor_type, it.offset))
                .collect()
        };
        assert_eq!(shapes(&read), shapes(&skeleton.layout));
    }

    #[test]
    fn an_invalid_model_has_no_skeleton() {
        assert!(matches!(Skeleton::read(Cursor::new(model("embd"))), Err(GgufError::Invalid("token embedding"))));
        let whole = model("token_embd.weight");
        assert!(matches!(Skeleton::read(Cursor::new(&whole[..60])), Err(GgufError::Truncated)));
    }
}
