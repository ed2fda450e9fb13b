//! The Hearth's check of `azera doctor`.

use azera_config::Config;
use azera_model_registry::Kind;

use super::can_learn;
use crate::doctor::Found;
use crate::hearth::DISCORD_FORBIDS;
use crate::{bootstrap, servers};

/// Checks whether the chat model can learn, and from whom.
pub fn check(config: &Config) -> Found {
    if !config.hearth.enabled {
        return Found::Good("off".into());
    }
    if let Some(why) = reason_against_learning(config) {
        return Found::Note(format!("on, but {why}"));
    }
    if config.hearth.discord {
        return Found::Note(format!("on, Discord included. {DISCORD_FORBIDS} Otherwise: hearth.discord = false"));
    }
    let location = if config.hearth.elsewhere { ", on another machine: see `azera hearth pack`" } else { "" };
    Found::Good(format!("on, for everybody who says `/hearth opt-in`{location}"))
}

/// Returns why the chat model cannot learn. Another check reports a missing model.
fn reason_against_learning(config: &Config) -> Option<String> {
    if servers::configured(config, Kind::Chat).is_some() {
        return Some("the model that talks is on a server, and it takes one on this machine".into());
    }
    let models = bootstrap::models(config).ok()?;
    let name = bootstrap::chosen(config, &models, Kind::Chat).ok()?;
    models.find(&name).ok()??;
    (!can_learn(config, models, &name)).then(|| {
        format!(
            "{name} cannot learn: it takes a model of the llama, qwen2 or qwen3 architecture, and without a GPU one of \
             at most {} MB (hearth.largest_model_mb)",
            config.hearth.largest_model_mb
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
    fn learning_is_on_only_if_the_model_can_learn() {
        let mut config = Config::default();
        config.models.dir = Some(std::env::var_os("AZERA_TEST_MODELS").expect("`make test` sets it").into());
        assert!(matches!(check(&config), Found::Good(said) if said == "off"));
        config.hearth.enabled = true;
        assert!(matches!(check(&config), Found::Good(said) if said.contains("/hearth opt-in")));
        config.hearth.discord = true;
        assert!(matches!(check(&config), Found::Note(said) if said.contains(DISCORD_FORBIDS)));
        config.hearth.largest_model_mb = 1;
        assert!(matches!(check(&config), Found::Note(said) if said.contains("at most 1 MB")));
        config.hearth.elsewhere = true;
        assert!(matches!(check(&config), Found::Note(said) if said.contains(DISCORD_FORBIDS)), "another machine may");
    }
}
