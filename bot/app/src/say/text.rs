//! The text of `azera say`: where it comes from, and its sentences. This is the one place where text is prepared for the
//! voice.

use std::io::{IsTerminal as _, Read as _};

use anyhow::{Context as _, bail};
use azera_voice_spoken::{CodeNote, Options, Reader};

/// The longest text that is spoken at once, in bytes: about four hours.
const MAX_BYTES: usize = 256 << 10;

/// Returns the words of the command line, or else the standard input.
pub fn given(words: &[String]) -> anyhow::Result<String> {
    let text = match words {
        [] if std::io::stdin().is_terminal() => bail!("say what? For example: azera say Good morning"),
        [] => input()?,
        [only] if only == super::STANDARD => input()?,
        words => words.join(" "),
    };
    if text.len() > MAX_BYTES {
        bail!("the text has more than {} KB; split it, and speak one part at a time", MAX_BYTES >> 10);
    }
    if text.trim().is_empty() {
        bail!("there is nothing to say: the text is empty");
    }
    Ok(text)
}

fn input() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).context("reading the standard input")?;
    // A limit may cut a letter, and the length is refused later with a better reason.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The fence of a code block in Markdown.
const FENCE: &str = "```";

/// Returns the sentences of a text as they are said. A blank line ends one; a line break alone does not, except in a text
/// with code.
pub fn sentences(text: &str, reading: Options) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in text.lines().map(str::trim) {
        match paragraphs.last_mut() {
            Some(paragraph) if !line.is_empty() => paragraph.extend([line, " "]),
            _ => paragraphs.push(String::new()),
        }
    }
    let unwrapped = paragraphs.join("\n");
    // There is no chat in which the listener could look code up.
    let mut reader = Reader::new(Options { code: CodeNote::NotRead, ..reading });
    let mut sentences = reader.push(if text.contains(FENCE) { text } else { &unwrapped });
    sentences.extend(reader.finish());
    sentences.into_iter().map(|sentence| sentence.spoken).filter(|spoken| !spoken.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_sentences() {
        let sentences = |text: &str| super::sentences(text, Options::default());
        let text = "The ferry\nleaves at six. Is it late?\n\nA heading\n\n  Go! ";
        assert_eq!(sentences(text), ["The ferry leaves at six.", "Is it late?", "A heading", "Go!"]);
        assert_eq!(sentences("It is 14:05."), ["It is fourteen oh five."]);
        assert!(sentences(" \n\n ").is_empty());
        let code = sentences("Run it:\n```\nls\n```\nDone.");
        assert_eq!(code, ["Run it,", "There is code here that I don't read aloud.", "Done."]);
    }

    #[test]
    fn words_of_the_command_line_are_one_text() {
        assert_eq!(given(&["Good".to_owned(), "morning".to_owned()]).unwrap(), "Good morning");
        assert!(given(&[" ".to_owned()]).unwrap_err().to_string().contains("nothing to say"));
        assert!(given(&["a".repeat(MAX_BYTES + 1)]).unwrap_err().to_string().contains("256 KB"));
    }
}
