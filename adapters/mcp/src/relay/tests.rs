//! Tests of the relay.

use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

/// One end of a stream.
struct End {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

impl End {
    fn new(stream: DuplexStream) -> Self {
        let (input, output) = split(stream);
        Self { lines: BufReader::new(input).lines(), output }
    }

    async fn say(&mut self, message: Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().expect("a line")).unwrap()
    }
}

/// Servers that a test gives one after the other.
struct Given(Mutex<UnboundedReceiver<Link>>);

#[async_trait(?Send)]
impl Servers for Given {
    async fn connect(&self) -> Result<Link, String> {
        self.0.lock().await.try_recv().map_err(|_| "somebody has the folder".to_owned())
    }
}

fn server() -> (Link, End) {
    let (near, far) = duplex(1 << 16);
    let (input, output) = split(near);
    (Link { input: Box::new(input), output: Box::new(output) }, End::new(far))
}

fn call(id: u32, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

/// The client asks for a read and a change, and the server ends. The next one hears the handshake and the read again; of
/// the change the client is told that nobody knows.
#[tokio::test]
async fn the_next_server_goes_on_where_the_last_one_ended() {
    let (give, given) = unbounded_channel();
    let given = Given(Mutex::new(given));
    let (near, far) = duplex(1 << 16);
    let (input, output) = split(near);
    let (first, mut server_one) = server();
    let (second, mut server_two) = server();
    let client = async {
        let mut client = End::new(far);
        let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
        client.say(begin.clone()).await;
        assert_eq!(server_one.hear().await, begin);
        server_one.say(json!({"jsonrpc": "2.0", "id": 0, "result": {}})).await;
        assert_eq!(client.hear().await["id"], 0);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        for message in [initialized.clone(), call(1, "recall"), call(2, "remember")] {
            client.say(message.clone()).await;
            assert_eq!(server_one.hear().await, message);
        }
        give.send(second).unwrap();
        drop(server_one);
        let again = server_two.hear().await;
        assert_eq!((&again["method"], &again["id"]), (&json!("initialize"), &json!(REPEATED)));
        server_two.say(json!({"jsonrpc": "2.0", "id": REPEATED, "result": {}})).await;
        assert_eq!(server_two.hear().await, initialized);
        assert_eq!(server_two.hear().await, call(1, "recall"));
        let told = client.hear().await;
        assert_eq!((&told["id"], &told["error"]["code"]), (&json!(2), &json!(UNREACHABLE)), "{told}");
        server_two.say(json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await;
        assert_eq!(client.hear().await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        // No server is left: each question hears why, and a later server answers again.
        drop(server_two);
        client.say(call(3, "remember")).await;
        assert_eq!(client.hear().await["error"]["message"], "somebody has the folder");
        let (third, mut server_three) = server();
        give.send(third).unwrap();
        client.say(call(4, "remember")).await;
        let again = server_three.hear().await;
        assert_eq!(again["method"], "initialize");
        server_three.say(json!({"jsonrpc": "2.0", "id": REPEATED, "result": {}})).await;
        assert_eq!(server_three.hear().await, initialized);
        assert_eq!(server_three.hear().await, call(4, "remember"), "it was never sent before");
        // The client ends, and still hears the answer.
        client.output.shutdown().await.unwrap();
        assert!(server_three.lines.next_line().await.unwrap().is_none());
        server_three.say(json!({"jsonrpc": "2.0", "id": 4, "result": {}})).await;
        drop(server_three);
        assert_eq!(client.hear().await["id"], 4);
    };
    let (relayed, ()) = tokio::join!(relay(input, output, first, &given), client);
    relayed.unwrap();
}

/// A question that makes each server end is not asked for ever. The next question goes to the next server.
#[tokio::test]
async fn a_request_is_sent_to_a_few_servers_and_no_more() {
    let (give, given) = unbounded_channel();
    let given = Given(Mutex::new(given));
    let (near, far) = duplex(1 << 16);
    let (input, output) = split(near);
    let (first, server_one) = server();
    let mut ends = vec![server_one];
    for _ in 0..MAX_SERVERS {
        let (link, end) = server();
        give.send(link).unwrap();
        ends.push(end);
    }
    let client = async {
        let mut client = End::new(far);
        client.say(call(1, "recall")).await;
        let mut last = ends.pop().unwrap();
        for mut end in ends {
            assert_eq!(end.hear().await, call(1, "recall"));
        }
        assert_eq!(client.hear().await["error"]["message"], AGAIN);
        client.say(call(2, "recall")).await;
        assert_eq!(last.hear().await, call(2, "recall"));
        last.say(json!({"jsonrpc": "2.0", "id": 2, "result": {}})).await;
        assert_eq!(client.hear().await["id"], 2);
    };
    let (relayed, ()) = tokio::join!(relay(input, output, first, &given), client);
    relayed.unwrap();
}

/// A server answers a change and ends, and the client asks again before the answer was read.
#[tokio::test]
async fn what_a_server_answered_before_it_ended_is_told() {
    let (give, given) = unbounded_channel();
    let given = Given(Mutex::new(given));
    let (near, far) = duplex(1 << 16);
    let mut client = End::new(far);
    let (first, mut server_one) = server();
    let (second, mut server_two) = server();
    give.send(second).unwrap();
    let heard = Some(BufReader::new(first.input).lines());
    let asked = Asked::default();
    let mut relay = Relay { output: near, servers: &given, server: Some(first.output), heard, asked, ended: 0 };
    relay.ask(call(1, "remember").to_string()).await.unwrap();
    assert_eq!(server_one.hear().await, call(1, "remember"));
    server_one.say(json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await;
    drop(server_one);
    relay.ask(call(2, "recall").to_string()).await.unwrap();
    assert_eq!(client.hear().await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(server_two.hear().await, call(2, "recall"));
}

/// A server that refuses the handshake has begun no session, and the client hears why.
#[tokio::test]
async fn a_refused_handshake_begins_nothing() {
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    let mut asked = Asked::default();
    asked.take(begin.to_string());
    assert!(asked.answered(&json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -1, "message": "no"}}).to_string()));
    assert_eq!(asked.handshake(), None);
    let (given, (second, mut server_two)) = (unbounded_channel(), server());
    given.0.send(second).unwrap();
    let given = Given(Mutex::new(given.1));
    let (near, far) = duplex(1 << 16);
    let mut client = End::new(far);
    let asked = Asked { begun: Some((begin, true)), ..Asked::default() };
    let mut relay = Relay { output: near, servers: &given, server: None, heard: None, asked, ended: 0 };
    server_two.say(json!({"jsonrpc": "2.0", "id": REPEATED, "error": {"code": -1, "message": "no key"}})).await;
    relay.ask(call(1, "recall").to_string()).await.unwrap();
    assert_eq!(client.hear().await["error"]["message"], "no key");
}
