//! Proves isolation over made-up worlds: "a memory is shown only where everyone who can read the answer can, at that
//! moment, also read the place it came from".
//!
//! A world is a set of realms, chats of every kind, people who join and leave, personas, and messages, each with a
//! secret of its own. The real engine plays it on stores in memory and on the sim platform; its model repeats every
//! secret it is shown. An oracle that only knows who joined and left judges everything that comes out.
//!
//! `world` makes worlds up, `drive` plays them, `look` asks for memories, `watch` and `oracle` judge, and `guard`
//! checks that nothing is left out. The other modules are single scenes, most of them built on `findings::Scene`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod addressee;
mod again;
mod audiences;
mod away;
mod captions;
mod danger;
mod defects;
mod dispatch;
mod drawing;
mod drawn_larger;
mod drive;
mod episodes;
mod extracted;
mod fake_trainer;
mod files;
mod findings;
mod gallery;
mod garden;
mod grammars;
mod graph;
mod guard;
mod hearth;
mod held;
mod hosts;
mod hours;
mod imports;
mod index;
mod interrupted;
mod known_then;
mod latest;
mod learnt;
mod linked;
mod look;
mod looked_at;
mod maintenance;
mod names;
mod numbers;
mod offload;
mod oracle;
mod overrides;
mod passages;
mod picture_choices;
mod pictures;
mod portraits;
mod recordings;
mod remix;
mod repeated;
mod replied_pictures;
mod reply_style;
mod reranked;
mod results;
mod retractions;
mod samples;
mod showing;
mod shown_again;
mod shown_pictures;
mod streamed;
mod submit;
mod surprise;
mod tags;
mod test_engine;
mod texts;
mod undrawn;
mod validity;
mod voice_fakes;
mod voice_messages;
mod watch;
mod world;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use azera_memory::conformance;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::drive::play;
use crate::watch::Record;
use crate::world::{World, every_command, world};

/// Worlds played in a run.
const WORLDS: u32 = 100;

/// Minimum number of judgements in a run.
const CASES: usize = 10_000;

/// Minimum number of secrets judged in background writings in a run.
const WRITTEN_SECRETS: usize = 5_000;

/// Time for shrinking a failing world.
const SHRINKING_MS: u32 = 60_000;

/// Plays a world on threads of its own, which end with it.
fn pass_time(world: &World, record: &Arc<Mutex<Record>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let result = runtime.block_on(async {
        let run = play(world, record.clone(), &BTreeSet::new()).await?;
        // What is shown in a chat must not depend on secrets that were never visible there: with other words for them,
        // the world looks the same from that chat.
        let hidden = run.engine.watch.oracle().never_seen(run.observer.0);
        if world.careless || hidden.is_empty() {
            return Ok(());
        }
        let other = play(world, record.clone(), &hidden).await.map_err(|leak| format!("told otherwise: {leak}"))?;
        match run.seen.iter().zip(&other.seen).find(|(one, two)| one != two) {
            None => Ok(()),
            Some((one, two)) => Err(format!("what is hidden shows: once\n  {one}\nand, of other words,\n  {two}")),
        }
    });
    // A crash leaves a delivery hanging forever.
    runtime.shutdown_background();
    result
}

#[test]
fn nobody_is_shown_what_they_cannot_read_in_any_way() {
    let record = Arc::<Mutex<Record>>::default();
    let config =
        Config { cases: WORLDS, failure_persistence: None, max_shrink_time: SHRINKING_MS, ..Config::default() };
    let played =
        TestRunner::new(config).run(&world(1..40), |world| pass_time(&world, &record).map_err(TestCaseError::fail));
    if let Err(failure) = played {
        panic!("{failure}");
    }
    pass_time(&every_command(), &record).unwrap();
    let record = record.lock().unwrap();
    let cases: usize = record.paths().map(|(_, cases, _)| cases).sum();
    let table: String =
        record.paths().map(|(path, cases, secrets)| format!("\n{cases:>8} {secrets:>8} {path}")).collect();
    println!("{cases} showings judged:{table}");
    assert!(cases >= CASES, "{cases} showings judged:{table}");
    // Background writings, by the ways that show nothing else.
    let written: usize =
        record.paths().filter(|(path, ..)| guard::WRITTEN.contains(path)).map(|(_, _, secrets)| secrets).sum();
    assert!(written >= WRITTEN_SECRETS, "{written} secrets of writings judged:{table}");
    let silent: Vec<&str> = guard::TELLING.iter().copied().filter(|path| record.secrets(path) == 0).collect();
    assert!(silent.is_empty(), "nothing was ever shown by {silent:?}:{table}");
    let missed = guard::missed(&record);
    assert!(missed.is_empty(), "ways to be shown something that were not gone:\n{}", missed.join("\n"));
}

#[test]
fn the_vector_index_of_these_worlds_conforms_to_its_contract() {
    conformance::vector(|| {
        let index = index::Vectors::new(conformance::DIMENSION, false);
        move || index.clone()
    });
}
