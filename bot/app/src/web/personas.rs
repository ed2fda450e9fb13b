//! The personas that everybody may use, as owners change them over the web.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use azera_adapter_http::{PersonaDraft, PersonaError, PersonaStore, PersonaVersion, StoreError};
use azera_engine::free_persona_id;
use azera_memory::{MAX_PICTURE_BYTES, Memory, NewPersona, PersonaRow, persona_identity};
use azera_personas::{Checked, Persona, PersonaKind, Severity};
use azera_types::{Clock, PersonaId, SystemClock};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// The personas of the record, and their files in the data folder.
#[derive(Clone)]
pub struct RecordPersonas {
    memory: Arc<Memory>,
    data: PathBuf,
    /// The persona that answers unless a chat chose another.
    usual: String,
    /// The role that people play.
    role: PersonaId,
}

/// Keeps the reason of a failure for the log.
fn failed(error: impl Into<anyhow::Error>) -> PersonaError {
    StoreError(format!("{:#}", error.into())).into()
}

impl RecordPersonas {
    pub fn new(memory: Arc<Memory>, data: &Path, usual: &str, role: PersonaId) -> Self {
        Self { memory, data: data.to_owned(), usual: usual.to_owned(), role }
    }

    /// Works on a blocking thread.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, PersonaError> + Send + 'static,
    ) -> Result<T, PersonaError> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || work(&this)).await.map_err(failed)?
    }

    fn row(&self, id: &PersonaId) -> Result<PersonaRow, PersonaError> {
        self.memory.personas().get(None, id).map_err(failed)?.ok_or(PersonaError::Missing)
    }

    /// Stores a version, and its file for people to edit.
    fn store(&self, persona: &Persona, card: Option<serde_json::Value>) -> Result<PersonaId, PersonaError> {
        let (id, markdown) = (PersonaId::new(persona.id.as_str()).map_err(failed)?, persona.to_markdown());
        let new = NewPersona { id: id.clone(), owner: None, markdown: Some(markdown.clone()), card, added_by: None };
        self.memory.personas().put(new, SystemClock.now()).map_err(failed)?;
        let path = self.file(&id);
        std::fs::write(&path, markdown).with_context(|| format!("writing {}", path.display())).map_err(failed)?;
        Ok(id)
    }

    /// Stores the persona of a card or a file under an id that is free. Returns the id, and notes.
    fn import(&self, file: &[u8]) -> Result<(PersonaId, Vec<String>), PersonaError> {
        let FromFile { mut persona, card, picture, mut notes } = read(file)?;
        persona.id = free_persona_id(&self.memory, None, &persona, &self.role).map_err(failed)?;
        let id = self.store(&persona, card)?;
        match picture {
            Some(picture) if picture.len() <= MAX_PICTURE_BYTES => {
                let identity = persona_identity(None, &id);
                self.memory.personas().set_picture(&identity, &STANDARD.encode(picture)).map_err(failed)?;
            }
            Some(_) => {
                notes.push(format!("picture: it has more than {} MB, so it is not kept", MAX_PICTURE_BYTES >> 20))
            }
            None => {}
        }
        Ok((id, notes))
    }

    fn file(&self, id: &PersonaId) -> PathBuf {
        self.data.join("personas").join(format!("{id}.md"))
    }
}

#[async_trait]
impl PersonaStore for RecordPersonas {
    async fn add(&self, draft: PersonaDraft) -> Result<PersonaId, PersonaError> {
        self.work(move |this| {
            let mut persona = drawn_up(None, draft)?;
            persona.id = free_persona_id(&this.memory, None, &persona, &this.role).map_err(failed)?;
            this.store(&persona, None)
        })
        .await
    }

    async fn import(&self, file: Vec<u8>) -> Result<(PersonaId, Vec<String>), PersonaError> {
        self.work(move |this| this.import(&file)).await
    }

    async fn versions(&self, id: &PersonaId) -> Result<Vec<PersonaVersion>, PersonaError> {
        let id = id.clone();
        self.work(move |this| {
            this.row(&id)?;
            let rows = this.memory.personas().versions(None, &id).map_err(failed)?;
            let kept = rows.into_iter().rev().filter(|row| !row.removed);
            Ok(kept
                .map(|row| PersonaVersion { version: row.version, at: row.added_at, markdown: row.markdown })
                .collect())
        })
        .await
    }

    async fn change(&self, id: &PersonaId, draft: PersonaDraft) -> Result<(), PersonaError> {
        let id = id.clone();
        self.work(move |this| {
            let row = this.row(&id)?;
            let before = azera_personas::parse(&row.markdown).ok();
            let mut persona = drawn_up(before, draft)?;
            persona.id = id.as_str().parse().map_err(failed)?;
            if id == this.role && persona.kind != PersonaKind::User {
                return Err(PersonaError::Refused(format!("{id} is the role that people play, so it stays one.")));
            }
            this.store(&persona, row.card).map(drop)
        })
        .await
    }

    async fn remove(&self, id: &PersonaId) -> Result<(), PersonaError> {
        let id = id.clone();
        self.work(move |this| {
            this.row(&id)?;
            if id == this.role || id.as_str() == this.usual {
                let why = format!("{id} is in the configuration (chat.persona or chat.user_persona), so it stays.");
                return Err(PersonaError::Refused(why));
            }
            let new = NewPersona { id: id.clone(), owner: None, markdown: None, card: None, added_by: None };
            this.memory.personas().put(new, SystemClock.now()).map_err(failed)?;
            match std::fs::remove_file(this.file(&id)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            }
        })
        .await
    }
}

/// A persona as read from a file.
struct FromFile {
    persona: Persona,
    /// The other fields of a card.
    card: Option<serde_json::Value>,
    picture: Option<Vec<u8>>,
    notes: Vec<String>,
}

/// Reads a persona file, which begins with `---`, or a character card.
fn read(file: &[u8]) -> Result<FromFile, PersonaError> {
    let text = std::str::from_utf8(file).ok().map(|text| text.trim_start_matches('\u{feff}').trim_start());
    if let Some(text) = text.filter(|text| text.starts_with("---")) {
        let persona = valid(azera_personas::check(text))?;
        return Ok(FromFile { persona, card: None, picture: None, notes: Vec::new() });
    }
    let card = azera_personas::import_card(file);
    let card =
        card.map_err(|error| PersonaError::Refused(format!("That is neither a persona file nor a card: {error}.")))?;
    Ok(FromFile {
        persona: card.persona,
        card: Some(serde_json::to_value(card.data).map_err(failed)?),
        picture: card.avatar,
        notes: card.notes.iter().map(ToString::to_string).collect(),
    })
}

/// Returns the persona that a draft makes of the one before, if there is one.
fn drawn_up(before: Option<Persona>, draft: PersonaDraft) -> Result<Persona, PersonaError> {
    let PersonaDraft { name, is_user, intent, text, voice } = draft;
    let mut persona = match (text, before) {
        // A file that replaces another keeps nothing of it.
        (Some(text), _) if text.trim_start().starts_with("---") => valid(azera_personas::check(text.trim_start()))?,
        (Some(text), Some(mut before)) => {
            before.core_identity = text;
            before
        }
        (None, Some(before)) => before,
        (text, None) => written(name.as_deref(), text.as_deref().or(intent.as_deref()))?,
    };
    if let Some(name) = name {
        persona.name = name.trim().to_owned();
    }
    if let Some(is_user) = is_user {
        persona.kind = if is_user { PersonaKind::User } else { PersonaKind::Assistant };
    }
    if let Some(intent) = intent.filter(|intent| !intent.trim().is_empty()) {
        persona.intent = intent;
    }
    if let Some(voice) = voice.filter(|voice| !voice.trim().is_empty()) {
        persona.voice.name = Some(voice);
    }
    // The file is what counts, so what cannot stand in one is refused.
    valid(azera_personas::check(&persona.to_markdown()))
}

/// Returns a persona that is described in a text, as in a character card.
fn written(name: Option<&str>, text: Option<&str>) -> Result<Persona, PersonaError> {
    let refused = |why: &str| PersonaError::Refused(why.to_owned());
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| refused("A new persona needs a `name`."))?;
    let text = text.filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| refused("A new persona needs a `system_prompt` or a `description`."))?;
    let card = json!({
        "spec": "chara_card_v2",
        "spec_version": "2.0",
        "data": {"name": name, "description": text, "personality": "", "scenario": "", "first_mes": "", "mes_example": ""},
    });
    let card = azera_personas::import_card(card.to_string().as_bytes());
    card.map(|card| card.persona).map_err(|error| PersonaError::Refused(format!("That is no persona: {error}.")))
}

fn valid(checked: Checked) -> Result<Persona, PersonaError> {
    let problems = checked.problems.iter().filter(|problem| problem.severity == Severity::Error);
    let problems: Vec<String> = problems.map(ToString::to_string).collect();
    checked.persona.ok_or_else(|| PersonaError::Refused(format!("The file has mistakes: {}", problems.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(name: &str, text: &str) -> PersonaDraft {
        let said = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        PersonaDraft { name: said(name), text: said(text), ..PersonaDraft::default() }
    }

    #[track_caller]
    fn why_not(before: Option<Persona>, draft: PersonaDraft) -> String {
        match drawn_up(before, draft) {
            Err(PersonaError::Refused(why)) => why,
            other => panic!("it is not refused: {other:?}"),
        }
    }

    #[test]
    fn a_text_makes_a_persona() {
        let persona = drawn_up(None, draft("Bran", "You are a sailor who tells of storms.")).unwrap();
        assert_eq!((persona.name.as_str(), persona.kind), ("Bran", PersonaKind::Assistant));
        assert!(persona.to_markdown().contains("tells of storms"));
        let role =
            PersonaDraft { is_user: Some(true), intent: Some("Be a captain.".into()), ..draft("Cap", "A captain.") };
        let role = drawn_up(None, role).unwrap();
        assert_eq!((role.kind, role.intent.as_str()), (PersonaKind::User, "Be a captain."));
    }

    #[test]
    fn a_file_to_import_is_a_card_or_a_persona_file() {
        let card = json!({
            "spec": "chara_card_v2", "spec_version": "2.0",
            "data": {"name": "Luna", "description": "A cat of the moon.", "personality": "", "scenario": "",
                     "first_mes": "Hello.", "mes_example": ""},
        });
        let luna = read(card.to_string().as_bytes()).unwrap();
        assert_eq!(luna.persona.name, "Luna");
        assert!(luna.card.is_some_and(|card| card.to_string().contains("Hello.")), "the greeting is kept");
        let file = azera_personas::template("Nix");
        let nix = read(format!("\u{feff}\n{file}").as_bytes()).unwrap();
        assert_eq!((nix.persona.name.as_str(), nix.card), ("Nix", None));
        for wrong in [&b"---\nname: x\nspeed: 3\n---\n# x\n"[..], b"\x89PNG\r\n\x1a\n", b"{}", b"", b"\xff\xd8"] {
            assert!(matches!(read(wrong), Err(PersonaError::Refused(_))), "{wrong:?}");
        }
    }

    #[test]
    fn a_whole_file_is_taken_as_it_is() {
        let file = azera_personas::template("Luna");
        let persona = drawn_up(None, draft("", &file)).unwrap();
        assert_eq!(persona.to_markdown(), azera_personas::parse(&file).unwrap().to_markdown());
        assert!(
            why_not(None, draft("", "---\nname: Luna\nspeed: 3\n---\n# Luna\n")).contains("line"),
            "mistakes have lines"
        );
    }

    #[test]
    fn what_a_draft_leaves_out_stays() {
        let before = azera_personas::built_in("azera").unwrap();
        let intent = PersonaDraft { intent: Some("Help with boats.".into()), ..PersonaDraft::default() };
        let after = drawn_up(Some(before.clone()), intent).unwrap();
        let mut wanted = before.clone();
        wanted.intent = "Help with boats.".into();
        assert_eq!(after, wanted);
        let text = drawn_up(Some(before.clone()), draft("", "You mend boats.")).unwrap();
        assert_eq!((text.core_identity.as_str(), &text.intent), ("You mend boats.", &before.intent));
        assert!(why_not(None, draft("", "no name")).contains("`name`"));
        assert!(why_not(None, draft("Bran", " ")).contains("system_prompt"));
        assert!(why_not(Some(before), draft("a\nb", "")).contains("mistakes"));
    }
}
