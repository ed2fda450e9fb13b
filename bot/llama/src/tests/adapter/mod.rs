mod bad;
mod kept;
mod together;

use std::fs;

use azera_model::{Adapter, AdapterId, Error, Priority, ScoreRequest, Scorer};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::*;
use crate::MadeUp;

/// Noise that changes what a model says, whatever it is asked.
const NOISE: f32 = 0.5;

fn adaptable() -> LlamaChatConfig {
    LlamaChatConfig { adaptable: true, ..config() }
}

/// An engine for tests that leave nothing in it.
fn adaptable_engine() -> &'static LlamaChat {
    static ENGINE: OnceLock<Arc<LlamaChat>> = OnceLock::new();
    ENGINE.get_or_init(|| LlamaChat::load(adaptable()).unwrap())
}

/// Adapters in a folder of their own.
struct Forge(TempDir);

impl Forge {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// An adapter of noise; equal ones are one.
    fn adapter(&self, rank: u16, noise: f32, seed: u64) -> Adapter {
        let mut file = Vec::new();
        MadeUp { rank, noise, seed }.write(&model("smollm2-135m"), &mut file).unwrap();
        self.put(&format!("{rank}-{noise}-{seed}"), &file)
    }

    fn put(&self, name: &str, file: &[u8]) -> Adapter {
        let path = self.0.path().join(name);
        fs::write(&path, file).unwrap();
        Adapter::new(AdapterId::new(Sha256::digest(file).into()), path)
    }
}

/// A request whose reply is digits: each is one token, and one choice among ten.
fn digits(about: &str, count: usize, adapters: &[Adapter]) -> ChatRequest {
    let grammar = Some(Grammar::Gbnf(format!("root ::= [0-9]{{{count}}}")));
    let adapters = adapters.to_vec();
    ChatRequest { grammar, adapters, ..greedy(vec![user(format!("Write down {about} as digits."))], count + 8) }
}

/// The natural logarithm of how likely a text is as a reply, with some adapters.
async fn likely(engine: &LlamaChat, asked: &str, text: &str, adapters: &[Adapter]) -> f64 {
    let request = ScoreRequest {
        messages: vec![user(asked)],
        continuations: vec![text.to_owned()],
        within: false,
        session: None,
        priority: Priority::Live,
        adapters: adapters.to_vec(),
    };
    engine.score(request).await.unwrap()[0].log_prob
}

const ASKED: &str = "Tell me about the sea.";
const SEA: &str =
    "The sea is deep, and nobody has seen all of it. Ships cross it by night, and whales sing below them.";

#[tokio::test]
async fn an_adapter_of_nothing_changes_nothing_and_one_of_noise_does() {
    // With nobody beside it, a reply is the same each time.
    let (engine, forge) = (LlamaChat::load(adaptable()).unwrap(), Forge::new());
    let said = async |adapters: &[Adapter]| {
        let request = greedy(vec![user("What is the sea?")], 32);
        ask(&engine, ChatRequest { adapters: adapters.to_vec(), ..request }).await.0
    };
    let bare = said(&[]).await;
    assert_eq!(said(&[forge.adapter(4, 0.0, 1)]).await, bare);
    let noise = forge.adapter(4, NOISE, 1);
    assert_ne!(said(std::slice::from_ref(&noise)).await, bare);
    assert_eq!(said(&[Adapter { scale: 0.0, ..noise }]).await, bare);
    assert_eq!(said(&[]).await, bare);
}

#[tokio::test]
async fn adapters_add_up_at_their_scales() {
    let (engine, forge) = (adaptable_engine(), Forge::new());
    let (one, two) = (forge.adapter(4, NOISE, 1), forge.adapter(7, NOISE, 2));
    let at = |adapter: &Adapter, scale| Adapter { scale, ..adapter.clone() };
    let bare = likely(engine, ASKED, SEA, &[]).await;
    let first = likely(engine, ASKED, SEA, std::slice::from_ref(&one)).await;
    let both = likely(engine, ASKED, SEA, &[one.clone(), two.clone()]).await;
    for (a, b) in [(bare, first), (bare, both), (first, both)] {
        assert!((a - b).abs() > 2.0, "{a} and {b} should differ");
    }
    // Sums that come to the same.
    for (sum, expected) in [
        (vec![at(&one, 0.5), at(&one, 0.5)], first),
        (vec![at(&one, 2.0), at(&one, -1.0)], first),
        (vec![two.clone(), one.clone()], both),
        (vec![at(&two, 0.25), one.clone(), at(&two, 0.75)], both),
        (vec![at(&two, 3.0), at(&two, -3.0)], bare),
    ] {
        let found = likely(engine, ASKED, SEA, &sum).await;
        assert!((found - expected).abs() < 0.02 * expected.abs(), "{found} instead of {expected}");
    }
    // What the model was loaded with lies under what a request names.
    let own = LlamaChat::load(LlamaChatConfig { adapters: vec![one], ..config() }).unwrap();
    for (named, expected) in [(vec![], first), (vec![two], both)] {
        let found = likely(&own, ASKED, SEA, &named).await;
        assert!((found - expected).abs() < 0.02 * expected.abs(), "{found} instead of {expected}");
    }
}
