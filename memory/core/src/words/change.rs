//! Words of a statement that replaces an earlier one.

/// They stand in such statements, in whatever language.
const CHANGING: &str = "actually anymore became changed change correction finally instead longer meant moved moving new \
    newly now nowadays postponed quit renamed replaced rescheduled since started stopped swapped switched turns update \
    updated wrong jetzt neue neuer neues umgezogen gewechselt ahora nuevo nueva cambio maintenant nouveau nouvelle \
    adesso nuovo nuova agora novo nova artik yeni nieuw nieuwe";

/// Returns true if a word, in lower case, is one of a statement that replaces an earlier one, such as "instead".
pub fn tells_of_change(word: &str) -> bool {
    CHANGING.split_whitespace().any(|known| known == word)
}
