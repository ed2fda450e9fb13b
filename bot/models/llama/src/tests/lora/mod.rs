mod bad;
mod cached;
mod together;

use std::fs;

use azera_model_api::{Error, Lora, LoraId, Priority, ScoreRequest, Scorer};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::*;
use crate::RandomLora;

/// Enough noise to change any reply of the model.
const NOISE: f32 = 0.5;

fn adaptable() -> LlamaChatConfig {
    LlamaChatConfig { adaptable: true, ..config() }
}

/// Returns an engine for tests that leave nothing in it.
fn adaptable_engine() -> &'static LlamaChat {
    static ENGINE: OnceLock<Arc<LlamaChat>> = OnceLock::new();
    ENGINE.get_or_init(|| LlamaChat::load(adaptable()).unwrap())
}

/// A temporary folder with LoRAs.
struct Forge(TempDir);

impl Forge {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a LoRA of noise. Equal parameters give the same LoRA.
    fn lora(&self, rank: u16, noise: f32, seed: u64) -> Lora {
        let mut file = Vec::new();
        RandomLora { rank, noise, seed }.write(&model("smollm2-135m"), &mut file).unwrap();
        self.put(&format!("{rank}-{noise}-{seed}"), &file)
    }

    fn put(&self, name: &str, file: &[u8]) -> Lora {
        let path = self.0.path().join(name);
        fs::write(&path, file).unwrap();
        Lora::new(LoraId::new(Sha256::digest(file).into()), path)
    }
}

/// Returns a request whose reply is digits: each is one token, and one choice among ten.
fn digits(about: &str, count: usize, loras: &[Lora]) -> ChatRequest {
    let grammar = Some(Grammar::Gbnf(format!("root ::= [0-9]{{{count}}}")));
    let loras = loras.to_vec();
    ChatRequest { grammar, loras, ..greedy(vec![user(format!("Write down {about} as digits."))], count + 8) }
}

/// Returns the natural logarithm of the probability of a text as a reply, under some LoRAs.
async fn likely(engine: &LlamaChat, requested: &str, text: &str, loras: &[Lora]) -> f64 {
    let request = ScoreRequest {
        messages: vec![user(requested)],
        continuations: vec![text.to_owned()],
        within: false,
        session: None,
        priority: Priority::Foreground,
        loras: loras.to_vec(),
    };
    engine.score(request).await.unwrap()[0].log_prob
}

const PROMPT: &str = "Tell me about the sea.";
const SEA: &str =
    "The sea is deep, and nobody has seen all of it. Ships cross it by night, and whales sing below them.";

#[tokio::test]
async fn a_zero_lora_changes_nothing_and_a_noise_lora_does() {
    // An engine without other requests gives the same reply each time.
    let (engine, forge) = (LlamaChat::load(adaptable()).unwrap(), Forge::new());
    let said = async |loras: &[Lora]| {
        let request = greedy(vec![user("What is the sea?")], 32);
        ask(&engine, ChatRequest { loras: loras.to_vec(), ..request }).await.0
    };
    let bare = said(&[]).await;
    assert_eq!(said(&[forge.lora(4, 0.0, 1)]).await, bare);
    let noise = forge.lora(4, NOISE, 1);
    assert_ne!(said(std::slice::from_ref(&noise)).await, bare);
    assert_eq!(said(&[Lora { scale: 0.0, ..noise }]).await, bare);
    assert_eq!(said(&[]).await, bare);
}

#[tokio::test]
async fn loras_add_up_at_their_scales() {
    let (engine, forge) = (adaptable_engine(), Forge::new());
    let (one, two) = (forge.lora(4, NOISE, 1), forge.lora(7, NOISE, 2));
    let at = |lora: &Lora, scale| Lora { scale, ..lora.clone() };
    let bare = likely(engine, PROMPT, SEA, &[]).await;
    let first = likely(engine, PROMPT, SEA, std::slice::from_ref(&one)).await;
    let both = likely(engine, PROMPT, SEA, &[one.clone(), two.clone()]).await;
    for (a, b) in [(bare, first), (bare, both), (first, both)] {
        assert!((a - b).abs() > 2.0, "{a} and {b} should differ");
    }
    // Sums with the same result.
    for (sum, expected) in [
        (vec![at(&one, 0.5), at(&one, 0.5)], first),
        (vec![at(&one, 2.0), at(&one, -1.0)], first),
        (vec![two.clone(), one.clone()], both),
        (vec![at(&two, 0.25), one.clone(), at(&two, 0.75)], both),
        (vec![at(&two, 3.0), at(&two, -3.0)], bare),
    ] {
        let found = likely(engine, PROMPT, SEA, &sum).await;
        assert!((found - expected).abs() < 0.02 * expected.abs(), "{found} instead of {expected}");
    }
    // The LoRAs that the model was loaded with also apply to requests that name others.
    let own = LlamaChat::load(LlamaChatConfig { loras: vec![one], ..config() }).unwrap();
    for (named, expected) in [(vec![], first), (vec![two], both)] {
        let found = likely(&own, PROMPT, SEA, &named).await;
        assert!((found - expected).abs() < 0.02 * expected.abs(), "{found} instead of {expected}");
    }
}
