//! Writes the normal form of a persona file.

use std::fmt::Write;

use crate::examples::Cast;
use crate::hygiene::hazards;
use crate::lines::{fence_delimiter, settle};
use crate::parse::{DIRECTIVE_TITLES, Known, PROFILE_TITLES};
use crate::persona::{BlendLayer, ExampleTurn, MemorySettings, Persona, PictureStyle, Section, VoiceSettings};

/// Words that YAML does not read as text.
const YAML_WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];

impl Persona {
    /// Returns the normal form: known sections first, in a fixed order, each part under a heading, then the other
    /// sections in file order. [`crate::parse`] reads it back to an equal persona.
    pub fn to_markdown(&self) -> String {
        let mut out = Markdown::default();
        self.write_front_matter(&mut out);
        out.heading(1, &self.name);
        out.text(&self.about, 2);
        out.section(Known::Brief.title(), &self.brief);
        out.section(Known::Intent.title(), &self.intent);
        out.section(Known::CoreIdentity.title(), &self.core_identity);
        let directive = &self.prime_directive;
        let parts = [&directive.identity_of_the_user, &directive.dynamic, &directive.tone, &directive.constraint];
        out.fields(Known::PrimeDirective, &directive.lead, &DIRECTIVE_TITLES, &parts, &directive.other);
        out.section(Known::Interface.title(), &self.interface_and_presence);
        let profile = &self.psychological_profile;
        let parts = [
            &profile.archetype,
            &profile.mbti,
            &profile.values,
            &profile.cognitive_style,
            &profile.emotional_landscape,
        ];
        out.fields(Known::Profile, &profile.lead, &PROFILE_TITLES, &parts, &profile.other);
        out.section(Known::Quirks.title(), &self.quirks);
        if !self.task_behaviours.is_empty() {
            out.heading(2, Known::Tasks.title());
        }
        for task in &self.task_behaviours {
            out.heading(3, &format!("If {}", task.task));
            if !task.cues.is_empty() {
                out.text(&format!("Cues: {}", task.cues.join(", ")), 3);
            }
            out.text(&task.text, 3);
        }
        if !self.examples.is_empty() {
            out.heading(2, Known::Examples.title());
        }
        for example in &self.examples {
            out.heading(3, &example.title);
            for turn in &example.turns {
                out.text(&turn_text(turn, self.cast()), 3);
            }
        }
        if !self.sentiments.is_empty() {
            out.heading(2, Known::Sentiments.title());
        }
        for sentiment in &self.sentiments {
            out.heading(3, &sentiment.name);
            let lines: Vec<String> =
                sentiment.directives.iter().map(|line| format!("- {}", line.replace('\n', " "))).collect();
            out.text(&lines.join("\n"), 3);
        }
        for section in &self.other {
            out.heading(2, &section.title);
            out.text(&section.text, 2);
        }
        out.0
    }

    /// Writes the voice: its name alone, or with settings of its own.
    fn write_voice(&self, out: &mut Markdown) {
        let VoiceSettings { name, language, pace, pitch, liveliness } = &self.voice;
        let name = name.as_ref().map(|name| scalar(name));
        if let (Some(name), None, None, None, None) = (&name, language, pace, pitch, liveliness) {
            out.line(&format!("voice: {name}"));
            return;
        }
        let number = |value: &Option<f64>| value.map(|value| value.to_string());
        let settings = [
            ("name", name),
            // `no` is Norwegian, and no answer.
            ("language", language.as_ref().map(|language| scalar(language))),
            ("pace", number(pace)),
            ("pitch", number(pitch)),
            ("liveliness", number(liveliness)),
        ];
        if settings.iter().any(|(_, value)| value.is_some()) {
            out.line("voice:");
        }
        for (key, value) in settings {
            if let Some(value) = value {
                out.line(&format!("  {key}: {value}"));
            }
        }
    }

    fn write_pictures(&self, out: &mut Markdown) {
        let PictureStyle { style, negative } = &self.pictures;
        if style.is_some() || negative.is_some() {
            out.line("pictures:");
        }
        for (key, value) in [("style", style), ("negative", negative)] {
            if let Some(value) = value {
                out.line(&format!("  {key}: {}", scalar(value)));
            }
        }
    }

    fn write_front_matter(&self, out: &mut Markdown) {
        out.line("---");
        out.line(&format!("id: {}", scalar(self.id.as_str())));
        out.line(&format!("name: {}", scalar(&self.name)));
        out.line(&format!("kind: {}", self.kind.as_str()));
        let setting = |out: &mut Markdown, key: &str, value: &Option<String>| {
            if let Some(value) = value {
                out.line(&format!("{key}: {}", scalar(value)));
            }
        };
        setting(out, "model", &self.model);
        self.write_voice(out);
        self.write_pictures(out);
        setting(out, "avatar", &self.avatar);
        if !self.wake_names.is_empty() {
            let listed = |write: fn(&str) -> String| {
                let names: Vec<_> = self.wake_names.iter().map(|name| write(name)).collect();
                format!("wake_names: [{}]", names.join(", "))
            };
            let bare = listed(scalar);
            // `[think]` would be a control token.
            out.line(&if hazards(&bare).is_empty() { bare } else { listed(quoted) });
        }
        let layers = [("persona", &self.style_blend.persona), ("sentiment", &self.style_blend.sentiment)];
        if layers.iter().any(|(_, layer)| layer.is_some()) {
            out.line("style_blend:");
        }
        for (key, layer) in layers {
            if let Some(BlendLayer { axis, primary, secondary, threshold }) = layer {
                out.line(&format!("  {key}:"));
                out.line(&format!("    axis: {}", axis));
                out.line(&format!("    primary: {}", scalar(primary)));
                out.line(&format!("    secondary: {}", scalar(secondary)));
                out.line(&format!("    threshold: {threshold}"));
            }
        }
        let memory = &self.memory;
        if *memory != MemorySettings::default() {
            out.line("memory:");
        }
        let whole = |value: Option<u64>| value.map(|value| value.to_string());
        for (key, value) in [
            ("top_k", whole(memory.top_k)),
            ("prune_keep", whole(memory.prune_keep)),
            ("emotion_decay_rate", memory.emotion_decay_rate.map(|rate| rate.to_string())),
            ("working_notes_every_n_turns", whole(memory.working_notes_every_n_turns)),
        ] {
            if let Some(value) = value {
                out.line(&format!("  {key}: {value}"));
            }
        }
        out.line("---");
    }
}

/// Text blocks separated by blank lines.
#[derive(Default)]
struct Markdown(String);

impl Markdown {
    fn line(&mut self, text: &str) {
        writeln!(self.0, "{text}").expect("writing to a String cannot fail");
    }

    fn heading(&mut self, level: usize, title: &str) {
        let title = title.replace('\n', " ");
        self.line(&format!("\n{} {title}", "#".repeat(level)));
    }

    /// Writes a text without headings up to `level`. Parsed texts have none; others are converted.
    fn text(&mut self, text: &str, level: usize) {
        let text = settle(text, level);
        if !text.is_empty() {
            self.line(&format!("\n{text}"));
        }
    }

    fn section(&mut self, title: &str, text: &str) {
        if !text.is_empty() {
            self.heading(2, title);
            self.text(text, 2);
        }
    }

    fn fields(&mut self, known: Known, lead: &str, titles: &[&str], texts: &[&String], other: &[Section]) {
        if lead.is_empty() && other.is_empty() && texts.iter().all(|text| text.is_empty()) {
            return;
        }
        self.heading(2, known.title());
        self.text(lead, 3);
        for (title, text) in titles.iter().zip(texts).filter(|(_, text)| !text.is_empty()) {
            self.heading(3, title);
            self.text(text, 3);
        }
        for part in other {
            self.heading(3, &part.title);
            self.text(&part.text, 3);
        }
    }
}

/// Returns a turn with its label. The text follows on the same line, unless it begins with code or indentation, which
/// need a line of their own.
fn turn_text(turn: &ExampleTurn, cast: Cast<'_>) -> String {
    let label = cast.label(turn.speaker);
    let text = &turn.text;
    if text.starts_with(char::is_whitespace) || fence_delimiter(text.lines().next().unwrap_or_default()).is_some() {
        format!("**{label}:**\n{text}")
    } else {
        format!("**{label}:** {text}")
    }
}

/// Returns a YAML scalar: bare if that is safe, otherwise in JSON quotes, which YAML reads in the same way.
pub(crate) fn scalar(text: &str) -> String {
    let bare = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || " _.-/".contains(c))
        && !YAML_WORDS.contains(&text.to_ascii_lowercase().as_str());
    if bare { text.to_owned() } else { quoted(text) }
}

/// Returns the text in quotes, as both YAML and JSON read it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
