//! Shapes a streamed reply: takes off it what is not part of it, before it is shown.

use azera_pictures::{PictureTag, TagFilter};

use crate::turn::brake::Brake;
use crate::turn::ending::Ending;

/// Shown in the place of a reply that is nothing but a picture.
const ONLY_A_PICTURE: &str = "🎨";

/// Takes off a streamed reply what is not part of it: its label, tags for pictures, a loop, and a sentence that its
/// length limit cut.
pub(super) struct Shaping {
    label: Label,
    tags: TagFilter,
    brake: Brake,
    ending: Ending,
}

impl Shaping {
    /// Begins a reply of at most `max_tokens` by the speaker `name`.
    pub(super) fn new(name: &str, max_tokens: usize) -> Self {
        Self {
            label: Label::new(name),
            tags: TagFilter::default(),
            brake: Brake::default(),
            ending: Ending::new(max_tokens),
        }
    }

    /// What of the reply can be shown now.
    pub(super) fn pass(&mut self, piece: &str) -> String {
        let text = self.label.pass(piece).map(|piece| self.tags.pass(&piece)).unwrap_or_default();
        let text = self.brake.pass(&text);
        self.ending.pass(&text)
    }

    /// Returns true if the reply repeats itself. Nothing that follows is part of it.
    pub(super) fn is_over(&self) -> bool {
        self.brake.is_pulled()
    }

    /// Ends the reply, of which `shown` was shown: the rest of it, and the pictures that it asks for. `is_cut` is true if
    /// its length limit ended it. With `may_be_picture`, a reply of nothing but a picture shows a sign.
    pub(super) fn finish(&mut self, shown: &str, may_be_picture: bool, is_cut: bool) -> (String, Vec<PictureTag>) {
        let mut last = self.label.rest().map(|rest| self.tags.pass(&rest)).unwrap_or_default();
        last.push_str(&self.tags.finish());
        let mut last = self.brake.pass(&last);
        last.push_str(&self.brake.finish());
        let mut rest = self.ending.pass(&last);
        rest.push_str(&self.ending.finish(is_cut, shown.trim().is_empty() && rest.trim().is_empty()));
        let pictures = self.tags.take_pictures();
        if may_be_picture && !pictures.is_empty() && shown.trim().is_empty() && rest.trim().is_empty() {
            rest = ONLY_A_PICTURE.to_owned();
        }
        (rest, pictures)
    }
}

/// Takes blanks and the speaker's own name off the beginning of a streamed reply.
struct Label {
    name: String,
    held: Option<String>,
}

impl Label {
    fn new(name: &str) -> Self {
        Self { name: format!("{name}:").to_lowercase(), held: Some(String::new()) }
    }

    /// What of the reply can be shown now.
    fn pass(&mut self, piece: &str) -> Option<String> {
        let Some(held) = &mut self.held else { return Some(piece.to_owned()) };
        held.push_str(piece);
        let start = held.trim_start();
        let lower = start.to_lowercase();
        if self.name.starts_with(&lower) && lower != self.name {
            return None;
        }
        let shown = if lower.starts_with(&self.name) {
            let rest: String = start.chars().skip(self.name.chars().count()).collect();
            rest.trim_start().to_owned()
        } else {
            start.to_owned()
        };
        if shown.is_empty() {
            return None;
        }
        self.held = None;
        Some(shown)
    }

    /// What was held back when the reply ended.
    fn rest(&mut self) -> Option<String> {
        let held = self.held.take()?;
        let start = held.trim();
        (!start.is_empty() && start.to_lowercase() != self.name).then(|| start.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_taken_off() {
        #[track_caller]
        fn check(pieces: &[&str], want: &str) {
            let mut label = Label::new("Azera");
            let mut text: String = pieces.iter().filter_map(|piece| label.pass(piece)).collect();
            text.extend(label.rest());
            assert_eq!(text, want, "{pieces:?}");
        }
        check(&["Azera: hello", " there"], "hello there");
        check(&["Az", "era", ":", " hello"], "hello");
        check(&[" \n", "Hello"], "Hello");
        check(&["Azerbaijan"], "Azerbaijan");
        check(&["Az"], "Az");
        check(&["Azera", " is my name"], "Azera is my name");
        check(&["Azera:"], "");
    }

    #[test]
    fn a_tag_is_taken_out_of_a_reply_and_a_reply_of_nothing_else_shows_a_sign() {
        #[track_caller]
        fn check(pieces: &[&str], want: &str, prompts: &[&str]) {
            let mut shaping = Shaping::new("Azera", 500);
            let mut text: String = pieces.iter().map(|piece| shaping.pass(piece)).collect();
            let (rest, pictures) = shaping.finish(&text, true, false);
            text.push_str(&rest);
            let found: Vec<&str> = pictures.iter().map(|tag| tag.prompt.as_str()).collect();
            assert_eq!((text.as_str(), found.as_slice()), (want, prompts), "{pieces:?}");
        }
        check(&["Azera: Look. [IMAGE", "_GEN: prompt=\"a tower\"]"], "Look. ", &["a tower"]);
        check(&["[IMAGE_GEN: prompt=\"a tower\"]"], ONLY_A_PICTURE, &["a tower"]);
        check(&["[IMAGE_GEN: prompt=\"\"]"], "", &[]);
        check(&["no [tag] here"], "no [tag] here", &[]);
    }

    /// Streams a reply word by word, and returns what is shown.
    fn streamed(text: &str, max_tokens: usize, is_cut: bool) -> String {
        let mut shaping = Shaping::new("Azera", max_tokens);
        let mut shown = String::new();
        for piece in text.split_inclusive(' ') {
            shown.push_str(&shaping.pass(piece));
            if shaping.is_over() {
                break;
            }
        }
        let (rest, _) = shaping.finish(&shown, true, is_cut);
        shown.push_str(&rest);
        shown.trim().to_owned()
    }

    #[test]
    fn a_reply_at_its_limit_ends_with_a_whole_sentence() {
        let told = "The keeper lit the lamp. The boats came home. Then the wind tur";
        assert_eq!(streamed(told, 10, true), "The keeper lit the lamp. The boats came home.");
        assert_eq!(streamed(told, 10, false), told, "the model ended it there");
        assert_eq!(streamed("A lamp that burns and bur", 4, true), "A lamp that burns and bur", "nothing else is left");
    }

    #[test]
    fn a_paragraph_that_comes_again_and_again_ends_the_reply() {
        let paragraph =
            "The keeper climbed the stairs and lit the lamp. The storm had come early, and the boats were out.";
        assert_eq!(streamed(&[paragraph; 6].join("\n\n"), 500, false), [paragraph; 3].join("\n\n"));
        assert_eq!(streamed(&[paragraph; 6].join(" "), 500, true), [paragraph; 3].join(" "));
    }
}
