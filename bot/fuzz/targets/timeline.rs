//! Replay timelines: JSON lines of many kinds, with times, people and texts.
#![no_main]

use azera_fake_sim::Timeline;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    Timeline::read(bytes).ok();
});
