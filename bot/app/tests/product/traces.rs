//! Traces: what a collector is sent of a turn, and what it is not sent.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::http::request;
use super::web::Running;

/// What a collector was sent: the path and the body of each request.
type Sent = Arc<Mutex<Vec<(String, Value)>>>;

/// Starts a collector. Returns its address and what it is sent.
fn collector() -> (String, Sent) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let sent = Sent::default();
    let taken = sent.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Ok(read) = request(&stream) else { continue };
            taken.lock().expect("nobody panics").push(read);
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}").ok();
        }
    });
    (address, sent)
}

fn spans(sent: &Sent) -> Vec<Value> {
    let sent = sent.lock().expect("nobody panics");
    let of_one = |(path, body): &(String, Value)| {
        assert_eq!(path, "/v1/traces");
        let of = &body["resourceSpans"][0];
        let name = json!({"key": "service.name", "value": {"stringValue": "azera"}});
        assert!(of["resource"]["attributes"].as_array().is_some_and(|all| all.contains(&name)), "{of}");
        of["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default()
    };
    sent.iter().flat_map(of_one).collect()
}

fn attribute<'a>(span: &'a Value, name: &str) -> Option<&'a Value> {
    let all = span["attributes"].as_array()?;
    all.iter().find(|attribute| attribute["key"] == name)?["value"].as_object()?.values().next()
}

#[test]
fn a_collector_is_sent_spans_without_texts_and_without_people() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let (address, sent) = collector();
    let (proxy, passed) = collector();
    // Neither what is logged nor a proxy of the environment decides anything about what is traced.
    let settings = [
        ("AZERA__TELEMETRY__OTLP", address.as_str()),
        ("AZERA__LOG__LEVEL", "error"),
        ("HTTP_PROXY", &proxy),
        ("ALL_PROXY", &proxy),
    ];
    let bot = Running::with(scratch.path(), data.to_str().expect("a path"), &["--model", "scripted"], &settings);
    let session = bot.own();
    let headers: Vec<(&str, &str)> = session.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let said = json!({"session_id": "s", "message": "My secret word is heliotrope."});
    let (status, _, reply) = bot.send("POST", "/api/chat", &headers, &said);
    assert_eq!(status, 200, "{reply}");
    bot.stop();
    assert_eq!(passed.lock().expect("nobody panics").len(), 0, "the collector alone is sent spans");
    let spans = spans(&sent);
    let named =
        |name: &str| spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{name}: {spans:?}"));
    let (turn, recall, generate) = (named("turn"), named("turn.recall"), named("turn.generate"));
    assert_eq!(
        (attribute(turn, "outcome"), attribute(turn, "platform")),
        (Some(&json!("replied")), Some(&json!("web")))
    );
    assert!(attribute(turn, "completion_tokens").is_some() && attribute(turn, "first_token_ms").is_some(), "{turn}");
    for stage in [recall, generate] {
        assert_eq!((&stage["parentSpanId"], &stage["traceId"]), (&turn["spanId"], &turn["traceId"]));
        let time = |name: &str| stage[name].as_str().and_then(|ns| ns.parse::<u64>().ok()).expect("a time");
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
    }
    let asked =
        spans.iter().find(|span| attribute(span, "http.route") == Some(&json!("/api/chat"))).expect("a request");
    assert_eq!((&asked["name"], &asked["kind"]), (&json!("request"), &json!(2)));
    assert_eq!(attribute(asked, "http.response.status_code"), Some(&json!("200")));
    let told = json!(spans).to_string();
    for hidden in ["heliotrope", "web:", "Ann"] {
        assert!(!told.contains(hidden), "{hidden}: {told}");
    }
}
