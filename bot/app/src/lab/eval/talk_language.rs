//! Which language a text is in, by its commonest words.

/// The commonest short words of a language that the languages beside it do not have.
const LANGUAGES: [(&str, &[&str]); 5] = [
    (
        "en",
        &[
            "the", "and", "is", "are", "you", "your", "to", "of", "it", "that", "what", "with", "have", "for", "this",
            "i'm", "my", "not", "how", "can", "was", "but",
        ],
    ),
    (
        "de",
        &[
            "der", "die", "das", "und", "ist", "du", "dein", "deine", "deinen", "nicht", "ein", "eine", "ich", "wie",
            "mit", "auf", "für", "zu", "dir", "dich", "es", "von", "mir", "wo", "gut", "sind", "ihre", "sie", "abend",
        ],
    ),
    (
        "fr",
        &[
            "le",
            "la",
            "les",
            "et",
            "est",
            "vous",
            "tu",
            "ton",
            "votre",
            "un",
            "une",
            "des",
            "dans",
            "que",
            "je",
            "pas",
            "s'appelle",
            "chien",
            "il",
            "qui",
            "ce",
            "derrière",
            "du",
            "au",
        ],
    ),
    (
        "es",
        &[
            "el", "la", "los", "las", "y", "es", "tu", "un", "una", "en", "que", "con", "no", "de", "por", "hay",
            "siete", "días", "tiene", "semana", "te", "se", "del", "qué",
        ],
    ),
    (
        "it",
        &[
            "il", "la", "le", "e", "è", "un", "una", "che", "di", "non", "per", "ho", "hai", "come", "sono", "bene",
            "tua", "cucina", "ti", "con", "del", "ciao",
        ],
    ),
];

/// True if the text reads like `language`, or has too few words to tell. A language that is not in the list is not
/// judged.
pub fn is_in(language: &str, text: &str) -> bool {
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect();
    let count = |common: &[&str]| words.iter().filter(|word| common.contains(word)).count();
    let Some((_, own)) = LANGUAGES.iter().find(|(code, _)| *code == language) else { return true };
    let most = LANGUAGES.iter().map(|(_, common)| count(common)).max().unwrap_or(0);
    count(own) == most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_apart_by_their_commonest_words() {
        #[track_caller]
        fn check(text: &str, language: &str) {
            let found: Vec<&str> = LANGUAGES.iter().map(|(code, _)| *code).filter(|code| is_in(code, text)).collect();
            assert_eq!(found, [language], "{text}");
        }
        check("That is a fine name for a boat, and you know it.", "en");
        check("Das ist ein schöner Abend, und du hast dir die Ruhe verdient.", "de");
        check("Votre chien s'appelle Filou, et il est dans le jardin.", "fr");
        check("La semana tiene siete días, y el lunes es uno.", "es");
        check("Che bella notizia! Come ti sembra il colore della cucina?", "it");
        assert!(is_in("de", "Rom."), "too short to tell");
    }
}
