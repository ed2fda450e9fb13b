//! Suggestions while somebody types a command.

use std::sync::Arc;

use azera_adapter::{AutocompleteRequest, Command, OptionKind};
use serenity::all::{AutocompleteChoice, CommandInteraction, CreateAutocompleteResponse, CreateInteractionResponse};

use crate::channels::ChannelRegistry;
use crate::commands::{Requester, form_of, name};
use crate::error::in_words;
use crate::id;

/// Longest suggestion in characters
/// (<https://discord.com/developers/docs/interactions/application-commands#application-command-object-application-command-option-choice-structure>).
const CHARS: usize = 100;

/// Answers a request for suggestions.
pub(crate) async fn typed(registry: Arc<ChannelRegistry>, commands: &'static [Command], given: CommandInteraction) {
    let Some((kind, typed)) = typing(commands, &given) else { return };
    let by = Requester::gave(&given);
    let channel = by.channel(&registry).await;
    let (Some(Ok(chat)), Ok(person)) = (channel.map(id::chat), id::person(given.user.id)) else { return };
    let line = AutocompleteRequest { chat, person, name: name(given.member.as_deref(), &given.user), kind, typed };
    let options = registry.context.host.autocomplete(&registry.context.platform, line).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "cannot get suggestions");
        Vec::new()
    });
    let cut = |text: String| text.chars().take(CHARS).collect::<String>();
    let fits = options.into_iter().filter(|option| option.value.chars().count() <= CHARS);
    let choices = fits.map(|option| AutocompleteChoice::new(cut(option.label), option.value)).collect();
    let shown = CreateInteractionResponse::Autocomplete(CreateAutocompleteResponse::new().set_choices(choices));
    let http = &registry.context.http;
    if let Err(error) = http.create_interaction_response(given.id, &given.token, &shown, Vec::new()).await {
        tracing::debug!(error = in_words(&error), "cannot show suggestions");
    }
}

/// Returns kind and text of the option that is being typed.
fn typing(commands: &[Command], given: &CommandInteraction) -> Option<(OptionKind, String)> {
    let command = commands.iter().find(|command| command.name == given.data.name)?;
    let (form, _) = form_of(command, &given.data.options)?;
    let focused = given.data.autocomplete()?;
    let option = form.options.iter().find(|option| option.name == focused.name)?;
    Some((option.kind, focused.value.to_owned()))
}
