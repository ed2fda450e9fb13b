//! Splits a command line of a shell into its commands. It reads as much of the grammar as tells commands, words and
//! operators apart. It runs and expands nothing.

use std::iter::Peekable;
use std::str::Chars;

/// Longest command line that is read, in bytes.
const MAX_LINE_BYTES: usize = 16 << 10;

/// Most brackets and quotes within each other.
const MAX_DEPTH: usize = 32;

/// What stands before a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joint {
    /// Nothing, `;`, `&` or the end of a line.
    Next,
    /// `&&`.
    And,
    /// `||`.
    Or,
    /// `|`.
    Pipe,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Word {
    /// The word without its quotes.
    pub(crate) text: String,
    /// True if it holds a variable or the output of a command.
    pub(crate) is_expanded: bool,
}

/// A command with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) joint: Joint,
    pub(crate) words: Vec<Word>,
    /// True if the shell does not wait for it: a single `&` follows.
    pub(crate) is_background: bool,
}

/// Returns the commands of a line; `None` if it is too long, or is no line that this reader understands.
pub(crate) fn commands(line: &str) -> Option<Vec<Simple>> {
    if line.len() > MAX_LINE_BYTES {
        return None;
    }
    let mut reader = Reader {
        input: line.chars().peekable(),
        found: Vec::new(),
        words: Vec::new(),
        word: None,
        joint: Joint::Next,
        skips_word: false,
        heredocs: Vec::new(),
        reads_delimiter: false,
        depth: 0,
    };
    reader.read()?;
    Some(reader.found)
}

struct Reader<'a> {
    input: Peekable<Chars<'a>>,
    found: Vec<Simple>,
    words: Vec<Word>,
    /// The word that is being read.
    word: Option<Word>,
    joint: Joint,
    /// The next word is the target of a redirection.
    skips_word: bool,
    /// Delimiters of the texts that follow this line.
    heredocs: Vec<String>,
    reads_delimiter: bool,
    /// Number of brackets and quotes around the place that is read.
    depth: usize,
}

impl Reader<'_> {
    fn read(&mut self) -> Option<()> {
        while let Some(c) = self.input.next() {
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' => self.end_line(),
                ';' => {
                    if self.input.next_if_eq(&';').is_some() {
                        return None;
                    }
                    self.end_command(Joint::Next);
                }
                '&' => self.ampersand(),
                '|' => {
                    let joint = if self.input.next_if_eq(&'|').is_some() { Joint::Or } else { Joint::Pipe };
                    self.input.next_if_eq(&'&');
                    self.end_command(joint);
                }
                '<' | '>' => self.redirection(c)?,
                '(' if self.word.is_none() => self.end_command(Joint::Next),
                '(' => return None,
                ')' => self.end_command(Joint::Next),
                '#' if self.word.is_none() => while self.input.next_if(|c| *c != '\n').is_some() {},
                '\\' => match self.input.next() {
                    Some('\n') | None => {}
                    Some(c) => self.push(c),
                },
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '`' => self.backquoted()?,
                '$' if self.input.next_if_eq(&'\'').is_some() => self.escaped_quoted()?,
                '$' => self.dollar()?,
                c => self.push(c),
            }
        }
        self.end_line();
        self.heredocs.is_empty().then_some(())
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().text.push(c);
    }

    fn expanded(&mut self) {
        self.word.get_or_insert_default().is_expanded = true;
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.reads_delimiter) {
            self.heredocs.push(word.text);
        } else if !std::mem::take(&mut self.skips_word) {
            self.words.push(word);
        }
    }

    fn end_command(&mut self, next: Joint) {
        self.end_word();
        (self.skips_word, self.reads_delimiter) = (false, false);
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.found.push(Simple { joint: self.joint, words, is_background: false });
            self.joint = next;
        } else if next != Joint::Next {
            self.joint = next;
        }
    }

    /// Ends a line, and skips the texts that belong to it.
    fn end_line(&mut self) {
        self.end_command(Joint::Next);
        let waiting = std::mem::take(&mut self.heredocs);
        for delimiter in waiting {
            loop {
                let mut line = String::new();
                let mut is_last = true;
                for c in self.input.by_ref() {
                    if c == '\n' {
                        is_last = false;
                        break;
                    }
                    line.push(c);
                }
                if is_last || line.trim_start_matches('\t') == delimiter {
                    break;
                }
            }
        }
    }

    fn ampersand(&mut self) {
        if self.input.next_if_eq(&'&').is_some() {
            self.end_command(Joint::And);
        } else if self.input.next_if_eq(&'>').is_some() {
            self.input.next_if_eq(&'>');
            self.end_word();
            self.skips_word = true;
        } else {
            self.end_command(Joint::Next);
            if let Some(last) = self.found.last_mut() {
                last.is_background = true;
            }
        }
    }

    /// Reads the sign of a redirection. Its target is the next word.
    fn redirection(&mut self, sign: char) -> Option<()> {
        // A number directly before it names a stream.
        if self.word.as_ref().is_some_and(|word| word.text.chars().all(|c| c.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        if self.input.next_if_eq(&'(').is_some() {
            self.expanded();
            return self.skip_brackets();
        }
        let again = self.input.next_if_eq(&sign).is_some();
        if sign == '<' && again {
            if self.input.next_if_eq(&'<').is_none() {
                self.input.next_if_eq(&'-');
                self.reads_delimiter = true;
                return Some(());
            }
        } else {
            self.input.next_if(|c| matches!(c, '&' | '|' | '>'));
        }
        self.skips_word = true;
        Some(())
    }

    fn single_quoted(&mut self) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match self.input.next()? {
                '\'' => return Some(()),
                c => self.push(c),
            }
        }
    }

    /// Reads a text in `$'…'`, whose signs a backslash may stand before.
    fn escaped_quoted(&mut self) -> Option<()> {
        self.expanded();
        loop {
            match self.input.next()? {
                '\'' => return Some(()),
                '\\' => drop(self.input.next()?),
                _ => {}
            }
        }
    }

    fn double_quoted(&mut self) -> Option<()> {
        self.word.get_or_insert_default();
        self.deeper()?;
        loop {
            match self.input.next()? {
                '"' => break,
                '\\' => {
                    let c = self.input.next()?;
                    self.push(c);
                }
                '`' => self.backquoted()?,
                '$' => self.dollar()?,
                c => self.push(c),
            }
        }
        self.depth -= 1;
        Some(())
    }

    fn deeper(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= MAX_DEPTH).then_some(())
    }

    fn backquoted(&mut self) -> Option<()> {
        self.expanded();
        loop {
            match self.input.next()? {
                '`' => return Some(()),
                '\\' => drop(self.input.next()?),
                '<' if self.input.peek() == Some(&'<') => return None,
                _ => {}
            }
        }
    }

    fn dollar(&mut self) -> Option<()> {
        self.expanded();
        if self.input.next_if_eq(&'(').is_some() {
            return self.skip_brackets();
        }
        if self.input.next_if_eq(&'{').is_some() {
            loop {
                match self.input.next()? {
                    '}' => break,
                    // What is nested ends elsewhere.
                    '{' | '(' | '\'' | '"' | '`' | '\\' => return None,
                    _ => {}
                }
            }
        } else {
            while self.input.next_if(|c| c.is_ascii_alphanumeric() || *c == '_').is_some() {}
        }
        Some(())
    }

    /// Skips to the closing bracket of one that was read. A text that follows the line, a note or a choice within them
    /// may hold brackets that close nothing, so such a line is not understood.
    fn skip_brackets(&mut self) -> Option<()> {
        self.deeper()?;
        let outer = self.word.take();
        let (mut open, mut word) = (1_usize, String::new());
        while open > 0 {
            let c = self.input.next()?;
            match c {
                '(' => open += 1,
                ')' => open -= 1,
                '\\' => drop(self.input.next()?),
                '\'' if word.ends_with('$') => self.escaped_quoted()?,
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '`' => self.backquoted()?,
                '<' if self.input.peek() == Some(&'<') => return None,
                '#' if word.is_empty() => return None,
                _ => {}
            }
            if c.is_whitespace() || "();|&<>".contains(c) {
                if word == "case" {
                    return None;
                }
                word.clear();
            } else {
                word.push(c);
            }
        }
        self.word = outer;
        self.depth -= 1;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the commands as text: words in brackets, `$` behind those that are expanded.
    fn read(line: &str) -> String {
        let Some(found) = commands(line) else { return "none".into() };
        let shown = found.iter().map(|simple| {
            let words =
                simple.words.iter().map(|word| format!("[{}]{}", word.text, if word.is_expanded { "$" } else { "" }));
            let joint = match simple.joint {
                Joint::Next => ";",
                Joint::And => "&&",
                Joint::Or => "||",
                Joint::Pipe => "|",
            };
            format!("{joint} {}", words.collect::<String>())
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_line_is_split_into_commands_and_words() {
        let cases = [
            ("cargo test", "; [cargo][test]"),
            ("cd /x && cargo test 2>&1 | tail -5", "; [cd][/x] && [cargo][test] | [tail][-5]"),
            ("a; b & c || d\ne", "; [a] ; [b] ; [c] || [d] ; [e]"),
            (r#"git commit -m "two words" -m 'it is'"#, "; [git][commit][-m][two words][-m][it is]"),
            (r#"echo "$HOME/x" $(date +%s) `id`"#, "; [echo][/x]$[]$[]$"),
            ("python - <<'END'\nprint(1) && x\nEND\nmake", "; [python][-] ; [make]"),
            ("cat > out.txt <<EOF\nsecret\nEOF", "; [cat]"),
            ("(cd x && make) && ls # a note", "; [cd][x] && [make] && [ls]"),
            ("diff <(a b) c", "; [diff][]$[c]"),
            ("make \\\n  all", "; [make][all]"),
            ("a &> log b", "; [a][b]"),
            ("grep x <<< word y", "; [grep][x][y]"),
            ("f() { ls; }", "none"),
            ("git commit -m \"$(cat <<'EOF'\n1) Use \"soft tulip\" here\nEOF\n)\" && make", "none"),
            (r#"a "$(echo ")" '(' \))" b"#, "; [a][]$[b]"),
            (r#"a "$(echo "$(b ')')" x)" c"#, "; [a][]$[c]"),
            ("a $(b # it's )\n) c", "none"),
            ("a \"$(case x in b) echo \"soft tulip\";; esac)\"", "none"),
            (r"a $'it\'s' b", "; [a][]$[b]"),
            (r#"a "${b:-"soft tulip"}" c"#, "none"),
            (r"a `b \` c` d", "; [a][]$[d]"),
            ("echo 'open", "none"),
            ("case x in a) b;; esac", "none"),
            ("", ""),
        ];
        for (line, want) in cases {
            assert_eq!(read(line), want, "{line}");
        }
    }
}
