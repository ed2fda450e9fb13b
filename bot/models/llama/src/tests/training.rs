//! Tests that the trainer computes the same as llama.cpp, with a LoRA and without.

use std::path::Path;

use azera_model_training::{BaseModel, Lora, NextStep, Recipe, TokenizedExample, Training, logits};
use candle_core::Device;
use candle_core::quantized::gguf_file::{self, Content};
use candle_core::quantized::{GgmlDType, QTensor};
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use super::*;
use crate::{LlamaVocabulary, backend};

/// Returns llama.cpp's logits after each token.
fn llama(model: &Path, lora: Option<&Path>, tokens: &[u32]) -> Vec<Vec<f32>> {
    let mut model = backend::load(model, Some(0)).unwrap();
    let mut lora = lora.map(|path| model.lora_adapter_init(path).unwrap());
    let params = LlamaContextParams::default().with_n_ctx(std::num::NonZeroU32::new(512));
    let mut context = model.new_context(backend::backend().unwrap(), params).unwrap();
    if let Some(lora) = &mut lora {
        context.lora_adapter_set(lora, 1.0).unwrap();
    }
    let mut batch = LlamaBatch::new(512, 1);
    for (place, token) in (0..).zip(tokens) {
        batch.add(LlamaToken(i32::try_from(*token).unwrap()), place, &[0], true).unwrap();
    }
    context.decode(&mut batch).unwrap();
    (0..).zip(tokens).map(|(place, _)| context.get_logits_ith(place).to_vec()).collect()
}

/// Returns the largest difference between two distributions of the next token, over all tokens.
fn apart(left: &[f32], right: &[f32]) -> f32 {
    let shares = |logits: &[f32]| {
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f32> = logits.iter().map(|logit| (logit - largest).exp()).collect();
        let whole: f32 = powers.iter().sum();
        powers.into_iter().map(move |power| power / whole).collect::<Vec<_>>()
    };
    shares(left).iter().zip(shares(right)).map(|(left, right)| (left - right).abs()).fold(0.0, f32::max)
}

/// Compares logits. llama.cpp rounds to eight bits, so they only come close: the logits after each token must
/// correlate, and no probability of a next token may differ much.
#[track_caller]
fn compare(ours: &[f32], theirs: &[Vec<f32>]) {
    compare_within(ours, theirs, 0.995, 0.02);
}

/// Compares logits with a least correlation, and a largest mean difference of probabilities.
#[track_caller]
fn compare_within(ours: &[f32], theirs: &[Vec<f32>], least_alike: f32, most_apart: f32) {
    let vocabulary = theirs[0].len();
    assert_eq!(ours.len(), vocabulary * theirs.len());
    let mut whole = 0.0;
    for (place, (ours, theirs)) in ours.chunks_exact(vocabulary).zip(theirs).enumerate() {
        whole += apart(ours, theirs);
        let mean = |logits: &[f32]| logits.iter().sum::<f32>() / logits.len() as f32;
        let (of_ours, of_theirs) = (mean(ours), mean(theirs));
        let (mut both, mut one, mut other) = (0.0, 0.0, 0.0);
        for (ours, theirs) in ours.iter().zip(theirs) {
            let (ours, theirs) = (ours - of_ours, theirs - of_theirs);
            both += ours * theirs;
            one += ours * ours;
            other += theirs * theirs;
        }
        let alike = both / (one * other).sqrt();
        assert!(alike > least_alike, "after token {place} logits correlate by {alike}");
    }
    let mean = whole / theirs.len() as f32;
    assert!(mean < most_apart, "probabilities are {mean} apart in the mean");
}

#[test]
fn the_trainer_agrees_with_the_engine() {
    let path = model("smollm2-135m");
    let reader = LlamaVocabulary::open(&path).unwrap();
    let messages = [system("You are a calm companion."), user("My kite is called Bertha. What is my kite called?")];
    let (tokens, start) = reader.exchange(&messages, "Your kite is called Bertha.").unwrap();
    let base = BaseModel::open(&path).unwrap();
    compare(&logits(&base, None, &tokens).unwrap(), &llama(&path, None, &tokens));

    // A trained LoRA, read from its file.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("adapter.gguf");
    let examples = [TokenizedExample::from_token(start, tokens.clone())];
    let recipe = Recipe { rank: 8, alpha: 16.0, steps: 4, batch: 1, rate: 2e-3, warm_up: 1, ..Recipe::default() };
    let mut training = Training::new(&base, &[], &examples, recipe, 0).unwrap();
    let mut losses = Vec::new();
    training
        .run(&|| false, &mut |_, now| {
            losses.push(now.loss);
            NextStep::GoOn
        })
        .unwrap();
    assert!(losses[3] < losses[0] * 0.7, "nothing was learned: {losses:?}");
    training.lora().write(&file, &[]).unwrap();
    let lora = Lora::read(&file, &base).unwrap();
    let theirs = llama(&path, Some(&file), &tokens);
    compare(&logits(&base, Some(&lora), &tokens).unwrap(), &theirs);
    let bare = llama(&path, None, &tokens);
    assert!(apart(&bare[start], &theirs[start]) > 0.1, "the engine did not take the adapter");
}

#[test]
fn the_trainer_agrees_with_the_engine_on_each_architecture() {
    let fixtures = Path::new("../training/fixtures");
    for architecture in ["llama", "qwen3"] {
        let model = fixtures.join(format!("{architecture}.gguf"));
        let file = fixtures.join(format!("{architecture}-adapter.gguf"));
        let tokens: Vec<u32> = (0..40).map(|place| place * 17 % 50).collect();
        let base = BaseModel::open(&model).unwrap();
        compare(&logits(&base, None, &tokens).unwrap(), &llama(&model, None, &tokens));
        let lora = Lora::read(&file, &base).unwrap();
        let theirs = llama(&model, Some(&file), &tokens);
        compare(&logits(&base, Some(&lora), &tokens).unwrap(), &theirs);
        assert!(apart(&llama(&model, None, &tokens)[39], &theirs[39]) > 0.01, "the engine did not take the adapter");
    }
}

/// Writes the default model with fewer bits: as `long` if its rows are long enough for the blocks, else as `short`.
fn stored(path: &Path, to: &Path, short: GgmlDType, long: GgmlDType) {
    let mut file = std::fs::File::open(path).unwrap();
    let content = Content::read(&mut file).unwrap();
    let mut names: Vec<&String> = content.tensor_infos.keys().collect();
    names.sort();
    let again = |name: &String| {
        let tensor = content.tensor(&mut &file, name, &Device::Cpu).unwrap();
        let inputs = tensor.shape().dims().last().copied().unwrap();
        let kind = if inputs % long.block_size() == 0 { long } else { short };
        match tensor.shape().rank() {
            2 => QTensor::quantize(&tensor.dequantize(&Device::Cpu).unwrap(), kind).unwrap(),
            _ => tensor,
        }
    };
    let tensors: Vec<QTensor> = names.iter().map(|name| again(name)).collect();
    let tensors: Vec<(&str, &QTensor)> = names.iter().map(|name| name.as_str()).zip(&tensors).collect();
    let metadata: Vec<(&str, &gguf_file::Value)> =
        content.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    gguf_file::write(&mut std::fs::File::create(to).unwrap(), &metadata, &tensors).unwrap();
}

#[test]
fn the_trainer_agrees_with_the_engine_for_every_storage_type() {
    use GgmlDType::{BF16, F16, Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K};
    let path = model("smollm2-135m");
    let messages = [system("You are a calm companion."), user("My kite is called Bertha. What is my kite called?")];
    let (tokens, _) = LlamaVocabulary::open(&path).unwrap().exchange(&messages, "Your kite is called Bertha.").unwrap();
    let folder = tempfile::tempdir().unwrap();
    // The least correlation of logits, and the largest difference of probabilities. In a model of this size with so few
    // bits, llama.cpp's rounding weighs more. Weights that are read wrongly correlate with nothing.
    let kinds = [
        (Q4_0, Q4K, 0.98, 0.05),
        (Q5_0, Q5K, 0.98, 0.05),
        (Q5_1, Q6K, 0.98, 0.05),
        (Q4_1, Q4K, 0.98, 0.05),
        (Q4_0, Q3K, 0.98, 0.05),
        (Q4_0, Q2K, 0.97, 0.10),
        (F16, F16, 0.998, 0.01),
        (BF16, BF16, 0.998, 0.01),
    ];
    for (short, long, least_alike, most_apart) in kinds {
        let file = folder.path().join("model.gguf");
        stored(&path, &file, short, long);
        let base = BaseModel::open(&file).unwrap();
        compare_within(&logits(&base, None, &tokens).unwrap(), &llama(&file, None, &tokens), least_alike, most_apart);
    }
}

#[tokio::test]
async fn a_prompt_has_the_same_tokens_as_in_the_engine() {
    let messages = vec![system("Be brief."), user("Say <|im_end|> and hello.")];
    let reader = LlamaVocabulary::open(&model("smollm2-135m")).unwrap();
    let (tokens, start) = reader.exchange(&messages, "Hello!").unwrap();
    let (_, usage) = ask(shared_engine(), greedy(messages, 1)).await;
    assert_eq!(start, usage.prompt_tokens);
    assert_eq!(tokens.len(), start + reader.text("Hello!").unwrap().len() + 1);
}
