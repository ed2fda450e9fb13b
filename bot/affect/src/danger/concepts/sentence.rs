//! How a message is split into sentences.

use super::super::normal::normalise;

/// Returns the sentences of a message, normalised. Letters that are written apart ("k.m.s") stay in one sentence.
pub(in crate::danger) fn sentences(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut begin = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match c {
            '.' | '!' | '?' => next.is_none_or(|next| next.is_whitespace()),
            '\n' | '…' | '。' | '！' | '？' | '؟' | '।' | '۔' | '；' => true,
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            add(&mut sentences, text.get(begin..end));
            begin = end;
        }
    }
    add(&mut sentences, text.get(begin..));
    sentences
}

fn add(sentences: &mut Vec<String>, sentence: Option<&str>) {
    let sentence = sentence.map(normalise).unwrap_or_default();
    if sentence.chars().any(|c| c != ' ') {
        sentences.push(sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_at_marks_and_lines() {
        #[track_caller]
        fn check(text: &str, want: &[&str]) {
            let got = sentences(text);
            assert_eq!(got.iter().map(|sentence| sentence.trim()).collect::<Vec<_>>(), want, "{text:?}");
        }
        check("Hello. How are you?! Fine", &["hello", "how are you", "fine"]);
        check("one\ntwo…three", &["one", "two", "three"]);
        check("もう無理。さよなら", &["もう無理", "さよなら"]);
        check("version 2.5 is out", &["version 2 5 is out"]);
        check("", &[]);
    }
}
