//! Engines that are in memory only while somebody talks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use azera_voice_api::{Error, Manner};
use azera_voice_call::{Loadable, OnDemand, Request};

use crate::SECOND;
use crate::made_up::{MadeUp, NOT_RECOGNISED, engines, id};

/// Counts what is done with it.
#[derive(Default)]
struct Counts {
    loads: AtomicU64,
    unloads: AtomicU64,
    voices: Mutex<Vec<String>>,
    is_in_use: AtomicBool,
}

struct Counted(Arc<Counts>);

/// An engine that recognises and cannot be loaded.
struct Broken(Arc<AtomicU64>);

impl Loadable for Broken {
    fn load(&self, _: &str) -> Result<(), Error> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(Error::Model { file: "the recogniser".into(), why: "it is broken".into() })
    }

    fn unload(&self) {}

    fn speaks(&self) -> bool {
        false
    }

    fn is_in_use(&self) -> bool {
        false
    }

    fn uses(&self) -> u64 {
        0
    }
}

impl Loadable for Counted {
    fn load(&self, voice: &str) -> Result<(), Error> {
        assert!(!voice.is_empty());
        self.0.loads.fetch_add(1, Ordering::Relaxed);
        self.0.voices.lock().unwrap().push(voice.to_owned());
        Ok(())
    }

    fn speaks(&self) -> bool {
        true
    }

    fn is_in_use(&self) -> bool {
        self.0.is_in_use.load(Ordering::Relaxed)
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

#[tokio::test(start_paused = true)]
async fn a_cough_loads_nothing() {
    let (mut room, counts) = open(0).await;
    room.pass(Duration::from_millis(96), true).await;
    room.pass(5 * SECOND, false).await;
    assert_eq!(counts.seen(), (false, 0));
    room.pass(Duration::from_millis(200), true).await;
    room.pass(5 * SECOND, false).await;
    assert_eq!(counts.seen(), (true, 0));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_works_is_not_unloaded() {
    let (mut room, counts) = open(60).await;
    room.say("When does the ferry leave?", 2 * SECOND).await;
    counts.is_in_use.store(true, Ordering::Relaxed);
    room.pass(300 * SECOND, false).await;
    assert_eq!(counts.seen(), (true, 0));
    counts.is_in_use.store(false, Ordering::Relaxed);
    room.pass(100 * SECOND, false).await;
    assert_eq!(counts.seen(), (true, 1));
}

#[tokio::test(start_paused = true)]
async fn the_voice_of_a_reply_is_loaded_before_its_text_comes() {
    let (mut room, counts) = open(60).await;
    let manner = Manner { voice: Some("ann".into()), ..Manner::default() };
    room.talk.request(Request::Manner(id("a"), manner)).await;
    room.pass(SECOND, false).await;
    assert_eq!(*counts.voices.lock().unwrap(), ["ann"]);
    room.talk.request(Request::Say("Good day.".into())).await;
    room.pass(SECOND, false).await;
    assert_eq!(*counts.voices.lock().unwrap(), ["ann", "joe"]);
}

#[tokio::test(start_paused = true)]
async fn one_broken_engine_keeps_no_other_from_loading_and_is_not_loaded_each_second() {
    let (broken, counts) = (Arc::<AtomicU64>::default(), Arc::<Counts>::default());
    let (engines, hearing, speaking) = engines("");
    let on_demand = OnDemand::new(vec![Box::new(Broken(broken.clone())), Box::new(Counted(counts.clone()))], None);
    let mut room = MadeUp::open_by((engines.loaded_on_demand(on_demand), hearing, speaking)).await;
    room.say("When does the ferry leave?", 20 * SECOND).await;
    assert_eq!((broken.load(Ordering::Relaxed), counts.seen()), (1, (true, 0)));
    assert!(room.speaking.styles.lock().unwrap().is_empty(), "no sound is made while something cannot be loaded");
    room.pass(60 * SECOND, false).await;
    room.say("And when does it come back?", 2 * SECOND).await;
    assert_eq!(broken.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn people_are_told_once_that_they_are_not_heard() {
    let (mut room, _) = open(0).await;
    for told in [1, 1] {
        room.say(NOT_RECOGNISED, 2 * SECOND).await;
        room.pass(5 * SECOND, false).await;
        assert_eq!(room.cannot_hear, told);
    }
    room.say("When does the ferry leave?", 2 * SECOND).await;
    room.pass(5 * SECOND, false).await;
    room.say(NOT_RECOGNISED, 2 * SECOND).await;
    room.pass(5 * SECOND, false).await;
    assert_eq!(room.cannot_hear, 2, "it worked meanwhile");
}
