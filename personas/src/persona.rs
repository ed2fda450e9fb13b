//! A persona as read from its file.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use azera_types::Dimension;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::card::{PERSONALITY_TITLE, default_intent};
use crate::examples::Cast;
use crate::limits::MAX_BRIEF_WORDS;
use crate::sentiments::Sentiment;
use crate::slug::PersonaSlug;

/// Who plays a persona.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PersonaKind {
    /// A character that the model plays.
    #[default]
    Assistant,
    /// A role that a person plays towards a character.
    User,
}

impl PersonaKind {
    /// Returns the word for it in a file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Assistant => "assistant",
            Self::User => "user",
        }
    }
}

/// How much of a second style is mixed in as a feeling rises; see [`BlendLayer`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StyleBlend {
    /// Mixes in another persona's directives.
    pub persona: Option<BlendLayer>,
    /// Mixes in another sentiment's directives.
    pub sentiment: Option<BlendLayer>,
}

/// One layer of a style blend. Up to `threshold` on `axis`, only the primary style is used. From there to 1, more and
/// more of the secondary is mixed in, while the primary stays.
#[derive(Debug, Clone, PartialEq)]
pub struct BlendLayer {
    /// The feeling that drives the layer.
    pub axis: Dimension,
    /// Name of the persona or sentiment that is always used.
    pub primary: String,
    /// Name of the one that is mixed in.
    pub secondary: String,
    /// Value on the axis, 0 to 1, above which mixing starts.
    pub threshold: f64,
}

/// A persona's memory settings; `None` means the host's configuration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MemorySettings {
    /// Memories in a prompt.
    pub top_k: Option<u64>,
    /// Memories stored in total.
    pub prune_keep: Option<u64>,
    /// Share of each emotional dimension that is lost per turn, 0 to 1.
    pub emotion_decay_rate: Option<f64>,
    /// Turns between two updates of the working notes; 0 turns them off.
    pub working_notes_every_n_turns: Option<u64>,
}

impl MemorySettings {
    /// Allowed values of `top_k`.
    pub const TOP_K: RangeInclusive<u64> = 0..=50;
    /// Allowed values of `prune_keep`.
    pub const PRUNE_KEEP: RangeInclusive<u64> = 1..=10_000_000;
    /// Allowed values of `emotion_decay_rate`.
    pub const EMOTION_DECAY_RATE: RangeInclusive<f64> = 0.0..=1.0;
    /// Allowed values of `working_notes_every_n_turns`.
    pub const WORKING_NOTES_EVERY_N_TURNS: RangeInclusive<u64> = 0..=1000;
}

/// How a persona speaks; `None` means the host's configuration, or the voice's own way.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VoiceSettings {
    /// The voice, by its name in the registry or on a server.
    pub name: Option<String>,
    /// BCP 47 tag of the language that it speaks, such as `de-AT`.
    pub language: Option<String>,
    /// Pace as a factor of the voice's own.
    pub pace: Option<f64>,
    /// Pitch as a factor of the voice's own.
    pub pitch: Option<f64>,
    /// Liveliness as a factor of the voice's own.
    pub liveliness: Option<f64>,
}

impl VoiceSettings {
    /// Allowed values of `pace`.
    pub const PACE: RangeInclusive<f64> = 0.5..=2.0;
    /// Allowed values of `pitch`.
    pub const PITCH: RangeInclusive<f64> = 0.7..=1.4;
    /// Allowed values of `liveliness`.
    pub const LIVELINESS: RangeInclusive<f64> = 0.0..=1.5;
}

/// How what a persona draws looks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PictureStyle {
    /// Words that are added to each prompt.
    pub style: Option<String>,
    /// What is not to be drawn.
    pub negative: Option<String>,
}

/// A titled text: an unknown section, or an unknown part of a known one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// Markdown, without blank lines around it.
    pub text: String,
}

/// The section *Prime Directive*.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrimeDirective {
    /// The text before its parts.
    pub lead: String,
    /// Who the person is to the persona.
    pub identity_of_the_user: String,
    /// Their relationship.
    pub dynamic: String,
    /// How it speaks.
    pub tone: String,
    /// What it never does.
    pub constraint: String,
    /// Parts with other titles.
    pub other: Vec<Section>,
}

/// The section *Psychological Profile*.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PsychologicalProfile {
    /// The text before its parts.
    pub lead: String,
    /// The figure it resembles.
    pub archetype: String,
    /// Myers-Briggs type: four letters, optionally followed by words.
    pub mbti: String,
    /// Its values.
    pub values: String,
    /// How it thinks.
    pub cognitive_style: String,
    /// How it feels and shows it.
    pub emotional_landscape: String,
    /// Parts with other titles.
    pub other: Vec<Section>,
}

/// The persona's behaviour for one kind of task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskBehaviour {
    /// The kind of task, such as `coding` in *If coding*.
    pub task: String,
    /// Lowercase words and phrases that indicate this task, besides the built-in ones.
    pub cues: Vec<String>,
    /// The behaviour.
    pub text: String,
}

/// The speaker of a turn in an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The person.
    Person,
    /// The persona.
    Persona,
    /// Memories that were recalled for the next reply.
    Memory,
}

/// One turn of an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleTurn {
    /// The speaker.
    pub speaker: Speaker,
    /// The text; `{{user}}` stands for the person's name.
    pub text: String,
}

/// An example conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleInteraction {
    /// Its heading.
    pub title: String,
    /// Its turns in order, at least one.
    pub turns: Vec<ExampleTurn>,
}

/// A message and its reply, as a few-shot example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange<'a> {
    /// Memories recalled for this reply.
    pub remembered: Vec<&'a str>,
    /// The person's message.
    pub person: &'a str,
    /// The persona's reply.
    pub persona: &'a str,
}

/// A persona. Texts are Markdown without blank lines around them; an empty one means that the section is missing.
///
/// In all texts, `{{user}}` and `{{char}}` stand for the names of the person and the persona; see
/// [`crate::fill_placeholders`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Persona {
    /// Its permanent id.
    pub id: PersonaSlug,
    /// Its name.
    pub name: String,
    /// Whether a model or a person plays it.
    pub kind: PersonaKind,
    /// Preferred chat model, by its name in the registry.
    pub model: Option<String>,
    /// How it speaks.
    pub voice: VoiceSettings,
    /// How its pictures look.
    pub pictures: PictureStyle,
    /// Its picture: a file name or an `https` address.
    pub avatar: Option<String>,
    /// Names that it answers to in a group, besides its own.
    pub wake_names: Vec<String>,
    /// Which other styles are mixed in, and when.
    pub style_blend: StyleBlend,
    /// Its memory settings.
    pub memory: MemorySettings,
    /// The text before the first section. It is for people who read the file, and never in a prompt.
    pub about: String,
    /// The section *Brief*: the whole persona in at most 90 words, for small models. See [`Persona::brief`].
    pub brief: String,
    /// The section *Intent*: its purpose.
    pub intent: String,
    /// The section *Core Identity*: who it is.
    pub core_identity: String,
    /// The section *Prime Directive*: how it relates to the person.
    pub prime_directive: PrimeDirective,
    /// The section *Interface & Presence*: how its replies look.
    pub interface_and_presence: String,
    /// The section *Psychological Profile*.
    pub psychological_profile: PsychologicalProfile,
    /// The section *Quirks*.
    pub quirks: String,
    /// The section *Task Behaviours*, in file order.
    pub task_behaviours: Vec<TaskBehaviour>,
    /// The section *Example interaction*.
    pub examples: Vec<ExampleInteraction>,
    /// The section *Sentiments*: its own styles for its style blend. See [`Persona::sentiment`].
    pub sentiments: Vec<Sentiment>,
    /// Sections with other titles, in file order.
    pub other: Vec<Section>,
}

impl Persona {
    /// Returns name and kind for the examples' speakers.
    pub(crate) fn cast(&self) -> Cast<'_> {
        Cast { name: &self.name, kind: self.kind }
    }

    /// Returns a persona with an id and a name only.
    pub(crate) fn empty(id: PersonaSlug, name: String) -> Self {
        Self {
            id,
            name,
            kind: PersonaKind::default(),
            model: None,
            voice: VoiceSettings::default(),
            pictures: PictureStyle::default(),
            avatar: None,
            wake_names: Vec::new(),
            style_blend: StyleBlend::default(),
            memory: MemorySettings::default(),
            about: String::new(),
            brief: String::new(),
            intent: String::new(),
            core_identity: String::new(),
            prime_directive: PrimeDirective::default(),
            interface_and_presence: String::new(),
            psychological_profile: PsychologicalProfile::default(),
            quirks: String::new(),
            task_behaviours: Vec::new(),
            examples: Vec::new(),
            sentiments: Vec::new(),
            other: Vec::new(),
        }
    }

    /// Returns the persona in a few sentences, at most 90 words, for models too small for the full form. This is the
    /// section *Brief*, or the beginning of what says most about it: intent, core identity, personality, dynamic and
    /// tone, and after them the constraint, for which at least 20 words are kept free.
    pub fn brief(&self) -> Cow<'_, str> {
        if !self.brief.is_empty() {
            return Cow::Borrowed(&self.brief);
        }
        let directive = &self.prime_directive;
        let profile = self.psychological_profile.other.iter();
        let personality = profile.filter(|part| part.title == PERSONALITY_TITLE).map(|part| part.text.as_str());
        // The intent of every card says the same, and nothing about the persona.
        let intent = Some(self.intent.as_str()).filter(|intent| *intent != default_intent(&self.name));
        let described = intent.into_iter().chain([self.core_identity.as_str()]).chain(personality);
        let described: Vec<&str> = described.chain([directive.dynamic.as_str(), directive.tone.as_str()]).collect();
        let free = count_words(&directive.constraint).min(BRIEF_CONSTRAINT_WORDS);
        let described = first_words(&described.join("\n"), MAX_BRIEF_WORDS - free);
        let constraint = first_words(&directive.constraint, MAX_BRIEF_WORDS - count_words(&described));
        Cow::Owned(format!("{described} {constraint}").trim().to_owned())
    }

    /// Returns true if models that get only the brief see a part of what describes this persona.
    pub(crate) fn brief_leaves_out(&self) -> bool {
        let directive = &self.prime_directive;
        let own = [&self.core_identity, &directive.dynamic, &directive.tone, &directive.constraint];
        let parts = directive.other.iter().chain(&self.psychological_profile.other).map(|part| &part.text);
        let all: usize = own.into_iter().chain(parts).map(|text| count_words(text)).sum();
        self.brief.is_empty() && all > count_words(&self.brief())
    }

    /// Returns the names that this persona answers to in a group: its own, then its wake names.
    pub fn answers_to(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.wake_names.iter().map(String::as_str))
    }

    /// Returns an unknown section by its title, in any case.
    pub fn section(&self, title: &str) -> Option<&Section> {
        self.other.iter().find(|section| section.title.to_lowercase() == title.to_lowercase())
    }

    /// Returns the examples as messages and replies, for few-shot prompts. A turn without its counterpart is left out.
    pub fn exchanges(&self) -> Vec<Exchange<'_>> {
        self.examples.iter().flat_map(ExampleInteraction::exchanges).collect()
    }

    /// Returns the SHA-256 of the normal form ([`Persona::to_markdown`]) as 64 hex digits. It is equal for equal
    /// personas, and so identifies a version.
    pub fn digest(&self) -> String {
        HEXLOWER.encode(&Sha256::digest(self.to_markdown().as_bytes()))
    }
}

impl ExampleInteraction {
    /// Returns the interaction as messages and replies.
    pub fn exchanges(&self) -> Vec<Exchange<'_>> {
        let mut exchanges = Vec::new();
        let mut remembered = Vec::new();
        let mut person = None;
        for turn in &self.turns {
            match turn.speaker {
                Speaker::Memory => remembered.push(turn.text.as_str()),
                Speaker::Person => person = Some(turn.text.as_str()),
                Speaker::Persona => {
                    let remembered = std::mem::take(&mut remembered);
                    if let Some(person) = person.take() {
                        exchanges.push(Exchange { remembered, person, persona: &turn.text });
                    }
                }
            }
        }
        exchanges
    }
}

/// The most words of a constraint in a brief that is derived.
const BRIEF_CONSTRAINT_WORDS: usize = 20;

fn count_words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Returns the first `most` words, cut at the end of a sentence if one ends in the second half.
fn first_words(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() <= most {
        return words.join(" ");
    }
    let ends_sentence = |word: &&str| word.ends_with(['.', '!', '?', '。', '！', '？']);
    let head = words.get(..most).unwrap_or_default();
    let end = head.iter().rposition(ends_sentence).filter(|end| *end >= most / 2);
    head.get(..end.map_or(most, |end| end + 1)).unwrap_or_default().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interaction(turns: &[(Speaker, &str)]) -> ExampleInteraction {
        let turns = turns.iter().map(|(speaker, text)| ExampleTurn { speaker: *speaker, text: (*text).to_owned() });
        ExampleInteraction { title: "Example".to_owned(), turns: turns.collect() }
    }

    #[test]
    fn exchanges_pair_messages_with_replies() {
        use Speaker::{Memory, Person, Persona};
        fn check(turns: &[(Speaker, &str)], expected: &[(&[&str], &str, &str)]) {
            let interaction = interaction(turns);
            let found: Vec<_> = interaction.exchanges();
            let expected: Vec<_> = expected
                .iter()
                .map(|(remembered, person, persona)| Exchange { remembered: remembered.to_vec(), person, persona })
                .collect();
            assert_eq!(found, expected);
        }
        check(&[(Person, "hi"), (Persona, "hello")], &[(&[], "hi", "hello")]);
        check(&[(Memory, "m"), (Person, "hi"), (Persona, "hello")], &[(&["m"], "hi", "hello")]);
        check(&[(Persona, "greeting"), (Person, "a"), (Persona, "b")], &[(&[], "a", "b")]);
        check(&[(Person, "a"), (Person, "b"), (Persona, "c"), (Persona, "d")], &[(&[], "b", "c")]);
        check(&[(Person, "a"), (Memory, "m"), (Persona, "b"), (Person, "c")], &[(&["m"], "a", "b")]);
    }

    #[test]
    fn a_missing_brief_is_derived_within_its_limit() {
        let mut persona = Persona::empty(PersonaSlug::from_name("x"), "X".to_owned());
        persona.intent = "Keep the log.".to_owned();
        persona.prime_directive.tone = "Dry.".to_owned();
        assert_eq!(persona.brief(), "Keep the log. Dry.");

        persona.intent = "Six words stand in this sentence. ".repeat(20);
        assert_eq!(persona.brief().split_whitespace().count(), 90);
        assert!(persona.brief().ends_with("sentence."));

        persona.intent = "word ".repeat(200);
        assert_eq!(persona.brief().split_whitespace().count(), 90);
        persona.prime_directive.constraint = "Never shout.".to_owned();
        assert!(persona.brief().ends_with("word Never shout."), "a long description leaves room for it");
        assert_eq!(persona.brief().split_whitespace().count(), 90);

        let constraint =
            format!("{}Asked whether you are human, say that you are an AI.", "Never shout at people. ".repeat(6));
        persona.prime_directive.constraint = constraint.clone();
        persona.intent = "Keep the log.".to_owned();
        assert_eq!(
            persona.brief(),
            format!("Keep the log. Dry. {constraint}"),
            "a short description leaves all the room"
        );

        persona.brief = "You keep the log.".to_owned();
        assert_eq!(persona.brief(), "You keep the log.");
    }

    #[test]
    fn a_brief_leaves_out_what_does_not_fit_and_what_stands_elsewhere() {
        let mut persona = Persona::empty(PersonaSlug::from_name("x"), "X".to_owned());
        persona.core_identity = "You keep the log.".to_owned();
        persona.prime_directive.constraint = "Never shout. ".repeat(40);
        assert!(!persona.brief_leaves_out(), "{}", persona.brief());
        persona.prime_directive.constraint = "Never shout. ".repeat(50);
        assert!(persona.brief_leaves_out(), "{}", persona.brief());
        persona.prime_directive.constraint = String::new();
        assert!(!persona.brief_leaves_out());
        let text = "Answer in verse.".to_owned();
        persona.prime_directive.other.push(Section { title: "Instructions".to_owned(), text });
        assert!(persona.brief_leaves_out(), "the instructions are not in it");
        persona.brief = "You keep the log in verse.".to_owned();
        assert!(!persona.brief_leaves_out());
    }
}
