//! Tests of replies, however the stream is cut.

use std::sync::Arc;

use azera_model_api::{
    ChatMessage, ChatModel, ChatRequest, Error, Event, FinishReason, Grammar, Lora, LoraId, Priority, Reply, Role,
    Sampling, SessionKey, Usage,
};
use azera_model_remote::{Api, CHAT_QUEUE, RemoteChat, RemoteChatConfig, ServerConfig};
use serde_json::{Value, json};

use crate::fake::{Answer, FakeServer, NDJSON, SSE, Then};

pub const OPENAI: &str = "/v1/chat/completions";
pub const OLLAMA: &str = "/api/chat";

/// A reply as OpenAI streams it: separate thinking, emoji, and the usage after the end.
pub const OPENAI_REPLY: &str = concat!(
    ": hello\r\n\r\n",
    "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm \u{1f914}\"}}]}\n\n",
    "event: message\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Gr\u{fc}\u{df}e \u{1f98a}\"}}],\"usage\":null}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" \u{8a18}\u{61b6}\\n\\\"ok\\\"\"}}]}\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":21,\"completion_tokens\":9,\"total_tokens\":30,",
    "\"prompt_tokens_details\":{\"cached_tokens\":16}}}\n\ndata: [DONE]\n\n",
);

/// The same reply as Ollama streams it.
pub const OLLAMA_REPLY: &str = concat!(
    "{\"model\":\"tiny\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"hm \u{1f914}\"},\"done\":false}\n",
    "{\"message\":{\"role\":\"assistant\",\"content\":\"Gr\u{fc}\u{df}e \u{1f98a}\"},\"done\":false}\n",
    "{\"message\":{\"role\":\"assistant\",\"content\":\" \u{8a18}\u{61b6}\\n\\\"ok\\\"\"},\"done\":false}\r\n",
    "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",",
    "\"prompt_eval_count\":21,\"eval_count\":9,\"total_duration\":5}\n",
);

pub const SAID: &str = "[hm \u{1f914}]Gr\u{fc}\u{df}e \u{1f98a} \u{8a18}\u{61b6}\n\"ok\"";

pub fn request(text: &str) -> ChatRequest {
    ChatRequest::new(vec![ChatMessage::new(Role::User, text)])
}

pub async fn model(server: ServerConfig) -> Arc<RemoteChat> {
    connect(server, |_| {}).await.unwrap()
}

pub async fn connect(
    server: ServerConfig,
    change: impl FnOnce(&mut RemoteChatConfig),
) -> Result<Arc<RemoteChat>, azera_model_remote::Error> {
    let mut config =
        RemoteChatConfig { server, family: "generic".into(), context_tokens: 4096, slots: 4, bytes_per_token: 3.0 };
    change(&mut config);
    RemoteChat::connect(config).await
}

/// Returns a fake server of this kind that reports nothing about itself, and a model on it.
pub async fn fake_and_model(api: Api) -> (FakeServer, Arc<RemoteChat>) {
    let fake = FakeServer::start().await;
    if api == Api::Ollama {
        fake.on("/api/tags", [Answer::json(&json!({"models": [{"name": "tiny:latest", "digest": "d1"}]}))]);
        fake.on("/api/show", [Answer::json(&json!({}))]);
    }
    let model = model(fake.config(api)).await;
    (fake, model)
}

/// Returns the reply with its thinking in brackets.
pub async fn read(mut reply: Reply) -> (String, Result<Usage, Error>) {
    let mut text = String::new();
    while let Some(event) = reply.next().await {
        match event {
            Ok(Event::ThinkingStart) => text.push('['),
            Ok(Event::ThinkingEnd) => text.push(']'),
            Ok(Event::Retracted) => text = format!("[{text}]"),
            Ok(Event::Thinking(piece) | Event::Content(piece)) => {
                assert!(!piece.is_empty());
                text.push_str(&piece);
            }
            Ok(Event::Done(usage)) => {
                assert!(reply.next().await.is_none(), "the end is the last event");
                return (text, Ok(usage));
            }
            Err(error) => {
                assert!(reply.next().await.is_none(), "an error is the last event");
                return (text, Err(error));
            }
        }
    }
    panic!("a reply ends with its usage or an error");
}

pub async fn ask(model: &RemoteChat, request: ChatRequest) -> (String, Result<Usage, Error>) {
    read(model.chat(request).await.unwrap()).await
}

#[tokio::test]
async fn cutting_the_stream_anywhere_does_not_change_the_reply() {
    for (api, path, kind, text) in [
        (Api::OpenAi, OPENAI, SSE, OPENAI_REPLY),
        (Api::LlamaCpp, OPENAI, SSE, OPENAI_REPLY),
        (Api::Ollama, OLLAMA, NDJSON, OLLAMA_REPLY),
    ] {
        let (fake, model) = fake_and_model(api).await;
        let bytes = text.as_bytes();
        let halves = (0..bytes.len()).map(|cut| {
            let (head, tail) = bytes.split_at(cut);
            Answer::Stream(kind, vec![head.to_vec(), tail.to_vec()], Then::End)
        });
        let single = Answer::Stream(kind, bytes.iter().map(|byte| vec![*byte]).collect(), Then::End);
        fake.on(path, halves.chain([single]));
        for cut in 0..=bytes.len() {
            let (said, usage) = ask(&model, request("hello")).await;
            assert_eq!(said, SAID, "{api:?}, cut at {cut}");
            let usage = usage.unwrap();
            let cached = if api == Api::Ollama { 0 } else { 16 };
            assert_eq!(
                (usage.prompt_tokens, usage.cached_tokens, usage.evaluated_tokens, usage.completion_tokens),
                (21, cached, 21 - cached, 9)
            );
            assert_eq!((usage.finish, usage.estimated), (FinishReason::Stop, false));
            assert!(usage.ttft_ms > 0.0 && usage.tokens_per_s >= 0.0);
        }
        assert_eq!(fake.requests(path).len(), bytes.len() + 1, "each reply is one request");
    }
}

#[tokio::test]
async fn every_way_to_end_a_reply_is_understood() {
    let (fake, model) = fake_and_model(Api::LlamaCpp).await;
    let check = async |lines: &[Value], end: &str, stop: &[&str], said: &str, finish: FinishReason| {
        let text: String = lines.iter().map(|line| format!("data: {line}\n\n")).collect();
        fake.on(OPENAI, [Answer::stream(SSE, &format!("{text}{end}"))]);
        let stop = stop.iter().map(|stop| (*stop).to_owned()).collect();
        let (text, usage) = ask(&model, ChatRequest { stop, ..request("hello") }).await;
        let usage = usage.unwrap();
        assert_eq!((text.as_str(), usage.finish), (said, finish), "{lines:?}");
        usage
    };
    let content = |text: &str| json!({"choices": [{"delta": {"content": text}}]});
    let finish = |reason: &str| json!({"choices": [{"delta": {}, "finish_reason": reason}]});
    let done = "data: [DONE]\n\n";

    let usage = check(&[content("cut"), finish("length")], done, &[], "cut", FinishReason::Length).await;
    assert!(usage.estimated, "no counts were told: {usage:?}");
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (2, 1));
    // Without the mark at the end, and without the blank line after it.
    check(&[content("a"), finish("stop")], "", &[], "a", FinishReason::Stop).await;
    check(&[content("a"), finish("stop")], "data: [DONE]", &[], "a", FinishReason::Stop).await;
    // Thinking in tags, thinking in another field, and only thinking.
    check(&[content("<thi"), content("nk>hm</think>\n\nyes")], done, &[], "[hm]yes", FinishReason::Stop).await;
    let named = json!({"choices": [{"delta": {"reasoning": "hm", "content": null}}]});
    check(&[named.clone(), content("yes")], done, &[], "[hm]yes", FinishReason::Stop).await;
    check(&[named, finish("length")], done, &[], "[hm]", FinishReason::Length).await;
    // Stop strings are found here too, across pieces.
    let pieces = [content("Hello\n"), content("An"), content("n: no"), finish("stop")];
    let usage = check(&pieces, done, &["\nAnn:"], "Hello", FinishReason::StopString).await;
    assert!(usage.estimated);
    // llama-server reports the reused tokens in a field of its own.
    let counted =
        json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1}, "timings": {"cache_n": 5}});
    let usage = check(&[content("x"), finish("stop"), counted], done, &[], "x", FinishReason::Stop).await;
    assert_eq!((usage.prompt_tokens, usage.cached_tokens, usage.evaluated_tokens), (7, 5, 2));
    // A refusal's text is the reply.
    let refusal = json!({"choices": [{"delta": {"refusal": "I will not."}, "finish_reason": "stop"}]});
    check(&[refusal], done, &[], "I will not.", FinishReason::Stop).await;
}

#[tokio::test]
async fn a_request_has_the_format_of_each_server() {
    let sampling = Sampling { seed: Some(7), frequency_penalty: 0.25, phrase_penalty: 0.5, ..Sampling::default() };
    let stop: Vec<String> = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
    let messages = vec![ChatMessage::new(Role::System, "Be brief."), ChatMessage::new(Role::User, "h\u{e9}")];
    let requests = ChatRequest {
        sampling,
        stop,
        max_tokens: 64,
        session: Some(SessionKey::new("s")),
        ..ChatRequest::new(messages)
    };
    let sent = async |api: Api, path: &str, requests: ChatRequest| {
        let (fake, model) = fake_and_model(api).await;
        let kind = if api == Api::Ollama { NDJSON } else { SSE };
        fake.on(path, [Answer::stream(kind, if api == Api::Ollama { OLLAMA_REPLY } else { OPENAI_REPLY })]);
        let (_, usage) = ask(&model, requests).await;
        usage.unwrap_or_else(|error| panic!("{error}"));
        let sent = fake.requests(path).remove(0);
        assert_eq!(sent.authorization.as_deref(), Some("Bearer sk-hush"));
        sent.body
    };
    let messages = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "h\u{e9}"}]);
    assert_eq!(
        sent(Api::OpenAi, OPENAI, requests.clone()).await,
        json!({
            "model": "tiny", "messages": messages, "stream": true, "stream_options": {"include_usage": true},
            "max_tokens": 64, "temperature": 0.7, "top_p": 0.95, "seed": 7, "stop": ["a", "b", "c", "d"],
            "frequency_penalty": 0.25,
        })
    );
    let thinking = ChatRequest { thinking: true, thinking_tokens: 1_000, ..requests.clone() };
    assert_eq!(
        sent(Api::LlamaCpp, OPENAI, thinking).await,
        json!({
            "model": "tiny", "messages": messages, "stream": true, "stream_options": {"include_usage": true},
            "max_tokens": 1_064, "temperature": 0.7, "top_p": 0.95, "seed": 7, "stop": ["a", "b", "c", "d", "e"],
            "top_k": 40, "min_p": 0.05, "chat_template_kwargs": {"enable_thinking": true},
        })
    );
    assert_eq!(
        sent(Api::Ollama, OLLAMA, requests).await,
        json!({
            "model": "tiny", "messages": messages, "stream": true, "think": false,
            "options": {
                "num_ctx": 4096, "num_predict": 64, "temperature": 0.7, "top_k": 40, "top_p": 0.95, "min_p": 0.05,
                "repeat_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0, "seed": 7,
                "stop": ["a", "b", "c", "d", "e"],
            },
        })
    );
}

#[tokio::test]
async fn a_server_gets_room_for_thoughts_where_its_model_may_think() {
    for (api, path, thinking, room) in [
        (Api::Ollama, OLLAMA, true, 1_064),
        (Api::Ollama, OLLAMA, false, 64),
        (Api::LlamaCpp, OPENAI, true, 1_064),
        (Api::LlamaCpp, OPENAI, false, 64),
        // There is no switch, so the model may think unasked.
        (Api::OpenAi, OPENAI, true, 1_064),
        (Api::OpenAi, OPENAI, false, 1_064),
    ] {
        let (fake, model) = fake_and_model(api).await;
        let kind = if api == Api::Ollama { NDJSON } else { SSE };
        fake.on(path, [Answer::stream(kind, if api == Api::Ollama { OLLAMA_REPLY } else { OPENAI_REPLY })]);
        let asked = ChatRequest { max_tokens: 64, thinking, thinking_tokens: 1_000, ..request("hello") };
        ask(&model, asked).await.1.unwrap();
        let body = &fake.requests(path)[0].body;
        let sent = if api == Api::Ollama { &body["options"]["num_predict"] } else { &body["max_tokens"] };
        assert_eq!(*sent, json!(room), "{api:?}, {thinking}");
        let long = ChatRequest { max_tokens: 64, thinking: true, thinking_tokens: 5_000, ..request("hello") };
        assert!(matches!(model.chat(long).await, Err(Error::TooLong { reply: 5_064, .. })));
    }
}

#[tokio::test]
async fn a_json_schema_is_requested_and_checked() {
    let schema = json!({"type": "object"});
    let shaped = |grammar| ChatRequest { grammar: Some(grammar), ..request("hello") };
    let content = |text: &str| {
        let chunk = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
        Answer::stream(SSE, &format!("data: {chunk}\n\ndata: [DONE]\n\n"))
    };
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    fake.on(OPENAI, [content("{\"a\": 1}"), content("Sure! {")]);
    let (said, usage) = ask(&model, shaped(Grammar::JsonSchema(schema.clone()))).await;
    assert!(usage.is_ok() && said == "{\"a\": 1}");
    let format = &fake.requests(OPENAI)[0].body["response_format"];
    assert_eq!((&format["type"], &format["json_schema"]["schema"]), (&json!("json_schema"), &schema));
    let (_, usage) = ask(&model, shaped(Grammar::JsonSchema(schema.clone()))).await;
    assert!(usage.unwrap_err().to_string().contains("not the JSON that was requested"));
    let refused = model.chat(shaped(Grammar::Gbnf("root ::= \"x\"".into()))).await.unwrap_err();
    assert!(matches!(&refused, Error::Invalid(why) if why.contains("GBNF")), "{refused}");

    let (fake, model) = fake_and_model(Api::LlamaCpp).await;
    fake.on(OPENAI, [content("x")]);
    ask(&model, shaped(Grammar::Gbnf("root ::= \"x\"".into()))).await.1.unwrap();
    assert_eq!(fake.requests(OPENAI)[0].body["grammar"], "root ::= \"x\"");

    let (fake, model) = fake_and_model(Api::Ollama).await;
    fake.on(OLLAMA, [Answer::stream(NDJSON, "{\"message\":{\"content\":\"{}\"},\"done\":true}\n")]);
    ask(&model, shaped(Grammar::JsonSchema(schema.clone()))).await.1.unwrap();
    assert_eq!(fake.requests(OLLAMA)[0].body["format"], schema);
}

#[tokio::test]
async fn an_unsupported_request_is_rejected_at_once() {
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    assert_eq!(model.count_tokens("h\u{e9}llo"), 2);
    let long = ChatRequest { max_tokens: 4000, ..request(&"word ".repeat(200)) };
    assert!(matches!(model.chat(long).await, Err(Error::TooLong { prompt: 334, reply: 4000, context: 4096 })));
    assert!(matches!(model.chat(ChatRequest { max_tokens: 0, ..request("x") }).await, Err(Error::Invalid(_))));
    let stop = vec![String::new()];
    assert!(matches!(model.chat(ChatRequest { stop, ..request("x") }).await, Err(Error::Invalid(_))));
    let loras = vec![Lora::new(LoraId::new([0; 32]), "adapter.gguf")];
    assert!(matches!(model.chat(ChatRequest { loras, ..request("x") }).await, Err(Error::Invalid(_))));
    assert!(fake.requests(OPENAI).is_empty());
    model.forget_session(&SessionKey::new("s")).await.unwrap();
}

#[tokio::test]
async fn rejected_optional_fields_are_omitted_from_then_on() {
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    let refuse = |field: &str, code: &str| {
        Answer::refusal(
            400,
            &json!({"error": {"message": "no", "type": "invalid_request_error", "param": field, "code": code}}),
        )
    };
    fake.on(
        OPENAI,
        [
            refuse("max_tokens", "unsupported_parameter"),
            refuse("temperature", "unsupported_value"),
            Answer::stream(SSE, OPENAI_REPLY),
        ],
    );
    for _ in 0..2 {
        let (said, usage) = ask(&model, request("hello")).await;
        assert!(usage.is_ok() && said == SAID);
    }
    let sent = fake.requests(OPENAI);
    assert_eq!(sent.len(), 4, "two refusals, then two replies");
    for requests in &sent[2..] {
        assert_eq!(requests.body["max_completion_tokens"], 512);
        assert!(requests.body.get("max_tokens").is_none() && requests.body.get("temperature").is_none());
    }
    // A required field is never omitted, however often it is rejected.
    fake.on(OPENAI, [refuse("messages", "unsupported_value")]);
    let (_, refused) = ask(&model, request("hello")).await;
    assert!(matches!(refused, Err(Error::Engine(_))));
    assert_eq!(fake.requests(OPENAI).len(), 5);
}

#[tokio::test]
async fn dropping_a_reply_closes_the_connection() {
    for (api, path, kind, text, lines) in
        [(Api::OpenAi, OPENAI, SSE, OPENAI_REPLY, 6), (Api::Ollama, OLLAMA, NDJSON, OLLAMA_REPLY, 2)]
    {
        let (fake, model) = fake_and_model(api).await;
        let first_lines: String = text.split_inclusive('\n').take(lines).collect();
        fake.on(path, [Answer::hanging(kind, ""), Answer::hanging(kind, &first_lines)]);
        // Before the first piece, and in the middle.
        let reply = model.chat(request("hello")).await.unwrap();
        fake.wait_for_requests(path, 1).await;
        drop(reply);
        fake.closed_times(1).await;
        let mut reply = model.chat(request("hello")).await.unwrap();
        assert!(matches!(reply.next().await, Some(Ok(Event::ThinkingStart))));
        drop(reply);
        fake.closed_times(2).await;
        assert_eq!(fake.requests(path).len(), 2, "nothing is asked for again that nobody waits for");
    }
}

#[tokio::test]
async fn foreground_requests_overtake_background_ones_and_the_queue_is_bounded() {
    let fake = FakeServer::start().await;
    fake.on(OPENAI, [Answer::hanging(SSE, "")]);
    let model = connect(fake.config(Api::OpenAi), |config| config.slots = 2).await.unwrap();
    let background = || ChatRequest { priority: Priority::Background, ..request("later") };
    let first = model.chat(background()).await.unwrap();
    fake.wait_for_requests(OPENAI, 1).await;
    let second = model.chat(background()).await.unwrap();
    let foreground = model.chat(request("now")).await.unwrap();
    // The foreground request finds a slot, although a background one came before it.
    fake.wait_for_requests(OPENAI, 2).await;
    let said = |requests: &crate::fake::RecordedRequest| requests.body["messages"][0]["content"].clone();
    assert_eq!(fake.requests(OPENAI).iter().map(said).collect::<Vec<_>>(), ["later", "now"]);
    let mut waiting = Vec::new();
    for _ in 0..CHAT_QUEUE - 1 {
        waiting.push(model.chat(request("wait")).await.unwrap());
    }
    assert!(matches!(model.chat(request("one more")).await, Err(Error::Busy { waiting: CHAT_QUEUE })));
    drop((foreground, waiting));
    fake.closed_times(1).await;
    drop(first);
    fake.wait_for_requests(OPENAI, 3).await;
    assert_eq!(said(&fake.requests(OPENAI)[2]), "later");
    drop(second);
}
