//! `azera persona add`: stores a persona file under an id that no other name has, or in the place of another persona if
//! that is said.

use std::path::Path;

use anyhow::{Context, bail};
use azera_engine::{PersonaPlace, free_persona_id, persona_place};
use azera_memory::{ChatChange, MAX_PICTURE_BYTES, Memory, NewPersona, PersonaRow, persona_identity};
use azera_personas::{CardData, Persona, PersonaKind, PersonaSlug};
use azera_types::{Clock, PersonaId, RealmId, SystemClock};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::persona::{remove, row};

/// A persona as read from a file.
pub struct NewFile {
    pub persona: Persona,
    /// The other fields of a card.
    pub card: Option<CardData>,
    pub picture: Option<Vec<u8>>,
}

/// Where personas are added.
pub struct Adding<'a> {
    pub memory: &'a Memory,
    /// The data folder.
    pub data: &'a Path,
    pub owner: Option<RealmId>,
    /// The role that people play.
    pub user_role: PersonaId,
}

impl Adding<'_> {
    /// Adds a persona, or puts it in the place of the persona `replaced`, with or without its memories.
    ///
    /// # Errors
    ///
    /// If the file's id belongs to another name, or the replaced persona is missing or built in.
    pub fn add(&self, mut new: NewFile, replaced: Option<&str>, keep_memories: bool) -> anyhow::Result<()> {
        let Some(replaced) = replaced else {
            new.persona.id = self.place(&new)?;
            return self.store(new).map(|_| ());
        };
        let old = row(self.memory, self.owner.as_ref(), replaced, None)?;
        let old_id: PersonaSlug = old.id.as_str().parse()?;
        if old.id == self.user_role && new.persona.kind != PersonaKind::User {
            bail!("`{}` is the role that people play; only a file with `kind: user` can replace it", old.id);
        }
        if keep_memories {
            new.persona.id = old_id;
            self.store(new)?;
            println!("It has the memories of the version before.");
            return Ok(());
        }
        if old_id.is_reserved() || old.id == self.user_role {
            bail!(
                "`{}` is built in and cannot go; add `--keep-memories` to make this its next version, or leave \
                 `--replace` out to add a persona of its own",
                old.id
            );
        }
        new.persona.id = free_persona_id(self.memory, self.owner.as_ref(), &new.persona, &self.user_role)?;
        let stored = self.store(new)?;
        self.move_chats(&old, &stored)?;
        remove(self.memory, self.data, old.id.as_str(), self.owner.clone())?;
        println!("If `chat.persona` in the configuration is \"{}\", set it to \"{}\".", old.id, stored.id);
        Ok(())
    }

    /// Returns the id under which a file is stored.
    fn place(&self, new: &NewFile) -> anyhow::Result<PersonaSlug> {
        let (persona, owner) = (&new.persona, self.owner.as_ref());
        let wanted = PersonaSlug::from_name(&persona.name);
        let from_card = new.card.is_some();
        match persona_place(self.memory, owner, persona, from_card, &self.user_role)? {
            PersonaPlace::New(id) => {
                if from_card && wanted.is_reserved() {
                    println!("`{wanted}` is built in, so this is a persona of its own.");
                } else if from_card && id != wanted {
                    println!(
                        "`{wanted}` is taken, so this is a persona of its own. To replace the other on purpose, use \
                         `--replace {wanted}`."
                    );
                }
                Ok(id)
            }
            PersonaPlace::NextVersion(id) => Ok(id),
            PersonaPlace::Taken { id, by } => bail!(
                "`{id}` is {by} already, and this file is {}. Give the file another `id`, or replace {by} on purpose: \
                 `--replace {id}` starts without its memories, `--replace {id} --keep-memories` takes them over",
                persona.name
            ),
        }
    }

    /// Stores a version, its picture and its file for people to edit.
    fn store(&self, new: NewFile) -> anyhow::Result<PersonaRow> {
        let NewFile { persona, card, picture } = new;
        let id = PersonaId::new(persona.id.as_str())?;
        if let Some(picture) = picture {
            if picture.len() <= MAX_PICTURE_BYTES {
                let identity = persona_identity(self.owner.as_ref(), &id);
                self.memory.personas().set_picture(&identity, &STANDARD.encode(picture))?;
            } else {
                eprintln!("the picture has more than {} MB, so it is not kept", MAX_PICTURE_BYTES >> 20);
            }
        }
        let markdown = persona.to_markdown();
        let new = NewPersona {
            id: id.clone(),
            owner: self.owner.clone(),
            markdown: Some(markdown.clone()),
            card: card.map(serde_json::to_value).transpose()?,
            added_by: None,
        };
        let row = self.memory.personas().put(new, SystemClock.now())?;
        if self.owner.is_none() {
            let path = self.data.join("personas").join(format!("{id}.md"));
            std::fs::write(&path, markdown).with_context(|| format!("writing {}", path.display()))?;
        }
        println!(
            "{} is here as `{id}`, version {}; `/persona use {id}` in a chat brings it in",
            persona.name, row.version
        );
        Ok(row)
    }

    /// Lets the new persona answer and be invited where the old one was.
    fn move_chats(&self, old: &PersonaRow, new: &PersonaRow) -> anyhow::Result<()> {
        let (old, new) = (old.identity(), new.identity());
        for chat in self.memory.chats().chats_served_by(&old)? {
            if chat.persona == old {
                self.memory.chats().change(&chat.id, ChatChange::Persona(new.clone()))?;
            } else {
                self.memory.chats().change(&chat.id, ChatChange::Invited(new.clone(), true))?;
            }
            self.memory.chats().change(&chat.id, ChatChange::Invited(old.clone(), false))?;
        }
        Ok(())
    }
}
