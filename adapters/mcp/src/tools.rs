//! Runs the tools. `declared.rs` says what they are.

use azera_adapter::Steps;
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::declared::Nothing;
use crate::failure::Failure;
use crate::search::By;
use crate::session::Caller;

fn arguments<T: DeserializeOwned>(given: JsonObject) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(given)).map_err(|error| Failure::invalid(format!("Wrong arguments: {error}.")))
}

/// Reads arguments that hold a secret. The error quotes nothing of them.
fn secret_arguments<T: DeserializeOwned>(given: JsonObject) -> Result<T, Failure> {
    let wrong = |_| Failure::invalid("Wrong arguments: vault_store takes a `name` and a `value`, both texts.");
    serde_json::from_value(Value::Object(given)).map_err(wrong)
}

fn value<T: serde::Serialize>(answer: T) -> Result<Value, Failure> {
    serde_json::to_value(answer).map_err(|error| Failure::refused(format!("The answer cannot be written: {error}.")))
}

impl Caller {
    /// Runs a tool that the session may use. Tools that know their steps tell `steps` of each.
    pub(crate) async fn call(&self, tool: &'static str, given: JsonObject, steps: Steps) -> Result<Value, Failure> {
        match tool {
            "recall" | "hybrid_search" => value(self.search(tool, arguments(given)?, By::Everything).await?),
            "search" => value(self.search(tool, arguments(given)?, By::Words).await?),
            "similar" => value(self.similar(arguments(given)?).await?),
            "remember" | "save" => value(self.remember(arguments(given)?).await?),
            "forget" | "delete" => value(self.forget(arguments(given)?).await?),
            "why" => value(self.why(arguments(given)?).await?),
            "cross_project" => value(self.cross_project(arguments(given)?).await?),
            "update" => value(self.update(arguments(given)?).await?),
            "supersede" => value(self.supersede(arguments(given)?).await?),
            "search_feedback" => value(self.search_feedback(arguments(given)?).await?),
            "get" => value(self.get(arguments(given)?).await?),
            "list" => value(self.list(arguments(given)?).await?),
            "relations" => value(self.relations(arguments(given)?).await?),
            "graph_explore" => value(self.explore(arguments(given)?).await?),
            "relate" => value(self.relate(arguments(given)?, true).await?),
            "unrelate" => value(self.relate(arguments(given)?, false).await?),
            "themes" => value(self.themes(arguments(given)?).await?),
            "known" => value(self.known(arguments(given)?).await?),
            "set_known" => value(self.set_known(arguments(given)?).await?),
            "episodes" => value(self.journal(tool, "diary", arguments(given)?).await?),
            "reflections" => value(self.journal(tool, "reflection", arguments(given)?).await?),
            "sessions" => value(self.sessions(arguments(given)?).await?),
            "timeline" => value(self.timeline(arguments(given)?).await?),
            "core_memory" => {
                let Nothing {} = arguments(given)?;
                value(self.core_memory().await?)
            }
            "create_reflection" => {
                let Nothing {} = arguments(given)?;
                value(self.create_reflection(&*steps).await?)
            }
            "procedures" => value(self.procedures(arguments(given)?).await?),
            "cue_search" => value(self.cue_search(arguments(given)?).await?),
            "episode_chain" => value(self.episode_chain(arguments(given)?).await?),
            "episode_link" => value(self.episode_link(arguments(given)?).await?),
            "checkpoint_save" => value(self.checkpoint_save(arguments(given)?).await?),
            "checkpoint_list" => value(self.checkpoint_list(arguments(given)?).await?),
            "checkpoint_restore" => value(self.checkpoint_restore(arguments(given)?).await?),
            "raptor_rebuild" => {
                let Nothing {} = arguments(given)?;
                value(self.raptor_rebuild(steps).await?)
            }
            "raptor_status" => {
                let Nothing {} = arguments(given)?;
                value(self.raptor_status().await?)
            }
            "reflection_insights" => value(self.reflection_insights(arguments(given)?).await?),
            "optimize_context" => value(self.optimize_context(arguments(given)?).await?),
            "compact_restore" => value(self.compact_restore(arguments(given)?).await?),
            "context_budget" => value(self.context_budget(arguments(given)?).await?),
            "stats" => {
                let Nothing {} = arguments(given)?;
                value(self.stats().await?)
            }
            "vault_store" => value(self.vault_store(secret_arguments(given)?).await?),
            "vault_get" => value(self.vault_get(arguments(given)?).await?),
            "vault_delete" => value(self.vault_delete(arguments(given)?).await?),
            "vault_list" => {
                let Nothing {} = arguments(given)?;
                value(self.vault_list().await?)
            }
            _ => Err(Failure::refused(format!("There is no tool {tool}."))),
        }
    }
}
