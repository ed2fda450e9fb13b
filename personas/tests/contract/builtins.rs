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
fn built_in_personas_have_the_expected_profiles() {
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
fn built_in_personas_change_their_style_under_pressure() {
    let secondary = |id: &str| {
        let persona = built_in(id).expect("built in");
        let layer = persona.style_blend.sentiment.clone().expect("it has one");
        assert_eq!(persona.sentiment(&layer.primary).expect("known"), [""; 0], "{id} stays itself");
        let directives = persona.sentiment(&layer.secondary).expect("known").join(" ");
        format!("{} from {}: {directives}", layer.axis, layer.threshold)
    };
    assert_snapshot!(secondary("azera"), @"irritation from 0.4: Use short sentences. Leave out small talk and compliments. Answer in two sentences at most. Give the answer and nothing else.");
    assert_snapshot!(secondary("areza"), @"tension from 0.3: Let shadows and cold creep into what you describe. Let your jokes turn dry. Make dangers real and their price high. Speak low and slow, like before a storm.");
    assert!(
        built_in("protag").expect("built in").style_blend.sentiment.is_none(),
        "the user persona has no style blend"
    );
}

#[test]
fn examples_show_a_used_memory_and_an_admitted_gap() {
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
fn full_forms_fit_a_small_model() {
    for built_in in BUILT_INS {
        let persona = built_in.persona();
        // The part of the file that a prompt can contain: no settings, no text for readers, and not the brief, which
        // replaces it.
        let (_, body) = built_in.markdown.split_once("## Intent").expect("is required");
        // With SmolLM2's vocabulary, these files have 3.6 bytes per token.
        let tokens = body.len() * 10 / 36;
        assert!(tokens <= 920, "{} has about {tokens} tokens", built_in.id);
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
