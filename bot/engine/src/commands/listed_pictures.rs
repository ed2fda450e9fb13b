//! Which pictures `/gallery` lists, as people type it: a first condition, and others behind `--by`, `--in`, `--search` and
//! `--pinned`.

use azera_adapter::Choice;
use azera_memory::PictureRow;
use azera_types::PersonId;

use crate::pictures::{By, holds_words, words_of};

/// The word for the chat in which somebody asks.
pub(super) const HERE: &str = "here";

/// The conditions that may stand behind the first one.
const VERBS: [&str; 4] = ["by", "in", "search", "pinned"];

/// The most bytes of the line of a button.
const MAX_LINE_BYTES: usize = 80;

/// Which pictures are listed.
#[derive(Clone, Default)]
pub(super) struct Listed {
    /// Words that prompt or name hold, in lower case.
    words: Vec<String>,
    is_pinned: bool,
    by: Option<By>,
    /// Words that the name of the chat holds in which they were asked for, in lower case, or [`HERE`].
    pub(super) place: Option<String>,
}

impl Listed {
    /// Reads a verb and what stands behind it. Returns the page, too; `None` if it is not understood.
    pub(super) fn parse(verb: &str, rest: &str, asker: &PersonId) -> Option<(Self, usize)> {
        let (rest, mut page) = split_page(rest);
        let (first, conditions) = split_conditions(rest);
        let first = first.trim();
        let mut listed = Self::default();
        match (verb, first) {
            ("" | "list" | "page", "") => {}
            ("list" | "page", number) => page = number.parse().ok()?,
            ("pinned", "") => listed.is_pinned = true,
            ("pinned", number) => (listed.is_pinned, page) = (true, number.parse().ok()?),
            _ => listed.add(verb, first, asker)?,
        }
        for condition in conditions {
            let (verb, what) = condition.split_once(char::is_whitespace).unwrap_or((condition, ""));
            listed.add(verb, what.trim(), asker)?;
        }
        Some((listed, page))
    }

    /// Adds a condition; `None` if it is not understood, or stands there already.
    fn add(&mut self, verb: &str, what: &str, asker: &PersonId) -> Option<()> {
        match verb {
            "pinned" if what.is_empty() && !self.is_pinned => self.is_pinned = true,
            _ if what.is_empty() => return None,
            "search" if self.words.is_empty() => self.words = words_of(what),
            // The name of a person or of a chat, as platforms mark it.
            "by" if self.by.is_none() => self.by = Some(By::of(what.trim_start_matches('@'), asker)),
            "in" if self.place.is_none() => self.place = Some(what.trim_start_matches('#').to_lowercase()),
            _ => return None,
        }
        Some(())
    }

    pub(super) fn wants(&self, row: &PictureRow) -> bool {
        let is_theirs = self.by.as_ref().is_none_or(|by| by.asked_for(row));
        is_theirs && (!self.is_pinned || row.is_pinned) && holds_words(row, &self.words)
    }

    pub(super) fn title(&self) -> &'static str {
        if self.is_pinned { "Pinned pictures that may be shown here" } else { "Pictures that may be shown here" }
    }

    /// Returns what is said of an empty list.
    pub(super) fn none(&self) -> &'static str {
        match (self.is_pinned, self.words.as_slice()) {
            _ if self.conditions().len() > 1 => "No picture that may be shown here is all of that.",
            _ if self.place.is_some() => "No picture that may be shown here was asked for in a channel of that name.",
            _ if self.by.is_some() => "No picture that may be shown here is by a person of that name.",
            (true, _) => "No pictures that may be shown here are pinned.",
            (false, []) => "There are no pictures that may be shown here.",
            (false, _) => "No picture that may be shown here has these words in its prompt or name.",
        }
    }

    /// Returns the conditions as they are typed.
    fn conditions(&self) -> Vec<String> {
        let words = (!self.words.is_empty()).then(|| format!("search {}", self.words.join(" ")));
        let by = self.by.as_ref().map(|by| match by {
            By::Asker(_) => "by me".to_owned(),
            By::Named(name) => format!("by {name}"),
        });
        let place = self.place.as_ref().map(|place| format!("in {place}"));
        let pinned = self.is_pinned.then(|| "pinned".to_owned());
        [words, by, place, pinned].into_iter().flatten().collect()
    }

    /// Returns the buttons that turn the page.
    pub(super) fn turns(&self, page: usize, has_more: bool) -> Vec<Choice> {
        let conditions = self.conditions();
        let line = |page: usize| match conditions.as_slice() {
            [] => format!("/gallery list {page}"),
            [only] if self.is_pinned => format!("/gallery {only} {page}"),
            conditions => format!("/gallery {} page:{page}", conditions.join(" --")),
        };
        let turns = [("◀", page.saturating_sub(1), page > 1), ("▶", page.saturating_add(1), has_more)];
        let turns = turns.into_iter().filter(|(_, _, exists)| *exists).map(|(label, page, _)| (label, line(page)));
        let turns = turns.filter(|(_, line)| line.len() <= MAX_LINE_BYTES);
        turns.map(|(label, line)| Choice { label: label.into(), line }).collect()
    }
}

/// Splits a text before each `--by` and the like that begins a word. Other dashes belong to the words: `long--exposure`.
fn split_conditions(text: &str) -> (&str, Vec<&str>) {
    let begins = |at: &usize| {
        let (before, behind) = text.split_at(*at);
        let verb = behind.trim_start_matches("--").split(char::is_whitespace).next();
        let is_word = before.is_empty() || before.ends_with(char::is_whitespace);
        is_word && verb.is_some_and(|verb| VERBS.contains(&verb))
    };
    let starts: Vec<usize> = text.match_indices("--").map(|(at, _)| at).filter(begins).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let conditions = starts.iter().zip(ends).filter_map(|(start, end)| text.get(start + 2..end));
    let first = starts.first().map_or(text, |start| text.split_at(*start).0);
    (first, conditions.collect())
}

/// Splits `page:2` from the end of a text; the first page if there is none.
fn split_page(text: &str) -> (&str, usize) {
    let (before, last) = text.rsplit_once(' ').unwrap_or(("", text));
    match last.strip_prefix("page:").and_then(|page| page.parse().ok()) {
        Some(page) => (before, page),
        None => (text, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_condition_at_the_beginning_of_a_word_ends_the_words_before_it() {
        for (text, first, conditions) in [
            ("long--exposure", "long--exposure", vec![]),
            ("a--by b --soup -- c", "a--by b --soup -- c", vec![]),
            ("long--exposure --by me --pinned", "long--exposure ", vec!["by me ", "pinned"]),
            ("--in here", "", vec!["in here"]),
            ("boat --bye --in ü--in", "boat --bye ", vec!["in ü--in"]),
        ] {
            assert_eq!(split_conditions(text), (first, conditions), "{text}");
        }
    }
}
