//! Tests of joined and compressed LoRAs.

use super::*;
use crate::logits;
use crate::lora::LoraPair;

/// Returns `alpha / rank * B A` of a projection, outputs by inputs.
fn delta(pair: &LoraPair, scale: f32) -> Vec<f64> {
    let mut delta = Vec::new();
    for row in 0..pair.b.rows {
        for input in 0..pair.a.columns {
            let along = |index: usize| f64::from(pair.b.row(row)[index]) * f64::from(pair.a.row(index)[input]);
            delta.push((0..pair.a.rows).map(along).sum::<f64>() * f64::from(scale));
        }
    }
    delta
}

fn square(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

/// Returns the squared Frobenius norm of the difference between two LoRAs, over all projections.
fn apart(one: &Lora, other: &Lora) -> f64 {
    let pairs = one.pairs.iter().zip(&other.pairs);
    let between = |(left, right)| {
        let (left, right) = (delta(left, one.scale()), delta(right, other.scale()));
        left.iter().zip(&right).map(|(left, right)| (left - right) * (left - right)).sum::<f64>()
    };
    pairs.map(between).sum()
}

fn strength(lora: &Lora) -> f64 {
    lora.pairs.iter().map(|pair| square(&delta(pair, lora.scale()))).sum()
}

#[test]
fn a_mean_keeps_what_all_loras_agree_on() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let (one, other) = (of_rank(&base, 2, 1), of_rank(&base, 3, 2));
    let between = apart(&one, &other);
    let mean = Lora::mean(&[one.clone(), other.clone()]).unwrap();
    for of in [&one, &other] {
        assert!((apart(&mean, of) / between - 0.25).abs() < 1e-5, "half as far away, so a quarter of the square");
    }
    let same = Lora::mean(&[one.clone(), one.clone()]).unwrap().compressed(one.rank(), 1).unwrap();
    assert!(same.retained > 1.0 - 1e-9 && apart(&same.lora, &one) < 1e-9 * strength(&one));
    assert!(Lora::mean(&[]).is_err());
}

#[track_caller]
fn same_logits(base: &BaseModel, one: Option<&Lora>, other: Option<&Lora>) {
    let tokens = [3, 14, 15, 9, 26, 5, 35, 8];
    let (one, other) = (logits(base, one, &tokens).unwrap(), logits(base, other, &tokens).unwrap());
    let largest = one.iter().zip(&other).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
    assert!(largest < 1e-4, "logits are {largest} apart");
    assert!(one.iter().all(|logit| logit.is_finite()));
}

#[test]
fn a_scaled_lora_adds_less_and_training_continues_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let whole = of_rank(&base, recipe().rank, 1);
    let less = whole.clone().scaled(0.5);
    assert!((strength(&less) / strength(&whole) - 0.25).abs() < 1e-6);
    let examples = examples(4);
    let recipe = Recipe { alpha: 3.0 * less.alpha, ..recipe() };
    let on = Training::from(&base, &examples, recipe, less.clone(), 1).unwrap();
    assert_ne!(on.lora().alpha, less.alpha);
    assert!(apart(on.lora(), &less) < 1e-9 * strength(&less));
}

#[test]
fn joined_loras_add_their_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let parts = [of_rank(&base, 3, 1), of_rank(&base, 5, 2), of_rank(&base, 1, 3)];
    let joined = Lora::joined(&parts).unwrap();
    assert_eq!((joined.rank(), joined.scale()), (9, 1.0));
    for (index, pair) in joined.pairs.iter().enumerate() {
        let parts: Vec<Vec<f64>> = parts.iter().map(|part| delta(&part.pairs[index], part.scale())).collect();
        for (place, value) in delta(pair, joined.scale()).iter().enumerate() {
            let sum: f64 = parts.iter().map(|part| part[place]).sum();
            assert!((value - sum).abs() < 1e-6, "{value} where the sum is {sum}");
        }
    }
    let examples = examples(4);
    let tokens: usize = examples.iter().map(TokenizedExample::learned_tokens).sum();
    let (beside, _) = taught(&base, &parts[0], &parts[1..], &examples, 1000);
    let together = mean_loss(&base, Some(&joined), &examples, 1000, 1).unwrap().0;
    assert!((beside / tokens as f64 - together).abs() < 1e-5);
    // Joined with its negative, the LoRA leaves the model unchanged.
    let mut back = joined.clone();
    back.pairs.iter_mut().flat_map(|pair| &mut pair.b.values).for_each(|value| *value = -*value);
    same_logits(&base, Some(&Lora::joined(&[joined.clone(), back]).unwrap()), None);
    same_logits(&base, Some(&Lora::joined(&parts[..1]).unwrap()), Some(&parts[0]));
    let (_, other) = super::base(&folder, "qwen3");
    says(Lora::joined(&[]), "there are none");
    says(Lora::joined(&[joined, of_rank(&other, 2, 1)]), "number 2 is made for another model");
}

#[test]
fn compressing_to_the_actual_rank_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    // More rows than inputs and outputs, some of them twice, and a LoRA that changes nothing.
    let mut parts: Vec<Lora> = (0..7).map(|seed| of_rank(&base, 6, seed)).collect();
    parts.push(parts[0].clone());
    parts.push(Lora::new(&base, 3, 6.0, 1));
    let joined = Lora::joined(&parts).unwrap();
    let whole = joined.compressed(100, 2).unwrap();
    assert_eq!((whole.lora.rank(), whole.retained), (joined.rank(), 1.0));
    let off = apart(&whole.lora, &joined) / strength(&joined);
    assert!(off < 1e-12, "{off:e} was lost");
    same_logits(&base, Some(&whole.lora), Some(&joined));
    // A change of rank 6 fits into rank 6, although it comes in twelve rows.
    let twice = Lora::joined(&[parts[1].clone(), parts[1].clone()]).unwrap();
    let once = twice.compressed(6, 1).unwrap();
    assert!(apart(&once.lora, &twice) < 1e-12 * strength(&twice) && once.retained > 1.0 - 1e-12);
    assert_eq!(twice.compressed(6, 3).unwrap(), once);
    // A LoRA that changes nothing still does so afterwards.
    let nothing = Lora::new(&base, 3, 6.0, 1).compressed(2, 1).unwrap();
    assert!(nothing.retained == 1.0 && strength(&nothing.lora) == 0.0);
    assert!(nothing.lora.matrices().all(|matrix| matrix.values.iter().all(|value| *value == 0.0)));
}

#[test]
fn compressing_keeps_the_largest_singular_values() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "qwen3");
    // Singular values 8, 4, 2 and 1 (with the scale of 2), hidden in the factors: A is multiplied by a shear, B by its
    // inverse.
    let mut lora = Lora::zero(base.shape(), 4, 8.0);
    for pair in &mut lora.pairs {
        let (inputs, rank) = (pair.a.columns, pair.b.columns);
        for (index, value) in [1.0, 4.0, 0.5, 2.0].into_iter().enumerate() {
            pair.a.values[index * inputs + 5 * index] = 1.0;
            pair.b.values[3 * index * rank + index] = value;
        }
        for index in 0..3 {
            for input in 0..inputs {
                pair.a.values[index * inputs + input] += 0.7 * pair.a.values[(index + 1) * inputs + input];
            }
        }
        for row in pair.b.values.chunks_exact_mut(rank) {
            for index in 0..3 {
                row[index + 1] -= 0.7 * row[index];
            }
        }
    }
    let whole = 64.0 + 16.0 + 4.0 + 1.0;
    let pairs = lora.pairs.len() as f64;
    assert!((strength(&lora) / pairs - whole).abs() < 1e-4, "{}", strength(&lora) / pairs);
    for (rank, left) in [(1, 21.0), (2, 5.0), (3, 1.0)] {
        let compressed = lora.compressed(rank, 2).unwrap();
        assert_eq!(compressed.lora.rank(), rank);
        let off = apart(&compressed.lora, &lora) / pairs;
        assert!((off - left).abs() < 1e-4, "{off} at rank {rank}, where {left} is the least");
        assert!((compressed.retained - (1.0 - left / whole)).abs() < 1e-6);
    }
}

#[test]
fn no_other_lora_of_that_rank_is_nearer() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let joined = Lora::joined(&[of_rank(&base, 4, 1), of_rank(&base, 4, 2)]).unwrap();
    let compressed = joined.compressed(3, 2).unwrap();
    let off = apart(&compressed.lora, &joined);
    assert!((compressed.retained - (1.0 - off / strength(&joined))).abs() < 1e-6);
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..40 {
        // Random selections of its own rows, and small steps away from the best one.
        let mut other = compressed.lora.clone();
        for (pair, own) in other.pairs.iter_mut().zip(&joined.pairs) {
            if round % 2 == 0 {
                let mut rows: Vec<usize> = (0..8).collect();
                random.shuffle(&mut rows);
                for (to, from) in rows[..3].iter().enumerate() {
                    let columns = own.a.columns;
                    pair.a.values[to * columns..][..columns].copy_from_slice(own.a.row(*from));
                    (0..own.b.rows).for_each(|row| pair.b.values[row * 3 + to] = own.b.row(row)[*from]);
                }
            } else {
                let moved = pair.a.values.iter_mut().chain(&mut pair.b.values);
                moved.for_each(|value| *value += (random.f32() - 0.5) * 1e-2);
            }
        }
        assert!(apart(&other, &joined) > off, "another is nearer in round {round}");
    }
}

#[test]
fn compression_makes_room_for_another_lora() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let examples = examples(6);
    let full: Vec<Lora> = (0..4).map(|seed| of_rank(&base, 8, seed)).collect();
    says(Training::new(&base, &full, &examples, recipe(), 1), "no room");
    let compressed = Lora::joined(&full).unwrap().compressed(8, 2).unwrap();
    assert!(compressed.retained > 0.5 && compressed.retained < 0.999, "{} is kept", compressed.retained);
    for pair in &compressed.lora.pairs {
        for one in 0..8 {
            for other in 0..8 {
                let along: f32 = pair.a.row(one).iter().zip(pair.a.row(other)).map(|(one, other)| one * other).sum();
                let wanted = if one == other { 1.0 } else { 0.0 };
                assert!((along - wanted).abs() < 1e-5, "rows {one} and {other} make {along}");
            }
        }
    }
    let stack = [compressed.lora];
    let mut training = Training::new(&base, &stack, &examples, recipe(), 2).unwrap();
    training.run(&|| false, &mut |_, _| NextStep::GoOn).unwrap();
    assert!(training.lora().largest_cosine(&stack) < 1e-5);
}

#[test]
fn numbers_that_are_not_finite_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let (sound, mut broken) = (of_rank(&base, 2, 1), of_rank(&base, 2, 2));
    broken.pairs[4].a.values[9] = f32::NAN;
    says(broken.compressed(1, 1), "no number");
    says(sound.compressed(0, 1), "rank 0");
    assert!(broken.largest_cosine(std::slice::from_ref(&sound)).is_nan());
    assert!((sound.largest_cosine(std::slice::from_ref(&sound)) - 1.0).abs() < 1e-6);
    assert_eq!(sound.largest_cosine(&[]), 0.0);
    assert_eq!(sound.largest_cosine(&[Lora::zero(base.shape(), 2, 1.0)]), 0.0);
}
