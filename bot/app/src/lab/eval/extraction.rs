//! `azera eval extraction`: evaluates which memories the product extracts from labelled conversations.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use azera_affect::{ConversationMessage, ExtractedMemory, SalienceClassifier};
use azera_config::Config;
use azera_model_api::{Priority, Purpose};
use serde::Deserialize;
use serde_json::json;

use super::labels::classifiers;
use crate::bootstrap;
use crate::cli::EvalLabels;

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

#[derive(Default)]
struct Tally {
    extracted: usize,
    correct: usize,
    of_its_kind: usize,
    expected: usize,
    /// Memories extracted from messages that hold no fact.
    junk: usize,
}

pub async fn extraction(config: &Config, options: EvalLabels) -> anyhow::Result<ExitCode> {
    let conversations = read(&options.file)?;
    let embedder = bootstrap::embedder(config).await?;
    let classifiers = classifiers(config, &embedder).await?;
    let mut tally = Tally::default();
    for conversation in &conversations {
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
        let said = conversation.turns.iter().zip(&vectors);
        let said: Vec<ConversationMessage<'_>> = said
            .map(|(turn, vectors)| ConversationMessage {
                speaker: &turn.speaker,
                is_bot: turn.bot,
                text: &turn.text,
                vectors,
            })
            .collect();
        count(conversation, &classifiers.salience.extract(&said), &mut tally, options.show);
    }
    let share = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let (precision, recall) = (share(tally.correct, tally.extracted), share(tally.correct, tally.expected));
    let of_its_kind = share(tally.of_its_kind, tally.correct);
    if options.json {
        let value = json!({
            "conversations": conversations.len(), "kept": tally.extracted, "labelled": tally.expected, "right": tally.correct,
            "precision": precision, "recall": recall, "kind_accuracy": of_its_kind, "junk": tally.junk,
        });
        println!("{value}");
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "{} conversations: {} kept, {} of them right and {} of messages with nothing to keep, {} labelled; precision \
         {precision:.3}, recall {recall:.3}; of those right {of_its_kind:.3} are of the labelled kind",
        conversations.len(),
        tally.extracted,
        tally.correct,
        tally.junk,
        tally.expected
    );
    Ok(ExitCode::SUCCESS)
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
