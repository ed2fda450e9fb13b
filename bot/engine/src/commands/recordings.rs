//! `/voice record` and `/voice recordings`: sound of calls, for those who were there and agreed.

use std::collections::BTreeMap;
use std::time::Duration;

use azera_adapter::{CallWish, Choice, CommandAnswer, RecordStatus, SentRecording, VoiceChannels};
use azera_types::{ChatId, PersonId};
use azera_voice_api::CallRecording;

use super::voice::no;
use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;

/// Said while no recording runs.
const OFF: &str = "This call is not recorded. `/voice record on` asks everybody in it.";

/// The most recordings that a list shows.
const MAX_LISTED: usize = 30;

/// The most bytes of a file. Platforms take 10 MB.
const MAX_FILE_BYTES: usize = 9_000_000;

impl Commands {
    pub(super) async fn voice_record(
        &self,
        at: &CommandContext<'_>,
        voice: &dyn VoiceChannels,
        choice: &str,
    ) -> Result<CommandAnswer, Error> {
        let Some(wish) = CallWish::read(choice) else {
            return Ok(refused(
                "`/voice record on`, `/voice record off`, `/voice record yes` or `/voice record no`.".into(),
            ));
        };
        match voice.record(&at.line.chat, &at.line.person, wish.clone()).await {
            Ok(Some(status)) => Ok(described(&wish, &status)),
            Ok(None) if wish == CallWish::Off => Ok(done("This call is not recorded any more.".into())),
            Ok(None) if wish == CallWish::Refuse => Ok(done("I record you in no call now.".into())),
            Ok(None) => Ok(done(OFF.into())),
            Err(why) => Ok(no(&why)),
        }
    }

    pub(super) async fn voice_recordings(
        &self,
        at: &CommandContext<'_>,
        voice: &dyn VoiceChannels,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let (verb, number) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let number = number.trim().parse::<u32>();
        match (verb, number) {
            ("" | "list", _) => self.list_recordings(at, voice).await,
            ("get", Ok(number)) => self.send_recording(at, voice, number).await,
            ("remove", Ok(number)) => self.remove_recording(at, number).await,
            _ => Ok(refused(
                "`/voice recordings`, `/voice recordings get NUMBER` or `/voice recordings remove NUMBER`.".into(),
            )),
        }
    }

    async fn list_recordings(
        &self,
        at: &CommandContext<'_>,
        voice: &dyn VoiceChannels,
    ) -> Result<CommandAnswer, Error> {
        let person = &at.line.person;
        let recordings = self.services.recordings_of(person).await?;
        if recordings.is_empty() {
            return Ok(done("I keep no recording that you are in.".into()));
        }
        let mut seen: BTreeMap<ChatId, bool> = BTreeMap::new();
        let mut lines = Vec::new();
        for recording in recordings.iter().take(MAX_LISTED) {
            let sees = match seen.get(&recording.chat) {
                Some(sees) => *sees,
                None => voice.sees(&recording.chat, person).await,
            };
            seen.insert(recording.chat.clone(), sees);
            let about = if sees { self.about(at, recording) } else { lost(at, recording) };
            lines.push(format!("- **{}**: {about}", recording.number));
        }
        if recordings.len() > MAX_LISTED {
            lines.push(format!("- and {} older ones", recordings.len() - MAX_LISTED));
        }
        lines.push(
            "`/voice recordings get NUMBER` sends you one. `/voice recordings remove NUMBER` deletes it for everybody."
                .into(),
        );
        Ok(done(lines.join("\n")))
    }

    /// Describes a recording to somebody who is in it.
    fn about(&self, at: &CommandContext<'_>, recording: &CallRecording) -> String {
        let names: Vec<&str> = recording.people.iter().map(|(_, name)| name.as_str()).collect();
        let (day, lasts) = (at.day(recording.began), length(recording.duration));
        format!("{day}, {lasts}, {}, with {}", recording.place, names.join(", "))
    }

    async fn send_recording(
        &self,
        at: &CommandContext<'_>,
        voice: &dyn VoiceChannels,
        number: u32,
    ) -> Result<CommandAnswer, Error> {
        let person = &at.line.person;
        let found = self.services.recordings_of(person).await?.into_iter().find(|it| it.number == number);
        let Some(recording) = found else { return Ok(not_there(number)) };
        if !voice.sees(&recording.chat, person).await {
            return Ok(refused(
                "You can no longer see the voice channel of that recording, so I do not send it. You can still remove \
                 it."
                .into(),
            ));
        }
        let Some(kept) = self.services.recordings.get() else { return Ok(not_there(number)) };
        let Ok(_sending) = kept.sending.try_lock() else {
            return Ok(refused("I am sending another recording just now. Try again in a minute.".into()));
        };
        let files = self.files_of(person, number).await?;
        let Some(files) = files else { return Ok(not_there(number)) };
        let count = files.len();
        let parts = if count > 1 { format!(" It comes in {count} files.") } else { String::new() };
        let text = format!(
            "Recording {number}: {}.{parts} `/voice recordings remove {number}` deletes it for everybody in it.",
            self.about(at, &recording)
        );
        Ok(match voice.send_recording(SentRecording { to: person, text: &text, files }).await {
            Ok(sent) => of_sent(sent, count),
            Err(error) => {
                tracing::warn!(%error, "cannot send a recording");
                refused("I cannot send it now. Try again later.".into())
            }
        })
    }

    /// Returns the files of a recording with their names; `None` if the person is in no such recording.
    async fn files_of(&self, person: &PersonId, number: u32) -> Result<Option<Vec<(String, Vec<u8>)>>, Error> {
        let person = person.clone();
        let sound = self.services.in_recordings(move |kept| kept.sound(&person, number, MAX_FILE_BYTES)).await?;
        let Some(files) = sound.flatten() else { return Ok(None) };
        let is_one = files.len() == 1;
        let name = |at: usize| if is_one { String::new() } else { format!("-{}", at + 1) };
        let named =
            files.into_iter().enumerate().map(|(at, bytes)| (format!("recording-{number}{}.ogg", name(at)), bytes));
        Ok(Some(named.collect()))
    }

    async fn remove_recording(&self, at: &CommandContext<'_>, number: u32) -> Result<CommandAnswer, Error> {
        let person = at.line.person.clone();
        let removed = self.services.in_recordings(move |kept| kept.remove(&person, number)).await?;
        Ok(match removed {
            Some(true) => done(format!("Recording {number} is deleted for everybody who was in it.")),
            Some(false) | None => not_there(number),
        })
    }
}

/// Tells how many files of a recording somebody got.
fn of_sent(sent: usize, count: usize) -> CommandAnswer {
    match sent {
        0 => refused("I cannot write to you. Allow direct messages from members of this server, and try again.".into()),
        _ if sent < count => {
            refused(format!("I sent you {sent} of {count} files, and could not send the next. Try again later."))
        }
        _ => done("I sent it to you as a direct message.".into()),
    }
}

fn not_there(number: u32) -> CommandAnswer {
    refused(format!("You are in no recording {number}. `/voice recordings` lists those that you are in."))
}

/// Describes a recording of a place that the person can no longer see.
fn lost(at: &CommandContext<'_>, recording: &CallRecording) -> String {
    format!("{}, in a voice channel that you can no longer see; you can only remove it", at.day(recording.began))
}

/// Returns minutes and seconds.
fn length(duration: Duration) -> String {
    let seconds = duration.as_secs();
    format!("{}:{:02} minutes", seconds / 60, seconds % 60)
}

fn described(wish: &CallWish, status: &RecordStatus) -> CommandAnswer {
    let RecordStatus { name, by, is_running, people, agreed, records_you } = status;
    match wish {
        CallWish::Refuse => {
            return done(
                "I do not record you, and while you are here I keep nothing of this call. What was recorded with your \
                 agreement stays until you remove it: `/voice recordings`."
                    .into(),
            );
        }
        CallWish::Agree(_) => {
            let waits = if *is_running { "" } else { " I keep nothing yet: not everybody here agreed." };
            return done(format!(
                "Thank you. I record you in this call.{waits} `/voice record no` takes that back. Everybody who is there \
                 all the time gets the file, and can delete it for everybody: `/voice recordings`."
            ));
        }
        CallWish::Show | CallWish::On | CallWish::Off => {}
    }
    let state = match is_running {
        true => "The recording of this call runs.".to_owned(),
        false => format!("I keep nothing of this call now: {agreed} of {people} people here agreed to be recorded."),
    };
    let yours = match records_you {
        true => "You agreed: `/voice record no` takes that back.",
        false => "I keep nothing while you are here, unless you agree to it: `/voice record yes`.",
    };
    let text = format!("{by} asked for a recording. {state} {yours} `/voice record off` ends it.");
    let choice = |label: &str, line: &str| Choice { label: label.into(), line: line.into() };
    let choices = match records_you {
        true => vec![choice("End the recording", "/voice record off")],
        false => vec![choice("Record me", &format!("/voice record yes {name}"))],
    };
    CommandAnswer { choices, ..done(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_somebody_who_got_no_file_is_asked_to_allow_direct_messages() {
        let (none, some, all) = (of_sent(0, 5), of_sent(1, 5), of_sent(5, 5));
        assert!(!none.ok && none.text.contains("Allow direct messages"));
        assert!(!some.ok && some.text.contains("1 of 5 files") && !some.text.contains("Allow"));
        assert!(all.ok);
    }
}
