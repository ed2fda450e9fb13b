//! The decoder: computes how likely each token is to come next, and remembers what it computed for earlier tokens.

use azera_voice_api::Error;
use rayon::prelude::*;

use crate::encoder::{MAX_HEADS, MAX_LAYERS, MAX_WIDTH, layer_name};
use crate::linear::{Gemm, HalfLinear, LayerNorm, Linear, Strided, add, dot, failed, gelu, softmax};
use crate::weights::Weights;

/// The decoder's weights.
pub(crate) struct Decoder {
    width: usize,
    heads: usize,
    /// One row for each token. It also computes how likely each is.
    embeddings: HalfLinear,
    /// `[most tokens, width]`.
    positions: Vec<f32>,
    layers: Vec<Layer>,
    norm: LayerNorm,
    /// Layer and head of those whose attention follows the sound.
    alignment_heads: Vec<(usize, usize)>,
}

struct Layer {
    self_norm: LayerNorm,
    /// Query, key and value, one above the other.
    projection: HalfLinear,
    self_out: HalfLinear,
    cross_norm: LayerNorm,
    query: HalfLinear,
    /// Keys and values of the encoder's vectors, one above the other.
    heard: Linear,
    cross_out: HalfLinear,
    feed_forward_norm: LayerNorm,
    widen: HalfLinear,
    narrow: HalfLinear,
}

/// What the decoder remembers of one utterance.
pub(crate) struct Cache {
    /// Tokens so far.
    length: usize,
    layers: Vec<LayerCache>,
}

struct LayerCache {
    /// `[tokens, width]` each.
    keys: Vec<f32>,
    values: Vec<f32>,
    /// Keys and values of the encoder's vectors side by side, `[vectors, 2 * width]`.
    heard: Vec<f32>,
}

/// The decoder's view after one more token.
pub(crate) struct Step {
    /// The last layer's vector.
    hidden: Vec<f32>,
    /// For each alignment head, how much it looked at each of the encoder's vectors.
    pub(crate) attention: Vec<Vec<f32>>,
}

impl Decoder {
    /// Reads the decoder's weights.
    pub(crate) fn read(weights: &Weights) -> Result<Self, Error> {
        let [tokens, width] = *weights.shape("decoder/embeddings/weight")? else {
            return Err(weights.wrong("the embeddings have another shape"));
        };
        let heads = weights.number("whisper.decoder.attention.head_count", MAX_HEADS)?;
        if width == 0 || width > MAX_WIDTH || heads == 0 || width % heads != 0 {
            return Err(weights.wrong("the decoder has an impossible width"));
        }
        let [length, _] = *weights.shape("decoder/position_encodings/encodings")? else {
            return Err(weights.wrong("the decoder's positions have another shape"));
        };
        let mut layers = Vec::new();
        while layers.len() < MAX_LAYERS && weights.has(&layer_name("decoder", layers.len(), "ffn/linear_0/weight")) {
            layers.push(Layer::read(weights, layers.len(), width)?);
        }
        let pairs = weights.integers("alignment_heads")?;
        let alignment_heads: Vec<(usize, usize)> =
            pairs.as_chunks::<2>().0.iter().map(|[layer, head]| (*layer, *head)).collect();
        if alignment_heads.iter().any(|(layer, head)| *layer >= layers.len() || *head >= heads) {
            return Err(weights.wrong("an alignment head does not exist"));
        }
        let embeddings = weights.halves("decoder/embeddings/weight", &[tokens, width])?;
        Ok(Self {
            width,
            heads,
            embeddings: HalfLinear { inputs: width, weights: embeddings, bias: Vec::new() },
            positions: weights.floats("decoder/position_encodings/encodings", &[length, width])?,
            layers,
            norm: weights.norm("decoder", width)?,
            alignment_heads,
        })
    }

    /// Returns the length of its vectors.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of tokens it knows.
    pub(crate) fn token_count(&self) -> usize {
        self.embeddings.weights.len() / self.width
    }

    /// Returns the most tokens of one utterance, the prompt included.
    pub(crate) fn max_tokens(&self) -> usize {
        self.positions.len() / self.width
    }

    /// Begins an utterance with the encoder's vectors.
    pub(crate) fn begin(&self, vectors: &[f32], gemm: &Gemm) -> Result<Cache, Error> {
        let layers = self.layers.iter().map(|layer| {
            let heard = layer.heard.apply(Strided::whole(vectors, self.width), gemm)?;
            Ok(LayerCache { keys: Vec::new(), values: Vec::new(), heard })
        });
        Ok(Cache { length: 0, layers: layers.collect::<Result<_, Error>>()? })
    }

    /// Appends a token.
    pub(crate) fn step(&self, cache: &mut Cache, token: usize) -> Result<Step, Error> {
        let mut x = self.embeddings.row(token).ok_or_else(|| failed("a token is not in the vocabulary"))?;
        let position = self.positions.chunks_exact(self.width).nth(cache.length);
        add(&mut x, position.ok_or_else(|| failed("the utterance has more tokens than the model can hold"))?);
        cache.length += 1;
        let mut attention = vec![Vec::new(); self.alignment_heads.len()];
        for (index, (layer, cached)) in self.layers.iter().zip(&mut cache.layers).enumerate() {
            let projected = layer.projection.apply(&layer.self_norm.apply(&x));
            let (query, key_and_value) = projected.split_at(self.width);
            let (key, value) = key_and_value.split_at(self.width);
            cached.keys.extend_from_slice(key);
            cached.values.extend_from_slice(value);
            let keys = Strided::whole(&cached.keys, self.width);
            let (mixed, _) = self.attend(query, keys, Strided::whole(&cached.values, self.width));
            add(&mut x, &layer.self_out.apply(&mixed));

            let query = layer.query.apply(&layer.cross_norm.apply(&x));
            let heard = Strided::whole(&cached.heard, 2 * self.width);
            let (keys, values) = (heard.columns(0, self.width), heard.columns(self.width, self.width));
            let (mixed, mut looked) = self.attend(&query, keys, values);
            add(&mut x, &layer.cross_out.apply(&mixed));
            for ((_, head), kept) in
                self.alignment_heads.iter().zip(&mut attention).filter(|((layer, _), _)| *layer == index)
            {
                *kept = std::mem::take(&mut looked[*head]);
            }

            let mut wide = layer.widen.apply(&layer.feed_forward_norm.apply(&x));
            gelu(&mut wide);
            add(&mut x, &layer.narrow.apply(&wide));
        }
        Ok(Step { hidden: self.norm.apply(&x), attention })
    }

    /// Returns the logarithm of how likely each token is to come next, up to a constant.
    pub(crate) fn logits(&self, step: &Step) -> Vec<f32> {
        self.embeddings.apply(&step.hidden)
    }

    /// Returns the attention of all heads side by side, and how much each head looked at each row.
    fn attend(&self, query: &[f32], keys: Strided<'_>, values: Strided<'_>) -> (Vec<f32>, Vec<Vec<f32>>) {
        let head_width = self.width / self.heads;
        let scale = (head_width as f32).sqrt().recip();
        let part = |matrix: Strided<'_>, row: usize, head: usize| {
            let start = row * matrix.stride + head * head_width;
            start..start + head_width
        };
        let one = |head: usize| {
            let query = &query[head * head_width..(head + 1) * head_width];
            let score = |row: usize| dot(query, &keys.data[part(keys, row, head)]) * scale;
            let mut looked: Vec<f32> = (0..keys.rows).map(score).collect();
            softmax(&mut looked);
            let mut out = vec![0.0; head_width];
            for (row, weight) in looked.iter().enumerate() {
                for (out, value) in out.iter_mut().zip(&values.data[part(values, row, head)]) {
                    *out += weight * value;
                }
            }
            (out, looked)
        };
        let heads: Vec<_> = (0..self.heads).into_par_iter().map(one).collect();
        let (mixed, looked): (Vec<_>, Vec<_>) = heads.into_iter().unzip();
        (mixed.concat(), looked)
    }
}

impl Layer {
    fn read(weights: &Weights, layer: usize, width: usize) -> Result<Self, Error> {
        let name = |part: &str| layer_name("decoder", layer, part);
        let [inner, _] = *weights.shape(&name("ffn/linear_0/weight"))? else {
            return Err(weights.wrong("a feed-forward layer has another shape"));
        };
        Ok(Self {
            self_norm: weights.norm(&name("self_attention"), width)?,
            projection: weights.half_linear(&name("self_attention/linear_0"), 3 * width, width)?,
            self_out: weights.half_linear(&name("self_attention/linear_1"), width, width)?,
            cross_norm: weights.norm(&name("attention"), width)?,
            query: weights.half_linear(&name("attention/linear_0"), width, width)?,
            heard: weights.linear(&name("attention/linear_1"), 2 * width, width)?,
            cross_out: weights.half_linear(&name("attention/linear_2"), width, width)?,
            feed_forward_norm: weights.norm(&name("ffn"), width)?,
            widen: weights.half_linear(&name("ffn/linear_0"), inner, width)?,
            narrow: weights.half_linear(&name("ffn/linear_1"), width, inner)?,
        })
    }
}
