//! Training examples, and how they are packed into passes.

use std::ops::Range;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::attention::Segment;
use crate::base::Shape;
use crate::error::{Error, Result};

/// The shortest beginning that is worth sharing, in tokens.
const MIN_SHARED: usize = 32;

/// A training example, as tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizedExample {
    /// The whole sequence.
    pub tokens: Vec<u32>,
    /// The ranges of the tokens to learn. Each has at least one token before it.
    pub learned: Vec<Range<usize>>,
    /// True for an example that teaches nothing: at the tokens to learn, the model must stay as it is without the LoRA.
    /// The loss is the Kullback-Leibler divergence from there (distillation, Hinton et al. 2015; Li and Hoiem 2016).
    pub keeps: bool,
}

impl TokenizedExample {
    /// Creates an example whose tokens from `start` on are learned.
    #[must_use]
    pub fn from_token(start: usize, tokens: Vec<u32>) -> Self {
        Self { learned: std::iter::once(start..tokens.len()).collect(), tokens, keeps: false }
    }

    /// Returns the number of tokens that may be part of a shared beginning. The token before the first learned one must
    /// be the example's own.
    fn shareable(&self) -> usize {
        let first = self.learned.iter().map(|range| range.start).min().unwrap_or(self.tokens.len());
        first.saturating_sub(1)
    }

    /// Returns the number of learned tokens.
    pub fn learned_tokens(&self) -> usize {
        self.learned.iter().map(ExactSizeIterator::len).sum()
    }

    fn check(&self, shape: &Shape) -> std::result::Result<(), String> {
        if self.tokens.len() > shape.context {
            return Err(format!("has {} tokens, and the model takes {}", self.tokens.len(), shape.context));
        }
        if let Some(token) = self.tokens.iter().find(|token| **token as usize >= shape.vocabulary) {
            return Err(format!("has token {token}, and the model knows {}", shape.vocabulary));
        }
        let inside =
            |range: &Range<usize>| range.start > 0 && range.start < range.end && range.end <= self.tokens.len();
        if self.learned.is_empty() || !self.learned.iter().all(inside) {
            return Err("has nothing to learn, or at places it does not have".to_owned());
        }
        Ok(())
    }
}

/// Checks the examples, and returns one SHA-256 of them all.
pub(crate) fn identify(examples: &[TokenizedExample], shape: &Shape) -> Result<String> {
    if examples.is_empty() {
        return Err(Error::Examples("there are none".into()));
    }
    let mut hasher = Sha256::new();
    for (index, example) in examples.iter().enumerate() {
        example.check(shape).map_err(|what| Error::Examples(format!("example {} {what}", index + 1)))?;
        hasher.update((example.tokens.len() as u64).to_le_bytes());
        example.tokens.iter().for_each(|token| hasher.update(token.to_le_bytes()));
        for place in example.learned.iter().flat_map(|range| [range.start, range.end]) {
            hasher.update((place as u64).to_le_bytes());
        }
        if example.keeps {
            // This value is never an index.
            hasher.update(u64::MAX.to_le_bytes());
        }
    }
    Ok(HEXLOWER.encode(&hasher.finalize()))
}

/// The tokens of one pass through the model.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Pack {
    pub(crate) tokens: Vec<u32>,
    pub(crate) positions: Vec<u32>,
    pub(crate) segments: Vec<Segment>,
    /// The rows of the predictions, each with the correct next token.
    pub(crate) targets: Vec<(usize, u32)>,
    /// The example of each target, by its index in the input.
    pub(crate) owners: Vec<usize>,
    /// [`TokenizedExample::keeps`] of all examples in the pack.
    pub(crate) keeps: bool,
}

impl Pack {
    /// Adds tokens that continue the rows of `prefix`.
    fn push(&mut self, tokens: &[u32], prefix: Vec<Range<usize>>) -> Range<usize> {
        let first = self.tokens.len();
        let position: usize = prefix.iter().map(ExactSizeIterator::len).sum();
        self.tokens.extend_from_slice(tokens);
        self.positions.extend((position..position + tokens.len()).map(|position| position as u32));
        let rows = first..self.tokens.len();
        self.segments.push(Segment { rows: rows.clone(), prefix });
        rows
    }

    /// Adds the tokens of an example after its shared beginnings, and its targets.
    fn branch(&mut self, owner: usize, example: &TokenizedExample, prefix: Vec<Range<usize>>) {
        let before: usize = prefix.iter().map(ExactSizeIterator::len).sum();
        let rows = self.push(&example.tokens[before..], prefix);
        for place in example.learned.iter().cloned().flatten() {
            self.targets.push((rows.start + place - 1 - before, example.tokens[place]));
            self.owners.push(owner);
        }
    }
}

/// A beginning that examples share: its end in them, and its rows in the current pack.
struct SharedPrefix {
    end: usize,
    rows: Option<Range<usize>>,
}

/// Packs examples into passes of about `max_tokens` tokens, and keeps [`TokenizedExample::keeps`] ones separate. A
/// beginning that several examples share is computed once per pass. Shared beginnings can be nested.
pub(crate) fn pack(examples: &[&TokenizedExample], max_tokens: usize) -> Vec<Pack> {
    let of_kind = |keeps: bool| {
        let all = examples.iter().copied().enumerate();
        let mut sorted: Vec<(usize, &TokenizedExample)> = all.filter(|(_, example)| example.keeps == keeps).collect();
        sorted.sort_by(|(_, left), (_, right)| left.tokens.cmp(&right.tokens));
        let mut packs = vec![Pack::default()];
        pack_sorted(&sorted, &mut Vec::new(), &mut packs, max_tokens);
        packs.retain(|pack| !pack.tokens.is_empty());
        packs.iter_mut().for_each(|pack| pack.keeps = keeps);
        packs
    };
    [of_kind(false), of_kind(true)].concat()
}

/// Adds sorted examples, which all share `shared_prefixes`, to the last pack or to new ones.
fn pack_sorted(
    sorted: &[(usize, &TokenizedExample)],
    shared_prefixes: &mut Vec<SharedPrefix>,
    packs: &mut Vec<Pack>,
    max_tokens: usize,
) {
    let begun = shared_prefixes.last().map_or(0, |beginning| beginning.end);
    let alike = |(_, left): &(usize, &TokenizedExample), (_, right): &(usize, &TokenizedExample)| {
        common(&left.tokens, &right.tokens).min(left.shareable()).min(right.shareable())
    };
    for run in sorted.chunk_by(|left, right| alike(left, right) >= begun + MIN_SHARED) {
        if let [(owner, example)] = run {
            add_example(*owner, example, shared_prefixes, packs, max_tokens);
        } else {
            let end = run.windows(2).map(|pair| alike(&pair[0], &pair[1])).min().unwrap_or(begun);
            shared_prefixes.push(SharedPrefix { end, rows: None });
            pack_sorted(run, shared_prefixes, packs, max_tokens);
            shared_prefixes.pop();
        }
    }
}

fn add_example(
    owner: usize,
    example: &TokenizedExample,
    shared_prefixes: &mut [SharedPrefix],
    packs: &mut Vec<Pack>,
    max_tokens: usize,
) {
    let there: usize = shared_prefixes.iter().filter_map(|it| it.rows.as_ref()).map(ExactSizeIterator::len).sum();
    let more = example.tokens.len() - there;
    if packs.last().is_some_and(|pack| !pack.tokens.is_empty() && pack.tokens.len() + more > max_tokens) {
        packs.push(Pack::default());
        shared_prefixes.iter_mut().for_each(|it| it.rows = None);
    }
    let Some(pack) = packs.last_mut() else { return };
    let (mut prefix, mut begun) = (Vec::with_capacity(shared_prefixes.len()), 0);
    for SharedPrefix { end, rows } in shared_prefixes {
        let tokens = &example.tokens[begun..*end];
        prefix.push(rows.get_or_insert_with(|| pack.push(tokens, prefix.clone())).clone());
        begun = *end;
    }
    pack.branch(owner, example, prefix);
}

fn common(left: &[u32], right: &[u32]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(begin: std::ops::Range<u32>, end: &[u32], learned: usize) -> TokenizedExample {
        let tokens: Vec<u32> = begin.chain(end.iter().copied()).collect();
        let from = tokens.len() - learned;
        TokenizedExample::from_token(from, tokens)
    }

    #[test]
    fn a_shared_beginning_is_computed_once() {
        let examples = [
            example(0..40, &[90, 91, 92], 1),
            example(0..40, &[80, 81], 1),
            example(100..120, &[7, 8, 9], 2),
            example(0..40, &[90, 95], 1),
        ];
        let packs = pack(&examples.iter().collect::<Vec<_>>(), 1000);
        assert_eq!(packs.len(), 1);
        let pack = &packs[0];
        assert_eq!(pack.tokens.len(), 40 + 2 + 3 + 2 + 23);
        let rows: Vec<_> = pack.segments.iter().map(|it| (it.rows.clone(), it.prefix.clone())).collect();
        let on = || std::iter::once(0..40).collect::<Vec<_>>();
        assert_eq!(rows, [(0..40, vec![]), (40..42, on()), (42..45, on()), (45..47, on()), (47..70, vec![])]);
        assert_eq!(pack.positions[40..47], [40, 41, 40, 41, 42, 40, 41]);
        assert_eq!(pack.targets, [(40, 81), (43, 92), (45, 95), (67, 8), (68, 9)]);
        assert_eq!(pack.owners, [1, 0, 3, 2, 2]);
    }

    #[test]
    fn shared_beginnings_can_be_nested() {
        let of = |scene: u32, end: u32| {
            let tokens: Vec<u32> = (0..40).chain(scene..scene + 50).chain([end, 7, 8]).collect();
            TokenizedExample::from_token(tokens.len() - 2, tokens)
        };
        let examples = [of(200, 90), of(300, 90), of(200, 91), of(300, 92), of(200, 92)];
        let chosen: Vec<&TokenizedExample> = examples.iter().collect();
        let packs = pack(&chosen, 1000);
        assert_eq!(packs.len(), 1);
        assert_eq!(packs[0].tokens.len(), 40 + 2 * 50 + 5 * 3);
        let prefixes: Vec<_> = packs[0].segments.iter().map(|it| it.prefix.clone()).collect();
        let (first, second) = (vec![0..40, 40..90], vec![0..40, 99..149]);
        let (shared, none) = (std::iter::once(0..40).collect::<Vec<_>>(), vec![]);
        let want = [&none, &shared, &first, &first, &first, &shared, &second, &second];
        assert_eq!(prefixes.iter().collect::<Vec<_>>(), want);
        assert_eq!(packs[0].positions[90..93], [90, 91, 92]);
        // With smaller passes, each pass contains the beginnings again.
        let packs = pack(&chosen, 100);
        assert_eq!(packs.iter().map(|pack| pack.tokens.len()).collect::<Vec<_>>(), [99, 96]);
        assert_eq!(packs.iter().map(|pack| pack.owners.len() / 2).sum::<usize>(), 5);
    }

    #[test]
    fn learned_tokens_are_never_part_of_a_shared_beginning() {
        let examples = [example(0..40, &[90, 91, 92, 93], 3), example(0..40, &[90, 91, 92, 94], 3)];
        let packs = pack(&examples.iter().collect::<Vec<_>>(), 1000);
        assert_eq!(packs[0].segments[0].rows, 0..40);
        assert_eq!(packs[0].targets.len(), 6);
    }

    #[test]
    fn passes_stay_within_their_size() {
        let examples: Vec<TokenizedExample> = (0..20).map(|end| example(0..40, &[100 + end, 7, 8, 9, 10], 2)).collect();
        let packs = pack(&examples.iter().collect::<Vec<_>>(), 60);
        assert_eq!(packs.len(), 5);
        assert!(packs.iter().all(|pack| pack.tokens.len() == 60 && pack.segments.len() == 5));
        assert_eq!(packs.iter().map(|pack| pack.targets.len()).sum::<usize>(), 40);
    }
}
