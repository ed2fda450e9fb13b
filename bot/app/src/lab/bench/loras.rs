//! Measures the cost of LoRAs: the model's speed with one, and the pauses that readers see when other chats switch to
//! another LoRA.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use azera_config::Config;
use azera_model_api::{ChatMessage, ChatModel, ChatRequest, Event, Lora, Role, Sampling};
use azera_model_llama::{LlamaChat, LlamaChatConfig, RandomLora};
use azera_model_registry::InstalledModel;
use serde_json::{Value, json};

use super::crowd::Crowd;
use super::inference::{REPLY_TOKENS, RUNS, long, stories, usages};
use super::rounded;
use crate::bootstrap::llama_config;
use crate::lab::measure::{median, percentile};

/// Rank of the LoRAs.
const RANK: u16 = 16;

/// Tokens of the shortest first reply. Each further chat's reply is longer than the one before, so that second turns
/// start while first replies still run.
const FIRST_TURN_TOKENS: usize = 48;
const EXTRA_TOKENS_PER_CHAT: usize = 8;

/// Tokens of the second reply.
const SECOND_TURN_TOKENS: usize = 48;

/// Loads the model once more, without the rest of the product, and measures everything on it.
pub async fn loras(config: &Config, installed: &InstalledModel, chats: usize) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir().context("making a folder for LoRAs")?;
    let mut loras = Vec::new();
    for run in 0..=RUNS as u64 + 1 {
        // These LoRAs change nothing, at the same cost. So all replies are the same.
        let mut file = Vec::new();
        RandomLora { rank: RANK, noise: 0.0, seed: run }.write(&installed.path, &mut file)?;
        let path = folder.path().join(format!("{run}.gguf"));
        std::fs::write(&path, file)?;
        loras.push(crate::loras::at(&path)?);
    }
    let config = LlamaChatConfig { adaptable: true, prefix_dir: None, ..llama_config(config, installed)? };
    let model: Arc<dyn ChatModel> = tokio::task::spawn_blocking(move || LlamaChat::load(config)).await??;
    let mut crowd = Crowd::new(4, 1);

    let [mut reading, mut writing, mut many] = [const { [const { Vec::new() }; 2] }; 3];
    // The first run warms up and does not count.
    for run in 0..=RUNS {
        let (prompt, one, all) = (long(&model, &mut crowd), stories(&mut crowd, 1), stories(&mut crowd, chats));
        for (column, with) in [&[][..], &loras[..1]].into_iter().enumerate() {
            let read = usages(&model, vec![prompt.clone()], 1, with).await?.0;
            let (alone, _) = usages(&model, one.clone(), REPLY_TOKENS, with).await?;
            let (_, rate) = usages(&model, all.clone(), REPLY_TOKENS, with).await?;
            if run > 0 {
                reading[column].extend(read.iter().map(|it| it.evaluated_tokens as f64 / it.ttft_ms * 1_000.0));
                writing[column].extend(alone.iter().map(|usage| usage.tokens_per_s));
                many[column].push(rate);
            }
        }
    }
    let [mut same_lora, mut swapped, mut longest_same_lora, mut longest_swapped] = [const { Vec::new() }; 4];
    for run in 0..=RUNS {
        let prompts = stories(&mut crowd, chats);
        let (first, second) = (&loras[run], &loras[run + 1]);
        let same = pauses(&model, &prompts, first, first).await?;
        let other = pauses(&model, &prompts, first, second).await?;
        model.forget_lora(&first.id).await?;
        if run > 0 {
            longest_same_lora.push(percentile(&same, 1.0));
            longest_swapped.push(percentile(&other, 1.0));
            same_lora.extend(same);
            swapped.extend(other);
        }
    }
    let ratio = |figures: &[Vec<f64>; 2]| rounded(median(&figures[1]) / median(&figures[0]));
    Ok(json!({
        "rank": RANK,
        "prompt_tokens_per_s": rounded(median(&reading[1])),
        "prompt_share_of_bare": ratio(&reading),
        "tokens_per_s": rounded(median(&writing[1])),
        "share_of_bare": ratio(&writing),
        "total_tokens_per_s": rounded(median(&many[1])),
        "total_share_of_bare": ratio(&many),
        "pause_ms": { "same_adapter": rounded(median(&same_lora)), "swapped": rounded(median(&swapped)) },
        "longest_pause_ms": {
            "same_adapter": rounded(median(&longest_same_lora)),
            "swapped": rounded(median(&longest_swapped)),
        },
        "swap_stall_ms": rounded(median(&longest_swapped) - median(&longest_same_lora)),
    }))
}

/// Runs two turns in each of several chats at once. The first turns use one LoRA and differ in length. The second turns
/// use another LoRA, which must still be read from its file. Returns the pauses between two pieces of each first reply,
/// in milliseconds. They show what readers notice of other chats' second turns.
async fn pauses(
    model: &Arc<dyn ChatModel>,
    prompts: &[String],
    first: &Lora,
    second: &Lora,
) -> anyhow::Result<Vec<f64>> {
    let mut chats = Vec::new();
    for (number, story) in prompts.iter().enumerate() {
        let request = |tokens, lora: &Lora| ChatRequest {
            max_tokens: tokens,
            sampling: Sampling { temperature: 0.8, seed: u32::try_from(number).ok(), ..Sampling::default() },
            loras: vec![lora.clone()],
            ..ChatRequest::new(vec![ChatMessage::new(Role::User, story.clone())])
        };
        let turns =
            [request(FIRST_TURN_TOKENS + EXTRA_TOKENS_PER_CHAT * number, first), request(SECOND_TURN_TOKENS, second)];
        let model = Arc::clone(model);
        chats.push(tokio::spawn(async move {
            let mut pauses = Vec::new();
            for (turn, request) in turns.into_iter().enumerate() {
                let mut reply = model.chat(request).await?;
                let mut last = None;
                while let Some(event) = reply.next().await {
                    if let Event::Content(_) = event? {
                        let now = Instant::now();
                        if let Some(last) = last.replace(now).filter(|_| turn == 0) {
                            pauses.push((now - last).as_secs_f64() * 1_000.0);
                        }
                    }
                }
            }
            anyhow::Ok(pauses)
        }));
    }
    let mut all = Vec::new();
    for chat in chats {
        all.extend(chat.await??);
    }
    Ok(all)
}
