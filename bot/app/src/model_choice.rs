//! Which model answers.

/// The choice of the model that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChoice {
    /// The configured model, or else the selected one.
    Chosen,
    /// The model with this name.
    Named(String),
    /// A short fixed acknowledgement, for timelines that only test memory.
    Scripted,
}

impl ModelChoice {
    /// Parses `default`, `scripted` or a model's name.
    pub fn named(name: &str) -> Self {
        match name {
            "default" => Self::Chosen,
            "scripted" => Self::Scripted,
            name => Self::Named(name.to_owned()),
        }
    }
}
