use azera_memory::words::{document_words, query_words};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Splits texts into words by the rules of [`azera_memory::words`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    split: fn(&str) -> Vec<String>,
}

impl Words {
    /// Returns the words under which a document is found.
    pub(crate) fn of_document() -> Self {
        Self { split: document_words }
    }

    /// Returns the words of a search.
    pub(crate) fn of_query() -> Self {
        Self { split: query_words }
    }
}

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream;

    fn token_stream(&mut self, text: &str) -> WordStream {
        WordStream { words: (self.split)(text).into_iter(), token: Token::default() }
    }
}

/// The words of one text. Places in the text are not needed, because the index stores no positions.
pub(crate) struct WordStream {
    words: std::vec::IntoIter<String>,
    token: Token,
}

impl TokenStream for WordStream {
    fn advance(&mut self) -> bool {
        let Some(word) = self.words.next() else { return false };
        self.token.text = word;
        self.token.position = self.token.position.wrapping_add(1);
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
