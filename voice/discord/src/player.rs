//! Plays pieces of sound in a call, by songbird.

use std::collections::VecDeque;
use std::io::Cursor;
use std::time::Duration;

use async_trait::async_trait;
use azera_voice_api::Audio;
use azera_voice_call::Player;
use songbird::input::{Input, RawAdapter};
use songbird::tracks::{Track, TrackHandle};
use songbird::{Event, EventContext, EventHandler, TrackEvent};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::driver::CallDriver;
use crate::mixer::OwnEvent;
use crate::recorder::OwnTap;
use crate::session::Inbox;

/// How long to wait for songbird to say how far it is.
const STOPPING: Duration = Duration::from_millis(200);

/// Plays sound in a call.
pub(crate) struct CallPlayer {
    driver: CallDriver,
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
    watch: Stopwatch,
}

/// How long a piece was played by the clock, without its pauses.
struct Stopwatch {
    before: Duration,
    /// Since when it goes on; `None` while it is paused.
    since: Option<Instant>,
}

impl Stopwatch {
    fn start(at: Instant) -> Self {
        Self { before: Duration::ZERO, since: Some(at) }
    }

    fn pause(&mut self, at: Instant) {
        (self.before, self.since) = (self.passed(at), None);
    }

    fn resume(&mut self, at: Instant) {
        self.since.get_or_insert(at);
    }

    fn passed(&self, at: Instant) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| at.saturating_duration_since(since))
    }
}

impl CallPlayer {
    pub(crate) fn new(driver: CallDriver, inbox: mpsc::UnboundedSender<Inbox>, tap: OwnTap) -> Self {
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
        let track = self.driver.drive(|driver| driver.play(track));
        self.tap.tell(|| OwnEvent::Play(audio));
        let watch = Stopwatch::start(Instant::now());
        self.playing = Some(Playing { track, number: self.number, lasts, watch });
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
        if let Some(playing) = &mut self.playing {
            playing.watch.pause(Instant::now());
            // A track that just ended cannot be paused.
            playing.track.pause().ok();
        }
    }

    fn resume(&mut self) {
        self.is_paused = false;
        self.tap.tell(|| OwnEvent::GoOn);
        match &mut self.playing {
            Some(playing) => {
                playing.watch.resume(Instant::now());
                playing.track.play().ok();
            }
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
            let by_clock = playing.watch.passed(Instant::now());
            let state = tokio::time::timeout(STOPPING, playing.track.get_info()).await;
            playing.track.stop().ok();
            let reached = match state {
                Ok(Ok(state)) => state.play_time,
                // A track that is gone was played to its end.
                Ok(Err(_)) => playing.lasts,
                // Without a connection, songbird does not answer, and nobody heard more than there was time for.
                Err(_) => by_clock,
            };
            played += reached.min(playing.lasts);
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

    #[test]
    fn the_clock_of_a_piece_leaves_out_its_pauses() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut watch = Stopwatch::start(start);
        assert_eq!(watch.passed(start + second), second);
        watch.pause(start + second);
        watch.pause(start + second * 2);
        assert_eq!(watch.passed(start + second * 5), second);
        watch.resume(start + second * 5);
        watch.resume(start + second * 6);
        assert_eq!(watch.passed(start + second * 7), second * 3);
    }

    #[tokio::test]
    async fn raw_sound_can_be_decoded_by_this_crate_alone() {
        let sound = Audio { rate: SampleRate(24_000), samples: vec![0.1; 480] };
        let playable = input(&sound).make_playable_async(get_codec_registry(), get_probe()).await;
        assert!(playable.is_ok_and(|input| input.is_playable()));
    }
}
