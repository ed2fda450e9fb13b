//! The menu of a message: its actions, and the forms that ask for their option.

use std::sync::Arc;

use azera_adapter::{Command, MessageAction, OptionKind};
use serenity::all::{
    ActionRowComponent, CommandInteraction, CommandType, CreateActionRow, CreateCommand, CreateInputText,
    CreateInteractionResponse, CreateModal, Http, InputTextStyle, InstallationContext, InteractionContext, Message,
    ModalInteraction,
};

use crate::channels::ChannelRegistry;
use crate::commands::{Requester, acknowledge, obey, show};
use crate::error::in_words;
use crate::id;
use crate::modals;

/// Prefix of the id of a form; the command and the message follow.
const FORM: &str = "azera-form";

/// The line of the action that forgets.
const FORGET: &str = "/forget";

/// Longest word in a form's field, in characters.
const WORD_CHARS: u16 = 100;

/// Longest text in a form's field, in characters.
const TEXT_CHARS: u16 = 2_000;

/// Converts the actions to Discord's declaration of menu entries.
pub(crate) fn declared(actions: &[MessageAction]) -> impl Iterator<Item = CreateCommand> {
    actions.iter().map(|action| {
        CreateCommand::new(action.name)
            .kind(CommandType::Message)
            // They are not available outside the bot's servers and DMs: what people say there is not the bot's
            // business.
            .integration_types(vec![InstallationContext::Guild])
            .contexts(vec![InteractionContext::Guild, InteractionContext::BotDm])
    })
}

/// Sends the declarations of commands and menu entries to Discord.
pub(crate) async fn declare(http: Arc<Http>, commands: &'static [Command], actions: &'static [MessageAction]) {
    let mut declarations = crate::commands::declared(commands);
    declarations.extend(declared(actions));
    match http.create_global_commands(&declarations).await {
        Ok(commands) => tracing::debug!(commands = commands.len(), "declared the commands"),
        Err(error) => tracing::error!(error = in_words(&error), "cannot declare the commands"),
    }
}

/// Runs the chosen action, or asks for its option first.
pub(crate) async fn chosen(
    registry: Arc<ChannelRegistry>,
    actions: &'static [MessageAction],
    given: CommandInteraction,
) {
    let Some(action) = actions.iter().find(|action| action.name == given.data.name) else { return };
    let target = given.data.target_id.and_then(|target| given.data.resolved.messages.get(&target.to_message_id()));
    let by = Requester::gave(&given);
    if action.line == FORGET
        && let Some(message) = target.filter(|message| registry.context.shown.is_own(message))
        && let Some(said) = registry.context.voice.captioned_in(message).await
    {
        return forget_captioned(&registry, &by, &said).await;
    }
    let Some(about) = target.and_then(|message| about(&registry, message)) else { return };
    let Some(asks) = action.asks else {
        return obey(&registry, by, action.line.to_owned(), Some(about)).await;
    };
    // This records the channel for the time when the form is submitted.
    by.channel(&registry).await;
    let (style, most) = match asks.kind {
        OptionKind::Text => (InputTextStyle::Paragraph, TEXT_CHARS),
        _ => (InputTextStyle::Short, WORD_CHARS),
    };
    let field = CreateInputText::new(style, asks.help, asks.name).max_length(most);
    let form = CreateModal::new(form_id(action, about.as_str()), action.name)
        .components(vec![CreateActionRow::InputText(field)]);
    let shown = CreateInteractionResponse::Modal(form);
    let http = &registry.context.http;
    if let Err(error) = http.create_interaction_response(given.id, &given.token, &shown, Vec::new()).await {
        tracing::warn!(error = in_words(&error), "cannot show a form");
    }
}

/// Forgets what stands in a caption and belongs to the person who chose the action.
async fn forget_captioned(registry: &ChannelRegistry, by: &Requester, said: &[azera_types::MessageId]) {
    let Ok(person) = id::person(by.user) else { return };
    if acknowledge(registry, by).await {
        let answer = registry.context.voice.forget_captioned(&person, said).await;
        show(registry, by, &answer).await;
    }
}

/// Runs the action of a submitted form.
pub(crate) async fn filled(registry: Arc<ChannelRegistry>, actions: &'static [MessageAction], form: ModalInteraction) {
    let Some(form) = modals::filled(&registry, form).await else { return };
    let Some((action, about)) = read(actions, &form.data.custom_id) else { return };
    let fields = form.data.components.iter().flat_map(|row| &row.components);
    let written = fields.filter_map(|field| match field {
        ActionRowComponent::InputText(text) => text.value.as_deref(),
        _ => None,
    });
    let line = format!("{} {}", action.line, written.collect::<Vec<_>>().join(" ").trim());
    obey(&registry, Requester::filled(&registry, &form), line, Some(about)).await;
}

/// Returns the engine's id of the selected message: a person's, or a reply.
fn about(registry: &ChannelRegistry, message: &Message) -> Option<azera_types::MessageId> {
    if registry.context.shown.is_own(message) {
        return registry.context.shown.reply_of(message)?.id().ok();
    }
    id::message(message.id).ok()
}

fn form_id(action: &MessageAction, about: &str) -> String {
    format!("{FORM}.{}.{about}", action.line.trim_start_matches('/'))
}

fn read<'a>(actions: &'a [MessageAction], custom_id: &str) -> Option<(&'a MessageAction, azera_types::MessageId)> {
    let (command, about) = custom_id.strip_prefix(FORM)?.strip_prefix('.')?.split_once('.')?;
    let action = actions.iter().find(|action| action.line.trim_start_matches('/') == command)?;
    Some((action, azera_types::MessageId::new(about).ok()?))
}

#[cfg(test)]
mod tests {
    use azera_adapter::CommandOption;

    use super::*;

    const ASKS: CommandOption =
        CommandOption { name: "name", help: "its name", kind: OptionKind::Word, required: true };
    const ACTIONS: &[MessageAction] = &[
        MessageAction { name: "Why?", line: "/why", asks: None },
        MessageAction { name: "Branch from here", line: "/branch", asks: Some(ASKS) },
    ];

    #[test]
    fn a_form_id_names_action_and_message() {
        let id = form_id(&ACTIONS[1], "discord:18446744073709551615~r4294967295");
        assert!(id.len() <= 100, "the id is too long for Discord");
        let (action, about) = read(ACTIONS, &id).unwrap();
        assert_eq!((action.name, about.as_str()), ("Branch from here", "discord:18446744073709551615~r4294967295"));
        assert!(read(ACTIONS, "azera-form.gone.discord:1").is_none());
        assert!(read(ACTIONS, "else").is_none());
    }

    #[test]
    fn menus_are_for_messages() {
        let made = serde_json::to_value(declared(ACTIONS).collect::<Vec<_>>()).unwrap();
        assert_eq!((&made[1]["name"], &made[1]["type"]), (&"Branch from here".into(), &3.into()));
    }
}
