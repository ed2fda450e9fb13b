//! The way in: a call, the server it connects to, and what it reports.

use std::num::NonZeroU64;
use std::time::Duration;

use azera_types::{MessageId, PersonId};
use azera_voice_api::{Error, Manner};
use azera_voice_call::{Engines, Report as RoomReport, Request as TalkRequest};
use azera_voice_room::Settings;
use songbird::ConnectionInfo;
use songbird::id::{ChannelId, GuildId, UserId};
use tokio::sync::{mpsc, oneshot};

use crate::recorder::{RecordedPart, RecordingEnd};
use crate::session;

/// A voice server, as the gateway names it.
#[derive(Clone)]
pub struct Server {
    /// Ids of the guild, of the channel in it, and of the bot.
    pub guild: u64,
    /// See `guild`.
    pub channel: u64,
    /// See `guild`.
    pub user: u64,
    /// Host and port.
    pub endpoint: String,
    /// Id of the voice session.
    pub session: String,
    /// Secret of the voice session.
    pub token: String,
    /// Names the connection in [`Report`]s: another number for each one.
    pub link: u64,
}

impl Server {
    /// Returns songbird's form; `None` if an id is 0, which Discord gives to nobody.
    pub(crate) fn info(self) -> Option<ConnectionInfo> {
        Some(ConnectionInfo {
            channel_id: ChannelId(NonZeroU64::new(self.channel)?),
            endpoint: self.endpoint,
            guild_id: GuildId(NonZeroU64::new(self.guild)?),
            session_id: self.session,
            token: self.token,
            user_id: UserId(NonZeroU64::new(self.user)?),
        })
    }
}

/// Why a connection was lost.
#[derive(Debug)]
pub struct Lost {
    /// The reason, for the log.
    pub why: String,
    /// True if Discord cut it on purpose: the bot was moved or thrown out, or the call goes on at another server.
    pub was_cut: bool,
    /// The connection, by [`Server::link`].
    pub link: u64,
}

/// What happens in the call.
#[derive(Debug)]
pub enum Report {
    /// Something happened in the conversation.
    Room(RoomReport),
    /// People speak, and no packet can be read: the connection must be made anew. With [`Server::link`].
    Deaf(u64),
    /// The connection was lost for good.
    Lost(Lost),
    /// A recording ended by itself.
    RecordingEnded(RecordingEnd),
}

/// Packets so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of people who consented.
    pub admitted: u64,
    /// Packets that were dropped before decoding, because the person did not consent.
    pub refused: u64,
    /// Packets that were decoded.
    pub decoded: u64,
}

/// A request to a call.
pub(crate) enum Request {
    Server(Server),
    /// Discord sent no sound for a while, and does so again.
    HearsAgain,
    Talk(TalkRequest),
    Counts(oneshot::Sender<Counts>),
    Record(RecordRequest),
    Close,
}

/// What is asked of the recorder of a call.
pub(crate) enum RecordRequest {
    /// Keep a part from now on. All parts together have at most so much sound.
    Part(Box<RecordedPart>, Duration),
    /// Go on, or pause.
    Run(bool),
    End,
}

/// A call. Clones mean the same one. It ends when the last clone is dropped.
#[derive(Clone)]
pub struct Call {
    pub(crate) requests: mpsc::UnboundedSender<Request>,
}

impl Call {
    /// Sends a request. A call that ended takes none, and says so by its last report.
    fn send(&self, request: Request) {
        self.requests.send(request).ok();
    }

    fn talk(&self, request: TalkRequest) {
        self.send(Request::Talk(request));
    }

    /// Connects to another server: the old one moved the call, or was lost.
    pub fn connect(&self, server: Server) {
        self.send(Request::Server(server));
    }

    /// Discord sends sound again. That nobody was heard before is no fault of the connection.
    pub fn hears_again(&self) {
        self.send(Request::HearsAgain);
    }

    /// A person is in the channel, with what they decided about being heard.
    pub fn joined(&self, person: PersonId, name: String, decision: Option<bool>) {
        self.talk(TalkRequest::Joined { person, name, decision });
    }

    /// A person left the channel.
    pub fn left(&self, person: PersonId) {
        self.talk(TalkRequest::Left(person));
    }

    /// A person decided about being heard.
    pub fn decided(&self, person: PersonId, decision: bool) {
        self.talk(TalkRequest::Decided(person, decision));
    }

    /// Another persona has the conversation, or it has changed.
    pub fn persona(&self, names: Vec<String>, manner: Manner) {
        self.talk(TalkRequest::Persona(names, manner));
    }

    /// Tells whom a reply answers that begins.
    pub fn asked_by(&self, reply: &MessageId, asker: &PersonId) {
        self.talk(TalkRequest::AskedBy(reply.clone(), asker.clone()));
    }

    /// Begins a reply that is said in a manner of its own.
    pub fn begin(&self, reply: &MessageId, manner: Manner) {
        self.talk(TalkRequest::Manner(reply.clone(), manner));
    }

    /// Says the next piece of a reply, as soon as it completes a sentence.
    pub fn piece(&self, reply: &MessageId, text: &str) {
        self.talk(TalkRequest::Piece(reply.clone(), text.to_owned()));
    }

    /// The pieces of a reply so far are no part of it.
    pub fn retracted(&self, reply: &MessageId) {
        self.talk(TalkRequest::Retracted(reply.clone()));
    }

    /// Completes a reply. If no piece of it came before, the whole text is said.
    pub fn whole(&self, reply: &MessageId, text: &str) {
        self.talk(TalkRequest::Whole(reply.clone(), text.to_owned()));
    }

    /// Nobody answers the oldest question of this person that has no reply; with `None` the oldest of all.
    pub fn unanswered(&self, asker: Option<PersonId>) {
        self.talk(TalkRequest::Unanswered(asker));
    }

    /// Says a text that is no reply.
    pub fn say(&self, text: &str) {
        self.talk(TalkRequest::Say(text.to_owned()));
    }

    /// Says a text that is no reply, in a manner of its own.
    pub fn say_in(&self, text: &str, manner: Manner) {
        self.talk(TalkRequest::SayIn(text.to_owned(), manner));
    }

    /// Stops speaking.
    pub fn stop(&self) {
        self.talk(TalkRequest::Stop);
    }

    /// Lets the bot be quiet from now on, or talk again.
    pub fn mute(&self, is_muted: bool) {
        self.talk(TalkRequest::Mute(is_muted));
    }

    /// Nobody can hear the bot from now on, or people can again. Until then it says nothing, and nothing counts as heard.
    pub fn silence(&self, is_silenced: bool) {
        self.talk(TalkRequest::Silence(is_silenced));
    }

    /// Returns the counts of packets; `None` if the call is over.
    pub async fn counts(&self) -> Option<Counts> {
        let (answer, counts) = oneshot::channel();
        self.send(Request::Counts(answer));
        counts.await.ok()
    }

    /// Records a part of the call from now on; the one before is over. All parts until [`Call::end_recording`] have at
    /// most so much sound together.
    pub fn record(&self, part: RecordedPart, most: Duration) {
        self.send(Request::Record(RecordRequest::Part(Box::new(part), most)));
    }

    /// Pauses the recording, or goes on with its part. Nothing of a pause is kept.
    pub fn run_recording(&self, is_running: bool) {
        self.send(Request::Record(RecordRequest::Run(is_running)));
    }

    /// Ends the recording.
    pub fn end_recording(&self) {
        self.send(Request::Record(RecordRequest::End));
    }

    /// Ends the call.
    pub fn close(&self) {
        self.send(Request::Close);
    }
}

/// Opens a call in an empty room. [`Call::connect`] connects it. Each person is told by [`Call::joined`]; `person_of`
/// converts Discord's user ids.
///
/// # Errors
/// [`Error::UnknownVoice`] if the speaker does not have the voice of the style, and [`Error::Engine`] if no thread for calls
/// can be started.
pub fn join(
    engines: Engines,
    settings: Settings,
    person_of: fn(u64) -> Option<PersonId>,
) -> Result<(Call, mpsc::UnboundedReceiver<Report>), Error> {
    engines.check()?;
    let driver = session::start_driver()?;
    let (requests, taken) = mpsc::unbounded_channel();
    let (reports, reported) = mpsc::unbounded_channel();
    tokio::spawn(session::run(driver, engines, settings, person_of, taken, reports));
    Ok((Call { requests }, reported))
}
