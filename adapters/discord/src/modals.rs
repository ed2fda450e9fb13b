//! Forms that show the current values: texts of many lines, and the fields of a command.

use azera_adapter::{Command, CommandForm, Form, OptionKind};
use azera_types::MessageId;
use serenity::all::{
    ActionRowComponent, CommandDataOptionValue, CommandInteraction, CreateActionRow, CreateInputText,
    CreateInteractionResponse, CreateModal, InputTextStyle, ModalInteraction,
};

use crate::channels::ChannelRegistry;
use crate::commands::{Requester, answer, form_of, obey, refuse};
use crate::error::in_words;

/// Prefix of the id of a form; the command line that it completes follows.
const PAGE: &str = "azera-page.";

/// Prefix of the id of a form with the fields of a command; the command line that they complete follows.
const FIELDS_OF: &str = "azera-fields.";

/// Marks a field that may be empty; its value then follows in the field's id.
const WHEN_EMPTY: char = '=';

/// Longest text of a field, in characters (<https://discord.com/developers/docs/components/reference#text-input>).
const FIELD_CHARS: usize = 4_000;

/// Fields of a form.
const FIELDS: usize = 5;

/// Longest id of a form, in characters.
const ID_CHARS: usize = 100;

/// A text to ask for.
pub(crate) struct TextModal {
    /// Title of the form.
    title: String,
    /// The command line to which the text is appended. Without the text, it returns the current one.
    line: String,
    /// The command that takes the text as a file, if there is one.
    as_file: Option<String>,
}

/// Returns the text that a command still needs.
pub(crate) fn wanted(commands: &[Command], given: &CommandInteraction) -> Option<TextModal> {
    let command = commands.iter().find(|command| command.name == given.data.name)?;
    let (form, options) = form_of(command, &given.data.options)?;
    let page = form.options.iter().find(|option| option.kind == OptionKind::Page)?;
    let value = |name: &str| match &options.iter().find(|given| given.name == name)?.value {
        CommandDataOptionValue::String(text) => Some(text.as_str()),
        _ => None,
    };
    let takes_files = |form: &&Form| form.options.iter().any(|option| option.kind == OptionKind::File);
    let as_file = command.forms.iter().find(takes_files).map(|form| format!("/{} {}", command.name, form.name));
    Some(TextModal { title: page.help.to_owned(), line: command.line(form, value), as_file })
}

/// Opens the form of a command about a message.
pub(crate) async fn open_form(registry: &ChannelRegistry, by: Requester, line: String, about: Option<MessageId>) {
    let now = answer(registry, &by, line, about).await;
    match now.form {
        Some(form) => show(registry, &by, as_modal(&form)).await,
        None => refuse(registry, by, now.text).await,
    }
}

/// Opens the form with the current text.
pub(crate) async fn open(registry: &ChannelRegistry, by: Requester, page: TextModal) {
    let now = answer(registry, &by, page.line.clone(), None).await;
    let id = format!("{PAGE}{}", page.line);
    if let Some(form) = now.form {
        return show(registry, &by, as_modal(&form)).await;
    }
    if !now.ok {
        return refuse(registry, by, now.text).await;
    }
    let Some(fields) = fields(&now.text).filter(|_| id.chars().count() <= ID_CHARS) else {
        return refuse(registry, by, too_long(page.as_file.as_deref())).await;
    };
    let count = fields.len();
    let rows = fields.into_iter().enumerate().map(|(number, text)| {
        let label = if count == 1 { page.title.clone() } else { format!("{} ({}/{count})", page.title, number + 1) };
        let field = CreateInputText::new(InputTextStyle::Paragraph, label, number.to_string());
        CreateActionRow::InputText(field.value(text).required(number == 0))
    });
    show(registry, &by, CreateModal::new(id, page.title.clone()).components(rows.collect())).await;
}

async fn show(registry: &ChannelRegistry, by: &Requester, form: CreateModal) {
    let shown = CreateInteractionResponse::Modal(form);
    let http = &registry.context.http;
    if let Err(error) = http.create_interaction_response(by.interaction, &by.token, &shown, Vec::new()).await {
        tracing::warn!(error = in_words(&error), "cannot show a form");
    }
}

/// Returns the form of a command as Discord shows it.
fn as_modal(form: &CommandForm) -> CreateModal {
    let rows = form.fields.iter().take(FIELDS).map(|field| {
        let id = match field.when_empty {
            Some(value) => format!("{}{WHEN_EMPTY}{value}", field.name),
            None => field.name.to_owned(),
        };
        let most = field.max_chars.min(FIELD_CHARS);
        let value: String = field.value.chars().take(most).collect();
        let input = CreateInputText::new(InputTextStyle::Paragraph, field.label, id);
        let input = if value.is_empty() { input } else { input.value(value) };
        let most = u16::try_from(most).unwrap_or(u16::MAX);
        CreateActionRow::InputText(input.max_length(most).required(field.when_empty.is_none()))
    });
    CreateModal::new(format!("{FIELDS_OF}{}", form.line), form.title.as_str()).components(rows.collect())
}

/// Returns the line that a filled form stands for: the first field is text, the others are options.
fn completed(line: &str, fields: &[(&str, &str)]) -> String {
    let mut line = line.to_owned();
    for (number, (id, written)) in fields.iter().enumerate() {
        let (name, when_empty) = id.split_once(WHEN_EMPTY).unwrap_or((id, ""));
        let value = if written.trim().is_empty() { when_empty } else { written.trim() };
        match (number, value) {
            (_, "") => {}
            (0, value) => line.push_str(&format!(" {value}")),
            (_, value) => line.push_str(&format!(" --{name} {value}")),
        }
    }
    line
}

/// Returns the answer for a text that is too long for a form.
fn too_long(as_file: Option<&str>) -> String {
    match as_file {
        Some(command) => format!("That is too long for a form here: `{command}` takes it as a file."),
        None => "That is too long for a form here.".to_owned(),
    }
}

/// Splits the text into fields at line ends; `None` if there are too many fields, or if a line is longer than a field.
fn fields(text: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    for line in text.split_inclusive('\n') {
        let room = fields.last().map_or(0, |field| FIELD_CHARS.saturating_sub(field.chars().count()));
        if line.chars().count() > room {
            fields.push(String::new());
        }
        if let Some(field) = fields.last_mut() {
            field.push_str(line);
        }
    }
    fields.retain(|field| !field.trim().is_empty());
    let fit = fields.len() <= FIELDS && fields.iter().all(|field| field.chars().count() <= FIELD_CHARS);
    fit.then_some(fields)
}

/// Runs the command of a submitted form; returns the form if it belongs elsewhere.
pub(crate) async fn filled(registry: &ChannelRegistry, form: ModalInteraction) -> Option<ModalInteraction> {
    let fields = form.data.components.iter().flat_map(|row| &row.components);
    let written: Vec<(&str, &str)> = fields
        .filter_map(|field| match field {
            ActionRowComponent::InputText(text) => {
                Some((text.custom_id.as_str(), text.value.as_deref().unwrap_or_default()))
            }
            _ => None,
        })
        .collect();
    let line = if let Some(line) = form.data.custom_id.strip_prefix(PAGE) {
        // Discord trims each field.
        let text = written.iter().map(|(_, text)| text.trim_end()).filter(|text| !text.is_empty());
        format!("{line} {}", text.collect::<Vec<_>>().join("\n"))
    } else if let Some(line) = form.data.custom_id.strip_prefix(FIELDS_OF) {
        completed(line, &written)
    } else {
        return Some(form);
    };
    obey(registry, Requester::filled(registry, &form), line, None).await;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_form_becomes_a_command_line() {
        let line = |prompt, negative| completed("/picture edit 7", &[("prompt", prompt), ("negative=none", negative)]);
        assert_eq!(line(" a boat ", "fog"), "/picture edit 7 a boat --negative fog");
        assert_eq!(line("a boat", " "), "/picture edit 7 a boat --negative none");
    }

    #[test]
    fn fields_end_at_line_ends() {
        let line = format!("{}\n", "x".repeat(999));
        let text = line.repeat(9);
        let fields = fields(&text).unwrap();
        assert_eq!(fields.iter().map(|field| field.chars().count()).collect::<Vec<_>>(), [4_000, 4_000, 1_000]);
        assert_eq!(fields.concat(), text);
    }

    #[test]
    fn a_text_too_long_for_a_form_is_refused() {
        let full = format!("{}\n", "x".repeat(FIELD_CHARS - 1));
        assert!(fields(&full.repeat(FIELDS)).is_some());
        assert!(fields(&full.repeat(FIELDS + 1)).is_none());
        assert!(fields(&format!("a line\n{}", "x".repeat(FIELD_CHARS + 1))).is_none());
        assert!(too_long(Some("/persona upload")).contains("`/persona upload`"));
    }
}
