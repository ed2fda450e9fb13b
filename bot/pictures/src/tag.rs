//! Tags in replies: `[IMAGE_GEN: prompt="…", name="…"]`. A persona writes one where it wants a picture.

use crate::opening::{Opening, opening};
use crate::tag_fields::{End, end, fields};

/// The longest tag, in characters. What goes on is cut off at the first empty line or bracket.
const MAX_TAG_CHARS: usize = 2_000;

/// The longest prompt, in characters.
const MAX_PROMPT_CHARS: usize = 1_000;

/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 80;

/// A picture that a reply asks for.
#[derive(Clone, PartialEq, Eq)]
pub struct PictureTag {
    /// What to draw; never empty.
    pub prompt: String,
    /// What the picture is called.
    pub name: Option<String>,
}

impl std::fmt::Debug for PictureTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PictureTag({} characters)", self.prompt.chars().count())
    }
}

/// Takes tags out of a reply while it is generated. What may belong to a tag is held back until it is clear. The result
/// does not depend on how the reply is cut into pieces.
#[derive(Debug, Default)]
pub struct TagFilter {
    /// What is not shown yet.
    held: Vec<char>,
    /// The closing bracket of the tag that `held` begins with, behind its opening.
    tag: Option<char>,
    /// The last character that was shown.
    last: Option<char>,
    /// A tag has just ended, so blanks that follow a blank are left out.
    after_tag: bool,
    found: Vec<PictureTag>,
}

impl TagFilter {
    /// Takes the next piece of the reply, and returns what can be shown.
    pub fn pass(&mut self, piece: &str) -> String {
        self.held.extend(piece.chars());
        let mut shown = String::new();
        while self.step(&mut shown, false) {}
        shown
    }

    /// Ends the reply, and returns the rest to show. A tag without an end is not shown.
    pub fn finish(&mut self) -> String {
        let mut shown = String::new();
        while self.step(&mut shown, true) {}
        shown
    }

    /// Takes the pictures that were asked for so far.
    pub fn take_pictures(&mut self) -> Vec<PictureTag> {
        std::mem::take(&mut self.found)
    }

    /// Handles one character or tag; returns false if more of the reply is needed.
    fn step(&mut self, shown: &mut String, is_over: bool) -> bool {
        let Some(close) = self.tag else { return self.outside(shown, is_over) };
        match end(&self.held, close) {
            End::At(length) => {
                self.close(length, 1);
                true
            }
            End::Open if is_over || self.held.len() > MAX_TAG_CHARS => {
                let length = cut(&self.held, close);
                let bracket = usize::from(self.held.get(length.saturating_sub(1)) == Some(&close));
                self.close(length, bracket);
                true
            }
            End::Open => false,
        }
    }

    fn outside(&mut self, shown: &mut String, is_over: bool) -> bool {
        let Some(first) = self.held.first().copied() else { return false };
        match opening(&self.held) {
            Opening::Yes { length, close } => {
                self.held.drain(..length);
                self.tag = Some(close);
            }
            // A broken beginning of a tag at the end of a reply is not shown either.
            Opening::Maybe if is_over && self.held.len() > "[image".len() => self.held.clear(),
            Opening::Maybe if !is_over => return false,
            _ => {
                self.held.remove(0);
                let is_blank = matches!(first, ' ' | '\t');
                let after_blank = self.last.is_none_or(char::is_whitespace);
                if !(self.after_tag && is_blank && after_blank) {
                    shown.push(first);
                    (self.last, self.after_tag) = (Some(first), false);
                }
            }
        }
        true
    }

    /// Ends a tag after `length` characters, the last `bracket` of which are not part of its inside.
    fn close(&mut self, length: usize, bracket: usize) {
        let whole: Vec<char> = self.held.drain(..length.min(self.held.len())).collect();
        let inside = whole.get(..whole.len().saturating_sub(bracket)).unwrap_or_default();
        let read = fields(inside);
        let cut = |text: &str, most: usize| text.chars().take(most).collect::<String>();
        if read.prompt.chars().any(char::is_alphanumeric) {
            let name = read.name.map(|name| cut(&name, MAX_NAME_CHARS));
            self.found.push(PictureTag { prompt: cut(&read.prompt, MAX_PROMPT_CHARS), name });
        }
        (self.tag, self.after_tag) = (None, true);
    }
}

/// Returns where a tag without an end is cut off: behind its first bracket, before its first empty line, or nowhere.
fn cut(held: &[char], close: char) -> usize {
    let bracket = held.iter().position(|c| *c == close).map(|at| at + 1);
    let line = held.windows(2).position(|pair| pair == ['\n', '\n']);
    bracket.or(line).unwrap_or(held.len()).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts with tags: what goes in, what is shown, and the prompts.
    const CORPUS: &str = include_str!("../rules/tags.txt");

    /// A line of the corpus. `⏎` stands for a line end, `|` separates prompts.
    fn cases() -> Vec<(String, String, Vec<String>)> {
        let line = |text: &str| text.replace('⏎', "\n");
        let blocks = CORPUS.split("\n\n").map(str::trim).filter(|block| !block.is_empty() && !block.starts_with('#'));
        let case = |block: &str| {
            let mut lines = block.lines();
            let mut next = |mark: char| {
                let rest = lines.next().and_then(|line| line.strip_prefix(mark)).unwrap_or_else(|| panic!("{block}"));
                rest.strip_prefix(' ').unwrap_or(rest)
            };
            let (from, shown, prompts) = (line(next('<')), line(next('>')), next('='));
            let prompts = prompts.split('|').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect();
            (from, shown, prompts)
        };
        blocks.map(case).collect()
    }

    fn filtered(pieces: &[&str]) -> (String, Vec<PictureTag>) {
        let mut filter = TagFilter::default();
        let mut shown: String = pieces.iter().map(|piece| filter.pass(piece)).collect();
        shown.push_str(&filter.finish());
        (shown, filter.take_pictures())
    }

    #[test]
    fn every_odd_tag_is_read_and_none_is_shown() {
        let cases = cases();
        assert!(cases.len() >= 200, "{}", cases.len());
        let mut wrong = Vec::new();
        for (from, want, prompts) in &cases {
            let (shown, found) = filtered(&[from]);
            let found: Vec<String> = found.into_iter().map(|tag| tag.prompt).collect();
            // Blanks at the end of a line of the corpus are hard to see, so they do not count.
            if shown.trim_end() != want.trim_end() || found != *prompts {
                wrong.push(format!(
                    "{from:?}\n  shown {shown:?}\n  want  {want:?}\n  found {found:?}\n  want  {prompts:?}"
                ));
            }
        }
        assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    }

    #[test]
    fn cutting_a_reply_anywhere_changes_nothing() {
        for (from, _, _) in cases() {
            let whole = filtered(&[&from]);
            for (at, _) in from.char_indices() {
                let (head, tail) = from.split_at(at);
                assert_eq!(filtered(&[head, tail]), whole, "{head:?} {tail:?}");
            }
            let letters: Vec<String> = from.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(filtered(&letters), whole, "{from:?}");
        }
    }

    #[test]
    fn a_name_comes_with_its_prompt() {
        let (_, found) = filtered(&["[IMAGE_GEN: name=\"Dusk\", prompt=\"a lighthouse\"]"]);
        assert_eq!(found, [PictureTag { prompt: "a lighthouse".into(), name: Some("Dusk".into()) }]);
        assert!(!format!("{found:?}").contains("lighthouse"));
    }

    proptest! {
        #[test]
        fn text_without_tags_is_shown_as_it_is(text in "[a-z \\[\\](){}<>!\\\\\"'\n]{0,80}") {
            prop_assume!(!text.contains("image"));
            let shown = filtered(&[&text]).0;
            prop_assert_eq!(shown, text);
        }

        #[test]
        fn a_tag_is_never_shown_and_cuts_change_nothing(
            before in "[a-zA-Z ,.\n\\[]{0,20}",
            inside in "[a-zA-Z ,.=:\"'\n\\[\\]“”]{0,40}",
            after in "[a-zA-Z ,.\n\\]\"]{0,20}",
            cuts in prop::collection::vec(0_usize..120, 0..6),
        ) {
            let text = format!("{before}[IMAGE_GEN: prompt=\"{inside}\", name=\"x\"]{after}");
            let whole = filtered(&[&text]);
            prop_assert!(!whole.0.to_lowercase().contains("image_gen"));
            let bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| bytes[cut % bytes.len()]).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|cut| text.get(cut[0]..cut[1]).unwrap()).collect();
            prop_assert_eq!(filtered(&pieces), whole);
        }
    }
}
