//! A small sound for when an answer takes long, as people make one while they think.

use std::ops::ControlFlow;
use std::time::Duration;

use azera_voice_api::Audio;
use tokio::sync::mpsc;

use crate::contract::{Engines, Told};

/// How long after the end of a question the sound comes, if the answer does not.
pub(crate) const BRIDGE_AFTER: Duration = Duration::from_millis(1_500);

/// What the voice says for it. Recognition hears no word in it.
const SOUND: &str = "Hmm.";

/// The longest sound that is short enough.
const LONGEST: Duration = Duration::from_millis(900);

/// Makes the sound in the background. A voice that makes it too long, or cannot make it, gets none.
pub(crate) fn prepare(engines: &Engines, tell: &mpsc::UnboundedSender<Told>) {
    let (engines, tell) = (engines.clone(), tell.clone());
    tokio::task::spawn_blocking(move || make(&engines, &tell));
}

/// Makes the sound, unless the voice makes it too long or cannot make it.
pub(crate) fn make(engines: &Engines, tell: &mpsc::UnboundedSender<Told>) {
    let mut whole: Option<Audio> = None;
    let made = engines.speaker.speak(SOUND, &engines.style, &mut |piece| {
        match &mut whole {
            Some(whole) => whole.samples.extend(piece.audio.samples),
            None => whole = Some(piece.audio),
        }
        ControlFlow::Continue(())
    });
    match (made, whole) {
        (Ok(()), Some(sound)) if sound.duration() <= LONGEST => {
            tell.send(Told::Bridge(sound)).ok();
        }
        (Ok(()), _) => tracing::debug!("the voice has no sound for thinking that is short enough"),
        (Err(error), _) => tracing::warn!(%error, "cannot make the sound for thinking"),
    }
}
