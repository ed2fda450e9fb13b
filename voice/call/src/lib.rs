//! A spoken conversation over any line: sound in, recognised words out; replies in, sound out. [`azera_voice_room`] decides
//! who is heard and whose turn it is.
//!
//! - [`Talk`] runs the conversation. Whoever owns the line feeds it frames and requests, and gives it a [`Player`].
//! - `mouth` makes sound of the sentences of a reply, and knows how much was heard.
//! - [`OnDemand`] loads engines when somebody talks, and unloads them after a silence.
//! - `bridge` is the small sound for when an answer takes long.
//!
//! Packets, codecs and devices are not in here.

mod bridge;
mod contract;
mod mouth;
mod on_demand;
mod talk;
mod waker;

pub use contract::{Engines, OpenActivity, Player, Report, Request, Told};
pub use on_demand::{Loadable, OnDemand};
pub use talk::Talk;
