//! The front matter: the settings between the `---` lines, and their allowed values.

use std::ops::RangeInclusive;

use azera_types::Dimension;

use crate::hygiene::hazards;
use crate::language_tag::language_tag;
use crate::limits::{
    MAX_AVATAR_CHARS, MAX_BLEND_NAME_CHARS, MAX_LANGUAGE_CHARS, MAX_NAME_CHARS, MAX_PICTURE_STYLE_CHARS,
    MAX_REFERENCE_CHARS, MAX_WAKE_NAME_CHARS, MAX_WAKE_NAMES,
};
use crate::persona::{BlendLayer, MemorySettings, PersonaKind, PictureStyle, StyleBlend, VoiceSettings};
use crate::problem::Problems;
use crate::slug::PersonaSlug;
use crate::yaml::{Key, Node, Value, read};

/// The settings of a persona file.
#[derive(Debug, Default)]
pub(crate) struct FrontMatter {
    pub(crate) id: Option<PersonaSlug>,
    pub(crate) name: Option<String>,
    pub(crate) kind: PersonaKind,
    pub(crate) model: Option<String>,
    pub(crate) voice: VoiceSettings,
    pub(crate) pictures: PictureStyle,
    pub(crate) avatar: Option<String>,
    pub(crate) wake_names: Vec<String>,
    pub(crate) style_blend: StyleBlend,
    /// Line of the style blend's sentiment layer.
    pub(crate) sentiment_line: usize,
    pub(crate) memory: MemorySettings,
}

const KEYS: &str = "id, name, kind, model, voice, pictures, avatar, wake_names, style_blend, memory";
const VOICE_KEYS: &str = "name, language, pace, pitch, liveliness";
const PICTURE_KEYS: &str = "style, negative";
const MEMORY_KEYS: &str = "top_k, prune_keep, emotion_decay_rate, working_notes_every_n_turns";

/// Reads the YAML `text`, whose first line has the number `first`.
pub(crate) fn read_front_matter(text: &str, first: usize, problems: &mut Problems) -> FrontMatter {
    let mut settings = FrontMatter::default();
    let before = problems.has_errors();
    let Some(root) = read(text, first, problems) else {
        if before == problems.has_errors() {
            problems.error(first, "the front matter is empty; give at least `id` and `name`");
        }
        return settings;
    };
    let Value::Map(entries) = root.value else {
        problems.error(root.line, "the front matter must be settings like `name: Azera`, one a line");
        return settings;
    };
    let (mut saw_id, mut saw_name) = (false, false);
    for (key, node) in &entries {
        let mut field = Field { key, problems };
        match key.text.as_str() {
            "id" => {
                saw_id = true;
                settings.id = field.id(node);
            }
            "name" => {
                saw_name = true;
                settings.name = field.text(node, MAX_NAME_CHARS);
            }
            "kind" => settings.kind = field.kind(node).unwrap_or_default(),
            "model" => settings.model = field.reference(node),
            "voice" => settings.voice = voice(key, node, problems),
            "pictures" => settings.pictures = pictures(key, node, problems),
            "avatar" => settings.avatar = field.avatar(node),
            "wake_names" => settings.wake_names = field.wake_names(node),
            "style_blend" => (settings.style_blend, settings.sentiment_line) = style_blend(key, node, problems),
            "memory" => settings.memory = memory(key, node, problems),
            _ => field.unknown("a persona setting", KEYS),
        }
    }
    if !saw_id {
        problems.error(first, "`id` is missing; add a line such as `id: night-watch`");
    }
    if !saw_name {
        problems.error(first, "`name` is missing; add a line such as `name: Night Watch`");
    }
    settings
}

/// Returns the layers, and the line of the sentiment layer.
fn style_blend(key: &Key, node: &Node, problems: &mut Problems) -> (StyleBlend, usize) {
    let (mut blend, mut sentiment_line) = (StyleBlend::default(), key.line);
    for (key, node) in entries(key, node, problems) {
        let layer = match key.text.as_str() {
            "persona" | "personas" => &mut blend.persona,
            "sentiment" | "sentiments" => {
                sentiment_line = key.line;
                &mut blend.sentiment
            }
            _ => {
                Field { key, problems }.unknown("a layer of style_blend", "persona, sentiment");
                continue;
            }
        };
        if layer.is_some() {
            problems.error_at(key.line, key.column, format!("the layer `{}` is given twice; keep one", key.text));
        }
        *layer = blend_layer(key, node, problems);
    }
    (blend, sentiment_line)
}

fn blend_layer(layer: &Key, node: &Node, problems: &mut Problems) -> Option<BlendLayer> {
    let (mut axis, mut primary, mut secondary, mut threshold) = (None, None, None, None);
    for (key, node) in entries(layer, node, problems) {
        let mut field = Field { key, problems };
        match key.text.as_str() {
            "axis" => axis = field.axis(node),
            "primary" => primary = field.blend_name(node),
            "secondary" => secondary = field.blend_name(node),
            "threshold" => threshold = field.decimal(node, 0.0..=1.0),
            _ => field.unknown("part of a style_blend layer", "axis, primary, secondary, threshold"),
        }
    }
    match (axis, primary, secondary, threshold) {
        (Some(axis), Some(primary), Some(secondary), Some(threshold)) => {
            Some(BlendLayer { axis, primary, secondary, threshold })
        }
        _ => {
            let message = format!(
                "the layer `{}` needs all of axis, primary, secondary and threshold, as in \
                 `{{axis: tension, primary: azera, secondary: areza, threshold: 0.6}}`",
                layer.text
            );
            problems.error_at(layer.line, layer.column, message);
            None
        }
    }
}

/// Reads a voice: its name alone, or settings of its own.
fn voice(key: &Key, node: &Node, problems: &mut Problems) -> VoiceSettings {
    let mut voice = VoiceSettings::default();
    if let Value::Scalar { .. } = &node.value {
        voice.name = Field { key, problems }.voice(node);
        return voice;
    }
    for (key, node) in entries(key, node, problems) {
        let mut field = Field { key, problems };
        match key.text.as_str() {
            "name" => voice.name = field.voice(node),
            "language" => voice.language = field.language(node),
            "pitch" => voice.pitch = field.decimal(node, VoiceSettings::PITCH),
            "pace" => voice.pace = field.decimal(node, VoiceSettings::PACE),
            "liveliness" => voice.liveliness = field.decimal(node, VoiceSettings::LIVELINESS),
            _ => field.unknown("a voice setting", VOICE_KEYS),
        }
    }
    voice
}

/// Reads how pictures look.
fn pictures(key: &Key, node: &Node, problems: &mut Problems) -> PictureStyle {
    let mut pictures = PictureStyle::default();
    for (key, node) in entries(key, node, problems) {
        let mut field = Field { key, problems };
        match key.text.as_str() {
            "style" => pictures.style = field.text(node, MAX_PICTURE_STYLE_CHARS),
            "negative" => pictures.negative = field.text(node, MAX_PICTURE_STYLE_CHARS),
            _ => field.unknown("a picture setting", PICTURE_KEYS),
        }
    }
    pictures
}

fn memory(key: &Key, node: &Node, problems: &mut Problems) -> MemorySettings {
    let mut memory = MemorySettings::default();
    for (key, node) in entries(key, node, problems) {
        let mut field = Field { key, problems };
        match key.text.as_str() {
            "top_k" => memory.top_k = field.whole(node, MemorySettings::TOP_K),
            "prune_keep" => memory.prune_keep = field.whole(node, MemorySettings::PRUNE_KEEP),
            "emotion_decay_rate" => {
                memory.emotion_decay_rate = field.decimal(node, MemorySettings::EMOTION_DECAY_RATE);
            }
            "working_notes_every_n_turns" => {
                memory.working_notes_every_n_turns = field.whole(node, MemorySettings::WORKING_NOTES_EVERY_N_TURNS);
            }
            _ => field.unknown("a memory setting", MEMORY_KEYS),
        }
    }
    memory
}

fn entries<'a>(key: &Key, node: &'a Node, problems: &mut Problems) -> &'a [(Key, Node)] {
    match &node.value {
        Value::Map(entries) => entries,
        Value::Scalar { .. } | Value::List(_) => {
            problems.error_at(node.line, node.column, format!("`{}` must hold settings of its own", key.text));
            &[]
        }
    }
}

/// A setting that is being read.
struct Field<'a> {
    key: &'a Key,
    problems: &'a mut Problems,
}

impl Field<'_> {
    fn reject(&mut self, node: &Node, message: &str) {
        self.problems.error_at(node.line, node.column, format!("`{}` {message}", self.key.text));
    }

    fn unknown(&mut self, what: &str, known: &str) {
        let name: String = self.key.text.chars().take(MAX_NAME_CHARS).collect();
        let message = format!(
            "`{name}` is not {what}; there are {known}. Persona files cannot change other configuration: \
             remove the line, or move the text into a section"
        );
        self.problems.error_at(self.key.line, self.key.column, message);
    }

    fn text(&mut self, node: &Node, max_chars: usize) -> Option<String> {
        let Value::Scalar { text, .. } = &node.value else {
            self.reject(node, "must be one piece of text");
            return None;
        };
        let text = text.trim();
        let chars = text.chars().count();
        if text.is_empty() {
            self.reject(node, "is empty; give it a value or remove the line");
        } else if chars > max_chars {
            self.reject(node, &format!("has {chars} characters; at most {max_chars} are allowed"));
        } else if text.contains('\n') {
            self.reject(node, "must stand on one line");
        } else if let Some(hazard) = hazards(text).first() {
            // The lines of the file are checked elsewhere; this check finds what YAML escapes produce.
            self.reject(node, &format!("is not allowed: {}", hazard.message));
        } else {
            return Some(text.to_owned());
        }
        None
    }

    fn id(&mut self, node: &Node) -> Option<PersonaSlug> {
        let text = self.text(node, MAX_AVATAR_CHARS)?;
        text.parse().map_err(|error: crate::Error| self.reject(node, &format!("is not valid: {error}"))).ok()
    }

    fn kind(&mut self, node: &Node) -> Option<PersonaKind> {
        match self.text(node, MAX_NAME_CHARS)?.as_str() {
            "assistant" => Some(PersonaKind::Assistant),
            "user" => Some(PersonaKind::User),
            _ => {
                self.reject(node, "must be `assistant` (a character) or `user` (a role people play)");
                None
            }
        }
    }

    /// Reads the name of a model, which can be neither a path nor shell code.
    fn reference(&mut self, node: &Node) -> Option<String> {
        let text = self.text(node, MAX_REFERENCE_CHARS)?;
        let allowed = text.chars().all(|c| c.is_ascii_alphanumeric() || "._:/-".contains(c));
        if allowed && !text.starts_with(['/', '.', '-']) && !text.contains("..") {
            return Some(text);
        }
        self.reject(node, "must be a name from the ledger, such as `smollm2-135m`: letters, digits and . _ : / - only");
        None
    }

    /// Reads the name of a voice. Servers of speech have names such as `Ana Florence` and mixes such as `af_heart+af_sky`.
    fn voice(&mut self, node: &Node) -> Option<String> {
        let text = self.text(node, MAX_REFERENCE_CHARS)?;
        let allowed = text.chars().all(|c| c.is_alphanumeric() || "._:/-+() ".contains(c));
        if allowed && !text.starts_with(['/', '.', '-']) && !text.contains("..") {
            return Some(text);
        }
        self.reject(node, "must be the name of a voice: letters, digits, spaces and . _ : / - + ( ) only");
        None
    }

    /// Reads a language as a BCP 47 tag.
    fn language(&mut self, node: &Node) -> Option<String> {
        let text = self.text(node, MAX_LANGUAGE_CHARS)?;
        let tag = language_tag(&text);
        if tag.is_none() {
            let mend = language_tag(&text.replace('_', "-")).map(|tag| format!("; write `{tag}`")).unwrap_or_default();
            self.reject(node, &format!("must be a language as a BCP 47 tag, such as `en`, `de` or `pt-BR`{mend}"));
        }
        tag
    }

    fn avatar(&mut self, node: &Node) -> Option<String> {
        let text = self.text(node, MAX_AVATAR_CHARS)?;
        let file_name = !text.contains(['/', '\\', ':']) && !text.starts_with('.');
        let address = text.strip_prefix("https://").is_some_and(|rest| !rest.is_empty()) && !text.contains(' ');
        if file_name || address {
            return Some(text);
        }
        self.reject(node, "must be a plain file name (`azera.png`) or an https:// address");
        None
    }

    fn blend_name(&mut self, node: &Node) -> Option<String> {
        let text = self.text(node, MAX_BLEND_NAME_CHARS)?;
        if text.chars().all(|c| c.is_alphanumeric() || "_- ".contains(c)) {
            return Some(text);
        }
        self.reject(node, "must be a name of letters, digits, `_` and `-`");
        None
    }

    fn axis(&mut self, node: &Node) -> Option<Dimension> {
        let axis = Dimension::named(&self.text(node, MAX_BLEND_NAME_CHARS)?);
        if axis.is_none() {
            let known = Dimension::ALL.map(Dimension::name).join(", ");
            self.reject(node, &format!("must be a feeling: {known}"));
        }
        axis
    }

    fn wake_names(&mut self, node: &Node) -> Vec<String> {
        let Value::List(items) = &node.value else {
            self.reject(node, "must be a list, as in `[Azera, Az]`");
            return Vec::new();
        };
        if items.len() > MAX_WAKE_NAMES {
            self.reject(node, &format!("lists {} names; at most {MAX_WAKE_NAMES} are allowed", items.len()));
        }
        let mut names: Vec<String> = Vec::new();
        for item in items.iter().take(MAX_WAKE_NAMES) {
            let Some(name) = self.text(item, MAX_WAKE_NAME_CHARS) else { continue };
            if !name.chars().any(char::is_alphanumeric) {
                self.reject(item, "holds a name without a letter, which would wake it at every message");
            } else if names.iter().any(|known| known.to_lowercase() == name.to_lowercase()) {
                self.reject(item, &format!("lists {name} twice; keep one"));
            } else {
                names.push(name);
            }
        }
        names
    }

    fn whole(&mut self, node: &Node, range: RangeInclusive<u64>) -> Option<u64> {
        let parsed = match &node.value {
            Value::Scalar { text, plain: true } => text.replace('_', "").parse().ok(),
            _ => None,
        };
        let value = parsed.filter(|value| range.contains(value));
        if value.is_none() {
            self.reject(node, &format!("must be a whole number from {} to {}", range.start(), range.end()));
        }
        value
    }

    fn decimal(&mut self, node: &Node, range: RangeInclusive<f64>) -> Option<f64> {
        let parsed = match &node.value {
            Value::Scalar { text, plain: true } => text.parse().ok(),
            _ => None,
        };
        // `-0` is in the range, but differs from 0 when written as text and compared by bits.
        let value = parsed.filter(|value| range.contains(value)).map(|value: f64| value.abs());
        if value.is_none() {
            self.reject(node, &format!("must be a number from {} to {}", range.start(), range.end()));
        }
        value
    }
}
