//! How many seconds a drawing still takes, measured between its steps. What comes before the first step, such as the
//! server's queue and the loading of its model, tells nothing about the steps.

use std::time::Duration;

use azera_model_image::ImageProgress;

/// A step, and when it was reported.
#[derive(Debug, Clone, Copy)]
struct Reported {
    step: u32,
    at: Duration,
}

/// How fast the steps of a drawing follow each other.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// How many steps there are.
    steps: u32,
    /// The first and the last of them so far.
    seen: Option<(Reported, Reported)>,
}

impl Pace {
    /// Notes what a server reports at a time since some beginning. Returns about how many seconds are left; `None` until
    /// two steps were reported, and once all are done.
    pub(super) fn left(&mut self, progress: &ImageProgress, at: Duration) -> Option<u64> {
        let (step, steps) = (progress.step.min(progress.steps), progress.steps);
        if step == 0 {
            *self = Self::default();
            return None;
        }
        let now = Reported { step, at };
        let (first, last) = match self.seen {
            // A server that counts anew, as for a second pass, has another pace.
            Some((first, last)) if steps == self.steps && step >= last.step => (first, last),
            _ => (now, now),
        };
        let last = if step > last.step { now } else { last };
        (self.steps, self.seen) = (steps, Some((first, last)));
        let (done, todo) = (last.step - first.step, steps - step);
        if done == 0 || todo == 0 {
            return None;
        }
        let each = last.at.saturating_sub(first.at) / done;
        let left = each.saturating_mul(todo).saturating_sub(at.saturating_sub(last.at));
        Some((left.as_secs_f64().round() as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a case is about, its reports, and what is left after each.
    type Case = (&'static str, &'static [(u64, u32, u32)], &'static [Option<u64>]);

    /// Returns what is said to be left after each of these reports: when it comes, the step, and how many there are.
    fn left(reports: &[(u64, u32, u32)]) -> Vec<Option<u64>> {
        let mut pace = Pace::default();
        let one = |&(at, step, steps): &(u64, u32, u32)| {
            pace.left(&ImageProgress { step, steps, ..ImageProgress::default() }, Duration::from_secs(at))
        };
        reports.iter().map(one).collect()
    }

    #[test]
    fn the_seconds_left_are_measured_between_the_steps() {
        let cases: [Case; 9] = [
            ("nothing is known before a step", &[(0, 0, 0), (60, 0, 28)], &[None, None]),
            ("a minute of loading, then a second a step", &[(61, 1, 28), (62, 2, 28)], &[None, Some(26)]),
            ("the steps between two reports count", &[(100, 3, 20), (108, 7, 20)], &[None, Some(26)]),
            ("it is an average", &[(0, 1, 5), (4, 2, 5), (6, 3, 5)], &[None, Some(12), Some(6)]),
            ("a report within a step counts down", &[(0, 1, 4), (10, 2, 4), (15, 2, 4)], &[None, Some(20), Some(15)]),
            ("a step that takes long is never over", &[(0, 1, 3), (2, 2, 3), (50, 2, 3)], &[None, Some(2), Some(1)]),
            ("after the last step nothing is known", &[(0, 1, 2), (5, 2, 2)], &[None, None]),
            (
                "a second pass is measured anew",
                &[(0, 1, 9), (1, 2, 9), (9, 1, 9), (12, 2, 9)],
                &[None, Some(7), None, Some(21)],
            ),
            ("any number is borne", &[(0, 9, 4), (1, u32::MAX, u32::MAX), (1, 1, u32::MAX)], &[None; 3]),
        ];
        for (what, reports, expected) in cases {
            assert_eq!(left(reports), expected, "{what}");
        }
    }
}
