/// What a part of a prompt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FragmentKind {
    /// Who the model plays.
    Persona,
    /// Example exchanges.
    Examples,
    /// What the persona wrote lately and carries with it.
    Carried,
    /// The persona's working notes of the chat.
    Notes,
    /// The conversation so far.
    History,
    /// What the persona does for the task at hand.
    Task,
    /// The role the person plays.
    UserPersona,
    /// What a persona's lorebook has on what is talked about.
    Lore,
    /// How the message is to be answered: rules, feelings, mood.
    Style,
    /// Recalled memories.
    Recalled,
    /// The message to answer.
    Message,
}

impl FragmentKind {
    /// The name shown in `/why`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Persona => "persona",
            Self::Examples => "examples",
            Self::Carried => "carried",
            Self::Notes => "notes",
            Self::History => "history",
            Self::Task => "task",
            Self::UserPersona => "user persona",
            Self::Lore => "lore",
            Self::Style => "manner",
            Self::Recalled => "recalled",
            Self::Message => "message",
        }
    }
}

/// How much of the prompt one part takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// What it is for.
    pub kind: FragmentKind,
    /// Tokens of its text, without the template around it.
    pub tokens: usize,
}
