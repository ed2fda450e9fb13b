//! The layout of a GGUF file: where its tensors and their bytes are.

use std::collections::BTreeMap;
use std::io::Read;

use crate::read::{Counts, MAX_DIMENSIONS, MAX_KEY_BYTES, Reader, RetainedValue, limited};
use crate::{ALIGNMENT, GgufError, TensorType, align, value_type};

/// The metadata and tensor positions of a file.
#[derive(Debug)]
pub struct Layout {
    /// Integers and booleans of the metadata, by key.
    pub numbers: BTreeMap<String, u64>,
    /// Floating-point numbers of the metadata, by key.
    pub reals: BTreeMap<String, f64>,
    /// Strings of the metadata, by key, if they have at most a KiB.
    pub texts: BTreeMap<String, String>,
    /// The position of the tensor descriptions.
    pub(crate) tensors_at: u64,
    /// The position of the value of `general.file_type`, if there is one of four bytes.
    pub(crate) file_type_at: Option<u64>,
    /// The tensors, in file order.
    pub tensors: Vec<TensorAt>,
    /// The position of the tensor data.
    pub data_at: u64,
}

/// The description of a tensor.
#[derive(Debug, Clone)]
pub struct TensorAt {
    /// The name, in any encoding.
    pub name: Vec<u8>,
    /// The number of elements in each dimension, the fastest-moving dimension first.
    pub dimensions: Vec<u64>,
    /// The storage type.
    pub tensor_type: TensorType,
    /// The position of its bytes, relative to the start of the tensor data.
    pub offset: u64,
}

impl TensorAt {
    /// Returns the size in bytes, or `None` for an unknown type or a shape that overflows.
    pub fn byte_size(&self) -> Option<u64> {
        let elements = self.dimensions.iter().try_fold(1_u64, |product, count| product.checked_mul(*count));
        elements.and_then(|elements| self.tensor_type.byte_size(elements))
    }
}

impl Layout {
    /// Reads the layout of a file with the default alignment. Memory and time are bounded as in
    /// [`crate::GgufHeader::read`].
    ///
    /// # Errors
    /// [`GgufError`] if the header is invalid. The tensor data is not read.
    pub fn read(source: impl Read) -> Result<Self, GgufError> {
        let (mut reader, Counts { tensors: tensor_count, pairs, .. }) = Reader::start(source)?;
        let mut file_type_at = None;
        let (mut numbers, mut reals, mut texts) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for _ in 0..pairs {
            let key = reader.key()?;
            let value_type = reader.u32()?;
            match (key.as_str(), value_type) {
                ("general.file_type", value_type::U32) => file_type_at = Some(reader.position),
                ("general.alignment", _) => return Err(GgufError::Invalid("alignment")),
                _ => {}
            }
            match reader.value(value_type)? {
                RetainedValue::Number(number) => drop(numbers.insert(key, number)),
                RetainedValue::Real(real) => drop(reals.insert(key, real)),
                RetainedValue::Text(text) => drop(texts.insert(key, text)),
                RetainedValue::Skipped => {}
            }
        }
        let tensors_at = reader.position;
        let mut tensors = Vec::new();
        for _ in 0..tensor_count {
            let length = limited("tensor name length", reader.u64()?, MAX_KEY_BYTES)?;
            let name = reader.bytes(length)?;
            let count = reader.u32()?;
            if count > MAX_DIMENSIONS {
                return Err(GgufError::Invalid("number of tensor dimensions"));
            }
            let dimensions = (0..count).map(|_| reader.u64()).collect::<Result<_, _>>()?;
            tensors.push(TensorAt { name, dimensions, tensor_type: TensorType(reader.u32()?), offset: reader.u64()? });
        }
        let data_at = align(reader.position, ALIGNMENT).ok_or(GgufError::Invalid("header length"))?;
        Ok(Self { numbers, reals, texts, tensors_at, file_type_at, tensors, data_at })
    }
}
