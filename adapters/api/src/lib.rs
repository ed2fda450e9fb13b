//! The interfaces between platforms and the engine. Begin with [`Platform`], which an adapter implements and the engine
//! calls, and [`Host`], which the engine implements and an adapter calls. An adapter only translates: it stores no
//! history, decides about no reply, and knows no memories.
//!
//! Invariants:
//! - A platform's types never leave its adapter. The adapter makes ids unique; all others treat them as opaque.
//! - A platform's answer about who may read what is valid at that moment only. The engine never caches it.
//! - [`Platform::deliver`] is idempotent by the reply's id: delivering twice shows the reply once.

mod avatar;
mod chart;
mod command;
mod connection_log;
mod event;
mod given;
mod host;
mod host_error;
mod inbound_event;
mod known;
mod memories;
mod mood;
mod outbound;
mod pictures;
mod places;
mod platform;
mod questions;
mod reaction;
mod reader;
mod sessions;
mod speech;
mod typed;
mod vault;
mod voice;
mod voice_messages;
mod voice_recording;

pub use avatar::{Avatars, Picture};
pub use chart::{Bar, Chart, ChartLink, Column, Theme};
pub use command::{Command, CommandOption, Form, MessageAction, OptionKind};
pub use connection_log::{ConnectionHistory, ConnectionLog, Trouble};
pub use event::{Making, NOT_ANSWERED, StreamEvent};
pub use given::{MAX_GIVEN_BYTES, MAX_GIVEN_PICTURE_BYTES, MAX_GIVEN_SOUND_BYTES, given, given_sound};
pub use host::{
    AnswerFile, AutocompleteOption, AutocompleteRequest, ChatInfo, Choice, CommandAnswer, CommandForm, CommandLine,
    Edit, FileContent, FormField, GivenPicture, Hit, Host, MAX_AUTOCOMPLETE_OPTIONS, MemoryIdText, Outcome,
    SearchRequest, Searched, SkipReason, Turn, TurnUsage,
};
pub use host_error::{Cause, HostError};
pub use inbound_event::{IgnoreReason, InboundEvent, Receipt, Recorded, Removed};
pub use known::{KnownReader, ShownKnown, ShownKnowns};
pub use memories::{
    FactPage, Holding, MemoryCounts, MemoryPage, MemoryReader, OwnFacts, ShownEntity, ShownMemory, ShownNames,
    ShownRelation, ShownTheme, ShownThemes, Steps,
};
pub use mood::{GivenMood, MoodHost};
pub use outbound::{CUT_MARK, Outbound, Post, REPLY_MARK, State, answered};
pub use pictures::{
    PictureAsked, PictureChoices, PictureHost, PictureModel, PictureSearch, PictureStart, PictureState, PictureWish,
    ShownPicture, WaitingPicture,
};
pub use places::{
    AnswerMode, ChatPlace, PlaceChange, PlaceChanged, PlaceHost, PlatformPlaces, RealmPlaces, SpokenReplies,
};
pub use platform::{
    Access, Invitation, PictureProgress, PlaceNames, Platform, PlatformError, RealmPreferences, Streaming,
};
pub use questions::Questions;
pub use reaction::{TAKE_BACK, command_of, takes_back, thumb, thumb_command};
pub use reader::{
    BranchSummary, ChatSummary, MindSummary, ModelSummary, PersonaSummary, Reader, Reading, ShownMessage, ShownWriting,
    WritingKind,
};
pub use sessions::{SessionReader, ShownConversation, ShownEvidence, ShownMatter, ShownProcedure, ShownSession};
pub use speech::{SpeechAnswer, SpeechHost, SpeechRequest};
pub use typed::{Typed, suggestion, typed};
pub use vault::{VaultEntry, VaultHost, VaultValue};
pub use voice::{
    CallManner, CallPersona, CallWish, CaptionStatus, ExpectedMessage, JoinedCall, VoiceChannels, VoiceError,
    VoiceHost, VoiceStatus,
};
pub use voice_messages::{SentSound, VoiceMessages};
pub use voice_recording::{RecordStatus, SentRecording};
