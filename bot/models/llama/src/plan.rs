/// Divides a step's prompt tokens among the waiting prompts, given by their remaining tokens, oldest first. The oldest
/// gets at least half, so that it finishes. The rest goes to the shortest, so that a short prompt does not wait for a
/// long one.
pub(crate) fn share(budget: usize, left: &[usize]) -> Vec<usize> {
    let mut given = vec![0; left.len()];
    let mut budget = budget;
    if let (Some(oldest), Some(given)) = (left.first(), given.first_mut()) {
        *given = (*oldest).min(budget.div_ceil(2));
        budget -= *given;
    }
    let mut order: Vec<usize> = (0..left.len()).collect();
    order.sort_by_key(|i| left[*i] - given[*i]);
    for i in order {
        let more = (left[i] - given[i]).min(budget);
        given[i] += more;
        budget -= more;
    }
    given
}

/// The number of prompt tokens in a step during which others may wait: for their next token, or to begin.
#[derive(Debug)]
pub(crate) struct Pace {
    tokens_per_ms: f64,
}

/// The longest time, in milliseconds, that other prompts may delay the next token of a running reply.
const STALL_MS: f64 = 120.0;

/// The least prompt tokens in any step, however slow the machine.
const MIN_TOKENS: usize = 16;

/// Steps with fewer prompt tokens are too short to measure the speed. The smallest step can be measured: otherwise a slow
/// moment would keep all later steps small.
const MIN_MEASURED_TOKENS: usize = MIN_TOKENS;

/// The weight of the newest step in the moving average.
const NEWEST_WEIGHT: f64 = 0.3;

impl Pace {
    pub(crate) fn new() -> Self {
        // A cautious guess until the first prompt has been measured.
        Self { tokens_per_ms: 0.5 }
    }

    /// Updates the speed with the measured time of a step.
    pub(crate) fn observe(&mut self, tokens: usize, ms: f64) {
        if tokens >= MIN_MEASURED_TOKENS && ms > 0.0 {
            self.tokens_per_ms += NEWEST_WEIGHT * (tokens as f64 / ms - self.tokens_per_ms);
        }
    }

    /// Returns the number of tokens to evaluate, at most `most`.
    pub(crate) fn tokens(&self, most: usize) -> usize {
        // Truncation towards zero is intended, and the speed is never negative.
        ((self.tokens_per_ms * STALL_MS) as usize).clamp(MIN_TOKENS.min(most), most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_oldest_gets_half_and_the_shortest_the_rest() {
        let check = |budget, left: &[usize], expected: &[usize]| assert_eq!(share(budget, left), expected, "{left:?}");
        check(100, &[], &[]);
        check(100, &[30], &[30]);
        check(100, &[500], &[100]);
        check(100, &[500, 400, 20], &[50, 30, 20]);
        check(100, &[10, 60, 60], &[10, 60, 30]);
        check(101, &[500, 500], &[51 + 50, 0]);
        check(0, &[5, 5], &[0, 0]);
    }

    #[test]
    fn the_pace_follows_the_measured_speed() {
        let mut pace = Pace::new();
        assert_eq!(pace.tokens(512), 60);
        pace.observe(8, 1.0);
        assert_eq!(pace.tokens(512), 60, "too few tokens to tell");
        for _ in 0..50 {
            pace.observe(512, 50.0);
        }
        assert_eq!(pace.tokens(512), 512);
        for _ in 0..50 {
            pace.observe(32, 3_200.0);
        }
        assert_eq!(pace.tokens(512), MIN_TOKENS);
        for _ in 0..50 {
            pace.observe(MIN_TOKENS, 16.0);
        }
        assert!(pace.tokens(512) > 100, "it recovers from the smallest steps");
        assert_eq!(pace.tokens(4), 4);
    }

    proptest! {
        #[test]
        fn exactly_the_budget_is_spent(budget in 0usize..600, left in prop::collection::vec(0usize..900, 0..9)) {
            let given = share(budget, &left);
            prop_assert!(given.iter().zip(&left).all(|(given, left)| given <= left));
            prop_assert_eq!(given.iter().sum::<usize>(), budget.min(left.iter().sum()));
        }
    }
}
