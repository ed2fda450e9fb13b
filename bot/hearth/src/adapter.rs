//! Low-rank adapters (LoRA, Hu et al. 2021) on every linear projection, and llama.cpp's own file of them.

use std::fs;
use std::path::Path;

use azera_gguf::{GgufFile, Tensor as Stored, TensorType, Value};
use candle_core::Tensor;
use half::f16;

use crate::base::{Base, PROJECTIONS, Shape};
use crate::error::{Error, Result, io};
use crate::saved::Saved;
use crate::slice::{matrix, sum};

/// Numbers that are learnt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) values: Vec<f32>,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Matrix {
    fn zero(rows: usize, columns: usize) -> Self {
        Self { values: vec![0.0; rows * columns], rows, columns }
    }

    fn tensor(&self) -> Result<Tensor> {
        matrix(self.values.clone(), self.rows, self.columns)
    }
}

/// What is added to one projection: `alpha / rank * B A x`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    /// Rank by inputs.
    pub(crate) a: Matrix,
    /// Outputs by rank.
    pub(crate) b: Matrix,
}

/// An adapter for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Adapter {
    pub(crate) architecture: String,
    pub(crate) rank: usize,
    pub(crate) alpha: f32,
    /// Of every projection of every layer, in the order of [`PROJECTIONS`].
    pub(crate) pairs: Vec<Pair>,
}

impl Adapter {
    /// One that changes nothing yet: `A` uniform within `1 / sqrt(inputs)`, `B` zero, as PEFT begins.
    pub fn new(base: &Base, rank: usize, alpha: f32, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut adapter = Self::zero(base.shape(), rank, alpha);
        for pair in &mut adapter.pairs {
            let bound = 1.0 / (pair.a.columns as f32).sqrt();
            pair.a.values.iter_mut().for_each(|value| *value = (random.f32() * 2.0 - 1.0) * bound);
        }
        adapter
    }

    pub(crate) fn zero(shape: &Shape, rank: usize, alpha: f32) -> Self {
        let projections = shape.projections();
        let pairs = (0..shape.layers)
            .flat_map(|_| projections)
            .map(|(inputs, outputs)| Pair { a: Matrix::zero(rank, inputs), b: Matrix::zero(outputs, rank) });
        Self { architecture: shape.architecture.clone(), rank, alpha, pairs: pairs.collect() }
    }

    /// The rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many numbers are learnt.
    pub fn parameters(&self) -> usize {
        self.matrices().map(|matrix| matrix.values.len()).sum()
    }

    pub(crate) fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        self.pairs.iter().flat_map(|pair| [&pair.a, &pair.b])
    }

    pub(crate) fn matrices_mut(&mut self) -> impl Iterator<Item = &mut Matrix> {
        self.pairs.iter_mut().flat_map(|pair| [&mut pair.a, &mut pair.b])
    }

    /// The parts that touch one layer.
    pub(crate) fn layer(&self, layer: usize) -> Result<Vec<Low>> {
        let scale = self.alpha / self.rank as f32;
        let pairs = self.pairs.iter().skip(layer * PROJECTIONS.len()).take(PROJECTIONS.len());
        pairs.map(|pair| Ok(Low { a: pair.a.tensor()?, b: pair.b.tensor()?, scale })).collect()
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
        for (name, matrix) in self.names().zip(self.matrices()) {
            file.tensors.push(Stored {
                name,
                dimensions: vec![matrix.columns as u64, matrix.rows as u64],
                tensor_type: TensorType::F16,
                data: matrix.values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect(),
            });
        }
        let mut bytes = Vec::new();
        file.write(&mut bytes).map_err(io(path))?;
        fs::write(path, bytes).map_err(io(path))
    }

    /// Reads an adapter file, of whatever origin, for this model.
    ///
    /// # Errors
    /// [`Error::Saved`] for a file that is damaged, belongs to another model or leaves projections out.
    pub fn read(path: &Path, base: &Base) -> Result<Self> {
        let mut saved = Saved::open(path)?;
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
        let mut adapter = Self::zero(base.shape(), rank, alpha);
        let names: Vec<String> = adapter.names().collect();
        for (name, matrix) in names.iter().zip(adapter.matrices_mut()) {
            matrix.values = saved.values(name, matrix.rows, matrix.columns)?;
        }
        Ok(adapter)
    }
}

/// What is added to a projection, ready to be multiplied.
pub(crate) struct Low {
    a: Tensor,
    b: Tensor,
    scale: f32,
}

impl Low {
    /// `x W + scale x A B` for `weight` out by in and `x` rows by in.
    pub(crate) fn project(&self, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let low = (x.matmul(&self.a.t()?)? * f64::from(self.scale))?;
        sum(&x.matmul(&weight.t()?)?, &low.matmul(&self.b.t()?)?)
    }

    /// What [`Self::project`] hands back to `x`; what it hands back to the adapter is added to `learnt`.
    pub(crate) fn project_back(&self, x: &Tensor, weight: &Tensor, grad: &Tensor, learnt: &mut Pair) -> Result<Tensor> {
        let low = (x.matmul(&self.a.t()?)? * f64::from(self.scale))?;
        let to_low = (grad.matmul(&self.b)? * f64::from(self.scale))?;
        add(&grad.t()?.matmul(&low)?, &mut learnt.b)?;
        add(&to_low.t()?.matmul(x)?, &mut learnt.a)?;
        sum(&grad.matmul(weight)?, &to_low.matmul(&self.a)?)
    }
}

fn add(grad: &Tensor, to: &mut Matrix) -> Result<()> {
    crate::slice::read(grad, |grad| to.values.iter_mut().zip(grad).for_each(|(to, grad)| *to += grad))
}
