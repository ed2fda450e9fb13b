//! The two text indexes on [tantivy](https://docs.rs/tantivy): one of messages, one of everything else.
//!
//! A document is a memory's id, its persona and scope in one term, its time, and the words of its text and of the turns
//! around it, lower-cased, without accents, stop words and endings. The text itself is not stored.
//!
//! - A query is a set of words, made into terms here; it never passes a query parser.
//! - The filter decides which documents may be found and never adds to a score.
//! - How rare a word is (BM25's idf) is counted over the whole index, other people's texts included. It shifts scores
//!   and shows nothing else.
//! - Deleted documents keep their words on disk until [`rewrite`] writes the segments they are in anew.
//!
//! [`rewrite`]: azera_memory::TextIndex::rewrite

mod index;
mod schema;
mod search;
mod segments;

pub use index::TantivyText;
