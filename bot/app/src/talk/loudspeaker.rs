//! The loudspeaker: plays pieces of sound in step with the clock, so that it is known what was heard. If the program that
//! plays ends, the next one goes on; without another one, sound is dropped.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use azera_voice_api::{Audio, SampleRate};
use azera_voice_call::Player;
use azera_voice_recordings::Resampler;
use tokio::sync::mpsc;

use super::programs::{Playback, play, play_after};

/// The rate of the sound that goes to the program.
const RATE: SampleRate = SampleRate(22_050);

/// How much is written at a time, and how far ahead of the clock.
const STEP: Duration = Duration::from_millis(20);
const AHEAD: Duration = Duration::from_millis(60);

/// What happens to the loudspeaker.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// A piece was played to its end.
    PieceOver,
    /// The program that plays ended.
    Ended {
        /// Its name.
        program: &'static str,
        /// The program that plays from here on; `None` if there is no other one.
        next: Option<&'static str>,
    },
}

/// Plays sound by a program.
pub struct Loudspeaker {
    playing: Arc<Mutex<Playing>>,
}

/// What is to be played.
#[derive(Default)]
struct Playing {
    pieces: VecDeque<Vec<f32>>,
    /// Samples of the first piece that were played.
    position: usize,
    /// Samples played since the clock was started.
    played: usize,
    is_paused: bool,
    is_over: bool,
    /// True once no program plays any more.
    is_broken: bool,
}

impl Loudspeaker {
    /// Starts the program that plays. `news` is told what happens to it.
    ///
    /// # Errors
    /// No program plays.
    pub fn open(news: mpsc::UnboundedSender<News>) -> anyhow::Result<Self> {
        let playback = play(RATE.0)?;
        let playing = Arc::<Mutex<Playing>>::default();
        let feeds = playing.clone();
        std::thread::Builder::new().name("loudspeaker".to_owned()).spawn(move || feed(playback, &feeds, &news))?;
        Ok(Self { playing })
    }

    fn lock(&self) -> MutexGuard<'_, Playing> {
        lock(&self.playing)
    }
}

impl Drop for Loudspeaker {
    fn drop(&mut self) {
        self.lock().is_over = true;
    }
}

fn lock(playing: &Mutex<Playing>) -> MutexGuard<'_, Playing> {
    playing.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes sound or silence, in step with the clock.
fn feed(mut playback: Playback, playing: &Mutex<Playing>, news: &mpsc::UnboundedSender<News>) {
    let (begun, step) = (Instant::now(), RATE.samples(STEP));
    for number in 0_u32.. {
        let due = begun + STEP * number;
        std::thread::sleep(due.saturating_duration_since(Instant::now() + AHEAD));
        let (samples, ended) = {
            let mut playing = lock(playing);
            if playing.is_over {
                break;
            }
            playing.take(step)
        };
        let scaled = samples.iter().map(|sample| (sample.clamp(-1.0, 1.0) * f32::from(i16::MAX)) as i16);
        let bytes: Vec<u8> = scaled.flat_map(i16::to_le_bytes).collect();
        while playback.sound.write_all(&bytes).is_err() {
            let Some(next) = replace(&playback, playing, news) else { return };
            playback = next;
        }
        if ended && news.send(News::PieceOver).is_err() {
            break;
        }
    }
}

/// Starts the next program in the place of one that ended. Returns `None` if there is none; then nothing is played.
fn replace(ended: &Playback, playing: &Mutex<Playing>, news: &mpsc::UnboundedSender<News>) -> Option<Playback> {
    let next =
        play_after(ended, RATE.0).inspect_err(|error| tracing::debug!(%error, "no other program plays sound")).ok();
    if next.is_none() {
        let mut playing = lock(playing);
        playing.is_broken = true;
        playing.pieces.clear();
    }
    // Nobody listens to a conversation that is over.
    news.send(News::Ended { program: ended.name, next: next.as_ref().map(|next| next.name) }).ok();
    next
}

impl Playing {
    /// Takes so many samples, with silence where there is no sound. Returns whether a piece ended.
    fn take(&mut self, count: usize) -> (Vec<f32>, bool) {
        let (mut samples, mut ended) = (Vec::with_capacity(count), false);
        while !self.is_paused && samples.len() < count {
            let Some(piece) = self.pieces.front() else { break };
            let part = piece.get(self.position..).unwrap_or_default();
            let taken = part.len().min(count - samples.len());
            samples.extend(part.iter().take(taken));
            self.position += taken;
            self.played += taken;
            if self.position >= piece.len() {
                self.pieces.pop_front();
                (self.position, ended) = (0, true);
            }
        }
        samples.resize(count, 0.0);
        (samples, ended)
    }
}

fn duration(samples: usize) -> Duration {
    Duration::from_secs_f64(samples as f64 / f64::from(RATE.0))
}

#[async_trait]
impl Player for Loudspeaker {
    fn push(&mut self, audio: Audio) {
        let samples = if audio.rate == RATE {
            audio.samples
        } else {
            let mut samples = Vec::new();
            let mut resampler = Resampler::new(audio.rate, RATE);
            resampler.push(&audio.samples, &mut samples);
            resampler.finish(&mut samples);
            samples
        };
        let mut playing = self.lock();
        if !playing.is_broken {
            playing.pieces.push_back(samples);
        }
    }

    fn pause(&mut self) {
        self.lock().is_paused = true;
    }

    fn resume(&mut self) {
        self.lock().is_paused = false;
    }

    fn is_done(&self) -> bool {
        self.lock().pieces.is_empty()
    }

    fn ahead(&self) -> Duration {
        duration(self.lock().pieces.iter().skip(1).map(Vec::len).sum())
    }

    async fn stop(&mut self) -> Duration {
        let mut playing = self.lock();
        playing.pieces.clear();
        (playing.position, playing.is_paused) = (0, false);
        duration(playing.played)
    }

    fn restart_clock(&mut self) {
        self.lock().played = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_counts_what_was_played() {
        let mut playing = Playing::default();
        playing.pieces.extend([vec![0.5; 30], vec![0.25; 10]]);
        assert_eq!(playing.take(20), (vec![0.5; 20], false));
        playing.is_paused = true;
        assert_eq!(playing.take(20), (vec![0.0; 20], false));
        playing.is_paused = false;
        let (samples, ended) = playing.take(30);
        assert!(ended && samples[..10] == [0.5; 10] && samples[10..20] == [0.25; 10] && samples[20..] == [0.0; 10]);
        assert_eq!(playing.played, 40);
    }
}
