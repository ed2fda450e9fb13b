//! Low-rank adapters (LoRA, Hu et al. 2021) on every linear projection, and llama.cpp's own file of them.

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

/// Numbers that are learnt.
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

    /// Where the processor reads it.
    pub(crate) fn tensor(&self) -> Result<Tensor> {
        matrix(self.values.clone(), self.rows, self.columns)
    }

    pub(crate) fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.columns..][..self.columns]
    }

    /// Its rows in 64-bit floats.
    pub(crate) fn wide(&self) -> impl Iterator<Item = Vec<f64>> {
        self.values.chunks_exact(self.columns).map(|row| row.iter().map(|value| f64::from(*value)).collect())
    }
}

/// What is added to one projection: `alpha / rank * B A x`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoraPair {
    /// Rank by inputs.
    pub(crate) a: Matrix,
    /// Outputs by rank.
    pub(crate) b: Matrix,
}

impl LoraPair {
    /// Both as one: what is added for it comes first.
    fn beside(&self, other: &Self) -> Result<(Tensor, Tensor)> {
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

/// An adapter for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Lora {
    pub(crate) architecture: String,
    pub(crate) rank: usize,
    pub(crate) alpha: f32,
    /// Of every projection of every layer, in the order of [`PROJECTIONS`].
    pub(crate) pairs: Vec<LoraPair>,
}

impl Lora {
    /// One that changes nothing yet: `A` uniform within `1 / sqrt(inputs)`, `B` zero, as PEFT begins.
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

    /// The rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The same, changing the model by a multiple of what it did: less than 1 leaves more of the model as it was (Wortsman et
    /// al. 2022, *Robust fine-tuning of zero-shot models*).
    pub fn scaled(self, by: f32) -> Self {
        Self { alpha: self.alpha * by, ..self }
    }

    /// The same, changing the model as it did, with another alpha.
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

    /// What `B A` is multiplied by.
    pub(crate) fn scale(&self) -> f32 {
        self.alpha / self.rank as f32
    }

    /// Whether both are made for models of the same measures.
    pub(crate) fn goes_with(&self, other: &Self) -> bool {
        let measures = |pair: &LoraPair| (pair.a.columns, pair.b.rows);
        self.architecture == other.architecture && self.pairs.iter().map(measures).eq(other.pairs.iter().map(measures))
    }

    /// The parts that touch one layer, together with those of what stands `frozen` it at the same scale, for a model there.
    pub(crate) fn layer(
        &self,
        layer: usize,
        beside: Option<&Self>,
        place: &ComputeDevice,
    ) -> Result<Vec<LowRankUpdate>> {
        (layer * PROJECTIONS.len()..)
            .take(PROJECTIONS.len())
            .map(|index| {
                let (pair, beside) = (&self.pairs[index], beside.map(|beside| &beside.pairs[index]));
                let (a, b) = match beside {
                    Some(beside) => pair.beside(beside)?,
                    None => (pair.a.tensor()?, pair.b.tensor()?),
                };
                let device = place.device();
                Ok(LowRankUpdate { a: a.to_device(device)?, b: b.to_device(device)?, scale: self.scale() })
            })
            .collect()
    }

    /// Names of the matrices in llama.cpp's files, in their order here.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let layers = self.pairs.len() / PROJECTIONS.len();
        let parts = (0..layers).flat_map(|layer| PROJECTIONS.map(|part| format!("blk.{layer}.{part}.weight")));
        parts.flat_map(|name| [format!("{name}.lora_a"), format!("{name}.lora_b")])
    }

    /// Writes llama.cpp's adapter file with 16-bit floats. `notes` are further texts of its metadata.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &Path, notes: &[(&str, String)]) -> Result<()> {
        self.write_as(path, notes, TensorType::F16)
    }

    /// The same with `A` in 32-bit floats, which llama.cpp takes too: its rows stay at right angles to those of the adapters it
    /// was learnt beside, where 16 bits leave cosines of about 1e-4.
    ///
    /// # Errors
    /// Those of the file system.
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

    /// Reads an adapter file, of whatever origin, for this model.
    ///
    /// # Errors
    /// [`Error::TensorFile`] for a file that is damaged, belongs to another model or leaves projections out.
    pub fn read(path: &Path, base: &BaseModel) -> Result<Self> {
        let mut saved = TensorFile::open(path)?;
        let wrong = |what: &str| Error::Saved { path: path.to_owned(), what: what.to_owned() };
        let text = |key: &str| saved.layout.texts.get(key).map(String::as_str);
        if text("general.type") != Some("adapter") || text("adapter.type") != Some("lora") {
            return Err(wrong("it is no LoRA adapter"));
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
        // llama.cpp takes no alpha for that of the rank.
        let alpha = if alpha == 0.0 { rank as f32 } else { alpha };
        let mut lora = Self::zero(base.shape(), rank, alpha);
        let names: Vec<String> = lora.names().collect();
        for (name, matrix) in names.iter().zip(lora.matrices_mut()) {
            matrix.values = saved.values(name, matrix.rows, matrix.columns)?;
        }
        Ok(lora)
    }
}

/// What is added to a projection, ready to be multiplied: what learns, and after it what stays as it is.
pub(crate) struct LowRankUpdate {
    a: Tensor,
    b: Tensor,
    scale: f32,
}

impl LowRankUpdate {
    /// `x W + scale x A B` for `weight` out by in and `x` rows by in.
    pub(crate) fn project(&self, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let low = (x.matmul(&self.a.t()?)? * f64::from(self.scale))?;
        sum(x.matmul(&weight.t()?)?, &low.matmul(&self.b.t()?)?)
    }

    /// What [`Self::project`] hands back to `x`; what it hands back to what learns is added to `learnt`.
    pub(crate) fn project_back(
        &self,
        x: &Tensor,
        weight: &Tensor,
        grad: &Tensor,
        learnt: &mut LoraPair,
    ) -> Result<Tensor> {
        let learning = learnt.a.rows;
        let low = (x.matmul(&self.a.narrow(0, 0, learning)?.t()?)? * f64::from(self.scale))?;
        let to_low = (grad.matmul(&self.b)? * f64::from(self.scale))?;
        add(&grad.t()?.matmul(&low)?, &mut learnt.b)?;
        // Some of its columns are no matrix that a GPU multiplies.
        add(&to_low.narrow(1, 0, learning)?.contiguous()?.t()?.matmul(x)?, &mut learnt.a)?;
        sum(grad.matmul(weight)?, &to_low.matmul(&self.a)?)
    }
}

fn add(grad: &Tensor, to: &mut Matrix) -> Result<()> {
    crate::slice::read(grad, |grad| to.values.iter_mut().zip(grad).for_each(|(to, grad)| *to += grad))
}
