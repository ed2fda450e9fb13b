//! Character cards, JSON and PNG: an imported persona can be written and read again.
#![no_main]

use azera_personas::{import_card, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(card) = import_card(bytes) {
        let written = card.persona.to_markdown();
        parse(&written).expect("an imported card is a persona");
        if let Some(book) = &card.data.lorebook {
            book.matching(&written);
        }
    }
});
