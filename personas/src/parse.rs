//! Parses a persona file into a [`Persona`], or into a list of all its problems.

use std::collections::BTreeMap;

use azera_types::composed;

use crate::examples::read_examples;
use crate::front_matter::{FrontMatter, read_front_matter};
use crate::hygiene::hazards;
use crate::limits::{MAX_FILE_BYTES, MAX_FRONT_MATTER_BYTES, MAX_SECTIONS};
use crate::lines::{Line, heading, join, scan, unify_line_ends};
use crate::parts::{Block, Fields, plain_title, read_fields, split_at_headings};
use crate::persona::{Persona, PrimeDirective, PsychologicalProfile, Section};
use crate::problem::{Problem, Problems, Severity};
use crate::sentiments::{check_layer, read_sentiments};
use crate::slug::PersonaSlug;
use crate::tasks::read_tasks;
use crate::validate::validate;

/// The result of checking a persona file.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The persona, if the file has no error.
    pub persona: Option<Persona>,
    /// Errors and warnings, by line.
    pub problems: Vec<Problem>,
}

/// The known sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Known {
    Brief,
    Intent,
    CoreIdentity,
    PrimeDirective,
    Interface,
    Profile,
    Quirks,
    Tasks,
    Examples,
    Sentiments,
}

impl Known {
    pub(crate) const ALL: [Self; 10] = [
        Self::Brief,
        Self::Intent,
        Self::CoreIdentity,
        Self::PrimeDirective,
        Self::Interface,
        Self::Profile,
        Self::Quirks,
        Self::Tasks,
        Self::Examples,
        Self::Sentiments,
    ];

    /// Returns the title in the normal form.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Brief => "Brief",
            Self::Intent => "Intent",
            Self::CoreIdentity => "Core Identity",
            Self::PrimeDirective => "Prime Directive",
            Self::Interface => "Interface & Presence",
            Self::Profile => "Psychological Profile",
            Self::Quirks => "Quirks",
            Self::Tasks => "Task Behaviours",
            Self::Examples => "Example interaction",
            Self::Sentiments => "Sentiments",
        }
    }

    fn by_title(title: &str) -> Option<Self> {
        Some(match plain_title(title).as_str() {
            "brief" => Self::Brief,
            "intent" => Self::Intent,
            "core identity" => Self::CoreIdentity,
            "prime directive" => Self::PrimeDirective,
            "interface and presence" => Self::Interface,
            "psychological profile" => Self::Profile,
            "quirks" => Self::Quirks,
            "task behaviours" | "task behaviour" => Self::Tasks,
            "sentiments" => Self::Sentiments,
            "example interaction" | "example interactions" | "examples" => Self::Examples,
            _ => return None,
        })
    }
}

/// Titles of the parts of *Prime Directive* in the normal form; below, all accepted spellings.
pub(crate) const DIRECTIVE_TITLES: [&str; 4] = ["Identity of the User", "Dynamic", "Tone", "Constraint"];
const DIRECTIVE_NAMES: [&[&str]; 4] = [
    &["identity of the user", "identity of user", "user identity"],
    &["dynamic", "dynamics"],
    &["tone"],
    &["constraint", "constraints"],
];

/// Titles of the parts of *Psychological Profile*.
pub(crate) const PROFILE_TITLES: [&str; 5] = ["Archetype", "MBTI", "Values", "Cognitive Style", "Emotional Landscape"];
const PROFILE_NAMES: [&[&str]; 5] =
    [&["archetype"], &["mbti", "mbti type"], &["values"], &["cognitive style"], &["emotional landscape"]];

/// Parses a persona file.
///
/// # Errors
///
/// All problems, by line, if at least one is an error. [`check`] also returns the warnings of a valid file.
pub fn parse(text: &str) -> Result<Persona, Vec<Problem>> {
    let checked = check(text);
    checked.persona.ok_or(checked.problems)
}

/// Checks a persona file that may not be text.
pub fn check_bytes(bytes: &[u8]) -> Checked {
    if bytes.len() > MAX_FILE_BYTES {
        return too_large(bytes.len());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => check(text),
        Err(error) => {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            refused(line, "the file is not UTF-8 text here; save it as UTF-8".to_owned())
        }
    }
}

/// Parses a persona file and returns all its problems, with warnings.
pub fn check(text: &str) -> Checked {
    if text.len() > MAX_FILE_BYTES {
        return too_large(text.len());
    }
    let text = composed(text.strip_prefix('\u{FEFF}').unwrap_or(text));
    let text = unify_line_ends(&text);
    let mut problems = Problems::default();
    for (index, line) in text.split('\n').enumerate() {
        for hazard in hazards(line) {
            problems.error_at(index + 1, hazard.column, hazard.message);
        }
    }
    let (settings, body, body_line) = split_front_matter(&text, &mut problems);
    let persona = read_body(settings, body, body_line, &mut problems);
    let last_line = text.trim_end().split('\n').count();
    let persona = persona.filter(|_| !problems.has_errors());
    if let Some(persona) = &persona {
        let bytes = persona.to_markdown().len();
        if bytes > MAX_FILE_BYTES {
            let message =
                format!("in its normal form the file has {bytes} bytes; at most {MAX_FILE_BYTES} are allowed");
            problems.error(last_line, message);
        }
    }
    Checked { persona: persona.filter(|_| !problems.has_errors()), problems: problems.into_sorted() }
}

fn too_large(bytes: usize) -> Checked {
    refused(1, format!("the file has {bytes} bytes; at most {MAX_FILE_BYTES} are allowed: shorten it"))
}

fn refused(line: usize, message: String) -> Checked {
    Checked { persona: None, problems: vec![Problem { line, column: None, severity: Severity::Error, message }] }
}

/// Returns the settings, the body, and the number of the body's first line.
fn split_front_matter<'a>(text: &'a str, problems: &mut Problems) -> (FrontMatter, &'a str, usize) {
    let Some((_, after)) = text.split_once('\n').filter(|(first, _)| first.trim_end() == "---") else {
        problems.error(
            1,
            "a persona file begins with its settings: a line `---`, lines such as `id: night-watch` and \
             `name: Night Watch`, and a line `---` again",
        );
        return (FrontMatter::default(), text, 1);
    };
    let mut yaml_bytes = 0;
    for (index, line) in after.split('\n').enumerate() {
        if line.trim_end() == "---" {
            let yaml = after.get(..yaml_bytes).unwrap_or_default();
            let body = after.get(yaml_bytes + line.len() + 1..).unwrap_or_default();
            if yaml_bytes > MAX_FRONT_MATTER_BYTES {
                let message =
                    format!("the settings have {yaml_bytes} bytes; at most {MAX_FRONT_MATTER_BYTES} are allowed");
                problems.error(2, message);
                return (FrontMatter::default(), body, index + 3);
            }
            return (read_front_matter(yaml, 2, problems), body, index + 3);
        }
        yaml_bytes += line.len() + 1;
    }
    problems.error(1, "the settings begin here and never end; put a line `---` after the last one");
    (FrontMatter::default(), "", 1)
}

/// Reads the sections; `None` if required settings are missing.
fn read_body(settings: FrontMatter, body: &str, first: usize, problems: &mut Problems) -> Option<Persona> {
    let scan = scan(body, first);
    if let Some(line) = scan.open_comment {
        problems.error(line, "the comment that begins here never ends; add `-->`");
    }
    if let Some((line, _)) = scan.open_fence {
        problems
            .error(line, "the code fence that begins here never ends; add a line with the same marks after the code");
    }
    // A persona is built even without id and name, so that the problems of its sections are reported, too.
    let complete = settings.id.is_some() && settings.name.is_some();
    let id = settings.id.unwrap_or_else(|| PersonaSlug::from_name("unnamed"));
    let mut persona = Persona::empty(id, settings.name.unwrap_or_default());
    persona.kind = settings.kind;
    persona.model = settings.model;
    persona.voice = settings.voice;
    persona.pictures = settings.pictures;
    persona.avatar = settings.avatar;
    persona.wake_names = settings.wake_names;
    persona.style_blend = settings.style_blend;
    persona.memory = settings.memory;

    let lines = take_file_title(scan.lines, &persona.name, complete, problems);
    let (lead, blocks) = split_at_headings(&lines, 2, problems);
    persona.about = join(&lead);
    if blocks.len() > MAX_SECTIONS {
        let message = format!("the file has {} sections; at most {MAX_SECTIONS} are allowed", blocks.len());
        problems.error(blocks.get(MAX_SECTIONS).map_or(first, |block| block.line), message);
    }
    let mut places = BTreeMap::new();
    for block in blocks.iter().take(MAX_SECTIONS) {
        read_section(block, &mut persona, &mut places, problems);
    }
    let last_line = first + body.trim_end().split('\n').count() - 1;
    validate(&persona, &places, last_line, problems);
    if let Some(layer) = &persona.style_blend.sentiment {
        check_layer(&persona, layer, settings.sentiment_line, problems);
    }
    complete.then_some(persona)
}

/// Removes the `# Name` line at the head of the file. Rejects other headings of that level, which are probably sections
/// that need `##`.
fn take_file_title<'a>(lines: Vec<Line<'a>>, name: &str, complete: bool, problems: &mut Problems) -> Vec<Line<'a>> {
    let mut started = false;
    let mut retained = Vec::with_capacity(lines.len());
    let shown = format!("# {name}");
    let own = heading(&shown).map(|(_, own)| own);
    for line in lines {
        match heading(line.text).filter(|_| !line.code) {
            // A persona's name may be the title of a section.
            Some((1, title)) if !started && (Known::by_title(title).is_none() || own == Some(title)) => {
                started = true;
                if complete && own.is_some_and(|own| own != title) {
                    let message = format!("the title `{title}` is not the persona's name, `{name}`, and is dropped");
                    problems.warning(line.number, message);
                }
            }
            Some((1, title)) => {
                let message = format!("sections begin with two `#`: write `## {title}`, or `### {title}` within one");
                problems.error(line.number, message);
            }
            found => {
                started |= found.is_some();
                if !line.code && line.text.starts_with("##") && found.is_none() {
                    problems.warning(line.number, "this is no heading; put a space after the `#` to make it one");
                }
                retained.push(line);
            }
        }
    }
    retained
}

fn read_section(
    block: &Block<'_>,
    persona: &mut Persona,
    places: &mut BTreeMap<Known, usize>,
    problems: &mut Problems,
) {
    let Some(known) = Known::by_title(block.title) else {
        persona.other.push(Section { title: block.title.to_owned(), text: join(&block.lines) });
        return;
    };
    if let Some(earlier) = places.insert(known, block.line) {
        places.insert(known, earlier);
        let message = format!("the section `{}` appears twice, first in line {earlier}; join the two", known.title());
        problems.error(block.line, message);
        return;
    }
    match known {
        Known::Brief => persona.brief = join(&block.lines),
        Known::Intent => persona.intent = join(&block.lines),
        Known::CoreIdentity => persona.core_identity = join(&block.lines),
        Known::Interface => persona.interface_and_presence = join(&block.lines),
        Known::Quirks => persona.quirks = join(&block.lines),
        Known::PrimeDirective => {
            let mut fields = read_fields(&block.lines, &DIRECTIVE_NAMES, problems);
            persona.prime_directive = PrimeDirective {
                identity_of_the_user: fields.take(0),
                dynamic: fields.take(1),
                tone: fields.take(2),
                constraint: fields.take(3),
                other: other_sections(&mut fields),
                lead: fields.lead,
            };
        }
        Known::Profile => {
            let mut fields = read_fields(&block.lines, &PROFILE_NAMES, problems);
            let mbti = fields.known.get(1).and_then(Option::as_ref);
            if let Some(part) = mbti.filter(|part| !part.text.is_empty()) {
                crate::validate::check_mbti(&part.text, part.line, problems);
            }
            persona.psychological_profile = PsychologicalProfile {
                archetype: fields.take(0),
                mbti: fields.take(1),
                values: fields.take(2),
                cognitive_style: fields.take(3),
                emotional_landscape: fields.take(4),
                other: other_sections(&mut fields),
                lead: fields.lead,
            };
        }
        Known::Tasks => persona.task_behaviours = read_tasks(&block.lines, problems),
        Known::Sentiments => persona.sentiments = read_sentiments(&block.lines, problems),
        Known::Examples => persona.examples = read_examples(&block.lines, persona.cast(), problems),
    }
}

fn other_sections(fields: &mut Fields) -> Vec<Section> {
    std::mem::take(&mut fields.other).into_iter().map(|part| Section { title: part.title, text: part.text }).collect()
}
