//! A message as the patterns see it.

use super::normal::normalise;
use super::pattern::{BARRIER, List, Spacing};

/// Characters of a message that are looked at: its first half and its last half of this. Matching takes time with the length, and
/// nobody hides a cry for help in the middle of a hundred thousand characters.
const MAX_CHARS: usize = 16_000;

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
        let chars = text.chars().count();
        let spaced = if chars <= MAX_CHARS {
            normalise(text)
        } else {
            let half = MAX_CHARS / 2;
            let ends: String = text.chars().take(half).chain([' ']).chain(text.chars().skip(chars - half)).collect();
            normalise(&ends)
        };
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
