//! Persona files: any bytes give a persona or errors with line numbers, and a persona reads back the same.
#![no_main]

use azera_personas::{CardData, CardSpec, check_bytes, import_card, parse, to_card};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let checked = check_bytes(bytes);
    if let Some(persona) = checked.persona {
        let written = persona.to_markdown();
        let again = parse(&written).expect("what was written is a persona");
        assert_eq!(again.to_markdown(), written);
        let card = to_card(&persona, &CardData::default(), CardSpec::V3).to_string();
        import_card(card.as_bytes()).expect("an exported card is a card");
    }
});
