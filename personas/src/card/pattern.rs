//! Runs the regular expressions of lorebook keys, which are written for JavaScript.

use regex::{Regex, RegexBuilder};

use crate::limits::MAX_LORE_REGEX_BYTES;

/// Compiles an expression with its flags. Returns `None` if it is invalid, too large, or looks around, which cannot be
/// done in linear time. So no expression can block a turn.
pub(super) fn compile(pattern: &str, flags: &str) -> Option<Regex> {
    RegexBuilder::new(&translated(pattern))
        .case_insensitive(flags.contains('i'))
        .multi_line(flags.contains('m'))
        .dot_matches_new_line(flags.contains('s'))
        .size_limit(MAX_LORE_REGEX_BYTES)
        .dfa_size_limit(MAX_LORE_REGEX_BYTES)
        .build()
        .ok()
}

/// Escapes what means something in a character class here and nothing in JavaScript: `[`, `&&`, `--` and `~~`.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let (mut class, mut escaped) = (false, false);
    for c in pattern.chars() {
        if escaped {
            escaped = false;
        } else {
            match c {
                '\\' => escaped = true,
                '[' if class => out.push('\\'),
                '&' | '~' if class => out.push('\\'),
                '[' => class = true,
                ']' => class = false,
                _ => {}
            }
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_javascript_run() {
        #[track_caller]
        fn check(pattern: &str, flags: &str, text: &str, wants: Option<bool>) {
            assert_eq!(compile(pattern, flags).map(|found| found.is_match(text)), wants, "{pattern} in {text}");
        }
        check("cast(le|ing)", "i", "CASTING", Some(true));
        check("cast(le|ing)", "", "CASTING", Some(false));
        check(r"a\/b", "g", "a/b", Some(true));
        check("[[a]+", "", "[", Some(true));
        check("^b$", "m", "a\nb", Some(true));
        check(r"\bgr[ae]y\s+owl\b", "iu", "a Grey  owl", Some(true));
        check("(?=a)b", "", "b", None);
        check("(", "", "(", None);
        check("a{1000}{1000}", "", "aaa", None);
    }
}
