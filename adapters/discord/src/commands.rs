//! Slash commands. They are built from the declarations that all platforms share, and run as the line that a person
//! would type.

use std::sync::Arc;

use azera_adapter::{
    Access, AnswerFile, Choice, Command, CommandAnswer, CommandLine, CommandOption, Form, GivenPicture, OptionKind,
};
use azera_types::{MAX_NAME_CHARS, MessageId, Text};
use serenity::all::{
    Builder, ButtonStyle, ChannelId, CommandDataOption, CommandDataOptionValue, CommandInteraction, CommandOptionType,
    CommandType, ComponentInteraction, CreateActionRow, CreateAttachment, CreateButton, CreateCommand,
    CreateCommandOption, CreateInteractionResponse, CreateInteractionResponseFollowup,
    CreateInteractionResponseMessage, EditInteractionResponse, GuildId, Http, InstallationContext, InteractionContext,
    InteractionId, Member, ModalInteraction, Permissions, User, UserId,
};

use crate::buttons::{PartId, action_of};
use crate::channels::ChannelRegistry;
use crate::error::in_words;
use crate::given_files::{Files, attached};
use crate::id;
use crate::modals;
use crate::replies::nobody;
use crate::split::split;

/// Longest text of an option, in characters.
const OPTION_CHARS: u16 = 1_500;

/// Buttons in a row.
const MAX_CHOICES: usize = 2 * ROW;

/// Buttons of a row.
const ROW: usize = 5;

/// Prefix of the id of a button that runs a command line.
const LINE: &str = "azera-line.";

/// The lines of buttons that open a form.
const EDITS: [&str; 1] = ["/picture edit"];

/// Longest description of a picture for people who cannot see it
/// (<https://discord.com/developers/docs/resources/message#attachment-object>).
const DESCRIPTION_CHARS: usize = 1_024;

/// Most files of an answer (<https://discord.com/developers/docs/resources/message#create-message>).
pub(crate) const MAX_FILES: usize = 10;

/// Most messages of an answer; a longer answer is sent as a file.
pub(crate) const MAX_PARTS: usize = 4;

/// Who can install the bot: a server, or a person for themselves.
pub(crate) const INSTALLED: [InstallationContext; 2] = [InstallationContext::Guild, InstallationContext::User];

/// Where commands are available: in servers, in DMs with the bot, and, for people who installed it for themselves, in
/// other DMs.
pub(crate) const WHERE: [InteractionContext; 3] =
    [InteractionContext::Guild, InteractionContext::BotDm, InteractionContext::PrivateChannel];

/// Converts declarations to Discord's format, without commands for terminals.
pub(crate) fn declared(commands: &[Command]) -> Vec<CreateCommand> {
    commands.iter().filter(|command| !command.terminal).map(declare).collect()
}

fn declare(command: &Command) -> CreateCommand {
    let made = CreateCommand::new(command.name)
        .description(command.help)
        .kind(CommandType::ChatInput)
        .integration_types(INSTALLED.to_vec())
        .contexts(WHERE.to_vec());
    // This affects only what Discord shows; the engine decides about permissions.
    let made = match command.access {
        Access::Member => made,
        Access::Admin | Access::Operator => made.default_member_permissions(Permissions::MANAGE_GUILD),
    };
    match alone(command) {
        Some(form) => form_options(form).fold(made, |made, one| made.add_option(option(one))),
        None => command.forms.iter().fold(made, |made, form| {
            let help = if form.help.is_empty() { command.help } else { form.help };
            let sub = CreateCommandOption::new(CommandOptionType::SubCommand, form.name, help);
            let sub = form_options(form).fold(sub, |sub, one| sub.add_sub_option(option(one)));
            made.add_option(sub)
        }),
    }
}

/// Returns the options in the menu itself. Long texts are asked for in a modal.
fn form_options(form: &Form) -> impl Iterator<Item = &CommandOption> {
    form.options.iter().filter(|option| option.kind != OptionKind::Page)
}

/// Returns the form of a given command, and its given options.
pub(crate) fn form_of<'a, 'b>(
    command: &'a Command,
    options: &'b [CommandDataOption],
) -> Option<(&'a Form, &'b [CommandDataOption])> {
    match (alone(command), options.first().map(|option| (&option.name, &option.value))) {
        (Some(form), _) => Some((form, options)),
        (None, Some((name, CommandDataOptionValue::SubCommand(given)))) => {
            Some((command.forms.iter().find(|form| form.name == name)?, given.as_slice()))
        }
        (None, _) => None,
    }
}

/// Returns the form of a command with only one form.
fn alone(command: &Command) -> Option<&Form> {
    command.forms.first().filter(|form| form.name.is_empty())
}

fn option(one: &CommandOption) -> CreateCommandOption {
    let kind = match one.kind {
        OptionKind::Text
        | OptionKind::Word
        | OptionKind::Persona
        | OptionKind::Model
        | OptionKind::Branch
        | OptionKind::Memory
        | OptionKind::Theme
        | OptionKind::Setting
        | OptionKind::PictureModel
        | OptionKind::Sampler
        | OptionKind::Voice
        | OptionKind::Page => CommandOptionType::String,
        OptionKind::Count => CommandOptionType::Integer,
        OptionKind::Flag => CommandOptionType::Boolean,
        OptionKind::File | OptionKind::Picture | OptionKind::Sound => CommandOptionType::Attachment,
    };
    let made = CreateCommandOption::new(kind, one.name, one.help).required(one.required);
    match one.kind {
        OptionKind::Count => made.min_int_value(0),
        OptionKind::Flag | OptionKind::File | OptionKind::Picture | OptionKind::Sound => made,
        words => made.max_length(OPTION_CHARS).set_autocomplete(words.has_autocomplete()),
    }
}

/// Returns the command line that a person would type; `None` if the command is no longer declared.
fn line(commands: &[Command], name: &str, options: &[CommandDataOption], files: &Files) -> Option<String> {
    let command = commands.iter().find(|command| command.name == name)?;
    let (form, given) = form_of(command, options)?;
    let values: Vec<(&str, String)> =
        given.iter().filter_map(|option| Some((option.name.as_str(), written(&option.value, files)?))).collect();
    let value = |name: &str| values.iter().find(|(given, _)| *given == name).map(|(_, value)| value.as_str());
    Some(command.line(form, value))
}

fn written(value: &CommandDataOptionValue, files: &Files) -> Option<String> {
    match value {
        CommandDataOptionValue::String(text) => Some(text.clone()),
        CommandDataOptionValue::Integer(number) => Some(number.to_string()),
        CommandDataOptionValue::Boolean(flag) => Some(flag.to_string()),
        CommandDataOptionValue::Attachment(id) => files.get(id).cloned(),
        _ => None,
    }
}

/// Runs a command. It is acknowledged at once; only the person sees the answer.
pub(crate) async fn run(registry: Arc<ChannelRegistry>, commands: &'static [Command], given: CommandInteraction) {
    let by = Requester::gave(&given);
    if let Some(page) = modals::wanted(commands, &given) {
        return modals::open(&registry, by, page).await;
    }
    if !acknowledge(&registry, &by).await {
        return;
    }
    let (files, picture) = match attached(&registry, commands, &given).await {
        Ok(attached) => attached,
        Err(why) => return show(&registry, &by, &refused(why)).await,
    };
    let line = line(commands, &given.data.name, &given.data.options, &files);
    let line = Line { text: line.unwrap_or_else(|| "/help".to_owned()), about: None, picture };
    let answer = answer_line(&registry, &by, line).await;
    show(&registry, &by, &answer).await;
}

/// Runs the action of a button: on the reply above it, however old, or on the channel.
pub(crate) async fn pressed(registry: Arc<ChannelRegistry>, button: ComponentInteraction) {
    let marked = PartId::read(&button.data.custom_id);
    let about = match marked {
        Some((mark, verb)) => action_of(verb).and_then(|action| Some((action.line, Some(mark.reply.id().ok()?)))),
        // Discord only reports buttons that exist.
        None => button.data.custom_id.strip_prefix(LINE).map(|line| (line, None)),
    };
    let Some((line, reply)) = about else { return };
    let by = Requester {
        interaction: button.id,
        token: button.token,
        channel: button.channel_id,
        guild: button.guild_id,
        direct: button.context == Some(InteractionContext::BotDm),
        name: name(button.member.as_ref(), &button.user),
        user: button.user.id,
    };
    if EDITS.contains(&line) {
        return modals::open_form(&registry, by, line.to_owned(), reply).await;
    }
    obey(&registry, by, line.to_owned(), reply).await;
}

/// Answers that a request is refused, and why.
pub(crate) async fn refuse(registry: &ChannelRegistry, by: Requester, why: String) {
    if acknowledge(registry, &by).await {
        show(registry, &by, &refused(why)).await;
    }
}

/// The person who sent an interaction, and how to answer.
pub(crate) struct Requester {
    pub(crate) interaction: InteractionId,
    /// Valid for 15 minutes.
    pub(crate) token: String,
    channel: ChannelId,
    guild: Option<GuildId>,
    /// True in the person's DM with the bot.
    direct: bool,
    pub(crate) user: UserId,
    name: String,
}

impl Requester {
    /// Returns the channel of the request. Outside the bot's servers and DMs, people who installed the bot for
    /// themselves are answered as in their DM with it, because nobody else sees the answer. `None` if that DM cannot be
    /// opened now.
    pub(crate) async fn channel(&self, registry: &ChannelRegistry) -> Option<ChannelId> {
        let directory = &registry.context.directory;
        let here = match self.guild {
            // The bot is also in servers that have an outage.
            Some(guild) => directory.cache.guild(guild).is_some() || registry.context.sync_cursor.is_in(guild),
            None => self.direct,
        };
        if self.direct {
            directory.directs.note(self.channel, self.user);
        }
        if here {
            return Some(self.channel);
        }
        directory.direct_with(self.user).await
    }

    pub(crate) fn gave(given: &CommandInteraction) -> Self {
        Self {
            interaction: given.id,
            token: given.token.clone(),
            channel: given.channel_id,
            guild: given.guild_id,
            direct: given.context == Some(InteractionContext::BotDm),
            name: name(given.member.as_deref(), &given.user),
            user: given.user.id,
        }
    }

    pub(crate) fn filled(registry: &ChannelRegistry, form: &ModalInteraction) -> Self {
        Self {
            interaction: form.id,
            token: form.token.clone(),
            channel: form.channel_id,
            guild: form.guild_id,
            // A form does not tell where it is filled in, but the command before it did.
            direct: registry.context.directory.directs.known(form.channel_id) == Some(form.user.id),
            name: name(form.member.as_ref(), &form.user),
            user: form.user.id,
        }
    }
}

pub(crate) fn name(member: Option<&Member>, user: &User) -> String {
    let nick = member.and_then(|member| member.nick.as_deref());
    let name = nick.unwrap_or_else(|| user.display_name()).chars().filter(|c| !c.is_control());
    name.take(MAX_NAME_CHARS).collect()
}

/// Acknowledges a request, runs it, and shows the answer.
pub(crate) async fn obey(registry: &ChannelRegistry, by: Requester, line: String, about: Option<MessageId>) {
    if acknowledge(registry, &by).await {
        let answer = answer(registry, &by, line, about).await;
        show(registry, &by, &answer).await;
    }
}

/// Acknowledges a request; returns false if it is too late.
pub(crate) async fn acknowledge(registry: &ChannelRegistry, by: &Requester) -> bool {
    let deferred = CreateInteractionResponse::Defer(CreateInteractionResponseMessage::new().ephemeral(true));
    let said =
        registry.context.http.create_interaction_response(by.interaction, &by.token, &deferred, Vec::new()).await;
    if let Err(error) = said {
        tracing::warn!(error = in_words(&error), "cannot acknowledge a command");
        return false;
    }
    true
}

/// A command line, with what comes beside it.
struct Line {
    text: String,
    about: Option<MessageId>,
    picture: Option<GivenPicture>,
}

pub(crate) async fn answer(
    registry: &ChannelRegistry,
    by: &Requester,
    text: String,
    about: Option<MessageId>,
) -> CommandAnswer {
    answer_line(registry, by, Line { text, about, picture: None }).await
}

async fn answer_line(registry: &ChannelRegistry, by: &Requester, line: Line) -> CommandAnswer {
    let channel = by.channel(registry).await;
    let (Some(Ok(chat)), Ok(person)) = (channel.map(id::chat), id::person(by.user)) else {
        return refused("That cannot be done here now.".to_owned());
    };
    // A file in it is limited where it is read.
    let Line { text, about, picture } = line;
    let line = CommandLine { chat, person, name: by.name.clone(), text: Text::uncut(text), about, picture };
    match registry.context.host.command(&registry.context.platform, line).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::warn!(%error, "a command failed");
            refused(error.in_words())
        }
    }
}

fn refused(text: String) -> CommandAnswer {
    CommandAnswer { ok: false, text, ..CommandAnswer::default() }
}

pub(crate) async fn show(registry: &ChannelRegistry, by: &Requester, answer: &CommandAnswer) {
    if let Err(error) = try_to_show(&registry.context.http, &by.token, answer).await {
        tracing::warn!(error = in_words(&error), "cannot show the answer to a command");
    }
}

async fn try_to_show(http: &Http, token: &str, answer: &CommandAnswer) -> serenity::Result<()> {
    let edit = EditInteractionResponse::new().allowed_mentions(nobody()).components(choices(&answer.choices));
    if let Some((picture, caption)) = drawn(answer).await {
        return edit.content(caption).new_attachment(picture).execute(http, token).await.map(drop);
    }
    if !answer.files.is_empty() {
        return with_files(edit, answer).execute(http, token).await.map(drop);
    }
    let text = match (answer.text.trim(), answer.ok) {
        ("", true) => "Done.",
        ("", false) => "That cannot be done.",
        (text, _) => text,
    };
    let parts = split(text);
    // The answer is JSON, or a file that begins with front matter.
    let is_file = text.starts_with('{') || text.starts_with("---\n");
    if is_file || parts.len() > MAX_PARTS {
        let name = if text.starts_with('{') { "azera.json" } else { "azera.md" };
        let file = CreateAttachment::bytes(text.as_bytes(), name);
        return edit.content("Here it is.").new_attachment(file).execute(http, token).await.map(drop);
    }
    let mut parts = parts.into_iter();
    edit.content(parts.next().unwrap_or_default()).execute(http, token).await?;
    for part in parts {
        let more = CreateInteractionResponseFollowup::new().content(part).ephemeral(true).allowed_mentions(nobody());
        more.execute(http, (None, token)).await?;
    }
    Ok(())
}

/// Adds the files of an answer. Discord takes up to ten with a message.
fn with_files(edit: EditInteractionResponse, answer: &CommandAnswer) -> EditInteractionResponse {
    let caption = split(answer.text.trim()).into_iter().next().unwrap_or_default();
    answer.files.iter().take(MAX_FILES).fold(edit.content(caption), |edit, file| edit.new_attachment(attachment(file)))
}

/// Returns a file as Discord takes it, with its description.
pub(crate) fn attachment(AnswerFile { part, content }: &AnswerFile) -> CreateAttachment {
    let file = CreateAttachment::bytes(content.0.clone(), part.name.clone());
    match &part.alt {
        Some(alt) => file.description(alt.chars().take(DESCRIPTION_CHARS).collect::<String>()),
        None => file,
    }
}

/// Returns the chart of an answer as a picture with the answer's text as description, and the caption.
async fn drawn(answer: &CommandAnswer) -> Option<(CreateAttachment, String)> {
    let chart = answer.chart.clone()?;
    let caption = split(&chart.caption).into_iter().next().unwrap_or_default();
    let drawing = tokio::task::spawn_blocking(move || azera_charts::draw(&chart));
    let picture = match drawing.await.ok()? {
        Ok(picture) => picture,
        Err(error) => {
            tracing::error!(%error, "cannot draw a chart; answering without it");
            return None;
        }
    };
    let described = answer.text.replace(['`', '*'], "");
    let described: String = described.trim().chars().take(DESCRIPTION_CHARS).collect();
    Some((CreateAttachment::bytes(picture, "azera.png").description(described), caption))
}

/// Returns buttons for the choices.
pub(crate) fn choices(choices: &[Choice]) -> Vec<CreateActionRow> {
    let buttons: Vec<CreateButton> = choices
        .iter()
        .take(MAX_CHOICES)
        .map(|choice| {
            CreateButton::new(format!("{LINE}{}", choice.line)).label(&choice.label).style(ButtonStyle::Secondary)
        })
        .collect();
    buttons.chunks(ROW).map(|row| CreateActionRow::Buttons(row.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use serenity::all::AttachmentId;
    use serenity::json::json;

    use super::*;

    const COMMANDS: &[Command] = &[
        Command {
            name: "remember",
            help: "keep something",
            access: Access::Member,
            terminal: false,
            forms: &[Form {
                name: "",
                word: "",
                help: "",
                access: Access::Member,
                options: &[CommandOption { name: "text", help: "what", kind: OptionKind::Text, required: true }],
            }],
        },
        Command {
            name: "branch",
            help: "another way on",
            access: Access::Admin,
            terminal: false,
            forms: &[
                Form {
                    name: "new",
                    word: "",
                    help: "begin one",
                    access: Access::Member,
                    options: &[
                        CommandOption { name: "name", help: "its name", kind: OptionKind::Word, required: true },
                        CommandOption { name: "back", help: "how far", kind: OptionKind::Count, required: false },
                    ],
                },
                Form { name: "list", word: "list", help: "", access: Access::Member, options: &[] },
                Form {
                    name: "bring",
                    word: "bring",
                    help: "",
                    access: Access::Member,
                    options: &[CommandOption { name: "file", help: "what", kind: OptionKind::File, required: true }],
                },
            ],
        },
        Command { name: "quit", help: "leave", access: Access::Member, terminal: true, forms: &[] },
    ];

    #[test]
    fn a_declaration_is_converted_to_a_menu() {
        let made = serde_json::to_value(declared(COMMANDS)).unwrap();
        assert_eq!(made.as_array().unwrap().len(), 2, "terminal commands are left out");
        assert_eq!(made[0]["options"][0]["type"], 3);
        assert_eq!(made[1]["options"][0]["options"][1]["type"], 4);
        assert_eq!(made[1]["options"][1]["description"], "another way on");
        assert_eq!(made[0]["default_member_permissions"], json!(null));
        assert_eq!(made[1]["default_member_permissions"], "32");
    }

    #[test]
    fn chosen_options_become_the_command_line() {
        #[track_caller]
        fn check(name: &str, options: serde_json::Value, want: Option<&str>) {
            let options: Vec<CommandDataOption> = serde_json::from_value(options).unwrap();
            let files = Files::from([(AttachmentId::new(7), "a file".to_owned())]);
            assert_eq!(line(COMMANDS, name, &options, &files).as_deref(), want);
        }
        check("remember", json!([{"name": "text", "type": 3, "value": "two words"}]), Some("/remember two words"));
        let new = json!([{"name": "new", "type": 1, "options": [
            {"name": "name", "type": 3, "value": "other"}, {"name": "back", "type": 4, "value": 4}]}]);
        check("branch", new, Some("/branch other 4"));
        check("branch", json!([{"name": "list", "type": 1, "options": []}]), Some("/branch list"));
        let bring = json!([{"name": "bring", "type": 1, "options": [{"name": "file", "type": 11, "value": "7"}]}]);
        check("branch", bring, Some("/branch bring a file"));
        check("branch", json!([]), None);
        check("gone", json!([]), None);
    }
}
