//! A digest of the word lists and of folding, for indexes that are built with them.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use super::fold::fold;
use super::languages::LISTS;

/// Letters with signs: Latin, Greek, Cyrillic, Hebrew and Arabic, and further Latin ones. How they are folded stands for
/// all of folding.
const LETTERS: [std::ops::RangeInclusive<char>; 2] = ['\u{a0}'..='\u{6ff}', '\u{1e00}'..='\u{1fff}'];

static DIGEST: LazyLock<[u8; 32]> = LazyLock::new(|| digest_of(LISTS));

/// Returns a digest that changes with the word lists and with folding.
pub(crate) fn digest() -> &'static [u8; 32] {
    &DIGEST
}

fn digest_of(lists: &str) -> [u8; 32] {
    let letters: String = LETTERS.into_iter().flatten().collect();
    Sha256::new().chain_update(lists).chain_update(fold(&letters)).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_list_has_another_digest() {
        assert_eq!(digest(), &digest_of(LISTS));
        assert_ne!(digest(), &digest_of(&format!("{LISTS}\n# nothing")));
    }
}
