//! A call: packets of a voice server in, sound out. The conversation itself is in [`azera_voice_call`].

use std::collections::HashMap;
use std::time::Duration;

use azera_types::PersonId;
use azera_voice_api::Error;
use azera_voice_call::{Engines, OpenActivity, Request as TalkRequest, Talk};
use azera_voice_room::{Event, Settings, StreamId};
use songbird::driver::{Bitrate, DecodeMode, MixMode};
use songbird::{Config, Driver};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::call::{Counts, Lost, RecordRequest, Report, Request};
use crate::capture::{Capture, Captured, Connection, Disconnected};
use crate::driver::CallDriver;
use crate::ear::Ear;
use crate::player::CallPlayer;
use crate::recorder::{OwnTap, RecordingEnd, Tape};

/// Bits of a second of the bot's voice.
const BITRATE: i32 = 64_000;

/// Time after which somebody who speaks must be heard.
const DEAF: Duration = Duration::from_secs(8);

/// Most streams that are kept.
const MAX_STREAMS: usize = 100;

/// What songbird tells the session.
pub(crate) enum Inbox {
    /// Discord said that somebody speaks.
    Speaks,
    Connected,
    Disconnected(Disconnected, Connection),
    /// A piece was played.
    Over(u64),
}

struct Session {
    talk: Talk<CallPlayer>,
    activity: OpenActivity,
    driver: CallDriver,
    capture: Capture,
    ears: HashMap<StreamId, (PersonId, Ear)>,
    /// Packets decoded in streams that are gone.
    decoded: u64,
    /// Since when somebody speaks without a packet.
    unheard_since: Option<Duration>,
    /// True once it was reported that nothing can be decrypted in this connection.
    is_deaf: bool,
    /// The connection that is made or stands: see [`crate::Server::link`].
    link: u64,
    /// The same connection, as songbird names it.
    connection: Option<Connection>,
    /// True once it stands.
    is_connected: bool,
    person_of: fn(u64) -> Option<PersonId>,
    reports: mpsc::UnboundedSender<Report>,
    /// The way of the bot's own sound to a recorder.
    own: OwnTap,
    tape: Option<Tape>,
    /// Recorders that complete their files.
    ending: JoinSet<()>,
}

/// Starts the driver of a call.
///
/// # Errors
/// See [`CallDriver::start`].
pub(crate) fn start_driver() -> Result<CallDriver, Error> {
    let driver = CallDriver::start(Config::default().decode_mode(DecodeMode::Decrypt).mix_mode(MixMode::Mono))?;
    driver.drive(|driver| driver.set_bitrate(Bitrate::Bits(BITRATE)));
    Ok(driver)
}

/// Runs a call until it is closed.
pub(crate) async fn run(
    driver: CallDriver,
    engines: Engines,
    settings: Settings,
    person_of: fn(u64) -> Option<PersonId>,
    mut requests: mpsc::UnboundedReceiver<Request>,
    reports: mpsc::UnboundedSender<Report>,
) {
    let (inbox, mut told) = mpsc::unbounded_channel();
    let (capture, mut packets) = Capture::new(inbox.clone());
    driver.drive(|driver| capture.listen(driver));
    let (said, mut talk_reports) = mpsc::unbounded_channel();
    let activity = engines.activity.clone();
    let own = OwnTap::default();
    let player = CallPlayer::new(driver.clone(), inbox, own.clone());
    let (talk, mut talk_told) = Talk::begin(engines, settings, player, said);
    let mut session = Session {
        talk,
        activity,
        driver,
        capture,
        ears: HashMap::new(),
        decoded: 0,
        unheard_since: None,
        is_deaf: false,
        link: 0,
        connection: None,
        is_connected: false,
        person_of,
        reports,
        own,
        tape: None,
        ending: JoinSet::new(),
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
            Some(told) = talk_told.recv() => session.talk.told(told).await,
            Some(report) = talk_reports.recv() => session.report(Report::Room(report)),
            Some(packet) = packets.recv() => session.packet(packet).await,
            () = tokio::time::sleep_until(wake) => session.tick().await,
        }
    }
    session.talk.end().await;
    while let Ok(report) = talk_reports.try_recv() {
        session.report(Report::Room(report));
    }
    session.driver.drive(Driver::leave);
    let is_recording = session.tape.is_some();
    session.end_recording();
    while session.ending.join_next().await.is_some() {}
    if is_recording {
        session.report(Report::RecordingEnded(RecordingEnd::CallOver));
    }
    let counts = session.counts();
    tracing::info!(counts.admitted, counts.refused, counts.decoded, "a call is over");
}

impl Session {
    /// Returns when to look again, if nothing happens before.
    fn deadline(&self) -> Instant {
        /// The longest sleep.
        const IDLE: Duration = Duration::from_secs(3_600);
        let waiting = self.ears.values().filter_map(|(_, ear)| ear.deadline());
        let deaf = self.unheard_since.map(|since| since + DEAF);
        let next = waiting.chain(self.talk.deadline()).chain(deaf).min();
        self.talk.moment(next.unwrap_or_else(|| self.talk.now() + IDLE))
    }

    fn counts(&self) -> Counts {
        let gate = self.talk.gate();
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
                (self.link, self.is_connected) = (server.link, false);
                let info = server.info();
                self.connection = info.as_ref().map(Connection::of);
                if let Some(info) = info {
                    // The result comes as an event.
                    self.driver.drive(|driver| drop(driver.connect(info)));
                }
            }
            Request::HearsAgain => self.unheard_since = None,
            Request::Talk(request) => {
                if let TalkRequest::Left(person) | TalkRequest::Decided(person, _) = &request {
                    self.forget(person);
                }
                self.talk.request(request).await;
            }
            Request::Counts(answer) => {
                // Nobody may wait for it any more.
                answer.send(self.counts()).ok();
            }
            Request::Record(request) => self.record(request),
            Request::Close => {}
        }
    }

    fn record(&mut self, request: RecordRequest) {
        match request {
            RecordRequest::Part(part, most) => {
                let reports = self.reports.clone();
                let own = self.own.clone();
                // Nobody listens to a call that is being closed.
                let ended = move |why| drop(reports.send(Report::RecordingEnded(why)));
                self.tape.get_or_insert_with(|| Tape::begin(most, own, ended)).part(*part);
            }
            RecordRequest::Run(is_running) => {
                if let Some(tape) = &mut self.tape {
                    tape.run(is_running);
                }
            }
            RecordRequest::End => self.end_recording(),
        }
    }

    fn end_recording(&mut self) {
        if let Some(tape) = self.tape.take() {
            while self.ending.try_join_next().is_some() {}
            let recorder = tape.end();
            self.ending.spawn(async move { drop(recorder.await) });
        }
    }

    async fn told(&mut self, told: Inbox) {
        match told {
            Inbox::Speaks => {
                let now = self.talk.now();
                self.unheard_since.get_or_insert(now);
            }
            Inbox::Connected => {
                self.is_connected = true;
                tracing::info!("connected to a voice channel");
            }
            Inbox::Disconnected(gone, connection) => {
                // What stood before another connection was asked for is the one before. So is one of another session.
                if self.connection.as_ref() == Some(&connection) && gone.has_stood == self.is_connected {
                    self.is_connected = false;
                    let Disconnected { why, was_cut, .. } = gone;
                    self.report(Report::Lost(Lost { why, was_cut, link: self.link }));
                }
            }
            Inbox::Over(number) => {
                self.talk.player().over(number);
                self.talk.speak_on().await;
            }
        }
    }

    async fn packet(&mut self, captured: Captured) {
        // Nobody is heard by a packet of an unknown person.
        if captured.user.is_some() {
            self.unheard_since = None;
        }
        let at = self.talk.time_of(captured.at);
        let person = captured.user.and_then(self.person_of);
        if let Some(tape) = &mut self.tape {
            tape.hear(captured.stream, person.as_ref(), &captured.packet, captured.at);
        }
        let Some(sound) = self.talk.admit(person.as_ref(), captured.packet) else { return };
        let Some(person) = person else { return };
        if !self.ears.contains_key(&captured.stream) && !self.listen_to(captured.stream, person) {
            return;
        }
        if let Some((_, ear)) = self.ears.get_mut(&captured.stream) {
            ear.push(sound, at);
            if ear.is_garbled && !self.is_deaf {
                self.is_deaf = true;
                self.report(Report::Deaf(self.link));
            }
        }
        self.hear(captured.stream).await;
    }

    /// Prepares an ear for a new stream; returns false if there is none.
    fn listen_to(&mut self, stream: StreamId, person: PersonId) -> bool {
        if self.ears.len() >= MAX_STREAMS {
            return false;
        }
        match Ear::new((self.activity)()) {
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
        let now = self.talk.now();
        let Some((person, ear)) = self.ears.get_mut(&stream) else { return };
        let person = person.clone();
        for (samples, probability) in ear.hear(now) {
            self.talk.event(Event::Frame { stream, person: person.clone(), samples, probability }).await;
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
        let now = self.talk.now();
        if self.unheard_since.is_some_and(|since| now.saturating_sub(since) >= DEAF) {
            self.unheard_since = None;
            self.report(Report::Deaf(self.link));
        }
        self.talk.tick().await;
    }
}
