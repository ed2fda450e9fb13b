//! `/voice captions`: the words of a call in a text channel, while it runs.

use azera_adapter::{CallWish, CaptionStatus, Choice, CommandAnswer, VoiceChannels};

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
        let Some(wish) = CallWish::read(choice) else {
            return Ok(refused(
                "`/voice captions on`, `/voice captions off`, `/voice captions yes` or `/voice captions no`.".into(),
            ));
        };
        let status = match voice.captions(&at.line.chat, &at.line.person, wish.clone()).await {
            Ok(status) => status,
            Err(why) => return Ok(no(&why)),
        };
        let Some(status) = status else {
            return Ok(done(if wish == CallWish::Off { "The captions are off.".into() } else { OFF.into() }));
        };
        Ok(described(&wish, &status))
    }
}

fn described(wish: &CallWish, status: &CaptionStatus) -> CommandAnswer {
    let CaptionStatus { name, by, place, people, shows_yours } = status;
    match wish {
        CallWish::Refuse => {
            return done(format!(
                "I do not hear you while captions run. What already stands in {place} stays until you forget it: `/forget`."
            ));
        }
        CallWish::Agree(_) => {
            return done(format!(
                "Thank you. I hear you while captions run, and what you say stands in {place}. `/voice captions no` ends it. \
                 Your choice for other times stays as it is: `/voice consent`."
            ));
        }
        CallWish::Show | CallWish::On | CallWish::Off => {}
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
        false => vec![choice("Hear me and show my words", &format!("/voice captions yes {name}"))],
    };
    CommandAnswer { choices, ..done(text) }
}
