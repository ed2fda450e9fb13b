//! Saved files: GGUF files of plain floats, including checkpoints.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use azera_model_gguf::{GgufError, GgufFile, Layout, Tensor, TensorAt, TensorType, Value};
use data_encoding::HEXLOWER;
use half::f16;
use sha2::{Digest, Sha256};

use crate::adamw::{Moments, Recipe};
use crate::base::BaseModel;
use crate::error::{Error, Result, gguf, io};
use crate::lora::Lora;

const KIND: &str = "azera.hearth.checkpoint";

/// A file of floats.
pub(crate) struct TensorFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    pub(crate) layout: Layout,
}

impl TensorFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(io(path))?;
        let bytes = file.metadata().map_err(io(path))?.len();
        let layout = Layout::read(BufReader::new(&file)).map_err(gguf(path))?;
        Ok(Self { path: path.to_owned(), file, bytes, layout })
    }

    pub(crate) fn find(&self, name: &str) -> Option<&TensorAt> {
        self.layout.tensors.iter().find(|tensor| tensor.name == name.as_bytes())
    }

    /// Reads a matrix of 16-bit or 32-bit floats.
    pub(crate) fn values(&mut self, name: &str, rows: usize, columns: usize) -> Result<Vec<f32>> {
        let wrong = |what: String| Error::Saved { path: self.path.clone(), what };
        let tensor = self.find(name).ok_or_else(|| wrong(format!("{name} is missing")))?;
        if tensor.dimensions != [columns as u64, rows as u64] {
            return Err(wrong(format!("{name} is {:?} where {columns} by {rows} is expected", tensor.dimensions)));
        }
        let wide = match tensor.tensor_type {
            TensorType::F32 => true,
            TensorType::F16 => false,
            _ => return Err(wrong(format!("{name} does not hold 16-bit or 32-bit floats"))),
        };
        let start = self.layout.data_at.checked_add(tensor.offset);
        let end = start.zip(tensor.byte_size()).and_then(|(start, size)| start.checked_add(size));
        let (Some(start), Some(end)) = (start, end.filter(|end| *end <= self.bytes)) else {
            return Err(gguf(&self.path)(GgufError::Truncated));
        };
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(0)];
        self.file.seek(SeekFrom::Start(start)).map_err(io(&self.path))?;
        self.file.read_exact(&mut bytes).map_err(io(&self.path))?;
        let values: Vec<f32> = match wide {
            true => bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            false => bytes.as_chunks::<2>().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect(),
        };
        match values.iter().all(|value| value.is_finite()) {
            true => Ok(values),
            false => Err(wrong(format!("{name} holds what is no number"))),
        }
    }
}

/// The state of a training: everything on which the next step depends.
pub(crate) struct Checkpoint {
    pub(crate) recipe: Recipe,
    pub(crate) base: String,
    pub(crate) examples: String,
    /// The identity of the frozen LoRAs; empty if there are none.
    pub(crate) beside: String,
    /// The identity of the LoRA that the training continued from; empty if there was none.
    pub(crate) began_with: String,
    pub(crate) step: usize,
    pub(crate) lora: Lora,
    pub(crate) moments: Moments,
}

impl Checkpoint {
    /// Writes the checkpoint atomically.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let mut file = GgufFile::default();
        let parts = [("", &self.lora), (".first", &self.moments.first), (".second", &self.moments.second)];
        let mut hasher = Sha256::new();
        for (suffix, part) in parts {
            for (name, matrix) in part.names().zip(part.matrices()) {
                let data: Vec<u8> = matrix.values.iter().flat_map(|value| value.to_le_bytes()).collect();
                hasher.update(&data);
                file.tensors.push(Tensor {
                    name: format!("{name}{suffix}"),
                    dimensions: vec![matrix.columns as u64, matrix.rows as u64],
                    tensor_type: TensorType::F32,
                    data,
                });
            }
        }
        let recipe = serde_json::to_string(&self.recipe).map_err(|error| io(path)(error.into()))?;
        for (key, text) in [
            ("general.type", KIND.to_owned()),
            ("general.architecture", self.lora.architecture.clone()),
            ("hearth.recipe", recipe),
            ("hearth.base", self.base.clone()),
            ("hearth.examples", self.examples.clone()),
            ("hearth.beside", self.beside.clone()),
            ("hearth.began_with", self.began_with.clone()),
            ("hearth.step", self.step.to_string()),
            ("hearth.sha256", HEXLOWER.encode(&hasher.finalize())),
        ] {
            file.set(key, Value::String(text));
        }
        let staged = path.with_extension("part");
        let mut out = BufWriter::new(File::create(&staged).map_err(io(&staged))?);
        file.write(&mut out).and_then(|()| out.flush()).map_err(io(&staged))?;
        out.get_ref().sync_all().map_err(io(&staged))?;
        fs::rename(&staged, path).map_err(io(path))
    }

    pub(crate) fn read(path: &Path, base: &BaseModel) -> Result<Self> {
        let mut saved = TensorFile::open(path)?;
        let wrong = |what: &str| Error::Saved { path: path.to_owned(), what: what.to_owned() };
        let text = |key: &str| saved.layout.texts.get(key).cloned().unwrap_or_default();
        if text("general.type") != KIND {
            return Err(wrong("it is no checkpoint of a training"));
        }
        let recipe: Recipe =
            serde_json::from_str(&text("hearth.recipe")).map_err(|_| wrong("its recipe is damaged"))?;
        recipe.check().map_err(|_| wrong("its recipe is damaged"))?;
        let step = text("hearth.step").parse().map_err(|_| wrong("it does not say how far it came"))?;
        let (of_base, examples, digest) = (text("hearth.base"), text("hearth.examples"), text("hearth.sha256"));
        let (beside, began_with) = (text("hearth.beside"), text("hearth.began_with"));
        if of_base != base.sha256() {
            return Err(wrong("it belongs to another model"));
        }
        let mut hasher = Sha256::new();
        let mut part = |suffix: &str| -> Result<Lora> {
            let mut part = Lora::zero(base.shape(), recipe.rank, recipe.alpha);
            let names: Vec<String> = part.names().collect();
            for (name, matrix) in names.iter().zip(part.matrices_mut()) {
                matrix.values = saved.values(&format!("{name}{suffix}"), matrix.rows, matrix.columns)?;
                matrix.values.iter().for_each(|value| hasher.update(value.to_le_bytes()));
            }
            Ok(part)
        };
        let lora = part("")?;
        let moments = Moments { first: part(".first")?, second: part(".second")? };
        if HEXLOWER.encode(&hasher.finalize()) != digest {
            return Err(wrong("it is damaged: its checksum is another"));
        }
        Ok(Self { recipe, base: of_base, examples, beside, began_with, step, lora, moments })
    }
}
