use std::sync::Arc;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;

/// Text to tokens, with markup and content told apart.
#[derive(Debug)]
pub(crate) struct Tokenizer {
    model: Arc<LlamaModel>,
    /// Tokens that are not control tokens to llama.cpp but act as such, like `<think>` or `<tool_call>`: it finds them
    /// in any text.
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

    /// Tokens of text in which control tokens are control tokens.
    pub(crate) fn markup(&self, text: &str) -> Vec<LlamaToken> {
        self.model.vocab().tokenize(text.as_bytes(), false, true)
    }

    /// Tokens of text in which nothing is a control token.
    pub(crate) fn content(&self, text: &str) -> Vec<LlamaToken> {
        let vocab = self.model.vocab();
        let mut tokens = Vec::new();
        for piece in cut_markers(text, &self.markers) {
            tokens.extend(vocab.tokenize(piece.as_bytes(), false, false));
        }
        tokens
    }

    /// The token that begins every prompt, for models that want one.
    pub(crate) fn begin(&self) -> Option<LlamaToken> {
        let vocab = self.model.vocab();
        vocab.should_add_bos().then(|| vocab.bos())
    }
}

fn is_marker(text: &str) -> bool {
    text.len() > 2 && (text.starts_with('<') && text.ends_with('>') || text.starts_with('[') && text.ends_with(']'))
}

/// `text` in pieces none of which holds a marker: each is cut after its first character.
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
    fn markers_in_content_are_taken_apart() {
        check("", &[]);
        check("plain < text >", &["plain < text >"]);
        check("a <think>b</think>", &["a <", "think>b<", "/think>"]);
        check("<think><think>", &["<", "think><", "think>"]);
        check("é[INST]é", &["é[", "INST]é"]);
    }
}
