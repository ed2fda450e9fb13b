//! When minds are due: the solved times against looking every second.

use std::sync::Arc;

use azera_mind::{Activity, Effect, Event, Mind, MindId, Minds, Nature};
use azera_types::{PersonaId, RealmId, Timestamp};
use jiff::SignedDuration;
use proptest::prelude::*;

use crate::life::{EXCHANGE, events, natures, seconds, time};

/// Seconds that are looked through one by one: a day and a half.
const SPAN_S: i64 = 36 * 3600;

/// What is known of a mind from what happened to it; everything else is asked of its state, second by second.
struct Watcher {
    quiet_since: Timestamp,
    first_unreflected: Option<Timestamp>,
    unreflected: u32,
    undreamt: u32,
}

impl Watcher {
    fn sees(&mut self, now: Timestamp, event: Event) {
        match event {
            Event::Exchange { .. } => {
                self.quiet_since = now;
                self.first_unreflected.get_or_insert(now);
                self.unreflected += 1;
                self.undreamt += 1;
            }
            Event::Done(Activity::Reflection) => (self.unreflected, self.first_unreflected) = (0, None),
            Event::Done(Activity::Dream | Activity::Nap) => self.undreamt = 0,
            // Of nothing that was called for.
            Event::PutOff(_) => {}
        }
    }
}

/// Whether an activity is due at `now` by the words of its definition, for a mind that nothing was offered to yet.
fn due(watcher: &Watcher, mind: &Mind, now: Timestamp, nature: &Nature) -> Option<Activity> {
    let constants = &nature.constants;
    let state = mind.state(now, nature);
    let quiet = |s: u32| now.duration_since(watcher.quiet_since) >= seconds(i64::from(s));
    let gap = |last: Option<Timestamp>, hours: u32| {
        last.is_none_or(|last| now.duration_since(last) >= SignedDuration::from_hours(i64::from(hours)))
    };
    let hour = || u8::try_from(now.to_zoned(nature.zone.clone()).hour()).expect("an hour");
    let night = || {
        let (from, to, hour) = (constants.night_from_hour, constants.night_to_hour, hour());
        if from < to { (from..to).contains(&hour) } else { hour >= from || hour < to }
    };
    let something = watcher.undreamt >= constants.dream_min_exchanges && quiet(constants.dream_idle_s);
    if something
        && state.pressure >= constants.dream_pressure
        && gap(state.last_dream, constants.dream_gap_hours)
        && night()
    {
        return Some(Activity::Dream);
    }
    if something && state.pressure >= constants.nap_pressure && gap(state.last_dream, constants.nap_gap_hours) {
        return Some(Activity::Nap);
    }
    let clear = state.clarity >= constants.clarity_threshold
        && watcher.unreflected >= constants.reflection_min_exchanges
        && gap(state.last_reflection, constants.reflection_gap_hours);
    let daily = || {
        // The daily hour was struck since something new happened.
        let since = watcher.first_unreflected?;
        let local = since.to_zoned(nature.zone.clone());
        let hour = i8::try_from(constants.reflection_hour).expect("an hour");
        let today = local.date().at(hour, 0, 0, 0).to_zoned(nature.zone.clone()).expect("a time").timestamp();
        let tomorrow = local.date().tomorrow().expect("a day").at(hour, 0, 0, 0);
        let struck =
            if today > since { today } else { tomorrow.to_zoned(nature.zone.clone()).expect("a time").timestamp() };
        Some(now >= struck)
    };
    if quiet(constants.reflection_idle_s) && (clear || daily() == Some(true)) {
        return Some(Activity::Reflection);
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The first activity that a mind calls for is the first that looking at it every second finds.
    #[test]
    fn nothing_due_is_missed_and_nothing_comes_early(
        nature in natures(),
        happens in events(9000),
        last in 0..10i64,
        offset in 0..500_000i64,
    ) {
        let mut now = time("2026-03-25T00:00:00Z") + seconds(offset);
        let mut mind = Mind::new(now, &nature);
        let mut watcher = Watcher { quiet_since: now, first_unreflected: None, unreflected: 0, undreamt: 0 };
        // There is something new after all that happened, or little would ever be due.
        let talk = (0..last).map(|_| (5, EXCHANGE));
        for (apart, event) in happens.into_iter().chain(talk) {
            now += seconds(apart);
            mind.apply(now, event, &nature);
            watcher.sees(now, event);
        }
        let end = now + seconds(SPAN_S);
        let looked = (0..SPAN_S).map(|s| now + seconds(s)).find_map(|at| Some((at, due(&watcher, &mind, at, &nature)?)));
        let mut sleeper = mind.clone();
        let mut called = None;
        while called.is_none() && let Some(next) = sleeper.next_due(&nature).filter(|next| *next < end) {
            let effects = sleeper.advance(next, &nature);
            called = effects.into_iter().find_map(|effect| match effect {
                Effect::Due(activity) => Some((next, activity)),
                Effect::Mood(_) => None,
            });
        }
        match (looked, called) {
            (Some((looked_at, looked)), Some((called_at, called))) => {
                // Between two looks something may begin, and another thing that matters more with the second.
                let late = looked_at.duration_since(called_at).as_secs_f64();
                prop_assert!((-0.01..=1.0).contains(&late), "{looked:?} {looked_at} {called:?} {called_at}");
                prop_assert!(looked == called || late > 0.0, "{looked:?} {called:?} {called_at}");
            }
            // At the very end of the span one of the two may just miss it.
            (None, Some((at, activity))) => prop_assert!(end.duration_since(at) <= seconds(1), "{activity:?} {at}"),
            (Some((at, looked)), None) => prop_assert!(end.duration_since(at) <= seconds(1), "missed {looked:?} {at}"),
            (None, None) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Minds that are looked at only when they are due call for the same as minds that are looked at every second.
    #[test]
    fn a_tick_of_those_due_equals_a_tick_of_all(
        nature in natures(),
        happens in events(9000),
        answered in any::<bool>(),
        offset in 0..500_000i64,
    ) {
        let nature = Arc::new(nature);
        let id = MindId { persona: PersonaId::new("azera").unwrap(), realm: RealmId::new("guild").unwrap() };
        let start = time("2026-03-25T00:00:00Z") + seconds(offset);
        let (mut minds, mut alone) = (Minds::new(), Mind::new(start, &nature));
        minds.insert(id.clone(), alone.clone(), Arc::clone(&nature));
        let mut happens = happens.into_iter().scan(start, |at, (apart, event)| {
            *at += seconds(apart);
            Some((*at, event))
        }).peekable();
        for s in 0..SPAN_S / 2 {
            let now = start + seconds(s);
            let by_queue: Vec<Effect> = minds.tick(now).into_iter().flat_map(|(_, effects)| effects).collect();
            let by_looking = alone.advance(now, &nature);
            prop_assert_eq!(&by_queue, &by_looking, "at {}", now);
            prop_assert!(minds.next_due().is_none_or(|due| due > now), "it would be looked at forever");
            for effect in by_queue {
                if let Effect::Due(activity) = effect && answered {
                    minds.apply(&id, now, Event::Done(activity));
                    alone.apply(now, Event::Done(activity), &nature);
                }
            }
            while let Some((_, event)) = happens.next_if(|(at, _)| *at == now) {
                prop_assert_eq!(minds.apply(&id, now, event), Some(alone.apply(now, event, &nature)));
            }
        }
    }
}

#[test]
fn minds_are_put_in_and_taken_out() {
    let nature = Arc::new(Nature::default());
    let start = time("2026-06-01T12:00:00Z");
    let id = |realm: &str| MindId { persona: PersonaId::new("azera").unwrap(), realm: RealmId::new(realm).unwrap() };
    let mut minds = Minds::new();
    assert_eq!(minds.apply(&id("a"), start, EXCHANGE), None);
    for realm in ["a", "b"] {
        minds.insert(id(realm), Mind::new(start, &nature), Arc::clone(&nature));
        minds.apply(&id(realm), start, EXCHANGE).unwrap();
    }
    assert_eq!(minds.next_due(), Some(time("2026-06-01T21:00:00Z")));
    // Another hour for one realm.
    let constants = azera_mind::Constants { reflection_hour: 18, ..nature.constants.clone() };
    let earlier = Arc::new(Nature { constants, ..Nature::clone(&nature) });
    minds.renature(&id("b"), start + seconds(60), &earlier);
    assert_eq!(minds.next_due(), Some(time("2026-06-01T18:00:00Z")));
    let told = minds.tick(time("2026-06-01T18:00:00Z"));
    assert_eq!(told, [(id("b"), vec![Effect::Due(Activity::Reflection)])]);
    let taken = minds.remove(&id("b")).unwrap();
    assert_eq!((minds.len(), minds.next_due()), (1, Some(time("2026-06-01T21:00:00Z"))));
    minds.insert(id("b"), taken, earlier);
    assert_eq!(minds.next_due(), Some(time("2026-06-01T18:30:00Z")), "nobody answered");
}

#[test]
fn minds_go_on_after_the_clock_was_wrong() {
    let nature = Arc::new(Nature::default());
    let start = time("2026-06-01T12:00:00Z");
    let id = MindId { persona: PersonaId::new("azera").unwrap(), realm: RealmId::new("guild").unwrap() };
    let mut minds = Minds::new();
    minds.insert(id.clone(), Mind::new(start, &nature), nature);
    let ahead = start + SignedDuration::from_hours(100_000);
    assert!(minds.tick(ahead).is_empty());
    minds.apply(&id, ahead, EXCHANGE).unwrap();
    assert!(minds.tick(start).is_empty());
    minds.apply(&id, start + seconds(5), EXCHANGE).unwrap();
    assert!(minds.next_due().unwrap() < start + SignedDuration::from_hours(24), "{:?}", minds.next_due());
}
