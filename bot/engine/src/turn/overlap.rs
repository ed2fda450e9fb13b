//! How much of one text stands in others, by words that carry meaning.

use std::collections::HashSet;

use azera_memory::words::{carries_meaning, has_number, query_words};

/// Shortest word that carries meaning by itself; shorter ones count only with a digit in them.
const MIN_LETTERS: usize = 4;

/// Share of a reply's words found in recalled lines at which it counts as a recitation.
const RECITED: f32 = 0.5;

/// Words of a text that carry meaning, folded. In scripts without spaces, they are pairs of characters.
fn words(text: &str) -> HashSet<String> {
    let tells = |word: &String| word.chars().count() >= MIN_LETTERS || has_number(word) || carries_meaning(word);
    query_words(text).into_iter().filter(tells).collect()
}

/// Whether a reply says something of its own: enough words, most of which stand in none of `recalled`. What merely
/// recites memories must not become a memory.
pub fn says_something_new<'a>(reply: &str, recalled: impl IntoIterator<Item = &'a str>) -> bool {
    let said = words(reply);
    if said.len() < 3 {
        return false;
    }
    let known: HashSet<String> = recalled.into_iter().flat_map(words).collect();
    let recited = said.iter().filter(|word| known.contains(*word)).count();
    (recited as f32) < RECITED * said.len() as f32
}

/// Whether a reply repeats something particular from `source`: a word with a digit, or two words that carry meaning.
pub fn quotes(reply: &str, source: &str) -> bool {
    let source = words(source);
    let shared: Vec<String> = words(reply).into_iter().filter(|word| source.contains(word)).collect();
    shared.len() >= 2 || shared.iter().any(|word| word.chars().any(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recited_memories_are_not_new() {
        let memory = "the passphrase for the lighthouse is copper heron";
        assert!(!says_something_new("Your lighthouse passphrase is copper heron.", [memory]));
        assert!(says_something_new("Lighthouses fascinate me: lonely towers keeping watch.", [memory]));
        assert!(!says_something_new("ok", []));
        assert!(says_something_new("灯台はとても静かな場所だと思います。", ["猫の名前はミソです"]));
        assert!(!says_something_new("灯台の合言葉は銅の鷺。", ["灯台の合言葉は銅の鷺です"]));
    }

    #[test]
    fn a_number_or_two_words_make_a_quote() {
        assert!(quotes("It is 4711.", "my code is 4711"));
        assert!(quotes("copper heron it is", "the phrase is copper heron"));
        assert!(!quotes("I see, thank you", "my code is 4711"));
    }
}
