//! Finds the entries of a lorebook that a text activates.

use std::cmp::Ordering;

use azera_types::composed;
use regex::RegexBuilder;

use super::lorebook::{LoreEntry, Lorebook};
use crate::limits::{
    MAX_LORE_KEYS, MAX_LORE_KEYS_TRIED, MAX_LORE_MATCH_BYTES, MAX_LORE_MATCHES, MAX_LORE_REGEX_BYTES,
    MAX_LORE_REGEX_ENTRIES, MAX_LORE_ROUNDS, MAX_LORE_SCAN_BYTES,
};
use crate::words::{Inflection, contains_phrase};

/// Bytes of English text per token, for a lorebook's `token_budget`, which is only an estimate of the card's author.
const BYTES_PER_TOKEN: usize = 4;

impl Lorebook {
    /// Returns the entries that `text` activates, in prompt order. `text` is the newest messages, as many as
    /// `scan_depth` says.
    ///
    /// Keys are whole words or phrases in any case, with English plurals, unless the entry says otherwise; see
    /// [`LoreEntry`]. The decorators `@@activate`, `@@dont_activate`, `@@additional_keys` and `@@exclude_keys` are
    /// supported. Above the limits of count and size, or the book's own budget, entries with the lowest priority are
    /// left out.
    pub fn matching(&self, text: &str) -> Vec<&LoreEntry> {
        let mut seen = Haystack::new(text);
        let mut effort = Effort { keys: MAX_LORE_KEYS_TRIED, regex_entries: MAX_LORE_REGEX_ENTRIES };
        let mut waiting: Vec<&LoreEntry> = self.entries.iter().filter(|entry| entry.is_usable()).collect();
        let mut active: Vec<&LoreEntry> = Vec::new();
        let rounds = if self.recursive_scanning == Some(true) { MAX_LORE_ROUNDS } else { 1 };
        for _ in 0..rounds {
            let (activated, asleep): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|entry| entry.is_activated_by(&seen, &mut effort));
            waiting = asleep;
            if activated.is_empty() {
                break;
            }
            for entry in &activated {
                seen.add(&entry.prompt_text());
            }
            active.extend(activated);
        }
        self.within_budget(active)
    }

    fn within_budget<'a>(&self, mut active: Vec<&'a LoreEntry>) -> Vec<&'a LoreEntry> {
        active.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
        let own = self
            .token_budget
            .map_or(usize::MAX, |tokens| usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN));
        let mut room = MAX_LORE_MATCH_BYTES.min(own);
        active.retain(|entry| match room.checked_sub(entry.prompt_text().len()) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        });
        active.truncate(MAX_LORE_MATCHES);
        active.sort_by(|a, b| a.insertion_order.partial_cmp(&b.insertion_order).unwrap_or(Ordering::Equal));
        active
    }
}

/// Attempts that one call has left.
struct Effort {
    keys: usize,
    regex_entries: usize,
}

/// Takes one from a budget; returns false if nothing is left.
fn spend(budget: &mut usize) -> bool {
    budget.checked_sub(1).is_some_and(|left| {
        *budget = left;
        true
    })
}

/// The text to search, as written and in lower case.
struct Haystack {
    exact: String,
    lower: String,
}

impl Haystack {
    fn new(text: &str) -> Self {
        let start = text.ceil_char_boundary(text.len().saturating_sub(MAX_LORE_SCAN_BYTES));
        let exact = text.get(start..).unwrap_or_default().to_owned();
        let lower = exact.to_lowercase();
        Self { exact, lower }
    }

    fn add(&mut self, text: &str) {
        if self.exact.len() + text.len() <= 2 * MAX_LORE_SCAN_BYTES {
            self.exact.push('\n');
            self.exact.push_str(text);
            self.lower.push('\n');
            self.lower.push_str(&text.to_lowercase());
        }
    }

    fn has(&self, key: &str, case_sensitive: bool) -> bool {
        // In lorebooks, a `*` at the end is not a wildcard.
        let key = &*composed(key.trim_end_matches('*'));
        if case_sensitive {
            contains_phrase(&self.exact, key, Inflection::Noun)
        } else {
            contains_phrase(&self.lower, &key.to_lowercase(), Inflection::Noun)
        }
    }
}

impl LoreEntry {
    /// Returns the text for the prompt: the content without decorator lines.
    pub fn prompt_text(&self) -> String {
        let lines: Vec<&str> = self.content.lines().filter(|line| !line.trim_start().starts_with("@@")).collect();
        lines.join("\n").trim().to_owned()
    }

    fn is_usable(&self) -> bool {
        self.enabled && !self.prompt_text().is_empty()
    }

    fn weight(&self) -> f64 {
        self.priority.unwrap_or(self.insertion_order)
    }

    /// Returns the argument of a decorator; `None` if the entry does not have it.
    fn decorator(&self, name: &str) -> Option<&str> {
        self.content.lines().find_map(|line| {
            let line = line.trim().strip_prefix("@@")?;
            let (found, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            (found == name).then_some(argument.trim())
        })
    }

    fn is_activated_by(&self, seen: &Haystack, effort: &mut Effort) -> bool {
        if self.decorator("activate").is_some() {
            return true;
        }
        if self.decorator("dont_activate").is_some() {
            return false;
        }
        let mut any = |keys: &mut dyn Iterator<Item = &str>| {
            keys.take(MAX_LORE_KEYS).any(|key| spend(&mut effort.keys) && seen.has(key.trim(), self.case_sensitive))
        };
        if self.use_regex {
            return spend(&mut effort.regex_entries)
                && self
                    .keys
                    .iter()
                    .take(MAX_LORE_KEYS)
                    .any(|key| pattern_matches(key, self.case_sensitive, &seen.exact));
        }
        if self.decorator("exclude_keys").is_some_and(|keys| any(&mut keys.split(','))) {
            return false;
        }
        if self.decorator("additional_keys").is_some_and(|keys| !any(&mut keys.split(','))) {
            return false;
        }
        if self.constant {
            return true;
        }
        let secondary = !self.selective
            || self.secondary_keys.is_empty()
            || any(&mut self.secondary_keys.iter().map(String::as_str));
        secondary && any(&mut self.keys.iter().map(String::as_str))
    }
}

/// Returns true if a pattern matches, bare or as `/pattern/flags`. Invalid and too large patterns match nothing. The
/// regex crate takes linear time, so no pattern can block a turn.
fn pattern_matches(key: &str, case_sensitive: bool, text: &str) -> bool {
    let (pattern, flags) = match key.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) {
        Some((pattern, flags)) => (pattern, flags),
        None => (key, if case_sensitive { "" } else { "i" }),
    };
    RegexBuilder::new(pattern)
        .case_insensitive(flags.contains('i'))
        .multi_line(flags.contains('m'))
        .dot_matches_new_line(flags.contains('s'))
        .size_limit(MAX_LORE_REGEX_BYTES)
        .dfa_size_limit(MAX_LORE_REGEX_BYTES)
        .build()
        .is_ok_and(|pattern| pattern.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(content: &str, keys: &[&str]) -> LoreEntry {
        let keys = keys.iter().map(ToString::to_string).collect();
        LoreEntry { content: content.to_owned(), keys, enabled: true, ..LoreEntry::default() }
    }

    fn activated(entries: Vec<LoreEntry>, recursive: bool, text: &str) -> Vec<String> {
        let book = Lorebook { entries, recursive_scanning: Some(recursive), ..Lorebook::default() };
        book.matching(text).into_iter().map(LoreEntry::prompt_text).collect()
    }

    #[test]
    fn keys_activate_entries() {
        fn check(entry: LoreEntry, text: &str, wakes: bool) {
            let said = format!("{entry:?} on {text:?}");
            assert_eq!(!activated(vec![entry], false, text).is_empty(), wakes, "{said}");
        }
        let base = || entry("The keep is old.", &["keep", "castle"]);
        check(base(), "We saw the Castle.", true);
        check(base(), "The keeper sleeps.", false);
        check(LoreEntry { enabled: false, ..base() }, "castle", false);
        check(LoreEntry { case_sensitive: true, ..base() }, "Castle", false);
        check(LoreEntry { constant: true, ..base() }, "nothing", true);
        let selective = || LoreEntry { selective: true, secondary_keys: vec!["ghost".to_owned()], ..base() };
        check(selective(), "the castle", false);
        check(selective(), "the ghosts of the castle", true);
        check(LoreEntry { selective: false, ..selective() }, "the castle", true);
        check(entry("", &["castle"]), "castle", false);
        check(entry("@@dont_activate\nx", &["castle"]), "castle", false);
        check(entry("@@activate\nx", &[]), "anything", true);
        check(entry("@@exclude_keys ruin, wreck\nx", &["castle"]), "a castle in ruin", false);
        check(entry("@@additional_keys moat\nx", &["castle"]), "a castle", false);
        check(entry("@@additional_keys moat\nx", &["castle"]), "a castle with a moat", true);
        check(LoreEntry { use_regex: true, ..entry("x", &["/cast(le|ing)/i"]) }, "CASTING", true);
        check(LoreEntry { use_regex: true, ..entry("x", &["("]) }, "(", false);
        check(LoreEntry { use_regex: true, ..entry("x", &["a{1000}{1000}"]) }, "aaa", false);
    }

    #[test]
    fn decorators_do_not_reach_the_prompt() {
        assert_eq!(entry("@@depth 4\n@@@role system\n\nThe keep.", &["x"]).prompt_text(), "The keep.");
    }

    #[test]
    fn matching_entries_activate_others_only_if_enabled() {
        let entries = || vec![entry("The keep has a moat.", &["keep"]), entry("The moat has eels.", &["moat"])];
        assert_eq!(activated(entries(), false, "the keep"), ["The keep has a moat."]);
        assert_eq!(activated(entries(), true, "the keep"), ["The keep has a moat.", "The moat has eels."]);
    }

    #[test]
    fn a_hostile_lorebook_takes_bounded_time() {
        let keys: Vec<_> = (0..64).map(|n| format!("absent {n}")).collect();
        let silent = LoreEntry { keys, ..entry("silent", &[]) };
        let mut entries = vec![silent; 4096];
        entries[0] = entry("early", &["k"]);
        entries[4095] = entry("late", &["k"]);
        assert_eq!(activated(entries, false, &"k ".repeat(100_000)), ["early"]);
    }

    #[test]
    fn entries_of_the_lowest_priority_are_left_out() {
        let numbered = |order: f64, priority: f64| LoreEntry {
            insertion_order: order,
            priority: Some(priority),
            ..entry(&format!("entry {order}"), &["k"])
        };
        let entries: Vec<_> = (0..100).map(|n| numbered(f64::from(n), f64::from(n % 50))).collect();
        let book = Lorebook { entries, ..Lorebook::default() };
        let found = book.matching("k");
        assert_eq!(found.len(), MAX_LORE_MATCHES);
        assert!(found.iter().all(|entry| entry.priority >= Some(38.0)));
        assert!(found.is_sorted_by(|a, b| a.insertion_order <= b.insertion_order));

        let tight = Lorebook { token_budget: Some(4), ..book };
        assert_eq!(tight.matching("k").len(), 2);
    }
}
