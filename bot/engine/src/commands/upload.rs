//! `/persona upload` and related commands: admins add personas to their realm. Each file is checked and shown, and
//! added when the admin confirms.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use azera_adapter::{Access, Choice, CommandAnswer};
use azera_memory::{ChatChange, MAX_PICTURE_BYTES, NewPersona, PersonaRow, persona_identity};
use azera_personas::{
    CardData, Error as PersonaError, Persona, PersonaKind, PersonaSlug, Problem, Severity, callable_as,
};
use azera_prompt::form_of;
use azera_types::{ChatId, PersonId, PersonaId, RealmId, Timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;
use crate::persona_ids::{PersonaPlace, persona_place};

/// Maximum number of uploads waiting for confirmation; with more, the oldest is dropped.
const MAX_WAITING: usize = 100;

/// Seconds for which an upload waits.
const WAIT_S: i64 = 900;

/// Maximum number of problems reported at once.
const REPORTED: usize = 15;

/// The beginning of a file that comes as text, and the mark before its bytes.
const FILE: (&str, &str) = ("data:", ";base64,");

/// Uploads that wait for confirmation, by chat and person.
#[derive(Default)]
pub(crate) struct Uploads(Mutex<HashMap<(ChatId, PersonId), Upload>>);

struct Upload {
    at: Timestamp,
    new: NewPersona,
    name: String,
    /// The newest version when the file was checked. Another one by now would be replaced unseen.
    version: Option<u32>,
    /// The persona's picture, in base64.
    picture: Option<String>,
}

impl Uploads {
    fn keep(&self, whose: (ChatId, PersonId), upload: Upload) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = waiting.iter().min_by_key(|(_, upload)| upload.at).map(|(whose, _)| whose.clone());
        if let Some(oldest) = oldest.filter(|_| waiting.len() >= MAX_WAITING) {
            waiting.remove(&oldest);
        }
        waiting.insert(whose, upload);
    }

    fn take(&self, whose: &(ChatId, PersonId), now: Timestamp) -> Option<Upload> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(whose).filter(|upload| now.as_second() - upload.at.as_second() <= WAIT_S)
    }
}

/// A parsed file: the persona, the other data of a card, and notes for its author.
struct ParsedUpload {
    persona: Persona,
    card: Option<CardData>,
    picture: Option<Vec<u8>>,
    notes: Vec<String>,
}

impl Commands {
    /// Checks a persona file, and shows what it holds or what is wrong with it.
    pub(super) async fn upload_persona(&self, at: &CommandContext<'_>, text: &str) -> Result<CommandAnswer, Error> {
        self.check_upload(at, text, None).await
    }

    /// Checks a persona file. The other data of a card is stored with the persona. A file that replaces a persona
    /// (`replaces`) and is not a card keeps the data stored so far.
    async fn check_upload(
        &self,
        at: &CommandContext<'_>,
        text: &str,
        replaces: Option<&PersonaRow>,
    ) -> Result<CommandAnswer, Error> {
        let realm = match realm_to_change(at) {
            Ok(realm) => realm,
            Err(why) => return Ok(refused(why.into())),
        };
        let ParsedUpload { mut persona, card, picture, mut notes } = match read(text) {
            Ok(brought) => brought,
            Err(why) => return Ok(refused(format!("I cannot add that.\n{why}"))),
        };
        if let Some(replaced) = replaces {
            // A card derives its id from its name, which can be numbered here.
            persona.id = replaced.id.as_str().parse().unwrap_or(persona.id);
        } else {
            match self.place_upload(&realm, &persona, card.is_some()).await? {
                PersonaPlace::New(id) | PersonaPlace::NextVersion(id) => persona.id = id,
                PersonaPlace::Taken { id, by } => return Ok(refused(taken(&id, &by, &persona.name))),
            }
        }
        let Ok(id) = PersonaId::new(persona.id.as_str()) else {
            return Ok(refused("I cannot add that: its id is not valid.".into()));
        };
        let versions = {
            let (realm, id) = (realm.clone(), id.clone());
            self.services.blocking(move |memory| memory.personas().versions(Some(&realm), &id)).await?
        };
        let version = versions.last().map(|row| row.version);
        let before = versions.into_iter().next_back().filter(|row| !row.removed);
        let card_so_far = replaces.and_then(|row| row.card.clone());
        let fits = |picture: &Vec<u8>| picture.len() <= MAX_PICTURE_BYTES;
        if picture.as_ref().is_some_and(|picture| !fits(picture)) {
            notes.push(format!("the picture has more than {} MB, so it is not kept", MAX_PICTURE_BYTES >> 20));
        }
        let picture = picture.filter(fits).map(|picture| STANDARD.encode(picture));
        let is_role = persona.kind == PersonaKind::User && id == self.services.config.user_persona;
        if is_role && !form_of(self.services.model().info()).guidance {
            notes.push("the present model is too small for roles, so its prompts leave this one out".to_owned());
        }
        let words = preview(&persona, before.as_ref(), &notes);
        let new = NewPersona {
            id,
            owner: Some(realm),
            markdown: Some(persona.to_markdown()),
            card: card.map_or(card_so_far, |card| serde_json::to_value(card).ok()),
            added_by: Some(at.line.person.clone()),
        };
        let upload = Upload { at: self.services.clock.now(), new, name: persona.name, version, picture };
        self.uploads.keep((at.chat.id.clone(), at.line.person.clone()), upload);
        let choice = |label: &str, line: &str| Choice { label: label.into(), line: line.into() };
        let choices = vec![choice("Add it", "/persona confirm"), choice("Cancel", "/persona cancel")];
        Ok(CommandAnswer { choices, ..done(words) })
    }

    /// Returns the place of an uploaded persona among those of the realm.
    async fn place_upload(&self, realm: &RealmId, persona: &Persona, from_card: bool) -> Result<PersonaPlace, Error> {
        let (realm, persona, role) = (realm.clone(), persona.clone(), self.services.config.user_persona.clone());
        self.services.blocking(move |memory| persona_place(memory, Some(&realm), &persona, from_card, &role)).await
    }

    /// Checks a persona file that is to replace a persona of this place. Without a file, shows the current one.
    pub(super) async fn edit_persona(&self, at: &CommandContext<'_>, named: &str) -> Result<CommandAnswer, Error> {
        if let Err(why) = realm_to_change(at) {
            return Ok(refused(why.into()));
        }
        let Some((row, persona, text)) = self.persona_in_front(at, named).await? else {
            let name = named.split_whitespace().next().unwrap_or_default();
            return Ok(refused(format!("There is no persona {name}; `/persona list` names them.")));
        };
        if text.is_empty() {
            return Ok(done(persona.to_markdown()));
        }
        let is_role = row.id == self.services.config.user_persona;
        if let Ok(brought) = read(text) {
            // A card carries no id, so its name says whom it is meant for.
            let meant = match brought.card {
                Some(_) => brought.persona.name == persona.name,
                None => brought.persona.id.as_str() == row.id.as_str(),
            };
            if !meant {
                let what = if brought.card.is_some() { "name" } else { "`id`" };
                return Ok(refused(format!(
                    "That has another {what} than `{}`; `/persona upload` brings it as a persona of its own.",
                    row.id
                )));
            }
            if is_role && brought.persona.kind != PersonaKind::User {
                return Ok(refused(format!("`{}` is the role that people play; it needs `kind: user`.", row.id)));
            }
        }
        self.check_upload(at, text, Some(&row)).await
    }

    /// Adds the persona that was checked.
    pub(super) async fn confirm_persona(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        if let Err(why) = realm_to_change(at) {
            return Ok(refused(why.into()));
        }
        let now = self.services.clock.now();
        let whose = (at.chat.id.clone(), at.line.person.clone());
        let Some(upload) = self.uploads.take(&whose, now) else { return Ok(nothing_waits()) };
        let Upload { new, name, version, picture, .. } = upload;
        let row = self
            .services
            .blocking(move |memory| {
                let newest = memory.personas().versions(new.owner.as_ref(), &new.id)?.last().map(|row| row.version);
                if newest != version {
                    return Ok(None);
                }
                if let Some(picture) = picture {
                    memory.personas().set_picture(&persona_identity(new.owner.as_ref(), &new.id), &picture)?;
                }
                memory.personas().put(new, now).map(Some)
            })
            .await?;
        let Some(row) = row else {
            return Ok(refused(format!(
                "{name} was changed meanwhile; upload the file again to see what it replaces."
            )));
        };
        Ok(done(format!(
            "{name} is here as `{}`, version {}. `/persona use {}` lets it answer in a channel.",
            row.id, row.version, row.id
        )))
    }

    /// Drops the persona that was checked.
    pub(super) async fn cancel_persona(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        if let Err(why) = realm_to_change(at) {
            return Ok(refused(why.into()));
        }
        let whose = (at.chat.id.clone(), at.line.person.clone());
        Ok(match self.uploads.take(&whose, self.services.clock.now()) {
            Some(upload) => done(format!("I did not add {}.", upload.name)),
            None => nothing_waits(),
        })
    }

    /// Restores the version before the current one.
    pub(super) async fn roll_persona_back(&self, at: &CommandContext<'_>, name: &str) -> Result<CommandAnswer, Error> {
        let present = match self.own_persona(at, name).await? {
            Ok(row) => row,
            Err(answer) => return Ok(answer),
        };
        let (owner, id, version) = (present.owner.clone(), present.id.clone(), present.version);
        let versions = self.services.blocking(move |memory| memory.personas().versions(owner.as_ref(), &id)).await?;
        let before = versions.into_iter().rev().find(|row| {
            let same = row.markdown == present.markdown && row.card == present.card;
            row.version < version && !row.removed && !same
        });
        let Some(before) = before else {
            return Ok(refused(format!("{} has no other version.", present.id)));
        };
        let (now, person) = (self.services.clock.now(), at.line.person.clone());
        let again = before.version;
        let new = NewPersona {
            id: before.id,
            owner: before.owner,
            markdown: Some(before.markdown),
            card: before.card,
            added_by: Some(person),
        };
        let row = self.services.blocking(move |memory| memory.personas().put(new, now)).await?;
        Ok(done(format!("`{}` is again as in version {again}; that is version {} now.", row.id, row.version)))
    }

    /// Removes a persona of the realm. Where it answered, the default persona takes over.
    pub(super) async fn remove_persona(&self, at: &CommandContext<'_>, name: &str) -> Result<CommandAnswer, Error> {
        let row = match self.own_persona(at, name).await? {
            Ok(row) => row,
            Err(answer) => return Ok(answer),
        };
        let (identity, usual) = (row.identity(), self.services.config.persona.clone());
        let (platform, now, person) = (at.platform.clone(), self.services.clock.now(), at.line.person.clone());
        let new = NewPersona {
            id: row.id.clone(),
            owner: row.owner.clone(),
            markdown: None,
            card: None,
            added_by: Some(person),
        };
        self.services
            .blocking(move |memory| {
                memory.personas().put(new, now)?;
                for chat in memory.chats().list(&platform)?.into_iter().filter(|chat| chat.is_served_by(&identity)) {
                    let change = match chat.persona == identity {
                        true => ChatChange::Persona(usual.clone()),
                        false => ChatChange::Invited(identity.clone(), false),
                    };
                    memory.chats().change(&chat.id, change)?;
                }
                Ok(())
            })
            .await?;
        Ok(done(format!("`{}` is removed. What it remembers stays until it is forgotten.", row.id)))
    }

    /// Returns a persona that the realm itself owns, if the person may change it.
    async fn own_persona(
        &self,
        at: &CommandContext<'_>,
        name: &str,
    ) -> Result<Result<PersonaRow, CommandAnswer>, Error> {
        let realm = match realm_to_change(at) {
            Ok(realm) => realm,
            Err(why) => return Ok(Err(refused(why.into()))),
        };
        let wanted = name.trim().to_lowercase();
        let own = self.services.blocking(move |memory| memory.personas().list(Some(&realm))).await?;
        let named = |row: &PersonaRow| {
            let persona = azera_personas::parse(&row.markdown);
            row.id.as_str() == wanted || persona.is_ok_and(|persona| persona.name.to_lowercase() == wanted)
        };
        Ok(own.into_iter().find(named).ok_or_else(|| {
            refused(format!("There is no persona {name} that is this place's own; the others are everybody's."))
        }))
    }
}

/// Returns the realm whose personas the person may change here.
pub(super) fn realm_to_change(at: &CommandContext<'_>) -> Result<RealmId, &'static str> {
    if at.access < Access::Admin {
        return Err("Only admins can add, change or remove personas here.");
    }
    at.place.shared_realm().cloned().ok_or(
        "Personas can be added to a server or a shared room, and this place is neither. `azera persona add` adds one for \
         everybody.",
    )
}

fn nothing_waits() -> CommandAnswer {
    refused("There is no upload to confirm or cancel. Begin with `/persona upload`.".into())
}

/// Parses a persona file, or a card as JSON or as a picture. The error lists the problems line by line.
fn read(text: &str) -> Result<ParsedUpload, String> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}');
    let file = text.strip_prefix(FILE.0).and_then(|rest| rest.split_once(FILE.1));
    let card = match file {
        Some((_, bytes)) => Some(STANDARD.decode(bytes.trim()).map_err(|_| "The file arrived damaged.".to_owned())?),
        None => text.starts_with('{').then(|| text.as_bytes().to_vec()),
    };
    if let Some(bytes) = card {
        let card = azera_personas::import_card(&bytes).map_err(|error| match error {
            PersonaError::Invalid { problems } => listed(&problems),
            other => format!("{other}."),
        })?;
        let notes = card.notes.iter().map(ToString::to_string).collect();
        return Ok(ParsedUpload { persona: card.persona, card: Some(card.data), picture: card.avatar, notes });
    }
    let checked = azera_personas::check_bytes(text.as_bytes());
    let Some(persona) = checked.persona else { return Err(listed(&checked.problems)) };
    Ok(ParsedUpload {
        persona,
        card: None,
        picture: None,
        notes: checked.problems.iter().map(ToString::to_string).collect(),
    })
}

/// Lists problems, errors first.
fn listed(problems: &[Problem]) -> String {
    let mut sorted: Vec<&Problem> = problems.iter().collect();
    sorted.sort_by_key(|problem| (problem.severity != Severity::Error, problem.line));
    let mut text: String = sorted.iter().take(REPORTED).map(|problem| format!("- {problem}\n")).collect();
    if problems.len() > REPORTED {
        text.push_str(&format!("and {} more.", problems.len() - REPORTED));
    }
    text
}

/// Says why a file cannot be stored under its id, and what to do.
fn taken(id: &PersonaSlug, by: &str, name: &str) -> String {
    format!(
        "`{id}` is {by} already, and this is {name}. Give the file another `id`. To change {by}, which keeps its \
         memories, use `/persona edit {id}`."
    )
}

fn preview(persona: &Persona, before: Option<&PersonaRow>, notes: &[String]) -> String {
    let mut text =
        format!("**{}** (`{}`), {}\n{}\n", persona.name, persona.id.as_str(), persona.kind.as_str(), persona.brief());
    let names: Vec<String> = persona.answers_to().flat_map(callable_as).collect();
    text.push_str(&format!("It answers to {}. Examples: {}.\n", names.join(", "), persona.exchanges().len()));
    if let Some(before) = before {
        let replaced = azera_personas::parse(&before.markdown).map_or_else(|_| before.id.to_string(), |old| old.name);
        text.push_str(&format!("It replaces version {} of {replaced} and keeps its memories.\n", before.version));
    }
    for note in notes.iter().take(REPORTED) {
        text.push_str(&format!("- {note}\n"));
    }
    text.push_str("`/persona confirm` adds it, `/persona cancel` does not.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_reported_by_line() {
        let reply_text = read("---\nname: Nix\nid: NOT AN ID\n---\n\n# Nix\n").err().unwrap();
        assert!(reply_text.contains("line 3"), "{reply_text}");
        assert!(read("data:image/png;base64,????").is_err());
        assert!(read("{\"spec\": \"none\"}").is_err());
    }

    #[test]
    fn a_template_and_its_card_can_be_uploaded() {
        let template = azera_personas::template("Nix");
        let brought = read(&template).map_err(|why| panic!("{why}")).unwrap();
        assert_eq!(brought.persona.name, "Nix");
        let card = azera_personas::to_card(&brought.persona, &CardData::default(), azera_personas::CardSpec::V3);
        assert_eq!(read(&card.to_string()).map_err(|why| panic!("{why}")).unwrap().persona.name, "Nix");
    }
}
