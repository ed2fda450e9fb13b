//! Procedures: commands that were run in one order, again and again, and how often that worked.

use std::collections::HashMap;

use azera_types::{MessageId, Scope, Text, Timestamp};

use super::Log;
use crate::rows::RanCommand;

/// Most commands of one procedure.
const MAX_STEPS: usize = 4;

/// Fewest tries of a procedure.
const MIN_TRIES: usize = 2;

/// Most procedures of one project.
const MAX_PROCEDURES: usize = 100;

/// Most messages that are named as sources of a procedure: the newest ones.
const MAX_SOURCES: usize = 20;

/// The lower bound from which a procedure counts as proven: three of three tries have 0.44, nine of ten 0.60.
const PROVEN: f64 = 0.4;

/// The share of tries that worked from which it counts as proven.
const PROVEN_SHARE: f64 = 0.8;

/// The quantile of the normal distribution for 95 %.
const Z: f64 = 1.959_964;

/// Commands that people run one after the other in a project.
#[derive(Debug, Clone, PartialEq)]
pub struct Procedure {
    /// The project.
    pub scope: Scope,
    /// The commands.
    pub steps: Vec<Text>,
    /// How often the last one was run to a known end after the others had worked.
    pub tries: usize,
    /// How often the last one worked then.
    pub worked: usize,
    /// The lower bound of the share that works, with 95 % confidence: that of the step that is least sure.
    pub sure: f64,
    /// True if it is sure enough to be told as commands that work.
    pub is_proven: bool,
    /// When they were run first and last.
    pub span: (Timestamp, Timestamp),
    /// The newest messages for which they were run, the newest first.
    pub sources: Vec<MessageId>,
}

/// Returns the lower bound of Wilson's interval with 95 % confidence: how large a share is at least.
fn lower_bound(worked: usize, tries: usize) -> f64 {
    if tries == 0 {
        return 0.0;
    }
    let (tries, worked) = (tries as f64, worked as f64);
    let share = worked / tries;
    let middle = share + Z * Z / (2.0 * tries);
    let reach = Z * (share * (1.0 - share) / tries + Z * Z / (4.0 * tries * tries)).sqrt();
    ((middle - reach) / (1.0 + Z * Z / tries)).max(0.0)
}

struct Tally {
    tries: usize,
    worked: usize,
    span: (Timestamp, Timestamp),
    sources: Vec<MessageId>,
}

/// Returns the procedures of all sessions, the surest first.
pub(super) fn of(logs: &[Log]) -> Vec<Procedure> {
    let mut found: HashMap<(&Scope, Vec<&str>), Tally> = HashMap::new();
    for log in logs {
        for message in &log.messages {
            for steps in windows(&message.ran) {
                count(found.entry((&log.scope, texts(steps))).or_insert_with(|| begun(steps)), steps, &message.id);
            }
        }
    }
    found.retain(|_, tally| tally.tries >= MIN_TRIES);
    let longer = parts_of_longer(&found);
    let shown = found.iter().filter(|(key, _)| !longer.contains(*key)).map(|((scope, steps), tally)| Procedure {
        scope: (*scope).clone(),
        steps: steps.iter().map(Text::new).collect(),
        tries: tally.tries,
        worked: tally.worked,
        sure: least(&found, scope, steps, |tally| lower_bound(tally.worked, tally.tries)),
        is_proven: least(&found, scope, steps, |tally| lower_bound(tally.worked, tally.tries)) >= PROVEN
            && least(&found, scope, steps, |tally| tally.worked as f64 / tally.tries as f64) >= PROVEN_SHARE,
        span: tally.span,
        sources: tally.sources.iter().rev().take(MAX_SOURCES).cloned().collect(),
    });
    let mut procedures: Vec<Procedure> = shown.collect();
    let rank = |one: &Procedure, other: &Procedure| {
        let by_sure = other.sure.total_cmp(&one.sure).then_with(|| other.steps.len().cmp(&one.steps.len()));
        by_sure.then_with(|| other.span.1.cmp(&one.span.1)).then_with(|| texts_of(one).cmp(&texts_of(other)))
    };
    procedures.sort_by(rank);
    let mut counts: HashMap<Scope, usize> = HashMap::new();
    procedures.retain(|procedure| {
        let count = counts.entry(procedure.scope.clone()).or_default();
        *count += 1;
        *count <= MAX_PROCEDURES
    });
    procedures
}

/// Returns the least of a figure over a procedure and the beginnings of it: the tries in which an earlier step failed are
/// counted there.
fn least(
    found: &HashMap<(&Scope, Vec<&str>), Tally>,
    scope: &Scope,
    steps: &[&str],
    figure: impl Fn(&Tally) -> f64,
) -> f64 {
    let begun = (1..=steps.len()).filter_map(|size| found.get(&(scope, steps.get(..size)?.to_vec())));
    begun.map(figure).fold(1.0, f64::min)
}

fn texts_of(procedure: &Procedure) -> Vec<&str> {
    procedure.steps.iter().map(Text::as_str).collect()
}

/// Returns every row of commands that was run to a known end: all but the last worked, and no command twice in a row.
fn windows(ran: &[RanCommand]) -> impl Iterator<Item = &[RanCommand]> {
    let ends = |steps: &&[RanCommand]| {
        let Some((last, before)) = steps.split_last() else { return false };
        let repeats = steps.windows(2).any(|pair| matches!(pair, [one, other] if one.text == other.text));
        last.worked.is_some() && before.iter().all(|step| step.worked == Some(true)) && !repeats
    };
    (1..=MAX_STEPS).flat_map(move |size| ran.windows(size).filter(ends))
}

fn texts(steps: &[RanCommand]) -> Vec<&str> {
    steps.iter().map(|step| step.text.as_str()).collect()
}

fn begun(steps: &[RanCommand]) -> Tally {
    let at = steps.last().map_or(Timestamp::MIN, |step| step.at);
    Tally { tries: 0, worked: 0, span: (at, at), sources: Vec::new() }
}

fn count(tally: &mut Tally, steps: &[RanCommand], message: &MessageId) {
    let Some(last) = steps.last() else { return };
    tally.tries += 1;
    tally.worked += usize::from(last.worked == Some(true));
    tally.span = (tally.span.0.min(last.at), tally.span.1.max(last.at));
    if tally.sources.last() != Some(message) {
        if tally.sources.len() >= MAX_SOURCES {
            tally.sources.remove(0);
        }
        tally.sources.push(message.clone());
    }
}

/// Returns the procedures that never ran but as a part of a longer one.
fn parts_of_longer<'a>(
    found: &HashMap<(&'a Scope, Vec<&'a str>), Tally>,
) -> std::collections::HashSet<(&'a Scope, Vec<&'a str>)> {
    let mut parts = std::collections::HashSet::new();
    for ((scope, steps), tally) in found.iter().filter(|((_, steps), _)| steps.len() > 1) {
        for size in 1..steps.len() {
            for part in steps.windows(size) {
                let key = (*scope, part.to_vec());
                let is_same =
                    found.get(&key).is_some_and(|other| (other.tries, other.worked) == (tally.tries, tally.worked));
                if is_same {
                    parts.insert(key);
                }
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_tries_make_surer() {
        let near = |worked, tries, want: f64| {
            let bound = lower_bound(worked, tries);
            assert!((bound - want).abs() < 0.001, "{worked} of {tries}: {bound}");
        };
        near(0, 0, 0.0);
        near(0, 5, 0.0);
        near(1, 1, 0.207);
        near(3, 3, 0.438);
        near(9, 10, 0.596);
        near(90, 100, 0.826);
    }

    fn ran(text: &str) -> Vec<RanCommand> {
        let command = |(number, step): (usize, &str)| {
            let (text, worked) = match step.split_at(1) {
                ("+", text) => (text, Some(true)),
                ("-", text) => (text, Some(false)),
                (_, text) => (text, None),
            };
            RanCommand { id: number.to_string(), text: Text::new(text), worked, at: Timestamp::UNIX_EPOCH }
        };
        text.split(' ').enumerate().map(command).collect()
    }

    #[test]
    fn only_rows_with_a_known_end_are_tries() {
        let ran = ran("+a +b -c ?d +a +a");
        let found: Vec<String> = windows(&ran).map(|steps| texts(steps).join("")).collect();
        assert_eq!(found, ["a", "b", "c", "a", "a", "ab", "bc", "abc"]);
    }
}
