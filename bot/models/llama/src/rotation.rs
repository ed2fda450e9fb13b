use std::time::{Duration, Instant};

use crate::lora::LoraSetKey;

/// How long a set of LoRAs is served before another set's turn. A longer step is a turn of its own. Each change makes
/// llama.cpp rebuild its graphs.
const TURN: Duration = Duration::from_millis(30);

/// Decides under which set of LoRAs the next step is evaluated. Every set with work gets a turn, the one that has
/// waited longest first.
#[derive(Debug)]
pub(crate) struct LoraRotation {
    now: Option<LoraSetKey>,
    since: Instant,
    /// The sets that have been served, the latest one last.
    served: Vec<Option<LoraSetKey>>,
}

impl LoraRotation {
    pub(crate) fn new(now: Instant) -> Self {
        Self { now: None, since: now, served: Vec::new() }
    }

    /// Returns the set of the next step. `with_work` contains the set of every job with tokens to evaluate, in any
    /// order, and is not empty.
    pub(crate) fn next<'a>(
        &mut self,
        with_work: impl Iterator<Item = Option<&'a LoraSetKey>> + Clone,
        time: Instant,
    ) -> Option<&LoraSetKey> {
        let goes_on = with_work.clone().any(|set| set == self.now.as_ref());
        let alone = with_work.clone().all(|set| set == self.now.as_ref());
        if alone || goes_on && time.duration_since(self.since) < TURN {
            if alone {
                // A turn begins only when another set waits for it.
                self.since = time;
            }
            return self.now.as_ref();
        }
        self.served.retain(|served| with_work.clone().any(|set| set == served.as_ref()));
        let waited = |set: Option<&LoraSetKey>| {
            self.served.iter().position(|served| served.as_ref() == set).map_or(0, |at| at + 1)
        };
        let others = with_work.filter(|set| *set != self.now.as_ref());
        let next = others.min_by_key(|set| waited(*set)).flatten().cloned();
        self.served.retain(|served| *served != next);
        self.served.push(next.clone());
        self.now = next;
        self.since = time;
        self.now.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use azera_model_api::{Lora, LoraId};

    use super::*;

    fn set(n: u8) -> Option<LoraSetKey> {
        (n > 0).then(|| LoraSetKey::of(&[Lora::new(LoraId::new([n; 32]), "")]))
    }

    /// Simulates steps of `ms` milliseconds, each with the sets that have work. Returns the sets that were served.
    fn play(ms: u64, steps: &[&[u8]]) -> Vec<u8> {
        let mut time = Instant::now();
        let mut rotation = LoraRotation::new(time);
        steps
            .iter()
            .map(|with_work| {
                let sets: Vec<_> = with_work.iter().map(|n| set(*n)).collect();
                let next = rotation.next(sets.iter().map(Option::as_ref), time).cloned();
                time += Duration::from_millis(ms);
                (0..9).find(|n| set(*n) == next).unwrap()
            })
            .collect()
    }

    #[test]
    fn sets_take_turns() {
        assert_eq!(play(50, &[&[1][..]; 3]), [1, 1, 1]);
        assert_eq!(play(50, &[&[0, 1, 1, 1][..]; 5]), [0, 1, 0, 1, 0]);
        assert_eq!(play(50, &[&[1, 2, 3][..]; 6]), [1, 2, 3, 1, 2, 3]);
        assert_eq!(play(10, &[&[0, 1][..]; 8]), [0, 0, 0, 1, 1, 1, 0, 0], "short steps share a turn");
        assert_eq!(play(10, &[&[0, 1], &[1], &[1, 2], &[1, 2], &[1, 2], &[1, 2]]), [0, 1, 1, 1, 2, 2]);
        assert_eq!(play(50, &[&[0, 1, 2], &[0, 1, 2], &[0, 1], &[0, 1, 2], &[0, 1, 2]]), [0, 1, 0, 2, 1]);
    }
}
