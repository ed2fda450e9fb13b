//! Character cards, JSON, PNG and CharX: an imported persona can be written and read again, and exported as a card that
//! gives the same persona.
#![no_main]

use azera_personas::{CardSpec, Talk, callable_as, import_card, parse, to_card};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(card) = import_card(bytes) {
        let written = card.persona.to_markdown();
        parse(&written).expect("an imported card is a persona");
        card.persona.answers_to().for_each(|name| drop(callable_as(name)));
        let exported = to_card(&card.persona, &card.data, CardSpec::V3).to_string();
        let again = import_card(exported.as_bytes()).expect("an exported card is a card");
        assert_eq!(again.persona, card.persona);
        if let Some(book) = card.data.into_lorebook() {
            let messages = [written.as_str(), "the newest message"];
            book.matching_talk(&Talk { messages: &messages, count: 2, description: &written, ..Talk::default() });
        }
    }
});
