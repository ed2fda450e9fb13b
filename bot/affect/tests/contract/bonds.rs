//! Tests of the feelings towards a person: what changes them, and how a prompt describes them.

use azera_affect::{Bond, Deltas, Tag};
use azera_types::Dimension;
use insta::assert_snapshot;
use proptest::prelude::*;

/// Returns a bond with these feelings.
pub(crate) fn bond(feelings: &[(Dimension, f64)]) -> Bond {
    let mut bond = Bond::new();
    bond.apply(&feelings.iter().copied().collect(), 1.0);
    bond
}

#[test]
fn feelings_are_described_in_plain_words_or_not_at_all() {
    use Dimension::{Concern, Irritation, Playfulness, Tension, Trust, Warmth};
    let mut described = String::new();
    let mut check = |feelings: &[(Dimension, f64)]| {
        let shown: Vec<String> = feelings.iter().map(|(dimension, value)| format!("{dimension} {value}")).collect();
        let words = bond(feelings).words();
        described += &format!("{}: {}\n", shown.join(", "), if words.is_empty() { "(nothing)" } else { &words });
    };
    check(&[]);
    for dimension in Dimension::ALL {
        for value in [-0.9, -0.6, -0.3, 0.2, 0.3, 0.6, 0.9] {
            if value >= dimension.least() {
                check(&[(dimension, value)]);
            }
        }
    }
    // Only the strongest three, in a fixed order.
    check(&[(Concern, 0.9), (Irritation, 0.6), (Tension, 0.5), (Playfulness, 0.3), (Trust, 0.3), (Warmth, 0.7)]);
    check(&[(Concern, 0.6), (Warmth, 0.9)]);
    check(&[(Concern, 0.9), (Warmth, 0.6)]);
    assert_snapshot!(described, @r"
    : (nothing)
    warmth -0.9: You feel cold towards {{user}}.
    warmth -0.6: You feel cool towards {{user}}.
    warmth -0.3: You feel a bit cool towards {{user}}.
    warmth 0.2: (nothing)
    warmth 0.3: You like {{user}}.
    warmth 0.6: You like {{user}} a lot.
    warmth 0.9: {{user}} is very dear to you.
    trust -0.9: You do not trust {{user}} at all.
    trust -0.6: You do not quite trust {{user}}.
    trust -0.3: You are a bit careful with {{user}}.
    trust 0.2: (nothing)
    trust 0.3: You trust {{user}} a little.
    trust 0.6: You trust {{user}}.
    trust 0.9: You trust {{user}} with anything.
    playfulness 0.2: (nothing)
    playfulness 0.3: You feel a bit playful.
    playfulness 0.6: You feel playful.
    playfulness 0.9: You are in the mood for nonsense.
    tension 0.2: (nothing)
    tension 0.3: You feel a bit tense.
    tension 0.6: You feel tense.
    tension 0.9: You feel very tense.
    irritation 0.2: (nothing)
    irritation 0.3: You are a bit annoyed with {{user}}.
    irritation 0.6: You are annoyed with {{user}}.
    irritation 0.9: You are very annoyed with {{user}}.
    concern 0.2: (nothing)
    concern 0.3: You are a bit worried about {{user}}.
    concern 0.6: You are worried about {{user}}.
    concern 0.9: You are very worried about {{user}}.
    concern 0.9, irritation 0.6, tension 0.5, playfulness 0.3, trust 0.3, warmth 0.7: You like {{user}} a lot. You are annoyed with {{user}}. You are very worried about {{user}}.
    concern 0.6, warmth 0.9: {{user}} is very dear to you. You are worried about {{user}}.
    concern 0.9, warmth 0.6: You like {{user}} a lot. You are very worried about {{user}}.
    ");
}

#[test]
fn a_saved_bond_is_complete_and_unknown_feelings_are_dropped() {
    let mut bond = bond(&[(Dimension::Warmth, -0.25), (Dimension::Tension, 0.5)]);
    bond.learn(&[Tag::Joke, Tag::Minor]);
    let saved = serde_json::to_string(&bond).unwrap();
    assert_snapshot!(saved, @r#"{"version":1,"feelings":{"tension":0.5,"warmth":-0.25},"minor":true}"#);
    assert_eq!(serde_json::from_str::<Bond>(&saved).unwrap(), bond);
    let read = |text: &str| serde_json::from_str::<Bond>(text);
    let odd = read(r#"{"version": 1, "feelings": {"warmth": 40, "tension": -1, "envy": 0.5}}"#).unwrap();
    assert_eq!(serde_json::to_string(&odd).unwrap(), r#"{"version":1,"feelings":{"warmth":1.0},"minor":false}"#);
    assert!(read(r#"{"version": 2}"#).is_err());
}

#[test]
fn a_person_under_18_stays_under_18() {
    let mut bond = Bond::new();
    bond.learn(&[Tag::Minor]);
    for _ in 0..1000 {
        bond.decay_turn(1.0);
        bond.learn(&[]);
    }
    assert!(bond.is_minor());
}

fn deltas() -> impl Strategy<Value = Deltas> {
    let any = prop_oneof![5 => -2.0..2.0f64, 1 => any::<f64>()];
    prop::collection::vec((prop::sample::select(Dimension::ALL.to_vec()), any), 0..8)
        .prop_map(|deltas| deltas.into_iter().collect())
}

proptest! {
    #[test]
    fn no_message_changes_a_feeling_by_more_than_the_limit(
        all in prop::collection::vec(deltas(), 1..20), most in 0.0..=1.0f64, rate in 0.0..=1.0f64,
    ) {
        let mut bond = Bond::new();
        for deltas in all {
            let before = bond.clone();
            bond.apply(&deltas, most);
            for dimension in Dimension::ALL {
                let (old, new) = (before.get(dimension), bond.get(dimension));
                // A feeling that is nearly 0 counts as 0.
                prop_assert!((new - old).abs() <= most + 0.005, "{dimension} from {old} to {new}");
                prop_assert!((dimension.least()..=1.0).contains(&new), "{dimension} {new}");
            }
            bond.decay_turn(rate);
        }
    }

    #[test]
    fn feelings_decay_to_zero_and_never_past_it(deltas in deltas(), rate in 0.01..=1.0f64) {
        let mut bond = Bond::new();
        bond.apply(&deltas, 1.0);
        for _ in 0..600 {
            let before = bond.clone();
            bond.decay_turn(rate);
            for dimension in Dimension::ALL {
                let (old, new) = (before.get(dimension), bond.get(dimension));
                prop_assert!(new.abs() <= old.abs() && new * old >= 0.0, "{dimension} from {old} to {new}");
            }
        }
        prop_assert_eq!(bond, Bond::new());
    }

    #[test]
    fn at_most_three_feelings_are_described(deltas in deltas()) {
        let mut bond = Bond::new();
        bond.apply(&deltas, 1.0);
        let words = bond.words();
        prop_assert!(words.matches('.').count() <= 3 && words.len() <= 120, "{}", words);
    }
}
