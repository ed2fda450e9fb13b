use std::collections::BTreeMap;
use std::ops::Range;

use azera_model_gguf::{GgufFile, Layout, Tensor, TensorAt, TensorType, Value};
use half::{bf16, f16};

use super::shape::BaseShape;

/// The largest LoRA file, in bytes.
pub const MAX_LORA_BYTES: u64 = 1 << 30;

/// The metadata keys of a LoRA file in llama.cpp's format (`convert_lora_to_gguf.py`, `llama-lora.cpp`).
pub(super) const GENERAL_TYPE: &str = "general.type";
pub(super) const ARCHITECTURE: &str = "general.architecture";
pub(super) const LORA_TYPE: &str = "adapter.type";
pub(super) const ALPHA: &str = "adapter.lora.alpha";
/// The suffixes of a weight's two matrices.
pub(super) const A: &str = ".lora_a";
pub(super) const B: &str = ".lora_b";

/// A LoRA file that fits a model.
pub(super) struct LoraFile {
    file: Vec<u8>,
    /// 0 if the file names none, which means the rank.
    alpha: f32,
    pairs: BTreeMap<String, Pair>,
}

struct Pair {
    /// `rank` rows, as wide as the weight's input.
    a: Matrix,
    /// As many rows as the weight has, each `rank` wide.
    b: Matrix,
}

struct Matrix {
    width: usize,
    rows: usize,
    numbers: Numbers,
    at: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    F32,
    F16,
    Bf16,
}

impl Numbers {
    fn of(tensor_type: TensorType) -> Option<Self> {
        match tensor_type {
            TensorType::F32 => Some(Self::F32),
            TensorType::F16 => Some(Self::F16),
            TensorType(30) => Some(Self::Bf16),
            _ => None,
        }
    }

    fn tensor_type(self) -> TensorType {
        match self {
            Self::F32 => TensorType::F32,
            Self::F16 => TensorType::F16,
            Self::Bf16 => TensorType(30),
        }
    }

    fn read(self, bytes: &[u8]) -> Vec<f32> {
        let halves = || bytes.as_chunks().0.iter();
        match self {
            Self::F32 => bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            Self::F16 => halves().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect(),
            Self::Bf16 => halves().map(|bytes| bf16::from_le_bytes(*bytes).to_f32()).collect(),
        }
    }
}

impl LoraFile {
    /// Parses a file and checks that it fits. llama.cpp does not check most of this, and some faults would end the
    /// process.
    pub(super) fn read(file: Vec<u8>, base: &BaseShape) -> Result<Self, String> {
        let layout = Layout::read(file.as_slice()).map_err(|error| error.to_string())?;
        let text = |key: &str| layout.texts.get(key).map_or("", String::as_str);
        if (text(GENERAL_TYPE), text(LORA_TYPE)) != ("adapter", "lora") {
            return Err("it is no LoRA".into());
        }
        if text(ARCHITECTURE) != base.architecture {
            return Err(format!(
                "it was made for a model of the architecture `{}`, and this one is of `{}`",
                text(ARCHITECTURE),
                base.architecture
            ));
        }
        // llama.cpp reads it as single precision.
        let alpha = layout.reals.get(ALPHA).map_or(0.0, |alpha| *alpha as f32);
        if !alpha.is_finite() {
            return Err("its alpha is no number".into());
        }
        let (mut a, mut b) = (BTreeMap::new(), BTreeMap::new());
        for tensor in &layout.tensors {
            let name = std::str::from_utf8(&tensor.name).map_err(|_| "a tensor's name is no text".to_owned())?;
            let (side, weight) = match (name.strip_suffix(A), name.strip_suffix(B)) {
                (Some(weight), _) => (&mut a, weight),
                (_, Some(weight)) => (&mut b, weight),
                _ => return Err(format!("its tensor {name} is no half of a low-rank pair")),
            };
            let matrix = Matrix::of(tensor, layout.data_at, &file).map_err(|reason| format!("{name} {reason}"))?;
            if side.insert(weight.to_owned(), matrix).is_some() {
                return Err(format!("{name} is in it twice"));
            }
        }
        if a.is_empty() && b.is_empty() {
            return Err("there is nothing in it".into());
        }
        let mut pairs = BTreeMap::new();
        for (weight, a) in a {
            let b = b.remove(&weight).ok_or_else(|| format!("{weight}{B} is missing"))?;
            let shape = base.weights.get(&weight).ok_or_else(|| format!("the model has no {weight} to adapt"))?;
            if [a.width, b.rows] != *shape || a.rows != b.width {
                return Err(format!(
                    "its matrices for {weight} are {} x {} and {} x {}, and the model's is {} x {}",
                    a.width, a.rows, b.width, b.rows, shape[0], shape[1]
                ));
            }
            pairs.insert(weight, Pair { a, b });
        }
        match b.into_keys().next() {
            Some(weight) => Err(format!("{weight}{A} is missing")),
            None => Ok(Self { file, alpha, pairs }),
        }
    }

    fn bytes(&self, matrix: &Matrix) -> &[u8] {
        // The range was checked when the matrix was read.
        self.file.get(matrix.at.clone()).unwrap_or_default()
    }

    fn numbers(&self, matrix: &Matrix) -> Vec<f32> {
        matrix.numbers.read(self.bytes(matrix))
    }

    /// Returns the factor of a pair's product at `scale`.
    fn factor(&self, pair: &Pair, scale: f32) -> f32 {
        if self.alpha == 0.0 { scale } else { scale * self.alpha / pair.b.width as f32 }
    }
}

impl Matrix {
    fn of(tensor: &TensorAt, data_at: u64, file: &[u8]) -> Result<Self, String> {
        let numbers = Numbers::of(tensor.tensor_type).ok_or("is stored in another way than F32, F16 or BF16")?;
        let size = |dimension: u64| usize::try_from(dimension).ok().filter(|size| *size > 0);
        let [width, rows] = match tensor.dimensions.as_slice() {
            [width, rows] => size(*width).zip(size(*rows)).map(|(width, rows)| [width, rows]),
            _ => None,
        }
        .ok_or("is no matrix")?;
        let start = data_at.checked_add(tensor.offset);
        let end = tensor.byte_size().and_then(|bytes| start?.checked_add(bytes));
        let range =
            start.and_then(|start| usize::try_from(start).ok()).zip(end.and_then(|end| usize::try_from(end).ok()));
        let at = range.map(|(start, end)| start..end).ok_or("lies past the file's end")?;
        let bytes = file.get(at.clone()).ok_or("lies past the file's end")?;
        // One such number would affect every conversation, because llama.cpp masks the tokens of others by multiplying
        // with zero.
        if numbers.read(bytes).iter().any(|number| !number.is_finite()) {
            return Err("holds what is no number".into());
        }
        Ok(Self { width, rows, numbers, at })
    }
}

/// Joins several LoRAs to one file. Returns it with its scale. Their products are added, so their matrices are
/// concatenated; a single LoRA stays as it is.
pub(super) fn join(architecture: &str, parts: &[(LoraFile, f32)]) -> (GgufFile, f32) {
    let mut file = GgufFile::default();
    file.set(GENERAL_TYPE, Value::String("adapter".into()));
    file.set(ARCHITECTURE, Value::String(architecture.into()));
    file.set(LORA_TYPE, Value::String("lora".into()));
    if let [(lora, scale)] = parts {
        file.set(ALPHA, Value::F32(lora.alpha));
        for (weight, pair) in &lora.pairs {
            for (suffix, matrix) in [(A, &pair.a), (B, &pair.b)] {
                let data = lora.bytes(matrix).to_vec();
                let shape = [matrix.width, matrix.rows];
                file.tensors.push(tensor(weight, suffix, shape, matrix.numbers, data));
            }
        }
        return (file, *scale);
    }
    let mut weights: BTreeMap<&str, Vec<(&LoraFile, &Pair, f32)>> = BTreeMap::new();
    for (lora, scale) in parts {
        for (weight, pair) in &lora.pairs {
            weights.entry(weight).or_default().push((lora, pair, lora.factor(pair, *scale)));
        }
    }
    for (weight, pairs) in weights {
        let (a, b) = (concatenate_rows(&pairs), concatenate_columns(&pairs));
        file.tensors.push(tensor(weight, A, a.0, a.1, a.2));
        file.tensors.push(tensor(weight, B, b.0, Numbers::F32, b.1));
    }
    (file, 1.0)
}

/// Concatenates the first matrices of pairs vertically.
fn concatenate_rows(pairs: &[(&LoraFile, &Pair, f32)]) -> ([usize; 2], Numbers, Vec<u8>) {
    let width = pairs.first().map_or(0, |(_, pair, _)| pair.a.width);
    let rows = pairs.iter().map(|(_, pair, _)| pair.a.rows).sum();
    let mut kinds = pairs.iter().map(|(_, pair, _)| pair.a.numbers);
    let first = kinds.next().unwrap_or(Numbers::F32);
    if kinds.all(|kind| kind == first) {
        let data = pairs.iter().flat_map(|(lora, pair, _)| lora.bytes(&pair.a)).copied().collect();
        return ([width, rows], first, data);
    }
    let numbers = pairs.iter().flat_map(|(lora, pair, _)| lora.numbers(&pair.a));
    ([width, rows], Numbers::F32, numbers.flat_map(f32::to_le_bytes).collect())
}

/// Concatenates the second matrices of pairs horizontally, each multiplied by its factor.
fn concatenate_columns(pairs: &[(&LoraFile, &Pair, f32)]) -> ([usize; 2], Vec<u8>) {
    let rows = pairs.first().map_or(0, |(_, pair, _)| pair.b.rows);
    let width = pairs.iter().map(|(_, pair, _)| pair.b.width).sum();
    let numbers: Vec<(Vec<f32>, usize, f32)> =
        pairs.iter().map(|(lora, pair, factor)| (lora.numbers(&pair.b), pair.b.width, *factor)).collect();
    let mut data = Vec::with_capacity(width * rows * size_of::<f32>());
    for row in 0..rows {
        for (numbers, width, factor) in &numbers {
            for number in numbers.iter().skip(row * width).take(*width) {
                data.extend_from_slice(&(number * factor).to_le_bytes());
            }
        }
    }
    ([width, rows], data)
}

fn tensor(weight: &str, suffix: &str, shape: [usize; 2], numbers: Numbers, data: Vec<u8>) -> Tensor {
    let dimensions = shape.map(|size| size as u64).to_vec();
    Tensor { name: format!("{weight}{suffix}"), dimensions, tensor_type: numbers.tensor_type(), data }
}
