mod device;
mod frozen;
mod merge;
mod reference;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use crate::lora::Lora;
use crate::pack::pack;
use crate::pass::pass;
use crate::{BaseModel, NextStep, Recipe, TokenizedExample, Training, logits, mean_loss, mean_loss_while, tiny};

fn base(folder: &TempDir, architecture: &str) -> (PathBuf, BaseModel) {
    let path = folder.path().join(format!("{architecture}.gguf"));
    tiny::write(&path, architecture);
    let base = BaseModel::open(&path).unwrap();
    (path, base)
}

/// Returns sequences with tokens to learn at their ends; some have a common beginning.
fn examples(count: usize) -> Vec<TokenizedExample> {
    let mut random = fastrand::Rng::with_seed(3);
    let mut token = || random.u32(0..tiny::VOCABULARY as u32);
    let begin: Vec<u32> = (0..36).map(|_| token()).collect();
    (0..count)
        .map(|index| {
            let mut tokens = if index % 3 == 2 { Vec::new() } else { begin.clone() };
            tokens.extend((0..6 + index % 4).map(|_| token()));
            let (length, middle) = (tokens.len(), tokens.len() - 4);
            TokenizedExample { tokens, learned: vec![middle..middle + 1, length - 2..length], keeps: false }
        })
        .collect()
}

/// Returns the same examples; every other one keeps what the model says.
fn keeping(count: usize) -> Vec<TokenizedExample> {
    let all = examples(count).into_iter().enumerate();
    all.map(|(index, example)| TokenizedExample { keeps: index % 2 == 0, ..example }).collect()
}

/// Returns a LoRA that changes something, with `B` not zero.
fn perturbed(base: &BaseModel) -> Lora {
    of_rank(base, 4, 5)
}

fn of_rank(base: &BaseModel, rank: usize, seed: u64) -> Lora {
    let mut random = fastrand::Rng::with_seed(seed + 6);
    let mut lora = Lora::new(base, rank, 8.0, seed);
    for pair in &mut lora.pairs {
        pair.b.values.iter_mut().for_each(|value| *value = (random.f32() - 0.5) * 0.2);
    }
    lora
}

/// Returns the loss of a LoRA beside frozen ones, and its gradients.
fn taught(base: &BaseModel, lora: &Lora, beside: &[Lora], examples: &[TokenizedExample], most: usize) -> (f64, Lora) {
    taught_in_shares(base, lora, beside, examples, &vec![1.0; examples.len()], most)
}

/// Returns the same for examples with different weights.
fn taught_in_shares(
    base: &BaseModel,
    lora: &Lora,
    beside: &[Lora],
    examples: &[TokenizedExample],
    weights: &[f32],
    most: usize,
) -> (f64, Lora) {
    let beside = (!beside.is_empty()).then(|| Lora::joined_at(lora.scale(), beside).unwrap());
    let mut grads = Lora::zero(base.shape(), lora.rank, lora.alpha);
    let mut loss = 0.0;
    for pack in pack(&examples.iter().collect::<Vec<_>>(), most) {
        let losses = pass(base, lora, beside.as_ref(), &pack, Some((weights, &mut grads))).unwrap();
        loss += losses.iter().zip(&pack.owners).map(|(loss, owner)| loss * f64::from(weights[*owner])).sum::<f64>();
    }
    (loss, grads)
}

#[test]
fn gradients_agree_with_finite_differences() {
    let tried = [
        ("llama", 0, examples(5)),
        ("qwen2", 0, examples(5)),
        ("qwen3", 0, examples(5)),
        ("llama", 2, examples(5)),
        ("qwen3", 1, examples(5)),
    ];
    let cached = [("llama", 0, keeping(5)), ("qwen3", 1, keeping(5))];
    for (architecture, others, examples) in tried.into_iter().chain(cached) {
        let folder = tempfile::tempdir().unwrap();
        let (_, base) = base(&folder, architecture);
        let lora = perturbed(&base);
        let others: Vec<Lora> = (0..others).map(|index| of_rank(&base, 3 + index, 20 + index as u64)).collect();
        let (_, grads) = taught(&base, &lora, &others, &examples, 1000);
        let names: Vec<String> = lora.names().collect();
        for (index, name) in names.iter().enumerate() {
            let grad = grads.matrices().nth(index).unwrap();
            let length = grad.values.iter().map(|it| f64::from(*it) * f64::from(*it)).sum::<f64>().sqrt();
            assert!(length > 1e-4, "{architecture} {name} is taught nothing");
            let moved = |by: f64| {
                let mut lora = lora.clone();
                let matrix = lora.matrices_mut().nth(index).unwrap();
                for (value, grad) in matrix.values.iter_mut().zip(&grad.values) {
                    *value += (by * f64::from(*grad) / length) as f32;
                }
                taught(&base, &lora, &others, &examples, 1000).0
            };
            let by = 5e-3;
            let slope = (moved(by) - moved(-by)) / (2.0 * by);
            let off = (slope - length).abs() / length;
            assert!(off < 0.01, "{architecture} {name}: a slope of {slope}, and a gradient of {length}");
        }
    }
}

/// Returns examples about two scenes with a common beginning, and one without a scene.
fn questions() -> Vec<TokenizedExample> {
    let mut random = fastrand::Rng::with_seed(9);
    let mut tokens = |count: usize| (0..count).map(|_| random.u32(0..tiny::VOCABULARY as u32)).collect::<Vec<_>>();
    let begin = tokens(33);
    let mut all = vec![TokenizedExample::from_token(38, [begin.clone(), tokens(7)].concat())];
    for _ in 0..2 {
        let scene = tokens(34);
        for length in 5..8 {
            let own = [begin.clone(), scene.clone(), tokens(length)].concat();
            all.push(TokenizedExample::from_token(own.len() - 3, own));
        }
    }
    all
}

#[test]
fn sharing_a_beginning_does_not_change_the_gradients() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let lora = perturbed(&base);
    let packs = pack(&questions().iter().collect::<Vec<_>>(), 1000);
    assert!(packs[0].segments.iter().any(|segment| segment.prefix.len() == 2));
    for examples in [examples(6), questions()] {
        let weights: Vec<f32> = (1..=examples.len()).map(|number| number as f32 / 4.0).collect();
        let (loss, grads) = taught_in_shares(&base, &lora, &[], &examples, &weights, 1000);
        let mut apart = (0.0, Lora::zero(base.shape(), lora.rank, lora.alpha));
        for (example, weight) in examples.into_iter().zip(weights) {
            let (loss, grads) = taught(&base, &lora, &[], &[example], 1000);
            apart.0 += loss * f64::from(weight);
            for (to, more) in apart.1.matrices_mut().zip(grads.matrices()) {
                to.values.iter_mut().zip(&more.values).for_each(|(to, more)| *to += more * weight);
            }
        }
        assert!((loss - apart.0).abs() < 1e-4 * loss, "{loss} together, {} apart", apart.0);
        for (together, apart) in grads.matrices().zip(apart.1.matrices()) {
            let largest = apart.values.iter().fold(0.0_f32, |largest, it| largest.max(it.abs()));
            for (together, apart) in together.values.iter().zip(&apart.values) {
                assert!((together - apart).abs() <= 1e-3 * largest, "{together} together, {apart} apart");
            }
        }
    }
}

#[test]
fn examples_are_weighted_by_the_length_power() {
    let learned = [1, 4, 16];
    for (length_power, counts) in [(1.0, [1.0, 4.0, 16.0]), (0.5, [1.0, 2.0, 4.0]), (0.0, [1.0, 1.0, 1.0])] {
        let weights = Recipe { length_power, ..recipe() }.weights(&learned);
        let whole: f32 = counts.iter().sum();
        for ((weight, tokens), count) in weights.iter().zip(learned).zip(counts) {
            assert!((weight * tokens as f32 - count / whole).abs() < 1e-6, "{length_power}: {weights:?}");
        }
    }
    assert!(Recipe { length_power: 1.5, ..recipe() }.check().is_err());
}

fn recipe() -> Recipe {
    Recipe { rank: 4, alpha: 8.0, steps: 12, batch: 4, rate: 1e-2, warm_up: 2, pass_tokens: 90, ..Recipe::default() }
}

#[test]
fn a_pause_does_not_change_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "qwen3");
    let examples = examples(10);
    let mut whole = Training::new(&base, &[], &examples, recipe(), 1).unwrap();
    let mut losses = Vec::new();
    let finished = whole.run(&|| false, &mut |_, now| {
        losses.push(now.loss);
        NextStep::GoOn
    });
    assert!(finished.unwrap());
    assert!(losses[11] < losses[0] * 0.8, "nothing was learned: {losses:?}");
    let checkpoint = folder.path().join("checkpoint");
    let pause = |_: &Training<'_>, now: &crate::Progress| {
        if now.step.is_multiple_of(5) { NextStep::Pause } else { NextStep::GoOn }
    };
    let mut first = Training::new(&base, &[], &examples, recipe(), 2).unwrap();
    assert!(!first.run(&|| false, &mut { pause }).unwrap());
    first.save(&checkpoint).unwrap();
    for finishes in [false, true] {
        let mut next = Training::resume(&base, &[], &examples, &checkpoint, 2).unwrap();
        assert_eq!(next.run(&|| false, &mut { pause }).unwrap(), finishes);
        next.save(&checkpoint).unwrap();
    }
    let paused = Training::resume(&base, &[], &examples, &checkpoint, 1).unwrap();
    assert_eq!(paused.step(), 12);
    assert_eq!(paused.lora(), whole.lora());
    // The training knows the LoRA that it continued from.
    assert_eq!(paused.began_with(), "");
    let on = Training::from(&base, &examples, recipe(), whole.lora().clone(), 1).unwrap();
    on.save(&checkpoint).unwrap();
    let on = Training::resume(&base, &[], &examples, &checkpoint, 1).unwrap();
    assert_eq!(on.began_with(), whole.lora().identity());
    assert_ne!(on.began_with(), perturbed(&base).identity());
}

#[test]
fn a_lora_is_read_back_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let (path, lora, examples) = (folder.path().join("adapter.gguf"), perturbed(&base), examples(4));
    lora.write(&path, &[("general.name", "Tried".to_owned())]).unwrap();
    let back = Lora::read(&path, &base).unwrap();
    let loss = |lora: Option<&Lora>| mean_loss(&base, lora, &examples, 200, 1).unwrap().0;
    assert!((loss(Some(&back)) - loss(Some(&lora))).abs() < 1e-3);
    assert!((loss(Some(&back)) - loss(None)).abs() > 1e-2);
    // With `A` in full precision, training continues with exactly what the file contains.
    lora.write_precise(&path, &[]).unwrap();
    let back = Lora::read(&path, &base).unwrap();
    assert!(back.pairs.iter().zip(&lora.pairs).all(|(back, pair)| back.a == pair.a));
    assert!((loss(Some(&back)) - loss(Some(&lora))).abs() < 1e-3);
}

#[test]
fn the_loss_of_a_keeping_example_is_the_divergence() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let keep = |example: TokenizedExample| TokenizedExample { keeps: true, ..example };
    let (cached, lora) = (examples(6).into_iter().map(keep).collect::<Vec<_>>(), perturbed(&base));
    let loss = |lora: Option<&Lora>| mean_loss(&base, lora, &cached, 90, 1).unwrap().0;
    assert!(loss(None).abs() < 1e-6, "nothing has changed");
    // The divergence by its formula, over all tokens of the vocabulary.
    let mut sum = 0.0;
    for example in &cached {
        let shares = |lora| {
            let rows = logits(&base, lora, &example.tokens).unwrap();
            let share = |row: &[f32]| {
                let whole: f64 = row.iter().map(|logit| f64::from(*logit).exp()).sum();
                row.iter().map(|logit| f64::from(*logit).exp() / whole).collect::<Vec<_>>()
            };
            rows.chunks(base.shape().vocabulary).map(share).collect::<Vec<_>>()
        };
        let (before, now) = (shares(None), shares(Some(&lora)));
        for place in example.learned.iter().cloned().flatten() {
            let pairs = before[place - 1].iter().zip(&now[place - 1]);
            sum += pairs.map(|(before, now)| before * (before / now).ln()).sum::<f64>();
        }
    }
    let divergence = sum / 18.0;
    assert!(divergence > 1e-2, "{divergence}");
    assert!((loss(Some(&lora)) - divergence).abs() < 1e-4 * divergence.max(1.0), "{divergence}");
    // Training together with keeping examples changes those less.
    let training_set = questions();
    let after = |training_set: &[TokenizedExample]| {
        let mut training = Training::new(&base, &[], training_set, Recipe { batch: 12, ..recipe() }, 1).unwrap();
        training.run(&|| false, &mut |_, _| NextStep::GoOn).unwrap();
        loss(Some(training.lora()))
    };
    let (alone, beside) = (after(&training_set), after(&[training_set.clone(), cached.clone()].concat()));
    assert!(beside < alone * 0.7, "{alone} alone, {beside} beside what is kept");
}

#[test]
fn examples_in_one_pass_do_not_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "qwen3");
    let (lora, examples) = (perturbed(&base), examples(7));
    let alone = |example| {
        let (loss, tokens) = mean_loss(&base, Some(&lora), std::slice::from_ref(example), 1000, 1).unwrap();
        assert_eq!(tokens, 3);
        loss
    };
    let mean = examples.iter().map(alone).sum::<f64>() / examples.len() as f64;
    let (together, tokens) = mean_loss(&base, Some(&lora), &examples, 90, 2).unwrap();
    assert_eq!(tokens, 21);
    assert!((together - mean).abs() < 1e-4, "{together} among others, {mean} alone");
    // The callback is called before each pass, and stops the computation.
    let passes = pack(&examples.iter().collect::<Vec<_>>(), 40).len();
    assert!(passes > 1);
    let queried = AtomicUsize::new(0);
    let found = |most| {
        queried.store(0, Ordering::Relaxed);
        let goes_on = || queried.fetch_add(1, Ordering::Relaxed) < most;
        mean_loss_while(&base, Some(&lora), &examples, 40, 2, &goes_on).unwrap()
    };
    let (apart, tokens) = found(passes).unwrap();
    assert!((apart - mean).abs() < 1e-4 && tokens == 21, "{apart} in {passes} passes");
    assert_eq!(queried.load(Ordering::Relaxed), passes);
    assert_eq!(found(passes - 1), None);
}

#[track_caller]
fn says<T>(result: crate::Result<T>, said: &str) {
    let error = result.err().expect("it is taken").to_string();
    assert!(error.contains(said), "{error:?} should say {said:?}");
}

#[test]
fn an_invalid_file_is_rejected_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (model, base) = base(&folder, "llama");
    let examples = examples(4);
    let path = folder.path().join("file");
    let mut training = Training::new(&base, &[], &examples, recipe(), 1).unwrap();
    training.run(&|| false, &mut |_, _| NextStep::Pause).unwrap();
    training.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let resumed = |bytes: &[u8], examples: &[TokenizedExample]| {
        std::fs::write(&path, bytes).unwrap();
        Training::resume(&base, &[], examples, &path, 1).map(|training| training.step())
    };
    says(resumed(&whole, &examples[1..]), "other examples");
    says(resumed(&whole[..whole.len() / 2], &examples), "incomplete");
    let mut changed = whole.clone();
    changed[whole.len() - 100] ^= 1;
    says(resumed(&changed, &examples), "checksum");
    says(resumed(b"PK", &examples), "usable GGUF");
    says(resumed(&std::fs::read(&model).unwrap(), &examples), "no checkpoint");
    says(Lora::read(&model, &base), "it is no LoRA");
    tiny::write(&path, "bert");
    says(BaseModel::open(&path), "\"bert\"");
    let model = std::fs::read(&model).unwrap();
    std::fs::write(&path, &model[..model.len() - 200]).unwrap();
    says(BaseModel::open(&path), "incomplete");
    says(BaseModel::open(folder.path().join("none").as_path()), "none");
    let strange = TokenizedExample::from_token(1, vec![1, 2, 900]);
    says(Training::new(&base, &[], &[strange], recipe(), 1), "token 900");
    let nothing = TokenizedExample { learned: std::iter::once(0..1).collect(), tokens: vec![1, 2, 3], keeps: false };
    says(Training::new(&base, &[], &[nothing], recipe(), 1), "nothing to learn");
    says(Training::new(&base, &[], &examples, Recipe { rank: 0, ..recipe() }, 1), "more than nothing");
}

proptest::proptest! {
    #[test]
    fn damage_never_panics(position in proptest::prelude::any::<proptest::sample::Index>(), damage: [u8; 8]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        tiny::write(&path, "qwen3");
        let mut bytes = std::fs::read(&path).unwrap();
        // Only the header matters; a changed weight is still a weight.
        let position = position.index(3_000);
        bytes[position..position + 8].copy_from_slice(&damage);
        std::fs::write(&path, bytes).unwrap();
        if let Ok(base) = BaseModel::open(&path) {
            proptest::prop_assert!(base.shape().layers > 0);
            // The result with invalid dimensions does not matter; an error is fine.
            logits(&base, None, &[0, 1]).ok();
        }
    }
}
