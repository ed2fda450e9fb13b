//! LoRAs (Hu et al. 2021) on every linear projection, and llama.cpp's file format for them.

use std::fs;
use std::path::Path;

use azera_model_gguf::{GgufFile, Tensor as Stored, TensorType, Value};
use candle_core::Tensor;
use half::f16;

use crate::base::{BaseModel, PROJECTIONS, Shape};
use crate::checkpoint::TensorFile;
use crate::device::ComputeDevice;
use crate::error::{Error, Result, io};
use crate::slice::{matrix, sum};

/// A matrix of trainable numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) values: Vec<f32>,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Matrix {
    pub(crate) fn zero(rows: usize, columns: usize) -> Self {
        Self { values: vec![0.0; rows * columns], rows, columns }
    }

    /// Returns the matrix as a tensor on the processor.
    pub(crate) fn tensor(&self) -> Result<Tensor> {
        matrix(self.values.clone(), self.rows, self.columns)
    }

    pub(crate) fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.columns..][..self.columns]
    }

    /// Iterates over the rows as 64-bit floats.
    pub(crate) fn wide(&self) -> impl Iterator<Item = Vec<f64>> {
        self.values.chunks_exact(self.columns).map(|row| row.iter().map(|value| f64::from(*value)).collect())
    }
}

/// The change of one projection: `alpha / rank * B A x`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoraPair {
    /// Rank by inputs.
    pub(crate) a: Matrix,
    /// Outputs by rank.
    pub(crate) b: Matrix,
}

impl LoraPair {
    /// Returns the matrices of both pairs as one pair, with those of `other` last.
    fn concatenated(&self, other: &Self) -> Result<(Tensor, Tensor)> {
        let rank = self.a.rows + other.a.rows;
        let a = [self.a.values.as_slice(), other.a.values.as_slice()].concat();
        let mut b = Vec::with_capacity(self.b.rows * rank);
        for row in 0..self.b.rows {
            b.extend_from_slice(self.b.row(row));
            b.extend_from_slice(other.b.row(row));
        }
        Ok((matrix(a, rank, self.a.columns)?, matrix(b, self.b.rows, rank)?))
    }
}

/// A LoRA for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Lora {
    pub(crate) architecture: String,
    pub(crate) rank: usize,
    pub(crate) alpha: f32,
    /// The pairs of every projection of every layer, in the order of [`PROJECTIONS`].
    pub(crate) pairs: Vec<LoraPair>,
}

impl Lora {
    /// Creates a LoRA that changes nothing yet: `A` is uniform within `1 / sqrt(inputs)` and `B` is zero, as PEFT
    /// initializes them.
    pub fn new(base: &BaseModel, rank: usize, alpha: f32, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut lora = Self::zero(base.shape(), rank, alpha);
        for pair in &mut lora.pairs {
            let bound = 1.0 / (pair.a.columns as f32).sqrt();
            pair.a.values.iter_mut().for_each(|value| *value = (random.f32() * 2.0 - 1.0) * bound);
        }
        lora
    }

    pub(crate) fn zero(shape: &Shape, rank: usize, alpha: f32) -> Self {
        let projections = shape.projections();
        let pairs = (0..shape.layers)
            .flat_map(|_| projections)
            .map(|(inputs, outputs)| LoraPair { a: Matrix::zero(rank, inputs), b: Matrix::zero(outputs, rank) });
        Self { architecture: shape.architecture.clone(), rank, alpha, pairs: pairs.collect() }
    }

    /// Returns the rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns a LoRA that changes the model `by` times as much. Less than 1 keeps more of the model (Wortsman et al.
    /// 2022, *Robust fine-tuning of zero-shot models*).
    pub fn scaled(self, by: f32) -> Self {
        Self { alpha: self.alpha * by, ..self }
    }

    /// Returns a LoRA that changes the model in the same way, with another alpha.
    pub(crate) fn at_alpha(mut self, alpha: f32) -> Self {
        let by = self.alpha / alpha;
        for pair in &mut self.pairs {
            pair.b.values.iter_mut().for_each(|value| *value *= by);
        }
        Self { alpha, ..self }
    }

    pub(crate) fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        self.pairs.iter().flat_map(|pair| [&pair.a, &pair.b])
    }

    pub(crate) fn matrices_mut(&mut self) -> impl Iterator<Item = &mut Matrix> {
        self.pairs.iter_mut().flat_map(|pair| [&mut pair.a, &mut pair.b])
    }

    /// Returns the factor of `B A`.
    pub(crate) fn scale(&self) -> f32 {
        self.alpha / self.rank as f32
    }

    /// Returns true if both fit models of the same shape.
    pub(crate) fn has_same_shape(&self, other: &Self) -> bool {
        let measures = |pair: &LoraPair| (pair.a.columns, pair.b.rows);
        self.architecture == other.architecture && self.pairs.iter().map(measures).eq(other.pairs.iter().map(measures))
    }

    /// Returns the changes of one layer on a device. The `frozen` LoRA, at the same scale, is included in them.
    pub(crate) fn layer(
        &self,
        layer: usize,
        frozen: Option<&Self>,
        place: &ComputeDevice,
    ) -> Result<Vec<LowRankUpdate>> {
        (layer * PROJECTIONS.len()..)
            .take(PROJECTIONS.len())
            .map(|index| {
                let (pair, frozen) = (&self.pairs[index], frozen.map(|frozen| &frozen.pairs[index]));
                let (a, b) = match frozen {
                    Some(frozen) => pair.concatenated(frozen)?,
                    None => (pair.a.tensor()?, pair.b.tensor()?),
                };
                let device = place.device();
                Ok(LowRankUpdate { a: a.to_device(device)?, b: b.to_device(device)?, scale: self.scale() })
            })
            .collect()
    }

    /// Iterates over the names of the matrices in llama.cpp's files, in the order of [`Self::matrices`].
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let layers = self.pairs.len() / PROJECTIONS.len();
        let parts = (0..layers).flat_map(|layer| PROJECTIONS.map(|part| format!("blk.{layer}.{part}.weight")));
        parts.flat_map(|name| [format!("{name}.lora_a"), format!("{name}.lora_b")])
    }

    /// Writes llama.cpp's LoRA file with 16-bit floats. `notes` are additional texts for its metadata.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn write(&self, path: &Path, notes: &[(&str, String)]) -> Result<()> {
        self.write_as(path, notes, TensorType::F16)
    }

    /// Writes the same file with `A` in 32-bit floats, which llama.cpp accepts too. Its rows then stay orthogonal to
    /// those of the frozen LoRAs; with 16 bits, cosines of about 1e-4 remain.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn write_precise(&self, path: &Path, notes: &[(&str, String)]) -> Result<()> {
        self.write_as(path, notes, TensorType::F32)
    }

    fn write_as(&self, path: &Path, notes: &[(&str, String)], of_a: TensorType) -> Result<()> {
        let mut file = GgufFile::default();
        for (key, text) in [
            ("general.architecture", self.architecture.as_str()),
            ("general.type", "adapter"),
            ("adapter.type", "lora"),
        ] {
            file.set(key, Value::String(text.to_owned()));
        }
        file.set("adapter.lora.alpha", Value::F32(self.alpha));
        notes.iter().for_each(|(key, text)| file.set(*key, Value::String(text.clone())));
        let types = [of_a, TensorType::F16].into_iter().cycle();
        for ((name, matrix), tensor_type) in self.names().zip(self.matrices()).zip(types) {
            let values = matrix.values.iter();
            let data = match tensor_type {
                TensorType::F32 => values.flat_map(|value| value.to_le_bytes()).collect(),
                _ => values.flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect(),
            };
            let dimensions = vec![matrix.columns as u64, matrix.rows as u64];
            file.tensors.push(Stored { name, dimensions, tensor_type, data });
        }
        let mut bytes = Vec::new();
        file.write(&mut bytes).map_err(io(path))?;
        fs::write(path, bytes).map_err(io(path))
    }

    /// Reads a LoRA file from any trainer for this model.
    ///
    /// # Errors
    /// [`Error::Saved`] if the file is damaged, belongs to another model or lacks projections.
    pub fn read(path: &Path, base: &BaseModel) -> Result<Self> {
        let mut saved = TensorFile::open(path)?;
        let wrong = |what: &str| Error::Saved { path: path.to_owned(), what: what.to_owned() };
        let text = |key: &str| saved.layout.texts.get(key).map(String::as_str);
        if text("general.type") != Some("adapter") || text("adapter.type") != Some("lora") {
            return Err(wrong("it is no LoRA"));
        }
        if text("general.architecture") != Some(base.shape().architecture.as_str()) {
            return Err(wrong("it is made for another architecture"));
        }
        let alpha = saved.layout.reals.get("adapter.lora.alpha").map_or(0.0, |alpha| *alpha as f32);
        let name = format!("blk.0.{}.weight.lora_a", PROJECTIONS[0]);
        let rank = saved.find(&name).and_then(|tensor| tensor.dimensions.get(1).copied()).unwrap_or(0);
        let most = base.shape().width as u64;
        let rank = usize::try_from(rank).ok().filter(|rank| *rank > 0 && *rank as u64 <= most);
        let rank = rank.ok_or_else(|| wrong("it has no rank"))?;
        // An alpha of 0 means the rank, as in llama.cpp.
        let alpha = if alpha == 0.0 { rank as f32 } else { alpha };
        let mut lora = Self::zero(base.shape(), rank, alpha);
        let names: Vec<String> = lora.names().collect();
        for (name, matrix) in names.iter().zip(lora.matrices_mut()) {
            matrix.values = saved.values(name, matrix.rows, matrix.columns)?;
        }
        Ok(lora)
    }
}

/// The change of a projection, ready to be multiplied: first the trained part, then the frozen one.
pub(crate) struct LowRankUpdate {
    a: Tensor,
    b: Tensor,
    scale: f32,
}

impl LowRankUpdate {
    /// Computes `x W + scale x A B`, for `weight` outputs by inputs and `x` rows by inputs.
    pub(crate) fn project(&self, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let low = (x.matmul(&self.a.t()?)? * f64::from(self.scale))?;
        sum(x.matmul(&weight.t()?)?, &low.matmul(&self.b.t()?)?)
    }

    /// Returns the gradient of [`Self::project`] for `x`, and adds the gradient of the trained part to `learned`.
    pub(crate) fn project_back(
        &self,
        x: &Tensor,
        weight: &Tensor,
        grad: &Tensor,
        learned: &mut LoraPair,
    ) -> Result<Tensor> {
        let learning = learned.a.rows;
        let low = (x.matmul(&self.a.narrow(0, 0, learning)?.t()?)? * f64::from(self.scale))?;
        let to_low = (grad.matmul(&self.b)? * f64::from(self.scale))?;
        add(&grad.t()?.matmul(&low)?, &mut learned.b)?;
        // A GPU cannot multiply some of its columns as a matrix unless they are contiguous.
        add(&to_low.narrow(1, 0, learning)?.contiguous()?.t()?.matmul(x)?, &mut learned.a)?;
        sum(grad.matmul(weight)?, &to_low.matmul(&self.a)?)
    }
}

fn add(grad: &Tensor, to: &mut Matrix) -> Result<()> {
    crate::slice::read(grad, |grad| to.values.iter_mut().zip(grad).for_each(|(to, grad)| *to += grad))
}
