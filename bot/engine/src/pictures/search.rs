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

/// Returns true if a text is how platforms write a mention of this id: `<@123>` or `<#123>` of `platform:123`.
pub(crate) fn mentions(text: &str, id: &str) -> bool {
    let named = ["<#", "<@!", "<@"].into_iter().find_map(|mark| text.strip_prefix(mark)?.strip_suffix('>'));
    named.is_some_and(|named| !named.is_empty() && (id == named || id.rsplit(':').next() == Some(named)))
}

/// Whose pictures are listed.
#[derive(Clone)]
pub(crate) enum By {
    /// Those of the person who asks.
    Asker(PersonId),
    /// Those of people whose displayed name holds these words, in lower case, or of the one whom they mention.
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
            Self::Named(name) => {
                let is_named = row.by.as_deref().is_some_and(|by| by.to_lowercase().contains(name));
                is_named || mentions(name, row.person.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_names_its_id_alone() {
        for (text, id) in [("<@123>", "platform:123"), ("<@!123>", "platform:123"), ("<#123>", "platform:123")] {
            assert!(mentions(text, id), "{text}");
        }
        for text in ["<@12>", "<@>", "123", "<#123", "platform:123"] {
            assert!(!mentions(text, "platform:123"), "{text}");
        }
    }
}
