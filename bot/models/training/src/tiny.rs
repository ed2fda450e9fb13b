//! A made-up model for tests, with every part of a real one and a few thousand weights.

use std::path::Path;

use azera_model_gguf::{GgufFile, Tensor, TensorType, Value, quantize_q8_0};

use crate::base::PROJECTIONS;

/// The number of tokens in its vocabulary.
pub(crate) const VOCABULARY: u64 = 50;

/// Writes the model: `llama`, `qwen2` with biases, or `qwen3` with heads wider than the width divided by their number.
pub(crate) fn write(path: &Path, architecture: &str) {
    let mut random = fastrand::Rng::with_seed(7);
    let (layers, width, heads, kv_heads, inner) = (2_u64, 32_u64, 4_u64, 2_u64, 64_u64);
    let head_width = if architecture == "qwen3" { 16 } else { 8 };
    let mut file = GgufFile::default();
    file.set("general.architecture", Value::String(architecture.to_owned()));
    for (key, value) in [
        ("block_count", layers),
        ("embedding_length", width),
        ("feed_forward_length", inner),
        ("attention.head_count", heads),
        ("attention.head_count_kv", kv_heads),
        ("attention.key_length", head_width),
        ("attention.value_length", head_width),
        ("rope.dimension_count", head_width),
        ("context_length", 128),
        ("vocab_size", VOCABULARY),
    ] {
        file.set(format!("{architecture}.{key}"), Value::U32(value as u32));
    }
    file.set(format!("{architecture}.attention.layer_norm_rms_epsilon"), Value::F32(1e-5));
    file.set(format!("{architecture}.rope.freq_base"), Value::F32(10_000.0));
    let mut weights = |count: u64, enclosing: f32, by: f32| -> Vec<f32> {
        (0..count).map(|_| enclosing + (random.f32() * 2.0 - 1.0) * by).collect()
    };
    let mut tensors = Vec::new();
    let mut matrix = |name: String, inputs: u64, outputs: u64| {
        let data = quantize_q8_0(&weights(inputs * outputs, 0.0, 1.7 / (inputs as f32).sqrt()));
        tensors.push(Tensor { name, dimensions: vec![inputs, outputs], tensor_type: TensorType::Q8_0, data });
    };
    matrix("token_embd.weight".to_owned(), width, VOCABULARY);
    let (queried, answered) = (heads * head_width, kv_heads * head_width);
    let sizes = [
        (width, queried),
        (width, answered),
        (width, answered),
        (queried, width),
        (width, inner),
        (width, inner),
        (inner, width),
    ];
    for layer in 0..layers {
        for (part, (inputs, outputs)) in PROJECTIONS.iter().zip(sizes) {
            matrix(format!("blk.{layer}.{part}.weight"), inputs, outputs);
        }
    }
    let mut vector = |name: String, length: u64| {
        let data = weights(length, 1.0, 0.3).iter().flat_map(|weight| weight.to_le_bytes()).collect();
        tensors.push(Tensor { name, dimensions: vec![length], tensor_type: TensorType::F32, data });
    };
    vector("output_norm.weight".to_owned(), width);
    for layer in 0..layers {
        vector(format!("blk.{layer}.attn_norm.weight"), width);
        vector(format!("blk.{layer}.ffn_norm.weight"), width);
        if architecture == "qwen2" {
            vector(format!("blk.{layer}.attn_q.bias"), queried);
            vector(format!("blk.{layer}.attn_k.bias"), answered);
            vector(format!("blk.{layer}.attn_v.bias"), answered);
        }
        if architecture == "qwen3" {
            vector(format!("blk.{layer}.attn_q_norm.weight"), head_width);
            vector(format!("blk.{layer}.attn_k_norm.weight"), head_width);
        }
    }
    file.tensors = tensors;
    let mut bytes = Vec::new();
    file.write(&mut bytes).unwrap();
    std::fs::write(path, bytes).unwrap();
}
