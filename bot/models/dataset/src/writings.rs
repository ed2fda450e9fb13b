//! Training examples that answer no message: extraction of claims as JSON, and texts between messages.

use azera_affect::Mood;
use azera_engine::{Claim, WritingKind, claim_prompt, writing_prompt};

use crate::example::{Kind, SyntheticExample};
use crate::sampler::{Sampler, capital, ended};
use crate::scene::Cast;
use crate::seeds::{COMPOSITIONS, SAYINGS, SEEDS};

/// Generates an example of a claim as JSON: mostly from a remark about one of very many things.
pub(crate) fn claim(draw: &mut Sampler) -> Option<SyntheticExample> {
    let who = draw.people(1).remove(0);
    let (text, about, value) = if draw.chance(75) {
        let saying = draw.of(&SAYINGS);
        let said = draw.said(saying, &[])?;
        (said.text, said.about, said.value)
    } else {
        let fact = draw.of(&SEEDS.facts);
        let stated = draw.stated(fact, &who, std::slice::from_ref(&who));
        let value = stated.value().filter(|_| !fact.not_read)?;
        let about = stated.fill(fact.about);
        (stated.text, about, value)
    };
    let text = draw.in_passing(text);
    // The value must occur in the text exactly, and a text may begin with it.
    let value = if text.contains(&value) { value } else { capital(&value) };
    let reply = serde_json::to_string(&Claim { about, value }).ok()?;
    Some(SyntheticExample { kind: Kind::Claim, messages: claim_prompt(&who, &text), reply })
}

/// Generates notes, a diary entry, a dream or another text between messages.
pub(crate) fn composition(draw: &mut Sampler, player: &Cast) -> Option<SyntheticExample> {
    let people = draw.people(2);
    let name = player.persona().name.as_str();
    let named = |text: &str| text.replace("{a}", &people[0]).replace("{b}", &people[1]).replace("{p}", name);
    // Two in five are notes, which can be made of any facts.
    if draw.chance(40) {
        let mut said = Vec::new();
        let mut known = Vec::new();
        for _ in 0..=draw.below(3) {
            let fact = draw.of(&SEEDS.facts);
            let stated = draw.stated(fact, &people[0], &people);
            let Some(bare) = stated.of_other().filter(|bare| bare.contains(&people[0])) else { continue };
            said.push((people[0].clone(), stated.text.clone()));
            known.push(bare);
        }
        let last = known.pop()?;
        let reply = if known.is_empty() { last } else { format!("{}, and {last}", known.join(", ")) };
        let messages = writing_prompt(WritingKind::NotesOther, name, &said, None, &people[0]);
        return Some(SyntheticExample { kind: Kind::Writing, messages, reply: capital(&ended(&reply)) });
    }
    let composition = draw.of(&COMPOSITIONS);
    let what = match composition.kind {
        "diary" => WritingKind::Diary,
        "dream" => WritingKind::Dream,
        "reflection" => WritingKind::Reflection,
        "piece" => WritingKind::Piece,
        "check_in" => WritingKind::CheckIn,
        "notes_self" => WritingKind::NotesSelf,
        _ => return None,
    };
    let said: Vec<(String, String)> = composition.lines.iter().map(|(who, text)| (named(who), named(text))).collect();
    let mood = draw.chance(50).then(|| *draw.of(&Mood::ALL)).filter(|mood| *mood != Mood::Calm);
    let messages = writing_prompt(what, name, &said, mood, &people[0]);
    Some(SyntheticExample { kind: Kind::Writing, messages, reply: named(composition.text) })
}
