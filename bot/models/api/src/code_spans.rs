/// Knows whether the end of a Markdown text stands inside code. It takes one character after another, so it does not
/// matter how a stream was cut.
#[derive(Debug)]
pub(crate) struct CodeSpans {
    /// The sign and the length of the open fence.
    fence: Option<(char, usize)>,
    /// True until the end of the line that opened the fence.
    on_fence_line: bool,
    /// The length of the backtick run that opened inline code; 0 outside.
    inline: usize,
    /// An unfinished run of backticks or tildes.
    run: Option<(char, usize)>,
    /// The spaces at the beginning of this line; `None` after other text.
    indent: Option<usize>,
}

/// The most spaces before a fence; deeper lines are indented code or lists.
const MAX_FENCE_INDENT: usize = 3;

impl Default for CodeSpans {
    fn default() -> Self {
        Self { fence: None, on_fence_line: false, inline: 0, run: None, indent: Some(0) }
    }
}

impl CodeSpans {
    pub(crate) fn push(&mut self, c: char) {
        if let Some((sign, length)) = &mut self.run
            && *sign == c
        {
            *length += 1;
            return;
        }
        self.end_run();
        match c {
            '\n' => {
                // An unclosed backtick is no code; it must not hide the rest of the reply.
                self.inline = 0;
                self.on_fence_line = false;
                self.indent = Some(0);
            }
            '`' => self.run = Some((c, 1)),
            '~' if self.indent.is_some() => self.run = Some((c, 1)),
            ' ' => self.indent = self.indent.map(|spaces| spaces + 1),
            _ => self.indent = None,
        }
    }

    /// Returns true if the next character, which is no backtick, stands inside code.
    pub(crate) fn is_inside(&mut self) -> bool {
        self.end_run();
        self.fence.is_some() || self.inline > 0
    }

    fn end_run(&mut self) {
        let Some((sign, length)) = self.run.take() else { return };
        let begins_line = self.indent.take().is_some_and(|spaces| spaces <= MAX_FENCE_INDENT);
        match self.fence {
            None if begins_line && length >= 3 => {
                self.fence = Some((sign, length));
                self.on_fence_line = true;
            }
            Some((open, least)) if begins_line && sign == open && length >= least => self.fence = None,
            // The line was no fence but inline code between three backticks.
            Some(open) if self.on_fence_line && open == (sign, length) && sign == '`' => self.fence = None,
            Some(_) => {}
            None if sign != '`' => {}
            None if self.inline == 0 => self.inline = length,
            None if self.inline == length => self.inline = 0,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, inside: bool) {
        let mut code = CodeSpans::default();
        text.chars().for_each(|c| code.push(c));
        assert_eq!(code.is_inside(), inside, "{text:?}");
    }

    #[test]
    fn code_is_recognised() {
        check("plain", false);
        check("a `b", true);
        check("a `b` c", false);
        check("``a ` b", true);
        check("``a ` b`` c", false);
        check("a ` lone\nnext line", false);
        check("```\ncode\n", true);
        check("```sh\n``\n```\n", false);
        check("~~~\n```\n", true);
        check("~~~\n~~~~\n", false);
        check("  ```\nx", true);
        check("     ```\nx", false);
        check("```ls``` lists", false);
        check("a ~~~ b", false);
    }
}
