//! `/voice samples`: recordings of people's voices, with which a persona can speak. Nobody is spoken with before they
//! agreed, and `crate::clones` keeps what that takes.

use azera_adapter::{Access, Choice, CommandAnswer, MAX_GIVEN_SOUND_BYTES};
use azera_memory::ChatChange;
use azera_types::{FetchError, PersonId};
use azera_voice_api::{Given, Sample, SampleError, SampleStore};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::mind::may_configure_place;
use super::{CommandContext, done, refused};
use crate::clones::{ASKED_AGAIN_AFTER, Accounts, KEPT_UNANSWERED, MAX_OF_ONE_PERSON};
use crate::commands::Commands;
use crate::error::Error;

/// How the command is used.
const USAGE: &str = "`/voice samples list`, `/voice samples add NAME` with a recording, `/voice samples use NAME`, `/voice \
                     samples use default` or `/voice samples remove NAME`.";

/// Said to somebody who adds nothing.
const NO_RECORDING: &str = "Send `/voice samples add NAME` with a recording of 3 to 30 seconds of clear speech: WAV, MP3, Ogg \
                            or FLAC, up to 10 MB. Where I can look, I take the newest voice message that you sent. For somebody else's voice, name them too, and I ask them: `/voice samples \
                            add NAME @SOMEBODY`.";

/// The beginning of a recording that comes as text, and the mark before its bytes.
const RECORDING: (&str, &str) = ("data:audio/", ";base64,");

/// The most characters of a name.
const MAX_NAME_CHARS: usize = 40;

impl Commands {
    pub(super) async fn voice_samples(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        let Some(store) = self.services.voice().samples else {
            return Ok(refused("Voices are off in this process, so I keep no recordings of them.".into()));
        };
        let (verb, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        match (verb, rest.trim()) {
            ("" | "list", "") => self.list_samples(at, &*store).await,
            ("add", what) => self.add_sample(at, &*store, what).await,
            ("use", name) if !name.is_empty() => self.use_sample(at, &*store, name).await,
            ("remove", name) if !name.is_empty() => self.remove_sample(at, name).await,
            ("agree" | "refuse", id) if !id.is_empty() => {
                self.answer_for_sample(at, &*store, id, verb == "agree").await
            }
            _ => Ok(refused(USAGE.into())),
        }
    }

    /// Shows the recordings that the person may see. Operators see all that were agreed to; others see those of their own
    /// voice, those that they gave, and those in use here.
    async fn list_samples(&self, at: &CommandContext<'_>, store: &dyn SampleStore) -> Result<CommandAnswer, Error> {
        let accounts = self.services.accounts_of(&at.line.person).await?;
        let line = |sample: &Sample| {
            let state = match &sample.given {
                Some(given) if given.agreed_at.is_none() && accounts.has(&given.whose) => {
                    format!(", waits for your answer: `/voice samples agree {}`", sample.id)
                }
                Some(given) if given.agreed_at.is_none() => ", waits until the person agrees".to_owned(),
                Some(given) if accounts.has(&given.whose) => ", your voice".to_owned(),
                Some(_) | None => String::new(),
            };
            let used = if at.chat.voices.values().any(|id| *id == sample.id) { ", in use here" } else { "" };
            format!("- `{}` (`{}`), {:.0} s{state}{used}\n", sample.name, sample.id, sample.seconds)
        };
        let samples = self.services.samples().await?;
        let lines: String = samples.iter().filter(|sample| may_see(at, &accounts, sample)).map(line).collect();
        let mut text = match lines.as_str() {
            "" => "There are no recordings of voices that I may show you here. `/voice samples add NAME` adds one.\n"
                .into(),
            lines => format!("Recordings of voices:\n{lines}"),
        };
        if let Some(obstacle) = store.obstacle().await {
            text.push_str(&obstacle);
        }
        Ok(done(text))
    }

    async fn add_sample(
        &self,
        at: &CommandContext<'_>,
        store: &dyn SampleStore,
        what: &str,
    ) -> Result<CommandAnswer, Error> {
        // Nothing of a recording is kept where nothing can speak with it.
        if let Some(obstacle) = store.obstacle().await {
            return Ok(refused(format!("{obstacle} I kept nothing.")));
        }
        let (words, file) = match split_recording(what) {
            Ok(("", _)) => return Ok(refused(NO_RECORDING.into())),
            Ok(split) => split,
            Err(why) => return Ok(refused(why.into())),
        };
        let (name, who) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        if let Some(why) = wrong_name(name) {
            return Ok(refused(why));
        }
        let who = who.trim().strip_prefix("of ").unwrap_or(who.trim()).trim();
        let whose = match self.whose(at, who).await? {
            Ok(whose) => whose,
            Err(why) => return Ok(refused(why)),
        };
        if let Some(why) = self.no_room_for(at, name).await? {
            return Ok(refused(why));
        }
        let accounts = self.services.accounts_of(&at.line.person).await?;
        let is_own = accounts.has(&whose);
        // Nobody is pressed to agree.
        if !is_own && self.services.asked_owners.lately(&accounts, &whose, self.services.clock.now()) {
            return Ok(refused(format!(
                "I asked them for you in the last {} hours. You can ask the same person again after that. I kept nothing.",
                ASKED_AGAIN_AFTER.as_secs() / 3_600
            )));
        }
        let (file, taken) = match file {
            Some(file) => (file, String::new()),
            None if is_own => match self.newest_sound(at).await? {
                Ok(found) => found,
                Err(why) => return Ok(refused(why)),
            },
            // What they sent themselves is not somebody else's voice.
            None => return Ok(refused(NO_RECORDING.into())),
        };
        let given = Given {
            whose: whose.clone(),
            by: at.line.person.clone(),
            place: (!is_own).then(|| at.place.scope().to_string()),
            at: self.services.clock.now(),
            agreed_at: None,
        };
        let sample = match store.keep(name, given, file).await {
            Ok(sample) => sample,
            Err(SampleError::Unfit(why)) => return Ok(refused(format!("{taken}I cannot keep that: {why}."))),
            Err(SampleError::Store(why)) => {
                tracing::error!(error = why, "cannot keep a recording of a voice");
                return Ok(refused("I cannot keep recordings now. The operator finds the reason in the log.".into()));
            }
        };
        self.services.note_unanswered(&sample);
        let answer = if is_own { asks_for_own(&sample) } else { self.ask_other(at, &sample, &whose).await? };
        Ok(CommandAnswer { text: format!("{taken}{}", answer.text), ..answer })
    }

    /// Returns the newest sound that the person sent in this chat, with a sentence that says which one that is. The inner
    /// error says why there is none.
    async fn newest_sound(&self, at: &CommandContext<'_>) -> Result<Result<(Vec<u8>, String), String>, Error> {
        let Some(messages) = at.adapter.voice_messages() else { return Ok(Err(NO_RECORDING.into())) };
        let Some(sent) = messages.newest_sound(&at.line.chat, &at.line.person).await? else {
            return Ok(Err(NO_RECORDING.into()));
        };
        let part = &sent.sound.part;
        let what = match part.is_voice_message() {
            true => "voice message".to_owned(),
            false => format!("recording `{}`", part.name.replace('`', "'")),
        };
        let when = sent.at.to_zoned(at.calendar.zone.clone()).strftime("%F, %H:%M").to_string();
        let which = format!("your {what} of {when}");
        Ok(match sent.sound.source.fetch(MAX_GIVEN_SOUND_BYTES as u64).await {
            Ok(file) => Ok((file, format!("I took {which}. "))),
            Err(FetchError::TooLarge) => {
                Err(format!("Your newest recording here is {which}, and it is larger than 10 MB. I kept nothing."))
            }
            Err(FetchError::Failed(why)) => {
                tracing::info!(error = why, "cannot fetch a sound for a sample of a voice");
                Err(format!("I could not get {which}. Send it again, or give it with the command. I kept nothing."))
            }
        })
    }

    /// Returns whose voice it is said to be: somebody who is in this place, or the person who gives it.
    async fn whose(&self, at: &CommandContext<'_>, who: &str) -> Result<Result<PersonId, String>, Error> {
        if who.is_empty() {
            return Ok(Ok(at.line.person.clone()));
        }
        let Some(questions) = at.adapter.questions() else {
            return Ok(Err("I cannot ask anybody else here, so you can only add your own voice.".into()));
        };
        let unknown = || format!("I do not see {who} here. Mention the person whose voice it is, as in `@ann`.");
        let Some(person) = questions.person_named(who) else { return Ok(Err(unknown())) };
        let there = self.services.place(at.adapter, &at.line.chat, &person).await?;
        Ok(there.map(|_| person).ok_or_else(unknown))
    }

    /// Says why the person can add no further recording of this name; `None` if they can.
    async fn no_room_for(&self, at: &CommandContext<'_>, name: &str) -> Result<Option<String>, Error> {
        let accounts = self.services.accounts_of(&at.line.person).await?;
        let samples = self.services.samples().await?;
        let theirs = samples.iter().filter(|sample| sample.given.as_ref().is_some_and(|given| accounts.has(&given.by)));
        if theirs.count() >= MAX_OF_ONE_PERSON {
            return Ok(Some(format!(
                "You gave {MAX_OF_ONE_PERSON} recordings already, which is the most. `/voice samples remove NAME` removes one."
            )));
        }
        let is_taken = samples.iter().any(|sample| sample.name == name && may_see(at, &accounts, sample));
        Ok(is_taken.then(|| {
            format!(
                "There is a recording `{name}` already. Choose another name, or `/voice samples remove {name}` first."
            )
        }))
    }

    /// Asks somebody whether a recording is their voice, and whether it may be used. Keeps nothing if they cannot be asked.
    async fn ask_other(
        &self,
        at: &CommandContext<'_>,
        sample: &Sample,
        whose: &PersonId,
    ) -> Result<CommandAnswer, Error> {
        let question = format!(
            "{} gave me a recording and says that it is your voice. May I speak with it here? Whatever I say can then sound \
             like you. The recording goes to the operator's speech server when I first speak with it. If you do not answer \
             within {} hours, I delete it. You can change your mind at any time: `/voice samples list`.",
            at.line.name,
            KEPT_UNANSWERED.as_secs() / 3_600
        );
        let asked = match at.adapter.questions() {
            Some(questions) => questions.ask(&at.line.chat, whose, &question, &choices(sample)).await,
            None => return Ok(refused("I cannot ask anybody else here.".into())),
        };
        if let Err(error) = asked {
            tracing::warn!(%error, "cannot ask a person about a recording of their voice");
            self.services.remove_sample(&sample.id).await?;
            return Ok(refused("I cannot ask them here now, so I kept nothing. Try again later.".into()));
        }
        self.services.asked_owners.note(at.line.person.clone(), whose.clone(), self.services.clock.now());
        Ok(done(format!(
            "I asked them here whether that is their voice. Until they agree, nothing speaks with it, and only the two of you \
             see `{}` in `/voice samples list`. After {} hours without an answer I delete it.",
            sample.name,
            KEPT_UNANSWERED.as_secs() / 3_600
        )))
    }

    /// Takes in whether a person agrees that a recording of their voice is used.
    async fn answer_for_sample(
        &self,
        at: &CommandContext<'_>,
        store: &dyn SampleStore,
        id: &str,
        agrees: bool,
    ) -> Result<CommandAnswer, Error> {
        let accounts = self.services.accounts_of(&at.line.person).await?;
        let samples = self.services.samples().await?;
        let is_theirs = |sample: &&Sample| {
            let given = sample.given.as_ref();
            given.is_some_and(|given| accounts.has(&given.whose)) && (sample.id == id || sample.name == id)
        };
        let waits = |sample: &&Sample| !sample.is_agreed();
        let Some(sample) = samples.iter().filter(is_theirs).find(waits) else {
            return Ok(refused("No recording of your voice waits for your answer.".into()));
        };
        if !agrees {
            self.services.remove_sample(&sample.id).await?;
            return Ok(done("I deleted the recording. Nothing spoke with it.".into()));
        }
        let agreed = store.agree(&sample.id, self.services.clock.now()).await;
        if !agreed.map_err(|error| Error::Voice(error.to_string()))? {
            return Ok(refused("That recording is gone.".into()));
        }
        let name = &sample.name;
        Ok(done(format!(
            "Thank you. `/voice samples use {name}` lets me speak with it, in places where you may choose that. `/voice \
             samples remove {name}` deletes it at any time."
        )))
    }

    /// Chooses the voice of the persona that answers in this chat.
    async fn use_sample(
        &self,
        at: &CommandContext<'_>,
        store: &dyn SampleStore,
        name: &str,
    ) -> Result<CommandAnswer, Error> {
        if !may_configure_place(at) {
            return Ok(refused("Only admins can choose with which voice I speak in a shared place.".into()));
        }
        let loaded = self.services.persona(at.place.shared_realm(), &at.chat.persona).await?;
        let persona = &loaded.persona.name;
        if name == "default" {
            self.set_voice(at, None).await?;
            return Ok(done(format!("{persona} speaks here with its own voice again.")));
        }
        let accounts = self.services.accounts_of(&at.line.person).await?;
        let place = at.place.scope().to_string();
        let samples = self.services.samples().await?;
        // To see a recording is not to have its owner's consent.
        let may_use = |sample: &&Sample| match &sample.given {
            Some(given) => {
                let is_theirs = accounts.has(&given.whose) || accounts.has(&given.by);
                given.agreed_at.is_some() && is_theirs && given.place.as_ref().is_none_or(|only| *only == place)
            }
            None => at.access >= Access::Operator,
        };
        let named = |sample: &&Sample| sample.id == name || sample.name == name;
        let Some(sample) = samples.iter().filter(may_use).find(named) else {
            return Ok(refused(format!(
                "There is no recording `{name}` that you may use here: only the person whose voice it is may, and the one who \
                 gave it, where its owner agreed to it."
            )));
        };
        self.set_voice(at, Some(sample.id.clone())).await?;
        let obstacle = store.obstacle().await.map_or_else(String::new, |why| format!(" But now nothing can: {why}"));
        Ok(done(format!(
            "From now on {persona} speaks here with the voice `{}`. `/voice samples use default` undoes it.{obstacle}",
            sample.name
        )))
    }

    async fn set_voice(&self, at: &CommandContext<'_>, voice: Option<String>) -> Result<(), Error> {
        let (chat, change) = (at.chat.id.clone(), ChatChange::Voice(at.chat.persona.clone(), voice));
        self.services.blocking(move |memory| memory.chats().change(&chat, change)).await?;
        if let Some(voice) = at.adapter.voice() {
            voice.personas_changed(&at.chat.id).await;
        }
        Ok(())
    }

    /// Removes a recording: for the person whose voice it is, for the one who gave it, and for the operator.
    async fn remove_sample(&self, at: &CommandContext<'_>, name: &str) -> Result<CommandAnswer, Error> {
        let accounts = self.services.accounts_of(&at.line.person).await?;
        let samples = self.services.samples().await?;
        let may_remove = |sample: &&Sample| match &sample.given {
            Some(given) if accounts.has(&given.whose) || accounts.has(&given.by) => true,
            _ => at.access >= Access::Operator && sample.is_agreed(),
        };
        let named = |sample: &&Sample| sample.id == name || sample.name == name;
        let found: Vec<&Sample> = samples.iter().filter(may_remove).filter(named).collect();
        let sample = match found.as_slice() {
            [] => {
                return Ok(refused(format!(
                    "There is no recording `{name}` that you may remove. The person whose voice it is may, the one who gave it, \
                     and the operator."
                )));
            }
            [sample] => sample,
            several => {
                let ids: Vec<String> = several.iter().map(|sample| format!("`{}`", sample.id)).collect();
                return Ok(refused(format!("Several are called `{name}`. Name one by its id: {}.", ids.join(", "))));
            }
        };
        self.services.remove_sample(&sample.id).await?;
        Ok(done(format!(
            "`{}` is deleted, with everything that I knew about it. Where I spoke with it, I speak as usual again. A speech \
             server that cloned the voice forgets it when it is restarted.",
            sample.name
        )))
    }
}

/// Returns true if a person may know of a recording.
fn may_see(at: &CommandContext<'_>, accounts: &Accounts, sample: &Sample) -> bool {
    let is_used = at.chat.voices.values().any(|id| *id == sample.id);
    match &sample.given {
        Some(given) if accounts.has(&given.whose) || accounts.has(&given.by) => true,
        _ => sample.is_agreed() && (is_used || at.access >= Access::Operator),
    }
}

/// Asks the person who gave a recording of their own voice to confirm it.
fn asks_for_own(sample: &Sample) -> CommandAnswer {
    let text = format!(
        "`{}` has {:.0} s of speech. Is it your own voice, and may I speak with it? Whatever I say can then sound like you. The \
         recording goes to the operator's speech server when I first speak with it. `/voice samples agree {}` confirms it, \
         and `/voice samples refuse {}` deletes it; after {} hours without an answer I delete it.",
        sample.name,
        sample.seconds,
        sample.id,
        sample.id,
        KEPT_UNANSWERED.as_secs() / 3_600
    );
    CommandAnswer { choices: choices(sample), ..done(text) }
}

fn choices(sample: &Sample) -> Vec<Choice> {
    let choice =
        |label: &str, verb: &str| Choice { label: label.into(), line: format!("/voice samples {verb} {}", sample.id) };
    vec![choice("It is my voice, and you may", "agree"), choice("No, delete it", "refuse")]
}

/// Splits what is said about a recording from its bytes. The error says why they cannot be read.
fn split_recording(what: &str) -> Result<(&str, Option<Vec<u8>>), &'static str> {
    let Some(begin) = what.find(RECORDING.0) else { return Ok((what, None)) };
    let (words, file) = what.split_at(begin);
    let bytes = file.split_once(RECORDING.1).map(|(_, bytes)| bytes.trim());
    let bytes = bytes.and_then(|bytes| STANDARD.decode(bytes).ok()).ok_or("The recording arrived damaged.")?;
    Ok((words.trim(), Some(bytes)))
}

/// Says what is wrong with a name; `None` if it can be used.
fn wrong_name(name: &str) -> Option<String> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte));
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if is_plain && begins_well && name.len() <= MAX_NAME_CHARS && name != "default" {
        return None;
    }
    Some(format!(
        "A name has 1 to {MAX_NAME_CHARS} of the characters a to z, 0 to 9, - and _, begins with a letter or digit, and is \
         not `default`."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_split_from_what_is_said_about_it() {
        assert_eq!(split_recording("ann").unwrap(), ("ann", None));
        assert_eq!(
            split_recording("ann @bob data:audio/wav;base64,UklGRg==").unwrap(),
            ("ann @bob", Some(b"RIFF".to_vec()))
        );
        assert!(
            split_recording("ann data:audio/wav;base64,?").is_err() && split_recording("ann data:audio/wav").is_err()
        );
    }

    #[test]
    fn names_are_plain_words() {
        assert!(wrong_name("ann-2_b").is_none());
        for name in ["", "Ann", "-ann", "~ab", "a b", "default", "../a", &"a".repeat(41)] {
            assert!(wrong_name(name).is_some(), "{name}");
        }
    }
}
