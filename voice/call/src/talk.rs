//! The conversation: what was heard goes to the recogniser and the room, and what is to be said goes to the player.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use azera_types::PersonId;
use azera_voice_api::{Audio, Error, Manner, RECOGNITION_RATE};
use azera_voice_room::{Action, Event, Gate, RecognitionId, Room, Said, SealedPacket, Settings, Sound};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use crate::bridge::BRIDGE_AFTER;
use crate::contract::{Engines, Player, Report, Request, Told};
use crate::mouth::{Mouth, Reach};
use crate::waker::Waker;

/// Silence before the first word. Discord's clients swallow the beginning of a sound.
const LEAD: Duration = Duration::from_millis(150);

/// How long the line is kept open for an answer.
const OPEN: Duration = Duration::from_secs(4);

/// A spoken conversation with the people in a room.
pub struct Talk<P> {
    start: Instant,
    room: Room,
    engines: Engines,
    mouth: Mouth,
    player: P,
    recognising: HashMap<RecognitionId, Arc<AtomicBool>>,
    /// One recognition at a time leaves room for the voice.
    turns: Arc<Semaphore>,
    /// When the last question to the bot ended, until its answer begins.
    asked_until: Option<Duration>,
    /// Who asked it.
    asked_by: Option<PersonId>,
    /// The sound for when an answer takes long, once it is made.
    bridge: Option<Audio>,
    /// Loads engines when somebody speaks.
    waker: Waker,
    /// True if that sound was played since the last question.
    is_bridged: bool,
    /// True while silence is played, so that the line is open when the answer begins.
    is_opening: bool,
    /// True while the player is paused, because somebody may be interrupting.
    is_paused: bool,
    /// True if somebody asked the bot to be quiet from now on.
    is_muted: bool,
    /// True while nobody can hear the line.
    is_silenced: bool,
    /// True once the voice failed, until it says a sentence again.
    is_voiceless: bool,
    /// True once recognition failed, until it works again.
    is_deaf: bool,
    /// True once something is to be said: a reply that was stopped goes on, or the next one begins.
    goes_on: bool,
    tell: mpsc::UnboundedSender<Told>,
    reports: mpsc::UnboundedSender<Report>,
}

impl<P: Player> Talk<P> {
    /// Begins a conversation in an empty room. What the engines tell comes from the receiver.
    pub fn begin(
        engines: Engines,
        settings: Settings,
        player: P,
        reports: mpsc::UnboundedSender<Report>,
    ) -> (Self, mpsc::UnboundedReceiver<Told>) {
        let (tell, told) = mpsc::unbounded_channel();
        let talk = Self {
            waker: Waker::begin(&engines, &tell),
            start: Instant::now(),
            room: Room::new(settings),
            mouth: Mouth::new(engines.clone(), tell.clone()),
            engines,
            player,
            recognising: HashMap::new(),
            turns: Arc::new(Semaphore::new(1)),
            asked_until: None,
            asked_by: None,
            bridge: None,
            is_bridged: false,
            is_opening: false,
            is_paused: false,
            is_muted: false,
            is_silenced: false,
            is_voiceless: false,
            is_deaf: false,
            goes_on: false,
            tell,
            reports,
        };
        (talk, told)
    }

    /// Returns the time since the beginning.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the time between the beginning and a moment.
    pub fn time_of(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.start)
    }

    /// Returns the moment of a time since the beginning.
    pub fn moment(&self, time: Duration) -> Instant {
        self.start + time
    }

    /// Returns the player.
    pub fn player(&mut self) -> &mut P {
        &mut self.player
    }

    /// Opens a packet of a person who is present and consented.
    pub fn admit(&mut self, person: Option<&PersonId>, packet: SealedPacket) -> Option<Sound> {
        self.room.admit(person, packet)
    }

    /// Returns the gate with its counts.
    pub fn gate(&self) -> &Gate {
        self.room.gate()
    }

    /// Returns when to call [`Talk::tick`] at the latest, if nothing happens before.
    pub fn deadline(&self) -> Option<Duration> {
        self.room.deadline(self.now()).into_iter().chain(self.bridge_at()).min()
    }

    /// Handles a request.
    pub async fn request(&mut self, request: Request) {
        match request {
            Request::Joined { person, name, decision } => {
                self.mouth.meet(&person, &name);
                self.react(Event::Joined { person, name, decision }).await;
            }
            Request::Left(person) => {
                self.mouth.part(&person);
                self.react(Event::Left(person)).await;
            }
            Request::Decided(person, decision) => self.react(Event::Decided(person, decision)).await,
            Request::Persona(names, manner) => self.set_persona(names, &manner).await,
            Request::Manner(reply, _) | Request::Piece(reply, _) | Request::Whole(reply, _) if self.is_quiet() => {
                self.mouth.refuse(&reply);
            }
            // Nothing more is said of a reply that was cut.
            Request::AskedBy(reply, _) if self.mouth.is_cut(&reply) => {}
            Request::AskedBy(reply, asker) => self.react(Event::Replying { reply, asker: Some(asker) }).await,
            Request::Manner(reply, manner) => self.mouth.begin(&reply, &manner),
            Request::Piece(reply, text) => self.mouth.piece(&reply, &text),
            Request::Retracted(reply) => self.mouth.retracted(&reply),
            Request::Whole(reply, text) => self.mouth.whole(&reply, &text),
            Request::Unanswered(asker) => {
                // Somebody else may have asked meanwhile.
                if asker.is_none() || asker == self.asked_by {
                    self.asked_until = None;
                    if std::mem::take(&mut self.is_opening) {
                        self.end_sound().await;
                    }
                }
                self.react(Event::Unanswered(asker)).await;
            }
            Request::Say(_) | Request::SayIn(..) if self.is_silenced => {}
            Request::Say(text) => self.mouth.say(&text, None),
            Request::SayIn(text, manner) => self.mouth.say(&text, Some(&manner)),
            Request::Stop => self.be_silent().await,
            Request::Mute(is_muted) => {
                self.is_muted = is_muted;
                if is_muted {
                    self.be_silent().await;
                }
                self.react(Event::Muted(is_muted)).await;
            }
            Request::Silence(is_silenced) => {
                self.is_silenced = is_silenced;
                if is_silenced {
                    self.be_silent().await;
                }
                self.react(Event::Silenced(is_silenced)).await;
            }
        }
        self.speak_on().await;
    }

    /// Handles what the engines tell.
    pub async fn told(&mut self, told: Told) {
        match told {
            Told::Recognised(id, transcript) => {
                self.recognising.remove(&id);
                let was_deaf = std::mem::replace(&mut self.is_deaf, transcript.is_none());
                if self.is_deaf && !was_deaf {
                    self.report(Report::CannotHear);
                }
                self.react(Event::Recognised(id, transcript)).await;
            }
            Told::Made(number, piece) => {
                if let Some(is_first) = self.mouth.made(number, &piece) {
                    if let Some(asked) = self.asked_until.take() {
                        self.trace(asked, "the first sound of an answer is made");
                    }
                    let audio = if is_first { self.led_in(piece.audio).await } else { piece.audio };
                    self.player.push(audio);
                }
            }
            Told::SentenceMade(number) => {
                self.is_voiceless = false;
                self.mouth.sentence_made(number);
            }
            Told::Failed { sentence, needs_voice } => {
                let is_awaited = self.mouth.failed(sentence);
                // The usual voice may work all the same.
                if is_awaited && needs_voice {
                    self.report(Report::ChosenVoiceAway);
                } else if is_awaited && !std::mem::replace(&mut self.is_voiceless, true) {
                    self.report(Report::Voiceless);
                }
            }
            Told::Bridge(sound) => self.bridge = Some(sound),
        }
        self.speak_on().await;
    }

    /// Takes in what happened in the room, such as a frame of somebody's sound.
    pub async fn event(&mut self, event: Event) {
        self.react(event).await;
        if self.room.is_somebody_speaking() {
            self.waker.wake(self.now(), &self.engines, &self.tell);
        }
        if self.goes_on {
            self.speak_on().await;
        }
    }

    /// Speaks as another persona from now on, and answers to its names.
    async fn set_persona(&mut self, names: Vec<String>, manner: &Manner) {
        self.react(Event::Named(names)).await;
        let style = self.engines.style_of(manner);
        if style == self.engines.style {
            return;
        }
        self.engines.style = style;
        self.mouth.set_engines(self.engines.clone());
        self.bridge = None;
        self.waker = Waker::begin(&self.engines, &self.tell);
    }

    async fn react(&mut self, event: Event) {
        let now = self.now();
        for action in self.room.on(now, event) {
            self.act(action).await;
        }
    }

    /// Does what is due.
    pub async fn tick(&mut self) {
        let now = self.now();
        if self.bridge_at().is_some_and(|at| at <= now)
            && let Some(sound) = self.bridge.clone()
        {
            self.is_bridged = true;
            self.mouth.delay(sound.duration());
            let sound = self.led_in(sound).await;
            self.player.push(sound);
        }
        self.event(Event::Tick).await;
    }

    /// Makes and plays what is still to be said. Call it when a piece was played to its end.
    pub async fn speak_on(&mut self) {
        self.goes_on = true;
        // What happens meanwhile may end what is being said, and then the next reply begins.
        while std::mem::take(&mut self.goes_on) {
            self.speak_next().await;
        }
    }

    async fn speak_next(&mut self) {
        for (reply, asker) in self.mouth.take_begun() {
            self.react(Event::Replying { reply, asker }).await;
        }
        for reply in self.mouth.take_dropped() {
            self.react(Event::Dropped(reply.clone())).await;
            self.report(Report::Heard { reply, heard: String::new(), is_whole: false });
        }
        while let (true, reach) = self.mouth.end_present(self.player.is_done()) {
            self.player.restart_clock();
            let failed = reach.as_ref().filter(|reach| reach.is_broken_off);
            if let Some(reply) = failed.map(|reach| reach.reply.clone()) {
                self.react(Event::Failed(reply)).await;
            }
            if let Some(reach) = reach {
                self.report_reach(reach);
            }
            let ended = if self.mouth.is_silent() { Event::Silent } else { Event::Ended };
            self.react(ended).await;
        }
        if let Some((reply, words)) = self.mouth.go_on(self.player.ahead()) {
            if let Some(asked) = self.asked_until.filter(|_| self.mouth.is_before_first_sound()) {
                self.trace(asked, "the first clause of an answer is written");
            }
            self.react(Event::Saying { reply, words }).await;
        }
    }

    /// Ends the conversation: what is being said was heard up to here. Reports what people said and was recognised.
    pub async fn end(&mut self) {
        self.stop_speaking().await;
        let (understood, lost) = self.room.close(self.now());
        for said in understood {
            self.said(said);
        }
        if lost > 0 {
            tracing::warn!(
                lost,
                "a conversation ended before all that was said was recognised; the rest is not recorded"
            );
        }
    }

    /// Opens the line before the answer comes.
    fn open_line(&mut self) {
        if self.mouth.is_silent() && self.player.is_done() {
            let samples = vec![0.0; RECOGNITION_RATE.samples(OPEN)];
            self.player.push(Audio { rate: RECOGNITION_RATE, samples });
            self.is_opening = true;
        }
    }

    /// Returns the first sound of a speech with as much silence before it as the line still needs.
    async fn led_in(&mut self, mut sound: Audio) -> Audio {
        let mut lead = LEAD;
        if std::mem::take(&mut self.is_opening) {
            // A silence that was played to its end keeps no line open.
            let is_open = !self.player.is_done();
            let played = self.end_sound().await;
            if is_open {
                lead = lead.saturating_sub(played);
            }
        }
        self.mouth.delay(lead);
        sound.samples.splice(..0, std::iter::repeat_n(0.0, sound.rate.samples(lead)));
        sound
    }

    /// Ends the sound that is played, and returns how much of it was. A pause goes on.
    async fn end_sound(&mut self) -> Duration {
        let played = self.player.stop().await;
        self.player.restart_clock();
        if self.is_paused {
            self.player.pause();
        }
        played
    }

    /// Returns when a small sound says that an answer is coming. It does not come while somebody speaks.
    fn bridge_at(&self) -> Option<Duration> {
        self.bridge.as_ref()?;
        let is_quiet = (self.is_opening || self.player.is_done()) && !self.room.is_somebody_speaking();
        let is_waiting = !self.is_bridged && !self.is_paused && self.mouth.is_before_first_sound() && is_quiet;
        self.asked_until.filter(|_| is_waiting).map(|asked| asked + BRIDGE_AFTER)
    }

    /// Returns true if nothing is to be said, because somebody asked for it or because nobody can hear it.
    fn is_quiet(&self) -> bool {
        self.is_muted || self.is_silenced
    }

    fn report(&self, report: Report) {
        // Nobody listens to a conversation that is being ended.
        self.reports.send(report).ok();
    }

    async fn act(&mut self, action: Action) {
        match action {
            Action::Recognise(id, audio) => self.recognise(id, audio),
            Action::Cancel(id) => {
                if let Some(is_wanted) = self.recognising.remove(&id) {
                    is_wanted.store(false, Ordering::Release);
                }
            }
            Action::Expect(expected) => self.report(Report::Expected(expected)),
            Action::Said(said) => self.said(said),
            Action::GoOn(said) => {
                if !self.is_quiet() && self.mouth.resume(&said.person) {
                    self.goes_on = true;
                } else {
                    self.said(said);
                }
            }
            Action::Mute(is_muted) => {
                self.is_muted = is_muted;
                self.asked_until = None;
                self.report(Report::Muted(is_muted));
            }
            Action::Pause => {
                self.is_paused = true;
                self.player.pause();
            }
            Action::Resume => {
                self.is_paused = false;
                self.player.resume();
            }
            Action::Cut => {
                let played = self.stop_sound().await;
                if let Some(reach) = self.mouth.cut_present(played) {
                    self.report_reach(reach);
                }
                self.goes_on = true;
            }
            Action::Stop => self.stop_speaking().await,
            Action::Leave => self.report(Report::Alone),
        }
    }

    fn said(&mut self, said: Said) {
        let ago = self.now().saturating_sub(said.began);
        if said.is_for_bot && !self.is_quiet() {
            (self.asked_until, self.is_bridged) = (Some(said.ended), false);
            self.asked_by = Some(said.person.clone());
            self.trace(said.ended, "the question is whole");
            self.open_line();
        }
        self.report(Report::Said(said, ago));
    }

    fn recognise(&mut self, id: RecognitionId, audio: Audio) {
        let is_wanted = Arc::new(AtomicBool::new(true));
        self.recognising.insert(id, is_wanted.clone());
        let (recogniser, tell, turns) = (self.engines.recogniser.clone(), self.tell.clone(), self.turns.clone());
        // People probably speak the language of the persona.
        let language = self.engines.style.language.clone();
        tokio::spawn(async move {
            let Ok(_turn) = turns.acquire().await else { return };
            if !is_wanted.load(Ordering::Acquire) {
                return;
            }
            let recognised = tokio::task::spawn_blocking(move || {
                let is_wanted = || is_wanted.load(Ordering::Acquire);
                recogniser.transcribe_in(&audio, language.as_deref(), &is_wanted)
            });
            let transcript = match recognised.await {
                Ok(Ok(transcript)) => Some(transcript),
                Ok(Err(Error::Cancelled)) => return,
                Ok(Err(error)) => {
                    tracing::error!(%error, "cannot recognise what was said");
                    None
                }
                Err(_) => None,
            };
            tell.send(Told::Recognised(id, transcript)).ok();
        });
    }

    /// Stops speaking for good. People may have come who must not hear the rest.
    async fn be_silent(&mut self) {
        self.asked_until = None;
        self.stop_speaking().await;
        self.mouth.forget_rest();
        self.react(Event::Silent).await;
    }

    /// Stops speaking, and reports what was heard of each reply.
    async fn stop_speaking(&mut self) {
        self.asked_until = None;
        let played = self.stop_sound().await;
        for reach in self.mouth.stop(played) {
            self.report_reach(reach);
        }
    }

    /// Ends the sound that is played, for good. Returns how much of it was, and starts the clock of the next.
    async fn stop_sound(&mut self) -> Duration {
        self.is_paused = false;
        let played = self.player.stop().await;
        self.player.restart_clock();
        // The silence of an open line is no part of a reply.
        if std::mem::take(&mut self.is_opening) { Duration::ZERO } else { played }
    }

    fn report_reach(&self, reach: Reach) {
        let Reach { reply, heard, is_whole, is_resumed, is_broken_off } = reach;
        if !heard.trim().is_empty() {
            self.report(Report::Uttered { reply: reply.clone(), heard: heard.clone(), is_whole });
        }
        // A reply that was heard in one go stays as it is. One that broke off was not cut, and a new try says all of it.
        if !is_broken_off && (!is_whole || is_resumed) {
            self.report(Report::Heard { reply, heard, is_whole });
        }
    }

    /// Writes into the log how long after the end of a question something happened.
    fn trace(&self, asked: Duration, what: &'static str) {
        let waited = self.now().saturating_sub(asked);
        tracing::debug!(ms = waited.as_millis(), what, "a stage of an answer");
    }
}
