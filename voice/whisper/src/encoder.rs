//! The encoder: turns a spectrogram into one vector for each 20 ms.

use azera_voice_api::Error;
use rayon::prelude::*;

use crate::linear::{Gemm, LayerNorm, Linear, Strided, add, failed, gelu, softmax};
use crate::steps::Steps;
use crate::weights::Weights;

/// Columns of the spectrogram that a convolution sees.
const KERNEL: usize = 3;
/// Columns of the spectrogram for one vector.
pub(crate) const COLUMNS_PER_VECTOR: usize = 2;
/// Limits for the numbers of a model file; the largest Whisper has 1,280 wide, 20 heads and 32 layers.
pub(crate) const MAX_WIDTH: usize = 1 << 13;
pub(crate) const MAX_HEADS: usize = 1 << 8;
pub(crate) const MAX_LAYERS: usize = 1 << 8;

/// The encoder's weights.
pub(crate) struct Encoder {
    /// Length of its vectors.
    pub(crate) width: usize,
    /// Bands of the spectrogram.
    pub(crate) bands: usize,
    heads: usize,
    first: Linear,
    second: Linear,
    /// `[most vectors, width]`.
    positions: Vec<f32>,
    layers: Vec<Layer>,
    norm: LayerNorm,
}

struct Layer {
    attention_norm: LayerNorm,
    /// Queries, keys and values, one above the other.
    projection: Linear,
    attention_out: Linear,
    feed_forward_norm: LayerNorm,
    widen: Linear,
    narrow: Linear,
}

impl Encoder {
    /// Reads the encoder's weights.
    pub(crate) fn read(weights: &Weights) -> Result<Self, Error> {
        let [width, bands, KERNEL] = *weights.shape("encoder/conv1/weight")? else {
            return Err(weights.wrong("the first convolution has another shape"));
        };
        let heads = weights.number("whisper.encoder.attention.head_count", MAX_HEADS)?;
        if width == 0 || width > MAX_WIDTH || bands == 0 || bands > MAX_WIDTH || heads == 0 || width % heads != 0 {
            return Err(weights.wrong("the encoder has an impossible width"));
        }
        let [length, _] = *weights.shape("encoder/position_encodings/encodings")? else {
            return Err(weights.wrong("the encoder's positions have another shape"));
        };
        let mut layers = Vec::new();
        while layers.len() < MAX_LAYERS && weights.has(&layer_name("encoder", layers.len(), "ffn/linear_0/weight")) {
            layers.push(Layer::read(weights, layers.len(), width)?);
        }
        Ok(Self {
            width,
            bands,
            heads,
            first: convolution(weights, "encoder/conv1", width, bands)?,
            second: convolution(weights, "encoder/conv2", width, width)?,
            positions: weights.floats("encoder/position_encodings/encodings", &[length, width])?,
            layers,
            norm: weights.norm("encoder", width)?,
        })
    }

    /// Returns one vector for each two columns of the spectrogram, `[columns / 2, width]`.
    pub(crate) fn run(&self, mel: &[f32], gemm: &Gemm, steps: &Steps<'_>) -> Result<Vec<f32>, Error> {
        let mut x = steps.run(|| {
            let first = convolve(&self.first, mel, self.bands, 1, gemm)?;
            convolve(&self.second, &first, self.width, COLUMNS_PER_VECTOR, gemm)
        })?;
        if x.len() > self.positions.len() {
            return Err(failed("the spectrogram is longer than the model's window"));
        }
        add(&mut x, &self.positions);
        for layer in &self.layers {
            let attended = steps.run(|| {
                let normal = layer.attention_norm.apply(&x);
                let projected = layer.projection.apply(Strided::whole(&normal, self.width), gemm)?;
                let mixed = self.attend(&projected, gemm)?;
                layer.attention_out.apply(Strided::whole(&mixed, self.width), gemm)
            })?;
            add(&mut x, &attended);
            let fed = steps.run(|| {
                let normal = layer.feed_forward_norm.apply(&x);
                let mut wide = layer.widen.apply(Strided::whole(&normal, self.width), gemm)?;
                gelu(&mut wide);
                layer.narrow.apply(Strided::whole(&wide, layer.narrow.inputs), gemm)
            })?;
            add(&mut x, &fed);
        }
        Ok(self.norm.apply(&x))
    }

    /// Returns the attention of all heads, from queries, keys and values side by side.
    fn attend(&self, projected: &[f32], gemm: &Gemm) -> Result<Vec<f32>, Error> {
        let head_width = self.width / self.heads;
        let scale = (head_width as f32).sqrt().recip();
        let all = Strided::whole(projected, 3 * self.width);
        let heads = (0..self.heads).into_par_iter().map(|head| {
            let part = |which: usize| all.columns(which * self.width + head * head_width, head_width);
            let mut scores = gemm.scaled_by_transposed(part(0), part(1), scale)?;
            scores.chunks_exact_mut(all.rows.max(1)).for_each(softmax);
            gemm.product(Strided::whole(&scores, all.rows), part(2))
        });
        let heads = heads.collect::<Result<Vec<_>, Error>>()?;
        let mut out = Vec::with_capacity(all.rows * self.width);
        for row in 0..all.rows {
            for head in &heads {
                out.extend_from_slice(&head[row * head_width..(row + 1) * head_width]);
            }
        }
        Ok(out)
    }
}

impl Layer {
    fn read(weights: &Weights, layer: usize, width: usize) -> Result<Self, Error> {
        let name = |part: &str| layer_name("encoder", layer, part);
        let [inner, _] = *weights.shape(&name("ffn/linear_0/weight"))? else {
            return Err(weights.wrong("a feed-forward layer has another shape"));
        };
        Ok(Self {
            attention_norm: weights.norm(&name("self_attention"), width)?,
            projection: weights.linear(&name("self_attention/linear_0"), 3 * width, width)?,
            attention_out: weights.linear(&name("self_attention/linear_1"), width, width)?,
            feed_forward_norm: weights.norm(&name("ffn"), width)?,
            widen: weights.linear(&name("ffn/linear_0"), inner, width)?,
            narrow: weights.linear(&name("ffn/linear_1"), width, inner)?,
        })
    }
}

/// Returns the name of a part of a layer.
pub(crate) fn layer_name(side: &str, layer: usize, part: &str) -> String {
    format!("{side}/layer_{layer}/{part}")
}

/// Reads a convolution as a layer over three columns of the spectrogram side by side.
fn convolution(weights: &Weights, name: &str, outputs: usize, inputs: usize) -> Result<Linear, Error> {
    let stored = weights.floats(&format!("{name}/weight"), &[outputs, inputs, KERNEL])?;
    let mut turned = Vec::with_capacity(stored.len());
    for output in stored.chunks_exact(inputs * KERNEL) {
        for tap in 0..KERNEL {
            turned.extend(output.iter().skip(tap).step_by(KERNEL));
        }
    }
    let bias = weights.floats(&format!("{name}/bias"), &[outputs])?;
    Ok(Linear { inputs: inputs * KERNEL, weights: turned, bias })
}

/// Applies a convolution with one column of zeros before and after, then the Gaussian error unit.
fn convolve(layer: &Linear, x: &[f32], inputs: usize, step: usize, gemm: &Gemm) -> Result<Vec<f32>, Error> {
    let mut padded = vec![0.0; inputs];
    padded.extend_from_slice(x);
    padded.resize(padded.len() + inputs, 0.0);
    let rows = x.len() / inputs / step;
    let windows = Strided { data: &padded, rows, columns: KERNEL * inputs, stride: step * inputs };
    let mut out = layer.apply(windows, gemm)?;
    gelu(&mut out);
    Ok(out)
}
