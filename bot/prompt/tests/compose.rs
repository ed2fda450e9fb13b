//! Tests of the text of a prompt, and of its invariants.

use azera_model_api::{ChatMessage, Role};
use azera_personas::{Persona, built_in};
use azera_prompt::{
    Abilities, Budget, Error, Form, HISTORY_STEP, Line, MemoryOrigin, PromptParts, RecalledMemory, compose, form_for,
    history_cut, prompt_headings,
};
use azera_types::TimeZone;
use proptest::prelude::*;

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn azera() -> Persona {
    built_in("azera").expect("is built in")
}

fn line(depth: u64, speaker: Option<&str>, text: &str) -> Line {
    Line { depth, speaker: speaker.map(str::to_owned), text: text.to_owned() }
}

fn memory(speaker: Option<&str>, text: &str) -> RecalledMemory {
    let at = "2026-05-09T10:00:00Z".parse().expect("a time");
    RecalledMemory::new(MemoryOrigin::Said, speaker.map(str::to_owned), text.to_owned(), at)
}

fn parts<'a>(
    persona: &'a Persona,
    group: bool,
    history: &'a [Line],
    recalled: &'a [RecalledMemory],
    message: &'a Line,
) -> PromptParts<'a> {
    PromptParts {
        persona,
        user_persona: None,
        lore: &[],
        group,
        style: &[],
        plainly: false,
        aloud: false,
        abilities: Abilities::default(),
        carried: &[],
        notes: None,
        history,
        recalled,
        zone: TimeZone::UTC,
        now: None,
        message,
    }
}

fn shown(messages: &[ChatMessage]) -> String {
    messages.iter().map(|message| format!("[{}] {}\n", message.role.as_str(), message.content)).collect()
}

const ROOMY: Budget = Budget { context_tokens: 4_096, reply_tokens: 256 };

#[test]
fn only_a_tiny_model_begins_with_what_it_cannot_do() {
    let persona = azera();
    let beginning = |model: &str, parameters: Option<u64>, said: &str| {
        let message = line(0, Some("Ann"), said);
        compose(&form_for(model, parameters), &parts(&persona, false, &[], &[], &message), ROOMY, &words)
            .unwrap()
            .beginning
    };
    assert_eq!(beginning("smollm2", None, "Tell me a story about a fox."), Some("I can't tell stories"));
    assert_eq!(beginning("smollm2", None, "My cat is a fox."), None);
    assert_eq!(beginning("qwen2", Some(500_000_000), "Tell me a story about a fox."), None);
    assert_eq!(beginning("qwen2", Some(1_500_000_000), "Tell me a story about a fox."), None);
}

#[test]
fn only_the_last_turn_says_that_a_reply_is_heard_and_only_to_models_that_follow_it() {
    let persona = azera();
    let history = [line(0, Some("Ann"), "Hello!"), line(1, None, "Hello, Ann.")];
    let message = line(2, Some("Ann"), "What should I pack for a day on the islands?");
    let written = parts(&persona, false, &history, &[], &message);
    let heard = PromptParts { aloud: true, ..written.clone() };
    for (model, parameters, follows) in [
        ("smollm2", None, false),
        ("qwen2", Some(500_000_000), false),
        ("qwen2", Some(1_500_000_000), true),
        ("mistral", Some(24_000_000_000), true),
    ] {
        let form = form_for(model, parameters);
        let [written, heard] = [&written, &heard].map(|parts| compose(&form, parts, ROOMY, &words).unwrap().messages);
        let ((last, before), (last_heard, before_heard)) = (written.split_last().unwrap(), heard.split_last().unwrap());
        assert_eq!(before, before_heard, "{model}: what comes before is evaluated once for both");
        let line = "[For this reply: This is heard, not read: talk in a few short plain sentences, without lists, headings, \
                    tables or links.]\n\n";
        let expected = if follows { format!("{line}{}", last.content) } else { last.content.clone() };
        assert_eq!(last_heard.content, expected, "{model}");
        // To somebody in danger the persona writes.
        let plainly = compose(&form, &PromptParts { plainly: true, ..heard_parts(&persona, &message) }, ROOMY, &words);
        assert!(!shown(&plainly.unwrap().messages).contains("This is heard"), "{model}");
    }
}

fn heard_parts<'a>(persona: &'a Persona, message: &'a Line) -> PromptParts<'a> {
    PromptParts { aloud: true, ..parts(persona, false, &[], &[], message) }
}

#[test]
fn a_model_that_speaks_only_english_says_so_once_in_the_persons_language() {
    let persona = azera();
    let only_english = |model: &str, parameters: Option<u64>, history: &[Line], said: &str| {
        let message = line(9, Some("Ann"), said);
        compose(&form_for(model, parameters), &parts(&persona, false, history, &[], &message), ROOMY, &words)
            .unwrap()
            .only_english
    };
    let check = |history: &[Line], said: &str, want: Option<&str>| {
        let reply = only_english("smollm2", Some(135_000_000), history, said);
        assert_eq!(reply.map(|reply| reply.split(['.', '。', '!']).next().unwrap()), want, "{said}");
    };
    let german = "Ich bin gerade erst nach Hause gekommen und ziemlich müde.";
    check(&[], german, Some("Tut mir leid, ich spreche nur Englisch"));
    check(&[], "Je marche dans la forêt et j'entends un bruit derrière moi.", Some("Pardon, je ne parle qu'anglais"));
    check(
        &[],
        "Mi bisabuelo murió en la guerra y hoy por fin encontramos su nombre en el archivo. Mi abuela lloró un rato y luego nos hizo rosquillas.",
        Some("Lo siento, solo hablo inglés"),
    );
    check(&[], "今日は何を食べましょうか。", Some("ごめんなさい、英語しか話せません"));
    check(&[], "I came home late and I am rather tired.", None);
    check(&[], "How do I say that I am tired in German?", None);
    check(&[], "Please translate: 'Ich bin gerade erst nach Hause gekommen.'", None);
    check(&[], "Wie sage ich das auf Englisch, dass ich müde nach Hause gekommen bin?", None);
    let told = only_english("smollm2", None, &[], german).unwrap();
    let history = [
        line(0, Some("Ann"), german),
        line(1, None, told),
        line(2, Some("Ann"), "Never mind, how are you?"),
        line(3, None, "I am well. How was your day?"),
    ];
    check(&history, "Wie lange soll ich am Tag üben, und womit fange ich an?", None);
    check(
        &history[2..],
        "Wie lange soll ich am Tag üben, und womit fange ich an?",
        Some(told.split('.').next().unwrap()),
    );
    for (model, parameters) in
        [("generic", Some(135_000_000)), ("qwen2", Some(500_000_000)), ("smollm2", Some(1_700_000_000))]
    {
        assert_eq!(only_english(model, parameters, &[], german), None, "{model}");
    }
}

#[test]
fn a_small_models_prompt_has_this_form() {
    let persona = azera();
    let history = [line(0, Some("Ann"), "hello"), line(1, None, "Hello, Ann.")];
    let recalled = [memory(Some("Ann"), "my boat\nis called Petrichor"), memory(None, "Boats are fun.")];
    let message = line(2, Some("Ann"), "What is my boat called?");
    let prompt =
        compose(&form_for("smollm2", None), &parts(&persona, false, &history, &recalled, &message), ROOMY, &words)
            .unwrap();
    assert_eq!((prompt.shared_messages, prompt.history_lines, prompt.recalled_lines), (5, 2, 2));
    insta::assert_snapshot!(shown(&prompt.messages[prompt.shared_messages..]), @r#"
    [user] hello
    [assistant] Hello, Ann.
    [user] What Ann told you before:
    - You said on 9 May 2026: "Boats are fun."
    - Ann said on 9 May 2026: "my boat is called Petrichor"

    What is my boat called?
    "#);
}

#[test]
fn a_small_model_should_not_say_back_the_persona_and_the_message_but_may_say_what_it_recalls() {
    let persona = azera();
    let recalled = [memory(Some("Ann"), "my boat is called Petrichor")];
    let message = line(2, Some("Ann"), "What is my boat called?");
    let parts = parts(&persona, false, &[], &recalled, &message);
    let unsaid = |parameters| {
        let form = form_for("qwen2", Some(parameters));
        compose(&form, &parts, ROOMY, &words).unwrap().unsaid
    };
    let small = unsaid(500_000_000);
    assert_eq!((small.len(), small[1].as_str()), (2, "What is my boat called?"));
    assert!(small[0].contains("Azera") && !small[0].contains("{{char}}"), "{}", small[0]);
    assert_eq!(unsaid(1_500_000_000), small);
    assert_eq!(unsaid(8_000_000_000), Vec::<String>::new());
    let text = line(2, Some("Ann"), "Correct this: \"their going to the harbour\"");
    let parts = PromptParts { message: &text, ..parts };
    let with_text = compose(&form_for("qwen2", Some(1_500_000_000)), &parts, ROOMY, &words).unwrap().unsaid;
    assert_eq!(with_text, small[..1], "a text to work on may be said again");
}

#[test]
fn days_of_recalled_lines_are_those_of_the_zone() {
    let persona = azera();
    let message = line(0, Some("Ann"), "when was it?");
    let recalled =
        [RecalledMemory { at: "2026-05-09T23:10:00Z".parse().unwrap(), ..memory(Some("Ann"), "it is mended") }];
    let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    let parts = PromptParts { zone, ..parts(&persona, false, &[], &recalled, &message) };
    let prompt = compose(&form_for("smollm2", None), &parts, ROOMY, &words).unwrap();
    let last = &prompt.messages.last().unwrap().content;
    assert!(last.contains("Ann said on 10 May 2026"), "{last}");
}

#[test]
fn lines_in_a_group_carry_the_speakers_name() {
    let persona = azera();
    let history = [line(0, Some("Ann"), "I bake"), line(1, Some("Bob"), "I fish")];
    let message = line(2, Some("Bob"), "what does Ann do?");
    let prompt =
        compose(&form_for("smollm2", None), &parts(&persona, true, &history, &[], &message), ROOMY, &words).unwrap();
    insta::assert_snapshot!(shown(&prompt.messages[prompt.shared_messages..]), @r"
    [user] Ann: I bake
    [user] Bob: I fish
    [user] Bob: what does Ann do?
    ");
}

#[test]
fn carried_writings_precede_the_conversation_and_dreams_are_called_dreams() {
    let persona = azera();
    let wrote = |came, text: &str| RecalledMemory { came, ..memory(None, text) };
    let carried =
        [wrote(MemoryOrigin::Journal, "A quiet day."), wrote(MemoryOrigin::Diary, "Ann told me about her boat.")];
    let recalled = [wrote(MemoryOrigin::Dreamt, "The boat flew over the roofs.")];
    let history = [line(0, Some("Ann"), "hello")];
    let message = line(1, Some("Ann"), "what did you dream?");
    let notes = Some("About Ann: she has a boat.");
    let parts = PromptParts { carried: &carried, notes, ..parts(&persona, false, &history, &recalled, &message) };
    let prompt = compose(&form_for("smollm2", None), &parts, ROOMY, &words).unwrap();
    assert_eq!((prompt.carried_lines, prompt.shows_notes), (2, true));
    insta::assert_snapshot!(shown(&prompt.messages[prompt.shared_messages..]), @r#"
    [user] You wrote in your journal on 9 May 2026: "A quiet day."
    You wrote in your diary on 9 May 2026: "Ann told me about her boat."
    Your notes:
    About Ann: she has a boat.
    [user] hello
    [user] What Ann told you before:
    - You dreamt on 9 May 2026: "The boat flew over the roofs."

    what did you dream?
    "#);
    let tight = Form { carried_tokens: 14, ..form_for("smollm2", None) };
    let prompt = compose(&tight, &parts, ROOMY, &words).unwrap();
    assert_eq!((prompt.carried_lines, prompt.shows_notes), (1, false), "whole or not at all");
}

#[test]
fn the_default_role_adds_nothing_and_another_is_named_as_the_persons() {
    let persona = azera();
    let message = line(0, Some("Ann"), "Hello!");
    let protag = built_in("protag").expect("is built in");
    let form = form_for("qwen3", Some(8_000_000_000));
    let last = |role: &Persona| {
        let parts = PromptParts { user_persona: Some(role), ..parts(&persona, false, &[], &[], &message) };
        let prompt = compose(&form, &parts, ROOMY, &words).unwrap();
        prompt.messages.last().map(|message| message.content.clone()).unwrap_or_default()
    };
    assert_eq!(last(&protag), "Hello!");
    let mut queen = protag;
    "Mab".clone_into(&mut queen.name);
    "A queen of few words.".clone_into(&mut queen.brief);
    assert_eq!(last(&queen), "[For this reply: Ann plays Mab: A queen of few words.]\n\nHello!");
}

#[test]
fn a_model_that_can_talk_is_told_who_speaks() {
    let persona = azera();
    let message = line(0, Some("Ann"), "Hello!");
    let system = |form: &Form| {
        let prompt = compose(form, &parts(&persona, false, &[], &[], &message), ROOMY, &words).unwrap();
        prompt.messages.first().map(|message| message.content.clone()).unwrap_or_default()
    };
    let told = system(&form_for("qwen2", Some(1_543_714_304)));
    assert!(told.starts_with(&persona.brief) && told.starts_with("Your name is Azera. You are a calm"), "{told}");
    assert!(!told.contains("You are Azera"), "the name is said once: {told}");
    assert!(told.contains("Talk as Azera with the person") && !told.contains("{{"), "{told}");
    assert_eq!(system(&form_for("smollm2", None)), persona.brief, "its LoRA was trained on this form");
}

#[test]
fn the_day_is_named_to_whoever_asks_for_it_and_can_use_it() {
    let persona = azera();
    let now = "2026-05-09T10:05:00Z".parse().ok();
    let last = |family: &str, parameters: Option<u64>, text: &str| {
        let message = line(0, Some("Ann"), text);
        let parts = PromptParts { now, ..parts(&persona, false, &[], &[], &message) };
        let prompt = compose(&form_for(family, parameters), &parts, ROOMY, &words).unwrap();
        prompt.messages.last().map(|message| message.content.clone()).unwrap_or_default()
    };
    let medium = Some(1_543_714_304);
    assert_eq!(
        last("qwen2", medium, "What day is it?"),
        "[For this reply: It is Saturday, 9 May 2026, 10:05.]\n\nWhat day is it?"
    );
    assert_eq!(last("qwen2", medium, "I had a bad day."), "I had a bad day.");
    assert_eq!(last("smollm2", None, "What day is it?"), "What day is it?", "its LoRA knows no such line");
}

#[test]
fn every_heading_of_a_prompt_is_among_those_that_end_a_reply() {
    let persona = azera();
    let message = line(0, Some("Ann"), "What day is my boat's birthday?");
    let recalled = [memory(Some("Ann"), "my boat is called Petrichor")];
    let headings = prompt_headings(Some("Ann"));
    for group in [false, true] {
        let parts = PromptParts {
            now: "2026-05-09T10:05:00Z".parse().ok(),
            ..parts(&persona, group, &[], &recalled, &message)
        };
        let prompt = compose(&form_for("qwen2", Some(1_543_714_304)), &parts, ROOMY, &words).unwrap();
        for turn in prompt.messages.iter().filter(|turn| turn.role == Role::User) {
            for heading in turn.content.lines().filter(|line| line.ends_with("before:") || line.starts_with('[')) {
                assert!(headings.iter().any(|known| heading.starts_with(known)), "{heading}");
            }
        }
    }
}

#[test]
fn turns_alternate_for_templates_that_ask_for_it() {
    let persona = azera();
    let history = [line(0, None, "Good morning."), line(1, Some("Ann"), "I bake"), line(2, Some("Bob"), "I fish")];
    let message = line(3, Some("Bob"), "what does Ann do?");
    let form = form_for("gemma3", Some(3_880_099_328));
    let prompt = compose(&form, &parts(&persona, true, &history, &[], &message), ROOMY, &words).unwrap();
    assert_eq!(
        shown(&prompt.messages[prompt.shared_messages..]),
        "[user] (...)\n[assistant] Good morning.\n[user] Ann: I bake\n\nBob: I fish\n\nBob: what does Ann do?\n"
    );
}

#[test]
fn a_persona_without_room_is_rejected() {
    let persona = azera();
    let message = line(0, Some("Ann"), "hello");
    let tight = Budget { context_tokens: 200, reply_tokens: 100 };
    let refused =
        compose(&form_for("other", Some(8_000_000_000)), &parts(&persona, false, &[], &[], &message), tight, &words);
    assert!(matches!(refused, Err(Error::PersonaTooLong { .. })), "{refused:?}");
}

fn forms() -> impl Strategy<Value = Form> {
    prop_oneof![Just(form_for("smollm2", None)), Just(form_for("other", Some(8_000_000_000)))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// For any input, the prompt stays within its budget, ends with the person's turn, and shows the newest lines.
    #[test]
    fn a_prompt_keeps_to_its_budget(
        form in forms(),
        group in any::<bool>(),
        lengths in prop::collection::vec(0_usize..200, 0..60),
        recalled in prop::collection::vec(0_usize..80, 0..25),
        carried in prop::collection::vec(0_usize..80, 0..4),
        question in 1_usize..3_000,
        context in 1_200_usize..6_000,
    ) {
        let persona = azera();
        let text = |words: usize| "word ".repeat(words);
        let history: Vec<Line> = (0_u64..)
            .zip(&lengths)
            .map(|(depth, words)| line(depth, (depth % 2 == 0).then_some("Ann"), &text(*words)))
            .collect();
        let recalled: Vec<RecalledMemory> = recalled.iter().map(|words| memory(Some("Ann"), &text(*words))).collect();
        let carried: Vec<RecalledMemory> = carried.iter().map(|words| memory(None, &text(*words))).collect();
        let notes = text(20);
        let message = line(history.len() as u64, Some("Ann"), &text(question));
        let budget = Budget { context_tokens: context, reply_tokens: 100 };
        let parts = PromptParts {
            carried: &carried,
            notes: (!carried.is_empty()).then_some(notes.as_str()),
            ..parts(&persona, group, &history, &recalled, &message)
        };
        match compose(&form, &parts, budget, &words) {
            Err(Error::PersonaTooLong { .. }) => {}
            Ok(prompt) => {
                let used: usize = prompt.messages.iter().map(|message| words(&message.content)).sum();
                prop_assert!(used <= context - 100, "{used} of {}", context - 100);
                prop_assert_eq!(prompt.messages.last().map(|message| message.role), Some(Role::User));
                let cut = history_cut(&form, &parts, budget, &words).unwrap();
                prop_assert_eq!(cut + prompt.history_lines, history.len());
                if cut > 0 && prompt.history_lines > HISTORY_STEP as usize {
                    prop_assert_eq!(history[cut].depth % HISTORY_STEP, 0);
                }
            }
        }
    }

    /// The shared messages depend only on the persona and the form.
    #[test]
    fn nothing_private_is_shared(form in forms(), name in "[A-Z][a-z]{2,8}", text in ".{0,200}", group in any::<bool>()) {
        let persona = azera();
        let message = line(1, Some(&name), &text);
        let history = [line(0, Some(&name), &text)];
        let recalled = [memory(Some(&name), &text)];
        let one = compose(&form, &parts(&persona, group, &history, &recalled, &message), ROOMY, &words).unwrap();
        let plain = line(0, Some("Somebody"), "hello");
        let other = compose(&form, &parts(&persona, false, &[], &[], &plain), ROOMY, &words).unwrap();
        prop_assert_eq!(one.shared_messages, other.shared_messages);
        prop_assert_eq!(&one.messages[..one.shared_messages], &other.messages[..other.shared_messages]);
    }
}

#[test]
fn a_model_of_a_billion_weights_is_reminded_of_the_rule_that_a_message_is_about() {
    let (persona, message) = (azera(), line(0, Some("Ann"), "Can you wake me up at six?"));
    let last = |family: &str, parameters: u64| {
        let parts = parts(&persona, false, &[], &[], &message);
        let prompt = compose(&form_for(family, Some(parameters)), &parts, ROOMY, &words).expect("there is room");
        prompt.messages.last().expect("the message").content.clone()
    };
    assert_eq!(
        last("qwen2", 1_543_714_304),
        "[For this reply: You cannot do that: you can only talk. Say so.]\n\nCan you wake me up at six?"
    );
    for (family, parameters) in [("smollm2", 134_515_008), ("qwen3", 8_000_000_000)] {
        assert_eq!(last(family, parameters), "Can you wake me up at six?");
    }
}
