//! Finds the entries of a lorebook that a conversation activates.

use std::cmp::Ordering;

use sha2::{Digest, Sha256};

use super::haystack::Haystacks;
use super::lorebook::{Key, Logic, LoreEntry, Lorebook};
use super::pattern::compile;
use crate::limits::{
    MAX_LORE_KEYS, MAX_LORE_KEYS_TRIED, MAX_LORE_MATCH_BYTES, MAX_LORE_MATCHES, MAX_LORE_REGEX_ENTRIES,
    MAX_LORE_ROUNDS, MAX_LORE_TIMED_MESSAGES,
};

/// Bytes of English text per token, for a lorebook's `token_budget`, which is only an estimate of the card's author.
const BYTES_PER_TOKEN: usize = 4;

/// The conversation that a lorebook is matched with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Talk<'a> {
    /// The newest messages, oldest first.
    pub messages: &'a [&'a str],
    /// How many messages the conversation has in all.
    pub count: u64,
    /// The persona's description, personality and scenario, and the role that the person plays.
    pub description: &'a str,
    /// See `description`.
    pub personality: &'a str,
    /// See `description`.
    pub scenario: &'a str,
    /// See `description`.
    pub user_persona: &'a str,
}

impl Lorebook {
    /// Returns the entries that a text activates, as if it were the only message of a long conversation.
    pub fn matching(&self, text: &str) -> Vec<&LoreEntry> {
        self.matching_talk(&Talk { messages: &[text], count: u64::MAX, ..Talk::default() })
    }

    /// Returns the entries that a conversation activates, in prompt order.
    ///
    /// Keys are whole words or phrases in any case, with English plurals, unless the entry says otherwise; see
    /// [`LoreEntry`]. The decorators `@@activate`, `@@dont_activate`, `@@additional_keys` and `@@exclude_keys` are
    /// supported. Above the limits of count and size, or the book's own budget, entries with the lowest priority are
    /// left out. The same conversation always activates the same entries: chance depends on the newest message.
    pub fn matching_talk(&self, talk: &Talk<'_>) -> Vec<&LoreEntry> {
        let mut effort = Effort { keys: MAX_LORE_KEYS_TRIED, regex_entries: MAX_LORE_REGEX_ENTRIES };
        let mut seen = Haystacks::new(self, talk, talk.messages.len());
        let (timed, waiting): (Vec<&LoreEntry>, Vec<&LoreEntry>) =
            self.entries.iter().filter(|entry| entry.is_usable()).partition(|entry| entry.is_timed());
        let mut active = self.followed(talk, &timed);
        active.extend(waiting.iter().filter(|entry| entry.wakes(talk, &seen, &mut effort, Round::First)));
        if self.recursive_scanning {
            let asleep = |active: &[&LoreEntry]| -> Vec<&LoreEntry> {
                let is_active = |entry: &LoreEntry| active.iter().any(|active| std::ptr::eq(*active, entry));
                waiting.iter().copied().filter(|entry| !is_active(entry)).collect()
            };
            let mut newest = active.clone();
            for _ in 1..MAX_LORE_ROUNDS {
                if newest.is_empty() {
                    break;
                }
                for entry in newest.iter().filter(|entry| !entry.recursion.prevented) {
                    seen.add(&entry.prompt_text());
                }
                newest = asleep(&active);
                newest.retain(|entry| entry.wakes(talk, &seen, &mut effort, Round::Later));
                active.extend(&newest);
            }
        }
        self.within_budget(active)
    }

    /// Returns the entries with `sticky` or `cooldown` that are active at the newest message. Their state follows from
    /// the messages before it, so nothing is stored.
    fn followed<'a>(&self, talk: &Talk<'_>, timed: &[&'a LoreEntry]) -> Vec<&'a LoreEntry> {
        let mut effort = Effort { keys: MAX_LORE_KEYS_TRIED, regex_entries: MAX_LORE_REGEX_ENTRIES };
        let mut states = vec![Timed::default(); timed.len()];
        let keys: usize = timed.iter().map(|entry| entry.keys.len() + entry.secondary_keys.len()).sum();
        let patterns = timed.iter().filter(|entry| entry.has_patterns()).count();
        // Many keys are followed less far back, so that the newest message is always reached.
        let affordable = (effort.keys / keys.max(1)).min(effort.regex_entries / patterns.max(1)).max(1);
        let known = if timed.is_empty() { 0 } else { talk.messages.len() };
        let from = known.saturating_sub(affordable.min(MAX_LORE_TIMED_MESSAGES));
        let mut active = Vec::new();
        for at in from..known {
            let then = Talk {
                messages: talk.messages.get(..=at).unwrap_or_default(),
                count: talk.count.saturating_sub((known - 1 - at) as u64),
                ..*talk
            };
            let seen = Haystacks::new(self, &then, at + 1);
            active.clear();
            for (entry, state) in timed.iter().zip(&mut states) {
                if state.step(entry, |entry| entry.wakes(&then, &seen, &mut effort, Round::First)) {
                    active.push(*entry);
                }
            }
        }
        active
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

/// Whether the contents of other entries are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    First,
    Later,
}

/// How `sticky` and `cooldown` stand at one message.
#[derive(Debug, Clone, Copy, Default)]
struct Timed {
    /// Messages for which the entry stays active.
    active: u64,
    /// Messages for which it then sleeps.
    asleep: u64,
}

impl Timed {
    /// Goes on to the next message. Returns true if the entry is active there. An active entry is not activated anew,
    /// and the cooldown begins when it has ended.
    fn step(&mut self, entry: &LoreEntry, wakes: impl FnOnce(&LoreEntry) -> bool) -> bool {
        if self.active > 0 {
            self.active -= 1;
            return true;
        }
        if self.asleep > 0 {
            self.asleep -= 1;
            return false;
        }
        let wakes = wakes(entry);
        if wakes {
            *self = Self { active: entry.sticky, asleep: entry.cooldown };
        }
        wakes
    }
}

impl LoreEntry {
    fn is_usable(&self) -> bool {
        self.enabled && !self.prompt_text().is_empty()
    }

    fn is_timed(&self) -> bool {
        self.sticky > 0 || self.cooldown > 0
    }

    fn has_patterns(&self) -> bool {
        self.keys.iter().chain(&self.secondary_keys).any(|key| matches!(key, Key::Pattern { .. }))
    }

    fn weight(&self) -> f64 {
        self.priority.unwrap_or(self.insertion_order)
    }

    fn wakes(&self, talk: &Talk<'_>, seen: &Haystacks, effort: &mut Effort, round: Round) -> bool {
        if self.decorator("activate").is_some() {
            return round == Round::First;
        }
        if self.decorator("dont_activate").is_some() || talk.count < self.delay {
            return false;
        }
        let in_round = match round {
            Round::First => !self.recursion.only,
            Round::Later => !self.recursion.excluded,
        };
        in_round && self.is_matched(seen, effort, round) && self.is_lucky(talk)
    }

    fn is_matched(&self, seen: &Haystacks, effort: &mut Effort, round: Round) -> bool {
        let texts = seen.of(self, round == Round::Later);
        if self.has_patterns() && effort.regex_entries == 0 {
            return false;
        }
        let mut occurs = |key: &Key| {
            spend(&mut effort.keys)
                && match key {
                    Key::Plain(key) => texts.iter().any(|text| text.has(key, self)),
                    Key::Pattern { pattern, flags } => {
                        spend(&mut effort.regex_entries)
                            && compile(pattern, flags)
                                .is_some_and(|pattern| texts.iter().any(|text| pattern.is_match(&text.exact)))
                    }
                }
        };
        let listed =
            |keys: &str| -> Vec<Key> { keys.split(',').map(|key| Key::Plain(key.trim().to_owned())).collect() };
        let mut any = |keys: &[Key]| keys.iter().take(MAX_LORE_KEYS).any(&mut occurs);
        if self.decorator("exclude_keys").is_some_and(|keys| any(&listed(keys))) {
            return false;
        }
        if self.decorator("additional_keys").is_some_and(|keys| !any(&listed(keys))) {
            return false;
        }
        if self.constant {
            return true;
        }
        if !any(&self.keys) {
            return false;
        }
        let secondary = self.secondary_keys.get(..MAX_LORE_KEYS).unwrap_or(&self.secondary_keys);
        match self.logic {
            Logic::None => true,
            Logic::Any => any(secondary),
            Logic::NotAny => !any(secondary),
            Logic::All => secondary.iter().all(&mut occurs),
            Logic::NotAll => !secondary.iter().all(&mut occurs),
        }
    }

    /// Returns true if chance lets the entry in. It depends on the entry and the newest message alone, so that a reply
    /// made anew finds the same entries.
    fn is_lucky(&self, talk: &Talk<'_>) -> bool {
        if self.probability >= 100.0 {
            return true;
        }
        let mut digest = Sha256::new();
        digest.update(talk.count.to_le_bytes());
        digest.update(talk.messages.last().copied().unwrap_or_default());
        digest.update([0]);
        digest.update(&self.content);
        let drawn = digest.finalize().first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        f64::from(drawn) / (f64::from(u32::MAX) + 1.0) * 100.0 < self.probability
    }
}
