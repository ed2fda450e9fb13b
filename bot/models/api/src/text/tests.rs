use proptest::prelude::*;

use super::*;

/// Runs pieces through a [`ReplyText`] and writes the events as one line: `[` and `]` around thinking, `|` after each
/// piece, `^` where content is retracted, `!` for the end of the reply.
fn play(pieces: &[&[u8]], stop: &[&str], opening: Opening) -> String {
    run(pieces, ReplyText::new(stop.iter().map(|s| (*s).to_owned()).collect(), opening), |text| format!("{text}|"))
}

fn run(pieces: &[&[u8]], mut text: ReplyText, show: impl Fn(&str) -> String) -> String {
    let mut events = Vec::new();
    let stopped = pieces.iter().any(|piece| text.push(piece, &mut events));
    if !stopped {
        text.finish(false, &mut events);
    }
    let mut line = String::new();
    for event in events {
        match event {
            Event::ThinkingStart => line.push('['),
            Event::ThinkingEnd => line.push(']'),
            Event::Thinking(piece) | Event::Content(piece) => line.push_str(&show(&piece)),
            Event::Retracted => line.push('^'),
            Event::Done(_) => unreachable!("the text never ends a reply"),
        }
    }
    line + if stopped { "!" } else { "" }
}

#[track_caller]
fn check(pieces: &[&str], stop: &[&str], opening: Opening, expected: &str) {
    let pieces: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
    assert_eq!(play(&pieces, stop, opening), expected);
}

/// Returns the content and the thinking, however the text is cut.
fn outcome(pieces: &[&[u8]], stop: &[&str], opening: Opening) -> (String, String) {
    let mut text = ReplyText::new(stop.iter().map(|s| (*s).to_owned()).collect(), opening);
    let mut events = Vec::new();
    if !pieces.iter().any(|piece| text.push(piece, &mut events)) {
        text.finish(false, &mut events);
    }
    let (mut content, mut thinking) = (String::new(), String::new());
    for event in events {
        match event {
            Event::Content(piece) => content.push_str(&piece),
            Event::Thinking(piece) => thinking.push_str(&piece),
            // Retracted content is thinking; it came before any that was marked.
            Event::Retracted => thinking.push_str(&std::mem::take(&mut content)),
            Event::ThinkingStart | Event::ThinkingEnd | Event::Done(_) => {}
        }
    }
    (content, thinking)
}

/// Checks the content of a reply, whole and cut before each byte, with and without waiting.
#[track_caller]
fn says(text: &str, content: &str) {
    for opening in [Opening::Reply, Opening::Either] {
        assert_eq!(outcome(&[text.as_bytes()], &[], opening).0, content, "{text:?} {opening:?}");
        for cut in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(cut);
            assert_eq!(outcome(&[head, tail], &[], opening).0, content, "{text:?} at {cut} {opening:?}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(outcome(&bytes, &[], opening).0, content, "{text:?} byte by byte {opening:?}");
    }
}

#[test]
fn stop_strings_are_held_back_and_cut() {
    let stop = &["\nUser:"][..];
    check(&["Hello", " there"], stop, Opening::Reply, "Hello| there|");
    check(&["Hi\n", "Us", "er: no"], stop, Opening::Reply, "Hi|!");
    check(&["Hi\n", "Us", "ual"], stop, Opening::Reply, "Hi|\nUsual|");
    check(&["ab", "c"], &["abc", "b"], Opening::Reply, "!");
    check(&["a", "a", "b"], &["aab"], Opening::Reply, "!");
    check(&["end\n"], stop, Opening::Reply, "end|\n|");
}

#[test]
fn thinking_is_separated_from_content() {
    check(&["<thi", "nk>\nhm", "m</th", "ink>\n\nYes"], &[], Opening::Reply, "[\nhm|m|]Yes|");
    check(&["<think>a</think>b"], &["b"], Opening::Reply, "[a|]!");
    check(&["so", "</think>", "ok"], &[], Opening::Thinking, "[so|]ok|");
    check(&["never ends"], &[], Opening::Thinking, "[never ends|]");
    check(&["<thi"], &[], Opening::Reply, "<thi|");
    check(&["stop in thought b</think>x"], &["b"], Opening::Thinking, "[stop in thought b|]x|");
    check(&["Wait. <think>hm</think> Yes."], &[], Opening::Reply, "Wait. |[hm|]Yes.|");
    check(
        &["They write `</think>` there.</think>Yes."],
        &[],
        Opening::Thinking,
        "[They write `</think>` there.|]Yes.|",
    );
}

#[test]
fn content_before_a_lone_end_of_thinking_is_thinking() {
    check(&["A question about oil.", "</think>", "\n\nOlive."], &[], Opening::Reply, "A question about oil.|^Olive.|");
    check(
        &["A question about oil.", "</think>", "\n\nOlive."],
        &[],
        Opening::Either,
        "[A question about oil.|]Olive.|",
    );
    check(&["No thought."], &[], Opening::Either, "No thought.|");
    let mut cut = ReplyText::new(Vec::new(), Opening::Either);
    let mut events = Vec::new();
    cut.push(b"A long thou", &mut events);
    cut.finish(true, &mut events);
    assert!(matches!(events.as_slice(), [Event::ThinkingStart, Event::Thinking(_), Event::ThinkingEnd]));
    says("The colour?\n</thinking>\nBlue.", "Blue.");
    says("Sum it up.[/THINK]Four.", "Four.");
    says("</think>Four.", "Four.");
    // A further end belongs to nothing, unless a reply follows it.
    says("<think>a</think>Plum.</think>", "Plum.");
    says("<think>a</think>Plum.</think><|im_end|>", "Plum.");
    says("<think>a <think>b</think> c</think>Plum.", "Plum.");
}

#[test]
fn marks_inside_code_are_text() {
    for text in [
        "Close it with `</think>` and go on.",
        "```html\n<think>\n</think>\n<|im_end|>\n```\nThat is all.",
        "ChatML ends a turn with ``<|im_end|>``.",
        "~~~\n[THINK]\n~~~",
        "A <b>bold</b> word, x < y, and [a list].",
        "<s>old</s> new",
        "f <| g |> h",
    ] {
        says(text, text);
    }
    says("A ` tick\nand a thought</think>Yes.", "Yes.");
}

#[test]
fn special_tokens_are_removed_and_the_end_of_a_turn_ends_the_reply() {
    says("A plum.<|im_end|>", "A plum.");
    says("A plum.<|im_end|>\n<|im_start|>user\nAnd a pear?", "A plum.");
    says("<|im_start|>assistant\nA plum.<|eot_id|>", "A plum.");
    says("<|start_header_id|>assistant<|end_header_id|>\n\nA plum.<|start_header_id|>user", "A plum.");
    says("<start_of_turn>model\nA plum.<end_of_turn>\n", "A plum.");
    says("<|assistant|>\nAssistant chefs like plums.</s>", "Assistant chefs like plums.");
    says("<|start_of_role|>assistant<|end_of_role|>A plum.<|end_of_text|>", "A plum.");
    says("A plum.</s> [INST] More", "A plum.");
    says("A plum.<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>", "A plum.");
    says("A<|fim_pad|> plum<pad>.", "A plum.");
}

#[test]
fn channels_are_told_apart() {
    says(
        "<|channel|>analysis<|message|>They ask for fruit.<|end|><|start|>assistant<|channel|>final<|message|>A plum.<|return|>",
        "A plum.",
    );
    says("<|start|>assistant<|channel|>final<|message|>A plum.", "A plum.");
    says("<|channel|>commentary to=functions.x <|constrain|>json<|message|>{}<|call|>", "");
    says("<|channel|>analysis<|message|>Fruit.<|channel|>final<|message|>A plum.", "A plum.");
    says("<|channel|>analysis\nFruit.<|end|><|channel|>final\nA plum.", "A plum.");
    says("<|channel>thought\nFruit.<channel|>A plum.<turn|>", "A plum.");
}

#[test]
fn json_keeps_its_text() {
    let json = r#"{"text":"she wrote </think> and <|im_end|>"}"#;
    let of =
        |text: &str| run(&[text.as_bytes()], ReplyText::new(Vec::new(), Opening::Reply).of_json(true), str::to_owned);
    assert_eq!(of(json), json);
    assert_eq!(of(&format!("<think>hm</think>\n{json}")), format!("[hm]{json}"));
    assert_eq!(of(&format!("hm</think>\n{json}")), format!("hm^{json}"));
    assert_eq!(of("[1, 2]"), "[1, 2]");
}

#[test]
fn only_whole_characters_are_emitted() {
    let (head, tail) = "🦊".as_bytes().split_at(2);
    assert_eq!(play(&[b"a", head, tail, b"b"], &[], Opening::Reply), "a|🦊|b|");
    assert_eq!(play(&[&[0xff], b"b"], &[], Opening::Reply), "\u{fffd}|b|");
    assert_eq!(play(&[head], &[], Opening::Reply), "\u{fffd}|");
}

/// Texts made of marks, beginnings of marks, code and words.
fn texts() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        prop::sample::select(
            &[
                "<think>",
                "</think>",
                "<thinking>",
                "</thinking>",
                "[THINK]",
                "[/THINK]",
                "<thought>",
                "</thought>",
                "<|channel|>",
                "analysis",
                "final",
                "<|message|>",
                "<|end|>",
                "<|start|>",
                "assistant",
                "user",
                "<|im_start|>",
                "<|im_end|>",
                "<|eot_id|>",
                "</s>",
                "<s>",
                "[INST]",
                "<|x|>",
                "<|",
                "|>",
                "<",
                "`",
                "``",
                "```",
                "\n",
                " ",
                "STOP",
                "ST",
                "🦊",
                "word",
                "ü",
            ][..]
        )
        .prop_map(str::to_owned),
        "\\PC{0,4}",
    ];
    prop::collection::vec(parts, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn cutting_the_bytes_anywhere_does_not_change_the_text(
        text in texts(),
        cuts in prop::collection::vec(0_usize..160, 0..8),
        opening in prop::sample::select(&[Opening::Reply, Opening::Thinking, Opening::Either][..]),
    ) {
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let whole = outcome(&[bytes], &["STOP"], opening);
        prop_assert_eq!(&outcome(&pieces, &["STOP"], opening), &whole);
        prop_assert_eq!(&outcome(&single, &["STOP"], opening), &whole);
    }

    #[test]
    fn a_text_without_marks_is_not_changed(text in "[^<\\[\n `]{0,40}") {
        prop_assert_eq!(outcome(&[text.as_bytes()], &[], Opening::Reply).0, text);
    }
}
