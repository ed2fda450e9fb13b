//! A call: packets in, recognised words out; replies in, sound out.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use azera_types::PersonId;
use azera_voice_api::{Audio, Transcript};
use azera_voice_room::{Action, Event, RecognitionId, Room, Settings, StreamId};
use songbird::driver::{Bitrate, DecodeMode, MixMode};
use songbird::{Config, Driver};
use tokio::sync::{Semaphore, mpsc};

use crate::call::{Counts, Engines, Report, Request};
use crate::capture::{Capture, Captured};
use crate::ear::Ear;
use crate::mouth::Mouth;
use crate::player::Player;

/// Bits of a second of the bot's voice.
const BITRATE: i32 = 64_000;

/// Time after which somebody who speaks must be heard.
const DEAF: Duration = Duration::from_secs(8);

/// Most streams that are kept.
const MAX_STREAMS: usize = 100;

/// What the parts of a call tell it.
pub(crate) enum Inbox {
    /// Discord said that somebody speaks.
    Speaks,
    Connected,
    Disconnected(String),
    Recognised(RecognitionId, Option<Transcript>),
    /// A piece of sound of a sentence.
    Made(u64, Audio),
    SentenceMade(u64),
    /// A piece was played.
    Over(u64),
}

struct Session {
    start: Instant,
    room: Room,
    engines: Engines,
    driver: Driver,
    capture: Capture,
    ears: HashMap<StreamId, (PersonId, Ear)>,
    /// Packets decoded in streams that are gone.
    decoded: u64,
    mouth: Mouth,
    player: Player,
    recognising: HashMap<RecognitionId, Arc<AtomicBool>>,
    /// One recognition at a time leaves room for the voice.
    turns: Arc<Semaphore>,
    /// When the last question to the bot ended, until its answer begins.
    asked_until: Option<Duration>,
    /// Since when somebody speaks without a packet.
    unheard_since: Option<Duration>,
    /// True once it was reported that nothing can be decrypted in this connection.
    is_deaf: bool,
    person_of: fn(u64) -> Option<PersonId>,
    inbox: mpsc::UnboundedSender<Inbox>,
    reports: mpsc::UnboundedSender<Report>,
}

/// Runs a call until it is closed.
pub(crate) async fn run(
    engines: Engines,
    settings: Settings,
    person_of: fn(u64) -> Option<PersonId>,
    mut requests: mpsc::UnboundedReceiver<Request>,
    reports: mpsc::UnboundedSender<Report>,
) {
    let (inbox, mut told) = mpsc::unbounded_channel();
    let (capture, mut packets) = Capture::new(inbox.clone());
    let mut driver = Driver::new(Config::default().decode_mode(DecodeMode::Decrypt).mix_mode(MixMode::Mono));
    driver.set_bitrate(Bitrate::Bits(BITRATE));
    capture.listen(&mut driver);
    let mut session = Session {
        start: Instant::now(),
        room: Room::new(settings),
        driver,
        capture,
        ears: HashMap::new(),
        decoded: 0,
        mouth: Mouth::new(engines.clone(), inbox.clone()),
        player: Player::new(inbox.clone()),
        recognising: HashMap::new(),
        turns: Arc::new(Semaphore::new(1)),
        asked_until: None,
        unheard_since: None,
        is_deaf: false,
        engines,
        person_of,
        inbox,
        reports,
    };
    loop {
        let wake = session.deadline();
        tokio::select! {
            // Packets come most often, and must not keep requests away.
            request = requests.recv() => match request {
                None | Some(Request::Close) => break,
                Some(request) => session.request(request).await,
            },
            Some(told) = told.recv() => session.told(told).await,
            Some(packet) = packets.recv() => session.packet(packet).await,
            () = tokio::time::sleep_until(wake.into()) => session.tick().await,
        }
    }
    session.driver.leave();
    let counts = session.counts();
    tracing::info!(counts.admitted, counts.refused, counts.decoded, "a call is over");
}

impl Session {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns when to look again, if nothing happens before.
    fn deadline(&self) -> Instant {
        /// The longest sleep.
        const IDLE: Duration = Duration::from_secs(3_600);
        let now = self.now();
        let waiting = self.ears.values().filter_map(|(_, ear)| ear.deadline());
        let deaf = self.unheard_since.map(|since| since + DEAF);
        let next = waiting.chain(self.room.deadline(now)).chain(deaf).min().unwrap_or(now + IDLE);
        self.start + next
    }

    fn counts(&self) -> Counts {
        let gate = self.room.gate();
        let decoded = self.decoded + self.ears.values().map(|(_, ear)| ear.decoded).sum::<u64>();
        Counts { admitted: gate.admitted(), refused: gate.dropped(), decoded }
    }

    fn report(&self, report: Report) {
        // Nobody listens to a call that is being closed.
        self.reports.send(report).ok();
    }

    async fn request(&mut self, request: Request) {
        match request {
            Request::Server(server) => {
                self.capture.forget();
                self.forget_all();
                (self.unheard_since, self.is_deaf) = (None, false);
                if let Some(info) = server.info() {
                    // The result comes as an event.
                    drop(self.driver.connect(info));
                }
            }
            Request::Joined { person, name, decision } => {
                self.event(Event::Joined { person, name, decision }).await;
            }
            Request::Left(person) => {
                self.forget(&person);
                self.event(Event::Left(person)).await;
            }
            Request::Decided(person, decision) => {
                self.forget(&person);
                self.event(Event::Decided(person, decision)).await;
            }
            Request::Piece(reply, text) => self.mouth.piece(&reply, &text),
            Request::Retracted(reply) => self.mouth.retracted(&reply),
            Request::Whole(reply, text) => self.mouth.whole(&reply, &text),
            Request::Say(text) => self.mouth.say(&text),
            Request::Stop => {
                self.stop_speaking().await;
                self.event(Event::Silent).await;
            }
            Request::Counts(answer) => {
                // Nobody may wait for it any more.
                answer.send(self.counts()).ok();
            }
            Request::Close => {}
        }
        self.speak_on().await;
    }

    async fn told(&mut self, told: Inbox) {
        match told {
            Inbox::Speaks => {
                let now = self.now();
                self.unheard_since.get_or_insert(now);
            }
            Inbox::Connected => tracing::info!("connected to a voice channel"),
            Inbox::Disconnected(why) => self.report(Report::Lost(why)),
            Inbox::Recognised(id, transcript) => {
                self.recognising.remove(&id);
                self.event(Event::Recognised(id, transcript)).await;
            }
            Inbox::Made(number, audio) => {
                if let Some(audio) = self.mouth.made(number, audio) {
                    if let Some(asked) = self.asked_until.take() {
                        let waited = self.now().saturating_sub(asked);
                        tracing::debug!(ms = waited.as_millis(), "the first sound of an answer after its question");
                    }
                    self.player.push(&mut self.driver, audio);
                }
            }
            Inbox::SentenceMade(number) => self.mouth.sentence_made(number),
            Inbox::Over(number) => self.player.over(&mut self.driver, number),
        }
        self.speak_on().await;
    }

    async fn packet(&mut self, captured: Captured) {
        self.unheard_since = None;
        let at = captured.at.saturating_duration_since(self.start);
        let person = captured.user.and_then(self.person_of);
        let Some(sound) = self.room.admit(person.as_ref(), captured.packet) else { return };
        let Some(person) = person else { return };
        if !self.ears.contains_key(&captured.stream) && !self.listen_to(captured.stream, person) {
            return;
        }
        if let Some((_, ear)) = self.ears.get_mut(&captured.stream) {
            ear.push(sound, at);
            if ear.is_garbled && !self.is_deaf {
                self.is_deaf = true;
                self.report(Report::Deaf);
            }
        }
        self.hear(captured.stream).await;
    }

    /// Prepares an ear for a new stream; returns false if there is none.
    fn listen_to(&mut self, stream: StreamId, person: PersonId) -> bool {
        if self.ears.len() >= MAX_STREAMS {
            return false;
        }
        match Ear::new((self.engines.activity)()) {
            Ok(ear) => {
                self.ears.insert(stream, (person, ear));
                true
            }
            Err(error) => {
                tracing::error!(%error, "cannot decode a stream");
                false
            }
        }
    }

    async fn hear(&mut self, stream: StreamId) {
        let now = self.now();
        let Some((person, ear)) = self.ears.get_mut(&stream) else { return };
        let person = person.clone();
        for (samples, probability) in ear.hear(now) {
            self.event(Event::Frame { stream, person: person.clone(), samples, probability }).await;
        }
    }

    /// Drops the streams of a person.
    fn forget(&mut self, person: &PersonId) {
        let gone = self.ears.extract_if(|_, (whose, _)| whose == person);
        self.decoded += gone.map(|(_, (_, ear))| ear.decoded).sum::<u64>();
    }

    /// Drops all streams.
    fn forget_all(&mut self) {
        self.decoded += self.ears.drain().map(|(_, (_, ear))| ear.decoded).sum::<u64>();
    }

    async fn tick(&mut self) {
        let waiting: Vec<StreamId> =
            self.ears.iter().filter(|(_, (_, ear))| ear.deadline().is_some()).map(|(id, _)| *id).collect();
        for stream in waiting {
            self.hear(stream).await;
        }
        let now = self.now();
        if self.unheard_since.is_some_and(|since| now.saturating_sub(since) >= DEAF) {
            self.unheard_since = None;
            self.report(Report::Deaf);
        }
        self.event(Event::Tick).await;
    }

    async fn event(&mut self, event: Event) {
        let now = self.now();
        for action in self.room.on(now, event) {
            self.act(action).await;
        }
    }

    async fn act(&mut self, action: Action) {
        match action {
            Action::Recognise(id, audio) => self.recognise(id, audio),
            Action::Cancel(id) => {
                if let Some(is_wanted) = self.recognising.remove(&id) {
                    is_wanted.store(false, Ordering::Release);
                }
            }
            Action::Said(said) => {
                let ago = self.now().saturating_sub(said.began);
                if said.is_for_bot {
                    self.asked_until = Some(said.ended);
                    let waited = self.now().saturating_sub(said.ended);
                    tracing::debug!(ms = waited.as_millis(), "an utterance ended and was recognised");
                }
                self.report(Report::Said(said, ago));
            }
            Action::Pause => self.player.pause(),
            Action::Resume => self.player.resume(&mut self.driver),
            Action::Stop => self.stop_speaking().await,
            Action::Ask(person) => self.report(Report::Ask(person)),
            Action::Leave => self.report(Report::Alone),
        }
    }

    fn recognise(&mut self, id: RecognitionId, audio: Audio) {
        let is_wanted = Arc::new(AtomicBool::new(true));
        self.recognising.insert(id, is_wanted.clone());
        let (recogniser, inbox, turns) = (self.engines.recogniser.clone(), self.inbox.clone(), self.turns.clone());
        tokio::spawn(async move {
            let Ok(_turn) = turns.acquire().await else { return };
            if !is_wanted.load(Ordering::Acquire) {
                return;
            }
            let recognised = tokio::task::spawn_blocking(move || {
                recogniser.transcribe(&audio, &|| is_wanted.load(Ordering::Acquire))
            });
            let transcript = match recognised.await {
                Ok(Ok(transcript)) => Some(transcript),
                Ok(Err(azera_voice_api::Error::Cancelled)) => return,
                Ok(Err(error)) => {
                    tracing::error!(%error, "cannot recognise what was said");
                    None
                }
                Err(_) => None,
            };
            inbox.send(Inbox::Recognised(id, transcript)).ok();
        });
    }

    /// Stops speaking, and reports what was heard of each reply.
    async fn stop_speaking(&mut self) {
        let played = self.player.stop().await;
        for (at, speech) in self.mouth.stop().into_iter().enumerate() {
            let position = if at == 0 { played } else { Duration::ZERO };
            if let Some(reply) = speech.reply {
                let heard = speech.script.heard(position).text;
                self.report(Report::Cut { reply, heard });
            }
        }
        self.player.restart_clock();
    }

    /// Makes and plays what is still to be said.
    async fn speak_on(&mut self) {
        while self.mouth.end_present(self.player.is_done()) {
            self.player.restart_clock();
            if self.mouth.is_silent() {
                self.event(Event::Silent).await;
            }
        }
        if let Some(words) = self.mouth.go_on(self.player.ahead()) {
            self.event(Event::Saying(words)).await;
        }
    }
}
