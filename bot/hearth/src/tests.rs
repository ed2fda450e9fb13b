mod beside;
mod device;
mod peer;
mod stack;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use crate::adapter::Adapter;
use crate::pack::pack;
use crate::pass::pass;
use crate::{Base, Example, Recipe, Then, Training, logits, mean_loss, mean_loss_while, tiny};

fn base(folder: &TempDir, architecture: &str) -> (PathBuf, Base) {
    let path = folder.path().join(format!("{architecture}.gguf"));
    tiny::write(&path, architecture);
    let base = Base::open(&path).unwrap();
    (path, base)
}

/// Sequences of which some begin alike, with tokens to learn at their ends.
fn examples(count: usize) -> Vec<Example> {
    let mut random = fastrand::Rng::with_seed(3);
    let mut token = || random.u32(0..tiny::VOCABULARY as u32);
    let begin: Vec<u32> = (0..36).map(|_| token()).collect();
    (0..count)
        .map(|index| {
            let mut tokens = if index % 3 == 2 { Vec::new() } else { begin.clone() };
            tokens.extend((0..6 + index % 4).map(|_| token()));
            let (length, middle) = (tokens.len(), tokens.len() - 4);
            Example { tokens, learnt: vec![middle..middle + 1, length - 2..length], keeps: false }
        })
        .collect()
}

/// The same, of which every other one keeps what the model says.
fn keeping(count: usize) -> Vec<Example> {
    let all = examples(count).into_iter().enumerate();
    all.map(|(index, example)| Example { keeps: index % 2 == 0, ..example }).collect()
}

/// An adapter that changes something, with `B` not zero.
fn stirred(base: &Base) -> Adapter {
    of_rank(base, 4, 5)
}

fn of_rank(base: &Base, rank: usize, seed: u64) -> Adapter {
    let mut random = fastrand::Rng::with_seed(seed + 6);
    let mut adapter = Adapter::new(base, rank, 8.0, seed);
    for pair in &mut adapter.pairs {
        pair.b.values.iter_mut().for_each(|value| *value = (random.f32() - 0.5) * 0.2);
    }
    adapter
}

/// The loss of an adapter, with others beside it, and what it is taught.
fn taught(base: &Base, adapter: &Adapter, beside: &[Adapter], examples: &[Example], most: usize) -> (f64, Adapter) {
    taught_in_shares(base, adapter, beside, examples, &vec![1.0; examples.len()], most)
}

/// The same, of examples that count more or less.
fn taught_in_shares(
    base: &Base,
    adapter: &Adapter,
    beside: &[Adapter],
    examples: &[Example],
    weights: &[f32],
    most: usize,
) -> (f64, Adapter) {
    let beside = (!beside.is_empty()).then(|| Adapter::joined_at(adapter.scale(), beside).unwrap());
    let mut grads = Adapter::zero(base.shape(), adapter.rank, adapter.alpha);
    let mut loss = 0.0;
    for pack in pack(&examples.iter().collect::<Vec<_>>(), most) {
        let losses = pass(base, adapter, beside.as_ref(), &pack, Some((weights, &mut grads))).unwrap();
        loss += losses.iter().zip(&pack.owners).map(|(loss, owner)| loss * f64::from(weights[*owner])).sum::<f64>();
    }
    (loss, grads)
}

#[test]
fn gradients_agree_with_differences() {
    let tried =
        [("llama", 0, examples(5)), ("qwen3", 0, examples(5)), ("llama", 2, examples(5)), ("qwen3", 1, examples(5))];
    let kept = [("llama", 0, keeping(5)), ("qwen3", 1, keeping(5))];
    for (architecture, others, examples) in tried.into_iter().chain(kept) {
        let folder = tempfile::tempdir().unwrap();
        let (_, base) = base(&folder, architecture);
        let adapter = stirred(&base);
        let others: Vec<Adapter> = (0..others).map(|index| of_rank(&base, 3 + index, 20 + index as u64)).collect();
        let (_, grads) = taught(&base, &adapter, &others, &examples, 1000);
        let names: Vec<String> = adapter.names().collect();
        for (index, name) in names.iter().enumerate() {
            let grad = grads.matrices().nth(index).unwrap();
            let length = grad.values.iter().map(|it| f64::from(*it) * f64::from(*it)).sum::<f64>().sqrt();
            assert!(length > 1e-4, "{architecture} {name} is taught nothing");
            let moved = |by: f64| {
                let mut adapter = adapter.clone();
                let matrix = adapter.matrices_mut().nth(index).unwrap();
                for (value, grad) in matrix.values.iter_mut().zip(&grad.values) {
                    *value += (by * f64::from(*grad) / length) as f32;
                }
                taught(&base, &adapter, &others, &examples, 1000).0
            };
            let by = 5e-3;
            let slope = (moved(by) - moved(-by)) / (2.0 * by);
            let off = (slope - length).abs() / length;
            assert!(off < 0.01, "{architecture} {name}: a slope of {slope}, and a gradient of {length}");
        }
    }
}

/// Questions to two scenes of one beginning, and one to none.
fn questions() -> Vec<Example> {
    let mut random = fastrand::Rng::with_seed(9);
    let mut tokens = |count: usize| (0..count).map(|_| random.u32(0..tiny::VOCABULARY as u32)).collect::<Vec<_>>();
    let begin = tokens(33);
    let mut all = vec![Example::from_token(38, [begin.clone(), tokens(7)].concat())];
    for _ in 0..2 {
        let scene = tokens(34);
        for length in 5..8 {
            let own = [begin.clone(), scene.clone(), tokens(length)].concat();
            all.push(Example::from_token(own.len() - 3, own));
        }
    }
    all
}

#[test]
fn what_is_shared_teaches_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let adapter = stirred(&base);
    let packs = pack(&questions().iter().collect::<Vec<_>>(), 1000);
    assert!(packs[0].segments.iter().any(|segment| segment.prefix.len() == 2));
    for examples in [examples(6), questions()] {
        let weights: Vec<f32> = (1..=examples.len()).map(|number| number as f32 / 4.0).collect();
        let (loss, grads) = taught_in_shares(&base, &adapter, &[], &examples, &weights, 1000);
        let mut apart = (0.0, Adapter::zero(base.shape(), adapter.rank, adapter.alpha));
        for (example, weight) in examples.into_iter().zip(weights) {
            let (loss, grads) = taught(&base, &adapter, &[], &[example], 1000);
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
fn short_and_long_examples_count_as_the_recipe_says() {
    let learnt = [1, 4, 16];
    for (length_power, counts) in [(1.0, [1.0, 4.0, 16.0]), (0.5, [1.0, 2.0, 4.0]), (0.0, [1.0, 1.0, 1.0])] {
        let weights = Recipe { length_power, ..recipe() }.weights(&learnt);
        let whole: f32 = counts.iter().sum();
        for ((weight, tokens), count) in weights.iter().zip(learnt).zip(counts) {
            assert!((weight * tokens as f32 - count / whole).abs() < 1e-6, "{length_power}: {weights:?}");
        }
    }
    assert!(Recipe { length_power: 1.5, ..recipe() }.check().is_err());
}

fn recipe() -> Recipe {
    Recipe { rank: 4, alpha: 8.0, steps: 12, batch: 4, rate: 1e-2, warm_up: 2, pass_tokens: 90, ..Recipe::default() }
}

#[test]
fn a_pause_changes_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "qwen3");
    let examples = examples(10);
    let mut whole = Training::new(&base, &[], &examples, recipe(), 1).unwrap();
    let mut losses = Vec::new();
    let finished = whole.run(&|| false, &mut |_, now| {
        losses.push(now.loss);
        Then::GoOn
    });
    assert!(finished.unwrap());
    assert!(losses[11] < losses[0] * 0.8, "nothing was learnt: {losses:?}");
    let checkpoint = folder.path().join("checkpoint");
    let pause =
        |_: &Training<'_>, now: &crate::Progress| if now.step.is_multiple_of(5) { Then::Pause } else { Then::GoOn };
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
    assert_eq!(paused.adapter(), whole.adapter());
    // It says what it began with.
    assert_eq!(paused.began_with(), "");
    let on = Training::from(&base, &examples, recipe(), whole.adapter().clone(), 1).unwrap();
    on.save(&checkpoint).unwrap();
    let on = Training::resume(&base, &[], &examples, &checkpoint, 1).unwrap();
    assert_eq!(on.began_with(), whole.adapter().identity());
    assert_ne!(on.began_with(), stirred(&base).identity());
}

#[test]
fn an_adapter_comes_back_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let (path, adapter, examples) = (folder.path().join("adapter.gguf"), stirred(&base), examples(4));
    adapter.write(&path, &[("general.name", "Tried".to_owned())]).unwrap();
    let back = Adapter::read(&path, &base).unwrap();
    let loss = |adapter: Option<&Adapter>| mean_loss(&base, adapter, &examples, 200, 1).unwrap().0;
    assert!((loss(Some(&back)) - loss(Some(&adapter))).abs() < 1e-3);
    assert!((loss(Some(&back)) - loss(None)).abs() > 1e-2);
    // What learns on is what the file holds where A is written whole.
    adapter.write_precise(&path, &[]).unwrap();
    let back = Adapter::read(&path, &base).unwrap();
    assert!(back.pairs.iter().zip(&adapter.pairs).all(|(back, pair)| back.a == pair.a));
    assert!((loss(Some(&back)) - loss(Some(&adapter))).abs() < 1e-3);
}

#[test]
fn what_is_kept_costs_as_much_as_it_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "llama");
    let keep = |example: Example| Example { keeps: true, ..example };
    let (kept, adapter) = (examples(6).into_iter().map(keep).collect::<Vec<_>>(), stirred(&base));
    let loss = |adapter: Option<&Adapter>| mean_loss(&base, adapter, &kept, 90, 1).unwrap().0;
    assert!(loss(None).abs() < 1e-6, "nothing has changed");
    // By the formula, over all tokens of the vocabulary.
    let mut sum = 0.0;
    for example in &kept {
        let shares = |adapter| {
            let rows = logits(&base, adapter, &example.tokens).unwrap();
            let share = |row: &[f32]| {
                let whole: f64 = row.iter().map(|logit| f64::from(*logit).exp()).sum();
                row.iter().map(|logit| f64::from(*logit).exp() / whole).collect::<Vec<_>>()
            };
            rows.chunks(base.shape().vocabulary).map(share).collect::<Vec<_>>()
        };
        let (before, now) = (shares(None), shares(Some(&adapter)));
        for place in example.learnt.iter().cloned().flatten() {
            let pairs = before[place - 1].iter().zip(&now[place - 1]);
            sum += pairs.map(|(before, now)| before * (before / now).ln()).sum::<f64>();
        }
    }
    let divergence = sum / 18.0;
    assert!(divergence > 1e-2, "{divergence}");
    assert!((loss(Some(&adapter)) - divergence).abs() < 1e-4 * divergence.max(1.0), "{divergence}");
    // Learning beside what is kept changes that less.
    let lessons = questions();
    let after = |lessons: &[Example]| {
        let mut training = Training::new(&base, &[], lessons, Recipe { batch: 12, ..recipe() }, 1).unwrap();
        training.run(&|| false, &mut |_, _| Then::GoOn).unwrap();
        loss(Some(training.adapter()))
    };
    let (alone, beside) = (after(&lessons), after(&[lessons.clone(), kept.clone()].concat()));
    assert!(beside < alone * 0.7, "{alone} alone, {beside} beside what is kept");
}

#[test]
fn examples_passed_together_do_not_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (_, base) = base(&folder, "qwen3");
    let (adapter, examples) = (stirred(&base), examples(7));
    let alone = |example| {
        let (loss, tokens) = mean_loss(&base, Some(&adapter), std::slice::from_ref(example), 1000, 1).unwrap();
        assert_eq!(tokens, 3);
        loss
    };
    let mean = examples.iter().map(alone).sum::<f64>() / examples.len() as f64;
    let (together, tokens) = mean_loss(&base, Some(&adapter), &examples, 90, 2).unwrap();
    assert_eq!(tokens, 21);
    assert!((together - mean).abs() < 1e-4, "{together} among others, {mean} alone");
    // It asks before each pass, and ends where it is to.
    let passes = pack(&examples.iter().collect::<Vec<_>>(), 40).len();
    assert!(passes > 1);
    let asked = AtomicUsize::new(0);
    let found = |most| {
        asked.store(0, Ordering::Relaxed);
        let goes_on = || asked.fetch_add(1, Ordering::Relaxed) < most;
        mean_loss_while(&base, Some(&adapter), &examples, 40, 2, &goes_on).unwrap()
    };
    let (apart, tokens) = found(passes).unwrap();
    assert!((apart - mean).abs() < 1e-4 && tokens == 21, "{apart} in {passes} passes");
    assert_eq!(asked.load(Ordering::Relaxed), passes);
    assert_eq!(found(passes - 1), None);
}

#[track_caller]
fn says<T>(result: crate::Result<T>, said: &str) {
    let error = result.err().expect("it is taken").to_string();
    assert!(error.contains(said), "{error:?} should say {said:?}");
}

#[test]
fn what_cannot_be_taken_up_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (model, base) = base(&folder, "llama");
    let examples = examples(4);
    let path = folder.path().join("file");
    let mut training = Training::new(&base, &[], &examples, recipe(), 1).unwrap();
    training.run(&|| false, &mut |_, _| Then::Pause).unwrap();
    training.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let resumed = |bytes: &[u8], examples: &[Example]| {
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
    says(Adapter::read(&model, &base), "no LoRA adapter");
    tiny::write(&path, "bert");
    says(Base::open(&path), "\"bert\"");
    let model = std::fs::read(&model).unwrap();
    std::fs::write(&path, &model[..model.len() - 200]).unwrap();
    says(Base::open(&path), "incomplete");
    says(Base::open(folder.path().join("none").as_path()), "none");
    let strange = Example::from_token(1, vec![1, 2, 900]);
    says(Training::new(&base, &[], &[strange], recipe(), 1), "token 900");
    let nothing = Example { learnt: std::iter::once(0..1).collect(), tokens: vec![1, 2, 3], keeps: false };
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
        // The header is what counts; a changed weight is a weight.
        let position = position.index(3_000);
        bytes[position..position + 8].copy_from_slice(&damage);
        std::fs::write(&path, bytes).unwrap();
        if let Ok(base) = Base::open(&path) {
            proptest::prop_assert!(base.shape().layers > 0);
            // What it computes with odd measures is of no interest; an error will do.
            logits(&base, None, &[0, 1]).ok();
        }
    }
}
