//! Writes a call into a file while it runs, on a thread of its own.
//!
//! A [`Tape`] is the session's side. It admits packets of the people who are in the present part, and of nobody else,
//! and only while it runs.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use azera_types::PersonId;
use azera_voice_call_recordings::NewRecording;
use azera_voice_opus::{NOTE_RATE, NoteWriter};
use azera_voice_room::{Gate, SealedPacket, Sound, StreamId};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::mixer::{Mixer, OwnEvent};

/// How often sound is written.
const STEP: Duration = Duration::from_millis(100);

/// Samples after which it is checked whether the recording still stands: one second.
const CHECK: u64 = 48_000;

/// Most packets that wait for a slow disk: ten seconds of ten people.
const MAX_WAITING: usize = 5_000;

/// A part of a recording, in which the same people are there all the time.
pub struct RecordedPart {
    /// The people, who all agreed.
    pub people: BTreeSet<PersonId>,
    /// Where it is kept.
    pub recording: NewRecording,
}

/// Why a recording ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingEnd {
    /// It lasts as long as a recording may.
    TooLong,
    /// There is no space for more.
    NoSpace,
    /// It was removed while it was being made.
    Removed,
    /// The call is over.
    CallOver,
    /// The disk failed.
    Failed(String),
}

/// What the recorder is told.
enum Told {
    /// Keep a part from now on; the one before is over.
    Part(Box<RecordedPart>),
    /// Go on with the part.
    Go,
    /// Keep nothing from now on.
    Pause,
    Sound(StreamId, Sound),
    Own(OwnEvent),
    End,
}

type Message = (Instant, Told);

/// The way on which the bot's own sound reaches a recorder, if there is one.
#[derive(Clone, Default)]
pub(crate) struct OwnTap(Arc<Mutex<Option<Sender<Message>>>>);

impl OwnTap {
    fn set(&self, told: Option<Sender<Message>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = told;
    }

    /// Tells what happens to the bot's own sound. The event is made only if somebody records.
    pub(crate) fn tell(&self, event: impl FnOnce() -> OwnEvent) {
        if let Some(told) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // A recorder that ended takes nothing.
            told.send((Instant::now(), Told::Own(event()))).ok();
        }
    }
}

/// The session's side of a recorder.
pub(crate) struct Tape {
    gate: Gate,
    people: BTreeSet<PersonId>,
    is_running: bool,
    /// Since when it keeps something. Packets may wait in a queue, and older ones are not of this time.
    since: Instant,
    told: Sender<Message>,
    waiting: Arc<AtomicUsize>,
    own: OwnTap,
    recorder: JoinHandle<()>,
}

impl Tape {
    /// Starts a recorder, which keeps at most so much sound. `ended` is called if it ends by itself.
    pub(crate) fn begin(most: Duration, own: OwnTap, ended: impl FnOnce(RecordingEnd) + Send + 'static) -> Self {
        let (told, heard) = mpsc::channel();
        let waiting = Arc::<AtomicUsize>::default();
        let recorder = Recorder {
            start: Instant::now(),
            waiting: waiting.clone(),
            most: NOTE_RATE.samples(most) as u64,
            kept: 0,
            mixer: None,
            part: None,
        };
        let recorder = tokio::task::spawn_blocking(move || {
            if let Err(why) = recorder.run(&heard) {
                ended(why);
            }
        });
        own.set(Some(told.clone()));
        let since = Instant::now();
        Self { gate: Gate::default(), people: BTreeSet::new(), is_running: false, since, told, waiting, own, recorder }
    }

    fn tell(&self, what: Told, at: Instant) {
        // A recorder that ended takes nothing, and said so. Nothing of a part that it does not take stays.
        self.told.send((at, what)).ok();
    }

    /// Keeps a part from now on.
    pub(crate) fn part(&mut self, part: RecordedPart) {
        self.gate = Gate::default();
        for person in &part.people {
            self.gate.decide(person.clone(), Some(true));
        }
        self.people = part.people.clone();
        self.is_running = true;
        self.since = Instant::now();
        self.tell(Told::Part(Box::new(part)), self.since);
    }

    /// Goes on after a pause, or pauses. Nothing of a pause is kept.
    pub(crate) fn run(&mut self, is_running: bool) {
        let now = Instant::now();
        self.is_running = is_running && !self.people.is_empty();
        self.since = now;
        self.tell(if self.is_running { Told::Go } else { Told::Pause }, now);
    }

    /// Keeps a packet, if the person who speaks is in the part and it ran when the packet was captured.
    pub(crate) fn hear(&mut self, stream: StreamId, person: Option<&PersonId>, packet: &SealedPacket, at: Instant) {
        if !self.is_running || at < self.since || self.waiting.load(Ordering::Relaxed) >= MAX_WAITING {
            return;
        }
        if let Some(sound) = self.gate.admit(person, packet.clone()) {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            self.tell(Told::Sound(stream, sound), at);
        }
    }

    /// Ends the recording. What is returned is done once the file is whole.
    pub(crate) fn end(self) -> JoinHandle<()> {
        self.own.set(None);
        self.tell(Told::End, Instant::now());
        self.recorder
    }
}

/// A part that is being written.
struct Writing {
    recording: NewRecording,
    writer: NoteWriter<File>,
    /// Samples that were written, and after how many it is checked next.
    samples: u64,
    check_at: u64,
}

struct Recorder {
    start: Instant,
    waiting: Arc<AtomicUsize>,
    /// The most samples of all parts together, and how many there are.
    most: u64,
    kept: u64,
    /// The sound, while it runs.
    mixer: Option<Mixer>,
    part: Option<Writing>,
}

impl Recorder {
    fn run(mut self, heard: &Receiver<Message>) -> Result<(), RecordingEnd> {
        let ended = loop {
            let told = match heard.recv_timeout(STEP) {
                Ok(told) => Some(told),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            };
            let result = match told {
                Some((_, Told::End)) => break Ok(()),
                Some((at, told)) => self.take(told, at.saturating_duration_since(self.start)),
                None => Ok(()),
            };
            if let Err(why) = result.and_then(|()| self.write()) {
                break Err(why);
            }
        };
        let now = self.start.elapsed();
        let finished = self.finish_part(now);
        ended.and(finished)
    }

    fn take(&mut self, told: Told, at: Duration) -> Result<(), RecordingEnd> {
        match told {
            Told::Part(part) => {
                self.finish_part(at)?;
                let writer =
                    part.recording.file().map_err(failed).and_then(|file| {
                        NoteWriter::new(file).map_err(|error| RecordingEnd::Failed(error.to_string()))
                    })?;
                self.part = Some(Writing { recording: part.recording, writer, samples: 0, check_at: CHECK });
                self.mixer = Some(Mixer::begin(at));
            }
            Told::Go => {
                if self.mixer.is_none() && self.part.is_some() {
                    self.mixer = Some(Mixer::begin(at));
                }
            }
            // What was said in the last moment is dropped, too: it may be of somebody who agrees no longer.
            Told::Pause => self.mixer = None,
            Told::Sound(stream, sound) => {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                if let Some(mixer) = &mut self.mixer {
                    mixer.sound(stream, sound, at);
                }
            }
            Told::Own(event) => {
                if let Some(mixer) = &mut self.mixer {
                    mixer.own(event, at);
                }
            }
            Told::End => {}
        }
        Ok(())
    }

    /// Writes the sound that is whole.
    fn write(&mut self) -> Result<(), RecordingEnd> {
        let now = self.start.elapsed();
        let (Some(mixer), Some(part)) = (&mut self.mixer, &mut self.part) else { return Ok(()) };
        let sound = mixer.take(now);
        self.kept += sound.len() as u64;
        part.write(&sound)?;
        if part.samples >= part.check_at {
            part.check_at = part.samples + CHECK;
            part.check()?;
        }
        if self.kept >= self.most { Err(RecordingEnd::TooLong) } else { Ok(()) }
    }

    /// Completes the present part.
    fn finish_part(&mut self, at: Duration) -> Result<(), RecordingEnd> {
        let rest = self.mixer.take().map(|mixer| mixer.finish(at)).unwrap_or_default();
        let Some(mut part) = self.part.take() else { return Ok(()) };
        let room = usize::try_from(self.most.saturating_sub(self.kept)).unwrap_or(usize::MAX);
        let rest = rest.get(..rest.len().min(room)).unwrap_or_default();
        self.kept += rest.len() as u64;
        part.write(rest)?;
        let lasts = part.writer.finish().map_err(|error| RecordingEnd::Failed(error.to_string()))?;
        part.recording.finish(lasts).map_err(failed)?;
        Ok(())
    }
}

impl Writing {
    fn write(&mut self, sound: &[f32]) -> Result<(), RecordingEnd> {
        self.samples += sound.len() as u64;
        self.writer.push(sound).map_err(|error| RecordingEnd::Failed(error.to_string()))
    }

    /// Checks that the recording is still wanted, and that there is space for more.
    fn check(&self) -> Result<(), RecordingEnd> {
        match self.recording.bytes().map_err(failed)? {
            None => Err(RecordingEnd::Removed),
            Some(bytes) if bytes >= self.recording.max_bytes() => Err(RecordingEnd::NoSpace),
            Some(_) => Ok(()),
        }
    }
}

fn failed(error: std::io::Error) -> RecordingEnd {
    if error.kind() == std::io::ErrorKind::NotFound {
        return RecordingEnd::Removed;
    }
    RecordingEnd::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use azera_types::{ChatId, Timestamp};
    use azera_voice_api::{Audio, CallRecordings as _, SampleRate};
    use azera_voice_call_recordings::{About, RecordingFolder};
    use tokio::sync::oneshot;

    use super::*;

    fn ann() -> PersonId {
        PersonId::new("ann").unwrap()
    }

    fn part(folder: &RecordingFolder) -> RecordedPart {
        let about = About {
            chat: ChatId::new("parlour").unwrap(),
            realm: None,
            place: "Parlour".to_owned(),
            began: Timestamp::from_second(1_000).unwrap(),
            milliseconds: 0,
            ended: None,
            people: vec![(ann(), "Ann".to_owned())],
        };
        RecordedPart { people: BTreeSet::from([ann()]), recording: folder.begin(about).unwrap().unwrap() }
    }

    /// Begins a recording, and returns why it ended by itself.
    async fn ended(folder: &RecordingFolder, most: Duration, meanwhile: impl FnOnce(&mut Tape)) -> RecordingEnd {
        let (tell, told) = oneshot::channel();
        let mut tape = Tape::begin(most, OwnTap::default(), move |why| drop(tell.send(why)));
        tape.part(part(folder));
        meanwhile(&mut tape);
        let why = told.await.unwrap();
        tape.end().await.unwrap();
        why
    }

    #[tokio::test]
    async fn a_recording_that_is_as_long_as_it_may_be_ends_and_stays() {
        let there = tempfile::tempdir().unwrap();
        let folder = RecordingFolder::open(there.path(), 1 << 20).unwrap();
        let most = Duration::from_millis(1_200);
        assert_eq!(ended(&folder, most, |_| ()).await, RecordingEnd::TooLong);
        let kept = folder.of(&ann()).unwrap();
        assert!(kept.len() == 1 && kept[0].duration >= most, "{kept:?}");
    }

    #[tokio::test]
    async fn without_space_a_recording_ends_and_another_one_does_not_begin() {
        let there = tempfile::tempdir().unwrap();
        let folder = RecordingFolder::open(there.path(), 300).unwrap();
        // A tone has more bytes than silence.
        let samples = (0..80_000).map(|at| (at as f32 * 0.2).sin() * 0.5).collect();
        let tone = Audio { rate: SampleRate(16_000), samples };
        let play = |tape: &mut Tape| tape.own.tell(|| OwnEvent::Play(tone));
        assert_eq!(ended(&folder, Duration::from_secs(60), play).await, RecordingEnd::NoSpace);
        assert_eq!(folder.of(&ann()).unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_recording_that_was_removed_ends_and_does_not_come_back() {
        let there = tempfile::tempdir().unwrap();
        let folder = RecordingFolder::open(there.path(), 1 << 20).unwrap();
        let forget = azera_voice_api::ForgottenCalls::Person(ann());
        let why = ended(&folder, Duration::from_secs(60), |_| assert_eq!(folder.forget(&forget).unwrap(), 1)).await;
        assert_eq!(why, RecordingEnd::Removed);
        assert_eq!(std::fs::read_dir(there.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_part_that_comes_after_the_end_leaves_no_names() {
        let there = tempfile::tempdir().unwrap();
        let folder = RecordingFolder::open(there.path(), 1 << 20).unwrap();
        let (tell, told) = oneshot::channel();
        let mut tape = Tape::begin(Duration::ZERO, OwnTap::default(), move |why| drop(tell.send(why)));
        tape.part(part(&folder));
        assert_eq!(told.await.unwrap(), RecordingEnd::TooLong);
        tape.part(part(&folder));
        tape.end().await.unwrap();
        assert_eq!(std::fs::read_dir(there.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn nothing_of_others_and_nothing_of_a_pause_is_kept() {
        let there = tempfile::tempdir().unwrap();
        let folder = RecordingFolder::open(there.path(), 1 << 20).unwrap();
        let mut tape = Tape::begin(Duration::from_secs(60), OwnTap::default(), |_| ());
        let packet = || SealedPacket::new(1, 960, vec![0xf8, 0xff, 0xfe]);
        tape.hear(StreamId(1), Some(&ann()), &packet(), Instant::now());
        assert_eq!(tape.gate.admitted(), 0, "it does not run yet");
        tape.part(part(&folder));
        let bob = PersonId::new("bob").unwrap();
        tape.hear(StreamId(1), Some(&ann()), &packet(), Instant::now());
        tape.hear(StreamId(2), Some(&bob), &packet(), Instant::now());
        tape.hear(StreamId(3), None, &packet(), Instant::now());
        assert_eq!((tape.gate.admitted(), tape.gate.dropped()), (1, 2));
        tape.run(false);
        tape.hear(StreamId(1), Some(&ann()), &packet(), Instant::now());
        assert_eq!(tape.gate.admitted(), 1);
        let during_the_pause = Instant::now().checked_sub(Duration::from_millis(1)).unwrap();
        tape.run(true);
        tape.hear(StreamId(1), Some(&ann()), &packet(), during_the_pause);
        assert_eq!(tape.gate.admitted(), 1, "it waited in a queue");
        tape.hear(StreamId(1), Some(&ann()), &packet(), Instant::now());
        assert_eq!(tape.gate.admitted(), 2);
        tape.part(part(&folder));
        tape.hear(StreamId(1), Some(&ann()), &packet(), during_the_pause);
        assert_eq!(tape.gate.admitted(), 0, "it is older than the part");
        tape.end().await.unwrap();
        assert!(folder.of(&ann()).unwrap().is_empty(), "less than a second is not kept");
    }
}
