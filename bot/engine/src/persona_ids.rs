//! Decides under which id a persona is stored. Memories belong to an id, so two names never share one: a new file
//! becomes a version of a persona only if it is meant for it.

use azera_memory::{Error, Memory, PersonaRow};
use azera_personas::{Persona, PersonaKind, PersonaSlug};
use azera_types::{PersonaId, RealmId};

/// The place of a persona file among the personas of its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonaPlace {
    /// It becomes a persona of its own, under this id.
    New(PersonaSlug),
    /// It becomes the next version of the persona with this id.
    NextVersion(PersonaSlug),
    /// Its id belongs to a persona of another name, and the file cannot be stored.
    Taken {
        /// The id.
        id: PersonaSlug,
        /// The name of the persona that has it.
        by: String,
    },
}

/// Returns where a persona belongs. A card carries no id: it gets a free one, unless the same card was added before. A
/// persona file says its id: it is a version of the persona that has both its id and its name. `user_role` is the id of
/// the role that people play; only a user persona gets it.
///
/// # Errors
///
/// The errors of the record.
pub fn persona_place(
    memory: &Memory,
    owner: Option<&RealmId>,
    persona: &Persona,
    from_card: bool,
    user_role: &PersonaId,
) -> Result<PersonaPlace, Error> {
    if from_card {
        return card_place(memory, owner, persona, user_role);
    }
    let id = persona.id.clone();
    let taken = |by: String| PersonaPlace::Taken { id: id.clone(), by };
    let is_role = id.as_str() == user_role.as_str();
    if is_role && persona.kind != PersonaKind::User {
        return Ok(taken("the role that people play".to_owned()));
    }
    if let Some((name, _)) = holder(memory, owner, &id)? {
        return Ok(if name == persona.name { PersonaPlace::NextVersion(id) } else { taken(name) });
    }
    // A realm may have its own form of a built-in persona, and its own role for its people.
    let general = if id.is_reserved() && !is_role { holder(memory, None, &id)? } else { None };
    Ok(match general {
        Some((name, _)) if name != persona.name => taken(name),
        _ => PersonaPlace::New(id),
    })
}

/// Returns the id for a persona that shares no memories with those that are there, or were.
///
/// # Errors
///
/// The errors of the record.
pub fn free_persona_id(
    memory: &Memory,
    owner: Option<&RealmId>,
    persona: &Persona,
    user_role: &PersonaId,
) -> Result<PersonaSlug, Error> {
    let wanted = PersonaSlug::from_name(&persona.name);
    for id in wanted.numbered() {
        let reserved = id.is_reserved() || id.as_str() == user_role.as_str();
        if !reserved && holder(memory, owner, &id)?.is_none() {
            return Ok(id);
        }
    }
    Ok(wanted)
}

fn card_place(
    memory: &Memory,
    owner: Option<&RealmId>,
    persona: &Persona,
    user_role: &PersonaId,
) -> Result<PersonaPlace, Error> {
    let free = free_persona_id(memory, owner, persona, user_role)?;
    // The same card again, also after it was removed, is no other persona.
    let mut same = persona.clone();
    for id in PersonaSlug::from_name(&persona.name).numbered().take_while(|id| *id != free) {
        same.id = id;
        if holder(memory, owner, &same.id)?.is_some_and(|(_, row)| row.markdown == same.to_markdown()) {
            return Ok(PersonaPlace::NextVersion(same.id));
        }
    }
    Ok(PersonaPlace::New(free))
}

/// Returns the name and the last file of the persona that has an id, or had it before it was removed.
fn holder(memory: &Memory, owner: Option<&RealmId>, id: &PersonaSlug) -> Result<Option<(String, PersonaRow)>, Error> {
    let Ok(identity) = PersonaId::new(id.as_str()) else { return Ok(None) };
    let versions = memory.personas().versions(owner, &identity)?;
    let last = versions.into_iter().rev().find(|row| !row.removed);
    Ok(last.map(|row| {
        let name = azera_personas::parse(&row.markdown).map_or_else(|_| id.to_string(), |persona| persona.name);
        (name, row)
    }))
}
