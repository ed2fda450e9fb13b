//! `/voice captions`: the words of a call in a text channel, while it runs.

use azera_adapter::{CaptionStatus, CaptionWish, Choice, CommandAnswer, VoiceChannels, VoiceError};
use azera_memory::VoiceConsent;

use super::voice::no;
use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;

/// Said while no captions run.
const OFF: &str = "No captions run in this call. `/voice captions on` lets them stand in a thread of the text channel where \
                   you write it.";

impl Commands {
    pub(super) async fn voice_captions(
        &self,
        at: &CommandContext<'_>,
        voice: &dyn VoiceChannels,
        choice: &str,
    ) -> Result<CommandAnswer, Error> {
        let wish = match choice {
            "" => CaptionWish::Show,
            "on" => CaptionWish::On,
            "off" => CaptionWish::Off,
            "yes" => CaptionWish::Agree,
            "no" => CaptionWish::Refuse,
            _ => {
                return Ok(refused(
                    "`/voice captions on`, `/voice captions off`, `/voice captions yes` or `/voice captions no`."
                        .into(),
                ));
            }
        };
        let status = match voice.captions(&at.line.chat, &at.line.person, wish).await {
            Ok(status) => status,
            Err(why) => return Ok(no(&why)),
        };
        let Some(status) = status else {
            return Ok(done(if wish == CaptionWish::Off { "The captions are off.".into() } else { OFF.into() }));
        };
        if wish == CaptionWish::Agree {
            return self.agree_to_captions(at, voice, &status).await;
        }
        Ok(described(wish, &status))
    }

    /// Records that a person may be heard: their words cannot stand in captions otherwise.
    async fn agree_to_captions(
        &self,
        at: &CommandContext<'_>,
        voice: &dyn VoiceChannels,
        status: &CaptionStatus,
    ) -> Result<CommandAnswer, Error> {
        let Some(voice_chat) = voice.chat_of(&at.line.chat, &at.line.person).await else {
            return Ok(no(&VoiceError::NotInChannel));
        };
        let (chat, person) = (voice_chat.clone(), at.line.person.clone());
        self.services.blocking(move |memory| memory.consent().set_voice(&chat, &person, VoiceConsent::Given)).await?;
        voice.decided(&voice_chat, &at.line.person, true).await;
        Ok(done(format!(
            "Thank you. I hear you in this voice channel, and what you say stands in {} while captions run. \
             `/voice captions no` ends it.",
            status.place
        )))
    }
}

fn described(wish: CaptionWish, status: &CaptionStatus) -> CommandAnswer {
    let CaptionStatus { by, place, people, shows_yours } = status;
    if wish == CaptionWish::Refuse {
        return done(format!(
            "I do not hear you while captions run. What already stands in {place} stays until you forget it: `/forget`."
        ));
    }
    let yours = if *shows_yours {
        "Your words stand there: `/voice captions no` ends that."
    } else {
        "I do not hear you meanwhile, unless you agree to it: `/voice captions yes`."
    };
    let agreed = if *people == 1 { "1 person agreed".to_owned() } else { format!("{people} people agreed") };
    let text = format!("Captions of this call stand in {place}. {by} turned them on, and {agreed} to them. {yours}");
    let choice = |label: &str, line: &str| Choice { label: label.into(), line: line.into() };
    let choices = match shows_yours {
        true => vec![choice("Captions off", "/voice captions off")],
        false => vec![choice("Hear me and show my words", "/voice captions yes")],
    };
    CommandAnswer { choices, ..done(text) }
}
