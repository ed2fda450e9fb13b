use azera_model_api::{Error, Score};
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;
use tokio::sync::oneshot;

use crate::cache::{Cache, Lease};
use crate::kv::Kv;

/// The most continuations of one prompt evaluated at the same time.
pub const SCORE_BRANCHES: usize = 8;

/// The most tokens of continuations in one step. Each needs the logits of the whole vocabulary.
pub const SCORE_STEP_TOKENS: usize = 64;

/// The most continuations in one request.
pub const MAX_CONTINUATIONS: usize = 1_024;

/// A continuation that is evaluated in a sequence which shares the prompt.
struct Branch {
    index: usize,
    sequence: i32,
    evaluated: usize,
}

/// A score in progress. The prompt is evaluated once, then each continuation in a branch of it.
pub(crate) struct ScoreWork {
    continuations: Vec<Vec<LlamaToken>>,
    log_probs: Vec<f64>,
    /// The number of branches that fit in the reserved cells at the same time.
    width: usize,
    next: usize,
    branches: Vec<Branch>,
    /// The continuation, the row in the batch, and the token whose probability is read there.
    readings: Vec<(usize, i32, LlamaToken)>,
    result: oneshot::Sender<Result<Vec<Score>, Error>>,
}

impl ScoreWork {
    /// Creates the work on the continuations of a prompt. Returns it with the number of cells that it needs beyond the
    /// prompt, at most `cells` unless a single continuation needs more.
    pub(crate) fn new(
        continuations: Vec<Vec<LlamaToken>>,
        cells: usize,
        result: oneshot::Sender<Result<Vec<Score>, Error>>,
    ) -> (Self, usize) {
        let mut lengths: Vec<usize> = continuations.iter().map(|tokens| tokens.len().saturating_sub(1)).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let (mut width, mut needed) = (0, 0);
        for length in lengths.into_iter().take(SCORE_BRANCHES) {
            if width > 0 && needed + length > cells {
                break;
            }
            width += 1;
            needed += length;
        }
        let work = Self {
            log_probs: vec![0.0; continuations.len()],
            continuations,
            width,
            next: 0,
            branches: Vec::new(),
            readings: Vec::new(),
            result,
        };
        (work, needed)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.result.is_closed()
    }

    pub(crate) fn fail(self, error: Error) {
        // A caller that left needs no error.
        self.result.send(Err(error)).ok();
    }

    /// Adds the logits after the prompt, which score the first token of every continuation.
    pub(crate) fn begin(&mut self, logits: &[f32]) {
        let norm = log_sum_exp(logits);
        for (tokens, log_prob) in self.continuations.iter().zip(&mut self.log_probs) {
            if let Some(first) = tokens.first() {
                *log_prob += log_prob_of(logits, *first, norm);
            }
        }
    }

    /// Adds at most `budget` tokens of continuations to the batch.
    pub(crate) fn fill(
        &mut self,
        cache: &mut Cache<'_>,
        lease: &Lease,
        prompt_len: usize,
        batch: &mut LlamaBatch<'_>,
        budget: usize,
    ) -> Result<(), Error> {
        while self.branches.len() < self.width
            && let Some(tokens) = self.continuations.get(self.next)
        {
            if tokens.len() > 1 {
                let Some(sequence) = cache.branch()? else { break };
                self.branches.push(Branch { index: self.next, sequence, evaluated: 0 });
                cache.kv.share(lease.sequence, sequence, prompt_len)?;
            }
            self.next += 1;
        }
        let mut budget = budget.min(SCORE_STEP_TOKENS);
        for branch in &mut self.branches {
            let Some(tokens) = self.continuations.get(branch.index) else { continue };
            for pair in tokens.windows(2).skip(branch.evaluated).take(budget) {
                let position = i32::try_from(prompt_len + branch.evaluated)
                    .map_err(|_| Error::Engine("a position does not fit".into()))?;
                self.readings.push((branch.index, batch.n_tokens(), pair[1]));
                batch
                    .add(pair[0], position, &[branch.sequence], true)
                    .map_err(|error| Error::Engine(error.to_string()))?;
                branch.evaluated += 1;
                budget -= 1;
            }
        }
        Ok(())
    }

    /// Reads the step's logits. Returns true if every continuation is scored.
    pub(crate) fn collect(&mut self, kv: &mut Kv<'_>) -> bool {
        for (index, row, token) in self.readings.drain(..) {
            let logits = kv.logits(row);
            self.log_probs[index] += log_prob_of(logits, token, log_sum_exp(logits));
        }
        let continuations = &self.continuations;
        self.branches.retain(|branch| {
            let open = branch.evaluated + 1 < continuations[branch.index].len();
            if !open {
                kv.release(branch.sequence);
            }
            open
        });
        self.branches.is_empty() && continuations.iter().skip(self.next).all(|tokens| tokens.len() <= 1)
    }

    /// Starts over, and frees all sequences.
    pub(crate) fn restart(&mut self, kv: &mut Kv<'_>) {
        self.abandon(kv);
        self.log_probs.fill(0.0);
        self.next = 0;
    }

    /// Frees the sequences of unfinished branches.
    pub(crate) fn abandon(&mut self, kv: &mut Kv<'_>) {
        self.readings.clear();
        for branch in self.branches.drain(..) {
            kv.release(branch.sequence);
        }
    }

    pub(crate) fn finish(self) {
        let scores = self
            .log_probs
            .iter()
            .zip(&self.continuations)
            .map(|(log_prob, tokens)| Score { log_prob: *log_prob, tokens: tokens.len() })
            .collect();
        // A caller that left needs no scores.
        self.result.send(Ok(scores)).ok();
    }
}

fn log_prob_of(logits: &[f32], token: LlamaToken, norm: f64) -> f64 {
    let logit = usize::try_from(token.0).ok().and_then(|id| logits.get(id)).copied().unwrap_or(f32::NEG_INFINITY);
    f64::from(logit) - norm
}

/// Computes ln(sum(exp(logits))) relative to the largest logit, so that nothing overflows.
fn log_sum_exp(logits: &[f32]) -> f64 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from((logit - largest).exp())).sum();
    f64::from(largest) + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_probabilities_of_a_distribution_sum_to_one() {
        let logits = [1_000.0, 999.0, -1_000.0];
        let norm = log_sum_exp(&logits);
        let total: f64 = (0..3).map(|id| log_prob_of(&logits, LlamaToken::new(id), norm).exp()).sum();
        assert!((total - 1.0).abs() < 1e-6);
        assert_eq!(log_prob_of(&logits, LlamaToken::new(9), norm), f64::NEG_INFINITY);
    }

    #[test]
    fn as_many_branches_run_as_fit() {
        let check = |lengths: &[usize], cells, expected: (usize, usize)| {
            let continuations = lengths.iter().map(|len| vec![LlamaToken::new(1); *len]).collect();
            let (work, needed) = ScoreWork::new(continuations, cells, oneshot::channel().0);
            assert_eq!((work.width, needed), expected, "{lengths:?} in {cells}");
        };
        check(&[], 10, (0, 0));
        check(&[1, 1], 10, (2, 0));
        check(&[4, 6, 2], 10, (3, 9));
        check(&[4, 6, 3], 7, (1, 5));
        check(&[20], 7, (1, 19));
        check(&[2; 20], 100, (SCORE_BRANCHES, SCORE_BRANCHES));
    }
}
