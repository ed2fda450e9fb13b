//! Tags for pictures in replies: nothing of them is shown, and how a reply is cut changes nothing.
#![no_main]

use azera_pictures::TagFilter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut whole = TagFilter::default();
    let mut shown = whole.pass(text);
    shown.push_str(&whole.finish());
    let (mut cut, mut pieces) = (TagFilter::default(), String::new());
    for letter in text.chars() {
        pieces.push_str(&cut.pass(letter.encode_utf8(&mut [0; 4])));
    }
    pieces.push_str(&cut.finish());
    assert_eq!(shown, pieces);
    assert_eq!(whole.take_pictures(), cut.take_pictures());
    assert!(!shown.to_lowercase().contains("[image_gen:"));
});
