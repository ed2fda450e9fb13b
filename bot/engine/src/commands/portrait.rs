//! `/persona portrait` and `/persona face`: draw how a persona of the place looks, and make a portrait its face.

use azera_adapter::{Access, CommandAnswer};
use azera_memory::{Memory, PersonaRow};
use azera_model_image::{Picture, PictureLimits};
use azera_pictures::Wish;
use azera_types::{MessageId, RealmId, Scope};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::upload::realm_to_change;
use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;
use crate::pictures::{APPEARANCE, Base, PictureLook, appearance};

/// Pixels of the longer side of a face. As PNG it is below `MAX_PICTURE_BYTES` even without compression.
const FACE_SIDE: u32 = 512;

impl Commands {
    /// Asks for a portrait of a persona that this place owns, as its file describes it; the operator's terminal owns those
    /// that all places share. A face outlives what people say, so a portrait is built on nothing else.
    pub(super) async fn draw_portrait(&self, at: &CommandContext<'_>, named: &str) -> Result<CommandAnswer, Error> {
        let owner = match owner_here(at) {
            Ok(owner) => owner,
            Err(why) => return Ok(refused(why.into())),
        };
        let found = self.persona_in_front(at, named).await?;
        let Some((row, persona, words)) = found.filter(|(row, ..)| row.owner == owner) else {
            let why = match &owner {
                Some(_) => {
                    "Name a persona that belongs to this place: `/persona portrait NAME`. Other personas are shared \
                     and cannot be changed here; the operator does that in `azera chat`."
                }
                None => {
                    "Name a persona that all places share: `/persona portrait NAME`. The admins of a place draw the \
                     personas that belong to it there."
                }
            };
            return Ok(refused(why.into()));
        };
        let mut wish = match Wish::parse(words) {
            Ok(wish) => wish,
            Err(error) => return Ok(refused(error.to_string())),
        };
        let look = appearance(&persona);
        if look.is_empty() || !wish.prompt.is_empty() {
            let why = if look.is_empty() { "does not say how it looks" } else { "says how it looks" };
            return Ok(refused(format!(
                "The file of {} {why}. Describe it in the section `{APPEARANCE}`: `/persona edit {}`.",
                persona.name, row.id
            )));
        }
        wish.prompt = format!("portrait of {}, {look}, head and shoulders", persona.name);
        if let (None, Some(settings)) = (wish.size, self.pictures.settings()) {
            let side = settings.size.width.min(settings.size.height);
            wish.size = Some((side, side));
        }
        let base = Base { portrait_of: Some(row.identity()), ..Base::default() };
        self.ask_for_picture(at, wish, base).await
    }

    /// Makes a portrait the face of its persona.
    pub(super) async fn choose_face(&self, at: &CommandContext<'_>, number: &str) -> Result<CommandAnswer, Error> {
        let owner = match owner_here(at) {
            Ok(owner) => owner,
            Err(why) => return Ok(refused(why.into())),
        };
        let picture = match self.picture_alone(at, number).await? {
            Ok(found) => found,
            Err(why) => return Ok(refused(why)),
        };
        let look = serde_json::from_value::<PictureLook>(picture.settings.clone()).ok();
        // Everybody in the realm sees the face, so it must come from a place that everybody there may read.
        let is_for_all = picture.source_scopes.is_empty()
            && match &owner {
                Some(realm) => picture.scope == Scope::Realm(realm.clone()),
                // The operator shows everybody a picture of their own terminal.
                None => picture.person == at.line.person,
            };
        let portrayed = look.and_then(|look| look.portrait_of).filter(|_| is_for_all);
        let persona = match portrayed {
            Some(identity) => {
                let of_owner = move |memory: &Memory| {
                    let found = memory.personas().of(owner.as_ref(), &identity)?;
                    Ok(found.filter(|row| row.owner == owner))
                };
                self.services.blocking(of_owner).await?
            }
            None => None,
        };
        let Some(persona) = persona else {
            return Ok(refused(format!(
                "Picture {} is not a portrait of a persona of this place. `/persona portrait NAME` draws one, in a place that \
                 everybody here may read.",
                picture.number
            )));
        };
        self.show_as_face(at, picture.message, &persona).await
    }

    async fn show_as_face(
        &self,
        at: &CommandContext<'_>,
        picture: MessageId,
        persona: &PersonaRow,
    ) -> Result<CommandAnswer, Error> {
        let (read_scope, identity) = (at.read_scope.clone(), persona.identity());
        let file = self.services.blocking(move |memory| memory.pictures().file(&read_scope, &picture)).await?;
        let face = |bytes: Vec<u8>| Picture::read(&bytes, &PictureLimits::default())?.thumbnail(FACE_SIDE).to_png(&[]);
        let face = match file {
            Some((_, bytes)) => self.pictures.decode(bytes, face).await?.ok(),
            None => None,
        };
        let Some(face) = face else { return Ok(refused("That picture is gone.".into())) };
        let kept = move |memory: &Memory| memory.personas().set_picture(&identity, &STANDARD.encode(face));
        self.services.blocking(kept).await?;
        Ok(done(format!("`{}` shows this face from its next message on.", persona.id)))
    }
}

/// Returns the realm whose personas are changed here; `None` for those that all places share. The error says why nobody's
/// are.
fn owner_here(at: &CommandContext<'_>) -> Result<Option<RealmId>, &'static str> {
    match realm_to_change(at) {
        Err(_) if at.access >= Access::Operator && at.place.shared_realm().is_none() => Ok(None),
        owner => owner.map(Some),
    }
}
