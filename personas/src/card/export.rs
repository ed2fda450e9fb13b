//! Converts a persona to a character card.

use serde_json::{Map, Value, json};

use super::convert::Conversion;
use super::{CardData, CardSpec, INSTRUCTIONS_TITLE, PERSONALITY_TITLE, REPEATED, TOP_LEVEL, default_intent};
use crate::persona::{ExampleInteraction, Persona, Section, Speaker};

/// Fields of a card that personas and [`CardData`] hold in a form of their own.
const HELD: [&str; 11] = [
    "name",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
    "system_prompt",
    "post_history_instructions",
    "alternate_greetings",
    "group_only_greetings",
    "character_book",
];

/// Fields that V1 has not.
const LATER: [&str; 5] =
    ["system_prompt", "post_history_instructions", "alternate_greetings", "group_only_greetings", "character_book"];

/// Returns the persona as a character card. Parts without a field in cards (presence, quirks, task behaviours, other
/// sections) go into the description under headings. Settings such as model, voice and memory are left out. `data` of
/// the card that the persona came from, if any, is included. A field that the persona still holds as the card had it is
/// written as the card had it, macros and all.
pub fn to_card(persona: &Persona, data: &CardData, spec: CardSpec) -> Value {
    let mut card = card_fields(persona, data);
    restore(&mut card, data);
    let (top_level, repeated) = (card.remove(TOP_LEVEL), card.remove(REPEATED));
    if spec == CardSpec::V1 {
        for field in LATER {
            if !data.extras.contains_key(field) {
                card.remove(field);
            }
        }
        return Value::Object(card);
    }
    let required = [
        ("creator_notes", Value::from("")),
        ("creator", Value::from("")),
        ("character_version", Value::from("")),
        ("tags", Value::Array(Vec::new())),
        ("extensions", Value::Object(Map::new())),
    ];
    for (field, default) in required {
        card.entry(field).or_insert(default);
    }
    let (spec_name, version) = match spec {
        CardSpec::V3 => ("chara_card_v3", "3.0"),
        CardSpec::V1 | CardSpec::V2 => ("chara_card_v2", "2.0"),
    };
    if spec == CardSpec::V2 && !data.extras.contains_key("group_only_greetings") && data.group_greetings.is_empty() {
        card.remove("group_only_greetings");
    }
    if spec == CardSpec::V3
        && let (false, Some(nickname)) = (card.contains_key("nickname"), persona.wake_names.first())
    {
        card.insert("nickname".to_owned(), Value::from(nickname.as_str()));
    }
    let mut top = match top_level {
        Some(Value::Object(top)) => top,
        _ => Map::new(),
    };
    for field in repeated.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str) {
        if let Some(value) = card.get(field) {
            top.insert(field.to_owned(), value.clone());
        }
    }
    top.insert("spec".to_owned(), Value::from(spec_name));
    top.insert("spec_version".to_owned(), Value::from(version));
    top.insert("data".to_owned(), Value::Object(card));
    Value::Object(top)
}

/// Returns the fields of the card as the persona has them now, with those that only the card had.
pub(super) fn card_fields(persona: &Persona, data: &CardData) -> Map<String, Value> {
    let mut card = data.extras.clone();
    let directive = &persona.prime_directive;
    let (instructions, directive_other): (Vec<_>, Vec<_>) =
        directive.other.iter().partition(|part| part.title == INSTRUCTIONS_TITLE);
    let mut system = Text::default();
    system.text(&directive.lead);
    for part in instructions {
        system.text(&part.text);
    }
    system.part("Identity of the user", &directive.identity_of_the_user);
    system.part("Tone", &directive.tone);
    for part in directive_other {
        system.part(&part.title, &part.text);
    }
    let texts = [
        ("name", persona.name.clone()),
        ("description", description(persona)),
        ("personality", personality(persona)),
        ("scenario", directive.dynamic.clone()),
        ("first_mes", data.greetings.first().cloned().unwrap_or_default()),
        ("mes_example", examples(&persona.examples)),
        ("system_prompt", system.0),
        ("post_history_instructions", directive.constraint.clone()),
    ];
    for (field, text) in texts {
        card.insert(field.to_owned(), Value::from(text));
    }
    card.insert("alternate_greetings".to_owned(), json!(data.greetings.get(1..).unwrap_or_default()));
    card.insert("group_only_greetings".to_owned(), json!(data.group_greetings));
    match &data.lorebook {
        Some(book) => card.insert("character_book".to_owned(), book.original().clone()),
        None => card.remove("character_book"),
    };
    card
}

/// Puts the card's own values in the place of those of the persona, where both mean the same: where the card, read
/// again, gives what the persona has.
fn restore(card: &mut Map<String, Value>, data: &CardData) {
    let kept = |field: &str| data.extras.get(field).map(|value| (field.to_owned(), value.clone()));
    let originals: Map<String, Value> = HELD.iter().filter_map(|field| kept(field)).collect();
    if originals.is_empty() {
        return;
    }
    let mut again = card.clone();
    again.extend(originals.clone());
    for field in [TOP_LEVEL, REPEATED] {
        again.remove(field);
    }
    let Ok(read) = Conversion::default().run(again) else { return };
    let meant = card_fields(&read.persona, &read.data);
    for (field, value) in originals {
        if meant.get(&field) == card.get(&field) {
            card.insert(field, value);
        }
    }
}

fn description(persona: &Persona) -> String {
    let mut text = Text::default();
    text.text(&persona.core_identity);
    if persona.intent != default_intent(&persona.name) {
        text.section("Intent", &persona.intent);
    }
    text.section("Interface & Presence", &persona.interface_and_presence);
    text.section("Quirks", &persona.quirks);
    for task in &persona.task_behaviours {
        text.section(&format!("If {}", task.task), &task.text);
    }
    for Section { title, text: body } in &persona.other {
        text.section(title, body);
    }
    text.0
}

fn personality(persona: &Persona) -> String {
    let profile = &persona.psychological_profile;
    let mut text = Text::default();
    text.text(&profile.lead);
    text.part("Archetype", &profile.archetype);
    text.part("MBTI", &profile.mbti);
    text.part("Values", &profile.values);
    text.part("Cognitive style", &profile.cognitive_style);
    text.part("Emotional landscape", &profile.emotional_landscape);
    for part in &profile.other {
        if part.title == PERSONALITY_TITLE { text.text(&part.text) } else { text.part(&part.title, &part.text) }
    }
    text.0
}

/// Returns `mes_example` in the format of cards. Cards have no speaker for recalled memories, so those turns are left
/// out.
fn examples(examples: &[ExampleInteraction]) -> String {
    let mut text = String::new();
    for example in examples {
        text.push_str("<START>\n");
        for turn in &example.turns {
            let speaker = match turn.speaker {
                Speaker::Person => "{{user}}",
                Speaker::Persona => "{{char}}",
                Speaker::Memory => continue,
            };
            text.push_str(&format!("{speaker}: {}\n", turn.text));
        }
    }
    text
}

/// Paragraphs separated by blank lines.
#[derive(Default)]
struct Text(String);

impl Text {
    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if !self.0.is_empty() {
            self.0.push_str("\n\n");
        }
        self.0.push_str(text);
    }

    fn section(&mut self, title: &str, text: &str) {
        if !text.is_empty() {
            self.text(&format!("#### {title}\n\n{text}"));
        }
    }

    fn part(&mut self, title: &str, text: &str) {
        if !text.is_empty() {
            self.text(&format!("{title}: {text}"));
        }
    }
}
