//! Tests of the style blend.

use azera_affect::{Bond, Layer, Rules, Tag, blend};
use azera_types::Dimension;
use proptest::prelude::*;

use crate::bonds::bond;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn more_directives_are_mixed_in_as_the_feeling_rises() {
    let (primary, secondary) = (texts(&["calm"]), texts(&["short", "dry", "cold", "mute"]));
    let layers = [Layer { axis: Dimension::Tension, threshold: 0.6, primary: &primary, secondary: &secondary }];
    #[track_caller]
    fn check(layers: &[Layer<'_>], tension: f64, want: &[&str]) {
        assert_eq!(blend(layers, &bond(&[(Dimension::Tension, tension)])), want, "{tension}");
    }
    check(&layers, 0.0, &["calm"]);
    check(&layers, 0.6, &["calm"]);
    check(&layers, 0.61, &["calm", "short"]);
    check(&layers, 0.7, &["calm", "short"]);
    check(&layers, 0.71, &["calm", "short", "dry"]);
    check(&layers, 0.95, &["calm", "short", "dry", "cold", "mute"]);
    check(&layers, 1.0, &["calm", "short", "dry", "cold", "mute"]);
}

/// With the built-in rules, a built-in persona and the default numbers: one unkind word changes no style, persistent
/// hostility does.
#[test]
fn sustained_hostility_changes_the_style_and_wears_off() {
    let (rules, constants) = (Rules::builtin(), azera_affect::Constants::default());
    let persona = azera_personas::built_in("azera").unwrap();
    let layer = persona.style_blend.sentiment.as_ref().unwrap();
    let directives = |name: &str| persona.sentiment(name).unwrap();
    let (primary, secondary) = (directives(&layer.primary), directives(&layer.secondary));
    let layers = [Layer { axis: layer.axis, threshold: layer.threshold, primary, secondary }];
    let mut bond = Bond::new();
    let mut turn = |tags: &[Tag]| {
        let matched = rules.matching(tags, &bond);
        bond.decay_turn(constants.emotion_decay_rate);
        bond.apply(&matched.deltas, constants.emotion_max_delta);
        blend(&layers, &bond).len()
    };
    let hostile: Vec<usize> = (0..12).map(|_| turn(&[Tag::Hostility])).collect();
    assert_eq!(hostile, [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    let sorry: Vec<usize> = (0..5).map(|_| turn(&[Tag::Apology])).collect();
    assert_eq!(sorry, [2, 1, 0, 0, 0]);
}

proptest! {
    #[test]
    fn a_stronger_feeling_keeps_every_directive_and_all_primary_ones(
        thresholds in prop::collection::vec((0.0..=1.0f64, 0usize..9, 0usize..4), 1..3),
        mut strengths in prop::collection::vec(0.0..=1.0f64, 2..20),
    ) {
        let lists: Vec<(Vec<String>, Vec<String>)> = thresholds.iter().enumerate().map(|(layer, (_, many, few))| {
            let list = |name: &str, count: usize| (0..count).map(|number| format!("{layer}{name}{number}")).collect();
            (list("primary", *few), list("secondary", *many))
        }).collect();
        let layers: Vec<Layer<'_>> = thresholds.iter().zip(&lists).map(|((threshold, ..), (primary, secondary))| {
            Layer { axis: Dimension::Tension, threshold: *threshold, primary, secondary }
        }).collect();
        strengths.push(1.0);
        strengths.sort_by(f64::total_cmp);
        let mut before: Vec<&str> = Vec::new();
        for strength in strengths {
            let blended = blend(&layers, &bond(&[(Dimension::Tension, strength)]));
            prop_assert!(before.iter().all(|directive| blended.contains(directive)), "{:?} {:?}", before, blended);
            // Earlier directives keep their order.
            let retained: Vec<&str> = blended.iter().copied().filter(|directive| before.contains(directive)).collect();
            prop_assert_eq!(&retained, &before);
            let primary: Vec<&String> = lists.iter().flat_map(|(primary, _)| primary).collect();
            prop_assert_eq!(&blended[..primary.len()], &primary[..]);
            before = blended;
        }
        let all = lists.iter().zip(&thresholds).filter(|(_, (threshold, ..))| *threshold < 1.0);
        prop_assert!(all.flat_map(|((_, secondary), _)| secondary).all(|directive| before.contains(&directive.as_str())));
    }
}
