//! Formats a persona as text for a model.

use azera_personas::{Persona, Section, fill_placeholders};

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
    if !names_itself(persona, &text) {
        text.insert_str(0, &format!("You are {}. ", persona.name));
    }
    add(&mut text, "", rules);
    text
}

/// Returns true if a text about the persona begins by telling it its name, so that this need not stand before it.
fn names_itself(persona: &Persona, text: &str) -> bool {
    let text = fill_placeholders(text, "", &persona.name);
    let named = ["You are ", "You're ", "Your name is "].into_iter().any(|opening| {
        let rest = text.strip_prefix(opening).and_then(|rest| rest.strip_prefix(persona.name.as_str()));
        // Another name, or what is somebody's, may begin with this one.
        let goes_on = |next: char| next.is_alphanumeric() || ['-', '\'', '’'].contains(&next);
        rest.is_some_and(|rest| !rest.starts_with(goes_on))
    });
    named && !persona.name.is_empty()
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

#[cfg(test)]
mod tests {
    use azera_personas::BUILT_INS;

    use super::*;

    fn persona(name: &str, brief: &str) -> Persona {
        let mut persona = BUILT_INS.first().expect("there is one").persona();
        (persona.name, persona.brief) = (name.to_owned(), brief.to_owned());
        persona
    }

    #[test]
    fn a_brief_names_the_persona_once() {
        #[track_caller]
        fn check(name: &str, text: &str, want: &str) {
            let told = brief(&persona(name, text), "Talk.");
            assert_eq!(told, format!("{want}\n\nTalk."));
        }
        for named in ["Your name is Mab. You are calm.", "You are Mab, a queen.", "You are {{char}}.", "You're Mab."] {
            check("Mab", named, named);
        }
        check("Mab", "You are calm.", "You are Mab. You are calm.");
        check("Mab", "You are Mabel's sister.", "You are Mab. You are Mabel's sister.");
        for other in
            ["Mab's sister sent you.", "You are Mab's sister.", "{{char}} is a queen.", "Mab rules.", "I'm Mab."]
        {
            check("Mab", other, &format!("You are Mab. {other}"));
        }
        check("Hope", "Hope is what you bring.", "You are Hope. Hope is what you bring.");
        check("Will", "Will you listen?", "You are Will. Will you listen?");
        check("Mab", "Your name is known.", "You are Mab. Your name is known.");
        // Without rules the text is as a LoRA was trained on it.
        assert_eq!(brief(&persona("Mab", "You are calm."), ""), "You are calm.");
    }

    #[test]
    fn a_whole_persona_begins_with_its_name() {
        let mut other = persona("Mab", "");
        other.intent = "Rule.".to_owned();
        assert!(full(&other, "").starts_with("You are Mab.\n\nRule."), "{}", full(&other, ""));
    }
}
