use std::time::Duration;

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
    /// What is written between messages.
    pub garden: GardenConfig,
}

/// Settings of what a persona writes between messages. Hours are those of a realm's own time zone, from the first up to and
/// without the second; from an hour to itself are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GardenConfig {
    /// Whether it dreams.
    pub dreams: bool,
    /// Whether it writes into its journal.
    pub reflections: bool,
    /// Messages of people from which on a conversation is worth an entry in the diary; 0 for never.
    pub diary_messages: usize,
    /// Messages of people after which working notes are made anew; 0 for never.
    pub notes_every: usize,
    /// Messages of people after which a conversation that is over is looked through for what is worth keeping; 0 for never.
    pub sift_every: usize,
    /// Whether it is measured in the background how surprising what people say is, where the model can tell.
    pub surprise: bool,
    /// Silence after which a conversation counts as over, and nobody is awake any more.
    pub rest: Duration,
    /// Silence after which working notes are made.
    pub pause: Duration,
    /// Days between two pieces that it makes up; 0 for never.
    pub piece_days: u32,
    /// Days between two pieces that are posted where the journal is; 0 for never.
    pub publish_days: u32,
    /// Whether it looks once a week at how it is doing.
    pub reviews: bool,
    /// Hours in which those who want it are looked in on.
    pub check_in_hours: (i8, i8),
    /// Hours in which nothing is written for a realm.
    pub quiet: (i8, i8),
    /// How often the model may be asked on a day for one persona in one realm.
    pub per_day: u32,
    /// The IANA name of the time zone where a realm says none.
    pub time_zone: String,
}

impl Default for GardenConfig {
    fn default() -> Self {
        Self {
            dreams: true,
            reflections: true,
            diary_messages: 4,
            notes_every: 8,
            sift_every: 1,
            surprise: true,
            rest: Duration::from_secs(30 * 60),
            pause: Duration::from_secs(20),
            piece_days: 3,
            publish_days: 7,
            reviews: true,
            check_in_hours: (9, 21),
            quiet: (0, 0),
            per_day: 60,
            time_zone: "UTC".into(),
        }
    }
}
