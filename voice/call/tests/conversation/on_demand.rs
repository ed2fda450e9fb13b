//! Engines that are in memory only while somebody talks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use azera_voice_api::Error;
use azera_voice_call::{Loadable, OnDemand, Request};

use crate::SECOND;
use crate::made_up::{MadeUp, engines, id};

/// Counts what is done with it.
#[derive(Default)]
struct Counts {
    loads: AtomicU64,
    unloads: AtomicU64,
}

struct Counted(Arc<Counts>);

impl Loadable for Counted {
    fn load(&self, voice: &str) -> Result<(), Error> {
        assert!(!voice.is_empty());
        self.0.loads.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn unload(&self) {
        self.0.unloads.fetch_add(1, Ordering::Relaxed);
    }

    fn uses(&self) -> u64 {
        self.0.loads.load(Ordering::Relaxed)
    }
}

async fn open(unload_after_s: u32) -> (MadeUp, Arc<Counts>) {
    let counts = Arc::<Counts>::default();
    let (engines, hearing, speaking) = engines("");
    let unload_after = (unload_after_s > 0).then(|| SECOND * unload_after_s);
    let on_demand = OnDemand::new(vec![Box::new(Counted(counts.clone()))], unload_after);
    (MadeUp::open_by((engines.loaded_on_demand(on_demand), hearing, speaking)).await, counts)
}

impl Counts {
    fn seen(&self) -> (bool, u64) {
        (self.loads.load(Ordering::Relaxed) > 0, self.unloads.load(Ordering::Relaxed))
    }
}

#[tokio::test(start_paused = true)]
async fn engines_are_loaded_when_somebody_speaks_and_unloaded_after_a_silence() {
    let (mut room, counts) = open(60).await;
    room.pass(200 * SECOND, false).await;
    assert_eq!(counts.seen(), (false, 0), "nobody spoke");
    assert!(room.speaking.styles.lock().unwrap().is_empty(), "the voice says nothing ahead");
    room.say("When does the ferry leave?", 2 * SECOND).await;
    assert_eq!(counts.seen(), (true, 0));
    let ahead = room.speaking.styles.lock().unwrap().first().map(|(said, _)| said.clone());
    assert_eq!(ahead.as_deref(), Some("Hmm."));
    room.talk.request(Request::Whole(id("a"), "It leaves at six.".into())).await;
    room.pass(40 * SECOND, false).await;
    assert_eq!(counts.seen(), (true, 0), "somebody spoke in the last minute");
    room.pass(40 * SECOND, false).await;
    assert_eq!(counts.seen(), (true, 1));
    room.pass(200 * SECOND, false).await;
    assert_eq!(counts.seen(), (true, 1), "it is unloaded once");
    let before = counts.loads.load(Ordering::Relaxed);
    room.say("And when does it come back?", 2 * SECOND).await;
    assert!(counts.loads.load(Ordering::Relaxed) > before);
    room.pass(80 * SECOND, false).await;
    assert_eq!(counts.seen(), (true, 2));
}

#[tokio::test(start_paused = true)]
async fn engines_may_stay_loaded() {
    let (mut room, counts) = open(0).await;
    room.say("When does the ferry leave?", 2 * SECOND).await;
    room.pass(600 * SECOND, false).await;
    assert_eq!(counts.seen(), (true, 0));
}
