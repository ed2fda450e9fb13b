//! `/voice`: joins and leaves voice channels, and records who may be heard there. `/voice replies` is in
//! `voice_replies.rs`, `/voice captions` in `captions.rs`, `/voice samples` in `voice_samples.rs`, `/voice say` in
//! `voice_say.rs`, `/voice record` in `recordings.rs`.

use azera_adapter::{CallWish, CaptionStatus, Choice, CommandAnswer, JoinedCall, VoiceChannels, VoiceError};
use azera_memory::VoiceConsent;
use azera_types::{Author, ChatId};

use super::mind::may_configure_place;
use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;

/// Utterances that a transcript shows.
const TRANSCRIPT: usize = 40;

/// What people consent to.
const NOTICE: &str = "I recognise what you say here, answer it aloud, and remember the words as yours, for those who were \
                      in the room. I keep no sound. `/voice consent no` ends it.";

/// Said to somebody who agreed to be heard, but not to captions.
const CAPTIONED: &str = "Captions of this call run, and I hear only people who agree to them: `/voice captions yes`.";

impl Commands {
    pub(super) async fn voice_command(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        let (verb, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        if verb == "replies" {
            return self.voice_replies(at, rest.trim()).await;
        }
        if verb == "samples" {
            return self.voice_samples(at, rest.trim()).await;
        }
        if verb == "say" {
            return self.voice_say(at, rest.trim()).await;
        }
        let Some(voice) = at.adapter.voice() else {
            let is_bare = arguments.is_empty();
            return if is_bare || arguments == "settings" {
                self.voice_settings_here(at, None).await
            } else {
                Ok(refused("There are no voice channels here.".into()))
            };
        };
        let (chat, person) = (&at.line.chat, &at.line.person);
        match (verb, rest.trim()) {
            ("join", "") => Ok(match voice.join(chat, person).await {
                Ok(JoinedCall { name, may_ask: true }) => done(format!(
                    "I am coming to {name}. I hear only people who agree to it. I ask everybody there in its text chat, \
                     and `/voice consent yes` does the same as the button."
                )),
                Ok(JoinedCall { name, may_ask: false }) => done(format!(
                    "I am coming to {name}. I hear only people who agree to it, and I cannot ask them: I may not write \
                     into its text chat. Give me the permissions View Channel and Send Messages there. Until then, \
                     whoever wants to be heard writes `/voice consent yes`."
                )),
                Err(why) => no(&why),
            }),
            ("leave", "") => Ok(answered(voice.leave(chat, person).await, "I left the voice channel.")),
            ("mute", "") => {
                let muted = voice.mute(chat, person, true).await;
                Ok(answered(muted, "I am quiet until somebody asks me to talk again: `/voice unmute`."))
            }
            ("unmute", "") => Ok(answered(voice.mute(chat, person, false).await, "I talk again.")),
            ("stop", "") => Ok(answered(voice.stop(chat, person).await, "I am quiet.")),
            ("consent", decision) => self.voice_consent(at, voice, decision).await,
            ("captions", wish) => self.voice_captions(at, voice, wish).await,
            ("record", wish) => self.voice_record(at, voice, wish).await,
            ("recordings", what) => self.voice_recordings(at, voice, what).await,
            ("transcript", "") => self.voice_transcript(at, voice).await,
            ("" | "settings", "") => self.voice_settings(at, voice).await,
            _ => Ok(refused(
                "`/voice join`, `/voice leave`, `/voice say TEXT`, `/voice stop`, `/voice mute`, `/voice unmute`, \
                 `/voice consent yes`, `/voice consent no`, `/voice captions on`, `/voice captions off`, \
                 `/voice record on`, `/voice record off`, `/voice recordings`, `/voice transcript`, `/voice settings`, \
                 `/voice replies` or `/voice samples`."
                    .into(),
            )),
        }
    }

    async fn voice_consent(
        &self,
        at: &CommandContext<'_>,
        voice: &dyn VoiceChannels,
        decision: &str,
    ) -> Result<CommandAnswer, Error> {
        let Some(voice_chat) = voice.chat_of(&at.line.chat, &at.line.person).await else {
            return Ok(no(&VoiceError::NotInChannel));
        };
        let consent = match decision {
            "" => return self.show_consent(at, &voice_chat).await,
            "yes" => VoiceConsent::Given,
            "no" => VoiceConsent::Refused,
            _ => return Ok(refused("`/voice consent yes` or `/voice consent no`.".into())),
        };
        let (chat, person) = (voice_chat.clone(), at.line.person.clone());
        self.services.blocking(move |memory| memory.consent().set_voice(&chat, &person, consent)).await?;
        let may_be_heard = consent == VoiceConsent::Given;
        let is_heard = voice.decided(&voice_chat, &at.line.person, may_be_heard).await;
        Ok(done(match (may_be_heard, is_heard) {
            (true, true) => format!("Thank you. {NOTICE}"),
            (true, false) => format!("Thank you. {NOTICE} {CAPTIONED}"),
            (false, _) => {
                "I do not hear you in this voice channel. What you said before stays until you forget it: `/forget`."
                    .into()
            }
        }))
    }

    async fn show_consent(&self, at: &CommandContext<'_>, voice_chat: &ChatId) -> Result<CommandAnswer, Error> {
        let (chat, person) = (voice_chat.clone(), at.line.person.clone());
        let consent = self.services.blocking(move |memory| memory.consent().voice(&chat, &person)).await?;
        let text = match consent {
            Some(VoiceConsent::Given) => format!("I hear you in this voice channel. {NOTICE}"),
            Some(VoiceConsent::Refused) => "I do not hear you in this voice channel: you refused it.".into(),
            Some(VoiceConsent::Asked) | None => "I do not hear you in this voice channel until you agree to it.".into(),
        };
        let choices = vec![choice("Hear me", "/voice consent yes"), choice("Do not hear me", "/voice consent no")];
        Ok(CommandAnswer { choices, ..done(text) })
    }

    /// Shows what was said, as far as everybody who is in the room now was there.
    async fn voice_transcript(
        &self,
        at: &CommandContext<'_>,
        voice: &dyn VoiceChannels,
    ) -> Result<CommandAnswer, Error> {
        let Some(voice_chat) = voice.chat_of(&at.line.chat, &at.line.person).await else {
            return Ok(no(&VoiceError::NotInChannel));
        };
        let Some(place) = self.services.place(at.adapter, &voice_chat, &at.line.person).await? else {
            return Ok(no(&VoiceError::NotThere));
        };
        let of = voice_chat.clone();
        let there = self.services.blocking(move |memory| memory.chats().get(&of)).await?;
        let persona = there.map_or_else(|| self.services.config.persona.clone(), |chat| chat.persona);
        let read_scope = self.access.read_scope(at.adapter, &place, &persona).await?;
        let of = voice_chat;
        let said =
            self.services.blocking(move |memory| memory.messages().history(&read_scope, &of, TRANSCRIPT)).await?;
        if said.is_empty() {
            return Ok(done("Nothing was said that everybody in the room heard.".into()));
        }
        let line = |author: &Author, text: &str| format!("**{}:** {text}", author.name());
        let lines: Vec<String> = said.iter().map(|row| line(&row.author, &row.text)).collect();
        Ok(done(lines.join("\n")))
    }

    async fn voice_settings(&self, at: &CommandContext<'_>, voice: &dyn VoiceChannels) -> Result<CommandAnswer, Error> {
        let status = match voice.status(&at.line.chat, &at.line.person).await {
            Ok(status) => status,
            Err(why @ (VoiceError::NotInChannel | VoiceError::NotThere)) => {
                return self.voice_settings_here(at, Some(&why)).await;
            }
            Err(why) => return Ok(no(&why)),
        };
        let (chat, person) = (&at.line.chat, &at.line.person);
        // The call decides, not the chat: they may ask from the text chat of another voice channel.
        let (voice_chat, of) = (status.voice_chat, person.clone());
        let hears = self.services.blocking(move |memory| memory.consent().voice(&voice_chat, &of)).await?;
        let captions = match voice.captions(chat, person, CallWish::Show).await {
            Ok(captions) => captions,
            Err(why) => return Ok(no(&why)),
        };
        let recording = match voice.record(chat, person, CallWish::Show).await {
            Ok(recording) => recording,
            Err(why) => return Ok(no(&why)),
        };
        let is_agreed = hears == Some(VoiceConsent::Given);
        let choices = call_choices(is_agreed, captions.is_some(), recording.is_some());
        let lines = [
            match status.people {
                1 => "1 person is in the voice channel with me.".to_owned(),
                people => format!("{people} people are in the voice channel with me."),
            },
            heard(is_agreed, captions.as_ref()).to_owned(),
            match &captions {
                None => "Captions are off: `/voice captions on`.".to_owned(),
                Some(captions) => format!("{} turned captions on: `/voice captions off`.", captions.by),
            },
            match &recording {
                None => "Nothing is recorded: `/voice record on`.".to_owned(),
                Some(recording) if recording.is_running => {
                    format!("This call is recorded, as {} asked: `/voice record off`.", recording.by)
                }
                Some(_) => "A recording is paused, because somebody did not agree: `/voice record`.".to_owned(),
            },
            "Who talks, and with which voice: `/persona`, `/voice samples`.".to_owned(),
            format!(
                "Of {} packets of sound of people who agreed I decoded {}. I dropped {} of others unheard.",
                status.packets_heard, status.packets_decoded, status.packets_dropped
            ),
        ];
        Ok(CommandAnswer { choices, ..done(lines.map(|line| format!("- {line}\n")).concat()) })
    }

    /// Shows what counts in this chat without a call, and why there is none.
    async fn voice_settings_here(
        &self,
        at: &CommandContext<'_>,
        no_call: Option<&VoiceError>,
    ) -> Result<CommandAnswer, Error> {
        let replies = self.voice_replies(at, "").await?;
        let chosen = at.chat.voices.get(&at.chat.persona);
        let is_allowed = chosen.is_some() && self.manner_here(at).await?.voice.as_ref() == chosen;
        let has_voice = self.services.voice().speaker.is_some();
        let speaks = match (chosen, is_allowed) {
            // The line on replies says so.
            _ if !has_voice => None,
            (None, _) => Some("I speak here with my own voice: `/voice samples` lists others."),
            (_, true) => Some("I speak here with a recorded voice: `/voice samples use default` ends it."),
            (_, false) => Some(
                "A recorded voice is chosen here, but the person whose voice it is cannot read this chat. So I speak with \
                 my own.",
            ),
        };
        let lines = no_call.map(ToString::to_string).into_iter();
        let lines = lines.chain([format!("{} `/voice replies` changes it.", replies.text)]);
        let lines = lines.chain(speaks.map(str::to_owned));
        let text = lines.map(|line| format!("- {line}\n")).collect();
        let choices = match may_configure_place(at) {
            true => vec![
                choice("Answer voice by voice", "/voice replies auto"),
                choice("Speak every reply", "/voice replies always"),
                choice("Text alone", "/voice replies never"),
            ],
            false => Vec::new(),
        };
        Ok(CommandAnswer { choices, ..done(text) })
    }
}

fn choice(label: &str, line: &str) -> Choice {
    Choice { label: label.into(), line: line.into() }
}

/// Returns what somebody in a call can change. Captions decide for their own time who is heard.
fn call_choices(is_agreed: bool, is_captioned: bool, is_recorded: bool) -> Vec<Choice> {
    let mut choices = vec![match is_captioned {
        true => choice("Captions off", "/voice captions off"),
        false => choice("Captions on", "/voice captions on"),
    }];
    match (is_captioned, is_agreed) {
        (true, _) => {}
        (false, true) => choices.push(choice("Do not hear me", "/voice consent no")),
        (false, false) => choices.push(choice("Hear me", "/voice consent yes")),
    }
    if is_recorded {
        choices.push(choice("End the recording", "/voice record off"));
    }
    choices
}

/// Says whether the person who asks is heard.
fn heard(agreed: bool, captions: Option<&CaptionStatus>) -> &'static str {
    match (agreed, captions) {
        (_, Some(captions)) if captions.shows_yours => "I hear you, and your words stand in the captions.",
        (_, Some(_)) => "I do not hear you while captions run, unless you agree to them: `/voice captions yes`.",
        (true, None) => "I hear you: `/voice consent no` ends it.",
        (false, None) => "I do not hear you: `/voice consent yes` lets me.",
    }
}

fn answered(result: Result<(), VoiceError>, text: &str) -> CommandAnswer {
    match result {
        Ok(()) => done(text.into()),
        Err(why) => no(&why),
    }
}

pub(super) fn no(why: &VoiceError) -> CommandAnswer {
    refused(why.to_string())
}
