//! What is offered while somebody types a command.

use std::sync::Arc;

use azera_adapter::{Command, OfferLine, OptionKind};
use serenity::all::{AutocompleteChoice, CommandInteraction, CreateAutocompleteResponse, CreateInteractionResponse};

use crate::channels::Hall;
use crate::commands::{By, form_of, name};
use crate::error::in_words;
use crate::id;

/// Characters of what is offered
/// (<https://discord.com/developers/docs/interactions/application-commands#application-command-object-application-command-option-choice-structure>).
const CHARS: usize = 100;

/// Tells what may be meant.
pub(crate) async fn typed(hall: Arc<Hall>, commands: &'static [Command], given: CommandInteraction) {
    let Some((kind, typed)) = typing(commands, &given) else { return };
    let by = By::gave(&given);
    let channel = by.channel(&hall).await;
    let (Some(Ok(chat)), Ok(person)) = (channel.map(id::chat), id::person(given.user.id)) else { return };
    let line = OfferLine { chat, person, name: name(given.member.as_deref(), &given.user), kind, typed };
    let offered = hall.around.host.offer(&hall.around.platform, line).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "nothing is offered");
        Vec::new()
    });
    let cut = |text: String| text.chars().take(CHARS).collect::<String>();
    let fits = offered.into_iter().filter(|offer| offer.value.chars().count() <= CHARS);
    let choices = fits.map(|offer| AutocompleteChoice::new(cut(offer.label), offer.value)).collect();
    let shown = CreateInteractionResponse::Autocomplete(CreateAutocompleteResponse::new().set_choices(choices));
    let http = &hall.around.http;
    if let Err(error) = http.create_interaction_response(given.id, &given.token, &shown, Vec::new()).await {
        tracing::debug!(error = in_words(&error), "what may be meant was not shown");
    }
}

/// What is typed, as far as it is.
fn typing(commands: &[Command], given: &CommandInteraction) -> Option<(OptionKind, String)> {
    let command = commands.iter().find(|command| command.name == given.data.name)?;
    let (form, _) = form_of(command, &given.data.options)?;
    let focused = given.data.autocomplete()?;
    let option = form.options.iter().find(|option| option.name == focused.name)?;
    Some((option.kind, focused.value.to_owned()))
}
