//! The engine's settings of conversations, as the configuration and the model give them.

use anyhow::Context;
use azera_config::Config;
use azera_engine::ChatConfig;
use azera_memory::{Answering, Limits};
use azera_model_api::ModelInfo;
use azera_types::PersonaId;

/// Returns the settings. `seed` makes replies reproducible.
pub fn chat_config(config: &Config, model: &ModelInfo, seed: Option<u64>) -> anyhow::Result<ChatConfig> {
    let window = config.models.context_tokens as usize;
    // The model's own context may be smaller.
    let reply_tokens = config.reply_tokens_in(u32::try_from(model.context_tokens).unwrap_or(u32::MAX)) as usize;
    let context_tokens = match config.chat.prompt_tokens {
        Some(prompt) => (prompt as usize + reply_tokens).min(window),
        None => window,
    };
    let chat_config = ChatConfig {
        persona: PersonaId::new(&config.chat.persona).context("chat.persona")?,
        user_persona: PersonaId::new(&config.chat.user_persona).context("chat.user_persona")?,
        wake_names: config.chat.wake_names.iter().map(|name| azera_types::composed(name).into_owned()).collect(),
        answering: match config.chat.answer {
            azera_config::Answer::Addressed => Answering::Addressed,
            azera_config::Answer::Always => Answering::Always,
            azera_config::Answer::Never => Answering::Never,
        },
        queue_per_chat: config.chat.queue_per_chat as usize,
        history_messages: config.chat.history_messages as usize,
        reply_tokens,
        context_tokens,
        thinking: config.models.thinking,
        thinking_tokens: config.models.thinking_tokens as usize,
        sampling: config.sampling.clone(),
        seed,
        recalled: config.memory.top_k.map(|lines| lines as usize),
        locale: config.chat.locale.clone(),
        limits: Limits { candidates: config.memory.candidates as usize },
        garden: config.gardener.clone(),
        projects: config.projects.clone(),
    };
    // `chat.prompt_tokens` is about the prompt alone.
    let thoughts = chat_config.thoughts_of(model);
    Ok(ChatConfig { context_tokens: (context_tokens + thoughts).min(window), ..chat_config })
}
