//! `/voice replies`: when replies are also spoken.

use azera_adapter::CommandAnswer;
use azera_memory::{ChatChange, VoiceReplies};

use super::mind::may_configure_place;
use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;

/// How the command is used.
const USAGE: &str = "`/voice replies auto`, `/voice replies always` or `/voice replies never`.";

impl Commands {
    pub(super) async fn voice_replies(&self, at: &CommandContext<'_>, choice: &str) -> Result<CommandAnswer, Error> {
        let replies = match choice {
            "" => return Ok(done(format!("{}{}", self.spoken_replies(at), self.missing()))),
            "auto" => VoiceReplies::Auto,
            "always" => VoiceReplies::Always,
            "never" => VoiceReplies::Never,
            _ => return Ok(refused(USAGE.into())),
        };
        if !may_configure_place(at) {
            return Ok(refused("Only admins can choose when I speak in a shared place.".into()));
        }
        let chat = at.chat.id.clone();
        let change = ChatChange::VoiceReplies(Some(replies));
        self.services.blocking(move |memory| memory.chats().change(&chat, change)).await?;
        Ok(done(format!("From now on, {} here.{}", when(replies), self.missing())))
    }

    /// Describes when replies are spoken in a chat.
    pub(super) fn spoken_replies(&self, at: &CommandContext<'_>) -> String {
        let present = at.chat.voice_replies.unwrap_or(self.services.voice().replies);
        format!("Here, {}.", when(present))
    }

    /// Says what is missing to hear and to speak.
    fn missing(&self) -> &'static str {
        let voice = self.services.voice();
        match (voice.listener.is_some(), voice.speaker.is_some()) {
            (true, true) => "",
            (false, true) => " I cannot listen to voice messages: no speech model is set up.",
            (true, false) => " I cannot speak: no voice is set up.",
            (false, false) => " I can neither listen nor speak: no speech model and no voice are set up.",
        }
    }
}

fn when(replies: VoiceReplies) -> &'static str {
    match replies {
        VoiceReplies::Auto => "I answer voice messages by voice, with the text beside the sound",
        VoiceReplies::Always => "I speak every reply, with the text beside the sound",
        VoiceReplies::Never => "I answer with text alone",
    }
}
