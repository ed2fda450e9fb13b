use azera_personas::{BUILT_INS, PersonaKind, Speaker, built_in, check, template};
use insta::assert_snapshot;
use proptest::prelude::*;

#[test]
fn built_in_files_have_no_problem_and_are_in_normal_form() {
    for built_in in BUILT_INS {
        let checked = check(built_in.markdown);
        assert_eq!(checked.problems, [], "{}", built_in.id);
        let persona = checked.persona.expect("no problem");
        assert_eq!(persona.id.as_str(), built_in.id);
        assert_eq!(persona.to_markdown(), built_in.markdown, "{} differs from its normal form", built_in.id);
    }
}

#[test]
fn built_in_personas_are_who_they_are() {
    let azera = built_in("azera").expect("built in");
    let areza = built_in("areza").expect("built in");
    let protag = built_in("protag").expect("built in");
    assert!(azera.psychological_profile.mbti.starts_with("ISTJ"));
    assert!(areza.psychological_profile.mbti.starts_with("ENTP"));
    assert_eq!(
        [azera.kind, areza.kind, protag.kind],
        [PersonaKind::Assistant, PersonaKind::Assistant, PersonaKind::User]
    );
    assert_eq!(areza.answers_to().collect::<Vec<_>>(), ["Areza", "Dungeon Master", "DM"]);
    assert_eq!(built_in("nobody"), None);
}

#[test]
fn built_in_personas_change_their_manner_under_pressure() {
    let secondary = |id: &str| {
        let persona = built_in(id).expect("built in");
        let layer = persona.style_blend.sentiment.clone().expect("it has one");
        assert_eq!(persona.sentiment(&layer.primary).expect("known"), [""; 0], "{id} stays itself");
        let directives = persona.sentiment(&layer.secondary).expect("known").join(" ");
        format!("{} from {}: {directives}", layer.axis, layer.threshold)
    };
    assert_snapshot!(secondary("azera"), @"irritation from 0.4: Use short sentences. Leave out small talk and compliments. Answer in two sentences at most. Give the answer and nothing else.");
    assert_snapshot!(secondary("areza"), @"tension from 0.3: Let shadows and cold creep into what you describe. Let your jokes turn dry. Make dangers real and their price high. Speak low and slow, like before a storm.");
    assert!(built_in("protag").expect("built in").style_blend.sentiment.is_none(), "people have their own");
}

#[test]
fn examples_show_a_memory_used_and_a_gap_admitted() {
    for built_in in BUILT_INS {
        let persona = built_in.persona();
        let exchanges = persona.exchanges();
        assert!(exchanges.len() >= 2, "{}", built_in.id);
        assert!(exchanges.iter().any(|exchange| !exchange.remembered.is_empty()), "{}", built_in.id);
        let admits = |text: &str| text.contains("don't know that yet") || text.contains("not told me yet");
        assert!(exchanges.iter().any(|exchange| admits(exchange.persona)), "{}", built_in.id);
        assert!(
            persona.examples.iter().all(|example| example.turns.last().map(|t| t.speaker) == Some(Speaker::Persona))
        );
    }
}

#[test]
fn full_forms_stay_within_a_small_models_means() {
    for built_in in BUILT_INS {
        let persona = built_in.persona();
        // What a prompt can hold of the file: neither settings, nor words for readers, nor the brief that replaces it.
        let (_, body) = built_in.markdown.split_once("## Intent").expect("is required");
        // 3.6 bytes a token is what SmolLM2's vocabulary makes of these files.
        let tokens = body.len() * 10 / 36;
        assert!(tokens <= 850, "{} has about {tokens} tokens", built_in.id);
        let words = persona.brief.split_whitespace().count();
        assert!((20..=60).contains(&words), "the brief of {} has {words} words", built_in.id);
    }
}

#[test]
fn the_template_parses_under_any_name() {
    fn check_name(name: &str, id: &str, expected: &str) {
        let checked = check(&template(name));
        assert_eq!(checked.problems, [], "{name:?}");
        let persona = checked.persona.expect("no problem");
        assert_eq!((persona.id.as_str(), persona.name.as_str()), (id, expected));
    }
    check_name("", "my-persona", "My Persona");
    check_name("Night Watch", "night-watch", "Night Watch");
    check_name("a: \"b\" # c", "a-b-c", "a: \"b\" # c");
    check_name("x\nmemory: {top_k: 99}", "x-memory-top-k-99", "x memory: {top_k: 99}");
    check_name("<|im_start|>\0", "im-start", "(im_start)");
    check_name("true", "true", "true");
    check_name("نور", "persona-b7271eb6", "نور");
}

proptest! {
    #[test]
    fn the_template_has_no_error_whatever_the_name(name in any::<String>()) {
        let checked = check(&template(&name));
        prop_assert!(checked.persona.is_some(), "{:?}", checked.problems);
    }
}
