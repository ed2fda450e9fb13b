//! Stage *remember*, pictures: what a reply's tags ask for is queued once the reply is delivered.

use azera_pictures::{PictureTag, Wish};
use azera_types::{Author, PersonId};

use super::commit::Committed;
use super::compose::Composition;
use super::context::{TurnContext, TurnRequest};
use super::generate::Draft;
use crate::pictures::{NOT_FROM_REPLIES, PictureRequest, Queued};
use crate::turn::Turns;
use crate::zones;

/// The most pictures that one reply can ask for.
const MAX_TAGS: usize = 2;

/// Said where nothing draws. How to change that concerns the operator, who learns it from `/imagine`.
const NOTHING_DRAWS: &str = "Nothing draws pictures here.";

/// Said if a rule or the server refuses the picture. It names no word of the list: nobody here asked for that word.
const REFUSED: &str = "The rules here do not allow it.";

/// Said if the record fails.
const NOT_QUEUED: &str = "I could not note it down. Ask again.";

impl Turns {
    /// Queues the pictures that a reply asks for, within the limits of the person whom it answers. If one is not drawn, one
    /// message behind the reply says why, each reason once a day in a chat.
    pub(super) async fn draw_tags(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        draft: &Draft,
        committed: &Committed,
    ) {
        let tags = &draft.generated.pictures;
        if tags.is_empty() || composition.style.is_in_danger() {
            return;
        }
        let picture = |tag: &PictureTag| PictureRequest {
            platform: request.platform.as_ref(),
            place: &context.place,
            persona: &request.message.persona,
            persona_name: &context.persona.name,
            style: &context.persona.pictures,
            person: &request.inbox.person,
            by: name_of(&request.message.author, &request.inbox.person),
            day: zones::day(self.services.clock.now(), &context.calendar.zone),
            wish: Wish { prompt: tag.prompt.clone(), ..Wish::default() },
            name: tag.name.clone(),
            original: None,
            start: None,
            is_upscaled: false,
            portrait_of: None,
            sources: vec![committed.reply.id.clone()],
            source_scopes: composition.sources.source_scopes.clone(),
            from: composition.sources.from,
        };
        let why = if self.pictures.settings().is_none() {
            Some((&tags[0], NOTHING_DRAWS.to_owned()))
        } else if !self.pictures.draws_for_replies() {
            Some((&tags[0], NOT_FROM_REPLIES.to_owned()))
        } else {
            let mut why = None;
            for tag in tags.iter().take(MAX_TAGS) {
                let refused = self.queue_tag(picture(tag)).await;
                why = why.or(refused.map(|refused| (tag, refused)));
            }
            why
        };
        let Some((tag, why)) = why else { return };
        tracing::info!(reply = %committed.reply.id, "a reply's picture is not drawn");
        let day = zones::day(self.services.clock.now(), &context.calendar.zone);
        if !self.progress.tell_undrawn(&request.message.chat, &why, &day) {
            return;
        }
        if let Err(error) = self.pictures.tell(&picture(tag), &why).await {
            tracing::warn!(reply = %committed.reply.id, %error, "cannot say why a reply's picture is not drawn");
        }
    }

    /// Queues a picture. Returns why it is not drawn, if it is not.
    async fn queue_tag(&self, picture: PictureRequest<'_>) -> Option<String> {
        match self.pictures.ask(picture).await {
            Ok(Queued::Waits(row, _)) => {
                tracing::debug!(picture = row.number, "a reply asks for a picture");
                None
            }
            Ok(Queued::Refused(_)) => Some(REFUSED.to_owned()),
            Ok(Queued::TooMany(why)) => Some(why),
            Err(error) => {
                tracing::warn!(%error, "cannot queue a reply's picture");
                Some(NOT_QUEUED.to_owned())
            }
        }
    }
}

/// Returns the displayed name of a person who said something themselves.
fn name_of<'a>(author: &'a Author, person: &PersonId) -> Option<&'a str> {
    match author {
        Author::Person { id, name } if id == person => Some(name),
        _ => None,
    }
}
