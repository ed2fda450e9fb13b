use std::time::Duration;

use azera_config::Gardener;
use azera_memory::Answering;
use azera_model_api::Sampling;
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
    /// The language and country that help lines are for, such as `en-GB`, unless a place chose another.
    pub locale: Option<String>,
    /// Hits of each arm of recall.
    pub limits: azera_memory::Limits,
    /// What is written between messages, unless a place has other numbers.
    pub garden: Gardener,
}

/// What a persona writes between messages in a place. Hours are those of a realm's own time zone, from the first up to and
/// without the second; from an hour to itself are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Garden {
    /// Whether it dreams.
    pub(crate) dreams: bool,
    /// Whether it writes into its journal.
    pub(crate) reflections: bool,
    /// Messages of people from which on a conversation is worth an entry in the diary; 0 for never.
    pub(crate) diary_messages: usize,
    /// Messages of people after which working notes are made anew; 0 for never.
    pub(crate) notes_every: usize,
    /// Messages of people after which a conversation that is over is looked through for what is worth keeping; 0 for never.
    pub(crate) extract_every: usize,
    /// Whether it is measured in the background how surprising what people say is, where the model can tell.
    pub(crate) surprise: bool,
    /// Silence after which a conversation counts as over, and nobody is awake any more.
    pub(crate) rest: Duration,
    /// Days between two pieces that it makes up; 0 for never.
    pub(crate) piece_days: u32,
    /// Days between two pieces that are posted where the journal is; 0 for never.
    pub(crate) publish_days: u32,
    /// Whether it looks once a week at how it is doing.
    pub(crate) reviews: bool,
    /// Hours in which those who want it are looked in on.
    pub(crate) check_in_hours: (i8, i8),
    /// Hours in which nothing is written for a realm.
    pub(crate) quiet: (i8, i8),
    /// How often the model may be asked on a day for one persona in one realm.
    pub(crate) per_day: u32,
}

impl From<&Gardener> for Garden {
    fn from(config: &Gardener) -> Self {
        // Hours are within 0 to 23 by the configuration's own limits.
        let hour = |hour: u32| i8::try_from(hour).unwrap_or(0);
        let count = |count: u32| if config.enabled { count } else { 0 };
        Self {
            dreams: config.enabled && config.dreams,
            reflections: config.enabled && config.journal,
            diary_messages: count(config.diary_messages) as usize,
            notes_every: count(config.notes_every) as usize,
            piece_days: count(config.piece_days),
            publish_days: count(config.publish_days),
            reviews: config.enabled && config.journal && config.reviews,
            // The same hour twice is never.
            check_in_hours: (hour(count(config.check_ins_from)), hour(count(config.check_ins_to))),
            extract_every: usize::from(config.enabled && config.keep),
            surprise: config.enabled && config.surprise,
            rest: Duration::from_secs(u64::from(config.rest_minutes) * 60),
            quiet: (hour(config.quiet_from), hour(config.quiet_to)),
            per_day: config.asks_per_day,
        }
    }
}
