//! The frozen model: the weights of a GGUF file, kept quantized.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use azera_model_gguf::{GgufError, Layout, TensorAt};
use candle_core::quantized::{GgmlDType, QTensor, ggml_file::qtensor_from_ggml};
use candle_core::{Device, Tensor};
use data_encoding::HEXLOWER;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::device::ComputeDevice;
use crate::error::{Error, Result, gguf, io};
use crate::slice::{matrix, read};

/// The rows of the vocabulary that are dequantized at once.
const VOCABULARY_ROWS: usize = 8192;

/// The rows of a projection that a thread dequantizes at once.
const PROJECTION_ROWS: usize = 128;

/// The largest accepted number of layers, and the largest accepted size of anything else.
const MAX_LAYERS: u64 = 1024;
const MAX_WIDTH: u64 = 1 << 20;

/// The pairs of numbers in a head that rotary positions rotate together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rope {
    /// Neighbours, as in llama.cpp's permuted Llama weights.
    Neighbours,
    /// A number of the first half and one of the second, as in GPT-NeoX and Qwen.
    Halves,
}

/// The dimensions of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// The architecture by its GGUF name: `llama`, `qwen2` or `qwen3`.
    pub architecture: String,
    /// The number of layers.
    pub layers: usize,
    /// The width of a hidden state.
    pub width: usize,
    /// The number of query heads.
    pub heads: usize,
    /// The number of key heads. Each serves `heads / kv_heads` query heads.
    pub kv_heads: usize,
    /// The width of a head.
    pub head_width: usize,
    /// The inner width of the feed-forward part.
    pub inner: usize,
    /// The number of tokens in the vocabulary.
    pub vocabulary: usize,
    /// The most tokens in a sequence.
    pub context: usize,
    /// The constant under the root of a norm, added to the mean square.
    pub epsilon: f32,
    /// The base of the rotary frequencies.
    pub rope_base: f32,
    /// The pairs that are rotated together.
    pub rope: Rope,
    /// How many numbers of a head are rotated.
    pub rope_width: usize,
}

/// The linear projections of a layer, in the order of a LoRA's pairs.
pub const PROJECTIONS: [&str; 7] = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];

impl Shape {
    /// Returns the inputs and outputs of each of [`PROJECTIONS`].
    pub fn projections(&self) -> [(usize, usize); 7] {
        let (queried, answered) = (self.heads * self.head_width, self.kv_heads * self.head_width);
        [
            (self.width, queried),
            (self.width, answered),
            (self.width, answered),
            (queried, self.width),
            (self.width, self.inner),
            (self.width, self.inner),
            (self.inner, self.width),
        ]
    }
}

/// The weights of a layer.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) attn_norm: Vec<f32>,
    pub(crate) ffn_norm: Vec<f32>,
    /// The norms of each head's queries and keys, if the architecture has them.
    pub(crate) head_norms: Option<(Vec<f32>, Vec<f32>)>,
    /// What is added to the queries, keys and values, one row each, if the architecture does that.
    pub(crate) biases: Option<[Tensor; 3]>,
    /// The projections in the order of [`PROJECTIONS`], outputs by inputs. On the processor, each is split into parts
    /// of [`PROJECTION_ROWS`] rows.
    projections: Vec<Vec<QTensor>>,
}

impl Layer {
    /// Returns projection `which` as plain floats, outputs by inputs.
    pub(crate) fn projection(&self, which: usize) -> Result<Tensor> {
        let parts = &self.projections[which];
        if let [whole] = parts.as_slice() {
            return Ok(whole.dequantize(&whole.device())?);
        }
        let rows: usize = parts.iter().map(|part| part.shape().dims()[0]).sum();
        let inputs = parts[0].shape().dims()[1];
        let mut values = vec![0.0_f32; rows * inputs];
        let to_parts = values.par_chunks_mut(PROJECTION_ROWS * inputs).zip(parts);
        to_parts.try_for_each(|(to, part)| read(&part.dequantize(&Device::Cpu)?, |from| to.copy_from_slice(from)))?;
        matrix(values, rows, inputs)
    }
}

/// A model to train LoRAs for. Its own weights never change.
#[derive(Debug)]
pub struct BaseModel {
    shape: Shape,
    place: ComputeDevice,
    sha256: String,
    pub(crate) layers: Vec<Layer>,
    pub(crate) output_norm: Vec<f32>,
    /// The divisors of the rotary frequencies.
    pub(crate) rope_factors: Vec<f32>,
    /// The embeddings, in parts of [`VOCABULARY_ROWS`] tokens.
    embeddings: Vec<QTensor>,
    /// The last projection, if it differs from the embeddings.
    output: Option<Vec<QTensor>>,
}

impl BaseModel {
    /// Opens a model of the `llama`, `qwen2` or `qwen3` architecture on the processor.
    ///
    /// # Errors
    /// [`Error::Gguf`] if the file is damaged, [`Error::Model`] if the architecture is not supported.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_at(path, &ComputeDevice::processor())
    }

    /// Opens a model on a device, which gets its weights quantized as they are.
    ///
    /// # Errors
    /// Those of [`Self::open`], and [`Error::Compute`] if the device has no room for it.
    pub fn open_at(path: &Path, place: &ComputeDevice) -> Result<Self> {
        Weights::open(path, place)?.base()
    }

    /// Returns the shape of a model that can be trained, from the header of its file.
    ///
    /// # Errors
    /// Those of [`Self::open`], as far as the header shows them.
    pub fn look_at(path: &Path) -> Result<Shape> {
        Weights::open(path, &ComputeDevice::processor())?.shape()
    }

    /// Returns the device that computes.
    pub fn place(&self) -> &ComputeDevice {
        &self.place
    }

    /// Returns the shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the SHA-256 of the file, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns the embeddings of some tokens, tokens by width.
    pub(crate) fn embed(&self, tokens: &[u32]) -> Result<Tensor> {
        let mut rows = vec![0.0_f32; tokens.len() * self.shape.width];
        for (index, chunk) in self.embeddings.iter().enumerate() {
            let first = index * VOCABULARY_ROWS;
            let inside = |token: u32| (token as usize).checked_sub(first).filter(|row| *row < VOCABULARY_ROWS);
            let (places, chosen): (Vec<usize>, Vec<u32>) =
                tokens.iter().enumerate().filter_map(|(place, token)| Some((place, inside(*token)? as u32))).unzip();
            if chosen.is_empty() {
                continue;
            }
            let device = self.place.device();
            let chosen = Tensor::from_vec(chosen, places.len(), device)?;
            read(&chunk.dequantize(device)?.index_select(&chosen, 0)?, |values| {
                for (place, values) in places.iter().zip(values.chunks_exact(self.shape.width)) {
                    rows[place * self.shape.width..][..self.shape.width].copy_from_slice(values);
                }
            })?;
        }
        Ok(Tensor::from_vec(rows, (tokens.len(), self.shape.width), self.place.device())?)
    }

    /// Iterates over the parts of the last projection: the first token of each, and its weights as plain floats, tokens
    /// by width.
    pub(crate) fn vocabulary(&self) -> impl Iterator<Item = Result<(usize, Tensor)>> {
        let parts = self.output.as_ref().unwrap_or(&self.embeddings);
        parts
            .iter()
            .enumerate()
            .map(|(index, part)| Ok((index * VOCABULARY_ROWS, part.dequantize(self.place.device())?)))
    }
}

/// A file whose weights are being read.
struct Weights<'a> {
    path: &'a Path,
    place: &'a ComputeDevice,
    file: File,
    bytes: u64,
    layout: Layout,
    architecture: String,
}

impl<'a> Weights<'a> {
    fn open(path: &'a Path, place: &'a ComputeDevice) -> Result<Self> {
        let file = File::open(path).map_err(io(path))?;
        let bytes = file.metadata().map_err(io(path))?.len();
        let layout = Layout::read(BufReader::new(&file)).map_err(gguf(path))?;
        let architecture = layout.texts.get("general.architecture").cloned().unwrap_or_default();
        Ok(Self { path, place, file, bytes, layout, architecture })
    }

    fn base(mut self) -> Result<BaseModel> {
        let shape = self.shape()?;
        let together = if self.place.is_processor() { PROJECTION_ROWS } else { usize::MAX };
        let mut layers = Vec::new();
        for layer in 0..shape.layers {
            let name = |part: &str| format!("blk.{layer}.{part}.weight");
            let biases = self.biases(layer, &shape)?;
            let mut projections = Vec::new();
            for (part, (inputs, outputs)) in PROJECTIONS.iter().zip(shape.projections()) {
                projections.push(self.rows(&name(part), inputs, outputs, together)?);
            }
            let head_norms = match shape.architecture.as_str() {
                "qwen3" => Some((
                    self.vector(&name("attn_q_norm"), shape.head_width)?,
                    self.vector(&name("attn_k_norm"), shape.head_width)?,
                )),
                _ => None,
            };
            layers.push(Layer {
                attn_norm: self.vector(&name("attn_norm"), shape.width)?,
                ffn_norm: self.vector(&name("ffn_norm"), shape.width)?,
                head_norms,
                biases,
                projections,
            });
        }
        let pairs = shape.rope_width / 2;
        let rope_factors = match self.find("rope_freqs.weight") {
            Some(_) => self.vector("rope_freqs.weight", pairs)?,
            None => vec![1.0; pairs],
        };
        let output = match self.find("output.weight") {
            Some(_) => Some(self.rows("output.weight", shape.width, shape.vocabulary, VOCABULARY_ROWS)?),
            None => None,
        };
        Ok(BaseModel {
            output_norm: self.vector("output_norm.weight", shape.width)?,
            embeddings: self.rows("token_embd.weight", shape.width, shape.vocabulary, VOCABULARY_ROWS)?,
            output,
            rope_factors,
            layers,
            sha256: self.digest()?,
            place: self.place.clone(),
            shape,
        })
    }

    /// Reads the biases of the queries, keys and values. The other architectures and projections have none.
    fn biases(&mut self, layer: usize, shape: &Shape) -> Result<Option<[Tensor; 3]>> {
        let takes = shape.architecture == "qwen2";
        for part in PROJECTIONS.iter().skip(if takes { 3 } else { 0 }) {
            if self.find(&format!("blk.{layer}.{part}.bias")).is_some() {
                return Err(Error::Model(format!("its {part} has a bias")));
            }
        }
        if !takes {
            return Ok(None);
        }
        let mut bias = |which: usize| -> Result<Tensor> {
            let (_, outputs) = shape.projections()[which];
            let values = self.vector(&format!("blk.{layer}.{}.bias", PROJECTIONS[which]), outputs)?;
            Ok(Tensor::from_vec(values, (1, outputs), self.place.device())?)
        };
        Ok(Some([bias(0)?, bias(1)?, bias(2)?]))
    }

    fn shape(&self) -> Result<Shape> {
        let rope = match self.architecture.as_str() {
            "llama" => Rope::Neighbours,
            "qwen2" | "qwen3" => Rope::Halves,
            other => {
                let which = "llama, qwen2 and qwen3 can be trained";
                return Err(Error::Model(format!("its architecture is {other:?}; {which}")));
            }
        };
        let scaling = self.layout.texts.get(&format!("{}.rope.scaling.type", self.architecture));
        if scaling.is_some_and(|scaling| scaling != "none") {
            return Err(Error::Model("its positions are scaled".into()));
        }
        if self.number("expert_count", MAX_WIDTH)?.is_some_and(|experts| experts > 0) {
            return Err(Error::Model("it is a mixture of experts".into()));
        }
        let given = |key: &'static str, value: Option<usize>| {
            value.filter(|value| *value > 0).ok_or_else(|| Error::Model(format!("its {key} is missing or nothing")))
        };
        let width = given("embedding_length", self.number("embedding_length", MAX_WIDTH)?)?;
        let heads = given("attention.head_count", self.number("attention.head_count", MAX_WIDTH)?)?;
        let kv_heads = self.number("attention.head_count_kv", MAX_WIDTH)?.unwrap_or(heads);
        let head_width = self.number("attention.key_length", MAX_WIDTH)?.unwrap_or(width / heads);
        let rope_width = self.number("rope.dimension_count", MAX_WIDTH)?.unwrap_or(head_width);
        let rows = |name: &str| -> Result<usize> {
            let tensor = self.find(name).ok_or_else(|| Error::Model(format!("it has no {name}")))?;
            let rows = tensor.dimensions.get(1).and_then(|rows| usize::try_from(*rows).ok());
            rows.filter(|rows| *rows > 0).ok_or_else(|| Error::Model(format!("its {name} has an odd shape")))
        };
        let values = self.number("attention.value_length", MAX_WIDTH)?.unwrap_or(head_width);
        let fits = kv_heads > 0 && heads % kv_heads == 0 && head_width > 0 && values == head_width;
        let turns = rope_width > 0 && rope_width <= head_width && rope_width % 2 == 0;
        if !fits || !turns {
            return Err(Error::Model("its heads have an odd shape".into()));
        }
        let real = |key: &str| self.layout.reals.get(&format!("{}.{key}", self.architecture)).map(|it| *it as f32);
        Ok(Shape {
            layers: given("block_count", self.number("block_count", MAX_LAYERS)?)?,
            context: given("context_length", self.number("context_length", u64::from(u32::MAX))?)?,
            inner: rows("blk.0.ffn_gate.weight")?,
            vocabulary: rows("token_embd.weight")?,
            epsilon: real("attention.layer_norm_rms_epsilon").unwrap_or(1e-5),
            rope_base: real("rope.freq_base").unwrap_or(10_000.0),
            architecture: self.architecture.clone(),
            width,
            heads,
            kv_heads,
            head_width,
            rope,
            rope_width,
        })
    }

    fn number(&self, key: &str, most: u64) -> Result<Option<usize>> {
        let Some(number) = self.layout.numbers.get(&format!("{}.{key}", self.architecture)) else { return Ok(None) };
        if *number > most {
            return Err(Error::Model(format!("its {key} is {number}")));
        }
        Ok(usize::try_from(*number).ok())
    }

    fn find(&self, name: &str) -> Option<&TensorAt> {
        self.layout.tensors.iter().find(|tensor| tensor.name == name.as_bytes())
    }

    /// Reads a matrix of `outputs` rows in parts of at most `most` rows.
    fn rows(&mut self, name: &str, inputs: usize, outputs: usize, most: usize) -> Result<Vec<QTensor>> {
        let tensor = self.find(name).ok_or_else(|| Error::Model(format!("it has no {name}")))?.clone();
        let wanted = [inputs as u64, outputs as u64];
        let one_row = outputs == 1 && tensor.dimensions == wanted[..1];
        if tensor.dimensions != wanted && !one_row {
            let what = format!("its {name} is {:?} where {wanted:?} is expected", tensor.dimensions);
            return Err(Error::Model(what));
        }
        let kind = kind(tensor.tensor_type.0).filter(|kind| inputs.is_multiple_of(kind.block_size()));
        let kind = kind.ok_or_else(|| {
            Error::Model(format!(
                "its {name} is stored in a way (ggml's number {}) that is not read",
                tensor.tensor_type.0
            ))
        })?;
        let row_bytes = inputs / kind.block_size() * kind.type_size();
        let size = row_bytes.checked_mul(outputs).map(|size| size as u64);
        let start = self.layout.data_at.checked_add(tensor.offset);
        let end = start.zip(size).and_then(|(start, size)| start.checked_add(size));
        let (Some(start), Some(_)) = (start, end.filter(|end| *end <= self.bytes)) else {
            return Err(gguf(self.path)(GgufError::Truncated));
        };
        self.file.seek(SeekFrom::Start(start)).map_err(io(self.path))?;
        let mut parts = Vec::new();
        let mut left = outputs;
        while left > 0 {
            let rows = left.min(most);
            let mut bytes = vec![0; rows * row_bytes];
            self.file.read_exact(&mut bytes).map_err(io(self.path))?;
            parts.push(qtensor_from_ggml(kind, &bytes, vec![rows, inputs], self.place.device())?);
            left -= rows;
        }
        Ok(parts)
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>> {
        let parts = self.rows(name, length, 1, 1)?;
        let mut values = Vec::with_capacity(length);
        for part in parts {
            read(&part.dequantize(self.place.device())?, |slice| values.extend_from_slice(slice))?;
        }
        Ok(values)
    }

    fn digest(&mut self) -> Result<String> {
        self.file.rewind().map_err(io(self.path))?;
        let mut hasher = Sha256::new();
        std::io::copy(&mut self.file, &mut hasher).map_err(io(self.path))?;
        Ok(HEXLOWER.encode(&hasher.finalize()))
    }
}

/// Returns candle's name for a storage type that it can read.
fn kind(number: u32) -> Option<GgmlDType> {
    Some(match number {
        0 => GgmlDType::F32,
        1 => GgmlDType::F16,
        2 => GgmlDType::Q4_0,
        3 => GgmlDType::Q4_1,
        6 => GgmlDType::Q5_0,
        7 => GgmlDType::Q5_1,
        8 => GgmlDType::Q8_0,
        10 => GgmlDType::Q2K,
        11 => GgmlDType::Q3K,
        12 => GgmlDType::Q4K,
        13 => GgmlDType::Q5K,
        14 => GgmlDType::Q6K,
        30 => GgmlDType::BF16,
        _ => return None,
    })
}
