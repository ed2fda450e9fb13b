//! The interface of OpenAI's clients, and the stream of the first interface.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::{World, program};

fn completion(text: &str) -> Value {
    json!({"model": "azera", "messages": [
        {"role": "system", "content": "You are a pirate."},
        {"role": "user", "content": "an earlier message"},
        {"role": "assistant", "content": "an earlier reply"},
        {"role": "user", "content": text},
    ]})
}

#[tokio::test]
async fn each_persona_is_a_model() {
    let world = World::start().await;
    let (mut program, _) = program(&mut world.owner().await, &["chat"]).await;
    let models = program.send("GET", "/v1/models", None).await.json();
    assert_eq!(models["data"].as_array().unwrap().len(), 1, "roles of people are no models");
    assert_eq!(models["data"][0]["id"], "azera");
    assert_eq!(program.send("GET", "/v1/models/azera", None).await.json()["object"], "model");
    let missing = program.send("GET", "/v1/models/nobody", None).await;
    assert_eq!((missing.status, &missing.json()["error"]["code"]), (404, &json!("model_not_found")));
    let nobody = world.client().send("GET", "/v1/models", None).await;
    assert_eq!((nobody.status, &nobody.json()["error"]["type"]), (401, &json!("authentication_error")));
    world.stop().await;
}

#[tokio::test]
async fn only_the_last_message_is_new() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut program, _) = program(&mut owner, &["chat"]).await;
    let whole = program.send("POST", "/v1/chat/completions", Some(completion("hello"))).await.json();
    assert_eq!(whole["choices"][0]["message"]["content"], "You said: hello");
    assert_eq!(whole["usage"]["total_tokens"], 10);
    program.send("POST", "/v1/chat/completions", Some(completion("again"))).await;
    let chats = owner.send("GET", "/api/chats", None).await.json();
    assert_eq!(chats["total"], 1, "both are in one chat: {chats}");
    let chat =
        owner.send("GET", &format!("/api/chats/{}", chats["items"][0]["id"].as_str().unwrap()), None).await.json();
    let said: Vec<&str> =
        chat["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["hello", "You said: hello", "again", "You said: again"]);
    // `user`, the header and another key choose other chats.
    let mut named = completion("x");
    named["user"] = json!("phone");
    program.send("POST", "/v1/chat/completions", Some(named)).await;
    let headers = [("Content-Type", "application/json"), ("X-Azera-Chat", "desk")];
    program.send_with("POST", "/v1/chat/completions", &headers, &completion("y").to_string()).await;
    let (mut other, _) = crate::program(&mut owner, &["chat"]).await;
    other.send("POST", "/v1/chat/completions", Some(completion("z"))).await;
    assert_eq!(owner.send("GET", "/api/chats", None).await.json()["total"], 4);
    world.stop().await;
}

#[tokio::test]
async fn a_completion_streams_as_it_is_made() {
    let world = World::start().await;
    let (mut program, _) = program(&mut world.owner().await, &["chat"]).await;
    let mut request = completion("hello");
    request["stream"] = json!(true);
    request["stream_options"] = json!({"include_usage": true});
    let answer = program.send("POST", "/v1/chat/completions", Some(request)).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let events: Vec<String> = answer.events().into_iter().map(|(_, data)| data).collect();
    assert_eq!(events.last().map(String::as_str), Some("[DONE]"));
    let chunks: Vec<Value> = events.iter().filter_map(|data| serde_json::from_str(data).ok()).collect();
    let field = |name: &str| -> String {
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"][name].as_str().map(str::to_owned)).collect()
    };
    assert_eq!((field("content").as_str(), field("reasoning_content").as_str()), ("You said: hello", "Hm."));
    assert!(chunks.iter().any(|chunk| chunk["choices"][0]["finish_reason"] == "stop"));
    assert_eq!(chunks.last().unwrap()["usage"]["completion_tokens"], 3);
    world.stop().await;
}

#[tokio::test]
async fn a_wrong_completion_says_what_is_wrong() {
    let world = World::start().await;
    let (mut program, _) = program(&mut world.owner().await, &["chat"]).await;
    let mut last_by_persona = completion("x");
    last_by_persona["messages"][3]["role"] = json!("assistant");
    let mut picture = completion("x");
    picture["messages"][3]["content"] = json!([{"type": "image_url", "image_url": {"url": "data:,"}}]);
    let mut fetched = completion("x");
    fetched["messages"][3]["content"] =
        json!([{"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}}]);
    let mut sound = completion("x");
    sound["messages"][3]["content"] = json!([{"type": "input_audio"}]);
    let (mut several, mut tools, mut empty) = (completion("x"), completion("x"), completion("  "));
    several["n"] = json!(2);
    tools["tools"] = json!([{"type": "function"}]);
    for (request, told) in [
        (last_by_persona, "role `user`"),
        (picture, "image_url"),
        (fetched, "fetches nothing"),
        (sound, "input_audio"),
        (several, "`n` must be 1"),
        (tools, "tools"),
        (std::mem::take(&mut empty), "empty"),
        (json!({"model": "azera", "messages": []}), "role `user`"),
        (json!({"messages": "x"}), "wrong"),
    ] {
        let answer = program.send("POST", "/v1/chat/completions", Some(request)).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
        let error = answer.json()["error"].clone();
        assert_eq!(error["type"], "invalid_request_error");
        assert!(error["message"].as_str().unwrap().contains(told), "{error}");
    }
    let mut parts = completion("x");
    parts["messages"][3]["content"] = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
    let answer = program.send("POST", "/v1/chat/completions", Some(parts)).await.json();
    assert_eq!(answer["choices"][0]["message"]["content"], "You said: one\ntwo");
    // A picture of an earlier message was shown then.
    let url = format!("data:image/png;base64,{}", STANDARD.encode(b"\x89PNG a grey cat"));
    let shown = json!([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]);
    let mut looked = completion("x");
    (looked["messages"][1]["content"], looked["messages"][3]["content"]) = (shown.clone(), shown);
    let answer = program.send("POST", "/v1/chat/completions", Some(looked)).await.json();
    let answer = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(answer.starts_with("You said: look [seen in picture.png] ") && answer.ends_with("a grey cat"), "{answer}");
    assert_eq!(answer.matches("seen in").count(), 1, "{answer}");
    world.engine.fail();
    let failed = program.send("POST", "/v1/chat/completions", Some(completion("x"))).await;
    assert_eq!((failed.status, &failed.json()["error"]["type"]), (503, &json!("server_error")));
    assert!(!failed.body.contains("the model is gone"), "causes belong in the log");
    world.stop().await;
}

#[tokio::test]
async fn pictures_of_earlier_messages_neither_fill_nor_break_a_request() {
    let world = World::start().await;
    let (mut program, _) = program(&mut world.owner().await, &["chat"]).await;
    // Three photos of 8 MB, as a client sends them again with each message, and forms that clients of others send.
    let url = format!("data:image/png;base64,{}", STANDARD.encode(vec![0x89; 8 << 20]));
    let photo = json!({"type": "image_url", "image_url": {"url": url}});
    let mut history = completion("hello");
    history["messages"][0]["content"] = json!([photo, photo, photo]);
    history["messages"][1]["content"] = json!([{"type": "image_url", "image_url": "https://example.org/cat.png"}]);
    history["messages"][2]["content"] = json!({"parts": 5});
    let answer = program.send("POST", "/v1/chat/completions", Some(history)).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "You said: hello");
    let url = format!("data:image/png;base64,{}", STANDARD.encode(b"\x89PNG a grey cat"));
    let mut plain = completion("x");
    plain["messages"][3]["content"] =
        json!([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": url}]);
    let answer = program.send("POST", "/v1/chat/completions", Some(plain)).await.json();
    let answer = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(answer.starts_with("You said: look [seen in picture.png] ") && answer.ends_with("a grey cat"), "{answer}");
    let mut broken = completion("x");
    broken["messages"][3]["content"] = json!({"parts": 5});
    let answer = program.send("POST", "/v1/chat/completions", Some(broken)).await;
    assert!(answer.status == 400 && answer.body.contains("no list of parts"), "{}", answer.body);
    world.stop().await;
}

#[tokio::test]
async fn a_command_is_answered_and_not_said() {
    let world = World::start().await;
    let (mut program, _) = program(&mut world.owner().await, &["chat"]).await;
    let answer = program.send("POST", "/v1/chat/completions", Some(completion("/why"))).await.json();
    assert_eq!(answer["choices"][0]["message"]["content"], "Kept as `m7`.");
    let unknown = program.send("POST", "/v1/chat/completions", Some(completion("/wy"))).await;
    assert!(unknown.body.contains("/why"), "{}", unknown.body);
    assert_eq!(world.engine.commands.lock().unwrap().len(), 1);
    world.stop().await;
}

#[tokio::test]
async fn the_stream_of_the_first_interface_has_its_events() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let chat = owner.send("POST", "/api/chats", Some(json!({}))).await.json();
    assert_eq!(chat["branches"][0]["name"], "Main");
    let said = json!({"chat_id": chat["id"], "branch_id": "main", "message": "hello", "ai_persona_id": "azera"});
    let answer = owner.send("POST", "/api/chat/stream", Some(said)).await;
    let events = answer.events();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.get(..3), Some(&["thinking_start", "thinking", "thinking_end"][..]));
    assert_eq!(names.last(), Some(&"done"));
    let data = |name: &str| -> Vec<Value> {
        let of = events.iter().filter(|(found, _)| found == name);
        of.map(|(_, data)| serde_json::from_str(data).unwrap()).collect()
    };
    let text: String = data("content").iter().map(|data| data["content"].as_str().unwrap().to_owned()).collect();
    assert_eq!(text, "You said: hello");
    let done = &data("done")[0];
    assert_eq!((&done["mood"], &done["mood_value"], &done["energy"]), (&json!("calm"), &json!(0.5), &json!(0.75)));
    assert!(done["message_id"].as_str().unwrap().ends_with("~r0"));
    world.engine.fail();
    let said = json!({"chat_id": chat["id"], "message": "hello"});
    let failed = owner.send("POST", "/api/chat/stream", Some(said)).await.events();
    assert_eq!(failed.last().unwrap().0, "error");
    world.stop().await;
}

#[tokio::test]
async fn a_withdrawn_beginning_is_no_part_of_the_reply() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let chat = owner.send("POST", "/api/chats", Some(json!({}))).await.json();
    let said = json!({"chat_id": chat["id"], "message": "withdraw"});
    let events = owner.send("POST", "/api/chat/stream", Some(said)).await.events();
    let withdrawn = events.iter().position(|(name, _)| name == "retracted").unwrap();
    let data: Value = serde_json::from_str(&events[withdrawn].1).unwrap();
    assert_eq!(data, json!({"withdrawn": true}), "it is no thinking");
    let (begun, reply) = events.split_at(withdrawn);
    assert!(begun.iter().any(|(name, _)| name == "content"), "{begun:?}");
    let pieces = reply
        .iter()
        .filter(|(name, _)| name == "content")
        .map(|(_, data)| -> Value { serde_json::from_str(data).unwrap() });
    let text: String = pieces.map(|data| data["content"].as_str().unwrap().to_owned()).collect();
    assert_eq!(text, "You said: withdraw");
    world.stop().await;
}

#[tokio::test]
async fn a_command_can_be_about_a_message_and_says_whether_it_worked() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let chat = owner.send("POST", "/api/chats", Some(json!({}))).await.json();
    let done = async |owner: &mut crate::client::Client, said: Value| -> (String, Value) {
        let answer = owner.send("POST", "/api/chat/stream", Some(said)).await;
        let events = answer.events();
        assert_eq!(events.last().unwrap().0, "done", "{}", answer.body);
        (events[0].1.clone(), serde_json::from_str(&events.last().unwrap().1).unwrap())
    };
    let (text, worked) = done(&mut owner, json!({"chat_id": chat["id"], "message": "/why"})).await;
    assert!(text.contains("Kept as") && worked["ok"] == true, "{text} {worked}");
    let about = json!({"chat_id": chat["id"], "message": "/why", "about": "web:some-message"});
    let (text, refused) = done(&mut owner, about).await;
    assert!(text.contains("There is no web:some-message.") && refused["ok"] == false, "{text} {refused}");
    let (_, unknown) = done(&mut owner, json!({"chat_id": chat["id"], "message": "/wy"})).await;
    assert_eq!(unknown["ok"], false);
    let (_, reply) = done(&mut owner, json!({"chat_id": chat["id"], "message": "hello"})).await;
    assert_eq!(reply.get("ok"), None, "replies have the events of the first interface");
    let wrong = json!({"chat_id": chat["id"], "message": "/why", "about": ""});
    owner.send("POST", "/api/chat/stream", Some(wrong)).await.is(400, "invalid");
    world.stop().await;
}

#[tokio::test]
async fn the_lists_of_the_first_interface_have_its_fields() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    owner.send("POST", "/api/chat", Some(json!({"session_id": "s", "message": "hello"}))).await;
    let personas = owner.send("GET", "/api/personas", None).await.json();
    assert_eq!((&personas["total"], &personas["items"][1]["is_user"]), (&json!(2), &json!(true)));
    let dreams = owner.send("GET", "/api/dreams/search?q=hello", None).await.json();
    assert!(dreams["items"][0]["themes"].is_array() && dreams["items"][0]["created_at"].is_string(), "{dreams}");
    assert!(owner.send("GET", "/api/journal", None).await.json()["items"][0]["insights"].is_array());
    let found = owner.send("POST", "/api/search", Some(json!({"query": "hello", "limit": 1}))).await.json();
    assert_eq!((&found["total"], &found["semantic_count"], &found["lexical_count"]), (&json!(1), &json!(1), &json!(0)));
    let held = ["holds_since", "held_until", "replaced_by"].map(|key| found["results"][0][key].clone());
    assert_eq!(held, [json!("2026-05"), json!("2026-08-03"), json!("m9")]);
    assert_eq!(found["results"][0]["source"], "message");
    assert_eq!(found["missing"], json!(["lexical"]), "what did not work is named");
    let stored = owner.send("POST", "/api/memories", Some(json!({"content": "x"}))).await.json();
    assert_eq!(stored, json!({"status": "stored", "id": "m7"}));
    let status = owner.send("GET", "/api/status", None).await.json();
    assert_eq!((&status["status"], &status["is_dreaming"]), (&json!("awake"), &json!(false)));
    let settings = owner.send("GET", "/api/settings", None).await.json();
    assert_eq!(settings["editorSettings"]["tabSize"], 4);
    let group = owner.send("POST", "/api/groups", Some(json!({"name": "Work", "color": "#aabbcc"}))).await.json();
    let path = format!("/api/groups/{}", group["id"].as_str().unwrap());
    let changed = owner.send("PUT", &path, Some(json!({"collapsed": true, "order": 2}))).await.json();
    assert_eq!(
        (&changed["name"], &changed["collapsed"], &changed["color"]),
        (&json!("Work"), &json!(true), &json!("#aabbcc"))
    );
    assert_eq!(owner.send("DELETE", &path, None).await.json()["status"], "deleted");
    let boundary = "--x\r\nContent-Disposition: form-data; name=\"files\"; filename=\"dream_20260101_010203.md\"\r\n\r\nA dream.\r\n--x--\r\n";
    let headers = [("Content-Type", "multipart/form-data; boundary=x")];
    let imported = owner.send_with("POST", "/api/dreams/import", &headers, boundary).await;
    assert_eq!(imported.json(), json!({"status": "ok", "imported": 1, "skipped": 0, "errors": []}));
    world.stop().await;
}
