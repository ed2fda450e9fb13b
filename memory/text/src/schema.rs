use azera_memory::{Facet, TextDocument};
use azera_types::{MemoryId, PersonaId, Scope, Timestamp};
use tantivy::schema::{Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, RAW_TOKENIZER_NAME, RemoveLongFilter, Stemmer, StopWordFilter, TextAnalyzer,
    TokenizerManager,
};
use tantivy::{TantivyDocument, Term};

use crate::words::Words;

/// Longest indexed word in bytes; a longer one is hardly a word.
const MAX_WORD_BYTES: usize = 64;

/// Name and version of the analyzer. It is part of the schema on disk, so that an index whose words were made in another
/// way cannot be opened and is rebuilt. Raise the number whenever the words of some text change.
const ANALYZER: &str = "words-2";

/// Separates persona and scope; ids hold no control characters.
const SEPARATOR: char = '\u{1f}';

/// Names of the fields that are read back by name.
pub(crate) const ID: &str = "id";
pub(crate) const KEY: &str = "key";
pub(crate) const AT: &str = "at";

/// The fields of a document.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    pub(crate) schema: Schema,
    id: Field,
    key: Field,
    at: Field,
    own: Field,
    window: Field,
}

impl Fields {
    pub(crate) fn new() -> Self {
        let words = TextFieldIndexing::default()
            .set_tokenizer(ANALYZER)
            .set_index_option(IndexRecordOption::WithFreqs)
            .set_fieldnorms(true);
        let words = TextOptions::default().set_indexing_options(words);
        let whole = TextFieldIndexing::default()
            .set_tokenizer(RAW_TOKENIZER_NAME)
            .set_index_option(IndexRecordOption::Basic)
            .set_fieldnorms(false);
        let whole = TextOptions::default().set_indexing_options(whole).set_fast(RAW_TOKENIZER_NAME);
        let mut schema = Schema::builder();
        Self {
            id: schema.add_u64_field(ID, NumericOptions::default().set_fast().set_indexed()),
            key: schema.add_text_field(KEY, whole),
            at: schema.add_i64_field(AT, NumericOptions::default().set_fast()),
            own: schema.add_text_field("own", words.clone()),
            window: schema.add_text_field("window", words),
            schema: schema.build(),
        }
    }

    pub(crate) fn document(&self, doc: &TextDocument) -> TantivyDocument {
        let mut document = TantivyDocument::new();
        document.add_u64(self.id, doc.id.0);
        document.add_text(self.key, key(&doc.label.persona, &doc.label.scope));
        document.add_i64(self.at, micros(doc.label.at));
        document.add_text(self.own, &doc.own);
        document.add_text(self.window, &doc.window);
        document
    }

    pub(crate) fn id_term(&self, id: MemoryId) -> Term {
        Term::from_field_u64(self.id, id.0)
    }

    pub(crate) fn key_term(&self, key: &str) -> Term {
        Term::from_field_text(self.key, key)
    }

    /// Returns the words of a query as they are indexed, each once.
    pub(crate) fn words(query: &str) -> Vec<String> {
        let mut words = Vec::new();
        analyzer(Words::of_query()).token_stream(query).process(&mut |token| words.push(token.text.clone()));
        words.sort_unstable();
        words.dedup();
        words
    }

    /// Returns the words that every document must contain, in the order of the query. Stop words do not count. In a query
    /// of nothing else, the last one counts, because it may be the beginning of a longer word.
    pub(crate) fn sought(query: &str) -> Vec<Sought> {
        let mut words = Vec::new();
        plain_analyzer().token_stream(query).process(&mut |token| {
            words.push(Sought { term: Self::words(&token.text).pop(), typed: token.text.clone() });
        });
        if words.iter().all(|word| word.term.is_none()) {
            return words.pop().into_iter().collect();
        }
        words.retain(|word| word.term.is_some());
        words
    }

    /// Returns the term of a word in the text of a facet.
    pub(crate) fn term(&self, facet: Facet, word: &str) -> Term {
        let field = match facet {
            Facet::Own => self.own,
            Facet::Window => self.window,
        };
        Term::from_field_text(field, word)
    }
}

/// A word of a query.
pub(crate) struct Sought {
    /// The word as it is indexed; `None` for a stop word.
    pub(crate) term: Option<String>,
    /// The word as it was typed, in small letters and without accents.
    pub(crate) typed: String,
}

/// Returns the analyzers of the schema by name.
pub(crate) fn tokenizers() -> TokenizerManager {
    let tokenizers = TokenizerManager::default();
    tokenizers.register(ANALYZER, analyzer(Words::of_document()));
    tokenizers
}

/// Splits a query into words, and changes only their spelling.
fn plain_analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(Words::of_query())
        .filter(RemoveLongFilter::limit(MAX_WORD_BYTES))
        .filter(AsciiFoldingFilter)
        .build()
}

/// Turns words into terms. Stop words are removed before stemming, because the list holds whole words.
fn analyzer(words: Words) -> TextAnalyzer {
    TextAnalyzer::builder(words)
        .filter(RemoveLongFilter::limit(MAX_WORD_BYTES))
        .filter(AsciiFoldingFilter)
        .filter(StopWordFilter::new(Language::English).unwrap_or_else(|| StopWordFilter::remove([])))
        .filter(Stemmer::new(Language::English))
        .build()
}

/// Joins persona and scope into one term, so that one look-up filters by both.
pub(crate) fn key(persona: &PersonaId, scope: &Scope) -> String {
    format!("{persona}{SEPARATOR}{scope}")
}

/// Returns microseconds since 1970, rounded down.
pub(crate) fn micros(at: Timestamp) -> i64 {
    at.as_nanosecond().div_euclid(1_000).try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_into_the_expected_words() {
        #[track_caller]
        fn check(text: &str, want: &[&str]) {
            let mut words = Vec::new();
            analyzer(Words::of_document()).token_stream(text).process(&mut |token| words.push(token.text.clone()));
            assert_eq!(words, want, "{text:?}");
        }
        check("The Keepers were KEEPING it", &["keeper", "were", "keep"]);
        check("don't e-mail me: x_y@z.org!", &["don", "t", "e", "mail", "me", "x", "y", "z", "org"]);
        check("naïve café №7731", &["naiv", "cafe", "7731"]);
        check("Straße STRASSE", &["strass", "strass"]);
        check("Zoe\u{308} ΟΔΟΣ", &["zoe", "οδοσ"]);
        check("猫の名前", &["猫", "の", "名", "前", "名前"]);
        check("🙂 \u{202e}abc\0def", &["abc", "def"]);
        check(&format!("{} {}", "x".repeat(65), "y".repeat(63)), &[&"y".repeat(63)]);
    }

    #[test]
    fn a_moment_before_1970_is_rounded_down_too() {
        assert_eq!(micros(Timestamp::from_nanosecond(-1).unwrap()), -1);
        assert_eq!(micros(Timestamp::from_nanosecond(1_999).unwrap()), 1);
    }
}
