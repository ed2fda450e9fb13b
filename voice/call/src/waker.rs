//! Loads engines when somebody speaks who may be heard.

use std::time::Duration;

use azera_voice_room::Event;
use tokio::sync::mpsc;

use crate::bridge;
use crate::contract::Engines;
use crate::talk::Told;

/// How probably a frame is speech that loads the engines.
const SPEECH: f32 = 0.5;

/// How often the engines count as used while somebody speaks.
const AGAIN: Duration = Duration::from_secs(1);

/// Loads the engines of a conversation, and lets its persona make the small sound for when an answer takes long.
pub(crate) struct Waker {
    is_bridge_asked: bool,
    woken: Option<Duration>,
}

impl Waker {
    /// Begins with a persona. Engines that are in memory make its small sound at once, and others when somebody speaks.
    pub(crate) fn begin(engines: &Engines, tell: &mpsc::UnboundedSender<Told>) -> Self {
        let is_bridge_asked = engines.on_demand.is_none();
        if is_bridge_asked {
            bridge::prepare(engines, tell);
        }
        Self { is_bridge_asked, woken: None }
    }

    /// Loads the engines that are not loaded, in the background, if this is speech.
    pub(crate) fn hear(&mut self, event: &Event, at: Duration, engines: &Engines, tell: &mpsc::UnboundedSender<Told>) {
        let is_speech = matches!(event, Event::Frame { probability, .. } if *probability >= SPEECH);
        let is_due = self.woken.is_none_or(|woken| at.saturating_sub(woken) >= AGAIN);
        if engines.on_demand.is_none() || !is_speech || !is_due {
            return;
        }
        self.woken = Some(at);
        let needs_bridge = !std::mem::replace(&mut self.is_bridge_asked, true);
        let (engines, tell) = (engines.clone(), tell.clone());
        tokio::task::spawn_blocking(move || match engines.load() {
            Ok(()) if needs_bridge => bridge::make(&engines, &tell),
            Ok(()) => {}
            Err(error) => tracing::error!(%error, "cannot load the models of speech"),
        });
    }
}
