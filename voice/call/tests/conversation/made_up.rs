//! A made-up room: engines that know what is said, a player, and a clock that only the test moves.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use azera_types::{MessageId, PersonId, Text};
use azera_voice_api::{
    Audio, Error, FRAME_SAMPLES, Piece, SampleRate, SpeechToText, Style, TextToSpeech, Transcript, Voice, VoiceActivity,
};
use azera_voice_call::{Engines, Player, Report, Request, Talk, Told};
use azera_voice_room::{Event, Settings, StreamId};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

/// How long the made-up voice takes for a character.
pub const LETTER: Duration = Duration::from_millis(50);

/// The rate of the made-up voice.
const RATE: SampleRate = SampleRate(16_000);

const FRAME: Duration = Duration::from_millis(32);

/// Words at which recognition fails.
pub const NOT_RECOGNISED: &str = "(not recognised)";

/// Hears the words that the test puts down, and keeps the language that was expected last.
#[derive(Default)]
pub struct Hearing(pub Mutex<String>, pub Mutex<Option<String>>);

impl SpeechToText for Hearing {
    fn name(&self) -> &str {
        "made-up"
    }

    fn transcribe(&self, _: &Audio, _: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error> {
        let text = Text::new(self.0.lock().unwrap().as_str());
        if text.as_str() == NOT_RECOGNISED {
            return Err(Error::Engine { engine: "made-up".into(), why: "it is away".into() });
        }
        Ok(Transcript { text, words: Vec::new(), confidence: 0.9, no_speech: 0.0 })
    }

    fn transcribe_in(
        &self,
        utterance: &Audio,
        language: Option<&str>,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Transcript, Error> {
        *self.1.lock().unwrap() = language.map(str::to_owned);
        self.transcribe(utterance, is_wanted)
    }
}

/// Says each character in the same time.
pub struct Speaking {
    voices: Vec<Voice>,
    /// The styles in which sentences were said.
    pub styles: Mutex<Vec<(String, Style)>>,
    /// The voice fails at sentences with this; empty if it works.
    pub fails_at: Mutex<String>,
}

impl TextToSpeech for Speaking {
    fn voices(&self) -> Vec<Voice> {
        self.voices.clone()
    }

    fn speak(
        &self,
        sentence: &str,
        style: &Style,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.styles.lock().unwrap().push((sentence.to_owned(), style.clone()));
        let fails_at = self.fails_at.lock().unwrap().clone();
        if !fails_at.is_empty() && sentence.contains(&fails_at) {
            return Err(Error::Engine { engine: "made-up".into(), why: "it is away".into() });
        }
        for piece in sentence.as_bytes().chunks(10) {
            let samples = vec![0.5; RATE.samples(LETTER * u32::try_from(piece.len()).unwrap())];
            if take(Audio { rate: RATE, samples }.into()).is_break() {
                break;
            }
        }
        Ok(())
    }
}

struct Loud;

impl VoiceActivity for Loud {
    fn probability(&mut self, frame: &[f32; FRAME_SAMPLES]) -> Result<f32, Error> {
        Ok(frame[0])
    }

    fn reset(&mut self) {}
}

/// Plays by the test's clock, and keeps when each sound began.
#[derive(Default)]
pub struct Line {
    queue: VecDeque<Audio>,
    playing: Option<(Instant, Duration, Duration)>,
    played: Duration,
    is_paused: bool,
    has_ended: bool,
    /// The beginnings of what can be heard.
    pub heard: Arc<Mutex<Vec<Instant>>>,
}

impl Line {
    /// Ends what was played to its end, and begins the next piece. Returns true if something ended.
    fn advance(&mut self) -> bool {
        let mut has_ended = std::mem::take(&mut self.has_ended);
        while !self.is_paused {
            if let Some((began, before, lasts)) = self.playing {
                if before + began.elapsed() < lasts {
                    break;
                }
                self.played += lasts;
                (self.playing, has_ended) = (None, true);
            }
            let Some(audio) = self.queue.pop_front() else { break };
            let silence = audio.samples.iter().take_while(|sample| **sample == 0.0).count();
            if silence < audio.samples.len() {
                let silence = Duration::from_secs_f64(silence as f64 / f64::from(audio.rate.0));
                self.heard.lock().unwrap().push(Instant::now() + silence);
            }
            self.playing = Some((Instant::now(), Duration::ZERO, audio.duration()));
        }
        has_ended
    }
}

#[async_trait]
impl Player for Line {
    fn push(&mut self, audio: Audio) {
        self.queue.push_back(audio);
        self.advance();
    }

    fn pause(&mut self) {
        self.is_paused = true;
        self.playing = self.playing.map(|(began, before, lasts)| (began, before + began.elapsed(), lasts));
        // Sound that just ended cannot be paused.
        if let Some((_, _, lasts)) = self.playing.take_if(|(_, position, lasts)| *position >= *lasts) {
            self.played += lasts;
            self.has_ended = true;
        }
    }

    fn resume(&mut self) {
        self.is_paused = false;
        self.playing = self.playing.map(|(_, before, lasts)| (Instant::now(), before, lasts));
    }

    fn is_done(&self) -> bool {
        self.playing.is_none() && self.queue.is_empty()
    }

    fn ahead(&self) -> Duration {
        self.queue.iter().map(Audio::duration).sum()
    }

    async fn stop(&mut self) -> Duration {
        self.queue.clear();
        let (was_paused, playing) = (std::mem::take(&mut self.is_paused), self.playing.take());
        let position = |(began, before, lasts): (Instant, Duration, Duration)| {
            if was_paused { before } else { (before + began.elapsed()).min(lasts) }
        };
        self.played + playing.map(position).unwrap_or_default()
    }

    fn restart_clock(&mut self) {
        self.played = Duration::ZERO;
    }
}

/// A conversation with people in it.
pub struct MadeUp {
    pub talk: Talk<Line>,
    told: UnboundedReceiver<Told>,
    /// True while the voice takes long: its sound arrives later.
    pub is_slow: bool,
    late: VecDeque<Told>,
    reports: UnboundedReceiver<Report>,
    pub hearing: Arc<Hearing>,
    pub speaking: Arc<Speaking>,
    /// The beginnings of what can be heard.
    pub heard: Arc<Mutex<Vec<Instant>>>,
    /// What was said.
    pub said: Vec<String>,
    /// Whether each of it was for the bot.
    pub for_bot: Vec<bool>,
    /// How far replies were heard: the words, and whether that is all.
    pub reach: Vec<(String, bool)>,
    /// What was said of replies, and whether that was all.
    pub uttered: Vec<(String, bool)>,
    /// How often it was told that the voice fails.
    pub voiceless: usize,
    /// How often it was told that a chosen voice fails.
    pub chosen_away: usize,
    /// How often it was told that recognition fails.
    pub cannot_hear: usize,
    /// Who speaks.
    pub speaker: &'static str,
}

/// Returns engines whose voice fails at sentences with these words.
pub fn engines(fails_at: &str) -> (Engines, Arc<Hearing>, Arc<Speaking>) {
    let hearing = Arc::<Hearing>::default();
    let voice = |id: &str, language: &str| Voice {
        id: id.into(),
        language: language.into(),
        rate: RATE,
        engine: "made-up".into(),
    };
    let speaking = Arc::new(Speaking {
        voices: vec![voice("joe", "en"), voice("ann", "en"), voice("karl", "de")],
        styles: Mutex::default(),
        fails_at: Mutex::new(fails_at.into()),
    });
    let engines = Engines::new(hearing.clone(), speaking.clone(), Style::of("joe"), Arc::new(|| Box::new(Loud)));
    (engines, hearing, speaking)
}

pub fn id(name: &str) -> MessageId {
    MessageId::new(name).unwrap()
}

/// Returns the id of a person in the room.
pub fn person(name: &str) -> PersonId {
    PersonId::new(name.to_lowercase()).unwrap()
}

impl MadeUp {
    /// Opens a room with one person in it.
    pub async fn open() -> Self {
        Self::open_with("").await
    }

    /// Opens such a room with a voice that fails at sentences with these words.
    pub async fn open_with(fails_at: &str) -> Self {
        Self::open_by(engines(fails_at)).await
    }

    /// Opens such a room with these engines.
    pub async fn open_by((engines, hearing, speaking): (Engines, Arc<Hearing>, Arc<Speaking>)) -> Self {
        let line = Line::default();
        let heard = line.heard.clone();
        let (report, reports) = unbounded_channel();
        let settings = Settings { names: vec!["Azera".into()], ..Settings::default() };
        let (talk, told) = Talk::begin(engines, settings, line, report);
        let mut made_up = Self {
            talk,
            told,
            is_slow: false,
            late: VecDeque::new(),
            reports,
            hearing,
            speaking,
            heard,
            said: Vec::new(),
            for_bot: Vec::new(),
            reach: Vec::new(),
            uttered: Vec::new(),
            voiceless: 0,
            chosen_away: 0,
            cannot_hear: 0,
            speaker: "Ann",
        };
        made_up.join("Ann").await;
        made_up
    }

    /// Lets a person come who may be heard.
    pub async fn join(&mut self, name: &str) {
        let person = person(name);
        self.talk.request(Request::Joined { person, name: name.into(), decision: Some(true) }).await;
    }

    /// Lets time pass, in which the person speaks or not.
    pub async fn pass(&mut self, time: Duration, speaks: bool) {
        let until = Instant::now() + time;
        let mut frames = tokio::time::interval_at(Instant::now() + FRAME, FRAME);
        while Instant::now() < until {
            frames.tick().await;
            if speaks {
                let person = person(self.speaker);
                let stream = StreamId(self.speaker.bytes().map(u64::from).sum());
                let samples = Box::new([0.9; FRAME_SAMPLES]);
                self.talk.event(Event::Frame { stream, person, samples, probability: 0.9 }).await;
            }
            self.talk.tick().await;
            loop {
                while let Some(told) = self.next_told() {
                    self.talk.told(told).await;
                }
                if !self.talk.player().advance() {
                    break;
                }
                self.talk.speak_on().await;
            }
            self.read();
        }
    }

    /// Lets the person say something, and waits for the end of the utterance.
    pub async fn say(&mut self, words: &str, lasts: Duration) {
        words.clone_into(&mut self.hearing.0.lock().unwrap());
        self.pass(lasts, true).await;
        self.pass(Duration::from_millis(450), false).await;
    }

    /// Returns what the engines tell next, in order.
    fn next_told(&mut self) -> Option<Told> {
        while let Ok(told) = self.told.try_recv() {
            match told {
                Told::Made(..) | Told::SentenceMade(_) | Told::Failed { .. } => self.late.push_back(told),
                other => return Some(other),
            }
        }
        if self.is_slow { None } else { self.late.pop_front() }
    }

    fn read(&mut self) {
        while let Ok(report) = self.reports.try_recv() {
            match report {
                Report::Said(said, _) => {
                    self.said.push(said.text.as_str().to_owned());
                    self.for_bot.push(said.is_for_bot);
                }
                Report::Heard { heard, is_whole, .. } => self.reach.push((heard, is_whole)),
                Report::Uttered { heard, is_whole, .. } => self.uttered.push((heard, is_whole)),
                Report::Voiceless => self.voiceless += 1,
                Report::ChosenVoiceAway => self.chosen_away += 1,
                Report::CannotHear => self.cannot_hear += 1,
                _ => {}
            }
        }
    }
}
