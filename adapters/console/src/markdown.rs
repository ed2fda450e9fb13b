use nu_ansi_term::{Color, Style};

/// Renders the Markdown of a reply for a terminal while it arrives. Emphasis, code and headings become styles, and
/// their marks disappear. A run of marks at the end of a piece waits for the next character, which decides what it
/// means; a run that is not a mark (`2 * 3`) is printed. Styles end at the end of the line, so an unclosed mark colours
/// only its line.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    bold: bool,
    italic: bool,
    heading: bool,
    code: Code,
    /// A run of marks with an undecided meaning, and its length.
    run: Option<(char, usize)>,
    /// The character before the run.
    before: Option<char>,
    /// True if the run is at the start of its line.
    run_at_start: bool,
    shown: Style,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Code {
    #[default]
    None,
    Inline,
    /// The line of a fence; `opens` is true if a code block follows.
    Fence {
        opens: bool,
    },
    Block,
}

impl Markdown {
    /// Renders the next piece.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            match &mut self.run {
                Some((mark, count)) if *mark == c => *count += 1,
                _ => {
                    self.resolve(Some(c), &mut out);
                    self.take(c, &mut out);
                }
            }
        }
        out
    }

    /// Ends the text: prints a waiting run, and resets the style.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        self.resolve(None, &mut out);
        *self = Self { shown: self.shown, ..Self::default() };
        self.restyle(&mut out);
        out
    }

    fn take(&mut self, c: char, out: &mut String) {
        let at_start = matches!(self.before, None | Some('\n'));
        if c == '`' || (c == '*' && self.code == Code::None) || (c == '#' && at_start && self.code == Code::None) {
            self.run = Some((c, 1));
            self.run_at_start = at_start;
            return;
        }
        if c == '\n' {
            self.end_line(out);
        }
        out.push(c);
        self.before = Some(c);
    }

    fn end_line(&mut self, out: &mut String) {
        (self.bold, self.italic, self.heading) = (false, false, false);
        self.code = match self.code {
            Code::Block | Code::Fence { opens: true } => Code::Block,
            Code::None | Code::Inline | Code::Fence { opens: false } => Code::None,
        };
        self.restyle(out);
    }

    /// Decides what the waiting run means, now that `next` follows it.
    fn resolve(&mut self, next: Option<char>, out: &mut String) {
        let Some((mark, count)) = self.run.take() else { return };
        let opens = next.is_some_and(|c| !c.is_whitespace());
        let closes = self.before.is_some_and(|c| !c.is_whitespace());
        let spoken = match (mark, self.code) {
            ('`', Code::None | Code::Block) if count >= 3 && self.run_at_start => {
                self.code = Code::Fence { opens: self.code == Code::None };
                self.restyle(out);
                true
            }
            ('`', Code::None) if count < 3 && next.is_some() => {
                self.code = Code::Inline;
                false
            }
            ('`', Code::Inline) => {
                self.code = Code::None;
                false
            }
            ('*', Code::None) => !self.emphasise(count, opens, closes),
            ('#', _) if count <= 6 && next == Some(' ') => {
                self.heading = true;
                self.restyle(out);
                true
            }
            _ => true,
        };
        if spoken {
            out.extend(std::iter::repeat_n(mark, count));
        }
        self.before = Some(mark);
        self.restyle(out);
    }

    /// Begins or ends emphasis if a run of stars means that; returns true if it does.
    fn emphasise(&mut self, count: usize, opens: bool, closes: bool) -> bool {
        let (bold, italic) = match count {
            1 => (false, true),
            2 => (true, false),
            3 => (true, true),
            _ => return false,
        };
        let ends = closes && (!bold || self.bold) && (!italic || self.italic);
        let begins = opens && (!bold || !self.bold) && (!italic || !self.italic);
        if ends || begins {
            self.bold ^= bold;
            self.italic ^= italic;
        }
        ends || begins
    }

    fn restyle(&mut self, out: &mut String) {
        let mut style = Style::new();
        match self.code {
            Code::None => {
                style.is_bold = self.bold || self.heading;
                style.is_italic = self.italic;
            }
            Code::Inline | Code::Block => style = style.fg(Color::Cyan),
            Code::Fence { .. } => style = style.dimmed(),
        }
        if style == self.shown {
            return;
        }
        if self.shown != Style::new() {
            out.push_str(nu_ansi_term::ansi::RESET);
        }
        out.push_str(&style.prefix().to_string());
        self.shown = style;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the output with escape sequences replaced by readable words.
    fn rendered(pieces: &[&str]) -> String {
        let mut markdown = Markdown::default();
        let mut out: String = pieces.iter().map(|piece| markdown.push(piece)).collect();
        out.push_str(&markdown.finish());
        let words = [("[0m", "<>"), ("[1m", "<b>"), ("[3m", "<i>"), ("[1;3m", "<bi>"), ("[36m", "<c>"), ("[2m", "<d>")];
        words.iter().fold(out, |out, (code, word)| out.replace(&format!("\u{1b}{code}"), word))
    }

    #[test]
    fn marks_become_styles() {
        #[track_caller]
        fn check(text: &str, want: &str) {
            assert_eq!(rendered(&[text]), want);
            let letters: Vec<_> = text.chars().map(String::from).collect();
            let letters: Vec<_> = letters.iter().map(String::as_str).collect();
            assert_eq!(rendered(&letters), want, "letter by letter");
        }
        check("plain", "plain");
        check("a **bold** and *soft* word", "a <b>bold<> and <i>soft<> word");
        check("***both***", "<bi>both<>");
        check("**bold *and soft* here**", "<b>bold <><bi>and soft<><b> here<>");
        check("2 * 3 * 4", "2 * 3 * 4");
        check("* one\n* two", "* one\n* two");
        check("*never closed\nnext", "<i>never closed<>\nnext");
        check("run `ls *.rs` now", "run <c>ls *.rs<> now");
        check("# Title\ntext", "<b># Title<>\ntext");
        check("not a #tag", "not a #tag");
        check("#tag", "#tag");
        check("```rust\nlet a = *b;\n```\nafter *it*", "<d>```rust<><c>\nlet a = *b;\n<><d>```<>\nafter <i>it<>");
        check("a ****", "a ****");
        check("ends with *", "ends with *");
        check("ends with `", "ends with `");
    }
}
