//! Compares the computed due times with checking every second.

use std::sync::Arc;

use azera_affect::{Activity, Effect, Event, Mind, MindId, MindParams, Minds};
use azera_types::{PersonaId, Timestamp};
use jiff::SignedDuration;
use proptest::prelude::*;

use crate::life::{EXCHANGE, events, mind_params, seconds, time};

/// The seconds that are checked one by one: a day and a half.
const SPAN_S: i64 = 36 * 3600;

/// What the test knows about a mind from its events. It reads everything else from the state, second by second.
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
            // Nothing was asked for, so there is nothing to put off.
            Event::PutOff(_) | Event::Drew => {}
            // A mood makes nothing due.
            Event::Given { .. } => {}
        }
    }
}

/// Returns an activity that is due at `now` by the definition, for a mind without a pending activity.
fn due(watcher: &Watcher, mind: &Mind, now: Timestamp, params: &MindParams) -> Option<Activity> {
    let constants = &params.constants;
    let state = mind.state(now, params);
    let quiet = |s: u32| now.duration_since(watcher.quiet_since) >= seconds(i64::from(s));
    let gap = |last: Option<Timestamp>, hours: u32| {
        last.is_none_or(|last| now.duration_since(last) >= SignedDuration::from_hours(i64::from(hours)))
    };
    let hour = || u8::try_from(now.to_zoned(params.zone.clone()).hour()).expect("an hour");
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
        // The daily hour has passed since something new happened.
        let since = watcher.first_unreflected?;
        let local = since.to_zoned(params.zone.clone());
        let hour = i8::try_from(constants.reflection_hour).expect("an hour");
        let today = local.date().at(hour, 0, 0, 0).to_zoned(params.zone.clone()).expect("a time").timestamp();
        let tomorrow = local.date().tomorrow().expect("a day").at(hour, 0, 0, 0);
        let struck =
            if today > since { today } else { tomorrow.to_zoned(params.zone.clone()).expect("a time").timestamp() };
        Some(now >= struck)
    };
    if quiet(constants.reflection_idle_s) && (clear || daily() == Some(true)) {
        return Some(Activity::Reflection);
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The first activity that a mind asks for is the first one that a check every second finds.
    #[test]
    fn no_activity_is_missed_or_early(
        params in mind_params(),
        happens in events(9000),
        last in 0..10i64,
        offset in 0..500_000i64,
    ) {
        let mut now = time("2026-03-25T00:00:00Z") + seconds(offset);
        let mut mind = Mind::new(now, &params);
        let mut watcher = Watcher { quiet_since: now, first_unreflected: None, unreflected: 0, undreamt: 0 };
        // End with something new, or little would ever be due.
        let talk = (0..last).map(|_| (5, EXCHANGE));
        for (apart, event) in happens.into_iter().chain(talk) {
            now += seconds(apart);
            mind.apply(now, event, &params);
            watcher.sees(now, event);
        }
        let end = now + seconds(SPAN_S);
        let looked = (0..SPAN_S).map(|s| now + seconds(s)).find_map(|at| Some((at, due(&watcher, &mind, at, &params)?)));
        let mut sleeper = mind.clone();
        let mut called = None;
        while called.is_none() && let Some(next) = sleeper.next_due(&params).filter(|next| *next < end) {
            let effects = sleeper.advance(next, &params);
            called = effects.into_iter().find_map(|effect| match effect {
                Effect::Due(activity) => Some((next, activity)),
                Effect::Mood(_) => None,
            });
        }
        match (looked, called) {
            (Some((looked_at, looked)), Some((called_at, called))) => {
                // Between two checks one activity may become due, and with the second a more important one.
                let late = looked_at.duration_since(called_at).as_secs_f64();
                prop_assert!((-0.01..=1.0).contains(&late), "{looked:?} {looked_at} {called:?} {called_at}");
                prop_assert!(looked == called || late > 0.0, "{looked:?} {called:?} {called_at}");
            }
            // At the very end of the span, one of the two may just miss it.
            (None, Some((at, activity))) => prop_assert!(end.duration_since(at) <= seconds(1), "{activity:?} {at}"),
            (Some((at, looked)), None) => prop_assert!(end.duration_since(at) <= seconds(1), "missed {looked:?} {at}"),
            (None, None) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Minds that are advanced only when they are due ask for the same activities as minds that are advanced every
    /// second.
    #[test]
    fn ticking_only_due_minds_equals_ticking_all(
        params in mind_params(),
        happens in events(9000),
        answered in any::<bool>(),
        offset in 0..500_000i64,
    ) {
        let params = Arc::new(params);
        let id = MindId { persona: PersonaId::new("azera").unwrap(), place: "realm:guild".parse().unwrap() };
        let start = time("2026-03-25T00:00:00Z") + seconds(offset);
        let (mut minds, mut alone) = (Minds::new(), Mind::new(start, &params));
        minds.insert(id.clone(), alone.clone(), Arc::clone(&params));
        let mut happens = happens.into_iter().scan(start, |at, (apart, event)| {
            *at += seconds(apart);
            Some((*at, event))
        }).peekable();
        for s in 0..SPAN_S / 2 {
            let now = start + seconds(s);
            let by_queue: Vec<Effect> = minds.tick(now).into_iter().flat_map(|(_, effects)| effects).collect();
            let by_looking = alone.advance(now, &params);
            prop_assert_eq!(&by_queue, &by_looking, "at {}", now);
            prop_assert!(minds.next_due().is_none_or(|due| due > now), "it would be looked at forever");
            for effect in by_queue {
                if let Effect::Due(activity) = effect && answered {
                    minds.apply(&id, now, Event::Done(activity));
                    alone.apply(now, Event::Done(activity), &params);
                }
            }
            while let Some((_, event)) = happens.next_if(|(at, _)| *at == now) {
                prop_assert_eq!(minds.apply(&id, now, event), Some(alone.apply(now, event, &params)));
            }
        }
    }
}

#[test]
fn minds_can_be_inserted_removed_and_changed() {
    let params = Arc::new(MindParams::default());
    let start = time("2026-06-01T12:00:00Z");
    let id = |realm: &str| MindId {
        persona: PersonaId::new("azera").unwrap(),
        place: format!("realm:{realm}").parse().unwrap(),
    };
    let mut minds = Minds::new();
    assert_eq!(minds.apply(&id("a"), start, EXCHANGE), None);
    for realm in ["a", "b"] {
        minds.insert(id(realm), Mind::new(start, &params), Arc::clone(&params));
        minds.apply(&id(realm), start, EXCHANGE).unwrap();
    }
    assert_eq!(minds.next_due(), Some(time("2026-06-01T21:00:00Z")));
    // Another reflection hour for one realm.
    let constants = azera_affect::Constants { reflection_hour: 18, ..params.constants.clone() };
    let earlier = Arc::new(MindParams { constants, ..MindParams::clone(&params) });
    minds.set_params(&id("b"), start + seconds(60), &earlier);
    assert_eq!(minds.next_due(), Some(time("2026-06-01T18:00:00Z")));
    let described = minds.tick(time("2026-06-01T18:00:00Z"));
    assert_eq!(described, [(id("b"), vec![Effect::Due(Activity::Reflection)])]);
    let taken = minds.remove(&id("b")).unwrap();
    assert_eq!((minds.len(), minds.next_due()), (1, Some(time("2026-06-01T21:00:00Z"))));
    minds.insert(id("b"), taken, earlier);
    assert_eq!(minds.next_due(), Some(time("2026-06-01T18:30:00Z")), "nobody answered");
}

#[test]
fn minds_continue_after_the_clock_was_wrong() {
    let params = Arc::new(MindParams::default());
    let start = time("2026-06-01T12:00:00Z");
    let id = MindId { persona: PersonaId::new("azera").unwrap(), place: "realm:guild".parse().unwrap() };
    let mut minds = Minds::new();
    minds.insert(id.clone(), Mind::new(start, &params), params);
    let ahead = start + SignedDuration::from_hours(100_000);
    assert!(minds.tick(ahead).is_empty());
    minds.apply(&id, ahead, EXCHANGE).unwrap();
    assert!(minds.tick(start).is_empty());
    minds.apply(&id, start + seconds(5), EXCHANGE).unwrap();
    assert!(minds.next_due().unwrap() < start + SignedDuration::from_hours(24), "{:?}", minds.next_due());
}
