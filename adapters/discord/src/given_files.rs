//! Files that come with a command: those that become part of its line, and a picture beside it.

use std::collections::HashMap;

use azera_adapter::{Command, GivenPicture, OptionKind};
use serenity::all::{AttachmentId, CommandDataOptionValue, CommandInteraction};

use crate::attachments;
use crate::channels::ChannelRegistry;
use crate::commands::form_of;

/// The contents of attached files, as they are put into the command line.
pub(crate) type Files = HashMap<AttachmentId, String>;

/// Downloads the attached files of a command, and the picture among them. The error says why a file cannot be used.
pub(crate) async fn attached(
    registry: &ChannelRegistry,
    commands: &[Command],
    given: &CommandInteraction,
) -> Result<(Files, Option<GivenPicture>), String> {
    let client = &registry.context.files;
    let of_kind = |kind| option_of_kind(kind, commands, given);
    let (picture, sound) = (of_kind(OptionKind::Picture), of_kind(OptionKind::Sound));
    let (mut files, mut shown) = (Files::new(), None);
    for attachment in given.data.resolved.attachments.values() {
        let cannot = |why| format!("{} cannot be used: {why}.", attachment.filename);
        if picture == Some(attachment.id) {
            shown = Some(attachments::given_picture(client, attachment).await.map_err(cannot)?);
        } else if sound == Some(attachment.id) {
            files.insert(attachment.id, attachments::given_sound(client, attachment).await.map_err(cannot)?);
        } else {
            files.insert(attachment.id, attachments::given(client, attachment).await.map_err(cannot)?);
        }
    }
    Ok((files, shown))
}

/// Returns the attachment that a command takes as an option of this kind.
fn option_of_kind(kind: OptionKind, commands: &[Command], given: &CommandInteraction) -> Option<AttachmentId> {
    let command = commands.iter().find(|command| command.name == given.data.name)?;
    let (form, options) = form_of(command, &given.data.options)?;
    let declared = form.options.iter().find(|option| option.kind == kind)?;
    match options.iter().find(|option| option.name == declared.name)?.value {
        CommandDataOptionValue::Attachment(id) => Some(id),
        _ => None,
    }
}
