use azera_memory::Answering;
use azera_model::Sampling;
use azera_types::PersonaId;

/// Settings of the turn.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatConfig {
    /// Who answers in a chat where nobody chose.
    pub persona: PersonaId,
    /// The role people play unless they choose another.
    pub user_persona: PersonaId,
    /// Names every persona answers to besides its own.
    pub wake_names: Vec<String>,
    /// When to answer where several people read, unless the chat's setting says otherwise.
    pub answering: Answering,
    /// Messages of one chat that may wait at a time.
    pub queue_per_chat: usize,
    /// Messages of the conversation considered for a prompt.
    pub history_messages: usize,
    /// Tokens of a reply at most.
    pub reply_tokens: usize,
    /// Tokens of a prompt and its reply at most; the model's window if that is smaller.
    pub context_tokens: usize,
    /// Whether a model that can think aloud does.
    pub thinking: bool,
    /// How tokens are chosen, if the operator overrides the form of the model's family.
    pub sampling: Option<Sampling>,
    /// Makes replies reproducible: every seed is derived from this one and the message answered.
    pub seed: Option<u64>,
    /// Recalled memories in a prompt at most, if the operator overrides the form and the persona.
    pub recalled: Option<usize>,
    /// The language and country that help lines are for, such as `en-GB`.
    pub locale: Option<String>,
    /// Hits of each arm of recall.
    pub limits: azera_memory::Limits,
}
