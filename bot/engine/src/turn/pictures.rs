//! The pictures that a reply's tags ask for. They are queued with the reply, in the stage *commit*. If one is not drawn, the
//! stage *remember* says why.

use azera_memory::NewPicture;
use azera_pictures::{PictureTag, Wish};
use azera_types::{Author, PersonId};

use super::commit::Committed;
use super::compose::Composition;
use super::context::{TurnContext, TurnRequest};
use super::generate::Draft;
use crate::pictures::{Allowed, NOT_FROM_REPLIES, PictureRequest, Queued, Writer, style_of};
use crate::turn::Turns;
use crate::zones;

/// The most pictures that one reply can ask for.
const MAX_TAGS: usize = 2;

/// Said where nothing draws. How to change that concerns the operator, who learns it from `/imagine`.
const NOTHING_DRAWS: &str = "Nothing draws pictures here.";

/// Said if the record fails.
const NOT_QUEUED: &str = "I could not note it down. Ask again.";

/// What became of the tags of a reply.
#[derive(Default)]
pub(super) struct Tags {
    /// The pictures to queue with the reply.
    pub(super) pictures: Vec<NewPicture>,
    /// The first reason why one is not drawn.
    pub(super) undrawn: Option<String>,
}

impl Turns {
    /// Checks what a reply asks for by the rules.
    pub(super) async fn allowed_tags(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        draft: &Draft,
    ) -> Tags {
        let mut found = Tags::default();
        let tags = &draft.generated.pictures;
        if tags.is_empty() || composition.style.is_in_danger() {
            return found;
        }
        if self.pictures.settings().is_none() {
            found.refuse(NOTHING_DRAWS);
            return found;
        }
        if !self.pictures.draws_for_replies() {
            found.refuse(NOT_FROM_REPLIES);
            return found;
        }
        for tag in tags.iter().take(MAX_TAGS) {
            match self.pictures.allow(self.picture(request, context, composition, draft, tag)).await {
                Ok(Ok(Allowed { picture, .. })) => found.pictures.push(picture),
                Ok(Err(queued)) => found.refuse(&refused(queued)),
                Err(error) => {
                    tracing::warn!(%error, "cannot check a reply's picture");
                    found.refuse(NOT_QUEUED);
                }
            }
        }
        found
    }

    /// Returns the request of a tag. It is within the limits of the person whom the reply answers.
    fn picture<'a>(
        &self,
        request: &'a TurnRequest,
        context: &'a TurnContext,
        composition: &Composition,
        draft: &Draft,
        tag: &PictureTag,
    ) -> PictureRequest<'a> {
        PictureRequest {
            platform: request.platform.as_ref(),
            place: &context.place,
            persona: &request.message.persona,
            persona_name: &context.persona.name,
            style: style_of(&context.persona, &tag.prompt, Writer::Persona),
            person: &request.inbox.person,
            by: name_of(&request.message.author, &request.inbox.person),
            day: zones::day(self.services.clock.now(), &context.calendar.zone),
            wish: Wish { prompt: tag.prompt.clone(), ..Wish::default() },
            name: tag.name.clone(),
            original: None,
            start: None,
            is_upscaled: false,
            portrait_of: None,
            sources: vec![draft.id.clone()],
            source_scopes: composition.sources.source_scopes.clone(),
            from: composition.sources.from,
        }
    }

    /// Begins to draw what was queued with a reply. If something is not drawn, one message behind the reply says why, each
    /// reason once a day in a chat.
    pub(super) async fn draw_tags(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        draft: &Draft,
        committed: &Committed,
    ) {
        let mut why = committed.undrawn.clone();
        for asked in &committed.asked {
            let refused = match self.pictures.queued(asked.clone()).await {
                Ok(Queued::Waits(row, _)) => {
                    tracing::debug!(picture = row.number, "a reply asks for a picture");
                    None
                }
                Ok(queued) => Some(refused(queued)),
                Err(error) => {
                    // It waits, whatever its place in the queue is.
                    tracing::warn!(%error, "cannot tell how long a reply's picture waits");
                    None
                }
            };
            why = why.or(refused);
        }
        let Some((tag, why)) = draft.generated.pictures.first().zip(why) else { return };
        tracing::info!(reply = %committed.reply.id, "a reply's picture is not drawn");
        let day = zones::day(self.services.clock.now(), &context.calendar.zone);
        if !self.progress.tell_undrawn(&request.message.chat, &why, &day) {
            return;
        }
        let picture = self.picture(request, context, composition, draft, tag);
        if let Err(error) = self.pictures.tell(&picture, &why).await {
            tracing::warn!(reply = %committed.reply.id, %error, "cannot say why a reply's picture is not drawn");
        }
    }
}

impl Tags {
    fn refuse(&mut self, why: &str) {
        self.undrawn.get_or_insert_with(|| why.to_owned());
    }
}

/// Returns why a picture is not queued. A rule is named without the word: nobody here asked for that word.
fn refused(queued: Queued) -> String {
    match queued {
        Queued::Refused(why) | Queued::TooMany(why) => why,
        Queued::Unknown(unknown) => unknown.why,
        Queued::Forbidden(refusal) => refusal.rule().to_owned(),
        // It is drawn, so nobody is told.
        Queued::Waits(..) => String::new(),
    }
}

/// Returns the displayed name of a person who said something themselves.
fn name_of<'a>(author: &'a Author, person: &PersonId) -> Option<&'a str> {
    match author {
        Author::Person { id, name } if id == person => Some(name),
        _ => None,
    }
}
