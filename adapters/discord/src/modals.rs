//! Texts of many lines, which people edit in a form that shows the current text.

use azera_adapter::{Command, Form, OptionKind};
use serenity::all::{
    ActionRowComponent, CommandDataOptionValue, CommandInteraction, CreateActionRow, CreateInputText,
    CreateInteractionResponse, CreateModal, InputTextStyle, ModalInteraction,
};

use crate::channels::ChannelRegistry;
use crate::commands::{Requester, answer, form_of, obey, refuse};
use crate::error::in_words;

/// Prefix of the id of a form; the command line that it completes follows.
const PAGE: &str = "azera-page.";

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

/// Opens the form with the current text.
pub(crate) async fn open(registry: &ChannelRegistry, by: Requester, page: TextModal) {
    let now = answer(registry, &by, page.line.clone(), None).await;
    let id = format!("{PAGE}{}", page.line);
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
    let form = CreateModal::new(id, page.title.clone()).components(rows.collect());
    let shown = CreateInteractionResponse::Modal(form);
    let http = &registry.context.http;
    if let Err(error) = http.create_interaction_response(by.interaction, &by.token, &shown, Vec::new()).await {
        tracing::warn!(error = in_words(&error), "cannot show a form");
    }
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
    let Some(line) = form.data.custom_id.strip_prefix(PAGE) else { return Some(form) };
    let fields = form.data.components.iter().flat_map(|row| &row.components);
    let written = fields.filter_map(|field| match field {
        ActionRowComponent::InputText(text) => text.value.as_deref(),
        _ => None,
    });
    // Discord trims each field.
    let text = written.map(str::trim_end).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    obey(registry, Requester::filled(registry, &form), format!("{line} {text}"), None).await;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

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
