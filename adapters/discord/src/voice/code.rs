//! The code of replies: it is not read aloud, and the person who asked gets it as direct messages.

use std::sync::Arc;

use azera_types::PersonId;
use serenity::all::{ChannelId, CreateMessage, UserId};

use super::VoiceCalls;
use crate::error::in_words;
use crate::id;
use crate::replies::nobody;
use crate::split::split;

/// Written when the code of a reply cannot be sent.
const NOT_SENT: &str = "I could not send the code that I spoke of as a direct message. Allow direct messages from members \
                        of this server, and ask again.";

/// What begins and ends a block of code. The second one begins it only at the beginning of a line.
const TICKS: &str = "```";
const TILDES: &str = "~~~";

impl VoiceCalls {
    /// Sends code to the person who asked for it. Others who read the channel's text chat were not in the room.
    pub(super) async fn send_code(self: Arc<Self>, channel: ChannelId, asker: Option<PersonId>, code: String) {
        if !self.send_to(asker.as_ref().and_then(id::user_of), &code).await {
            self.tell(channel, NOT_SENT).await;
        }
    }

    /// Sends a text as direct messages. Returns false if that does not work.
    async fn send_to(&self, user: Option<UserId>, text: &str) -> bool {
        let (Ok(line), Some(user)) = (self.line(), user) else { return false };
        let Some(channel) = line.directory.direct_with(user).await else { return false };
        for part in split(text) {
            let message = CreateMessage::new().content(part).allowed_mentions(nobody());
            if let Err(error) = line.http.send_message(channel, Vec::new(), &message).await {
                tracing::warn!(error = in_words(&error), "cannot send the code of a reply");
                return false;
            }
        }
        true
    }
}

/// Returns the code blocks of a text, each between backticks; `None` if there are none. They are those that the voice does
/// not read aloud: code in one line is said.
pub(super) fn code_of(text: &str) -> Option<String> {
    let mut code = Vec::new();
    let mut rest = text;
    while let Some((fence, block)) = next_block(rest) {
        let more = |c: char| fence.starts_with(c);
        let end = block.find(fence);
        let body = end.and_then(|end| block.get(..end)).unwrap_or(block);
        let is_in_line = fence == TICKS && !body.contains('\n') && !body.is_empty();
        if !is_in_line && !body.trim().is_empty() {
            code.push(format!("{TICKS}{}\n{TICKS}", body.trim_start_matches(more).trim_end()));
        }
        rest = end.and_then(|end| block.get(end..)).unwrap_or_default().trim_start_matches(more);
    }
    (!code.is_empty()).then(|| code.join("\n"))
}

/// Returns what begins the next block of a text, and the text behind that.
fn next_block(text: &str) -> Option<(&'static str, &str)> {
    let ticks = text.find(TICKS);
    let tildes =
        text.match_indices(TILDES).map(|(at, _)| at).find(|at| begins_line(text.get(..*at).unwrap_or_default()));
    let (fence, at) = match (ticks, tildes) {
        (Some(ticks), Some(tildes)) if tildes < ticks => (TILDES, tildes),
        (Some(ticks), _) => (TICKS, ticks),
        (None, tildes) => (TILDES, tildes?),
    };
    Some((fence, text.get(at + fence.len()..)?))
}

/// Returns true if a line begins behind a text, apart from at most three spaces or tabs.
fn begins_line(before: &str) -> bool {
    let indent = before.rsplit('\n').next().unwrap_or_default();
    indent.len() <= 3 && indent.chars().all(|c| c == ' ' || c == '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_in_a_reply() {
        assert_eq!(code_of("Hello there."), None);
        assert_eq!(
            code_of("Run:\n```sh\nls\n```\nor\n```\nls -l\n```").as_deref(),
            Some("```sh\nls\n```\n```\nls -l\n```")
        );
        assert_eq!(code_of("An open one:\n```sh\nls").as_deref(), Some("```sh\nls\n```"));
    }

    #[test]
    fn code_between_tildes_is_code() {
        assert_eq!(code_of("Run:\n~~~sh\nls\n~~~\nThen rest.").as_deref(), Some("```sh\nls\n```"));
        assert_eq!(code_of("~~~\na\n~~~\n```\nb\n```").as_deref(), Some("```\na\n```\n```\nb\n```"));
        assert_eq!(code_of("  ~~~~\na\n~~~~ end").as_deref(), Some("```\na\n```"));
        assert_eq!(code_of("so good~~~ really~~~"), None, "tildes in a line mark no code");
    }

    #[test]
    fn what_is_read_aloud_is_not_sent() {
        assert_eq!(code_of("Press ```Enter``` now."), None);
        assert_eq!(code_of("Nothing: ```\n\n``` and `ls`."), None);
    }
}
