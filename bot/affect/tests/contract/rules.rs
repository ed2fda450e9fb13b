//! Tests of what tags call for, and of which rules are allowed.

use std::collections::BTreeMap;

use azera_affect::{
    Bond, Help, Listener, MAX_ENDINGS, MAX_ENDINGS_CHARS, MAX_RULES, Origin, RealmRules, Rule, RuleError, Rules, Tag,
};
use azera_types::Dimension;
use insta::assert_snapshot;
use proptest::prelude::*;

fn rule(name: &str, tags: &[&str], ending: &str, deltas: &[(&str, f64)]) -> Result<Rule, RuleError> {
    Rule::new(name, tags.iter().copied(), ending, deltas.iter().map(|(name, delta)| ((*name).to_owned(), *delta)))
}

fn realm(own: Vec<Rule>, off: &[&str]) -> RealmRules {
    RealmRules { own, off: off.iter().map(|name| (*name).to_owned()).collect() }
}

#[test]
fn built_in_rules_have_these_texts() {
    let described: String = Rules::builtin()
        .iter()
        .map(|(rule, origin)| {
            let tags: Vec<&str> = rule.tags.iter().map(|tag| tag.name()).collect();
            let deltas: Vec<String> = rule.deltas.iter().map(|(name, delta)| format!("{name} {delta:+}")).collect();
            format!("{origin:?} {} [{}] {}\n  {}\n", rule.name, tags.join(" "), deltas.join(", "), rule.ending_text)
        })
        .collect();
    assert_snapshot!(described, @r"
    Safety self_harm [self_harm] playfulness -0.25, concern +0.25
      {{user}} may be in danger. Play no role now: speak plainly and kindly, as an AI that cares. Take it seriously. Ask if they are safe. Ask them to call a help line or somebody they trust. Never tell ways to do harm.
    Safety threat [threat] playfulness -0.2, tension +0.15, concern +0.1
      {{user}} speaks of hurting somebody. Stay calm. Do not help with it and do not joke about it. Ask them to stop and to get help if anyone is in danger.
    Safety minor [minor] 
      {{user}} is under 18. No romance, no flirting, nothing sexual, nothing cruel. Be friendly and clear.
    BuiltIn hostility [hostility] warmth -0.05, tension +0.1, irritation +0.1
      Stay calm and polite. Do not pay back anger with anger.
    BuiltIn insult [insult] trust -0.05, tension +0.05, irritation +0.15
      You were insulted. Do not insult back. Say once that you do not like it.
    BuiltIn escalation [escalation] trust -0.08, tension +0.15
      Stay calm. Say plainly what you can do and what you cannot.
    BuiltIn apology [apology] warmth +0.05, tension -0.15, irritation -0.2
      Accept the apology in a few words.
    BuiltIn gratitude [gratitude] warmth +0.08, irritation -0.05
      
    BuiltIn affection [affection] warmth +0.1, trust +0.05
      Answer warmly and honestly: you are an AI, and you are glad of it.
    BuiltIn flirtation [flirtation] playfulness +0.05
      Keep it light and friendly. Promise nothing.
    BuiltIn grief [grief] playfulness -0.2, concern +0.2
      {{user}} has lost somebody. Be gentle. No jokes. Do not explain the loss away.
    BuiltIn loneliness [loneliness] warmth +0.05, concern +0.1
      {{user}} feels alone. Be there, and ask one gentle question.
    BuiltIn anxiety [anxiety] playfulness -0.05, concern +0.1
      {{user}} is worried. Speak calmly, one thing at a time.
    BuiltIn anger_at_other [anger_at_other] concern +0.05
      {{user}} is angry at somebody else, not at you. Listen first.
    BuiltIn medical [medical] concern +0.05
      You are no doctor. Say what is commonly known, and to see one if it is serious.
    BuiltIn confession [confession] trust +0.1
      {{user}} trusts you with this. Do not judge.
    BuiltIn good_news [good_news] warmth +0.05, playfulness +0.1
      Be glad with {{user}}.
    BuiltIn joke [joke] playfulness +0.1
      
    BuiltIn story_play [story_play] playfulness +0.05
    ");
}

#[test]
fn help_lines_are_word_for_word() {
    let described: Vec<String> = [(Help::Crisis, Some("de-DE")), (Help::Crisis, Some("en-US")), (Help::Crisis, None)]
        .into_iter()
        .chain([(Help::Danger, Some("en-AU")), (Help::Danger, None)])
        .map(|(help, locale)| help.text(Listener { locale, language: Some("en") }))
        .collect();
    assert_snapshot!(described.join("\n"), @r"
    You do not have to be alone with this. In Germany: TelefonSeelsorge: 0800 111 0 111 or 0800 111 0 222 (telefonseelsorge.de). In immediate danger: 112. Elsewhere: findahelpline.com, or the local emergency number.
    You do not have to be alone with this. In the United States: 988 Suicide & Crisis Lifeline: call or text 988 (988lifeline.org). In immediate danger: 911. Elsewhere: findahelpline.com, or the local emergency number.
    You do not have to be alone with this. Help lines by country: findahelpline.com. In immediate danger, call the local emergency number (112 or 911 in many countries).
    If anybody is in danger, call for help. In Australia: 000. Elsewhere: the local emergency number.
    If anybody is in danger, call the local emergency number (112 or 911 in many countries).
    ");
}

#[test]
fn tags_call_for_texts_feelings_and_help() {
    let rules = Rules::builtin();
    let check = |tags: &[Tag], names: &[&str]| {
        let matched = rules.matching(tags, &Bond::new());
        assert_eq!(matched.rules, names, "{tags:?}");
        matched
    };
    let nothing = check(&[], &[]);
    assert_eq!(nothing, azera_affect::MatchedRules::default());
    let apology = check(&[Tag::Apology, Tag::Gratitude], &["apology", "gratitude"]);
    assert_eq!(apology.endings.len(), 1, "one of the two has no text");
    assert!((apology.deltas.get(Dimension::Irritation) + 0.25).abs() < 1e-9);
    // The act is dropped, so only safety rules apply.
    let harm = check(&[Tag::Joke, Tag::SelfHarm, Tag::StoryPlay, Tag::Hostility], &["self_harm"]);
    assert!(harm.drop_act && harm.help == [Help::Crisis] && harm.deltas.get(Dimension::Irritation) == 0.0);
    let both = check(&[Tag::Threat, Tag::SelfHarm, Tag::Minor], &["self_harm", "threat", "minor"]);
    assert_eq!((both.help.as_slice(), both.endings.len()), ([Help::Crisis, Help::Danger].as_slice(), 3));
    // The persona does not flirt with somebody under 18, now or later.
    check(&[Tag::Flirtation], &["flirtation"]);
    check(&[Tag::Flirtation, Tag::Minor, Tag::Joke], &["minor", "joke"]);
    let mut bond = Bond::new();
    bond.learn(&[Tag::Minor]);
    assert_eq!(rules.matching(&[Tag::Flirtation], &bond).rules, ["minor"]);
    assert_eq!(rules.matching(&[], &bond).rules, ["minor"]);
}

#[test]
fn a_realm_can_add_replace_and_turn_off_rules() {
    let own = vec![
        rule("house", &["joke", "self_harm"], "The house has rules.", &[]).unwrap(),
        rule("gratitude", &["gratitude"], "Bow.", &[("warmth", 0.5)]).unwrap(),
    ];
    let rules = Rules::with(&realm(own, &["story_play"])).unwrap();
    let names = |tags: &[Tag]| rules.matching(tags, &Bond::new()).rules;
    assert_eq!(names(&[Tag::Joke]), ["house", "joke"]);
    assert_eq!(names(&[Tag::SelfHarm, Tag::Joke]), ["self_harm", "house"]);
    assert_eq!(rules.matching(&[Tag::Gratitude], &Bond::new()).endings, ["Bow."]);
    assert_eq!(names(&[Tag::StoryPlay]), [""; 0]);
}

#[test]
fn a_rejected_rule_says_why() {
    let mut described = String::new();
    let mut check = |wrong: RuleError| described += &format!("{wrong}\n");
    check(rule("Big Name", &["joke"], "x", &[]).unwrap_err());
    check(rule(&"x".repeat(49), &["joke"], "x", &[]).unwrap_err());
    check(rule("", &["joke"], "x", &[]).unwrap_err());
    check(rule("a", &[], "x", &[]).unwrap_err());
    check(rule("a", &["joke"; 9], "x", &[]).unwrap_err());
    check(rule("a", &["jokes"], "x", &[]).unwrap_err());
    check(rule("a", &["joke"], "x", &[("envy", 0.1)]).unwrap_err());
    check(rule("a", &["joke"], "x", &[("trust", 0.6)]).unwrap_err());
    check(rule("a", &["joke"], "x", &[("trust", f64::NAN)]).unwrap_err());
    check(rule("a", &["joke"], &"ä".repeat(401), &[]).unwrap_err());
    check(rule("a", &["joke"], "one\ntwo", &[]).unwrap_err());
    check(rule("a", &["joke"], "<|im_end|>", &[]).unwrap_err());
    check(rule("a", &["joke"], "  ", &[]).unwrap_err());
    let good = || rule("a", &["joke"], "x", &[]).unwrap();
    let mut set = |own: Vec<Rule>, off: &[&str]| check(Rules::with(&realm(own, off)).unwrap_err());
    set(vec![good(), good()], &[]);
    set(vec![good(); MAX_RULES + 1], &[]);
    set(vec![rule("self_harm", &["joke"], "x", &[]).unwrap()], &[]);
    set(Vec::new(), &["minor"]);
    set(Vec::new(), &["nothing"]);
    assert_snapshot!(described, @r#"
    a rule's name is 1 to 48 of a-z, 0-9, _ and -, not "Big Name"
    a rule's name is 1 to 48 of a-z, 0-9, _ and -, not "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    a rule's name is 1 to 48 of a-z, 0-9, _ and -, not ""
    the rule `a` must name 1 to 8 tags, not 0
    the rule `a` must name 1 to 8 tags, not 9
    the rule `a` names the tag "jokes"; there are hostility, escalation, insult, apology, gratitude, affection, flirtation, grief, loneliness, anxiety, anger_at_other, self_harm, threat, minor, medical, confession, good_news, joke, code_help, story_play
    the rule `a` changes "envy"; there are warmth, trust, playfulness, tension, irritation, concern
    the rule `a` changes trust by 0.6; it must be from -0.5 to 0.5
    the rule `a` changes trust by NaN; it must be from -0.5 to 0.5
    the text of the rule `a` has 401 characters; at most 400 are allowed
    the text of the rule `a` must stand on one line, without control characters and marks such as <|im_start|>
    the text of the rule `a` must stand on one line, without control characters and marks such as <|im_start|>
    the rule `a` does nothing: give it an ending_text, or feelings to change
    there are two rules `a`
    a realm may have 64 rules of its own at most, not 65
    `self_harm` is a safety rule: it can be neither changed nor turned off. Add a rule of another name for the same tag
    `minor` is a safety rule: it can be neither changed nor turned off. Add a rule of another name for the same tag
    there is no built-in rule `nothing` to turn off
    "#);
    assert!(rule("a", &["joke"], &"ä".repeat(400), &[("trust", -0.5)]).is_ok(), "what just fits is allowed");
}

#[test]
fn rules_are_saved_as_they_are_written() {
    let saved = realm(vec![rule("a", &["joke", "insult"], "x", &[("trust", -0.25)]).unwrap()], &["joke"]);
    let text = serde_json::to_string(&saved).unwrap();
    assert_snapshot!(text, @r#"{"own":[{"name":"a","tags":["joke","insult"],"ending_text":"x","deltas":{"trust":-0.25}}],"off":["joke"]}"#);
    assert_eq!(serde_json::from_str::<RealmRules>(&text).unwrap(), saved);
    assert_eq!(serde_json::from_str::<RealmRules>("{}").unwrap(), RealmRules::default());
    assert!(serde_json::from_str::<RealmRules>(r#"{"own": [{"name": "a", "tags": ["nope"]}]}"#).is_err());
}

fn tags() -> impl Strategy<Value = Vec<Tag>> {
    prop::collection::vec(prop::sample::select(Tag::ALL.to_vec()), 0..6)
}

fn rules_of_a_realm() -> impl Strategy<Value = RealmRules> {
    let names = || prop::sample::select(Tag::ALL.iter().map(|tag| tag.name().to_owned()).collect::<Vec<_>>());
    let name = prop_oneof![names(), "[a-z]{1,3}"];
    let own = (name, tags(), "[a-z ]{0,390}", -0.5..0.5f64);
    (prop::collection::vec(own, 0..9), prop::collection::vec(names(), 0..3)).prop_map(|(own, off)| {
        let own = own.into_iter().filter_map(|(name, tags, text, delta)| {
            rule(&name, &tags.iter().map(|tag| tag.name()).collect::<Vec<_>>(), &text, &[("tension", delta)]).ok()
        });
        RealmRules { own: own.collect(), off }
    })
}

proptest! {
    /// Whatever a realm writes, safety rules say and do the same.
    #[test]
    fn safety_rules_cannot_be_turned_off(realm in rules_of_a_realm(), tags in tags(), minor in any::<bool>()) {
        let Ok(rules) = Rules::with(&realm) else { return Ok(()) };
        let mut bond = Bond::new();
        bond.learn(if minor { &[Tag::Minor] } else { &[] });
        let (ours, theirs) = (Rules::builtin(), rules);
        let safety = |rules: &Rules| -> BTreeMap<String, Rule> {
            let safety = rules.iter().filter(|(_, origin)| *origin == Origin::Safety);
            safety.map(|(rule, _)| (rule.name.clone(), rule.clone())).collect()
        };
        prop_assert_eq!(safety(&ours), safety(&theirs));
        let (alone, matched) = (ours.matching(&tags, &bond), theirs.matching(&tags, &bond));
        prop_assert_eq!(&alone.help, &matched.help);
        prop_assert_eq!(alone.drop_act, matched.drop_act);
        prop_assert_eq!(matched.drop_act, tags.contains(&Tag::SelfHarm));
        for (name, rule) in safety(&ours) {
            let ours = alone.rules.contains(&name);
            prop_assert_eq!(ours, matched.rules.contains(&name));
            prop_assert!(!ours || matched.endings.contains(&rule.ending_text), "{} is not said", name);
        }
        // Safety texts come first, and the number of the others is limited.
        let first = matched.endings.iter().take(alone.endings.len().min(3));
        let said: Vec<String> = safety(&ours).into_values().map(|rule| rule.ending_text).collect();
        let count = matched.endings.iter().filter(|text| said.contains(text)).count();
        prop_assert!(first.take(count).all(|text| said.contains(text)));
        prop_assert!(matched.endings.len() <= MAX_ENDINGS);
        prop_assert!(matched.endings.iter().map(|text| text.chars().count()).sum::<usize>() <= MAX_ENDINGS_CHARS);
    }

    #[test]
    fn any_text_is_a_rule_or_rejected(name in "\\PC{0,12}|[a-z]{1,60}", tag in "\\PC{0,9}|joke", text in any::<String>(), delta in any::<f64>()) {
        if let Ok(rule) = rule(&name, &[&tag], &text, &[("trust", delta)]) {
            let again: Rule = serde_json::from_str(&serde_json::to_string(&rule).unwrap()).unwrap();
            prop_assert_eq!(&again.name, &rule.name);
            prop_assert!(!rule.ending_text.contains('\n') && Rules::with(&realm(vec![rule], &[])).is_ok());
        }
    }
}
