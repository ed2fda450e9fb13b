//! A message as the patterns see it.

use std::borrow::Cow;

use super::normal::normalise;
use super::pattern::{BARRIER, List, Spacing};

/// Characters of a message that are looked at: its first half and its last half of this. Matching takes time with the length, and
/// nobody hides a cry for help in the middle of a hundred thousand characters.
const MAX_CHARS: usize = 16_000;

/// Returns a message, or its first and last part if it is very long.
pub(super) fn both_ends(text: &str) -> Cow<'_, str> {
    let chars = text.chars().count();
    if chars <= MAX_CHARS {
        return Cow::Borrowed(text);
    }
    let half = MAX_CHARS / 2;
    Cow::Owned(text.chars().take(half).chain(['\n']).chain(text.chars().skip(chars - half)).collect())
}

/// A message as the patterns see it.
#[derive(Debug)]
pub(super) struct Normalised {
    /// Words, each with a blank before and behind it.
    pub(super) spaced: String,
    /// The same without blanks, for scripts that set no words apart.
    solid: String,
}

impl Normalised {
    pub(super) fn of(text: &str) -> Self {
        let spaced = normalise(text);
        Self { solid: spaced.replace(' ', ""), spaced }
    }

    pub(super) fn as_written(&self, spacing: Spacing) -> &str {
        match spacing {
            Spacing::Words => &self.spaced,
            Spacing::None => &self.solid,
        }
    }

    /// The same message with a barrier in the place of each idiom.
    pub(super) fn without(&self, idioms: &List, spacing: Spacing) -> Self {
        let mut left = self.as_written(spacing).to_owned();
        // Two idioms in a row share the blank between them, so one pass may leave the second.
        while let Some(regex) = idioms.regexes(&left).find(|regex| regex.is_match(left.as_bytes())) {
            let rest = regex.replace_all(left.as_bytes(), BARRIER.as_bytes());
            left = String::from_utf8_lossy(&rest).into_owned();
        }
        match spacing {
            Spacing::Words => Self { solid: left.replace(' ', ""), spaced: left },
            // Where the idiom stands among the words is not known, so the words stay as they are.
            Spacing::None => Self { spaced: self.spaced.clone(), solid: left.replace(' ', "") },
        }
    }
}
