//! Plays pieces of sound in a call, by songbird.

use std::collections::VecDeque;
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use azera_voice_api::Audio;
use azera_voice_call::Player;
use songbird::input::{Input, RawAdapter};
use songbird::tracks::{Track, TrackHandle};
use songbird::{Driver, Event, EventContext, EventHandler, TrackEvent};
use tokio::sync::mpsc;

use crate::mixer::OwnEvent;
use crate::recorder::OwnTap;
use crate::session::Inbox;

/// How long to wait for songbird to say how far it is.
const STOPPING: Duration = Duration::from_millis(200);

/// Plays sound in a call.
pub(crate) struct CallPlayer {
    driver: Arc<Mutex<Driver>>,
    queue: VecDeque<Audio>,
    playing: Option<Playing>,
    /// How long the pieces lasted that were played to their end.
    played: Duration,
    is_paused: bool,
    number: u64,
    inbox: mpsc::UnboundedSender<Inbox>,
    /// Tells a recorder what is played.
    tap: OwnTap,
}

struct Playing {
    track: TrackHandle,
    number: u64,
    lasts: Duration,
}

impl CallPlayer {
    pub(crate) fn new(driver: Arc<Mutex<Driver>>, inbox: mpsc::UnboundedSender<Inbox>, tap: OwnTap) -> Self {
        Self {
            driver,
            queue: VecDeque::new(),
            playing: None,
            played: Duration::ZERO,
            is_paused: false,
            number: 0,
            inbox,
            tap,
        }
    }

    fn play_next(&mut self) {
        if self.playing.is_some() || self.is_paused {
            return;
        }
        let Some(audio) = self.queue.pop_front() else { return };
        self.number += 1;
        let lasts = audio.duration();
        let mut track = Track::new(input(&audio));
        for event in [TrackEvent::End, TrackEvent::Error] {
            let over = Over { number: self.number, inbox: self.inbox.clone() };
            track.events.add_event(songbird::events::EventData::new(Event::Track(event), over), Duration::ZERO);
        }
        let track = self.driver.lock().unwrap_or_else(PoisonError::into_inner).play(track);
        self.tap.tell(|| OwnEvent::Play(audio));
        self.playing = Some(Playing { track, number: self.number, lasts });
    }

    /// Records that a piece ended, and plays the next one.
    pub(crate) fn over(&mut self, number: u64) {
        if self.playing.as_ref().is_some_and(|playing| playing.number == number)
            && let Some(playing) = self.playing.take()
        {
            self.played += playing.lasts;
            self.play_next();
        }
    }
}

#[async_trait]
impl Player for CallPlayer {
    fn push(&mut self, audio: Audio) {
        self.queue.push_back(audio);
        self.play_next();
    }

    fn pause(&mut self) {
        self.is_paused = true;
        self.tap.tell(|| OwnEvent::Hold);
        if let Some(playing) = &self.playing {
            // A track that just ended cannot be paused.
            playing.track.pause().ok();
        }
    }

    fn resume(&mut self) {
        self.is_paused = false;
        self.tap.tell(|| OwnEvent::GoOn);
        match &self.playing {
            Some(playing) => drop(playing.track.play()),
            None => self.play_next(),
        }
    }

    fn is_done(&self) -> bool {
        self.playing.is_none() && self.queue.is_empty()
    }

    fn ahead(&self) -> Duration {
        self.queue.iter().map(Audio::duration).sum()
    }

    async fn stop(&mut self) -> Duration {
        self.queue.clear();
        self.is_paused = false;
        self.tap.tell(|| OwnEvent::Stop);
        let mut played = self.played;
        if let Some(playing) = self.playing.take() {
            // Without a connection, songbird does not answer.
            let state = tokio::time::timeout(STOPPING, playing.track.get_info()).await.ok().and_then(Result::ok);
            playing.track.stop().ok();
            // A track that is gone was played to its end.
            played += state.map_or(playing.lasts, |state| state.play_time.min(playing.lasts));
        }
        played
    }

    fn restart_clock(&mut self) {
        self.played = Duration::ZERO;
    }
}

fn input(audio: &Audio) -> Input {
    let bytes: Vec<u8> = audio.samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    RawAdapter::new(Cursor::new(bytes), audio.rate.0, 1).into()
}

/// Tells that a track is over.
struct Over {
    number: u64,
    inbox: mpsc::UnboundedSender<Inbox>,
}

#[async_trait]
impl EventHandler for Over {
    async fn act(&self, _: &EventContext<'_>) -> Option<Event> {
        self.inbox.send(Inbox::Over(self.number)).ok();
        Some(Event::Cancel)
    }
}

#[cfg(test)]
mod tests {
    use azera_voice_api::SampleRate;
    use songbird::input::codecs::{get_codec_registry, get_probe};

    use super::*;

    #[tokio::test]
    async fn raw_sound_can_be_decoded_by_this_crate_alone() {
        let sound = Audio { rate: SampleRate(24_000), samples: vec![0.1; 480] };
        let playable = input(&sound).make_playable_async(get_codec_registry(), get_probe()).await;
        assert!(playable.is_ok_and(|input| input.is_playable()));
    }
}
