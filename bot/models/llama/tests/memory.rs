//! Tests the memory that LoRAs leave behind, in a process of its own.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::Command;

use azera_model_api::{ChatMessage, ChatModel, ChatRequest, Lora, LoraId, Role};
use azera_model_llama::{LlamaChat, LlamaChatConfig, RandomLora};
use sha2::{Digest, Sha256};

#[expect(clippy::disallowed_methods, reason = "only the test runner can say where the models are")]
fn model() -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_MODELS")
        .expect("AZERA_TEST_MODELS must name the directory of the test models; `make test` sets it");
    PathBuf::from(dir).join("smollm2-135m/model.gguf")
}

/// Returns this process's bytes without a file behind them.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn lora(dir: &Path, seed: u64) -> (Lora, u64) {
    let mut file = Vec::new();
    RandomLora { rank: 64, noise: 0.01, seed }.write(&model(), &mut file).unwrap();
    let path = dir.join(seed.to_string());
    std::fs::write(&path, &file).unwrap();
    (Lora::new(LoraId::new(Sha256::digest(&file).into()), path), file.len() as u64)
}

/// The variable with which the program starts itself, so that glibc returns freed blocks from this size on. Otherwise glibc
/// keeps more freed memory than a LoRA has.
const RETURNED_FROM: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "1048576");

/// Runs a test again in a process with [`RETURNED_FROM`]. Returns false in that process.
#[expect(clippy::disallowed_methods, reason = "the process's own variable, not the product's")]
fn runs_apart(test: &str) -> bool {
    if std::env::var_os(RETURNED_FROM.0).is_some() {
        return false;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let status = command.args(["--exact", test, "--nocapture"]).env(RETURNED_FROM.0, RETURNED_FROM.1).status();
    assert!(status.unwrap().success(), "the process above failed");
    true
}

#[tokio::test]
async fn released_loras_take_no_memory() {
    if runs_apart("released_loras_take_no_memory") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let config = LlamaChatConfig {
        context_tokens: 512,
        cache_tokens: 512,
        adaptable: true,
        ..LlamaChatConfig::new(model(), "smollm2-135m", "smollm2")
    };
    let engine = LlamaChat::load(config).unwrap();
    let mut first = None;
    for seed in 0..7 {
        let (lora, bytes) = lora(dir.path(), seed);
        let request = ChatRequest {
            loras: vec![lora.clone()],
            max_tokens: 2,
            ..ChatRequest::new(vec![ChatMessage::new(Role::User, "Hello.")])
        };
        engine.chat(request).await.unwrap().collect().await.unwrap();
        engine.forget_lora(&lora.id).await.unwrap();
        let more = resident().saturating_sub(*first.get_or_insert_with(resident));
        // The last one may not have been released yet; a second one that stays would show.
        assert!(more < 2 * bytes, "{} MB more after {seed} more adapters of {} MB", more >> 20, bytes >> 20);
    }
}
