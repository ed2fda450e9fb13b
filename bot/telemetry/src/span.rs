//! A span as OTLP describes it in JSON.

use serde_json::{Value, json};

/// What a span is for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Work within the program.
    Internal,
    /// The answer to a request.
    Server,
}

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Attribute {
    Text(String),
    Whole(i64),
    Real(f64),
    Truth(bool),
}

impl Attribute {
    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!({"stringValue": text}),
            // JSON's numbers lose digits of 64 bits, so OTLP writes whole numbers as texts.
            Self::Whole(number) => json!({"intValue": number.to_string()}),
            Self::Real(number) => json!({"doubleValue": number}),
            Self::Truth(truth) => json!({"boolValue": truth}),
        }
    }
}

/// Returns attributes as OTLP lists them.
pub(crate) fn listed<'a>(attributes: impl Iterator<Item = (&'a str, &'a Attribute)>) -> Value {
    attributes.map(|(name, value)| json!({"key": name, "value": value.json()})).collect()
}

/// A span.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    pub(crate) trace: u128,
    pub(crate) id: u64,
    pub(crate) parent: Option<u64>,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Nanoseconds since 1970.
    pub(crate) start_ns: i128,
    pub(crate) end_ns: i128,
    pub(crate) attributes: Vec<(&'static str, Attribute)>,
}

impl Span {
    pub(crate) fn json(&self) -> Value {
        let mut span = json!({
            "traceId": format!("{:032x}", self.trace),
            "spanId": format!("{:016x}", self.id),
            "name": self.name,
            "kind": match self.kind {
                Kind::Internal => 1,
                Kind::Server => 2,
            },
            "startTimeUnixNano": self.start_ns.to_string(),
            "endTimeUnixNano": self.end_ns.max(self.start_ns).to_string(),
            "attributes": listed(self.attributes.iter().map(|(name, value)| (*name, value))),
            "status": {},
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = json!(format!("{parent:016x}"));
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_the_form_of_otlp() {
        let span = Span {
            trace: 0xabc,
            id: 7,
            parent: Some(1),
            name: "turn.recall".into(),
            kind: Kind::Internal,
            start_ns: 1_800_000_000_000_000_001,
            end_ns: 1_800_000_000_000_000_000,
            attributes: vec![
                ("model", Attribute::Text("small".into())),
                ("tokens", Attribute::Whole(i64::MAX)),
                ("ms", Attribute::Real(1.5)),
                ("again", Attribute::Truth(true)),
            ],
        };
        let want = json!({
            "traceId": "00000000000000000000000000000abc", "spanId": "0000000000000007", "parentSpanId": "0000000000000001",
            "name": "turn.recall", "kind": 1, "startTimeUnixNano": "1800000000000000001",
            "endTimeUnixNano": "1800000000000000001", "status": {},
            "attributes": [
                {"key": "model", "value": {"stringValue": "small"}},
                {"key": "tokens", "value": {"intValue": "9223372036854775807"}},
                {"key": "ms", "value": {"doubleValue": 1.5}},
                {"key": "again", "value": {"boolValue": true}},
            ],
        });
        assert_eq!(span.json(), want);
        let root = Span { parent: None, kind: Kind::Server, ..span }.json();
        assert!(root.get("parentSpanId").is_none());
        assert_eq!(root["kind"], 2);
    }
}
