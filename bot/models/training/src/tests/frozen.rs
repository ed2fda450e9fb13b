//! Tests of training beside frozen LoRAs.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;
use crate::checkpoint::Checkpoint;

/// Returns three LoRAs that read much of the inputs, with other ranks than the recipe's; one of them twice.
fn earlier(base: &BaseModel) -> Vec<Lora> {
    let others = [of_rank(base, 3, 30), of_rank(base, 7, 31)];
    [&others[..], &others[..1]].concat()
}

/// Trains to the end. Returns the LoRA, and the losses of its steps.
fn learn(mut training: Training<'_>) -> (Lora, Vec<f64>) {
    let mut losses = Vec::new();
    let finished = training.run(&|| false, &mut |_, now| {
        losses.push(now.loss);
        NextStep::GoOn
    });
    assert!(finished.unwrap());
    (training.lora().clone(), losses)
}

#[test]
fn a_new_lora_is_orthogonal_to_the_frozen_ones() {
    for architecture in ["llama", "qwen3"] {
        let folder = tempfile::tempdir().unwrap();
        let (_, base) = base(&folder, architecture);
        let (examples, others) = (examples(10), earlier(&base));
        let (alone, _) = learn(Training::new(&base, &[], &examples, recipe(), 2).unwrap());
        assert!(alone.largest_cosine(&others) > 0.3);
        let begun = Training::new(&base, &others, &examples, recipe(), 2).unwrap();
        assert!(begun.lora().largest_cosine(&others) < 1e-6);
        let before = begun.lora().clone();
        let (lora, losses) = learn(begun);
        assert!(losses[11] < losses[0] * 0.8, "nothing was learned: {losses:?}");
        assert!(lora.pairs.iter().zip(&before.pairs).all(|(now, before)| now.a != before.a));
        // The moments are orthogonal too, because the gradients are projected first.
        let path = folder.path().join("checkpoint");
        let mut training = Training::new(&base, &others, &examples, recipe(), 2).unwrap();
        training.run(&|| false, &mut |_, now| if now.step == 3 { NextStep::Pause } else { NextStep::GoOn }).unwrap();
        training.save(&path).unwrap();
        assert!(Checkpoint::read(&path, &base).unwrap().moments.first.largest_cosine(&others) < 1e-5);
        let path = folder.path().join("adapter.gguf");
        let cosine = lora.largest_cosine(&others);
        lora.write_precise(&path, &[]).unwrap();
        let precise = Lora::read(&path, &base).unwrap().largest_cosine(&others);
        lora.write(&path, &[]).unwrap();
        let rounded = Lora::read(&path, &base).unwrap().largest_cosine(&others);
        assert!(cosine < 1e-6 && precise == cosine && rounded < 5e-4, "{cosine:e}, {precise:e} and {rounded:e}");
    }
}

#[test]
fn frozen_loras_count_in_the_loss() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let (examples, others) = (examples(8), earlier(&base));
    let recipe = Recipe { batch: 8, steps: 20, ..recipe() };
    let (lora, losses) = learn(Training::new(&base, &others, &examples, recipe, 2).unwrap());
    let loss = |stack: &[Lora]| {
        let joined = (!stack.is_empty()).then(|| Lora::joined(stack).unwrap());
        mean_loss(&base, joined.as_ref(), &examples, 90, 1).unwrap().0
    };
    // The new LoRA begins with no change, so the first step's loss is that of the frozen ones alone.
    assert!((losses[0] - loss(&others)).abs() < 1e-5, "{} and {}", losses[0], loss(&others));
    assert!((losses[0] - loss(&[])).abs() > 1e-2);
    let together = loss(&[others.as_slice(), std::slice::from_ref(&lora)].concat());
    assert!(together < losses[19], "{together} after a last step that began at {}", losses[19]);
    assert!(together + 0.1 < loss(std::slice::from_ref(&lora)), "it was learned for itself");
}

#[test]
fn pausing_between_passes_does_not_change_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "qwen3");
    let (examples, others) = (examples(10), earlier(&base));
    let recipe = Recipe { pass_tokens: 50, ..recipe() };
    let whole = learn(Training::new(&base, &others, &examples, recipe.clone(), 1).unwrap()).0;
    let checkpoint = folder.path().join("checkpoint");
    let mut training = Training::new(&base, &others, &examples, recipe.clone(), 2).unwrap();
    // Pauses after more and more passes, also within steps: each step has at least two.
    let (mut passes, mut broken) = (0_usize, 0);
    loop {
        passes += 1;
        let (queried, done) = (AtomicUsize::new(0), training.step());
        let pause = || queried.fetch_add(1, Relaxed) >= passes;
        let finished = training.run(&pause, &mut |_, _| NextStep::GoOn).unwrap();
        broken += usize::from(training.step() == done);
        training.save(&checkpoint).unwrap();
        training = Training::resume(&base, &others, &examples, &checkpoint, 1 + passes % 2).unwrap();
        if finished {
            break;
        }
    }
    assert!(broken > 0, "no step takes more than one pass");
    assert_eq!(training.step(), 12);
    assert_eq!(training.lora(), &whole);
    // Pauses within steps, and continues at once without a checkpoint.
    let mut training = Training::new(&base, &others, &examples, recipe.clone(), 2).unwrap();
    let queried = AtomicUsize::new(0);
    let every_fifth = || queried.fetch_add(1, Relaxed) % 5 == 4;
    while !training.run(&every_fifth, &mut |_, _| NextStep::GoOn).unwrap() {}
    assert_eq!(training.lora(), &whole);
}

#[test]
fn a_checkpoint_needs_the_same_frozen_loras() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let (examples, others) = (examples(4), earlier(&base));
    let path = folder.path().join("checkpoint");
    let saved = |mut training: Training<'_>| {
        training.run(&|| false, &mut |_, _| NextStep::Pause).unwrap();
        training.save(&path).unwrap();
    };
    let resumed =
        |others: &[Lora]| Training::resume(&base, others, &examples, &path, 1).map(|training| training.step());
    saved(Training::new(&base, &others, &examples, recipe(), 1).unwrap());
    assert_eq!(resumed(&others).unwrap(), 1);
    says(resumed(&others[..2]), "beside other LoRAs");
    says(resumed(&[]), "beside other LoRAs");
    says(Training::resume(&base, &[], &examples, &path, 1), "beside other LoRAs");
    let turned: Vec<Lora> = others.iter().rev().skip(1).chain(&others[..1]).cloned().collect();
    says(resumed(&turned), "in another order");
    let mut touched = others.clone();
    touched[1].pairs[3].b.values[7] += 1e-6;
    says(resumed(&touched), "beside other LoRAs");
    saved(Training::new(&base, &[], &examples, recipe(), 1).unwrap());
    says(resumed(&others), "not learned beside LoRAs");
}

#[test]
fn a_rank_without_room_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let (_, other) = super::base(&folder, "qwen3");
    let examples = examples(4);
    let begun = |others: &[Lora]| Training::new(&base, others, &examples, recipe(), 1);
    // First 28 of 32 inputs are taken, then 29.
    let mut others: Vec<Lora> = (0..4).map(|seed| of_rank(&base, 7, 40 + seed)).collect();
    let (lora, _) = learn(begun(&others).unwrap());
    let cosine = lora.largest_cosine(&others);
    assert!(cosine < 1e-5, "{cosine:e} in the last room");
    others.push(of_rank(&base, 1, 50));
    says(begun(&others), "no room for rank 4 in blk.0.attn_q: of its 32 inputs 29 are taken");
    says(begun(&[of_rank(&other, 2, 1)]), "number 1 is made for another model");
}

/// Ten trainings on random sequences of the same tokens fill 30 of 32 inputs, so nothing is kept apart by chance.
#[test]
fn earlier_training_lasts_longer_in_a_frozen_lora() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let training_set: Vec<Vec<TokenizedExample>> = (0..10)
        .map(|seed| {
            let mut random = fastrand::Rng::with_seed(100 + seed);
            let tokens = |_| (0..12).map(|_| random.u32(0..tiny::VOCABULARY as u32)).collect();
            (0..4).map(tokens).map(|tokens| TokenizedExample::from_token(6, tokens)).collect()
        })
        .collect();
    let recipe = |seed| Recipe { rank: 3, alpha: 6.0, steps: 40, rate: 3e-3, seed, ..recipe() };
    let loss = |lora: Option<&Lora>| mean_loss(&base, lora, &training_set[0], 200, 1).unwrap().0;
    let (mut stack, mut one): (Vec<Lora>, Option<Lora>) = (Vec::new(), None);
    let (mut beside, mut onward) = (Vec::new(), Vec::new());
    for (seed, training_set) in (0..).zip(&training_set) {
        let (next, losses) = learn(Training::new(&base, &stack, training_set, recipe(seed), 2).unwrap());
        assert!(losses[39] < losses[0] * 0.75, "lessons {seed} were not learned: {losses:?}");
        assert!(next.largest_cosine(&stack) < 1e-6);
        stack.push(next);
        one = Some(match one {
            Some(one) => learn(Training::from(&base, training_set, recipe(seed), one, 2).unwrap()).0,
            None => stack[0].clone(),
        });
        beside.push(loss(Some(&Lora::joined(&stack).unwrap())));
        onward.push(loss(one.as_ref()));
    }
    let grown = |losses: &[f64], after: usize| losses[after] - losses[0];
    for after in [1, 4, 9] {
        let (beside, onward) = (grown(&beside, after), grown(&onward, after));
        assert!(beside < onward * 0.7, "after {after} more it grew by {beside} beside, and by {onward} in one LoRA");
    }
    assert!(beside[9] + 0.5 < loss(None), "nothing is left of it: {beside:?}");
    // A limit on the rank removes little of the joined LoRA.
    let joined = Lora::joined(&stack).unwrap();
    let compressed = joined.compressed(20, 2).unwrap();
    let all: Vec<TokenizedExample> = training_set.concat();
    let of_all = |lora| mean_loss(&base, Some(lora), &all, 200, 1).unwrap().0;
    assert!(compressed.retained > 0.9 && of_all(&compressed.lora) < of_all(&joined) + 0.2);
}
