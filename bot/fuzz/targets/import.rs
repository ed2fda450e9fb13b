//! Exports of other programs, in every format: no input makes a reader panic, and none makes it keep more than its input
//! holds.
#![no_main]

use std::ops::ControlFlow;

use azera_import::{Format, Found, HEAD_BYTES, Source, read};
use azera_types::TimeZone;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (first, rest) = bytes.split_first().map_or((0, bytes), |(first, rest)| (usize::from(*first), rest));
    let head = &rest[..rest.len().min(HEAD_BYTES)];
    let named = Format::ALL[first % Format::ALL.len()];
    for format in std::iter::once(named).chain(Format::of(head)) {
        let source = Source { format, stem: "file".into(), zone: TimeZone::UTC };
        let mut kept = 0;
        // Whether the end is an error does not matter here.
        read(&source, rest, &mut |found| {
            if let Found::Message(message) = found {
                kept += message.text.len();
            }
            ControlFlow::Continue(())
        })
        .ok();
        assert!(kept <= rest.len() * 2, "texts are parts of the input");
    }
});
