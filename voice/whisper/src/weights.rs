//! Reads a model file into typed parts. A broken file gives an error that names the part.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use azera_model_gguf::{Layout, TensorAt, TensorType};
use azera_voice_api::Error;
use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::linear::{HalfLinear, LayerNorm, Linear};

/// ggml's numbers for bytes and 32-bit integers.
const BYTES: TensorType = TensorType(24);
const INTEGERS: TensorType = TensorType(26);

/// An open model file.
pub(crate) struct Weights {
    file: File,
    name: String,
    length: u64,
    data_at: u64,
    numbers: std::collections::BTreeMap<String, u64>,
    tensors: HashMap<String, TensorAt>,
}

impl Weights {
    /// Opens a model file and reads its header.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let wrong = |why: String| Error::Model { file: name.clone(), why };
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let length = file.metadata().map_err(|error| wrong(error.to_string()))?.len();
        let layout = Layout::read(&file).map_err(|error| wrong(error.to_string()))?;
        if layout.texts.get("general.architecture").map(String::as_str) != Some("whisper") {
            return Err(wrong("it is not a Whisper model".into()));
        }
        let tensors = layout.tensors.into_iter();
        let tensors = tensors.map(|tensor| (String::from_utf8_lossy(&tensor.name).into_owned(), tensor)).collect();
        Ok(Self { file, name, length, data_at: layout.data_at, numbers: layout.numbers, tensors })
    }

    /// Checks that the file has room for all tensors that its header names.
    pub(crate) fn check_length(&self) -> Result<(), Error> {
        let end = |found: &TensorAt| self.data_at.checked_add(found.offset)?.checked_add(found.byte_size()?);
        match self.tensors.iter().find(|(_, found)| end(found).is_none_or(|end| end > self.length)) {
            Some((tensor, _)) => Err(self.wrong(format!("the file ends before the tensor {tensor}"))),
            None => Ok(()),
        }
    }

    /// Returns an error about this file.
    pub(crate) fn wrong(&self, why: impl Into<String>) -> Error {
        Error::Model { file: self.name.clone(), why: why.into() }
    }

    /// Returns a number of the metadata, below `limit`.
    pub(crate) fn number(&self, key: &str, limit: usize) -> Result<usize, Error> {
        let number = self.numbers.get(key).and_then(|number| usize::try_from(*number).ok());
        number.filter(|number| *number < limit).ok_or_else(|| self.wrong(format!("`{key}` is missing or too large")))
    }

    /// Returns true if the file has this tensor.
    pub(crate) fn has(&self, tensor: &str) -> bool {
        self.tensors.contains_key(tensor)
    }

    /// Returns the shape of a tensor, the slowest-moving dimension first.
    pub(crate) fn shape(&self, tensor: &str) -> Result<Vec<usize>, Error> {
        let found = self.tensors.get(tensor).ok_or_else(|| self.wrong(format!("the tensor {tensor} is missing")))?;
        let dimensions = found.dimensions.iter().rev().map(|count| usize::try_from(*count));
        dimensions.collect::<Result<_, _>>().map_err(|_| self.wrong(format!("the tensor {tensor} is too large")))
    }

    /// Returns the bytes of a tensor of this type.
    fn read(&self, tensor: &str, wanted: TensorType) -> Result<Vec<u8>, Error> {
        let missing = || self.wrong(format!("the tensor {tensor} is missing or of another type"));
        let found = self.tensors.get(tensor).filter(|found| found.tensor_type == wanted).ok_or_else(missing)?;
        let cut = || self.wrong(format!("the file ends before the tensor {tensor}"));
        let size = found.byte_size().ok_or_else(missing)?;
        let start = self.data_at.checked_add(found.offset).ok_or_else(cut)?;
        // Checked first, so that a wrong size does not reserve memory that the file could never fill.
        if start.checked_add(size).is_none_or(|end| end > self.length) {
            return Err(cut());
        }
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start)).map_err(|error| self.wrong(error.to_string()))?;
        let mut bytes = Vec::new();
        file.take(size).read_to_end(&mut bytes).map_err(|error| self.wrong(error.to_string()))?;
        if bytes.len() as u64 == size { Ok(bytes) } else { Err(cut()) }
    }

    /// Returns the bytes of a tensor of bytes.
    pub(crate) fn bytes(&self, tensor: &str) -> Result<Vec<u8>, Error> {
        self.read(tensor, BYTES)
    }

    /// Returns the integers of a tensor of integers.
    pub(crate) fn integers(&self, tensor: &str) -> Result<Vec<usize>, Error> {
        let bytes = self.read(tensor, INTEGERS)?;
        let integers = bytes.as_chunks::<4>().0.iter().map(|bytes| usize::try_from(i32::from_le_bytes(*bytes)));
        integers.collect::<Result<_, _>>().map_err(|_| self.wrong(format!("the tensor {tensor} has negative numbers")))
    }

    /// Returns a tensor of 16-bit floats of this shape.
    pub(crate) fn halves(&self, tensor: &str, shape: &[usize]) -> Result<Vec<f16>, Error> {
        let found = self.shape(tensor)?;
        if found != shape {
            return Err(self.wrong(format!("the tensor {tensor} has the shape {found:?} instead of {shape:?}")));
        }
        let bytes = self.read(tensor, TensorType::F16)?;
        Ok(bytes.as_chunks::<2>().0.iter().map(|bytes| f16::from_le_bytes(*bytes)).collect())
    }

    /// Returns a tensor of 16-bit floats of this shape as 32-bit floats.
    pub(crate) fn floats(&self, tensor: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        Ok(self.halves(tensor, shape)?.to_f32_vec())
    }

    /// Returns a normalisation.
    pub(crate) fn norm(&self, name: &str, width: usize) -> Result<LayerNorm, Error> {
        let part = |part: &str| self.floats(&format!("{name}/layer_norm/{part}"), &[width]);
        Ok(LayerNorm { scale: part("gamma")?, shift: part("beta")? })
    }

    /// Returns a layer for many rows.
    pub(crate) fn linear(&self, name: &str, outputs: usize, inputs: usize) -> Result<Linear, Error> {
        let weights = self.floats(&format!("{name}/weight"), &[outputs, inputs])?;
        Ok(Linear { inputs, weights, bias: self.floats(&format!("{name}/bias"), &[outputs])? })
    }

    /// Returns a layer for one row.
    pub(crate) fn half_linear(&self, name: &str, outputs: usize, inputs: usize) -> Result<HalfLinear, Error> {
        let weights = self.halves(&format!("{name}/weight"), &[outputs, inputs])?;
        Ok(HalfLinear { inputs, weights, bias: self.floats(&format!("{name}/bias"), &[outputs])? })
    }
}
