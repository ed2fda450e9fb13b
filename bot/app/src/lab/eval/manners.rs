//! `azera eval manners`: checks that a model uses recalled facts, admits what it does not know, and keeps small talk
//! short. Uses the product's prompts with fixed memories, so that it measures only the model.

use std::collections::{BTreeMap, HashSet};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use azera_config::Config;
use azera_model_api::{ChatModel, ChatRequest, Sampling};
use azera_prompt::{Budget, Line, MemoryOrigin, PromptParts, RecalledMemory, compose, form_of};
use azera_types::{ManualClock, Timestamp};
use serde::Deserialize;
use serde_json::json;

use crate::bootstrap::{self, BootstrapOptions, ModelChoice};
use crate::cli::EvalFacts;
use crate::stores;

/// Fifty-two messages of ten made-up people. They share no name, topic or run of six words with the training examples.
const MESSAGES: &str = include_str!("../../../../models/dataset/eval/manners.jsonl");

/// Phrases of which one occurs in a reply that admits not knowing.
const NOT_KNOWN: [&str; 14] = [
    "don't know",
    "do not know",
    "haven't told",
    "have not told",
    "never told",
    "not told me",
    "don't remember",
    "don't recall",
    "no memory",
    "haven't mentioned",
    "haven't said",
    "can't say",
    "not sure",
    "don't have that",
];

/// Phrases of letters, which small talk must not contain.
const LETTERS: [&str; 5] = ["dear ", "sincerely", "best regards", "[your", "subject:"];

/// Maximum words of a small-talk reply.
const TALK_WORDS: usize = 60;

#[derive(Debug, Deserialize)]
struct Message {
    kind: Kind,
    who: String,
    recalled: Vec<String>,
    #[serde(rename = "asked")]
    question: String,
    keys: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Said,
    Unknown,
    Talk,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Said => "said",
            Self::Unknown => "unknown",
            Self::Talk => "talk",
        }
    }
}

pub async fn manners(config: &Config, options: EvalFacts) -> anyhow::Result<ExitCode> {
    let text = match &options.file {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?,
        None => MESSAGES.to_owned(),
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let messages = lines
        .take(options.limit.unwrap_or(usize::MAX))
        .map(|(index, line)| serde_json::from_str(line).with_context(|| format!("line {}", index + 1)))
        .collect::<anyhow::Result<Vec<Message>>>()?;
    let scratch = tempfile::tempdir().context("making a folder for the evaluation")?;
    let config = stores::scratch_config(config, scratch.path());
    let clock = Arc::new(ManualClock::new("2026-05-20T12:00:00Z".parse()?));
    let opening = BootstrapOptions {
        answers: ModelChoice::named(&options.model),
        clock,
        seed: Some(options.seed),
        on_trial: false,
    };
    let app = bootstrap::open(&config, opening).await?;
    let mut counts: BTreeMap<Kind, (usize, usize)> = BTreeMap::new();
    for (index, message) in messages.iter().enumerate() {
        let reply =
            reply(&app.model, message, u32::try_from(options.seed)?.wrapping_add(u32::try_from(index)?)).await?;
        let good = good(message, &reply);
        let count = counts.entry(message.kind).or_default();
        *count = (count.0 + usize::from(good), count.1 + 1);
        if options.show {
            let mark = if good { "+" } else { "-" };
            eprintln!("{mark} [{}] {}\n      {}", message.kind.name(), message.question, reply.replace('\n', " "));
        }
    }
    app.engine.stop().await;
    let report: serde_json::Map<_, _> =
        counts.iter().map(|(kind, (good, all))| (kind.name().to_owned(), json!({"good": good, "of": all}))).collect();
    let report = serde_json::Value::Object(report);
    println!("{}", if options.json { report.to_string() } else { serde_json::to_string_pretty(&report)? });
    Ok(ExitCode::SUCCESS)
}

/// Returns the reply of the persona Azera, with the prompt of a real turn.
async fn reply(model: &Arc<dyn ChatModel>, message: &Message, seed: u32) -> anyhow::Result<String> {
    let persona = azera_personas::built_in("azera").context("Azera is not built in")?;
    let chat_format = form_of(model.info());
    let start: Timestamp = "2026-05-02T09:00:00Z".parse()?;
    let recalled: Vec<RecalledMemory> = (0..)
        .zip(&message.recalled)
        .map(|(days, text)| {
            RecalledMemory::new(
                MemoryOrigin::Said,
                Some(message.who.clone()),
                text.clone(),
                start + jiff::Span::new().hours(days * 50),
            )
        })
        .collect();
    let line = Line { depth: 0, speaker: Some(message.who.clone()), text: message.question.clone() };
    let parts = PromptParts { recalled: &recalled, ..PromptParts::new(&persona, &line) };
    let reply_tokens = chat_format.reply_tokens.min(256);
    let budget = Budget { context_tokens: model.info().context_tokens, reply_tokens };
    let prompt = compose(&chat_format, &parts, budget, &|text| model.count_tokens(text))?;
    let request = ChatRequest {
        shared_messages: prompt.shared_messages,
        sampling: Sampling { seed: Some(seed), ..chat_format.sampling.clone() },
        max_tokens: reply_tokens,
        stop: chat_format.stop.iter().map(|stop| (*stop).to_owned()).collect(),
        ..ChatRequest::new(prompt.messages)
    };
    Ok(model.chat(request).await?.collect().await?.0)
}

fn good(message: &Message, reply: &str) -> bool {
    let lower = reply.to_lowercase().replace('\u{2019}', "'");
    let admits_not_knowing = NOT_KNOWN.iter().any(|words| lower.contains(words));
    match message.kind {
        Kind::Said => message.keys.iter().any(|key| lower.contains(key)),
        Kind::Unknown => admits_not_knowing,
        Kind::Talk => {
            let words: Vec<&str> = lower.split_whitespace().collect();
            let mut seen = HashSet::new();
            let loops = words.windows(4).any(|run| !seen.insert(run));
            let recites = message.recalled.iter().any(|line| lower.contains(&line.to_lowercase()));
            let letter = LETTERS.iter().any(|letter| lower.contains(letter));
            !words.is_empty() && words.len() <= TALK_WORDS && !loops && !recites && !letter && !admits_not_knowing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_and_bad_replies_are_recognised() {
        #[track_caller]
        fn check(kind: Kind, reply: &str, want: bool) {
            let message = Message {
                kind,
                who: "Wren".into(),
                recalled: vec!["the kite is red".into()],
                question: "?".into(),
                keys: vec!["red".into()],
            };
            assert_eq!(good(&message, reply), want, "{reply}");
        }
        check(Kind::Said, "It is Red.", true);
        check(Kind::Said, "It is blue.", false);
        check(Kind::Unknown, "I don\u{2019}t know that yet.", true);
        check(Kind::Unknown, "Your kite is red.", false);
        check(Kind::Talk, "Good morning!", true);
        check(Kind::Talk, "", false);
        check(Kind::Talk, "Dear Wren, good morning", false);
        check(Kind::Talk, "The kite is red, good morning", false);
        check(Kind::Talk, "how are you today and how are you today", false);
    }

    #[test]
    fn the_messages_can_be_read() {
        let messages: Vec<Message> = MESSAGES.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(messages.iter().all(|message| message.keys.is_empty() == (message.kind != Kind::Said)));
        assert_eq!(messages.len(), 52);
    }
}
