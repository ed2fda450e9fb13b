//! What the chat model answers about a transcript: quotes as JSON. Each one is traced to the message that it names;
//! what cannot be traced is dropped and counted.

use std::collections::BTreeMap;
use std::ops::Range;

use azera_affect::{ExtractedMemory, Kind, MessagePart, sentences_around};
use serde::Deserialize;
use serde_json::{Value, json};

use super::quote::{is_quoted_from_others, locate, repeats};
use super::transcript::{Chunk, Transcript};

/// How surely something is worth keeping, by the model's word for it. Classifiers say it as a probability.
const WEIGHTS: [(&str, f32); 3] = [("low", 0.4), ("medium", 0.7), ("high", 1.0)];

/// What became of the items of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ItemCounts {
    /// Items in the answer.
    pub found: usize,
    /// Memories that came of them. Items of one message are one memory.
    pub kept: usize,
    /// Items whose words stand in no message that may be quoted, and items that say something else than was asked.
    pub untraceable: usize,
    /// Items that only repeat what the persona or somebody else had said.
    pub repeated: usize,
}

impl ItemCounts {
    /// Returns the sum of two counts.
    pub fn plus(self, other: Self) -> Self {
        Self {
            found: self.found + other.found,
            kept: self.kept + other.kept,
            untraceable: self.untraceable + other.untraceable,
            repeated: self.repeated + other.repeated,
        }
    }
}

/// What an answer about a chunk says.
pub(super) struct Findings {
    /// The memories, in the order of their messages, at most one for each.
    pub(super) memories: Vec<ExtractedMemory>,
    /// The messages that the answer covers. They end early if the answer was cut off.
    pub(super) searched: Range<usize>,
    pub(super) counts: ItemCounts,
}

/// An item as the model writes it. The names are in alphabetical order, because grammars write them so: the message
/// comes before the words that are copied from it.
#[derive(Deserialize)]
struct Item {
    message: u64,
    #[serde(default)]
    needs: Option<u64>,
    quote: String,
    #[serde(rename = "type")]
    kind: String,
    weight: String,
}

/// An item whose words stand in the message that it names.
struct TracedItem {
    index: usize,
    span: Range<usize>,
    kind: Kind,
    probability: f32,
    needs: Option<usize>,
}

/// Why an item is dropped.
#[derive(Debug, PartialEq, Eq)]
enum Dropped {
    Untraceable,
    Repeated,
}

/// Returns the JSON schema of an answer about a chunk.
pub(super) fn schema(transcript: &Transcript<'_>, chunk: &Chunk) -> Value {
    let needs: Vec<usize> = std::iter::once(0).chain(transcript.of_people(chunk)).collect();
    let item = json!({
        "type": "object",
        "properties": {
            "message": {"type": "integer", "enum": transcript.quotable(chunk)},
            "needs": {"type": "integer", "enum": needs},
            // The length has no limit here: a grammar for one takes seconds per token, and `max_tokens` limits the answer.
            "quote": {"type": "string"},
            "type": {"type": "string", "enum": Kind::ALL.map(Kind::name)},
            "weight": {"type": "string", "enum": WEIGHTS.map(|(name, _)| name)},
        },
        "required": ["message", "needs", "quote", "type", "weight"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {"items": {"type": "array", "items": item}},
        "required": ["items"],
        "additionalProperties": false,
    })
}

/// Reads an answer about a chunk.
pub(super) fn read(answer: &str, transcript: &Transcript<'_>, chunk: &Chunk) -> Findings {
    let (items, is_whole) = items(answer);
    let mut counts = ItemCounts { found: items.len(), ..ItemCounts::default() };
    let mut by_message: BTreeMap<usize, Vec<TracedItem>> = BTreeMap::new();
    let mut end = chunk.searched.start;
    for item in items {
        match traced(item, transcript, chunk) {
            Ok(item) => {
                end = end.max(item.index + 1);
                by_message.entry(item.index).or_default().push(item);
            }
            Err(Dropped::Untraceable) => counts.untraceable += 1,
            Err(Dropped::Repeated) => counts.repeated += 1,
        }
    }
    counts.kept = by_message.len();
    let memories = by_message.into_values().filter_map(|items| joined(items, transcript)).collect();
    let end = if is_whole { chunk.searched.end } else { end };
    Findings { memories, searched: chunk.searched.start..end, counts }
}

/// Returns the items of an answer, and whether it is whole. Of an answer that was cut off, the whole items count.
fn items(answer: &str) -> (Vec<Value>, bool) {
    #[derive(Deserialize)]
    struct Whole {
        items: Vec<Value>,
    }
    if let Ok(Whole { items }) = serde_json::from_str(answer.trim()) {
        return (items, true);
    }
    let mut items = Vec::new();
    let Some((_, mut rest)) = answer.split_once("\"items\"").and_then(|(_, rest)| rest.split_once('[')) else {
        return (items, false);
    };
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(item @ Value::Object(_))) = values.next() else { return (items, false) };
        items.push(item);
        rest = rest.get(values.byte_offset()..).unwrap_or_default();
    }
}

/// Traces an item to the message that it names.
fn traced(item: Value, transcript: &Transcript<'_>, chunk: &Chunk) -> Result<TracedItem, Dropped> {
    let Ok(item) = serde_json::from_value::<Item>(item) else { return Err(Dropped::Untraceable) };
    let index_of = |number: u64| usize::try_from(number).ok().and_then(|number| chunk.index(number));
    let index = index_of(item.message).filter(|index| chunk.searched.contains(index));
    let index = index.filter(|index| transcript.may_be_quoted(*index)).ok_or(Dropped::Untraceable)?;
    let text = transcript.text(index);
    let span = locate(text, &item.quote).ok_or(Dropped::Untraceable)?;
    let kind = Kind::named(&item.kind).ok_or(Dropped::Untraceable)?;
    let weight = WEIGHTS.iter().find(|(name, _)| *name == item.weight);
    let (_, probability) = *weight.ok_or(Dropped::Untraceable)?;
    let own_replies = transcript.said.iter().take(index).filter(|said| said.is_bot).map(|said| said.text);
    let quote = text.get(span.clone()).unwrap_or_default();
    if is_quoted_from_others(text, &span) || own_replies.into_iter().any(|reply| repeats(quote, reply)) {
        return Err(Dropped::Repeated);
    }
    // A needed message is a person's, and it comes before.
    let needs = item.needs.and_then(index_of).filter(|needs| *needs < index && transcript.is_a_persons(*needs));
    Ok(TracedItem { index, span: sentences_around(text, &span), kind, probability, needs })
}

/// Joins the items of one message to one memory, because a memory refers to a message: its words reach from the first
/// to the last, and its kind is that of the most important one. Where others are quoted between them, only the most
/// important one counts.
fn joined(items: Vec<TracedItem>, transcript: &Transcript<'_>) -> Option<ExtractedMemory> {
    let index = items.first()?.index;
    let start = items.iter().map(|item| item.span.start).min()?;
    let end = items.iter().map(|item| item.span.end).max()?;
    let most = items.iter().max_by(|one, other| one.probability.total_cmp(&other.probability))?;
    let whole = |index: usize| MessagePart { message: index, span: 0..transcript.text(index).len() };
    let mut needs: Vec<usize> = items.iter().filter_map(|item| item.needs).collect();
    needs.sort_unstable();
    needs.dedup();
    let span = match is_quoted_from_others(transcript.text(index), &(start..end)) {
        true => most.span.clone(),
        false => start..end,
    };
    let own = MessagePart { message: index, span };
    let parts = needs.into_iter().map(whole).chain([own]).collect();
    Some(ExtractedMemory::of(transcript.said, most.kind, most.probability, parts))
}

#[cfg(test)]
mod tests {
    use azera_affect::ConversationMessage;

    use super::*;

    fn message<'a>(speaker: &'a str, text: &'a str) -> ConversationMessage<'a> {
        ConversationMessage { speaker, is_bot: speaker == "Azera", text, vectors: &[] }
    }

    const SAID: [(&str, &str); 5] = [
        ("Ann", "an old message about the lighthouse"),
        ("Azera", "Where is your boat now? You said that your berth number is twelve."),
        ("Ann", "Hi! It lies in\nTurku,  in  the old harbour. It rains."),
        ("Bob", "> the boat lies in Turku\nyes, your berth number is twelve"),
        ("Ann", "Bob keeps bees, Bob sings."),
    ];

    fn item(message: i64, needs: i64, quote: &str, kind: &str) -> Value {
        json!({"message": message, "needs": needs, "quote": quote, "type": kind, "weight": "high"})
    }

    fn read_all(answer: &str) -> Findings {
        let said = SAID.map(|(speaker, text)| message(speaker, text));
        let transcript = Transcript { said: &said, is_new: &[false, true, true, true, true] };
        let chunks = transcript.chunks(10_000, |text| text.len());
        assert_eq!(chunks, [Chunk { shown: 0..5, searched: 2..5 }]);
        read(answer, &transcript, &chunks[0])
    }

    fn found(items: &[Value]) -> Findings {
        read_all(&json!({"items": items}).to_string())
    }

    #[track_caller]
    fn check_dropped(item: Value, untraceable: usize, repeated: usize) {
        let findings = found(std::slice::from_ref(&item));
        let want = ItemCounts { found: 1, kept: 0, untraceable, repeated };
        assert_eq!(findings.counts, want, "{item}");
        assert!(findings.memories.is_empty());
    }

    #[test]
    fn a_quote_becomes_a_memory_of_whole_sentences_to_the_byte() {
        let findings = found(&[item(3, 1, "It lies in Turku, in the old harbour", "fact")]);
        let memory = &findings.memories[0];
        assert_eq!(memory.parts[1], MessagePart { message: 2, span: 4..43 });
        assert_eq!(
            memory.text,
            "Ann: an old message about the lighthouse\nAnn: It lies in\nTurku,  in  the old harbour."
        );
        assert_eq!((memory.kind, memory.about.as_deref()), (Kind::Fact, Some("Ann")));
        assert!((memory.importance - 0.7).abs() < 0.001);
        assert_eq!(findings.searched, 2..5);
    }

    #[test]
    fn what_cannot_be_traced_is_dropped_and_counted() {
        check_dropped(item(3, 0, "It lies in Helsinki", "fact"), 1, 0);
        check_dropped(item(3, 0, "It lies in turku", "fact"), 1, 0);
        check_dropped(item(3, 0, "", "fact"), 1, 0);
        check_dropped(item(3, 0, " , ", "fact"), 1, 0);
        check_dropped(item(4, 0, "Bob sings", "fact"), 1, 0);
        check_dropped(item(99, 0, "Bob sings", "fact"), 1, 0);
        check_dropped(item(0, 0, "Bob sings", "fact"), 1, 0);
        check_dropped(item(-5, 0, "Bob sings", "fact"), 1, 0);
        check_dropped(item(5, 0, "Bob sings", "secret"), 1, 0);
        check_dropped(json!({"message": 5, "quote": "Bob sings", "type": "fact"}), 1, 0);
        check_dropped(json!("Bob sings"), 1, 0);
        // An earlier message is only context, and the persona is nobody.
        check_dropped(item(1, 0, "an old message", "fact"), 1, 0);
        check_dropped(item(2, 0, "Where is your boat now?", "fact"), 1, 0);
    }

    #[test]
    fn what_was_said_before_is_not_kept_again() {
        check_dropped(item(4, 0, "the boat lies in Turku", "fact"), 0, 1);
        check_dropped(item(4, 0, "your berth number is twelve", "fact"), 0, 1);
        check_dropped(item(4, 0, "the boat lies in Turku yes, your berth", "fact"), 0, 1);
    }

    #[test]
    fn items_of_one_message_are_one_memory() {
        let low = json!({"message": 5, "needs": 3, "quote": "Bob keeps bees", "type": "plan", "weight": "low"});
        let findings = found(&[item(5, 9, "Bob sings", "fact"), low, item(3, 5, "It rains.", "event")]);
        assert_eq!(findings.counts, ItemCounts { found: 3, kept: 2, ..ItemCounts::default() });
        let sources: Vec<Vec<usize>> = findings.memories.iter().map(ExtractedMemory::sources).collect();
        assert_eq!(sources, [vec![2], vec![2, 4]], "a later message is not needed");
        assert_eq!(findings.memories[1].kind, Kind::Fact);
    }

    #[test]
    fn of_a_cut_off_answer_the_whole_items_count() {
        let whole = item(3, 0, "in the old harbour", "fact");
        let findings = read_all(&format!(r#"{{"items": [{whole}, {{"message":5,"needs":0,"quote":"Bob ke"#));
        assert_eq!((findings.counts.kept, findings.searched), (1, 2..3));
        for nothing in ["", "{\"ite", "Nothing is worth it.", "{\"items\": 3}", "[]", "{\"items\":[[[["] {
            let findings = read_all(nothing);
            assert_eq!((findings.counts, findings.searched), (ItemCounts::default(), 2..2), "{nothing}");
        }
        assert_eq!(read_all("{\"items\": []}").searched, 2..5);
    }

    #[test]
    fn a_schema_asks_only_for_messages_that_may_be_quoted() {
        let said = SAID.map(|(speaker, text)| message(speaker, text));
        let transcript = Transcript { said: &said, is_new: &[false, true, true, true, true] };
        let chunk = Chunk { shown: 0..5, searched: 2..5 };
        let schema = schema(&transcript, &chunk);
        let item = &schema["properties"]["items"]["items"]["properties"];
        assert_eq!(item["message"]["enum"], json!([3, 4, 5]));
        assert_eq!(item["needs"]["enum"], json!([0, 1, 3, 4, 5]));
    }

    /// What every server understands: strict ones refuse optional properties, and small ones are slow with lengths.
    #[test]
    fn a_schema_uses_only_keywords_that_every_server_knows() {
        fn check(schema: &Value) {
            let fields = schema.as_object().unwrap();
            let known = ["type", "properties", "required", "additionalProperties", "items", "enum"];
            assert!(fields.keys().all(|key| known.contains(&key.as_str())), "{schema}");
            if let Some(properties) = schema["properties"].as_object() {
                let names: Vec<&String> = properties.keys().collect();
                assert_eq!(schema["required"], json!(names));
                assert_eq!(schema["additionalProperties"], json!(false));
                properties.values().for_each(check);
            }
            if let Some(items) = fields.get("items") {
                check(items);
            }
        }
        let said = SAID.map(|(speaker, text)| message(speaker, text));
        let transcript = Transcript { said: &said, is_new: &[true; 5] };
        check(&schema(&transcript, &Chunk { shown: 0..5, searched: 0..5 }));
    }
}
