//! A process that writes is killed at random moments; another opens what it left.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use azera_memory::{Point, PointSource, VectorIndex};
use azera_types::MemoryId;
use tempfile::TempDir;

use super::{axis, label, open};

const ROUNDS: u64 = 25;

/// Lines of the writer that are read before it is killed, at most.
const MAX_LINES: usize = 12;

/// The file that tells the writer its first step.
const STEPS_FILE: &str = "vector-steps";

/// Ids that the writer uses again and again.
const IDS: u64 = 500;

/// Points of a step.
const STEP_POINTS: u64 = 50;

/// What a point is given in a step: which step it was can be read from it.
fn point(id: u64, step: u64) -> Point {
    let window = (!id.is_multiple_of(3)).then(|| axis((step % 8) as usize));
    let realm = if id.is_multiple_of(2) { "even" } else { "odd" };
    Point { id: MemoryId(id), label: label(realm, step.cast_signed()), own: axis((id % 8) as usize), window }
}

fn written(step: u64) -> impl Iterator<Item = u64> {
    (0..STEP_POINTS).map(move |number| (step * 37 + number * 11) % IDS)
}

fn removed(step: u64) -> impl Iterator<Item = u64> {
    (0..10).map(move |number| (step * 53 + number * 17 + 3) % IDS)
}

/// The step in which each id was last written, after so many steps; `None` if it is not there.
fn after(steps: u64) -> Vec<Option<u64>> {
    let mut last = vec![None; IDS as usize];
    for step in 0..steps {
        written(step).for_each(|id| last[id as usize] = Some(step));
        removed(step).for_each(|id| last[id as usize] = None);
    }
    last
}

/// The process that the test below starts, in a folder that says with which step to go on, and kills. Anywhere else it has nothing
/// to do.
#[test]
fn writes_until_it_is_killed() {
    let dir = std::env::current_dir().unwrap();
    let Ok(first) = std::fs::read_to_string(dir.join(STEPS_FILE)) else { return };
    let mut step: u64 = first.parse().unwrap();
    let index = open(&dir.join("index"));
    loop {
        index.upsert(written(step).map(|id| point(id, step)).collect()).unwrap();
        index.remove(&removed(step).map(MemoryId).collect::<Vec<_>>()).unwrap();
        step += 1;
        if step.is_multiple_of(3) {
            index.flush().unwrap();
            println!("flushed {step}");
        }
        if step.is_multiple_of(20) {
            index.rewrite().unwrap();
        }
    }
}

#[test]
fn a_kill_leaves_what_was_flushed_and_nothing_else() {
    let dir = TempDir::new().unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    let mut flushed = 0;
    for round in 0..ROUNDS {
        std::fs::write(dir.path().join(STEPS_FILE), flushed.to_string()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "killed::writes_until_it_is_killed"])
            .current_dir(dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let begun = lines.by_ref().map_while(Result::ok).any(|line| line.contains("flushed "));
        assert!(begun, "the writer gave up in round {round}");
        // The writer goes on while a few more of its lines are read, so the kill meets it anywhere in a later step.
        lines.by_ref().take(random.usize(..MAX_LINES)).for_each(drop);
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before it was killed is still to be read.
        let said =
            lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("flushed ")?.trim().parse::<u64>().ok());
        flushed = said.last().unwrap_or(flushed + 3 - flushed % 3).max(flushed);
        check(dir.path(), flushed, round);
        let seen = settle(dir.path(), flushed);
        flushed = seen;
    }
    assert!(flushed >= ROUNDS * 3, "the writer wrote little: {flushed} steps");
}

/// Every point is one that was given, in the last step before the flush that wrote it, or in a later one.
fn check(dir: &std::path::Path, flushed: u64, round: u64) {
    let index = open(&dir.join("index"));
    let ids = index.ids().unwrap();
    let found = index.points(&ids).unwrap();
    assert_eq!(found.len(), ids.len());
    let want = after(flushed);
    let mut steps = vec![None; IDS as usize];
    for found in &found {
        let step = found.label.at.as_second().cast_unsigned();
        assert_eq!(*found, point(found.id.0, step), "round {round}: a point that nobody gave");
        assert!(written(step).any(|id| id == found.id.0), "round {round}: step {step} gave no {}", found.id);
        steps[found.id.0 as usize] = Some(step);
    }
    for (id, (step, want)) in steps.iter().zip(&want).enumerate() {
        let later = |step: u64| step >= flushed;
        match (step, want) {
            (Some(step), Some(want)) => {
                assert!(step == want || later(*step), "round {round}: {id} is of step {step}, not {want}")
            }
            (Some(step), None) => assert!(later(*step), "round {round}: {id} was removed, and is of step {step}"),
            // A later step may have removed it.
            (None, Some(_)) => assert!(
                (flushed..flushed + 1_000).any(|step| removed(step).any(|gone| gone == id as u64)),
                "round {round}: {id} is missing"
            ),
            (None, None) => {}
        }
    }
}

/// Makes the index what it is after the steps that were flushed, so that the next round knows where it stands.
fn settle(dir: &std::path::Path, flushed: u64) -> u64 {
    let index = open(&dir.join("index"));
    for (id, step) in after(flushed).into_iter().enumerate() {
        match step {
            Some(step) => index.upsert(vec![point(id as u64, step)]).unwrap(),
            None => index.remove(&[MemoryId(id as u64)]).unwrap(),
        }
    }
    index.flush().unwrap();
    flushed
}
