//! Decides when two memories say the same thing.

use std::collections::HashSet;

use crate::rows::MemoryRow;

/// Two texts are the same if this many first characters are equal. The vector rule comes on top of this simple one.
const SAME_BEGINNING: usize = 100;

/// Letters from which a word counts as rare enough to distinguish two texts.
const DISTINCTIVE_LETTERS: usize = 4;

/// Returns true if two memories of one scope, persona and speaker say the same thing. Vectors alone would make two
/// locker codes equal. So texts with different numbers, names or longer words are never the same.
pub(super) fn same(a: &MemoryRow, b: &MemoryRow, cosine: Option<f32>, threshold: f32) -> bool {
    if a.persona != b.persona || a.scope != b.scope || a.author != b.author {
        return false;
    }
    if same_beginning(&a.text, &b.text) {
        return true;
    }
    cosine.is_some_and(|cosine| cosine >= threshold) && distinctive_words(&a.text) == distinctive_words(&b.text)
}

fn same_beginning(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a.chars(), b.chars());
    for _ in 0..SAME_BEGINNING {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (left, read_scope) if left == read_scope => {}
            _ => return false,
        }
    }
    // Long texts with the same beginning may still differ in the part that matters.
    a.eq(b)
}

fn distinctive_words(text: &str) -> HashSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| {
            word.chars().count() >= DISTINCTIVE_LETTERS
                || word.chars().any(|c| c.is_ascii_digit())
                || word.chars().next().is_some_and(char::is_uppercase)
        })
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use azera_types::{Author, MemoryId, PersonId, PersonaId, Scope, Text};

    use super::*;
    use crate::rows::Kind;

    fn memory(text: &str, who: &str) -> MemoryRow {
        let person = PersonId::new(who).unwrap();
        MemoryRow {
            salience: None,
            surprise: None,
            id: MemoryId(1),
            persona: PersonaId::new("azera").unwrap(),
            kind: Kind::Message,
            scope: Scope::Dm(person.clone()),
            source_scopes: Vec::new(),
            chat: None,
            session: 0,
            author: Author::Person { id: person, name: who.into() },
            sources: Vec::new(),
            text: Text::new(text),
            at: "2026-01-01T00:00:00Z".parse().unwrap(),
        }
    }

    #[test]
    fn the_same_statement_in_other_words_is_a_duplicate() {
        #[track_caller]
        fn check(a: &str, b: &str, cosine: f32, want: bool) {
            assert_eq!(same(&memory(a, "ann"), &memory(b, "ann"), Some(cosine), 0.95), want, "{a:?} {b:?}");
        }
        check("My locker is 4711", "My locker is 4711", 1.0, true);
        check("My locker is 4711", "My locker is 4712", 0.99, false);
        check("I am off to see Ann", "I am off to see Bob", 0.99, false);
        check("I like tea!", "I like tea", 0.99, true);
        check("it is so hot", "so hot it is", 0.99, true);
        check("it is so hot", "so hot it is", 0.90, false);
        let long = "x".repeat(100);
        check(&format!("{long} one"), &format!("{long} two"), 0.5, false);
    }

    #[test]
    fn memories_of_different_people_are_no_duplicates() {
        let (a, b) = (memory("the sea is calm", "ann"), memory("the sea is calm", "bob"));
        assert!(!same(&a, &b, Some(1.0), 0.95));
    }
}
