//! Writes GGUF files. The same content always gives the same bytes.

use std::io::{self, Write};

use crate::{ALIGNMENT, MAGIC, TensorType, VERSION, align, value_type};

/// A metadata value.
#[derive(Clone, Debug)]
pub enum Value {
    /// An integer.
    U32(u32),
    /// A floating-point number.
    F32(f32),
    /// A boolean.
    Bool(bool),
    /// A string.
    String(String),
    /// An array of integers.
    I32s(Vec<i32>),
    /// An array of strings.
    Strings(Vec<String>),
}

/// A tensor with its bytes.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// ggml's name for the tensor.
    pub name: String,
    /// The number of elements in each dimension, the fastest-moving dimension first (the reverse of a row-major shape).
    pub dimensions: Vec<u64>,
    /// The storage type of `data`.
    pub tensor_type: TensorType,
    /// The stored bytes.
    pub data: Vec<u8>,
}

/// A whole file in memory, for the small models that are converted here.
#[derive(Clone, Debug, Default)]
pub struct GgufFile {
    /// The metadata, in the order in which it is written.
    pub metadata: Vec<(String, Value)>,
    /// The tensors, in the order in which they are written.
    pub tensors: Vec<Tensor>,
}

impl GgufFile {
    /// Adds one metadata pair.
    pub fn set(&mut self, key: impl Into<String>, value: Value) {
        self.metadata.push((key.into(), value));
    }

    /// Writes the file. Returns the errors of `out`, or `InvalidInput` for sizes that the format cannot hold.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut header = Vec::new();
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        put_len(&mut header, self.tensors.len());
        put_len(&mut header, self.metadata.len());
        for (key, value) in &self.metadata {
            put_string(&mut header, key);
            put_value(&mut header, value);
        }
        let mut offset = 0_u64;
        for tensor in &self.tensors {
            put_string(&mut header, &tensor.name);
            let count = u32::try_from(tensor.dimensions.len()).map_err(|_| too_large())?;
            header.extend_from_slice(&count.to_le_bytes());
            for dimension in &tensor.dimensions {
                header.extend_from_slice(&dimension.to_le_bytes());
            }
            header.extend_from_slice(&tensor.tensor_type.0.to_le_bytes());
            header.extend_from_slice(&offset.to_le_bytes());
            offset = offset
                .checked_add(tensor.data.len() as u64)
                .and_then(|end| align(end, ALIGNMENT))
                .ok_or_else(too_large)?;
        }
        out.write_all(&header)?;
        pad(out, header.len())?;
        for tensor in &self.tensors {
            out.write_all(&tensor.data)?;
            pad(out, tensor.data.len())?;
        }
        Ok(())
    }
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "more than a GGUF file can hold")
}

/// Writes zeros up to the next multiple of the alignment.
fn pad(out: &mut impl Write, written: usize) -> io::Result<()> {
    let alignment = ALIGNMENT as usize;
    let zeros = [0_u8; ALIGNMENT as usize];
    out.write_all(&zeros[..written.next_multiple_of(alignment) - written])
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(&(len as u64).to_le_bytes());
}

pub(crate) fn put_string(out: &mut Vec<u8>, text: &str) {
    put_len(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

pub(crate) fn put_value(out: &mut Vec<u8>, value: &Value) {
    let put_type = |out: &mut Vec<u8>, number: u32| out.extend_from_slice(&number.to_le_bytes());
    match value {
        Value::U32(number) => {
            put_type(out, value_type::U32);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Value::F32(number) => {
            put_type(out, value_type::F32);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Value::Bool(truth) => {
            put_type(out, value_type::BOOL);
            out.push(u8::from(*truth));
        }
        Value::String(text) => {
            put_type(out, value_type::STRING);
            put_string(out, text);
        }
        Value::I32s(numbers) => {
            put_type(out, value_type::ARRAY);
            put_type(out, value_type::I32);
            put_len(out, numbers.len());
            for number in numbers {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        Value::Strings(texts) => {
            put_type(out, value_type::ARRAY);
            put_type(out, value_type::STRING);
            put_len(out, texts.len());
            for text in texts {
                put_string(out, text);
            }
        }
    }
}
