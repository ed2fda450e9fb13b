use std::sync::Arc;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;

/// Converts text to tokens, separately for markup and content.
#[derive(Debug)]
pub(crate) struct Tokenizer {
    model: Arc<LlamaModel>,
    /// The texts of tokens that act like control tokens and are none to llama.cpp, such as `<think>` or `<tool_call>`.
    /// llama.cpp recognizes them in any text.
    markers: Vec<String>,
}

impl Tokenizer {
    pub(crate) fn new(model: Arc<LlamaModel>) -> Self {
        let vocab = model.vocab();
        let markers = vocab
            .tokens()
            .filter(|token| vocab.attr(*token).contains(LlamaTokenAttr::UserDefined))
            .filter_map(|token| vocab.text(token).and_then(|text| text.to_str().ok()).map(str::to_owned))
            .filter(|text| is_marker(text))
            .collect();
        Self { model, markers }
    }

    /// Returns the tokens of text in which control tokens are recognized.
    pub(crate) fn markup(&self, text: &str) -> Vec<LlamaToken> {
        self.model.vocab().tokenize(text.as_bytes(), false, true)
    }

    /// Returns the tokens of text in which control tokens are not recognized.
    pub(crate) fn content(&self, text: &str) -> Vec<LlamaToken> {
        let vocab = self.model.vocab();
        let mut tokens = Vec::new();
        for piece in cut_markers(text, &self.markers) {
            tokens.extend(vocab.tokenize(piece.as_bytes(), false, false));
        }
        tokens
    }

    /// Returns the token that begins every prompt, for models that require one.
    pub(crate) fn begin(&self) -> Option<LlamaToken> {
        let vocab = self.model.vocab();
        vocab.should_add_bos().then(|| vocab.bos())
    }
}

fn is_marker(text: &str) -> bool {
    text.len() > 2 && (text.starts_with('<') && text.ends_with('>') || text.starts_with('[') && text.ends_with(']'))
}

/// Splits `text` into pieces without markers, by cutting each marker after its first character.
fn cut_markers<'a>(text: &'a str, markers: &[String]) -> Vec<&'a str> {
    let mut cuts: Vec<usize> =
        markers.iter().flat_map(|marker| text.match_indices(marker.as_str()).map(|(start, _)| start + 1)).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut pieces = Vec::with_capacity(cuts.len() + 1);
    let (mut rest, mut start) = (text, 0);
    for cut in cuts {
        if let Some((piece, tail)) = rest.split_at_checked(cut - start) {
            pieces.push(piece);
            (rest, start) = (tail, cut);
        }
    }
    pieces.push(rest);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let markers = ["<think>".to_owned(), "</think>".to_owned(), "[INST]".to_owned()];
        assert_eq!(cut_markers(text, &markers), expected);
    }

    #[test]
    fn markers_in_content_are_split() {
        check("", &[]);
        check("plain < text >", &["plain < text >"]);
        check("a <think>b</think>", &["a <", "think>b<", "/think>"]);
        check("<think><think>", &["<", "think><", "think>"]);
        check("é[INST]é", &["é[", "INST]é"]);
    }
}
