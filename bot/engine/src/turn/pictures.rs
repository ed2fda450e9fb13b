//! Stage *remember*, pictures: what a reply's tags ask for is queued once the reply is delivered.

use azera_pictures::Wish;

use super::commit::Committed;
use super::compose::Composition;
use super::context::{TurnContext, TurnRequest};
use super::generate::Draft;
use crate::pictures::{PictureRequest, Queued};
use crate::turn::Turns;
use crate::zones;

/// The most pictures that one reply can ask for.
const MAX_TAGS: usize = 2;

impl Turns {
    /// Queues the pictures that a reply asks for, within the limits of the person whom it answers.
    pub(super) async fn draw_tags(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        draft: &Draft,
        committed: &Committed,
    ) {
        let is_wanted = self.pictures.settings().is_some_and(|settings| settings.in_replies);
        if !is_wanted || composition.style.is_in_danger() {
            return;
        }
        for tag in draft.generated.pictures.iter().take(MAX_TAGS) {
            let picture = PictureRequest {
                platform: request.platform.as_ref(),
                place: &context.place,
                persona: &request.message.persona,
                persona_name: &context.persona.name,
                style: &context.persona.pictures,
                person: &request.inbox.person,
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
            match self.pictures.ask(picture).await {
                Ok(Queued::Waits(row, _)) => tracing::debug!(picture = row.number, "a reply asks for a picture"),
                Ok(Queued::Refused(_) | Queued::TooMany(_)) => {
                    tracing::info!(reply = %committed.reply.id, "a reply's picture is not drawn")
                }
                Err(error) => tracing::warn!(reply = %committed.reply.id, %error, "cannot queue a reply's picture"),
            }
        }
    }
}
