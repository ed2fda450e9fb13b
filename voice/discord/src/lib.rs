//! A call in a voice channel of Discord. songbird carries the packets; [`azera_voice_call`] runs the conversation.
//!
//! - [`join`] opens a connection and returns a [`Call`], which takes requests, and the [`Report`]s of the room.
//! - `capture` binds each stream to the person who speaks in it when the packet arrives.
//! - `ear` decodes a stream and tells speech from other sounds. It decodes nobody who did not consent.
//! - `player` plays sound, `driver` is songbird's part, and `session` connects them.
//! - `recorder` writes the call into a file if everybody there agreed, and `mixer` puts its sound together.
//!
//! Sound is decoded from the packets, and not by songbird: under end-to-end encryption (DAVE) songbird 0.6.1 decodes
//! garbage.

// songbird plays raw sound with symphonia's decoder, and leaves it to others to enable its feature `pcm`.
use symphonia as _;

mod call;
mod capture;
mod driver;
mod ear;
mod garble;
mod mixer;
mod player;
mod recorder;
mod session;

pub use azera_voice_api::Manner;
pub use azera_voice_call::{Engines, Report as RoomReport};
pub use call::{Call, Counts, Lost, Report, Server, join};
pub use recorder::{RecordedPart, RecordingEnd};
