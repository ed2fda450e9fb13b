//! When two memories say the same thing.

use std::collections::HashSet;

use crate::rows::MemoryRow;

/// Characters whose equality makes two texts the same: the seed's rule, the floor of this one.
const SAME_BEGINNING: usize = 100;

/// Letters from which a word counts as rare enough to tell two texts apart.
const TELLING_LETTERS: usize = 4;

/// Whether two memories of one scope, persona and speaker are the same thing said twice. By vector alone two locker
/// codes are: so nothing counts as the same whose numbers, names or longer words differ.
pub(super) fn same(a: &MemoryRow, b: &MemoryRow, cosine: Option<f32>, threshold: f32) -> bool {
    if a.persona != b.persona || a.scope != b.scope || a.author != b.author {
        return false;
    }
    if same_beginning(&a.text, &b.text) {
        return true;
    }
    cosine.is_some_and(|cosine| cosine >= threshold) && telling_words(&a.text) == telling_words(&b.text)
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
    // Long texts that begin alike may end differently in what matters.
    a.eq(b)
}

fn telling_words(text: &str) -> HashSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| {
            word.chars().count() >= TELLING_LETTERS
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
    fn what_says_the_same() {
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
    fn other_people_say_other_things() {
        let (a, b) = (memory("the sea is calm", "ann"), memory("the sea is calm", "bob"));
        assert!(!same(&a, &b, Some(1.0), 0.95));
    }
}
