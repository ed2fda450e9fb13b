//! Measures a tick of ten thousand minds: once with nothing due, once with all due at the same time.

use std::hint::black_box;
use std::sync::Arc;

use azera_affect::{Event, Mind, MindId, MindParams, Minds};
use azera_types::{PersonaId, RealmId, Scope, Timestamp};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use jiff::SignedDuration;

const MINDS: usize = 10_000;

/// Returns minds that had one exchange each, a second apart, and were then left alone.
fn asleep(start: Timestamp) -> Minds {
    let params = Arc::new(MindParams::default());
    let mut minds = Minds::new();
    for number in 0..MINDS {
        let persona = PersonaId::new("azera").expect("an id");
        let realm = RealmId::new(format!("realm {number}")).expect("an id");
        let id = MindId { persona, place: Scope::Realm(realm) };
        minds.insert(id.clone(), Mind::new(start, &params), Arc::clone(&params));
        let then = start + SignedDuration::from_secs(number as i64);
        minds.apply(&id, then, Event::Exchange { felt: None }).expect("it is there");
    }
    minds
}

fn ticking(criterion: &mut Criterion) {
    // After the last exchange, and hours before any dream or reflection.
    let start: Timestamp = "2026-06-01T06:00:00Z".parse().expect("a time");
    let quiet = start + SignedDuration::from_hours(4);
    let mut minds = asleep(start);
    criterion.bench_function("tick/10,000 asleep", |bench| {
        let mut now = quiet;
        bench.iter(|| {
            // Alternates between two seconds, because a benchmark has more ticks than the quiet time has seconds.
            now = if now == quiet { quiet + SignedDuration::from_secs(1) } else { quiet };
            let all_effects = minds.tick(black_box(now));
            assert!(all_effects.is_empty());
        });
    });
    let reflecting = start + SignedDuration::from_hours(18);
    criterion.bench_function("tick/10,000 due at once", |bench| {
        bench.iter_batched(
            || asleep(start),
            |mut minds| assert_eq!(minds.tick(black_box(reflecting)).len(), MINDS),
            BatchSize::PerIteration,
        );
    });
}

criterion_group!(benches, ticking);
criterion_main!(benches);
