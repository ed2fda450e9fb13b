//! Tests with the real small models, which `make test` puts into the directory AZERA_TEST_MODELS.

mod cache;
mod embed;
mod lora;
mod reply;
mod schedule;
mod score;
mod training;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use azera_model_api::{ChatMessage, ChatModel, ChatRequest, Event, Grammar, Reply, Role, Sampling, SessionKey, Usage};

use crate::{LlamaChat, LlamaChatConfig};

/// Returns the file of a test model.
#[expect(clippy::disallowed_methods, reason = "only the test runner can say where the models are")]
pub(crate) fn model(name: &str) -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_MODELS")
        .expect("AZERA_TEST_MODELS must name the directory of the test models; `make test` sets it");
    let path = PathBuf::from(dir).join(name).join("model.gguf");
    assert!(path.is_file(), "the test model {} is missing; `make test` fetches it", path.display());
    path
}

fn config() -> LlamaChatConfig {
    LlamaChatConfig {
        context_tokens: 2_048,
        cache_tokens: 8_192,
        ..LlamaChatConfig::new(model("smollm2-135m"), "smollm2-135m", "smollm2")
    }
}

/// Returns an engine that is shared by all tests without special requirements.
fn shared_engine() -> &'static LlamaChat {
    static ENGINE: OnceLock<Arc<LlamaChat>> = OnceLock::new();
    ENGINE.get_or_init(|| LlamaChat::load(config()).unwrap())
}

fn system(text: impl Into<String>) -> ChatMessage {
    ChatMessage::new(Role::System, text)
}

fn user(text: impl Into<String>) -> ChatMessage {
    ChatMessage::new(Role::User, text)
}

fn assistant(text: impl Into<String>) -> ChatMessage {
    ChatMessage::new(Role::Assistant, text)
}

/// Returns a greedy request of at most `max_tokens`.
fn greedy(messages: Vec<ChatMessage>, max_tokens: usize) -> ChatRequest {
    ChatRequest { sampling: Sampling::greedy(), max_tokens, ..ChatRequest::new(messages) }
}

/// Returns a request whose reply always reaches its limit, because the grammar never lets it end.
fn endless(max_tokens: usize) -> ChatRequest {
    let grammar = Some(Grammar::Gbnf("root ::= [a-z ]+ \"\\n\" root".into()));
    ChatRequest { grammar, ..greedy(vec![user("Tell me a long story.")], max_tokens) }
}

/// Returns a request whose reply can only be `text`.
fn fixed(text: &str) -> ChatRequest {
    let grammar = Some(Grammar::Gbnf(format!("root ::= \"{text}\"")));
    ChatRequest { grammar, ..greedy(vec![user("Say something.")], 1_000) }
}

/// Returns a conversation about a code word that ends with the request to repeat it.
fn code_word_talk(word: &str) -> Vec<ChatMessage> {
    vec![
        user("The code word is: teapot. Repeat the code word."),
        assistant("The code word is: teapot"),
        user(format!("The code word is: {word}. Repeat the code word.")),
    ]
}

fn one_of(words: &[&str]) -> Option<Grammar> {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    Some(Grammar::Gbnf(format!("root ::= \"The code word is: \" ({})", words.join(" | "))))
}

fn session(name: &str) -> Option<SessionKey> {
    Some(SessionKey::new(name))
}

/// Returns a persona's prompt of some hundred tokens.
fn persona(name: &str) -> ChatMessage {
    let mut text = format!("You are {name}, a keeper of an old lighthouse who likes to talk.\n");
    for (i, trait_) in
        ["patient", "curious", "dry", "kind", "stubborn", "musical", "tidy", "sleepless"].iter().enumerate()
    {
        text.push_str(&format!(
            "Rule {i}: {name} is {trait_}, speaks in short sentences, remembers what people tell, and never invents facts \
             about them or about the sea.\n"
        ));
    }
    system(text)
}

async fn ask(engine: &LlamaChat, request: ChatRequest) -> (String, Usage) {
    engine.chat(request).await.unwrap().collect().await.unwrap()
}

/// Reads up to the first piece of content.
async fn first_piece(reply: &mut Reply) -> String {
    loop {
        match reply.next().await.unwrap().unwrap() {
            Event::Content(piece) => return piece,
            Event::Done(usage) => panic!("the reply ended before it began: {usage:?}"),
            _ => {}
        }
    }
}
