//! The two text indexes on [tantivy](https://docs.rs/tantivy): one for messages, one for everything else. Begin with
//! [`TantivyText`].
//!
//! A document has a memory's id, its persona and scope in one term, its time, and the words of its text and of the
//! turns before it. Words are folded and stemmed, without accents and stop words. The text itself is not stored.
//!
//! - A query is a set of words, which are converted to terms here; it never passes a query parser.
//! - Scripts without spaces are indexed by pairs of characters ([`azera_memory::words`]).
//! - The schema names the version of the analyzer. An index of another version cannot be opened; Azera rebuilds it.
//! - The filter decides which documents may be found, and never adds to a score.
//! - The rarity of a word (BM25's idf) is counted over the whole index, including other people's texts. It affects
//!   scores and reveals nothing else.
//! - Deleted documents keep their words on disk until [`rewrite`] rewrites their segments.
//!
//! [`rewrite`]: azera_memory::TextIndex::rewrite

mod containing;
mod index;
mod schema;
mod search;
mod segments;
mod words;

pub use index::TantivyText;
