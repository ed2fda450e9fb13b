//! Tests of one mind: how it changes over time, and when activities are due.

use azera_affect::{Activity, Constants, DetectedMood, Effect, Event, Mind, MindParams, Mood, State};
use azera_types::Timestamp;
use insta::assert_snapshot;
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use proptest::prelude::*;

pub(crate) fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

pub(crate) fn seconds(s: i64) -> SignedDuration {
    SignedDuration::from_secs(s)
}

/// Central European Time in POSIX notation, so that no zone file is read.
pub(crate) fn central_europe() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone")
}

pub(crate) fn felt(mood: Mood) -> Event {
    Event::Exchange {
        felt: Some(DetectedMood { mood, probability: 1.0, valence: mood.valence(), arousal: mood.arousal() }),
    }
}

pub(crate) const EXCHANGE: Event = Event::Exchange { felt: None };

/// Lets a mind have `exchanges` exchanges, ten seconds apart, and returns the time of the last.
pub(crate) fn talk(mind: &mut Mind, from: Timestamp, exchanges: i64, params: &MindParams) -> Timestamp {
    let mut now = from;
    for number in 0..exchanges {
        now = from + seconds(10 * number);
        mind.apply(now, EXCHANGE, params);
    }
    now
}

/// Advances from one due time to the next until `end`, like a host that completes every activity at once.
fn activities(mind: &mut Mind, end: Timestamp, params: &MindParams) -> Vec<(Timestamp, Activity)> {
    let mut described = Vec::new();
    while let Some(due) = mind.next_due(params).filter(|due| *due <= end) {
        for effect in mind.advance(due, params) {
            if let Effect::Due(activity) = effect {
                described.push((due, activity));
                mind.apply(due, Event::Done(activity), params);
            }
        }
    }
    mind.advance(end, params);
    described
}

fn shown(described: &[(Timestamp, Activity)]) -> String {
    described.iter().map(|(at, activity)| format!("{at:.0} {}\n", activity.name())).collect()
}

#[test]
fn a_drawn_picture_costs_energy_and_nothing_else() {
    let (params, start) = (MindParams::default(), time("2026-06-01T12:00:00Z"));
    let mut mind = Mind::new(start, &params);
    let before = mind.state(start, &params);
    assert_eq!(mind.apply(start, Event::Drew, &params), []);
    let after = mind.state(start, &params);
    assert!((before.energy - after.energy - params.constants.energy_per_picture).abs() < 1e-9, "{after:?}");
    assert_eq!((before.value, before.pressure), (after.value, after.pressure));
    for _ in 0..100 {
        mind.apply(start, Event::Drew, &params);
    }
    assert!(mind.state(start, &params).energy.abs() < 1e-9);
}

#[test]
fn values_follow_the_constants() {
    let (params, start) = (MindParams::default(), time("2026-06-01T12:00:00Z"));
    let mut mind = Mind::new(start, &params);
    let changed = mind.apply(start, felt(Mood::Excited), &params);
    assert_eq!(changed, [Effect::Mood(Mood::Excited)]);
    let check = |s: i64, get: fn(&State) -> f64, want: f64| {
        let state = mind.state(start + seconds(s), &params);
        assert!((get(&state) - want).abs() < 1e-3, "after {s} s: {} instead of {want}", get(&state));
    };
    // Half of the reply's 0.8, and half of the way from 0.3 to 0.9; then a factor of 1/e for each thousand seconds.
    check(0, |state| state.valence, 0.4);
    check(0, |state| state.value, 0.7);
    check(0, |state| state.arousal, 0.6);
    check(1000, |state| state.value, 0.5 + 0.2 / std::f64::consts::E);
    check(1000, |state| state.arousal, 0.3 + 0.3 / std::f64::consts::E);
    check(86_400, |state| state.value, 0.5);
    check(0, |state| state.focus, 0.475);
    check(86_400, |state| state.focus, 0.3);
    // First a minute of quiet, then 0.001 per second.
    check(60, |state| state.energy, 0.67);
    check(160, |state| state.energy, 0.77);
    check(3600, |state| state.energy, 1.0);
    check(0, |state| state.pressure, 0.01);
    check(36_000, |state| state.pressure, 0.31);
    check(1_000_000, |state| state.pressure, 1.0);
}

#[test]
fn recovery_stops_early_under_high_sleep_pressure() {
    let (params, start) = (MindParams::default(), time("2026-06-01T12:00:00Z"));
    let mut mind = Mind::new(start, &params);
    let end = talk(&mut mind, start, 130, &params);
    assert!(mind.state(end, &params).energy < 0.01 && mind.state(end, &params).pressure > 0.6);
    assert!((mind.state(end + seconds(7200), &params).energy - 0.7).abs() < 1e-9);
    mind.apply(end, Event::Done(Activity::Dream), &params);
    assert!((mind.state(end + seconds(7200), &params).energy - 1.0).abs() < 1e-9);
}

#[test]
fn a_mood_ends_when_half_of_it_has_faded() {
    let (params, start) = (MindParams::default(), time("2026-06-01T12:00:00Z"));
    let mut mind = Mind::new(start, &params);
    mind.apply(start, felt(Mood::Concerned), &params);
    let over = mind.next_due(&params).unwrap();
    assert_eq!(over.duration_since(start).as_secs(), 693);
    assert_eq!(mind.state(over - seconds(1), &params).mood, Mood::Concerned);
    assert_eq!(mind.advance(over, &params), [Effect::Mood(Mood::Calm)]);
    assert_eq!(mind.apply(over, felt(Mood::Calm), &params), [], "no other name, no word of it");
}

#[test]
fn a_week_of_talk_and_quiet_has_these_activities() {
    let params = MindParams { zone: central_europe(), ..MindParams::default() };
    let mut mind = Mind::new(time("2026-03-26T08:00:00Z"), &params);
    let mut described = Vec::new();
    // Thursday: a long talk in the morning. Friday: a few words before midnight. Saturday: hours of talk. Then nothing.
    for (from, exchanges) in [("2026-03-26T09:00:00Z", 40), ("2026-03-27T22:30:00Z", 3), ("2026-03-28T10:00:00Z", 300)]
    {
        described.extend(activities(&mut mind, time(from), &params));
        talk(&mut mind, time(from), exchanges, &params);
    }
    described.extend(activities(&mut mind, time("2026-04-02T00:00:00Z"), &params));
    assert_snapshot!(shown(&described), @r"
    2026-03-26T09:15:50Z reflection
    2026-03-27T00:00:00Z dream
    2026-03-28T00:00:00Z dream
    2026-03-28T11:04:50Z nap
    2026-03-28T20:00:00Z reflection
    ");
}

#[test]
fn a_mind_that_nobody_talks_to_has_nothing_due() {
    let (params, start) = (MindParams::default(), time("2026-06-01T12:00:00Z"));
    assert_eq!(Mind::new(start, &params).next_due(&params), None);
    let constants = Constants { dream_min_exchanges: 0, ..Constants::default() };
    let params = MindParams { constants, ..MindParams::default() };
    let mut mind = Mind::new(start, &params);
    let dreams = activities(&mut mind, start + SignedDuration::from_hours(96), &params);
    assert_snapshot!(shown(&dreams), @r"
    2026-06-02T04:40:00Z dream
    2026-06-03T01:00:00Z dream
    2026-06-04T01:00:00Z dream
    2026-06-05T01:00:00Z dream
    ");
}

#[test]
fn a_put_off_activity_is_due_again() {
    let (params, start) = (MindParams::default(), time("2026-06-01T12:00:00Z"));
    let mut mind = Mind::new(start, &params);
    let end = talk(&mut mind, start, 12, &params);
    let due = mind.next_due(&params).unwrap();
    assert_eq!(mind.advance(due, &params), [Effect::Due(Activity::Reflection)]);
    assert_eq!(due, end + seconds(60 + 160), "when the energy is back");
    assert_eq!(mind.advance(due + seconds(60), &params), [], "once is enough");
    mind.apply(due + seconds(60), Event::PutOff(Activity::Reflection), &params);
    // By then the mind is no longer clear, and the daily hour comes first.
    let again = time("2026-06-01T21:00:00Z");
    while let Some(next) = mind.next_due(&params).filter(|next| *next < again) {
        assert_eq!(mind.advance(next, &params), []);
    }
    assert_eq!(mind.advance(again, &params), [Effect::Due(Activity::Reflection)]);
    // No answer, as after a crash.
    let saved = serde_json::to_string(&mind).unwrap();
    let mut mind: Mind = serde_json::from_str(&saved).unwrap();
    assert_eq!(mind.advance(again + seconds(1799), &params), []);
    assert_eq!(mind.advance(again + seconds(1800), &params), [Effect::Due(Activity::Reflection)]);
    // Exchanges during the reflection count for the next one.
    mind.apply(again + seconds(1810), EXCHANGE, &params);
    mind.apply(again + seconds(1820), Event::Done(Activity::Reflection), &params);
    assert_eq!(mind.next_due(&params), Some(time("2026-06-02T01:00:00Z")), "to dream");
    mind.advance(time("2026-06-02T01:00:00Z"), &params);
    mind.apply(time("2026-06-02T01:05:00Z"), Event::Done(Activity::Dream), &params);
    assert_eq!(mind.next_due(&params), Some(time("2026-06-02T21:00:00Z")), "to reflect");
}

#[test]
fn a_saved_mind_is_complete() {
    let (params, start) = (MindParams::default(), time("2026-06-01T12:00:00Z"));
    let mut mind = Mind::new(start, &params);
    mind.apply(start, felt(Mood::Curious), &params);
    mind.apply(start, Event::Done(Activity::Nap), &params);
    mind.apply(start, felt(Mood::Melancholy), &params);
    let saved = serde_json::to_string_pretty(&mind).unwrap();
    assert_snapshot!(saved, @r#"
    {
      "version": 1,
      "at": "2026-06-01T12:00:00Z",
      "valence": -0.20000001043081284,
      "arousal": 0.3250000074505806,
      "energy": 0.6399999999999999,
      "focus": 0.60625,
      "pressure": 0.016,
      "mood": "melancholy",
      "felt_at": "2026-06-01T12:00:00Z",
      "quiet_since": "2026-06-01T12:00:00Z",
      "last_exchange": "2026-06-01T12:00:00Z",
      "last_dream": "2026-06-01T12:00:00Z",
      "last_reflection": null,
      "undreamt": 1,
      "unreflected": 2,
      "unreflected_since": "2026-06-01T12:00:00Z",
      "offer": null
    }
    "#);
}

#[test]
fn older_forms_are_read_and_newer_ones_rejected() {
    let read = |text: &str| serde_json::from_str::<Mind>(text);
    let (params, start) = (MindParams::default(), time("2026-06-01T12:00:00Z"));
    let mind = read(r#"{"version": 1, "at": "2026-06-01T12:00:00Z", "energy": 7, "valence": -3e300, "mood": "zany"}"#)
        .unwrap();
    let state = mind.state(start, &params);
    assert_eq!((state.energy, state.valence, state.mood), (1.0, -1.0, Mood::Calm));
    assert!(read(r#"{"version": 1}"#).is_err());
    let newer = read(r#"{"version": 2, "at": "2026-06-01T12:00:00Z"}"#).unwrap_err();
    assert!(newer.to_string().starts_with("this mind was saved in form 2, and 1 is the newest known"), "{newer}");
}

#[test]
fn a_clock_that_ran_ahead_only_leaves_the_time_it_added() {
    let (params, start) = (MindParams::default(), time("2026-06-01T12:00:00Z"));
    let mut mind = Mind::new(start, &params);
    let end = talk(&mut mind, start, 12, &params);
    // Nine years ahead and back.
    mind.advance(end + SignedDuration::from_hours(9 * 8766), &params);
    let before = mind.state(end + SignedDuration::from_hours(9 * 8766), &params);
    mind.advance(end + seconds(5), &params);
    let after = mind.state(end + seconds(5), &params);
    let values = |state: &State| [state.value, state.arousal, state.energy, state.focus, state.pressure];
    assert_eq!(values(&before), values(&after));
    mind.apply(end + seconds(6), EXCHANGE, &params);
    assert_eq!(mind.state(end + seconds(6), &params).last_exchange, Some(end + seconds(6)), "it lives in the present");
}

/// Constants within the ranges of the configuration, often at their limits.
pub(crate) fn constants() -> impl Strategy<Value = Constants> {
    let share = || prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0];
    let rate = || prop_oneof![Just(0.0), Just(0.001), 0.0..0.01];
    let hours = (0u8..24, 1u8..24, 0u8..24, 1u32..12, 1u32..6, 0u32..6);
    let pressures = (share(), share(), 0.0..0.2, 0.0..0.05, share(), share());
    let shares = (share(), share(), share(), share(), share());
    let rates = (rate(), rate(), rate(), 0.0..0.1f64);
    let waits = (0u32..2000, 0u32..2000, 0u32..2000, 1u32..90, 0u32..3, 1u32..5);
    let weights = (0.0..3.0, prop_oneof![Just(0.0), 0.0..3.0], 0.0..3.0, 0.0..=1.0);
    (hours, pressures, shares, rates, waits, weights).prop_map(|(hours, pressures, shares, rates, waits, weights)| {
        let (dream_pressure, nap_pressure) = (f64::min(pressures.0, pressures.1), f64::max(pressures.0, pressures.1));
        Constants {
            night_from_hour: hours.0,
            night_to_hour: (hours.0 + hours.1) % 24,
            reflection_hour: hours.2,
            dream_gap_hours: hours.3,
            nap_gap_hours: hours.4,
            reflection_gap_hours: hours.5,
            dream_pressure,
            nap_pressure,
            pressure_per_hour: pressures.2,
            pressure_per_exchange: pressures.3,
            dream_relief: pressures.4,
            nap_relief: pressures.5,
            mood_weight: shares.0,
            arousal_rest: shares.1,
            focus_rest: shares.2,
            energy_tired: shares.3,
            focus_per_exchange: shares.4,
            mood_drift_per_s: rates.0,
            energy_recovery_per_s: rates.1,
            focus_decay_per_s: rates.2,
            energy_per_exchange: rates.3,
            energy_per_picture: rates.3,
            energy_idle_s: waits.0,
            dream_idle_s: waits.1,
            reflection_idle_s: waits.2,
            retry_minutes: waits.3,
            dream_min_exchanges: waits.4,
            reflection_min_exchanges: waits.5,
            clarity_focus_weight: weights.0,
            clarity_energy_weight: weights.1,
            clarity_freshness_weight: weights.2,
            clarity_threshold: weights.3,
            ..Constants::default()
        }
    })
}

#[test]
fn a_given_mood_counts_whole_and_fades_like_any_other() {
    let (params, start) = (MindParams::default(), time("2026-06-01T12:00:00Z"));
    let mut mind = Mind::new(start, &params);
    let changed = mind.apply(start, Event::Given { mood: Mood::Happy, valence: 0.6 }, &params);
    assert_eq!(changed, [Effect::Mood(Mood::Happy)]);
    let state = mind.state(start, &params);
    assert!((state.value - 0.8).abs() < 1e-6 && (state.arousal - 0.6).abs() < 1e-6, "{state:?}");
    assert_eq!((state.last_exchange, state.energy), (None, Mind::new(start, &params).state(start, &params).energy));
    let later = mind.state(start + seconds(86_400), &params);
    assert!(later.mood == Mood::Calm && (later.value - 0.5).abs() < 0.01, "{later:?}");
}

/// Parameters in a zone whose clocks change.
pub(crate) fn mind_params() -> impl Strategy<Value = MindParams> {
    let constants = prop_oneof![Just(Constants::default()), constants()];
    constants.prop_map(|constants| MindParams { constants, zone: central_europe() })
}

/// Events, each after some seconds.
pub(crate) fn events(most_apart_s: i64) -> impl Strategy<Value = Vec<(i64, Event)>> {
    let mood = prop::sample::select(Mood::ALL.to_vec());
    let event = prop_oneof![
        4 => mood.prop_map(felt),
        2 => Just(EXCHANGE),
        1 => prop::sample::select(Activity::ALL.to_vec()).prop_map(Event::Done),
        1 => prop::sample::select(Activity::ALL.to_vec()).prop_map(Event::PutOff),
        1 => (prop::sample::select(Mood::ALL.to_vec()), -2.0..2.0f64)
            .prop_map(|(mood, valence)| Event::Given { mood, valence }),
    ];
    // Bursts and silences.
    let apart = prop_oneof![0..30i64, 0..most_apart_s];
    prop::collection::vec((apart, event), 0..40)
}

/// A mind after some events, with the time of the last.
fn lived() -> impl Strategy<Value = (Mind, Timestamp, MindParams)> {
    // Around the night in which clocks change.
    (mind_params(), events(20_000), 0..500_000i64).prop_map(|(params, events, offset)| {
        let mut now = time("2026-03-25T00:00:00Z") + seconds(offset);
        let mut mind = Mind::new(now, &params);
        for (apart, event) in events {
            now += seconds(apart);
            mind.apply(now, event, &params);
        }
        (mind, now, params)
    })
}

fn near(one: &State, two: &State) -> Result<(), TestCaseError> {
    let values =
        |state: &State| [state.valence, state.arousal, state.energy, state.focus, state.pressure, state.clarity];
    for (a, b) in values(one).into_iter().zip(values(two)) {
        prop_assert!((a - b).abs() < 1e-9, "{one:?}\n{two:?}");
    }
    prop_assert_eq!(one.mood, two.mood);
    Ok(())
}

fn in_bounds(state: &State) -> Result<(), TestCaseError> {
    let shares = [state.value, state.arousal, state.energy, state.focus, state.pressure, state.clarity];
    prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{:?}", state);
    prop_assert!((-1.0..=1.0).contains(&state.valence), "{:?}", state);
    Ok(())
}

proptest! {
    #[test]
    fn skipping_a_time_equals_ticking_through_it((mind, now, params) in lived(), span in 1..3000i64) {
        let (mut skipped, mut ticked) = (mind.clone(), mind);
        skipped.advance(now + seconds(span), &params);
        for s in 1..=span {
            ticked.advance(now + seconds(s), &params);
        }
        let end = now + seconds(span);
        near(&skipped.state(end, &params), &ticked.state(end, &params))?;
    }

    #[test]
    fn any_split_of_a_time_gives_the_same_state(
        (mind, now, params) in lived(),
        mut cuts in prop::collection::vec(0..10_000_000_000_000i64, 0..20),
    ) {
        cuts.sort_unstable();
        let (mut whole, mut split) = (mind.clone(), mind);
        let end = now + SignedDuration::from_micros(10_000_000_000_000);
        whole.advance(end, &params);
        for micros in cuts {
            split.advance(now + SignedDuration::from_micros(micros), &params);
        }
        split.advance(end, &params);
        near(&whole.state(end, &params), &split.state(end, &params))?;
    }

    #[test]
    fn values_stay_in_bounds_at_any_time((mut mind, now, params) in lived(), jumps in prop::collection::vec(any::<i64>(), 1..8)) {
        in_bounds(&mind.state(now, &params))?;
        for jump in jumps {
            // Any time, including earlier ones.
            let second = jump % Timestamp::MAX.as_second();
            let then = Timestamp::from_second(second).unwrap_or(now);
            mind.advance(then, &params);
            in_bounds(&mind.state(then, &params))?;
            if let Some(due) = mind.next_due(&params) {
                mind.advance(due, &params);
            }
            mind.apply(then, felt(Mood::Excited), &params);
            in_bounds(&mind.state(then, &params))?;
        }
    }

    #[test]
    fn a_clock_that_goes_back_changes_no_value((mut mind, now, params) in lived(), back in 1..10_000_000i64) {
        let before = mind.state(now, &params);
        mind.advance(now - seconds(back), &params);
        let after = mind.state(now - seconds(back), &params);
        near(&before, &after)?;
    }

    #[test]
    fn a_reloaded_mind_continues_unchanged((mut mind, now, params) in lived(), s in 0..1_000_000i64) {
        let mut read: Mind = serde_json::from_str(&serde_json::to_string(&mind).unwrap()).unwrap();
        let end = now + seconds(s);
        prop_assert_eq!(read.advance(end, &params), mind.advance(end, &params));
        near(&read.state(end, &params), &mind.state(end, &params))?;
    }
}
