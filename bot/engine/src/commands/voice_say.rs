//! `/voice say`: a text in the call that the person is in, or else as a recording; and the voices that can say it.

use azera_adapter::{
    Access, AnswerFile, AutocompleteOption, CallWish, CommandAnswer, FileContent, VoiceChannels, VoiceError,
};
use azera_types::{ChatId, Part, VoiceNote};
use azera_voice_api::{CLONE_MARK, Manner, Sample, SpeakError, Speaker, Voice, is_same_language};

use super::{CommandContext, done, refused};
use crate::clones::{Accounts, manner_in};
use crate::commands::Commands;
use crate::commands::voice::no;
use crate::error::Error;
use crate::voice::in_call;

/// How the command is used.
const USAGE: &str = "`/voice say TEXT`, or `/voice say TEXT --voice NAME` with another voice.";

/// Said where nothing speaks.
const NO_VOICE: &str = "I have no voice here. The operator sets one up: `[voice]` in the configuration.";

/// Said where the voice fails.
pub(crate) const VOICE_FAILS: &str = "The voice cannot speak now. The operator finds the reason in the log.";

/// Said where a recording would be lost.
const NO_FILES: &str = "I cannot give you a recording here. `/voice say` does in chat apps and at the terminal; over HTTP, \
                        `POST /api/tts/synthesize` does.";

/// Said to somebody who would get a file with another person's voice and any words in it.
const ONLY_IN_CALLS: &str = "That is somebody's recorded voice. I speak with it in calls. Recordings with it go only to that person, \
                             or to the operator who keeps the voice. `/voice say TEXT --voice NAME` takes another voice.";

/// Said to somebody in a call who would let another person's voice say any words.
const ONLY_WITH_OWNER: &str = "That is somebody's recorded voice. Others may use it only while that person is in the call. A voice \
                               that the operator keeps may be used only while nobody records. `/voice say TEXT --voice NAME` \
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
#[derive(Clone)]
struct OfferedVoice {
    /// Its id, as engines take it.
    id: String,
    /// The name by which people know it.
    name: String,
    /// What it is.
    about: String,
    /// True if it is a recording of the person's own voice, or one that they gave.
    is_theirs: bool,
    /// True if its engine has voices of other languages, so that each speaks its own alone.
    has_own_language: bool,
}

impl Commands {
    /// Says a text, in the call or as a recording.
    pub(super) async fn voice_say(&self, at: &CommandContext<'_>, words: &str) -> Result<CommandAnswer, Error> {
        let (text, chosen) = match self.text_and_voice(at, words).await? {
            Ok(split) => split,
            Err(why) => return Ok(refused(why)),
        };
        if text.chars().count() > MAX_TEXT_CHARS {
            return Ok(refused(format!(
                "That is too long to be said at once. I say up to {MAX_TEXT_CHARS} characters."
            )));
        }
        let own = self.manner_here(at).await?;
        let manner = chosen.map(|voice| in_voice(own.clone(), voice));
        let not_in_call = match at.adapter.voice() {
            None => None,
            Some(channels) => match channels.status(&at.line.chat, &at.line.person).await {
                Ok(call) => {
                    if !self.may_say_in(at, channels, &call.voice_chat, manner.as_ref()).await? {
                        return Ok(refused(ONLY_WITH_OWNER.into()));
                    }
                    match say_in_call(at, channels, text, manner.as_ref()).await {
                        Ok(()) => return Ok(done("I say it.".into())),
                        Err(why @ (VoiceError::NotInChannel | VoiceError::NotThere)) => Some(why),
                        Err(why) => return Ok(no(&why)),
                    }
                }
                Err(why @ (VoiceError::NotInChannel | VoiceError::NotThere)) => Some(why),
                Err(why) => return Ok(no(&why)),
            },
        };
        let manner = manner.unwrap_or(own);
        match (self.services.voice().speaker, not_in_call) {
            (Some(_), _) if !at.adapter.delivers_files() => Ok(refused(NO_FILES.into())),
            (Some(_), _) if !self.services.may_record_with(at.access, &at.line.person, &manner).await? => {
                Ok(refused(ONLY_IN_CALLS.into()))
            }
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
    pub(super) async fn manner_here(&self, at: &CommandContext<'_>) -> Result<Manner, Error> {
        let loaded = self.services.persona(at.place.shared_realm(), &at.chat.persona).await?;
        let own = &loaded.persona.voice;
        let manner = manner_in(Some(&at.chat), &at.chat.persona, own);
        Ok(self.services.as_owner_allows(at.adapter, &at.chat.id, manner, own).await)
    }

    /// Returns true if the person may let something be said in a call: with somebody's recorded voice only while that person
    /// is there. They hear it, and nothing of the call is recorded that they did not agree to.
    async fn may_say_in(
        &self,
        at: &CommandContext<'_>,
        channels: &dyn VoiceChannels,
        voice_chat: &ChatId,
        manner: Option<&Manner>,
    ) -> Result<bool, Error> {
        let manner = match manner {
            Some(manner) => manner.clone(),
            None => self.manner_of_call(at, channels, voice_chat).await?,
        };
        let Some(sample) = self.services.sample_of(&manner).await? else { return Ok(true) };
        match &sample.given {
            Some(given) => self.services.can_read(at.adapter, voice_chat, &given.whose).await,
            None if at.access >= Access::Operator => Ok(true),
            None => {
                let recording = channels.record(&at.line.chat, &at.line.person, CallWish::Show).await;
                Ok(matches!(recording, Ok(None)))
            }
        }
    }

    /// Returns how the persona of a call speaks: that of its text chat.
    async fn manner_of_call(
        &self,
        at: &CommandContext<'_>,
        channels: &dyn VoiceChannels,
        voice_chat: &ChatId,
    ) -> Result<Manner, Error> {
        let text_chat = channels.text_chat_of(voice_chat).unwrap_or_else(|| voice_chat.clone());
        let (text, voice) = (text_chat.clone(), voice_chat.clone());
        let chat = self.services.blocking(move |memory| {
            let chats = memory.chats();
            Ok(match chats.get(&text)? {
                Some(chat) => Some(chat),
                None => chats.get(&voice)?,
            })
        });
        let chat = chat.await?;
        let persona = chat.as_ref().map_or_else(|| self.services.config.persona.clone(), |chat| chat.persona.clone());
        let place = self.services.place(at.adapter, voice_chat, &at.line.person).await?;
        let realm = place.as_ref().and_then(|place| place.shared_realm());
        let loaded = match self.services.persona(realm, &persona).await {
            Ok(loaded) => loaded,
            Err(Error::NoPersona(_)) => return Ok(Manner::default()),
            Err(error) => return Err(error),
        };
        let own = &loaded.persona.voice;
        let manner = manner_in(chat.as_ref(), &persona, own);
        Ok(self.services.as_owner_allows(at.adapter, &text_chat, manner, own).await)
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
            Err(error) => {
                log_silence(&error);
                refused(match error {
                    SpeakError::Unavailable(_) => VOICE_FAILS.into(),
                    error => format!("I cannot say that: {error}."),
                })
            }
        })
    }

    /// Splits a text from the voice that is to say it. What stands behind `--voice` belongs to the text if it has more words
    /// than the name of any voice here. The inner error says what is wrong.
    async fn text_and_voice<'a>(
        &self,
        at: &CommandContext<'_>,
        words: &'a str,
    ) -> Result<Result<(&'a str, Option<OfferedVoice>), String>, Error> {
        let (text, named) = split_voice(words);
        if text.is_empty() || named.is_some_and(str::is_empty) {
            return Ok(Err(USAGE.into()));
        }
        let Some(name) = named else { return Ok(Ok((text, None))) };
        let offered = self.offered_voices(at).await?;
        let count = |name: &str| name.split_whitespace().count();
        if count(name) > offered.iter().map(|voice| count(&voice.name)).max().unwrap_or(1) {
            return Ok(Ok((words, None)));
        }
        Ok(voice_named(&offered, name).map(|voice| (text, Some(voice))))
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
        for voice in &voices {
            let id = voice.id.clone();
            let offered_voice = match samples.iter().find(|sample| sample.id == id) {
                Some(sample) => {
                    let given = sample.given.as_ref();
                    let is_theirs = given.is_some_and(|given| accounts.has(&given.whose) || accounts.has(&given.by));
                    let (name, about) = (sample.name.clone(), "a recording".to_owned());
                    let may_use = self.may_say_with(at, &accounts, sample).await;
                    may_use.then_some(OfferedVoice { id, name, about, is_theirs, has_own_language: false })
                }
                // Nothing speaks with a recording that nobody knows any more.
                None if id.starts_with(CLONE_MARK) => None,
                None => {
                    let has_own_language = has_own_language(voice, &voices);
                    let (name, about) = (id.clone(), voice.language.clone());
                    Some(OfferedVoice { id, name, about, is_theirs: false, has_own_language })
                }
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

/// Returns the voice that people know by a name: by its id, or else by its name. Of several of one name, it is their own. The
/// error names those that there are.
fn voice_named(offered: &[OfferedVoice], name: &str) -> Result<OfferedVoice, String> {
    let is_called = |known: &str| known.eq_ignore_ascii_case(name);
    if let Some(voice) = offered.iter().find(|voice| is_called(&voice.id)) {
        return Ok(voice.clone());
    }
    let named: Vec<&OfferedVoice> = offered.iter().filter(|voice| is_called(&voice.name)).collect();
    let theirs: Vec<&OfferedVoice> = named.iter().copied().filter(|voice| voice.is_theirs).collect();
    match (named.as_slice(), theirs.as_slice()) {
        ([voice], _) | (_, [voice]) => return Ok((*voice).clone()),
        ([], _) => {}
        (several, _) => {
            let ids: Vec<String> = several.iter().map(|voice| format!("`{}`", voice.id)).collect();
            return Err(format!("Several voices have that name. Name one by its id: {}.", ids.join(", ")));
        }
    }
    if offered.is_empty() {
        return Err(NO_VOICE.into());
    }
    let names: Vec<String> = offered.iter().take(MAX_NAMES).map(|voice| format!("`{}`", voice.name)).collect();
    let more = match offered.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let name: String = name.chars().take(MAX_NAME_CHARS).filter(|c| !c.is_control() && *c != '`').collect();
    Err(format!("There is no voice `{name}` here. There are: {}{more}.", names.join(", ")))
}

/// Returns true if the engine of a voice has voices of other languages.
fn has_own_language(voice: &Voice, voices: &[Voice]) -> bool {
    voices.iter().any(|other| other.engine == voice.engine && !is_same_language(&other.language, &voice.language))
}

/// Returns a manner with a chosen voice. It speaks its own language, or that of the persona if the voices of its engine do
/// not differ in language: then each may speak several.
fn in_voice(own: Manner, voice: OfferedVoice) -> Manner {
    let language = own.language.filter(|_| !voice.has_own_language);
    Manner { voice: Some(voice.id), needs_voice: true, language, ..own }
}

/// Says in the log why a text is not spoken, if only the operator can mend it.
pub(crate) fn log_silence(error: &SpeakError) {
    if let SpeakError::Unavailable(why) | SpeakError::VoiceAway(why) = error {
        tracing::warn!(error = why, "a text could not be spoken");
    }
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

    fn offered(id: &str, name: &str, is_theirs: bool, has_own_language: bool) -> OfferedVoice {
        OfferedVoice { id: id.to_owned(), name: name.to_owned(), about: String::new(), is_theirs, has_own_language }
    }

    #[test]
    fn a_chosen_voice_speaks_its_own_language_if_its_engine_has_several() {
        let german = Manner { language: Some("de".to_owned()), pitch: Some(1.1), ..Manner::default() };
        let chosen = in_voice(german.clone(), offered("joe", "joe", false, true));
        assert_eq!((chosen.language, chosen.pitch, chosen.needs_voice), (None, Some(1.1), true));
        assert_eq!(in_voice(german, offered("~1", "ann", true, false)).language.as_deref(), Some("de"));
        let voice = |id: &str, language: &str, engine: &str| Voice {
            id: id.to_owned(),
            language: language.to_owned(),
            rate: azera_voice_api::SampleRate(24_000),
            engine: engine.to_owned(),
        };
        let voices = [voice("Ana", "en", "xtts"), voice("Tom", "en", "xtts"), voice("karl", "de-DE", "here")];
        assert!(voices.iter().all(|voice| !has_own_language(voice, &voices)));
        assert!(has_own_language(&voices[2], &[voice("joe", "en-US", "here")]));
    }

    #[test]
    fn of_several_voices_of_one_name_it_is_the_persons_own() {
        let id = |all: &[OfferedVoice], name: &str| voice_named(all, name).map(|voice| voice.id);
        let all = [offered("~1", "ann", false, false), offered("~2", "ann", true, false)];
        assert_eq!(id(&all, "Ann").as_deref(), Ok("~2"));
        assert_eq!(id(&all, "~1").as_deref(), Ok("~1"));
        let others = [offered("~1", "ann", false, false), offered("~3", "ann", false, false)];
        assert!(id(&others, "ann").unwrap_err().ends_with("by its id: `~1`, `~3`."));
        assert_eq!(id(&[], "ann").unwrap_err(), NO_VOICE);
    }
}
