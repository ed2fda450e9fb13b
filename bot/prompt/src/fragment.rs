/// The kinds of prompt parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FragmentKind {
    /// The persona that the model plays.
    Persona,
    /// Example exchanges.
    Examples,
    /// Recent writings of the persona.
    Carried,
    /// The persona's working notes of the chat.
    Notes,
    /// The conversation so far.
    History,
    /// The persona's behaviour for the task at hand.
    Task,
    /// The rule that the message is about.
    Reminder,
    /// How to talk where the reply is heard.
    Aloud,
    /// The role that the person plays.
    UserPersona,
    /// The language to answer in.
    Language,
    /// The current day and time.
    Today,
    /// Lorebook entries about the topic.
    Lore,
    /// The style of the reply: rules, feelings, mood.
    Style,
    /// Recalled memories.
    Recalled,
    /// The message to answer.
    Message,
}

impl FragmentKind {
    /// Returns the name that `/why` shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Persona => "persona",
            Self::Examples => "examples",
            Self::Carried => "carried",
            Self::Notes => "notes",
            Self::History => "history",
            Self::Task => "task",
            Self::Reminder => "reminder",
            Self::Aloud => "aloud",
            Self::UserPersona => "user persona",
            Self::Language => "language",
            Self::Today => "day",
            Self::Lore => "lore",
            Self::Style => "manner",
            Self::Recalled => "recalled",
            Self::Message => "message",
        }
    }
}

/// The size of one part of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// The part's kind.
    pub kind: FragmentKind,
    /// The tokens of its text, without the template around it.
    pub tokens: usize,
}
