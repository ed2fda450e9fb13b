//! Cards that were damaged on their way: thousands of small changes to good files, and none that panics, hangs or gives
//! a persona that its own file does not.

use azera_personas::{CardSpec, Talk, import_card, parse, to_card};

use crate::cards::v2;
use crate::png::{compressed_text, international_text, picture, text};

/// A small generator of numbers, so that each run tries the same changes.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// Pieces that mean something to one of the readers.
const PIECES: [&[u8]; 28] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"{{",
    b"}}",
    b"null",
    b"\"",
    b"\\",
    b"\\ud83d",
    b"\\u0000",
    b"<START>",
    b"{{random::a::",
    b"<user>",
    b"/(a|b)+/i",
    b"/(/",
    b"-1",
    b"1e999",
    b"\xff",
    b"\xEF\xBB\xBF",
    b"tEXt",
    b"IEND",
    b"PK\x03\x04",
    b"@@activate\\n",
    b"\"sticky\": 9, ",
    b"\"selectiveLogic\": 3, ",
    b"\"extensions\": 5, ",
    b"\x00",
];

fn mutate(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len() + 1);
        let piece = PIECES[numbers.below(PIECES.len())];
        match numbers.below(5) {
            0 if at < bytes.len() => bytes[at] = numbers.below(256) as u8,
            1 if at < bytes.len() => {
                bytes.remove(at);
            }
            2 => bytes.truncate(at),
            3 => {
                let end = (at + numbers.below(40)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
}

#[test]
fn thousands_of_damaged_cards_are_read_or_refused() {
    let json = v2().to_string();
    let wide: Vec<u8> = json.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let seeds = [
        json.clone().into_bytes(),
        json.clone().into_bytes(),
        wide,
        picture(&[text("chara", &json)]),
        picture(&[compressed_text("ccv3", json.as_bytes()), international_text("chara", &json, true)]),
        crate::readers::archive(&[("card.json", json.as_bytes())]),
    ];
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let (mut taken, mut refused) = (0, 0);
    for round in 0..6000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        mutate(&mut bytes, &mut numbers);
        let Ok(card) = import_card(&bytes) else {
            refused += 1;
            continue;
        };
        taken += 1;
        let markdown = card.persona.to_markdown();
        assert_eq!(parse(&markdown).as_ref(), Ok(&card.persona), "{}", String::from_utf8_lossy(&bytes));
        let exported = to_card(&card.persona, &card.data, CardSpec::V3).to_string();
        let again = import_card(exported.as_bytes()).unwrap_or_else(|error| panic!("{error}: {exported}"));
        assert_eq!((&again.persona, &again.data.greetings), (&card.persona, &card.data.greetings), "{exported}");
        if let Some(book) = card.data.into_lorebook() {
            let messages = [markdown.as_str(), "the gull and its mate"];
            book.matching_talk(&Talk { messages: &messages, count: 2, ..Talk::default() });
        }
    }
    assert!(taken > 500 && refused > 500, "{taken} taken, {refused} refused");
}
