use azera_personas::{check_bytes, defuse, parse};
use proptest::prelude::*;

use crate::files::file;

/// Lines that mean something to the parser, or nearly do.
fn line() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        "",
        "  ",
        "# X",
        "## Intent",
        "## Brief",
        "## Prime Directive",
        "## Psychological Profile",
        "## Quirks #",
        "##",
        "## Task Behaviours",
        "## Example interaction",
        "## Sentiments",
        "### Terse",
        "- - ## Be short.",
        "## Else # #",
        "### Tone",
        "### If coding",
        "### Other",
        "### MBTI",
        "- **Tone:** x",
        "  continued",
        "    deep",
        "Tone: ## y",
        "**Dynamic:**",
        "- loose",
        "MBTI: INFP",
        "Values: a: b",
        "- **If sailing:** reef",
        "* When coding: x",
        "Cues: a, \"B c\", ,",
        "```",
        "~~~~",
        "```rust",
        "``` `x`",
        "<!-- c -->",
        "<!--",
        "-->",
        "<!-- a --> ## Quirks",
        "**User:** hi",
        "X: hello",
        "**X:**",
        "Remembered: m",
        "{{char}}: ```",
        "---",
        "***",
        "<START>",
        "#### Four",
        "####### seven",
        "\u{2003}wide",
        "\tTab",
        "text: with colon",
        "- **Tone:** ~~~",
        "**User:** <!-- x",
        "### If C #",
        "- If D #: e",
        "  ## indented",
        "- Tone: a\u{a0}",
    ]);
    prop_oneof![
        6 => special.prop_map(str::to_owned),
        1 => "[ -~]{0,20}".prop_map(|text| defuse(&text).into_owned()),
        1 => any::<String>().prop_map(|text| defuse(&text.replace(['\r', '\n'], " ")).into_owned()),
    ]
}

fn settings() -> impl Strategy<Value = String> {
    let name = defused_name();
    let model = prop::option::of("[a-z][a-z0-9]{0,9}");
    let wake = prop::collection::vec(defused_name(), 0..3);
    let blend = prop::option::of((
        0.0..=1.0f64,
        prop_oneof![
            prop::sample::select(vec!["warmth", "trust", "playfulness", "tension", "irritation", "concern"])
                .prop_map(str::to_owned),
            "[a-z_]{1,9}",
        ],
    ));
    let kind = prop::sample::select(vec!["assistant", "user"]);
    (name, kind, model, wake, blend, prop::option::of(0u64..=50), prop::option::of(0.0..=1.0f64)).prop_map(
        |(name, kind, model, wake, blend, top_k, rate)| {
            let quote = |text: &str| serde_json::Value::from(text).to_string();
            let mut yaml = format!("id: some-id\nname: {}\nkind: {kind}\n", quote(&name));
            yaml.extend(model.map(|model| format!("model: {model}\n")));
            let wake: Vec<_> = wake.iter().map(|name| quote(name)).collect();
            yaml.push_str(&format!("wake_names: [{}]\n", wake.join(", ")));
            yaml.extend(blend.map(|(threshold, axis)| {
                format!(
                    "style_blend: {{persona: {{axis: {axis}, primary: a, secondary: b, threshold: {threshold}}}}}\n"
                )
            }));
            if top_k.is_some() || rate.is_some() {
                yaml.push_str("memory:\n");
                yaml.extend(top_k.map(|top_k| format!("  top_k: {top_k}\n")));
                yaml.extend(rate.map(|rate| format!("  emotion_decay_rate: {rate}\n")));
            }
            yaml
        },
    )
}

fn defused_name() -> impl Strategy<Value = String> {
    prop_oneof!["[A-Za-z]{1,9}", "\\PC{1,9}", "[-'\"#:{}&*!|> A-Za-z]{1,12}"]
        .prop_map(|text| defuse(&text).into_owned())
}

/// Checks that a parsed persona reads back equal from its normal form, and that the normal form is stable.
fn round_trips(text: &str) -> Result<bool, TestCaseError> {
    let Ok(persona) = parse(text) else { return Ok(false) };
    let normal = persona.to_markdown();
    let again = parse(&normal);
    prop_assert_eq!(again.as_ref(), Ok(&persona), "normal form:\n{}", normal);
    prop_assert_eq!(persona.to_markdown(), normal);
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn sections_of_any_lines_round_trip(lines in prop::collection::vec(line(), 0..12)) {
        round_trips(&file("", &lines.join("\n")))?;
    }

    #[test]
    fn sections_with_their_lines_round_trip(
        heading in prop::sample::select(vec!["Prime Directive", "Psychological Profile", "Task Behaviours", "Example interaction", "Lore"]),
        lines in prop::collection::vec(line(), 0..6),
    ) {
        round_trips(&file("", &format!("## {heading}\n{}", lines.join("\n"))))?;
    }

    #[test]
    fn settings_and_examples_round_trip(settings in settings(), name in defused_name(), lines in prop::collection::vec(line(), 0..4)) {
        let lines = lines.join("\n");
        let head = format!("---\n{settings}---\n## Intent\na\n## Core Identity\nb\n");
        let turns = format!("User: a\n{name}: b\nPersona: c\n{lines}");
        round_trips(&format!("{head}## Example interaction\n{turns}"))?;
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check_bytes(&bytes);
        let mut yaml = b"---\n".to_vec();
        yaml.extend(&bytes);
        yaml.extend(b"\n---\n## Intent\n");
        check_bytes(&yaml);
    }

    #[test]
    fn any_settings_are_read_without_panic(yaml in "[-:\\[\\]{}&*!|>'\"#%@,?~a-c0 \n]{0,60}") {
        check_bytes(format!("---\n{yaml}\n---\n").as_bytes());
    }

    #[test]
    fn a_text_set_by_hand_cannot_become_structure(lines in prop::collection::vec(line(), 0..8)) {
        let mut persona = parse(&file("", "## Quirks\n\nHums.\n")).expect("valid");
        persona.core_identity = format!("I am.\n{}", lines.join("\n"));
        let read = parse(&persona.to_markdown());
        prop_assert!(read.is_ok(), "{read:?}");
        let read = read.expect("checked above");
        prop_assert_eq!((&read.intent, &read.quirks, &read.other), (&persona.intent, &persona.quirks, &persona.other));
    }
}

#[test]
fn names_that_mean_something_to_a_file_or_a_model_round_trip() {
    for (name, wake) in [("Brief", "Inst"), ("Quirks", "think"), ("Intent", "THINK")] {
        let settings = format!("---\nid: some-id\nname: {name}\nwake_names: [\"{wake}\"]\n---\n");
        let text = format!("{settings}# {name}\n## Intent\na\n## Core Identity\nb\n");
        assert!(parse(&text).is_ok_and(|persona| persona.wake_names == [wake]), "{text}");
        assert!(round_trips(&text).expect("it reads back"), "{text}");
    }
    // The title of a section that is not the persona's name is still a misplaced section.
    assert!(parse("---\nid: some-id\nname: Ann\n---\n# Brief\nx\n## Intent\na\n## Core Identity\nb\n").is_err());
}

#[test]
fn the_generators_make_files_that_parse() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut parsed = 0;
    for _ in 0..400 {
        let settings = settings().new_tree(&mut runner).expect("generates").current();
        let lines = prop::collection::vec(line(), 0..4).new_tree(&mut runner).expect("generates").current();
        let head = format!("---\n{settings}---\n## Intent\na\n## Core Identity\nb\n");
        parsed += usize::from(parse(&format!("{head}{}", lines.join("\n"))).is_ok());
    }
    assert!(parsed >= 40, "only {parsed} of 400 files parsed, so the properties would say little");
}
