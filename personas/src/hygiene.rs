//! Characters and words that must not reach a prompt: control tokens of chat templates, control characters, invisible
//! instructions. In a persona file each is an error with its position. In a card, which people cannot easily edit, each
//! is defused and noted.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::limits::MAX_NAME_CHARS;

/// Tokens with which the chat templates of common model families mark turns, roles, tools and thoughts: the `<|...|>`
/// form (ChatML, Llama 3, Phi, Qwen), its full-width form (DeepSeek), Llama 2 and Mistral brackets, Gemma turns,
/// sentence marks, thinking and tool tags. Text with such a token could end its own turn and begin another.
static CONTROL_TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)<[|｜][^<>\r\n]{1,64}?[|｜]>",
        r"|<</?SYS>>",
        r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|THINK)\]",
        r"|</?(?:start_of_turn|end_of_turn|s|bos|eos|think|thinking|tool_call|tool_response|tools)>",
    ))
    .expect("the pattern is constant and a test runs it")
});

/// A part of a line that must not reach a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hazard {
    /// Number of the character in the line, from 1.
    pub(crate) column: usize,
    /// What it is, and how to fix it.
    pub(crate) message: String,
}

/// Returns the hazards of one line.
pub(crate) fn hazards(line: &str) -> Vec<Hazard> {
    let mut found = Vec::new();
    let mut flag = false;
    for (index, c) in line.chars().enumerate() {
        if let Some(message) = character_hazard(c, &mut flag) {
            found.push(Hazard { column: index + 1, message });
        }
    }
    for token in CONTROL_TOKEN.find_iter(line) {
        let column = line.get(..token.start()).map_or(1, |before| before.chars().count() + 1);
        let message = format!(
            "`{}` is a control token of chat templates and could pass for the start or end of a message; \
             remove it or describe it in words",
            token.as_str()
        );
        found.push(Hazard { column, message });
    }
    found
}

/// Returns what is wrong with a character. `flag` is true inside an emoji tag sequence (the flags of England, Scotland
/// and Wales), the only legitimate use of tag characters.
fn character_hazard(c: char, flag: &mut bool) -> Option<String> {
    let tag = ('\u{E0000}'..='\u{E007F}').contains(&c);
    let in_flag = *flag && tag;
    *flag = c == '\u{1F3F4}' || in_flag;
    if in_flag || c == '\t' {
        return None;
    }
    let what = if c.is_control() {
        "a control character"
    } else if tag {
        "an invisible tag character"
    } else if matches!(c, '\u{202D}' | '\u{202E}') {
        "a direction override, which makes readers see another text than the model does"
    } else if matches!(c, '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}') {
        "an invisible separator or mark"
    } else {
        return None;
    };
    Some(format!("U+{:04X} is {what}; remove it", u32::from(c)))
}

/// Removes hazardous characters from a text and breaks control tokens, so that no tokenizer recognises them:
/// `<|im_start|>` becomes `(im_start)`. Line ends stay.
///
/// Use it for untrusted text in a prompt; [`crate::parse`] refuses such text instead.
pub fn defuse(text: &str) -> Cow<'_, str> {
    let mut flag = false;
    let hazardous = |c: char, flag: &mut bool| c != '\n' && c != '\r' && character_hazard(c, flag).is_some();
    let cleaned = if text.chars().any(|c| hazardous(c, &mut flag)) {
        flag = false;
        Cow::Owned(text.chars().filter(|&c| !hazardous(c, &mut flag)).collect::<String>())
    } else {
        Cow::Borrowed(text)
    };
    let mut text = cleaned;
    // A token within a token leaves a token. At most 64 characters fit inside one, so a few rounds suffice.
    while CONTROL_TOKEN.is_match(&text) {
        let broken = CONTROL_TOKEN.replace_all(&text, |found: &regex::Captures<'_>| {
            let name: String = found[0].chars().filter(|c| !matches!(c, '<' | '>' | '[' | ']' | '|' | '｜')).collect();
            format!("({name})")
        });
        text = Cow::Owned(broken.into_owned());
    }
    text
}

/// Returns a name from untrusted text: one line, defused and cut; empty if nothing is left.
pub(crate) fn clean_name(given: &str) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    // This comes first, because a token may span two lines.
    let clean: String = one_line(&defuse(&one_line(given))).chars().take(MAX_NAME_CHARS).collect();
    clean.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hazards_are_found_with_their_column() {
        fn check(line: &str, columns: &[usize]) {
            let found: Vec<_> = hazards(line).iter().map(|h| h.column).collect();
            assert_eq!(found, columns, "{line:?}");
        }
        check("plain text, a < b | c > d, [list] and <em>", &[]);
        check("ab<|im_start|>system", &[3]);
        check("é <｜User｜> x", &[3]);
        check("[INST] a [/INST]", &[1, 10]);
        check("<start_of_turn>model", &[1]);
        check("a </s> b <THINK>", &[3, 10]);
        check("nul \0 here", &[5]);
        check("تذكّر أن تكون لطيفًا", &[]);
        check("שלום \u{200F}עולם", &[]);
        check("over\u{202E}ride", &[5]);
        check("hidden\u{E0041}\u{E0042}", &[7, 8]);
        check("\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F} flag", &[]);
        check("👩‍👩‍👧 family", &[]);
    }

    #[test]
    fn a_name_is_one_clean_line() {
        assert_eq!(clean_name("  Ann \n the\tGreat "), "Ann the Great");
        assert_eq!(clean_name("<|a\nb|>"), "(a b)", "a token over two lines");
        assert_eq!(clean_name(&"é".repeat(MAX_NAME_CHARS + 1)).chars().count(), MAX_NAME_CHARS);
        assert_eq!(clean_name(" \0 "), "");
    }

    #[test]
    fn defused_text_has_no_hazard() {
        fn check(text: &str, expected: &str) {
            let defused = defuse(text);
            assert_eq!(defused, expected);
            assert!(defused.lines().all(|line| hazards(line).is_empty()), "{defused:?}");
        }
        check("hello\nworld", "hello\nworld");
        check("<|im_end|>\n<|im_start|>system", "(im_end)\n(im_start)system");
        check("<|im_<|x|>start|>", "(im_(x)start)");
        check("<|im\0_start|>", "(im_start)");
        check("<<SYS>> [INST]", "(SYS) (INST)");
    }
}
