//! Commands about personas.

use azera_adapter::CommandAnswer;
use azera_memory::{ChatChange, PersonaRow};
use azera_personas::{Persona, PersonaKind};

use super::{Setting, done, refused};
use crate::azera::Azera;
use crate::error::Error;

impl Azera {
    pub(super) async fn persona_command(&self, at: &Setting<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        let (verb, name) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        match (verb, name.trim()) {
            ("" | "list", _) => self.list_personas(at).await,
            ("use", name) if !name.is_empty() => self.use_persona(at, name).await,
            ("show" | "export", name) if !name.is_empty() => self.show_persona(at, name).await,
            ("template", _) => Ok(done(azera_personas::template("Name"))),
            ("upload", text) if !text.is_empty() => self.upload_persona(at, text).await,
            ("edit", named) if !named.is_empty() => self.edit_persona(at, named).await,
            ("confirm", _) => self.confirm_persona(at).await,
            ("cancel", _) => self.cancel_persona(at).await,
            ("rollback", name) if !name.is_empty() => self.roll_persona_back(at, name).await,
            ("remove", name) if !name.is_empty() => self.remove_persona(at, name).await,
            _ => Ok(refused(
                "`/persona` with `list`, `use NAME`, `show NAME`, `template`, `upload`, `edit NAME TEXT`, `rollback NAME` or `remove NAME`."
                    .into(),
            )),
        }
    }

    /// The personas this place may use: its realm's own ones before the operator's. Where somebody from outside the realm
    /// reads along, the realm's are not there.
    pub(super) async fn personas_here(&self, at: &Setting<'_>) -> Result<Vec<PersonaRow>, Error> {
        let realm = at.place.shared_realm().cloned();
        self.blocking(move |memory| {
            let mut rows = match &realm {
                Some(realm) => memory.personas(Some(realm))?,
                None => Vec::new(),
            };
            for row in memory.personas(None)? {
                if rows.iter().all(|own| own.id != row.id) {
                    rows.push(row);
                }
            }
            Ok(rows)
        })
        .await
    }

    async fn list_personas(&self, at: &Setting<'_>) -> Result<CommandAnswer, Error> {
        let mut text = String::from("Personas; `/persona use NAME` chooses who answers here:\n");
        for row in self.personas_here(at).await? {
            let Ok(persona) = azera_personas::parse(&row.markdown) else { continue };
            if persona.kind != PersonaKind::Assistant {
                continue;
            }
            let here = if row.identity() == at.chat.persona { " (here)" } else { "" };
            let intent = persona.intent.lines().next().unwrap_or_default();
            text.push_str(&format!("- **{}** (`{}`){here}: {intent}\n", persona.name, row.id));
        }
        Ok(done(text))
    }

    async fn use_persona(&self, at: &Setting<'_>, name: &str) -> Result<CommandAnswer, Error> {
        // In a place of many, who answers is the admins' choice.
        let many = !matches!(at.place.kind, azera_types::PlaceKind::Dm(_));
        if many && at.access < azera_adapter::Access::Admin {
            return Ok(refused("Who answers here is the admins' choice.".into()));
        }
        let Some((row, persona)) = self.find_persona(at, name).await? else {
            return Ok(refused(format!("There is no persona {name}; `/persona list` names them.")));
        };
        if persona.kind != PersonaKind::Assistant {
            return Ok(refused(format!("{} is a role for people; it cannot answer.", persona.name)));
        }
        let (chat, identity) = (at.chat.id.clone(), row.identity());
        self.blocking(move |memory| memory.change_chat(&chat, ChatChange::Persona(identity))).await?;
        Ok(done(format!(
            "From now on {} answers here. Personas share no memories: what you told the other stays with it.",
            persona.name
        )))
    }

    async fn show_persona(&self, at: &Setting<'_>, name: &str) -> Result<CommandAnswer, Error> {
        Ok(match self.find_persona(at, name).await? {
            Some((_, persona)) => done(persona.to_markdown()),
            None => refused(format!("There is no persona {name}; `/persona list` names them.")),
        })
    }

    pub(super) async fn find_persona(
        &self,
        at: &Setting<'_>,
        name: &str,
    ) -> Result<Option<(PersonaRow, Persona)>, Error> {
        let wanted = name.trim().to_lowercase();
        for row in self.personas_here(at).await? {
            let Ok(persona) = azera_personas::parse(&row.markdown) else { continue };
            if row.id.as_str() == wanted || persona.name.to_lowercase() == wanted {
                return Ok(Some((row, persona)));
            }
        }
        Ok(None)
    }
}
