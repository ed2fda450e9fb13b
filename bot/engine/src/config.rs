use std::time::Duration;

use azera_config::{ExtractWithModel, Gardener, Projects};
use azera_memory::Answering;
use azera_model_api::{ModelInfo, Sampling};
use azera_prompt::{Form, form_of};
use azera_types::{PersonaId, Place, PlaceKind};

/// Settings of turns and background jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatConfig {
    /// The persona that answers in a chat where nobody chose one.
    pub persona: PersonaId,
    /// The user persona of people who did not choose one.
    pub user_persona: PersonaId,
    /// Names that every persona answers to besides its own.
    pub wake_names: Vec<String>,
    /// When to answer where several people read, unless the chat has its own setting; see [`ChatConfig::answering_in`].
    pub answering: Answering,
    /// Maximum number of messages waiting in one chat.
    pub queue_per_chat: usize,
    /// Messages of the conversation considered for a prompt.
    pub history_messages: usize,
    /// Maximum number of tokens in a reply.
    pub reply_tokens: usize,
    /// Maximum number of tokens in a prompt and its reply together; the model's context window if that is smaller.
    pub context_tokens: usize,
    /// Whether a model that supports thinking thinks before it answers.
    pub thinking: bool,
    /// Maximum number of tokens in the thoughts before a reply, besides `reply_tokens`.
    pub thinking_tokens: usize,
    /// Sampling parameters that override those of the model's form, each for itself.
    pub sampling: azera_config::Sampling,
    /// Makes replies reproducible: each turn's seed is derived from this one and the message.
    pub seed: Option<u64>,
    /// Maximum number of recalled memories in a prompt; overrides the model family's form and the persona.
    pub recalled: Option<usize>,
    /// The language and country of the help lines, such as `en-GB`, unless a place chose another.
    pub locale: Option<String>,
    /// Maximum number of hits from each signal of recall.
    pub limits: azera_memory::Limits,
    /// Settings of the background jobs, unless a place overrides them.
    pub garden: Gardener,
    /// Which coding projects tell others what proved useful.
    pub projects: Projects,
}

/// The share of a model's context that thoughts may take, as a divisor: more would leave no room for the prompt.
const THOUGHTS_OF_CONTEXT: usize = 4;

impl ChatConfig {
    /// Returns the form of a model's prompts, with the sampling parameters that the configuration sets.
    pub(crate) fn form(&self, model: &ModelInfo) -> Form {
        let form = form_of(model);
        Form { sampling: self.overridden(&form.sampling), thinking: self.overridden(&form.thinking), ..form }
    }

    fn overridden(&self, sampling: &Sampling) -> Sampling {
        let own = &self.sampling;
        Sampling {
            temperature: own.temperature.unwrap_or(sampling.temperature),
            top_k: own.top_k.unwrap_or(sampling.top_k),
            top_p: own.top_p.unwrap_or(sampling.top_p),
            min_p: own.min_p.unwrap_or(sampling.min_p),
            repeat_penalty: own.repeat_penalty.unwrap_or(sampling.repeat_penalty),
            frequency_penalty: own.frequency_penalty.unwrap_or(sampling.frequency_penalty),
            presence_penalty: own.presence_penalty.unwrap_or(sampling.presence_penalty),
            penalty_last_n: own.penalty_last_n.unwrap_or(sampling.penalty_last_n),
            ..sampling.clone()
        }
    }

    /// Returns how many tokens this model may think before a reply; 0 if it cannot or should not think.
    pub fn thoughts_of(&self, model: &ModelInfo) -> usize {
        let beside_the_reply = model.context_tokens.saturating_sub(self.reply_tokens) / 2;
        match self.thinking && model.thinks != Some(false) {
            true => self.thinking_tokens.min(model.context_tokens / THOUGHTS_OF_CONTEXT).min(beside_the_reply),
            false => 0,
        }
    }

    /// Returns when to answer in a place whose chat has the setting `own`.
    ///
    /// The configured `never` is about groups. Only `/answer never` in a direct message silences the bot there.
    pub(crate) fn answering_in(&self, place: &Place, own: Option<Answering>) -> Answering {
        answering(self.answering, own, matches!(place.kind, PlaceKind::Dm(_)))
    }
}

fn answering(configured: Answering, own: Option<Answering>, is_dm: bool) -> Answering {
    match (own, configured) {
        (Some(own), _) => own,
        (None, Answering::Never) if is_dm => Answering::Addressed,
        (None, configured) => configured,
    }
}

/// What a persona writes in the background in one place. Hours are in the realm's time zone; a range includes its first
/// hour and excludes its second, so a range from an hour to itself is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Garden {
    /// Whether the persona dreams.
    pub(crate) dreams: bool,
    /// Whether it writes journal entries.
    pub(crate) reflections: bool,
    /// Messages by people that make a conversation worth a diary entry; 0 turns diary entries off.
    pub(crate) diary_messages: usize,
    /// Messages by people after which working notes are rewritten; 0 turns them off.
    pub(crate) notes_every: usize,
    /// Messages by people after which memories are extracted from a finished conversation; 0 turns this off.
    pub(crate) extract_every: usize,
    /// When the chat model extracts them.
    pub(crate) extract_with_model: ExtractWithModel,
    /// Whether the surprise of each exchange is measured in the background, if the model supports it.
    pub(crate) surprise: bool,
    /// Silence after which a conversation counts as finished and the persona as asleep.
    pub(crate) rest: Duration,
    /// Days between two garden pieces; 0 turns them off.
    pub(crate) piece_days: u32,
    /// Days between two pieces posted to the journal channel; 0 turns posting off.
    pub(crate) publish_days: u32,
    /// Whether it reviews itself once a week.
    pub(crate) reviews: bool,
    /// Hours in which check-ins may be sent.
    pub(crate) check_in_hours: (i8, i8),
    /// Hours in which nothing is written for a realm.
    pub(crate) quiet: (i8, i8),
    /// Maximum number of model requests per day for one persona in one realm.
    pub(crate) per_day: u32,
}

impl From<&Gardener> for Garden {
    fn from(config: &Gardener) -> Self {
        // The configuration limits hours to 0 to 23.
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
            // Turned off, both hours are 0, and a range from an hour to itself is empty.
            check_in_hours: (hour(count(config.check_ins_from)), hour(count(config.check_ins_to))),
            extract_every: usize::from(config.enabled && config.keep),
            extract_with_model: config.extract_with_model,
            surprise: config.enabled && config.surprise,
            rest: Duration::from_secs(u64::from(config.rest_minutes) * 60),
            quiet: (hour(config.quiet_from), hour(config.quiet_to)),
            per_day: config.asks_per_day,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ChatConfig {
        ChatConfig {
            persona: PersonaId::new("azera").unwrap(),
            user_persona: PersonaId::new("protag").unwrap(),
            wake_names: Vec::new(),
            answering: Answering::Addressed,
            queue_per_chat: 8,
            history_messages: 40,
            reply_tokens: 512,
            context_tokens: 4_096,
            thinking: true,
            thinking_tokens: 1_024,
            sampling: azera_config::Sampling::default(),
            seed: None,
            recalled: None,
            locale: None,
            limits: azera_memory::Limits::default(),
            garden: Gardener::default(),
            projects: Projects::default(),
        }
    }

    #[test]
    fn a_sampling_key_overrides_itself_alone_whichever_model_is_used() {
        let with = ChatConfig {
            sampling: azera_config::Sampling { temperature: Some(0.9), ..azera_config::Sampling::default() },
            ..config()
        };
        for (family, parameters) in [("qwen2", 1_500_000_000), ("qwen3", 8_000_000_000), ("smollm2", 135_000_000)] {
            let model = ModelInfo {
                name: family.to_owned(),
                family: family.to_owned(),
                parameters: Some(parameters),
                context_tokens: 4_096,
                thinks: None,
                trusted_in_danger: false,
            };
            let measured = form_of(&model);
            assert_eq!(config().form(&model), measured);
            let warmer = |sampling: &Sampling| Sampling { temperature: 0.9, ..sampling.clone() };
            let form = with.form(&model);
            assert_eq!((&form.sampling, &form.thinking), (&warmer(&measured.sampling), &warmer(&measured.thinking)));
        }
    }

    #[test]
    fn thoughts_leave_room_for_the_prompt() {
        let model = |context_tokens: usize, thinks: Option<bool>| ModelInfo {
            name: "talker".to_owned(),
            family: "generic".to_owned(),
            parameters: None,
            context_tokens,
            thinks,
            trusted_in_danger: false,
        };
        assert_eq!(config().thoughts_of(&model(32_768, Some(true))), 1_024);
        assert_eq!(config().thoughts_of(&model(2_048, None)), 512, "it may think");
        assert_eq!(config().thoughts_of(&model(600, Some(true))), 44);
        assert_eq!(config().thoughts_of(&model(2_048, Some(false))), 0, "it cannot think");
        assert_eq!(ChatConfig { thinking: false, ..config() }.thoughts_of(&model(32_768, Some(true))), 0);
    }

    #[test]
    fn only_a_command_silences_direct_messages() {
        for configured in [Answering::Addressed, Answering::Always, Answering::Never] {
            assert_ne!(answering(configured, None, true), Answering::Never, "{configured:?}");
            assert_eq!(answering(configured, None, false), configured);
            for own in [Answering::Addressed, Answering::Always, Answering::Never] {
                assert_eq!(answering(configured, Some(own), true), own, "{configured:?}");
                assert_eq!(answering(configured, Some(own), false), own, "{configured:?}");
            }
        }
    }
}
