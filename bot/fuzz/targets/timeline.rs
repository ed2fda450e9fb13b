//! Timelines of a replay: JSON lines of many kinds, with times, people and texts in them.
#![no_main]

use azera_fake_sim::Timeline;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    Timeline::read(bytes).ok();
});
