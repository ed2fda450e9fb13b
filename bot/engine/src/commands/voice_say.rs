//! `/voice say`: a text in the call that the person is in, or else as a recording; and the voices that can say it.

use azera_adapter::{Access, AnswerFile, AutocompleteOption, CommandAnswer, FileContent, VoiceChannels, VoiceError};
use azera_types::{ChatId, Part, VoiceNote};
use azera_voice_api::{CLONE_MARK, Manner, Sample, SpeakError, Speaker, Voice};

use super::{CommandContext, done, refused};
use crate::clones::{Accounts, manner_in};
use crate::commands::Commands;
use crate::commands::voice::no;
use crate::error::Error;
use crate::voice::in_call;

/// How the command is used.
const USAGE: &str = "`/voice say TEXT`, or `/voice say TEXT --voice NAME` with another voice.";

/// Said where nothing speaks.
const NO_VOICE: &str =
    "I have no voice here that I could choose. The operator sets one up: `[voice]` in the configuration.";

/// Said to somebody who would get a file with another person's voice and any words in it.
const ONLY_IN_CALLS: &str = "That is somebody's recorded voice. I speak with it in calls; a recording of any text I make with it \
                             only for the person whose voice it is, and for the one who gave it. `/voice say TEXT --voice NAME` \
                             takes another voice.";

/// The option before the name of a voice.
const OPTION: &str = "--voice";

/// The most characters of a text: about three minutes of speech.
const MAX_TEXT_CHARS: usize = 3_000;

/// The most characters of an unknown name that are repeated.
const MAX_NAME_CHARS: usize = 60;

/// The most names in the answer about an unknown voice.
const MAX_NAMES: usize = 20;

/// A voice that a person may let something be said with.
struct OfferedVoice {
    /// Its id, as engines take it.
    id: String,
    /// The name by which people know it.
    name: String,
    /// What it is.
    about: String,
}

impl Commands {
    /// Says a text, in the call or as a recording.
    pub(super) async fn voice_say(&self, at: &CommandContext<'_>, words: &str) -> Result<CommandAnswer, Error> {
        let (text, named) = split_voice(words);
        if text.is_empty() || named.is_some_and(str::is_empty) {
            return Ok(refused(USAGE.into()));
        }
        if text.chars().count() > MAX_TEXT_CHARS {
            return Ok(refused(format!(
                "That is too long to be said at once. I say up to {MAX_TEXT_CHARS} characters."
            )));
        }
        let chosen = match named {
            None => None,
            Some(name) => match self.voice_named(at, name).await? {
                Ok(voice) => Some(voice),
                Err(why) => return Ok(refused(why)),
            },
        };
        let own = self.manner_here(at).await?;
        let manner = chosen.map(|voice| in_voice(own.clone(), voice));
        let not_in_call = match at.adapter.voice() {
            None => None,
            Some(channels) => match say_in_call(at, channels, text, manner.as_ref()).await {
                Ok(()) => return Ok(done("I say it.".into())),
                Err(why @ (VoiceError::NotInChannel | VoiceError::NotThere)) => Some(why),
                Err(why) => return Ok(no(&why)),
            },
        };
        let manner = manner.unwrap_or(own);
        match (self.services.voice().speaker, not_in_call) {
            (Some(_), _) if !self.may_record_with(at, &manner).await? => Ok(refused(ONLY_IN_CALLS.into())),
            (Some(speaker), _) => self.as_recording(&*speaker, text, &manner).await,
            (None, Some(why)) => Ok(no(&why)),
            (None, None) => Ok(refused(NO_VOICE.into())),
        }
    }

    /// Returns the voices that the person can choose from.
    pub(super) async fn voice_options(&self, at: &CommandContext<'_>) -> Result<Vec<AutocompleteOption>, Error> {
        let offered = self.offered_voices(at).await?.into_iter();
        let option = |voice: OfferedVoice| AutocompleteOption {
            label: format!("{} ({})", voice.name, voice.about),
            value: voice.id,
        };
        Ok(offered.map(option).collect())
    }

    /// Returns how the persona that answers speaks in this chat.
    async fn manner_here(&self, at: &CommandContext<'_>) -> Result<Manner, Error> {
        let loaded = self.services.persona(at.place.shared_realm(), &at.chat.persona).await?;
        let own = &loaded.persona.voice;
        let manner = manner_in(Some(&at.chat), &at.chat.persona, own);
        Ok(self.services.as_owner_allows(at.adapter, &at.chat.id, manner, own).await)
    }

    /// Returns true if the person may get recordings of any text in this manner: not with the voice of somebody else.
    async fn may_record_with(&self, at: &CommandContext<'_>, manner: &Manner) -> Result<bool, Error> {
        let Some(voice) = manner.voice.as_deref().filter(|voice| voice.starts_with(CLONE_MARK)) else {
            return Ok(true);
        };
        let accounts = self.services.accounts_of(&at.line.person).await?;
        let samples = self.services.samples().await?;
        let given = samples.iter().find(|sample| sample.id == voice).and_then(|sample| sample.given.as_ref());
        Ok(given.is_some_and(|given| accounts.has(&given.whose) || accounts.has(&given.by)))
    }

    /// Makes a recording of a text, which is kept nowhere.
    async fn as_recording(&self, speaker: &dyn Speaker, text: &str, manner: &Manner) -> Result<CommandAnswer, Error> {
        let spoken = tokio::select! {
            spoken = speaker.speak(text, manner) => spoken,
            () = self.services.stopping.cancelled() => return Err(Error::Interrupted),
        };
        Ok(match spoken {
            Ok(note) => {
                let duration_ms = u64::try_from(note.duration.as_millis()).ok();
                let part = Part::new(VoiceNote::FILE_NAME, Some(VoiceNote::MIME), note.bytes.len() as u64);
                let file = AnswerFile { part: part.spoken(duration_ms), content: FileContent(note.bytes) };
                CommandAnswer { files: vec![file], ..done("Here it is as a recording.".into()) }
            }
            Err(SpeakError::Unavailable(why)) => {
                tracing::warn!(error = why, "a text could not be spoken");
                refused("The voice cannot speak now. The operator finds the reason in the log.".into())
            }
            Err(error) => refused(format!("I cannot say that: {error}.")),
        })
    }

    /// Returns the id of a voice that people know by this name. The error names those that there are.
    async fn voice_named(&self, at: &CommandContext<'_>, name: &str) -> Result<Result<String, String>, Error> {
        let offered = self.offered_voices(at).await?;
        let by = |known: fn(&OfferedVoice) -> &str| {
            offered.iter().find(|voice| known(voice).eq_ignore_ascii_case(name)).map(|voice| voice.id.clone())
        };
        if let Some(id) = by(|voice| voice.id.as_str()).or_else(|| by(|voice| voice.name.as_str())) {
            return Ok(Ok(id));
        }
        if offered.is_empty() {
            return Ok(Err(NO_VOICE.into()));
        }
        let names: Vec<String> = offered.iter().take(MAX_NAMES).map(|voice| format!("`{}`", voice.name)).collect();
        let more = match offered.len().saturating_sub(MAX_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let name: String = name.chars().take(MAX_NAME_CHARS).filter(|c| !c.is_control() && *c != '`').collect();
        Ok(Err(format!("There is no voice `{name}` here. There are: {}{more}.", names.join(", "))))
    }

    /// Returns the voices that can speak now, as far as this person may choose them here: those of the engines, and recordings
    /// of people who agreed.
    async fn offered_voices(&self, at: &CommandContext<'_>) -> Result<Vec<OfferedVoice>, Error> {
        let Some(speaker) = self.services.voice().speaker else { return Ok(Vec::new()) };
        let voices = match speaker.voices().await {
            Ok(voices) => voices,
            Err(error) => {
                tracing::warn!(%error, "cannot list the voices");
                return Ok(Vec::new());
            }
        };
        let samples = self.services.samples().await?;
        let accounts = self.services.accounts_of(&at.line.person).await?;
        let mut offered: Vec<OfferedVoice> = Vec::new();
        for Voice { id, language, .. } in voices {
            let offered_voice = match samples.iter().find(|sample| sample.id == id) {
                Some(sample) => {
                    let (may_use, name) = (self.may_say_with(at, &accounts, sample).await, sample.name.clone());
                    may_use.then(|| OfferedVoice { id, name, about: "a recording".to_owned() })
                }
                // Nothing speaks with a recording that nobody knows any more.
                None => (!id.starts_with(CLONE_MARK)).then(|| OfferedVoice { name: id.clone(), id, about: language }),
            };
            offered.extend(offered_voice);
        }
        Ok(offered)
    }

    /// Returns true if a person may let something be said with a recording here: with one in use here, or with one that is
    /// theirs to use, while its owner agrees and can read where it is heard.
    async fn may_say_with(&self, at: &CommandContext<'_>, accounts: &Accounts, sample: &Sample) -> bool {
        let is_used = at.chat.voices.values().any(|id| *id == sample.id);
        let Some(given) = &sample.given else { return is_used || at.access >= Access::Operator };
        let is_theirs = accounts.has(&given.whose) || accounts.has(&given.by);
        if !sample.is_agreed() || !(is_used || is_theirs) {
            return false;
        }
        let heard_in = heard_in(at).await;
        match self.services.owner_is_there(at.adapter, &heard_in, &sample.id).await {
            Ok(is_there) => is_there,
            Err(error) => {
                tracing::warn!(%error, "cannot look for the owner of a recorded voice");
                false
            }
        }
    }
}

/// Returns the chat whose readers hear what a person lets be said: the text chat of the call that they are in, or else
/// where they ask.
async fn heard_in(at: &CommandContext<'_>) -> ChatId {
    let chat = &at.line.chat;
    let Some(channels) = at.adapter.voice() else { return chat.clone() };
    let call = channels.status(chat, &at.line.person).await.ok();
    call.and_then(|call| channels.text_chat_of(&call.voice_chat)).unwrap_or_else(|| chat.clone())
}

async fn say_in_call(
    at: &CommandContext<'_>,
    channels: &dyn VoiceChannels,
    text: &str,
    manner: Option<&Manner>,
) -> Result<(), VoiceError> {
    let (chat, person) = (&at.line.chat, &at.line.person);
    match manner {
        Some(manner) => channels.say_in(chat, person, text, in_call(manner.clone())).await,
        None => channels.say(chat, person, text).await,
    }
}

/// Returns a manner with a chosen voice, which speaks its own language. A recorded voice has none.
fn in_voice(own: Manner, voice: String) -> Manner {
    let language = own.language.filter(|_| voice.starts_with(CLONE_MARK));
    Manner { voice: Some(voice), needs_voice: true, language, ..own }
}

/// Splits a text from the name of a voice behind it.
fn split_voice(words: &str) -> (&str, Option<&str>) {
    let split = words.rsplit_once(OPTION).filter(|(before, name)| {
        let stands_alone = before.is_empty() || before.ends_with(char::is_whitespace);
        stands_alone && (name.is_empty() || name.starts_with(char::is_whitespace))
    });
    split.map_or((words, None), |(text, name)| (text.trim(), Some(name.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voice_is_split_from_the_text() {
        assert_eq!(split_voice("Good day"), ("Good day", None));
        assert_eq!(split_voice("Good day --voice Ana Florence"), ("Good day", Some("Ana Florence")));
        assert_eq!(split_voice("--voice joe"), ("", Some("joe")));
        assert_eq!(split_voice("Good day --voice"), ("Good day", Some("")));
        for text in ["say--voice x", "the option --voices is new"] {
            assert_eq!(split_voice(text), (text, None));
        }
    }

    #[test]
    fn a_chosen_voice_speaks_its_own_language() {
        let german = Manner { language: Some("de".to_owned()), pitch: Some(1.1), ..Manner::default() };
        let chosen = in_voice(german.clone(), "joe".to_owned());
        assert_eq!((chosen.language, chosen.pitch, chosen.needs_voice), (None, Some(1.1), true));
        assert_eq!(in_voice(german, "~1".to_owned()).language.as_deref(), Some("de"));
    }
}
