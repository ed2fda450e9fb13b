//! Recordings of calls: somebody asks for one, and it runs while everybody who is in the call agreed to it.
//!
//! A recording has parts. In each part the same people are there all the time, so each of them may have it and nobody
//! else may. When somebody leaves or is deafened, another part begins. While somebody did not agree, nothing is kept.
//!
//! This file decides what is kept and says so, `presence` follows who is there, `recorder` knows where it is kept, and
//! `send` brings it to a person.

mod presence;
mod recorder;
mod send;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use azera_adapter::{CallWish, Choice, RecordStatus, VoiceError};
use azera_types::PersonId;
use azera_voice_call_recordings::{About, RecordingFolder};
use azera_voice_discord::{RecordedPart, RecordingEnd};
use serenity::all::{ChannelId, CreateAllowedMentions, CreateMessage, GuildId, UserId};

pub(super) use recorder::Recorder;

use super::VoiceCalls;
use crate::commands::choices;
use crate::error::in_words;
use crate::id;

/// Most people who are called by name when somebody asks for a recording. The others hear of it.
const MAX_CALLED: usize = 20;

/// Said aloud, and written, when the state changes.
const RUNS: &str = "The recording begins.";
const PAUSED: &str = "The recording is paused.";
const GOES_ON: &str = "The recording goes on.";
const OVER: &str = "The recording is over.";

/// Written when the disk fails.
const UNWRITABLE: &str = "I cannot write it to my disk.";

/// Written when the bot cannot know who is there.
const BLIND: &str = "I cannot see at the moment who is here.";

/// Where to find what was recorded. A part that was too short is not kept, and the end of a call does not wait for the disk.
const WHERE: &str = "Those who were there find with `/voice recordings` what was kept: each part of a second or more.";

/// The recording of a call.
pub(super) struct Recording {
    /// Names it among the recordings of the call.
    name: String,
    /// Who asked for it.
    by: String,
    agreed: BTreeSet<PersonId>,
    asked: BTreeSet<PersonId>,
    /// Who is in the part that is kept; empty before the first one.
    part: BTreeSet<PersonId>,
    is_running: bool,
    /// True while it ran until a part with other people begins.
    is_between_parts: bool,
    /// True while the connection to Discord is lost, so that others may be there than the bot knows.
    is_blind: bool,
}

/// What must change because of who is there and who agreed.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Stay,
    /// Nothing is kept from now on.
    Pause,
    /// The part goes on.
    Resume,
    /// Another part begins, with these people.
    Begin(BTreeSet<PersonId>),
}

impl Recording {
    fn new(name: String, by: String, person: &PersonId, others: BTreeSet<PersonId>) -> Self {
        let agreed = BTreeSet::from([person.clone()]);
        Self {
            name,
            by,
            agreed,
            asked: others,
            part: BTreeSet::new(),
            is_running: false,
            is_between_parts: false,
            is_blind: false,
        }
    }

    /// Takes in that a person left. When they come back, they are asked anew.
    fn is_left_by(&mut self, person: &PersonId) {
        self.agreed.remove(person);
        self.asked.remove(person);
    }

    /// Takes in who is there; all others left.
    fn is_left_by_all_but(&mut self, there: &BTreeSet<PersonId>) {
        self.agreed.retain(|person| there.contains(person));
        self.asked.retain(|person| there.contains(person));
    }

    /// Returns what comes next. A part is for the people who hear the call, and everybody there must have agreed.
    fn next(&self, there: &BTreeSet<PersonId>, hearing: &BTreeSet<PersonId>) -> Step {
        let may = !hearing.is_empty() && there.is_subset(&self.agreed);
        match (may, self.is_running) {
            (false, _) if self.is_running || self.is_between_parts => Step::Pause,
            (false, _) => Step::Stay,
            (true, _) if *hearing != self.part => Step::Begin(hearing.clone()),
            (true, true) => Step::Stay,
            (true, false) => Step::Resume,
        }
    }

    fn status(&self, there: &BTreeSet<PersonId>, person: &PersonId) -> RecordStatus {
        RecordStatus {
            name: self.name.clone(),
            by: self.by.clone(),
            is_running: self.is_running,
            people: there.len(),
            agreed: there.intersection(&self.agreed).count(),
            records_you: self.agreed.contains(person),
        }
    }
}

impl VoiceCalls {
    /// Lets people record calls; only the first call counts.
    pub(crate) fn set_recordings(&self, folder: RecordingFolder, most: Duration) {
        self.recorder.get_or_init(|| Recorder::new(folder, most));
    }

    /// Reads or changes the recording of the call in a channel, on behalf of a person who takes part in it.
    pub(super) async fn recording(
        self: &Arc<Self>,
        (guild, channel): (GuildId, ChannelId),
        person: &PersonId,
        wish: CallWish,
    ) -> Result<Option<RecordStatus>, VoiceError> {
        match wish {
            CallWish::Show => {}
            CallWish::On => self.ask_for_recording((guild, channel), person).await?,
            CallWish::Off => self.end_recording(guild, channel, "Somebody ended it."),
            CallWish::Agree(name) => {
                let is_meant = |recording: &mut Recording| {
                    let is_meant = name.as_ref().is_none_or(|name| recording.name == *name);
                    is_meant && {
                        recording.agreed.insert(person.clone());
                        true
                    }
                };
                match self.change_recording(channel, is_meant) {
                    Some(true) => {}
                    None if name.is_none() => return Ok(None),
                    _ => return Err(VoiceError::RecordingEnded),
                }
            }
            CallWish::Refuse => {
                self.change_recording(channel, |recording| recording.agreed.remove(person));
            }
        }
        self.look_at_recording(guild, channel).await;
        self.review_recording(guild, channel).await;
        let there = self.persons(guild, channel);
        Ok(self.change_recording(channel, |recording| recording.status(&there, person)))
    }

    /// Changes the recording of a call; returns `None` if there is none.
    fn change_recording<T>(&self, channel: ChannelId, change: impl FnOnce(&mut Recording) -> T) -> Option<T> {
        let mut calls = self.calls();
        let recording = calls.values_mut().find(|ongoing| ongoing.channel == channel)?.recording.as_mut()?;
        Some(change(recording))
    }

    /// Returns who is there, and who of them hears the call; `None` if Discord did not describe the server yet.
    fn known_persons(&self, guild: GuildId, channel: ChannelId) -> Option<[BTreeSet<PersonId>; 2]> {
        let known = [self.known_people(guild, channel)?, self.known_hearers(guild, channel)?];
        Some(known.map(|users| users.into_iter().filter_map(|user| id::person(user).ok()).collect()))
    }

    fn persons(&self, guild: GuildId, channel: ChannelId) -> BTreeSet<PersonId> {
        self.people(guild, channel).into_iter().filter_map(|user| id::person(user).ok()).collect()
    }

    async fn ask_for_recording(
        self: &Arc<Self>,
        (guild, channel): (GuildId, ChannelId),
        person: &PersonId,
    ) -> Result<(), VoiceError> {
        let Some(recorder) = self.recorder.get() else {
            return Err(VoiceError::Unavailable("Calls are not recorded here.".to_owned()));
        };
        if self.change_recording(channel, |_| ()).is_some() {
            return Ok(());
        }
        recorder.not_too_often(channel)?;
        let others: Vec<UserId> = self.people(guild, channel).into_iter().collect();
        let others: Vec<UserId> =
            others.into_iter().filter(|user| id::person(*user).is_ok_and(|other| other != *person)).collect();
        let by = id::user_of(person).map_or_else(|| "somebody".to_owned(), |user| self.name(guild, user));
        let name = self.clock.now().as_millisecond().to_string();
        let asked = others.iter().filter_map(|user| id::person(*user).ok()).collect();
        let recording = Recording::new(name.clone(), by.clone(), person, asked);
        let call = {
            let mut calls = self.calls();
            let ongoing = calls.get_mut(&guild).filter(|ongoing| ongoing.channel == channel);
            let ongoing = ongoing.ok_or(VoiceError::NotThere)?;
            if ongoing.recording.is_some() {
                return Ok(());
            }
            ongoing.recording = Some(recording);
            ongoing.call.clone()
        };
        // What is being said may be in the voice of somebody who did not agree to be recorded.
        call.stop();
        if !others.is_empty() {
            call.say(&format!("{by} asks to record this call. I keep nothing until everybody here agrees."));
        }
        self.ask_to_be_recorded(channel, &name, &by, &others).await;
        Ok(())
    }

    /// Tells the readers of the voice channel's text chat about a recording, and asks those who are in the call.
    async fn ask_to_be_recorded(&self, channel: ChannelId, name: &str, by: &str, others: &[UserId]) {
        let Ok(line) = self.line() else { return };
        let called: Vec<UserId> = others.iter().take(MAX_CALLED).copied().collect();
        let names: String = called.iter().map(|user| format!("<@{user}> ")).collect();
        let text = format!(
            "{names}{by} asks to record this call: a sound file with what people here say, and with what I say. I keep \
             nothing until everybody who is here agrees, and nothing while somebody is here who does not. Only those who \
             were there all the time get a file, and each of them can delete it for everybody: `/voice recordings`. \
             `/voice record no` takes your agreement back at any time, and `/voice record off` ends the recording."
        );
        let choice = |label: &str, line: String| Choice { label: label.to_owned(), line };
        let buttons = choices(&[
            choice("Record me", format!("/voice record yes {name}")),
            choice("Do not record", "/voice record no".to_owned()),
        ]);
        let question = CreateMessage::new()
            .content(text)
            .components(buttons)
            .allowed_mentions(CreateAllowedMentions::new().users(called));
        if let Err(error) = line.http.send_message(channel, Vec::new(), &question).await {
            tracing::warn!(error = in_words(&error), "cannot ask people whether they may be recorded");
        }
    }

    /// Takes into account that people came or left. Whoever is new is asked.
    pub(super) async fn recording_has_other_people(self: &Arc<Self>, guild: GuildId, channel: ChannelId) {
        self.review_recording(guild, channel).await;
        for user in self.people(guild, channel) {
            let Ok(person) = id::person(user) else { continue };
            let asked = self.change_recording(channel, |recording| {
                let is_new = !recording.agreed.contains(&person) && recording.asked.insert(person);
                is_new.then(|| (recording.name.clone(), recording.by.clone()))
            });
            if let Some(Some((name, by))) = asked {
                let calls = self.clone();
                tokio::spawn(async move { calls.ask_to_be_recorded(channel, &name, &by, &[user]).await });
            }
        }
    }

    /// Lets the recording of a call run, pause or go on, by who is there and who agreed. Says what changed.
    async fn review_recording(self: &Arc<Self>, guild: GuildId, channel: ChannelId) {
        let Some(people) = self.change_recorded(guild, channel, None) else { return };
        // The disk is slow, and others need what is known of calls meanwhile. Nothing is kept until the part is there.
        let (calls, with) = (self.clone(), people.clone());
        let begun = tokio::task::spawn_blocking(move || calls.begin_part((guild, channel), &with)).await;
        match begun.unwrap_or_else(|_| Err(UNWRITABLE.to_owned())) {
            // Whoever came or left meanwhile begins a review of their own. This part is dropped then.
            Ok(part) => drop(self.change_recorded(guild, channel, Some(part))),
            Err(why) => self.end_recording(guild, channel, &why),
        }
    }

    /// Does for a recording what needs no disk. Returns the people with whom a part has to begin. A part that was begun for
    /// them runs from now on.
    fn change_recorded(
        self: &Arc<Self>,
        guild: GuildId,
        channel: ChannelId,
        mut begun: Option<RecordedPart>,
    ) -> Option<BTreeSet<PersonId>> {
        let recorder = self.recorder.get()?;
        let mut calls = self.calls();
        let ongoing = calls.get_mut(&guild).filter(|ongoing| ongoing.channel == channel)?;
        let (call, recording) = (ongoing.call.clone(), ongoing.recording.as_mut()?);
        let known = if recording.is_blind { None } else { self.known_persons(guild, channel) };
        let is_known = known.is_some();
        if let Some([there, _]) = &known {
            recording.is_left_by_all_but(there);
        }
        let [there, hearing] = known.unwrap_or_default();
        let is_first = recording.part.is_empty();
        let said = match recording.next(&there, &hearing) {
            Step::Stay => return None,
            Step::Pause => {
                call.run_recording(false);
                recording.is_running = false;
                PAUSED
            }
            Step::Resume => {
                call.run_recording(true);
                recording.is_running = true;
                GOES_ON
            }
            Step::Begin(people) => match begun.take_if(|part| part.people == people) {
                Some(part) => {
                    call.record(part, recorder.most);
                    (recording.part, recording.is_running) = (people, true);
                    if is_first { RUNS } else { GOES_ON }
                }
                None => {
                    // The part before is for other people.
                    if std::mem::take(&mut recording.is_running) {
                        call.run_recording(false);
                        recording.is_between_parts = true;
                    }
                    return Some(people);
                }
            },
        };
        // Another part may begin without a pause.
        let was_running = std::mem::take(&mut recording.is_between_parts) && said == GOES_ON;
        let missing: Vec<String> = there
            .difference(&recording.agreed)
            .filter_map(|person| Some(self.name(guild, id::user_of(person)?)))
            .collect();
        drop(calls);
        // Nobody hears that nobody is there.
        if was_running || (is_known && there.is_empty()) {
            return None;
        }
        call.say(said);
        let notice = match missing.as_slice() {
            [] if !is_known => format!("*{said} {BLIND}*"),
            [] => format!("*{said}*"),
            missing => format!("*{said} I wait for the agreement of {}.*", missing.join(", ")),
        };
        let calls = self.clone();
        tokio::spawn(async move { calls.tell(channel, &notice).await });
        None
    }

    /// Begins to keep a part. It waits for the disk. The error says for people why it cannot be kept.
    fn begin_part(
        &self,
        (guild, channel): (GuildId, ChannelId),
        people: &BTreeSet<PersonId>,
    ) -> Result<RecordedPart, String> {
        let cannot = |error: &dyn std::fmt::Display| {
            tracing::error!(%channel, %error, "cannot begin a recording");
            UNWRITABLE.to_owned()
        };
        let Some(recorder) = self.recorder.get() else { return Err("Calls are not recorded here.".to_owned()) };
        let name = |person: &PersonId| id::user_of(person).map(|user| self.name(guild, user)).unwrap_or_default();
        let place = self.line.get().and_then(|line| line.directory.channel(channel)).map(|found| found.name);
        let about = About {
            chat: id::voice_chat(channel).map_err(|error| cannot(&error))?,
            realm: Some(id::realm(guild).map_err(|error| cannot(&error))?),
            place: place.unwrap_or_else(|| "a voice channel".to_owned()),
            began: self.clock.now(),
            milliseconds: 0,
            ended: None,
            people: people.iter().map(|person| (person.clone(), name(person))).collect(),
        };
        match recorder.folder.begin(about) {
            Ok(Some(recording)) => Ok(RecordedPart { people: people.clone(), recording }),
            Ok(None) => Err(no_space()),
            Err(error) => Err(cannot(&error)),
        }
    }

    /// Ends the recording of a call, if there is one, and says why.
    pub(super) fn end_recording(self: &Arc<Self>, guild: GuildId, channel: ChannelId, why: &str) {
        let ended = {
            let mut calls = self.calls();
            let ongoing = calls.get_mut(&guild).filter(|ongoing| ongoing.channel == channel);
            ongoing.and_then(|ongoing| Some((ongoing.recording.take()?, ongoing.call.clone())))
        };
        let Some((recording, call)) = ended else { return };
        call.end_recording();
        call.say(OVER);
        let found = if recording.part.is_empty() { "Nothing was kept." } else { WHERE };
        let (calls, notice) = (self.clone(), format!("*{OVER} {why} {found}*"));
        tokio::spawn(async move { calls.tell(channel, &notice).await });
    }

    /// Handles that a recording ended by itself.
    pub(super) fn recording_ended(self: &Arc<Self>, guild: GuildId, channel: ChannelId, why: RecordingEnd) {
        let text = match why {
            RecordingEnd::CallOver => {
                return self.tell_soon(channel, format!("*{OVER} The call is over. {WHERE}*"));
            }
            RecordingEnd::TooLong => "It is as long as a recording may be.".to_owned(),
            RecordingEnd::NoSpace => no_space(),
            RecordingEnd::Removed => "Somebody in it had it removed.".to_owned(),
            RecordingEnd::Failed(error) => {
                tracing::error!(%channel, error, "a recording cannot be written; it ends");
                UNWRITABLE.to_owned()
            }
        };
        self.end_recording(guild, channel, &text);
    }
}

fn no_space() -> String {
    "There is no space for more recordings. Remove some with `/voice recordings remove`, or ask the operator."
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people(names: &[&str]) -> BTreeSet<PersonId> {
        names.iter().map(|name| PersonId::new(*name).unwrap()).collect()
    }

    #[test]
    fn it_runs_only_while_everybody_who_is_there_agreed() {
        let ann = PersonId::new("ann").unwrap();
        let mut recording = Recording::new("1".into(), "Ann".into(), &ann, people(&["bob"]));
        let next = |recording: &mut Recording, there: &[&str]| {
            let step = recording.next(&people(there), &people(there));
            recording.is_running = match &step {
                Step::Stay => recording.is_running,
                Step::Pause => false,
                Step::Resume => true,
                Step::Begin(people) => {
                    recording.part = people.clone();
                    true
                }
            };
            step
        };
        let both = ["ann", "bob"];
        assert_eq!(next(&mut recording, &both), Step::Stay, "Bob did not agree");
        recording.agreed.extend(people(&["bob"]));
        assert_eq!(next(&mut recording, &both), Step::Begin(people(&both)));
        assert_eq!(next(&mut recording, &both), Step::Stay);
        assert_eq!(next(&mut recording, &["ann", "bob", "cid"]), Step::Pause);
        assert_eq!(next(&mut recording, &["ann", "bob", "cid"]), Step::Stay);
        assert_eq!(next(&mut recording, &both), Step::Resume, "Cid is gone, and the same people are there");
        assert_eq!(next(&mut recording, &["bob"]), Step::Begin(people(&["bob"])), "Ann does not get what follows");
        recording.agreed.clear();
        assert_eq!(next(&mut recording, &["bob"]), Step::Pause);
        assert_eq!(next(&mut recording, &[]), Step::Stay);
        // Whoever hears nothing gets nothing, and must have agreed all the same.
        let deaf = |recording: &Recording| recording.next(&people(&both), &people(&["ann"]));
        assert_eq!(deaf(&recording), Step::Stay, "Bob is there and did not agree");
        recording.agreed.extend(people(&both));
        assert_eq!(deaf(&recording), Step::Begin(people(&["ann"])));
        assert_eq!(recording.next(&people(&both), &people(&[])), Step::Stay, "nobody hears it");
        recording.agreed.clear();
        // While the next part is prepared, somebody comes who did not agree.
        recording.agreed.extend(people(&["bob"]));
        recording.is_between_parts = true;
        assert_eq!(next(&mut recording, &["bob", "cid"]), Step::Pause, "and everybody hears of it");
    }

    #[test]
    fn whoever_leaves_agrees_no_longer_and_is_asked_anew() {
        let ann = PersonId::new("ann").unwrap();
        let mut recording = Recording::new("1".into(), "Ann".into(), &ann, people(&["bob", "cid"]));
        recording.agreed.extend(people(&["bob", "cid"]));
        recording.is_left_by(&PersonId::new("cid").unwrap());
        assert_eq!((&recording.agreed, &recording.asked), (&people(&["ann", "bob"]), &people(&["bob"])));
        recording.is_left_by_all_but(&people(&["bob", "cid"]));
        assert_eq!((&recording.agreed, &recording.asked), (&people(&["bob"]), &people(&["bob"])));
        let there = people(&["bob", "cid"]);
        assert_eq!(recording.next(&there, &there), Step::Stay, "Cid is not recorded again unasked");
    }
}
