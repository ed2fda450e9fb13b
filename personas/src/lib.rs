//! Personas: the characters that Azera plays, and the roles that people play towards them.
//!
//! This crate reads and writes persona files, imports and exports character cards, and contains the built-in personas.
//! Begin with [`parse`] and [`Persona`]. The crate does no I/O: the host passes bytes and stores the results. Another
//! crate composes the prompts, from [`Persona::brief`], [`Persona::exchanges`], [`Persona::task_behaviour_for`] and
//! [`Lorebook::matching`].
//!
//! # The persona file
//!
//! A persona file is Markdown with front matter. [`template`] returns one to start from, with explanations.
//!
//! ```markdown
//! ---
//! id: night-watch            # a-z, 0-9 and -; never changes
//! name: Night Watch
//! kind: assistant            # or user, for a role that a person plays
//! model: smollm2-135m        # optional, as are all below
//! voice: {name: piper-en-us-joe, language: en-US, pace: 1.1, pitch: 0.9, liveliness: 0.8}
//! pictures: {style: "ink wash, night", negative: photo}
//! avatar: watch.png
//! wake_names: [Watch, Nightie]
//! style_blend:
//!   persona: {axis: tension, primary: night-watch, secondary: areza, threshold: 0.6}
//!   sentiment: {axis: irritation, primary: plain, secondary: terse, threshold: 0.4}
//! memory: {top_k: 8, prune_keep: 5000, emotion_decay_rate: 0.1, working_notes_every_n_turns: 10}
//! ---
//!
//! # Night Watch
//!
//! Words before the first section are for the people who read the file; no prompt shows them.
//!
//! ## Brief
//!
//! You are Night Watch, who sits up with people who cannot sleep. You speak low and briefly.
//!
//! ## Intent
//!
//! Keep people company at night.
//!
//! ## Core Identity
//!
//! A retired lighthouse keeper.
//! ```
//!
//! | section | contents |
//! |---|---|
//! | Brief | the whole persona in two to four sentences ("You are ..."), at most 90 words; small models get only this |
//! | Intent (required) | the purpose of the persona |
//! | Core Identity (required) | who it is |
//! | Prime Directive | Identity of the User, Dynamic, Tone, Constraint |
//! | Interface & Presence | how its replies look |
//! | Psychological Profile | Archetype, MBTI, Values, Cognitive Style, Emotional Landscape |
//! | Quirks | its habits |
//! | Task Behaviours | `If coding`, `If storytelling`, ...: one is chosen per message, by cue words |
//! | Example interaction | conversations with `**User:**`, the persona's name, and `**Remembered:**` for memories |
//! | Sentiments | styles for its style blend, besides the built-in ones: `### name` and one directive per line |
//! | any other | kept unchanged |
//!
//! Sections begin with `## Title`. Parts of Prime Directive, Psychological Profile and Task Behaviours begin with
//! `### Title`, or are bullets such as `- **Tone:** dry`. A task may begin with a line `Cues: compiler, stack trace`; a
//! cue ending in `*` is the beginning of a word. Lines in code fences are never headings. `<!-- ... -->` at the start
//! of a line is a comment and not part of the persona. In texts, `{{user}}` and `{{char}}` stand for the two names
//! ([`fill_placeholders`]).
//!
//! The `axis` of a style blend is a feeling ([`azera_types::Dimension`]). Its sentiments are `plain` (no change), those
//! of the file, and the built-in ones: terse, dark, guarded, tender, playful.
//!
//! [`parse`] reports all problems at once, each with its line and a remedy; [`check`] also reports warnings of valid
//! files. [`Persona::to_markdown`] writes the normal form, which parses to an equal persona, and [`Persona::digest`]
//! identifies a version by it.
//!
//! # What a file cannot do
//!
//! Uploads are not trusted. Unknown settings are errors, so a persona cannot act as configuration. YAML anchors,
//! aliases and tags are refused. `model`, `voice` and `avatar` cannot be paths. Control tokens of chat templates
//! (`<|im_start|>`, `[INST]`, ...), control characters, direction overrides and invisible tag characters are errors in
//! a file, and defused in a card. Every size has a limit, in [`limits`].
//!
//! # Character cards
//!
//! [`import_card`] reads V1, V2 and V3 as JSON, PNG or CharX into a persona, with notes on the mapping:
//!
//! | card | persona |
//! |---|---|
//! | `name`, `nickname` | name and id, wake name |
//! | `description` | Core Identity |
//! | `personality` | Psychological Profile, Personality |
//! | `scenario` | Prime Directive, Dynamic |
//! | `system_prompt`, `post_history_instructions` | Prime Directive, Instructions and Constraint |
//! | `mes_example` | Example interaction |
//! | greetings, `character_book`, all else | [`CardData`], which the host stores with the persona |
//!
//! [`to_card`] converts in the other direction.

mod builtin;
mod card;
mod cues;
mod error;
mod examples;
mod fold;
mod front_matter;
mod hygiene;
mod language_tag;
pub mod limits;
mod lines;
mod names;
mod parse;
mod parts;
mod persona;
mod placeholders;
mod problem;
mod render;
mod sentiments;
mod slug;
mod tasks;
mod validate;
mod words;
mod yaml;

pub use builtin::{BUILT_INS, BuiltIn, built_in, template};
pub use card::{
    CardData, CardSpec, ImportedCard, Key, Logic, LoreEntry, Lorebook, Note, Recursion, Sources, Talk, import_card,
    to_card,
};
pub use error::Error;
pub use fold::plain as plain_name;
pub use hygiene::defuse;
pub use names::{SpokenName, callable_as, spoken_names};
pub use parse::{Checked, check, check_bytes, parse};
pub use persona::{
    BlendLayer, ExampleInteraction, ExampleTurn, Exchange, MemorySettings, Persona, PersonaKind, PictureStyle,
    PrimeDirective, PsychologicalProfile, Section, Speaker, StyleBlend, TaskBehaviour, VoiceSettings,
};
pub use placeholders::fill_placeholders;
pub use problem::{Problem, Severity};
pub use sentiments::Sentiment;
pub use slug::PersonaSlug;
pub use tasks::speaks_of_loss;
