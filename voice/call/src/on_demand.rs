//! Engines that are loaded when somebody speaks, and unloaded when nobody did for a while.

use std::sync::{Arc, Weak};
use std::time::Duration;

use azera_voice_api::Error;
use tokio::time::sleep;

/// How often it is looked at in the time until an engine is unloaded.
const LOOKS: u32 = 4;

/// An engine that loads itself when it is used, and can be loaded ahead and unloaded.
pub trait Loadable: Send + Sync {
    /// Loads what is needed to speak with this voice, or to recognise, unless it is loaded.
    ///
    /// # Errors
    /// A model cannot be read.
    fn load(&self, voice: &str) -> Result<(), Error>;

    /// Unloads it. Work that goes on ends first.
    fn unload(&self);

    /// Returns how often it was used or loaded since it was made.
    fn uses(&self) -> u64;
}

/// Engines that are in memory only while somebody talks.
pub struct OnDemand {
    engines: Vec<Box<dyn Loadable>>,
}

impl OnDemand {
    /// Unloads each engine once nobody used it for so long; with `None` never. Call it in a runtime.
    pub fn new(engines: Vec<Box<dyn Loadable>>, unload_after: Option<Duration>) -> Arc<Self> {
        let on_demand = Arc::new(Self { engines });
        if let Some(after) = unload_after {
            tokio::spawn(unload_unused(Arc::downgrade(&on_demand), after));
        }
        on_demand
    }

    /// Loads the engines ahead. It takes up to two seconds.
    ///
    /// # Errors
    /// A model cannot be read.
    pub fn load(&self, voice: &str) -> Result<(), Error> {
        self.engines.iter().try_for_each(|engine| engine.load(voice))
    }
}

/// What is known of an engine.
struct Seen {
    uses: u64,
    idle: Duration,
    is_loaded: bool,
}

async fn unload_unused(engines: Weak<OnDemand>, after: Duration) {
    let look = after / LOOKS;
    let mut seen: Vec<Seen> = Vec::new();
    loop {
        sleep(look).await;
        let Some(on_demand) = engines.upgrade() else { return };
        seen.resize_with(on_demand.engines.len(), || Seen { uses: 0, idle: Duration::ZERO, is_loaded: false });
        for (engine, seen) in on_demand.engines.iter().zip(&mut seen) {
            let uses = engine.uses();
            if uses != seen.uses {
                *seen = Seen { uses, idle: Duration::ZERO, is_loaded: true };
                continue;
            }
            seen.idle += look;
            if seen.is_loaded && seen.idle >= after {
                seen.is_loaded = false;
                engine.unload();
                tracing::info!("nobody talked for a while: a model of speech is unloaded");
            }
        }
    }
}
