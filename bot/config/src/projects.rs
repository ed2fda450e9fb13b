use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// Coding sessions, project by project, as `azera hook` and `azera import` bring them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Projects {
    /// Projects that may tell sessions in other projects of the same person what proved useful: commands that worked nearly
    /// always, preferences, and conventions that three of them have in common. "*" is every project. Coding assistants send
    /// what they are told to their maker.
    #[schemars(length(max = 256), inner(length(min = 1, max = 200)))]
    pub shared: Vec<String>,
    /// Projects that tell other projects nothing and hear nothing of them, whatever `shared` says. Nothing that names one of
    /// them is told in another project, either.
    #[schemars(length(max = 256), inner(length(min = 1, max = 200)))]
    pub private: Vec<String>,
}
