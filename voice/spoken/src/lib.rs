//! Turns what a persona writes into what a voice says, in English or German. It uses no file, no socket and no model.
//!
//! - [`Reader`] reads one answer while the model writes it: pieces in, sentences out, each as written and as said.
//! - [`Splitter`] only splits a stream into sentences, and [`spoken`] only says a text.
//!
//! What the rules say stands in `data/english.toml`. The rules stand in `src/rule`, one kind of written form in each
//! file; those of German in `data/german.toml` and `src/german`. Words that no rule knows are said as they are. The result
//! has no digit and no markup. In other languages only the markup goes, and numbers stay as they are written.
//!
//! ```
//! use azera_voice_spoken::{Options, Reader};
//!
//! let mut reader = Reader::new(Options::default());
//! let mut said = reader.push("Dr. Lee comes at 14:05. It co");
//! said.extend(reader.push("sts $5.99!"));
//! said.extend(reader.finish());
//! let said: Vec<&str> = said.iter().map(|sentence| sentence.spoken.as_str()).collect();
//! assert_eq!(said, ["Doctor Lee comes at fourteen oh five.", "It costs five dollars and ninety-nine cents!"]);
//! ```

mod fold;
mod german;
mod language;
mod markup;
mod number;
mod reader;
mod rule;
mod scan;
mod splitter;
mod table;

use std::collections::BTreeMap;

pub use language::Language;
pub use reader::{Reader, Sentence};
pub use splitter::Splitter;

/// How a text is read aloud.
#[derive(Debug, Clone)]
pub struct Options {
    /// The language of the voice. A sentence that is clearly English or German is said in its own language.
    pub language: Language,
    /// How dates such as 3/4/2025 are understood in English.
    pub day_order: DayOrder,
    /// What is said in place of a block of code.
    pub code: CodeNote,
    /// The time zone in which Discord's time stamps are said.
    pub zone: jiff::tz::TimeZone,
    /// Names of people, roles, channels and rooms by the id that a mention holds: Discord's number, or a whole Matrix id.
    pub names: BTreeMap<String, String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            language: Language::English,
            day_order: DayOrder::MonthFirst,
            code: CodeNote::InChat,
            zone: jiff::tz::TimeZone::UTC,
            names: BTreeMap::new(),
        }
    }
}

impl Options {
    /// Returns these options for a voice of this language, as a BCP 47 tag. English outside of America has the day first.
    pub fn in_language(self, tag: &str) -> Self {
        let region = tag.split(['-', '_']).nth(1).unwrap_or_default();
        let day_order = match region.to_ascii_uppercase().as_str() {
            "GB" | "AU" | "NZ" | "IE" | "IN" | "ZA" => DayOrder::DayFirst,
            _ => DayOrder::MonthFirst,
        };
        Self { language: Language::of(tag), day_order, ..self }
    }
}

/// Whether the month or the day stands first in 3/4/2025. A number over twelve is the day in either order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayOrder {
    /// March fourth.
    MonthFirst,
    /// April third.
    DayFirst,
}

/// What is said in place of a block of code. It is said once in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeNote {
    /// The listener finds the code in a chat.
    InChat,
    /// The listener gets the code as a message of their own.
    InMessage,
    /// There is no chat, so nobody can look the code up.
    NotRead,
}

/// Returns what a voice says for a text. It is empty if nothing is read aloud, as for a line of ornaments.
pub fn spoken(text: &str, options: &Options) -> String {
    reader::say(text, options, &mut reader::SoFar::default())
}
