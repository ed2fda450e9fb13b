//! Which pictures a search of the gallery finds.

use azera_memory::PictureRow;
use azera_types::PersonId;

/// The word for oneself in a search by people.
const ME: &str = "me";

/// Returns a text in lower case, in words.
pub(crate) fn words_of(text: &str) -> Vec<String> {
    text.to_lowercase().split_whitespace().map(str::to_owned).collect()
}

/// Returns true if the prompt or the name of a picture holds these words, which are in lower case.
pub(crate) fn holds_words(row: &PictureRow, words: &[String]) -> bool {
    let text = format!("{} {}", row.prompt.as_str(), row.name.as_deref().unwrap_or_default()).to_lowercase();
    words.iter().all(|word| text.contains(word))
}

/// Whose pictures are listed.
#[derive(Clone)]
pub(crate) enum By {
    /// Those of the person who asks.
    Asker(PersonId),
    /// Those of people whose displayed name holds these words, in lower case.
    Named(String),
}

impl By {
    /// Returns those of a person: of `asker` for `me`.
    pub(crate) fn of(name: &str, asker: &PersonId) -> Self {
        match name.to_lowercase() {
            name if name == ME => Self::Asker(asker.clone()),
            name => Self::Named(name),
        }
    }

    pub(crate) fn asked_for(&self, row: &PictureRow) -> bool {
        match self {
            Self::Asker(asker) => row.person == *asker,
            Self::Named(name) => row.by.as_deref().is_some_and(|by| by.to_lowercase().contains(name)),
        }
    }
}
