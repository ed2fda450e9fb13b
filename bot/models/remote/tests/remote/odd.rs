//! Tests of servers with habits of their own: none of them costs a reply or shows what is no part of it.

use azera_model_api::{ChatRequest, FinishReason, Grammar, Usage};
use azera_model_remote::{Api, RemoteChat};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::chat::{OLLAMA, OPENAI, ask, fake_and_model, request};
use crate::fake::{Answer, FakeServer, NDJSON, SSE, Then};

fn content(text: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// Writes events as a stream.
fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>() + "data: [DONE]\n\n"
}

async fn says(fake: &FakeServer, model: &RemoteChat, answer: Answer) -> (String, Usage) {
    fake.on(OPENAI, [answer]);
    let (said, usage) = ask(model, request("hello")).await;
    let usage = usage.unwrap_or_else(|error| panic!("{said}: {error}"));
    (said, usage)
}

#[tokio::test]
async fn usage_of_any_form_costs_no_reply() {
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    for (usage, counts, estimated) in [
        (json!(null), (2, 3), true),
        (json!({"total_tokens": 29}), (2, 3), true),
        (json!({"prompt_tokens": null, "completion_tokens": 4}), (2, 4), true),
        (json!({"prompt_tokens": 11.0, "completion_tokens": "4"}), (11, 4), false),
        (json!({"input_tokens": 11, "output_tokens": 4}), (11, 4), false),
        (json!({"prompt_tokens": -3, "completion_tokens": 1e40}), (2, 3), true),
        (json!({"prompt_tokens": 11, "prompt_tokens_details": "none"}), (11, 3), true),
        (json!("unknown"), (2, 3), true),
        (json!([1, 2]), (2, 3), true),
    ] {
        let last = json!({"choices": [], "usage": usage, "timings": {"cache_n": null}});
        let (said, used) =
            says(&fake, &model, Answer::stream(SSE, &stream(&[content("Blue slate."), finish("stop"), last]))).await;
        assert_eq!(said, "Blue slate.", "{usage}");
        // "hello" has two estimated tokens and "Blue slate." has four; a missing count is estimated.
        let expected = (counts.0, if counts.1 == 3 { 4 } else { counts.1 });
        assert_eq!((used.prompt_tokens, used.completion_tokens), expected, "{usage}");
        assert_eq!(used.estimated, estimated, "{usage}");
    }
    let (fake, model) = fake_and_model(Api::Ollama).await;
    let lines =
        "{\"message\":{\"content\":\"Slate.\"}}\n{\"done\":true,\"eval_count\":\"3\",\"prompt_eval_count\":null}\n";
    fake.on(OLLAMA, [Answer::stream(NDJSON, lines)]);
    let (said, usage) = ask(&model, request("hello")).await;
    assert_eq!((said.as_str(), usage.unwrap().completion_tokens), ("Slate.", 3));
}

#[tokio::test]
async fn a_whole_answer_instead_of_a_stream_is_a_reply() {
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    let whole = json!({
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "<think>hm</think>Blue slate."}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5},
    });
    let pretty = serde_json::to_string_pretty(&whole).unwrap();
    let (said, usage) = says(&fake, &model, Answer::json(&whole)).await;
    assert_eq!((said.as_str(), usage.finish, usage.prompt_tokens), ("[hm]Blue slate.", FinishReason::Length, 9));
    // With line ends in the JSON, and with the wrong content type.
    for kind in ["application/json; charset=utf-8", SSE, "text/plain"] {
        assert_eq!(says(&fake, &model, Answer::stream(kind, &pretty.replace('\n', "\r\n"))).await.0, "[hm]Blue slate.");
    }
    // One object a line, without the framing of events.
    let lines = format!("{}\n{}\n{}\n", content("Blue "), content("slate."), finish("stop"));
    assert_eq!(says(&fake, &model, Answer::stream("application/x-ndjson", &lines)).await.0, "Blue slate.");
    // An error with a good status is an error.
    fake.on(OPENAI, [Answer::json(&json!({"error": {"message": "no such route"}}))]);
    let error = ask(&model, request("hello")).await.1.unwrap_err();
    assert!(error.to_string().contains("no such route"), "{error}");
}

#[tokio::test]
async fn content_in_parts_and_thinking_in_any_field_are_read() {
    let delta = |delta: Value| stream(&[json!({"choices": [{"delta": delta}]}), finish("stop")]);
    for (text, said) in [
        (
            delta(json!({"content": [{"type": "text", "text": "Blue "}, {"type": "text", "text": "slate."}]})),
            "Blue slate.",
        ),
        (
            delta(json!({"content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Slate."},
            ]})),
            "[hm]Slate.",
        ),
        (delta(json!({"content": ["Blue ", "slate."]})), "Blue slate."),
        (delta(json!({"reasoning_content": "hm", "reasoning": "hm", "content": "Slate."})), "[hm]Slate."),
        (delta(json!({"reasoning": [{"text": "hm"}], "content": "Slate."})), "[hm]Slate."),
        (delta(json!({"thinking": "hm", "content": "Slate."})), "[hm]Slate."),
        (delta(json!({"content": "Slate.", "tool_calls": null, "logprobs": 7, "role": ["x"]})), "Slate."),
        // The whole message beside the last piece is not said again.
        (
            stream(&[
                content("Slate."),
                json!({"choices": [{"message": {"content": "Slate."}, "finish_reason": "stop"}]}),
            ]),
            "Slate.",
        ),
    ] {
        let (fake, model) = fake_and_model(Api::OpenAi).await;
        assert_eq!(says(&fake, &model, Answer::stream(SSE, &text)).await.0, said, "{text}");
    }
}

#[tokio::test]
async fn a_stream_may_end_in_any_way_and_hold_comments() {
    let piece = content("Slate.");
    for text in [
        format!("data: {piece}\n\n"),
        format!("data: {piece}"),
        format!("\u{feff}data: {piece}\n\n"),
        format!(": waiting\r\n\r\n:\r\n\r\nretry: 1\r\nid: 4\r\ndata: {piece}\r\n\r\n"),
        format!("event: chunk\rdata: {piece}\r\rdata: [DONE]\r\r"),
        format!("data:{piece}\n\ndata: {}\n\n", json!({"choices": [{"delta": null, "finish_reason": 3}]})),
        format!("data: {piece}\n\ndata: {}\n\n", json!({"choices": null})),
        format!("data: \n\ndata: {piece}\n\ndata: [DONE]\n\ndata: not for us\n\n"),
    ] {
        let (fake, model) = fake_and_model(Api::OpenAi).await;
        let (said, usage) = says(&fake, &model, Answer::stream(SSE, &text)).await;
        assert_eq!((said.as_str(), usage.finish), ("Slate.", FinishReason::Stop), "{text}");
    }
}

#[tokio::test]
async fn halves_of_a_character_are_joined() {
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    let escaped = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"An owl \\ud83e\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\udd89 hoots.\"}}]}\n\ndata: [DONE]\n\n",
    );
    assert_eq!(says(&fake, &model, Answer::stream(SSE, escaped)).await.0, "An owl \u{1f989} hoots.");
    let mut bytes = b"data: {\"choices\":[{\"delta\":{\"content\":\"An owl \xf0\x9f\"}}]}\n\n".to_vec();
    bytes.extend_from_slice(b"data: {\"choices\":[{\"delta\":{\"content\":\"\xa6\x89 hoots.\"}}]}\n\ndata: [DONE]\n\n");
    assert_eq!(says(&fake, &model, Answer::Stream(SSE, vec![bytes], Then::End)).await.0, "An owl \u{1f989} hoots.");
    // A half without the other one is no reason to lose the rest.
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"An owl \\ud83e\"}}]}\n\ndata: [DONE]\n\n";
    assert_eq!(says(&fake, &model, Answer::stream(SSE, half)).await.0, "An owl \u{fffd}");
    let lines =
        "{\"message\":{\"content\":\"An owl \\ud83e\"}}\n{\"message\":{\"content\":\"\\udd89\"}}\n{\"done\":true}\n";
    let (fake, model) = fake_and_model(Api::Ollama).await;
    fake.on(OLLAMA, [Answer::stream(NDJSON, lines)]);
    assert_eq!(ask(&model, request("hello")).await.0, "An owl \u{1f989}");
}

#[tokio::test]
async fn a_lone_end_of_thinking_is_learned() {
    let thought = || {
        Answer::stream(
            SSE,
            &stream(&[content("They ask for a stone."), content("\n</thi"), content("nk>\n\nSlate."), finish("stop")]),
        )
    };
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    // The first time the thought was already shown and is taken back; then it is thinking from the start.
    for _ in 0..2 {
        assert_eq!(says(&fake, &model, thought()).await.0, "[They ask for a stone.\n]Slate.");
    }
    fake.on(OPENAI, [thought()]);
    let reply = azera_model_api::ChatModel::chat(&*model, request("hello")).await.unwrap();
    assert_eq!(reply.collect().await.unwrap().0, "Slate.");
    // A reply that was cut while it thought says nothing.
    let cut = Answer::stream(SSE, &stream(&[content("They ask for"), finish("length")]));
    assert_eq!(says(&fake, &model, cut).await.0, "[They ask for]");
    // The server stopped to send thoughts.
    assert_eq!(
        says(&fake, &model, Answer::stream(SSE, &stream(&[content("Slate."), finish("stop")]))).await.0,
        "Slate."
    );
}

#[tokio::test]
async fn thinking_before_json_is_no_part_of_it() {
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    let json = r#"{"stone":"</think> slate <|im_end|>"}"#;
    let shaped = || ChatRequest { grammar: Some(Grammar::JsonSchema(json!({"type": "object"}))), ..request("hello") };
    for thought in ["", "<think>hm</think>\n", "hm</think>\n"] {
        fake.on(OPENAI, [Answer::stream(SSE, &stream(&[content(&format!("{thought}{json}")), finish("stop")]))]);
        let reply = azera_model_api::ChatModel::chat(&*model, shaped()).await.unwrap();
        assert_eq!(reply.collect().await.unwrap().0, json, "{thought}");
    }
}

/// Streams with what servers are known to send, and the reply in them.
fn streams() -> impl Strategy<Value = (Vec<String>, String)> {
    let thought = prop::sample::select(
        &[
            "",
            "<think>hm</think>",
            "hm</think>",
            "<thinking>\nhm\n</thinking>",
            "[THINK]hm[/THINK]",
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>",
        ][..],
    );
    let end = prop::sample::select(&["", "<|im_end|>", "<|eot_id|>\n", "</s>", "<end_of_turn>"][..]);
    let reply = prop::sample::select(
        &["Slate.", "Two: slate \u{1f989} and oak.", "Close `</think>` so.", "Gr\u{fc}\u{df}e"][..],
    );
    let size = 1_usize..9;
    (thought, reply, end, size).prop_map(|(thought, reply, end, size)| {
        let units: Vec<u16> = format!("{thought}{reply}{end}").encode_utf16().collect();
        // Every other character as an escape, so that a character may be split in its middle.
        let escape = |units: &[u16]| -> String {
            units
                .iter()
                .enumerate()
                .map(|(at, unit)| match char::from_u32(u32::from(*unit)) {
                    Some(c) if at % 2 == 0 && c != '"' && c != '\\' && !c.is_control() => c.to_string(),
                    _ => format!("\\u{unit:04x}"),
                })
                .collect()
        };
        let events = units
            .chunks(size)
            .map(|part| format!("{{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}", escape(part)));
        (events.collect(), reply.to_owned())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_stream_cut_anywhere_gives_the_same_reply(
        (events, reply) in streams(),
        end in prop::sample::select(&["\n\n", "\r\n\r\n", "\n: waiting\n\n"][..]),
        size in 1_usize..40,
    ) {
        let text: String = events.iter().map(|event| format!("data: {event}{end}")).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let said: Result<String, _> = runtime.block_on(async {
            let (fake, model) = fake_and_model(Api::OpenAi).await;
            let chunks = text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            fake.on(OPENAI, [Answer::Stream(SSE, chunks, Then::End)]);
            let reply = azera_model_api::ChatModel::chat(&*model, request("hello")).await.unwrap();
            reply.collect().await.map(|(text, _)| text)
        });
        let said = said.unwrap();
        prop_assert_eq!(said.trim(), reply);
    }
}
