//! Formats a persona as text for a model.

use azera_personas::{Persona, Section};

/// Returns the whole persona under short headings, for models that can hold it.
pub(crate) fn full(persona: &Persona, rules: &str) -> String {
    let mut text = format!("You are {}.", persona.name);
    let directive = &persona.prime_directive;
    let profile = &persona.psychological_profile;
    add(&mut text, "", &persona.intent);
    add(&mut text, "Who you are", &persona.core_identity);
    add(&mut text, "The person", &directive.identity_of_the_user);
    add(&mut text, "Between you", &directive.dynamic);
    add(&mut text, "", &directive.lead);
    add(&mut text, "Tone", &directive.tone);
    add(&mut text, "Never", &directive.constraint);
    sections(&mut text, &directive.other);
    add(&mut text, "How your replies look", &persona.interface_and_presence);
    add(&mut text, "", &profile.lead);
    add(&mut text, "Archetype", &profile.archetype);
    add(&mut text, "Type", &profile.mbti);
    add(&mut text, "Values", &profile.values);
    add(&mut text, "How you think", &profile.cognitive_style);
    add(&mut text, "How you feel", &profile.emotional_landscape);
    sections(&mut text, &profile.other);
    add(&mut text, "Quirks", &persona.quirks);
    sections(&mut text, &persona.other);
    add(&mut text, "", rules);
    text
}

/// Returns the persona in a few sentences.
pub(crate) fn brief(persona: &Persona, rules: &str) -> String {
    let mut text = persona.brief().into_owned();
    if rules.is_empty() {
        return text;
    }
    let name = format!("You are {}", persona.name);
    if !text.starts_with(&name) {
        text.insert_str(0, &format!("{name}. "));
    }
    add(&mut text, "", rules);
    text
}

fn sections(text: &mut String, sections: &[Section]) {
    for section in sections {
        add(text, &section.title, &section.text);
    }
}

fn add(text: &mut String, title: &str, body: &str) {
    if body.is_empty() {
        return;
    }
    text.push_str("\n\n");
    if !title.is_empty() {
        text.push_str(title);
        text.push_str(": ");
    }
    text.push_str(body);
}
