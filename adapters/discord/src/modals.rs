//! Texts of many lines, which are written in a form: what stands there now, and what is to stand there.

use azera_adapter::{Command, Form, OptionKind};
use serenity::all::{
    ActionRowComponent, CommandDataOptionValue, CommandInteraction, CreateActionRow, CreateInputText,
    CreateInteractionResponse, CreateModal, InputTextStyle, ModalInteraction,
};

use crate::channels::ChannelRegistry;
use crate::commands::{Requester, answer, form_of, obey, refuse};
use crate::error::in_words;

/// What the id of a form begins with; behind it comes the line that it completes.
const PAGE: &str = "azera-page.";

/// Characters of one field (<https://discord.com/developers/docs/components/reference#text-input>).
const FIELD_CHARS: usize = 4_000;

/// Fields of a form.
const FIELDS: usize = 5;

/// Characters of a form's id.
const ID_CHARS: usize = 100;

/// A text that is wanted.
pub(crate) struct TextModal {
    /// What the form is called.
    title: String,
    /// The line behind which the text belongs; without one it answers what stands there now.
    line: String,
    /// The command that takes the text as a file, if there is one.
    as_file: Option<String>,
}

/// The text that a command wants besides what was said with it.
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

/// Opens the form with what stands there now.
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
        tracing::warn!(error = in_words(&error), "a form could not be shown");
    }
}

/// What is said of a text that no form holds.
fn too_long(as_file: Option<&str>) -> String {
    match as_file {
        Some(command) => format!("That is too long for a form here: `{command}` takes it as a file."),
        None => "That is too long for a form here.".to_owned(),
    }
}

/// The text cut into fields, at the ends of lines; `None` if there are too many of them, or a line is longer than a field.
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

/// Does what a form was for; gives it back if it is another's.
pub(crate) async fn filled(registry: &ChannelRegistry, form: ModalInteraction) -> Option<ModalInteraction> {
    let Some(line) = form.data.custom_id.strip_prefix(PAGE) else { return Some(form) };
    let fields = form.data.components.iter().flat_map(|row| &row.components);
    let written = fields.filter_map(|field| match field {
        ActionRowComponent::InputText(text) => text.value.as_deref(),
        _ => None,
    });
    // Discord takes the blanks around each field away.
    let text = written.map(str::trim_end).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    obey(registry, Requester::filled(registry, &form), format!("{line} {text}"), None).await;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_with_lines() {
        let line = format!("{}\n", "x".repeat(999));
        let text = line.repeat(9);
        let fields = fields(&text).unwrap();
        assert_eq!(fields.iter().map(|field| field.chars().count()).collect::<Vec<_>>(), [4_000, 4_000, 1_000]);
        assert_eq!(fields.concat(), text);
    }

    #[test]
    fn what_no_form_holds_is_not_put_into_one() {
        let full = format!("{}\n", "x".repeat(FIELD_CHARS - 1));
        assert!(fields(&full.repeat(FIELDS)).is_some());
        assert!(fields(&full.repeat(FIELDS + 1)).is_none());
        assert!(fields(&format!("a line\n{}", "x".repeat(FIELD_CHARS + 1))).is_none());
        assert!(too_long(Some("/persona upload")).contains("`/persona upload`"));
    }
}
