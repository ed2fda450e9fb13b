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

    /// Unloads it. Work that goes on ends first. It may take long.
    fn unload(&self);

    /// Returns true if it speaks, and false if it recognises.
    fn speaks(&self) -> bool;

    /// Returns true while it is loaded, or works. Waits for nothing.
    fn is_in_use(&self) -> bool;

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

    /// Loads the engines ahead. It takes up to two seconds. One that cannot be loaded keeps no other one from it.
    ///
    /// # Errors
    /// A model cannot be read.
    pub fn load(&self, voice: &str) -> Result<(), Error> {
        load_each(self.engines.iter(), voice)
    }

    /// Loads a voice ahead, because something will be said with it.
    ///
    /// # Errors
    /// A model cannot be read.
    pub(crate) fn load_voice(&self, voice: &str) -> Result<(), Error> {
        load_each(self.engines.iter().filter(|engine| engine.speaks()), voice)
    }
}

/// Loads engines, and returns the first error once each was tried.
fn load_each<'a>(engines: impl Iterator<Item = &'a Box<dyn Loadable>>, voice: &str) -> Result<(), Error> {
    let loaded: Vec<Result<(), Error>> = engines.map(|engine| engine.load(voice)).collect();
    for error in loaded.iter().filter_map(|loaded| loaded.as_ref().err()) {
        tracing::error!(%error, "cannot load a model of speech");
    }
    loaded.into_iter().collect()
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
        let mut unused = Vec::new();
        for (number, (engine, seen)) in on_demand.engines.iter().zip(&mut seen).enumerate() {
            let uses = engine.uses();
            if uses != seen.uses || engine.is_in_use() {
                *seen = Seen { uses, idle: Duration::ZERO, is_loaded: true };
                continue;
            }
            seen.idle += look;
            if seen.is_loaded && seen.idle >= after {
                seen.is_loaded = false;
                unused.push(number);
            }
        }
        for number in unused {
            // It may wait for a load that began just now, and gives back much memory.
            let on_demand = Arc::clone(&on_demand);
            let unload = move || on_demand.engines.get(number).into_iter().for_each(|engine| engine.unload());
            if tokio::task::spawn_blocking(unload).await.is_ok() {
                tracing::info!("nobody talked for a while: a model of speech is unloaded");
            }
        }
    }
}
