//! `/persona`: lists, chooses, invites and shows personas.

use azera_adapter::CommandAnswer;
use azera_memory::{ChatChange, PersonaRow, persona_file};
use azera_personas::{Persona, PersonaKind, callable_as};
use azera_types::PersonaId;

use super::mind::may_configure_place;
use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;

/// Maximum number of invited personas in a chat.
const MAX_INVITED: usize = 7;

impl Commands {
    pub(super) async fn persona_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let (verb, name) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        match (verb, name.trim()) {
            ("" | "list", _) => self.list_personas(at).await,
            ("use", name) if !name.is_empty() => self.use_persona(at, name).await,
            ("invite", name) if !name.is_empty() => self.invite_persona(at, name).await,
            ("dismiss", name) if !name.is_empty() => self.dismiss_persona(at, name).await,
            ("show" | "export", name) if !name.is_empty() => self.show_persona(at, name).await,
            ("template", _) => Ok(done(azera_personas::template("Name"))),
            ("upload", text) if !text.is_empty() => self.upload_persona(at, text).await,
            ("edit", named) if !named.is_empty() => self.edit_persona(at, named).await,
            ("confirm", _) => self.confirm_persona(at).await,
            ("cancel", _) => self.cancel_persona(at).await,
            ("rollback", name) if !name.is_empty() => self.roll_persona_back(at, name).await,
            ("remove", name) if !name.is_empty() => self.remove_persona(at, name).await,
            ("portrait", named) if !named.is_empty() => self.draw_portrait(at, named).await,
            ("face", number) => self.choose_face(at, number).await,
            _ => Ok(refused(
                "`/persona` with `list`, `use NAME`, `invite NAME`, `dismiss NAME`, `show NAME`, `template`, `upload`, `edit NAME TEXT`, `rollback NAME`, `remove NAME`, `portrait NAME` or `face NUMBER`."
                    .into(),
            )),
        }
    }

    /// Returns the personas that this place may use: its realm's own ones, then the operator's. If somebody from
    /// outside the realm reads here, the realm's personas are left out.
    pub(super) async fn personas_here(&self, at: &CommandContext<'_>) -> Result<Vec<PersonaRow>, Error> {
        let realm = at.place.shared_realm().cloned();
        self.services
            .blocking(move |memory| {
                let mut rows = match &realm {
                    Some(realm) => memory.personas().list(Some(realm))?,
                    None => Vec::new(),
                };
                for row in memory.personas().list(None)? {
                    if rows.iter().all(|own| own.id != row.id) {
                        rows.push(row);
                    }
                }
                Ok(rows)
            })
            .await
    }

    async fn list_personas(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let mut text = String::from("Personas; `/persona use NAME` chooses who answers here:\n");
        for row in self.personas_here(at).await? {
            let Ok(persona) = azera_personas::parse(&row.markdown) else { continue };
            if persona.kind != PersonaKind::Assistant {
                continue;
            }
            let here = match row.identity() {
                identity if identity == at.chat.persona => " (here)",
                identity if at.chat.invited.contains(&identity) => " (here, when called by name)",
                _ => "",
            };
            let intent = persona.intent.lines().next().unwrap_or_default();
            text.push_str(&format!("- **{}** (`{}`){here}: {intent}\n", persona.name, row.id));
        }
        Ok(done(text))
    }

    /// Finds the persona that is to answer here, if the person may choose and the persona can answer.
    async fn persona_to_answer(
        &self,
        at: &CommandContext<'_>,
        name: &str,
    ) -> Result<Result<(PersonaRow, Persona), CommandAnswer>, Error> {
        if !may_configure_place(at) {
            return Ok(Err(refused("Only admins can choose who answers here.".into())));
        }
        Ok(match self.find_persona(at, name).await? {
            None => Err(refused(format!("There is no persona {name}; `/persona list` names them."))),
            Some((_, persona)) if persona.kind != PersonaKind::Assistant => {
                Err(refused(format!("{} is a role for people; it cannot answer.", persona.name)))
            }
            Some(found) => Ok(found),
        })
    }

    async fn invite_persona(&self, at: &CommandContext<'_>, name: &str) -> Result<CommandAnswer, Error> {
        let (row, persona) = match self.persona_to_answer(at, name).await? {
            Ok(found) => found,
            Err(answer) => return Ok(answer),
        };
        let identity = row.identity();
        if at.chat.is_served_by(&identity) {
            return Ok(refused(format!("{} answers here already.", persona.name)));
        }
        if at.chat.invited.len() >= MAX_INVITED {
            return Ok(refused(format!(
                "{MAX_INVITED} more personas answer here already; `/persona dismiss NAME` sends one away."
            )));
        }
        self.change_order(at, ChatChange::Invited(identity, true)).await?;
        Ok(done(format!(
            "{} answers here, too, when it is called by its name ({}) or replied to. It hears what is said to it alone, and \
             remembers nothing of what is said to others.",
            persona.name,
            persona.answers_to().flat_map(callable_as).collect::<Vec<_>>().join(", ")
        )))
    }

    async fn dismiss_persona(&self, at: &CommandContext<'_>, name: &str) -> Result<CommandAnswer, Error> {
        if !may_configure_place(at) {
            return Ok(refused("Only admins can choose who answers here.".into()));
        }
        let Some((identity, name)) = self.invited_persona(at, name).await? else {
            return Ok(refused(match self.find_persona(at, name).await? {
                Some((_, persona)) => {
                    format!("{} was not invited here; `/persona list` shows who was.", persona.name)
                }
                None => format!("There is no persona {name}; `/persona list` names them."),
            }));
        };
        self.change_order(at, ChatChange::Invited(identity, false)).await?;
        Ok(done(format!("{name} does not answer here any more. What it was told stays remembered.")))
    }

    /// Finds an invited persona by name. It may also be one that the realm has replaced since, or that is gone.
    async fn invited_persona(&self, at: &CommandContext<'_>, name: &str) -> Result<Option<(PersonaId, String)>, Error> {
        let realm = at.place.shared_realm().cloned();
        let rows = self
            .services
            .blocking(move |memory| {
                let mut rows = realm.map_or_else(|| Ok(Vec::new()), |realm| memory.personas().list(Some(&realm)))?;
                rows.extend(memory.personas().list(None)?);
                Ok(rows)
            })
            .await?;
        for row in rows.iter().filter(|row| at.chat.invited.contains(&row.identity())) {
            if let Some(persona) = parse_if_named(row, name) {
                return Ok(Some((row.identity(), persona.name)));
            }
        }
        let wanted = name.trim().to_lowercase();
        let left = at.chat.invited.iter().find(|identity| persona_file(identity) == wanted);
        Ok(left.map(|identity| (identity.clone(), wanted)))
    }

    async fn use_persona(&self, at: &CommandContext<'_>, name: &str) -> Result<CommandAnswer, Error> {
        let (row, persona) = match self.persona_to_answer(at, name).await? {
            Ok(found) => found,
            Err(answer) => return Ok(answer),
        };
        self.change_order(at, ChatChange::Persona(row.identity())).await?;
        Ok(done(format!(
            "From now on {} answers here. Personas share no memories: what you told the other stays with it.",
            persona.name
        )))
    }

    async fn show_persona(&self, at: &CommandContext<'_>, name: &str) -> Result<CommandAnswer, Error> {
        Ok(match self.find_persona(at, name).await? {
            Some((_, persona)) => done(persona.to_markdown()),
            None => refused(format!("There is no persona {name}; `/persona list` names them.")),
        })
    }

    pub(super) async fn find_persona(
        &self,
        at: &CommandContext<'_>,
        name: &str,
    ) -> Result<Option<(PersonaRow, Persona)>, Error> {
        for row in self.personas_here(at).await? {
            if let Some(persona) = parse_if_named(&row, name) {
                return Ok(Some((row, persona)));
            }
        }
        Ok(None)
    }

    /// Finds the persona whose name or id a text begins with, and returns the rest of the text. The longest match wins.
    pub(super) async fn persona_in_front<'a>(
        &self,
        at: &CommandContext<'_>,
        text: &'a str,
    ) -> Result<Option<(PersonaRow, Persona, &'a str)>, Error> {
        let mut found: Option<(PersonaRow, Persona, &str)> = None;
        for row in self.personas_here(at).await? {
            let Ok(persona) = azera_personas::parse(&row.markdown) else { continue };
            let rests = [row.id.as_str(), &persona.name].into_iter().filter_map(|name| rest_after_name(name, text));
            let Some(rest) = rests.min_by_key(|rest| rest.len()) else { continue };
            if found.as_ref().is_none_or(|(.., shortest)| rest.len() < shortest.len()) {
                found = Some((row, persona, rest));
            }
        }
        Ok(found)
    }
}

/// Parses the persona if `name` is its name or its id.
fn parse_if_named(row: &PersonaRow, name: &str) -> Option<Persona> {
    let wanted = name.trim().to_lowercase();
    let persona = azera_personas::parse(&row.markdown).ok()?;
    (row.id.as_str() == wanted || persona.name.to_lowercase() == wanted).then_some(persona)
}

/// Returns the text after a name that it begins with, ignoring case.
fn rest_after_name<'a>(name: &str, text: &'a str) -> Option<&'a str> {
    let end = text.char_indices().nth(name.chars().count()).map_or(text.len(), |(at, _)| at);
    let (front, rest) = text.split_at(end);
    let is_whole = rest.is_empty() || rest.starts_with(char::is_whitespace);
    (is_whole && front.to_lowercase() == name.to_lowercase()).then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_spaces_and_must_match_whole() {
        assert_eq!(rest_after_name("Night Watch", "night watch ---\nid: x"), Some("---\nid: x"));
        assert_eq!(rest_after_name("Night Watch", "Night Watch"), Some(""));
        assert_eq!(rest_after_name("Night", "night watch"), Some("watch"));
        assert_eq!(rest_after_name("Night", "nightly"), None);
        assert_eq!(rest_after_name("Zo\u{eb}", "ZO\u{cb}\nx"), Some("x"));
        assert_eq!((rest_after_name("Night Watch", "night"), rest_after_name("Nix", "")), (None, None));
    }
}
