//! `azera eval extraction`: evaluates which memories the product extracts from labelled conversations, by classifiers
//! and by a chat model.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use azera_affect::{ConversationMessage, ExtractedMemory, SalienceClassifier};
use azera_config::Config;
use azera_engine::{ItemCounts, ModelExtraction};
use azera_model_api::{Embedder, Priority, Purpose};
use azera_types::SystemClock;
use serde::Deserialize;
use serde_json::json;

use super::labels::classifiers;
use crate::bootstrap::{self, BootstrapOptions, ModelChoice};
use crate::cli::EvalExtraction;
use crate::stores;

/// A conversation and the facts worth remembering in it.
#[derive(Deserialize)]
struct Conversation {
    turns: Vec<Turn>,
    facts: Vec<Fact>,
}

#[derive(Deserialize)]
struct Turn {
    id: String,
    speaker: String,
    #[serde(default)]
    bot: bool,
    text: String,
}

/// A fact worth remembering. A memory matches it if they share a source and the memory has a word of each group.
#[derive(Deserialize)]
struct Fact {
    kind: String,
    text: String,
    sources: Vec<String>,
    keys: Vec<Vec<String>>,
}

impl Conversation {
    fn said<'a>(&'a self, vectors: &'a [Vec<Vec<f32>>]) -> Vec<ConversationMessage<'a>> {
        let said = self.turns.iter().zip(vectors);
        let said = said.map(|(turn, vectors)| ConversationMessage {
            speaker: &turn.speaker,
            is_bot: turn.bot,
            text: &turn.text,
            vectors,
        });
        said.collect()
    }
}

#[derive(Default)]
struct Tally {
    extracted: usize,
    correct: usize,
    of_its_kind: usize,
    expected: usize,
    /// Memories extracted from messages that hold no fact.
    junk: usize,
}

/// How memories are extracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the classifiers.
    Classifiers,
    /// By the chat model; by the classifiers where no answer covers a message.
    Model,
    /// By the chat model, and by the classifiers in messages where it found nothing. This is what the product does.
    Both,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Classifiers => "classifiers",
            Self::Model => "model",
            Self::Both => "both",
        }
    }
}

pub async fn extraction(config: &Config, options: EvalExtraction) -> anyhow::Result<ExitCode> {
    let mut conversations = read(&options.labels.file)?;
    conversations.truncate(options.limit.unwrap_or(usize::MAX));
    let scratch = tempfile::tempdir().context("making a folder for the evaluation")?;
    let config = stores::scratch_config(config, scratch.path());
    let embedder = bootstrap::embedder(&config).await?;
    let classifiers = classifiers(&config, &embedder).await?;
    let app = match &options.model {
        Some(model) => Some(bootstrap::open(&config, opening(model)).await?),
        None => None,
    };
    let ways = if app.is_some() { &[Way::Classifiers, Way::Model, Way::Both][..] } else { &[Way::Classifiers] };
    let mut tallies: Vec<(Way, Tally)> = ways.iter().map(|way| (*way, Tally::default())).collect();
    let mut by_model = ItemCounts::default();
    let mut model_s = 0.0;
    for conversation in &conversations {
        let vectors = vectors(conversation, embedder.as_ref()).await?;
        let said = conversation.said(&vectors);
        let classified = classifiers.salience.extract(&said);
        let found = match &app {
            Some(app) => {
                let begun = Instant::now();
                let found = app.engine.extract_by_model(&said).await?;
                model_s += begun.elapsed().as_secs_f64();
                by_model = by_model.plus(found.counts);
                found
            }
            None => ModelExtraction::default(),
        };
        for (way, tally) in &mut tallies {
            // Only the last way shows its mistakes.
            let shows = options.labels.show && ways.last() == Some(way);
            count(conversation, &combined(*way, &classified, &found), tally, shows);
        }
    }
    if let Some(app) = app {
        app.engine.stop().await;
    }
    for (way, tally) in &tallies {
        print(*way, tally, conversations.len(), options.labels.json);
    }
    if options.model.is_some() {
        let ItemCounts { found, kept, untraceable, repeated } = by_model;
        let each_s = model_s / conversations.len() as f64;
        let counts = json!({
            "items": found, "kept": kept, "untraceable": untraceable, "repeated": repeated, "seconds_each": each_s,
        });
        println!("{counts}");
    }
    Ok(ExitCode::SUCCESS)
}

fn opening(model: &str) -> BootstrapOptions {
    BootstrapOptions {
        answers: ModelChoice::named(model),
        clock: Arc::new(SystemClock),
        seed: Some(0),
        on_trial: false,
    }
}

/// Returns the vectors of each message's sentences.
async fn vectors(conversation: &Conversation, embedder: &dyn Embedder) -> anyhow::Result<Vec<Vec<Vec<f32>>>> {
    let mut vectors = Vec::with_capacity(conversation.turns.len());
    for turn in &conversation.turns {
        let sentences: Vec<String> = match turn.bot {
            true => Vec::new(),
            false => SalienceClassifier::sentences(&turn.text).into_iter().map(str::to_owned).collect(),
        };
        vectors.push(match sentences.is_empty() {
            true => Vec::new(),
            false => embedder.embed(sentences, Purpose::Document, Priority::Foreground).await?,
        });
    }
    Ok(vectors)
}

/// Returns the memories that a way extracts, in the order of their messages.
fn combined(way: Way, classified: &[ExtractedMemory], found: &ModelExtraction) -> Vec<ExtractedMemory> {
    let last = |memory: &ExtractedMemory| memory.parts.last().map(|part| part.message);
    let is_found = |memory: &ExtractedMemory| found.memories.iter().any(|other| last(other) == last(memory));
    let is_searched = |memory: &ExtractedMemory| {
        last(memory).and_then(|message| found.searched.get(message)).copied().unwrap_or(false)
    };
    let counts = |memory: &&ExtractedMemory| match way {
        Way::Classifiers => true,
        Way::Model => !is_searched(memory),
        Way::Both => !is_found(memory),
    };
    let by_model = found.memories.iter().filter(|_| way != Way::Classifiers);
    let mut memories: Vec<ExtractedMemory> = by_model.chain(classified.iter().filter(counts)).cloned().collect();
    memories.sort_by_key(last);
    memories
}

fn print(way: Way, tally: &Tally, conversations: usize, as_json: bool) {
    let share = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let (precision, recall) = (share(tally.correct, tally.extracted), share(tally.correct, tally.expected));
    let of_its_kind = share(tally.of_its_kind, tally.correct);
    if as_json {
        let value = json!({
            "by": way.name(), "conversations": conversations, "kept": tally.extracted, "labelled": tally.expected,
            "right": tally.correct, "precision": precision, "recall": recall, "kind_accuracy": of_its_kind,
            "junk": tally.junk,
        });
        println!("{value}");
        return;
    }
    println!(
        "{}: {conversations} conversations: {} kept, {} of them right and {} of messages with nothing to keep, {} \
         labelled; precision {precision:.3}, recall {recall:.3}; of those right {of_its_kind:.3} are of the labelled kind",
        way.name(),
        tally.extracted,
        tally.correct,
        tally.junk,
        tally.expected
    );
}

fn read(file: &Path) -> anyhow::Result<Vec<Conversation>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let conversations: anyhow::Result<Vec<Conversation>> = lines
        .map(|(index, line)| serde_json::from_str(line).with_context(|| format!("{}:{}", file.display(), index + 1)))
        .collect();
    let conversations = conversations?;
    ensure!(!conversations.is_empty(), "{} holds no conversation", file.display());
    Ok(conversations)
}

/// Compares extracted memories with the labelled facts. Each fact matches once.
fn count(conversation: &Conversation, extracted: &[ExtractedMemory], tally: &mut Tally, show: bool) {
    let mut open: Vec<&Fact> = conversation.facts.iter().collect();
    tally.expected += open.len();
    tally.extracted += extracted.len();
    for memory in extracted {
        let sources: Vec<&str> = memory
            .sources()
            .into_iter()
            .filter_map(|number| conversation.turns.get(number))
            .map(|turn| turn.id.as_str())
            .collect();
        let shares = |fact: &Fact| fact.sources.iter().any(|source| sources.contains(&source.as_str()));
        tally.junk += usize::from(!conversation.facts.iter().any(shares));
        let text = memory.text.to_lowercase();
        let is_it = |fact: &&Fact| {
            shares(fact) && fact.keys.iter().all(|group| group.iter().any(|key| text.contains(&key.to_lowercase())))
        };
        match open.iter().position(is_it) {
            Some(index) => {
                let fact = open.swap_remove(index);
                tally.correct += 1;
                tally.of_its_kind += usize::from(fact.kind == memory.kind.name());
            }
            None if show => println!("kept and not labelled [{}]: {}", memory.kind, memory.text.replace('\n', " / ")),
            None => {}
        }
    }
    if show {
        open.iter().for_each(|fact| println!("labelled and not kept [{}]: {}", fact.kind, fact.text));
    }
}

#[cfg(test)]
mod tests {
    use azera_affect::MessagePart;

    use super::*;

    #[test]
    fn the_classifiers_fill_in_what_the_model_did_not_search() {
        let memory = |message: usize| ExtractedMemory {
            kind: azera_affect::Kind::Fact,
            parts: vec![MessagePart { message, span: 0..1 }],
            text: String::new(),
            importance: 0.5,
            about: None,
        };
        let classified: Vec<ExtractedMemory> = (0..4).map(memory).collect();
        let searched = vec![true, true, true, false];
        let found = ModelExtraction { memories: vec![memory(1)], searched, ..ModelExtraction::default() };
        let of = |way| {
            let memories = combined(way, &classified, &found);
            memories.iter().map(|memory| memory.sources()[0]).collect::<Vec<_>>()
        };
        assert_eq!(of(Way::Classifiers), [0, 1, 2, 3]);
        assert_eq!(of(Way::Model), [1, 3]);
        assert_eq!(of(Way::Both), [0, 1, 2, 3]);
    }

    #[test]
    fn a_fact_is_found_once_by_its_source_and_its_words() {
        let line = r#"{"turns": [{"id": "t1", "speaker": "Ann", "text": "I moved to Turin. My cat is called Tom."},
            {"id": "t2", "speaker": "Ann", "text": "It rains."}],
            "facts": [{"kind": "event", "text": "", "sources": ["t1"], "keys": [["turin"], ["moved", "lives"]]}]}"#;
        let conversation: Conversation = serde_json::from_str(line).unwrap();
        let extracted = |text: &str, kind| ExtractedMemory {
            kind,
            parts: vec![MessagePart { message: 0, span: 0..1 }],
            text: text.into(),
            importance: 0.5,
            about: None,
        };
        let mut tally = Tally::default();
        let event = extracted("Ann: I moved to Turin.", azera_affect::Kind::Event);
        let mut rain = extracted("Ann: It rains.", azera_affect::Kind::Event);
        rain.parts[0].message = 1;
        let all = [extracted("Ann: Tom.", azera_affect::Kind::Fact), event.clone(), event, rain];
        count(&conversation, &all, &mut tally, false);
        assert_eq!((tally.extracted, tally.correct, tally.of_its_kind, tally.expected, tally.junk), (4, 1, 1, 1, 1));
    }
}
