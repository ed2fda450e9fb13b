//! The ids of Kokoro's phonemes.

/// The id before the first and behind the last phoneme.
const END: i32 = 0;
/// How many ids are no phonemes.
pub const ENDS: usize = 2;

/// The id of each symbol, ordered by id: `vocab` in the `config.json` of hexgrad/Kokoro-82M (Apache-2.0).
#[rustfmt::skip]
const IDS: &[(char, i32)] = &[
    (';', 1), (':', 2), (',', 3), ('.', 4), ('!', 5), ('?', 6), ('—', 9), ('…', 10), ('"', 11),
    ('(', 12), (')', 13), ('“', 14), ('”', 15), (' ', 16), ('\u{303}', 17), ('ʣ', 18), ('ʥ', 19), ('ʦ', 20),
    ('ʨ', 21), ('ᵝ', 22), ('ꭧ', 23), ('A', 24), ('I', 25), ('O', 31), ('Q', 33), ('S', 35), ('T', 36),
    ('W', 39), ('Y', 41), ('ᵊ', 42), ('a', 43), ('b', 44), ('c', 45), ('d', 46), ('e', 47), ('f', 48),
    ('h', 50), ('i', 51), ('j', 52), ('k', 53), ('l', 54), ('m', 55), ('n', 56), ('o', 57), ('p', 58),
    ('q', 59), ('r', 60), ('s', 61), ('t', 62), ('u', 63), ('v', 64), ('w', 65), ('x', 66), ('y', 67),
    ('z', 68), ('ɑ', 69), ('ɐ', 70), ('ɒ', 71), ('æ', 72), ('β', 75), ('ɔ', 76), ('ɕ', 77), ('ç', 78),
    ('ɖ', 80), ('ð', 81), ('ʤ', 82), ('ə', 83), ('ɚ', 85), ('ɛ', 86), ('ɜ', 87), ('ɟ', 90), ('ɡ', 92),
    ('ɥ', 99), ('ɨ', 101), ('ɪ', 102), ('ʝ', 103), ('ɯ', 110), ('ɰ', 111), ('ŋ', 112), ('ɳ', 113), ('ɲ', 114),
    ('ɴ', 115), ('ø', 116), ('ɸ', 118), ('θ', 119), ('œ', 120), ('ɹ', 123), ('ɾ', 125), ('ɻ', 126), ('ʁ', 128),
    ('ɽ', 129), ('ʂ', 130), ('ʃ', 131), ('ʈ', 132), ('ʧ', 133), ('ʊ', 135), ('ʋ', 136), ('ʌ', 138), ('ɣ', 139),
    ('ɤ', 140), ('χ', 142), ('ʎ', 143), ('ʒ', 147), ('ʔ', 148), ('ˈ', 156), ('ˌ', 157), ('ː', 158), ('ʰ', 162),
    ('ʲ', 164), ('↓', 169), ('→', 171), ('↗', 172), ('↘', 173), ('ᵻ', 177),
];

/// Returns the ids of phonemes as the model takes them, and for each symbol how many ids stand before its end. Symbols
/// that the model does not know have no ids.
pub fn ids(phonemes: &str) -> (Vec<i32>, Vec<usize>) {
    let mut ids = vec![END];
    let mut ends = Vec::new();
    for symbol in phonemes.chars() {
        ids.extend(IDS.iter().find(|(known, _)| *known == symbol).map(|(_, id)| *id));
        ends.push(ids.len());
    }
    ids.push(END);
    (ids, ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phonemes_stand_between_two_ends() {
        assert_eq!(ids("hˈI."), (vec![0, 50, 156, 25, 4, 0], vec![2, 3, 4, 5]));
        assert_eq!(ids("a❓b"), (vec![0, 43, 44, 0], vec![2, 2, 3]), "an unknown symbol has no id");
        assert_eq!(ids(""), (vec![0, 0], vec![]));
    }

    #[test]
    fn each_symbol_has_its_own_id() {
        assert_eq!(IDS.len(), 114);
        assert!(IDS.is_sorted_by_key(|(_, id)| *id) && IDS.iter().all(|(_, id)| (1..178).contains(id)));
        for (index, (symbol, id)) in IDS.iter().enumerate() {
            assert!(IDS.iter().skip(index + 1).all(|(other, other_id)| other != symbol && other_id != id));
        }
    }
}
