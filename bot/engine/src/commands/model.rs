//! `/model`: shows, lists and changes the model that answers; the operator also downloads and removes models.

use std::sync::PoisonError;

use azera_adapter::{Access, CommandAnswer};

use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;

impl Commands {
    pub(super) async fn model_command(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        let (verb, name) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        match (verb, name.trim()) {
            ("use" | "pull" | "remove", name) if !name.is_empty() && at.access < Access::Operator => {
                Ok(refused("Only the operator can change the model.".into()))
            }
            ("use", name) if !name.is_empty() => self.use_model(name).await,
            ("pull", name) if !name.is_empty() => Ok(as_answer(self.services.models.pull(name).await)),
            ("remove", name) if !name.is_empty() => self.remove_model(name).await,
            ("list", _) => Ok(done(self.models_in_words(at.access >= Access::Operator))),
            _ => Ok(done(format!("{}`/model list` shows the others.", self.model_in_words()))),
        }
    }

    async fn use_model(&self, name: &str) -> Result<CommandAnswer, Error> {
        let model = match self.services.models.load(name).await {
            Ok(model) => model,
            Err(why) => return Ok(refused(why)),
        };
        let name = model.info().name.clone();
        *self.services.model.write().unwrap_or_else(PoisonError::into_inner) = model;
        // It may read imports that the model before it did not read.
        self.background.search_imports_soon();
        Ok(done(format!(
            "From now on {name} answers, until the next start. `azera models use` chooses the model for later starts."
        )))
    }

    async fn remove_model(&self, name: &str) -> Result<CommandAnswer, Error> {
        if self.services.model().info().name == name {
            return Ok(refused(format!("{name} answers now. Choose another model with `/model use` first.")));
        }
        Ok(as_answer(self.services.models.remove(name).await))
    }

    fn model_in_words(&self) -> String {
        let present = self.services.model().info().clone();
        format!("{} answers ({} tokens of context).\n", present.name, present.context_tokens)
    }

    fn models_in_words(&self, for_operator: bool) -> String {
        let (mut text, present) = (self.model_in_words(), self.services.model().info().name.clone());
        for model in self.services.models.list() {
            let state = match (model.fetched, model.failed) {
                _ if model.name == present => "answers now".to_owned(),
                _ if model.installed => "installed: `/model use` takes it".to_owned(),
                (Some(percent), _) => format!("being fetched: {percent} % are here"),
                (None, Some(why)) if for_operator => {
                    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
                    format!("it could not be fetched: {} `/model pull` tries again.", why.trim_end())
                }
                (None, Some(_)) => "it could not be fetched".to_owned(),
                (None, None) => "not installed: `/model pull` fetches it".to_owned(),
            };
            text.push_str(&format!("- {}: {} ({state})\n", model.name, model.title));
        }
        text
    }
}

fn as_answer(done_or_not: Result<String, String>) -> CommandAnswer {
    done_or_not.map_or_else(refused, done)
}
