//! Where a tag begins. Models write `[IMAGE_GEN:` in many ways.

/// Brackets that begin a tag, and those that end it.
const BRACKETS: [(char, char); 5] = [('[', ']'), ('【', '】'), ('{', '}'), ('<', '>'), ('(', ')')];

/// Characters that may stand before the bracket and belong to the tag: an escape, or the mark of a Markdown picture.
const BEFORE: [char; 2] = ['\\', '!'];

/// Most blanks within the opening.
const MAX_BLANKS: usize = 3;

/// What stands at a place of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// No tag begins here.
    No,
    /// A tag may begin here; more of the text tells.
    Maybe,
    /// A tag begins here.
    Yes {
        /// Characters of the opening.
        length: usize,
        /// The bracket that ends the tag.
        close: char,
    },
}

/// Returns what stands at the beginning of `text`.
pub(crate) fn opening(text: &[char]) -> Opening {
    let mut at = 0;
    while text.get(at).is_some_and(|c| BEFORE.contains(c)) {
        at += 1;
        if at > 2 {
            return Opening::No;
        }
    }
    let Some(bracket) = text.get(at) else { return if at == 0 { Opening::No } else { Opening::Maybe } };
    let Some((_, close)) = BRACKETS.iter().find(|(open, _)| open == bracket) else { return Opening::No };
    let is_square = matches!(bracket, '[' | '【');
    at += 1;
    let mut reading = Reading { text, at };
    let read = reading.blanks().and_then(|()| reading.word("image")).and_then(|()| {
        let underscored = reading.separator()?;
        reading.word("gen")?;
        reading.emphasis()?;
        Ok(underscored || is_square)
    });
    match read {
        Err(Opening::Maybe) => return Opening::Maybe,
        Ok(true) => {}
        _ => return Opening::No,
    }
    match text.get(reading.at) {
        None => Opening::Maybe,
        // Another word, such as `[imagegenius]`.
        Some(next) if next.is_alphanumeric() => Opening::No,
        Some(_) => Opening::Yes { length: reading.at, close: *close },
    }
}

struct Reading<'a> {
    text: &'a [char],
    at: usize,
}

impl Reading<'_> {
    fn blanks(&mut self) -> Result<(), Opening> {
        for _ in 0..=MAX_BLANKS {
            match self.text.get(self.at) {
                None => return Err(Opening::Maybe),
                Some(c) if c.is_whitespace() || matches!(c, '*' | '_' | '`') => self.at += 1,
                Some(_) => return Ok(()),
            }
        }
        Err(Opening::No)
    }

    fn word(&mut self, word: &str) -> Result<(), Opening> {
        for letter in word.chars() {
            match self.text.get(self.at) {
                None => return Err(Opening::Maybe),
                Some(c) if c.to_ascii_lowercase() == letter => self.at += 1,
                Some(_) => return Err(Opening::No),
            }
        }
        Ok(())
    }

    /// Skips the end of emphasis or code around the name.
    fn emphasis(&mut self) -> Result<(), Opening> {
        for _ in 0..=MAX_BLANKS {
            match self.text.get(self.at) {
                None => return Err(Opening::Maybe),
                Some('*' | '`') => self.at += 1,
                Some(_) => return Ok(()),
            }
        }
        Err(Opening::No)
    }

    /// Skips what stands between the two words; returns true if it was an underscore or a hyphen.
    fn separator(&mut self) -> Result<bool, Opening> {
        let mut underscored = false;
        for _ in 0..=MAX_BLANKS {
            match self.text.get(self.at) {
                None => return Err(Opening::Maybe),
                Some('_' | '-' | '‑' | '–') => underscored = true,
                Some('\\' | ' ') => {}
                Some(_) => return Ok(underscored),
            }
            self.at += 1;
        }
        Err(Opening::No)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_are_told_from_other_brackets() {
        #[track_caller]
        fn check(text: &str, want: Option<bool>) {
            let text: Vec<char> = text.chars().collect();
            let found = match opening(&text) {
                Opening::No => Some(false),
                Opening::Yes { .. } => Some(true),
                Opening::Maybe => None,
            };
            assert_eq!(found, want, "{text:?}");
        }
        for yes in [
            "[IMAGE_GEN:",
            "[image gen ",
            "\\[IMAGE\\_GEN:",
            "![ImageGen=",
            "【IMAGE_GEN:",
            "<image_gen ",
            "[ *IMAGE-GEN*:",
        ] {
            check(yes, Some(true));
        }
        for no in ["[imagegenius", "[image]", "(image gen ", "x", "[a", "[    image_gen:", "!!![IMAGE_GEN:", "!x"] {
            check(no, Some(false));
        }
        for maybe in ["[", "[ima", "[IMAGE_GEN", "\\", "![", "[image ", "[ *IMAGE-GEN*"] {
            check(maybe, None);
        }
    }
}
