//! Checks names in the configuration that stand for something outside of it: personas and model families.

use anyhow::bail;
use azera_config::{Chat, Config};
use azera_memory::Memory;
use azera_model_api::ModelInfo;
use azera_prompt::form_of;

/// Families whose prompt format a chat server's model may use.
const FAMILIES: [&str; 8] = ["auto", "smollm2", "qwen2", "qwen3", "llama3", "gemma3", "mistral", "generic"];

/// Returns the ids of the operator's personas.
pub fn persona_ids(memory: &Memory) -> anyhow::Result<Vec<String>> {
    Ok(memory.personas().list(None)?.iter().map(|row| row.id.to_string()).collect())
}

/// Fails if a configured persona is not among the `known` ones. A default that somebody removed is no mistake.
pub fn ensure_personas(config: &Config, known: &[String]) -> anyhow::Result<()> {
    let defaults = Chat::default();
    for (key, id, default) in [
        ("chat.persona", &config.chat.persona, &defaults.persona),
        ("chat.user_persona", &config.chat.user_persona, &defaults.user_persona),
    ] {
        if id != default && !known.contains(id) {
            bail!("`{key}` names no persona: {id:?}; {}", hint(id, known));
        }
    }
    Ok(())
}

/// Says so if a role of the person is configured and the model's prompts have no room for it.
pub fn role_left_out(config: &Config, model: &ModelInfo) -> Option<String> {
    let role = &config.chat.user_persona;
    let is_chosen = *role != Chat::default().user_persona;
    (is_chosen && !form_of(model).guidance).then(|| {
        format!(
            "`chat.user_persona` names {role:?}, but {} has fewer than 3 billion weights, so its prompts leave the role \
             out. A larger model gets it.",
            model.name
        )
    })
}

/// Fails if the family of the chat server's model is unknown.
pub fn ensure_family(config: &Config) -> anyhow::Result<()> {
    let family = &config.chat_server.family;
    if FAMILIES.contains(&family.as_str()) {
        return Ok(());
    }
    bail!("`chat_server.family` names no family of models: {family:?}; {}", hint(family, &FAMILIES.map(str::to_owned)))
}

/// Suggests the nearest of the known names, or lists them.
pub fn hint(name: &str, known: &[String]) -> String {
    let distance = |other: &String| strsim::damerau_levenshtein(&name.to_lowercase(), &other.to_lowercase());
    match known.iter().map(|other| (distance(other), other)).min() {
        Some((distance, nearest)) if distance * 3 <= nearest.chars().count() => format!("did you mean `{nearest}`?"),
        _ => format!("there are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_that_a_small_model_does_not_get_is_named() {
        let model = |parameters| ModelInfo {
            name: "talker".to_owned(),
            family: "qwen2".to_owned(),
            parameters: Some(parameters),
            context_tokens: 4_096,
            thinks: None,
            trusted_in_danger: false,
        };
        let mut config = Config::default();
        assert_eq!(role_left_out(&config, &model(1_543_714_304)), None, "the default role says nothing");
        config.chat.user_persona = "captain".to_owned();
        assert_eq!(role_left_out(&config, &model(8_000_000_000)), None);
        let said = role_left_out(&config, &model(1_543_714_304)).unwrap();
        assert!(said.contains("\"captain\"") && said.contains("talker"), "{said}");
    }

    #[test]
    fn a_hint_names_the_nearest_or_all() {
        let known = ["azera".to_owned(), "luna".to_owned()];
        assert_eq!(hint("azrea", &known), "did you mean `azera`?");
        assert_eq!(hint("nosuch", &known), "there are azera, luna");
    }
}
