//! Sends finished spans to the collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::span::{Attribute, Span, listed};

/// Time between two batches.
const EVERY: Duration = Duration::from_secs(2);

/// Most spans of a batch.
const MAX_BATCH: usize = 512;

/// Longest wait for the collector to take a batch.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How long a collector is left alone that did not take a batch.
const PAUSE: Duration = Duration::from_secs(30);

/// The path under which collectors take spans.
const PATH: &str = "/v1/traces";

/// Sends spans in batches.
pub struct Exporter {
    url: String,
    client: reqwest::Client,
    resource: Value,
    finished: mpsc::Receiver<Span>,
    dropped: Arc<AtomicU64>,
    /// When the collector may be asked again; `None` while it answers.
    away_until: Option<Instant>,
}

impl Exporter {
    pub(crate) fn new(
        address: &str,
        version: &str,
        finished: mpsc::Receiver<Span>,
        dropped: Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let base = address.trim_end_matches('/');
        let url = format!("{base}{PATH}");
        let parsed = reqwest::Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        if parsed.is_none_or(|url| !url.has_host()) {
            return Err(Error::Address(address.to_owned()));
        }
        // A proxy of the environment may be anywhere; only the collector gets the spans.
        let client = reqwest::Client::builder().timeout(TIMEOUT).redirect(reqwest::redirect::Policy::none()).no_proxy();
        let client = client.build().map_err(|error| Error::Client(error.to_string()))?;
        let attributes = [
            ("service.name", Attribute::Text("azera".to_owned())),
            ("service.version", Attribute::Text(version.to_owned())),
        ];
        let resource = json!({"attributes": listed(attributes.iter().map(|(name, value)| (*name, value)))});
        Ok(Self { url, client, resource, finished, dropped, away_until: None })
    }

    /// Sends what ends, until `stop` is cancelled. Then sends the rest once.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let stopped = tokio::select! {
                () = stop.cancelled() => true,
                _ = tick.tick() => false,
            };
            self.send_waiting().await;
            if stopped {
                return;
            }
        }
    }

    async fn send_waiting(&mut self) {
        if self.away_until.is_some_and(|until| Instant::now() < until) {
            // The queue fills meanwhile, and then drops.
            return;
        }
        loop {
            let mut batch = Vec::new();
            while batch.len() < MAX_BATCH
                && let Ok(span) = self.finished.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() || !self.send(&batch).await {
                return;
            }
        }
    }

    /// Sends a batch. Returns false if the collector did not take it.
    async fn send(&mut self, batch: &[Span]) -> bool {
        let answer = self.client.post(&self.url).json(&request(&self.resource, batch)).send().await;
        let failure = match answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answered {}", answer.status().as_u16())),
            Err(error) => Some(error.without_url().to_string()),
        };
        match failure {
            None => {
                let dropped = self.dropped.swap(0, Ordering::Relaxed);
                if self.away_until.take().is_some() || dropped > 0 {
                    tracing::info!(dropped, "the collector takes spans again");
                }
                true
            }
            Some(why) => {
                self.dropped.fetch_add(u64::try_from(batch.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
                if self.away_until.is_none() {
                    tracing::warn!(%why, "the collector takes no spans; they are dropped until it does");
                }
                self.away_until = Some(Instant::now() + PAUSE);
                false
            }
        }
    }
}

/// Returns the body of a request.
fn request(resource: &Value, batch: &[Span]) -> Value {
    let spans: Vec<Value> = batch.iter().map(Span::json).collect();
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "azera"}, "spans": spans}]}]})
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::span::Kind;

    fn span(id: u64) -> Span {
        let attributes = vec![("model", Attribute::Text("small".into()))];
        Span {
            trace: 5,
            id,
            parent: None,
            name: "turn".into(),
            kind: Kind::Internal,
            start_ns: 1,
            end_ns: 2,
            attributes,
        }
    }

    /// Takes one request, and answers with this status. Returns the request's head and body.
    async fn take(listener: &TcpListener, status: &str) -> (String, Value) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        loop {
            let mut buffer = [0; 4_096];
            let count = stream.read(&mut buffer).await.unwrap();
            read.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&read).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            if let Ok(body) = serde_json::from_str(body) {
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}");
                stream.write_all(answer.as_bytes()).await.unwrap();
                return (head.to_owned(), body);
            }
        }
    }

    fn exporter(listener: &TcpListener, room: usize) -> (mpsc::Sender<Span>, Exporter) {
        let (sender, finished) = mpsc::channel(room);
        let address = format!("http://{}/", listener.local_addr().unwrap());
        (sender, Exporter::new(&address, "1.2.3", finished, Arc::default()).unwrap())
    }

    #[tokio::test]
    async fn a_batch_has_the_form_of_otlp() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (sender, mut exporter) = exporter(&listener, 8);
        for id in [7, 8] {
            sender.try_send(span(id)).unwrap();
        }
        let ((head, body), ()) = tokio::join!(take(&listener, "200 OK"), exporter.send_waiting());
        let head = head.to_lowercase();
        assert!(
            head.starts_with("post /v1/traces http/1.1") && head.contains("content-type: application/json"),
            "{head}"
        );
        let attributes = json!([
            {"key": "service.name", "value": {"stringValue": "azera"}},
            {"key": "service.version", "value": {"stringValue": "1.2.3"}},
        ]);
        let of = &body["resourceSpans"][0];
        assert_eq!(of["resource"]["attributes"], attributes);
        assert_eq!(of["scopeSpans"][0]["spans"], json!([span(7).json(), span(8).json()]));
    }

    #[tokio::test]
    async fn spans_are_dropped_while_the_collector_is_away() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (sender, mut exporter) = exporter(&listener, 8);
        sender.try_send(span(7)).unwrap();
        tokio::join!(take(&listener, "503 Service Unavailable"), exporter.send_waiting());
        assert_eq!(exporter.dropped.load(Ordering::Relaxed), 1);
        sender.try_send(span(8)).unwrap();
        // It is left alone, so nothing is sent and the span waits.
        exporter.send_waiting().await;
        exporter.away_until = Some(Instant::now());
        let ((_, body), ()) = tokio::join!(take(&listener, "200 OK"), exporter.send_waiting());
        assert_eq!(body["resourceSpans"][0]["scopeSpans"][0]["spans"], json!([span(8).json()]));
        assert_eq!((exporter.dropped.load(Ordering::Relaxed), exporter.away_until), (0, None));
    }

    #[tokio::test]
    async fn the_rest_is_sent_at_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (sender, exporter) = exporter(&listener, 8);
        sender.try_send(span(7)).unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        let ((_, body), ()) = tokio::join!(take(&listener, "200 OK"), exporter.run(stop));
        assert_eq!(body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn only_addresses_of_servers_are_taken() {
        let made = |address: &str| Exporter::new(address, "1", mpsc::channel(1).1, Arc::default()).is_ok();
        for address in ["http://127.0.0.1:4318", "https://collector.example.org/", "http://[::1]:4318/otel"] {
            assert!(made(address), "{address}");
        }
        for address in ["", "127.0.0.1:4318", "file:///etc/passwd", "http://", "grpc://x:4317"] {
            assert!(!made(address), "{address}");
        }
    }
}
