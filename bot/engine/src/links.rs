//! Linked accounts of one human: the codes that link them, and what a persona may show such a person in direct
//! messages. Links are never guessed: one account is shown a code, the other enters it and then confirms.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_adapter::Platform;
use azera_memory::Account;
use azera_types::{PersonId, Place, PlaceKind, PlatformId, ReadableScopes, Timestamp};

use crate::access::AccessControl;
use crate::error::Error;

/// Characters of a code; 40 bits.
const CODE_CHARS: usize = 8;

/// Characters that codes are made of: Crockford's base 32, in which no two look alike.
const ALPHABET: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Minutes for which a code, the question whether to link, and a count of wrong codes stay valid.
pub(crate) const VALID_MINUTES: i64 = 10;

/// Wrong codes that one account may enter in that time.
const MAX_WRONG: u32 = 5;

/// Maximum number of accounts with something pending. When there are more, the oldest is dropped.
const MAX_WAITING: usize = 1_000;

/// Longest wait for another platform to say where a linked account may read. The person waits for their answer
/// meanwhile.
const REACH_WAIT: Duration = Duration::from_millis(250);

/// Seconds for which a platform that did not answer in time is not asked again.
const SILENT_S: i64 = 30;

/// Pending values by account, each valid for [`VALID_MINUTES`].
struct Waiting<T>(HashMap<PersonId, (Timestamp, T)>);

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Waiting<T> {
    fn put(&mut self, whose: &PersonId, now: Timestamp, what: T) {
        self.0.retain(|_, (at, _)| is_valid(*at, now));
        let oldest = self.0.iter().min_by_key(|(_, (at, _))| *at).map(|(whose, _)| whose.clone());
        if let Some(oldest) = oldest.filter(|_| self.0.len() >= MAX_WAITING && !self.0.contains_key(whose)) {
            self.0.remove(&oldest);
        }
        self.0.insert(whose.clone(), (now, what));
    }

    fn get_mut(&mut self, whose: &PersonId, now: Timestamp) -> Option<&mut T> {
        self.0.get_mut(whose).filter(|(at, _)| is_valid(*at, now)).map(|(_, what)| what)
    }

    fn take(&mut self, whose: &PersonId, now: Timestamp) -> Option<T> {
        self.0.remove(whose).filter(|(at, _)| is_valid(*at, now)).map(|(_, what)| what)
    }
}

fn is_valid(at: Timestamp, now: Timestamp) -> bool {
    now.as_second() - at.as_second() <= VALID_MINUTES * 60
}

/// A code, and the account it was shown to. Codes are never logged.
struct Shown {
    code: String,
    to: Account,
}

#[derive(Default)]
struct Inner {
    /// By the account that the code was shown to.
    shown: Waiting<Shown>,
    /// By the account that entered a code: the account that the code was shown to.
    pending: Waiting<Account>,
    /// How many wrong codes an account entered, since the first of them.
    wrong: Waiting<u32>,
    /// Platforms that did not answer, and when.
    silent: HashMap<PlatformId, Timestamp>,
}

/// Codes that wait to be entered, and questions that wait for confirmation. A restart drops them.
#[derive(Default)]
pub(crate) struct LinkCodes(Mutex<Inner>);

/// The result of entering a code.
pub(crate) enum CodeOutcome {
    /// The code was shown to this account. It is used up, and the link waits for confirmation.
    Of(Account),
    /// The code was shown to the same account that entered it.
    Own,
    /// The code is not valid. This many more tries remain.
    Wrong(u32),
    /// Too many codes were wrong.
    TooOften,
}

impl LinkCodes {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a new code for an account. Its earlier code and a question based on that become invalid. Returns `None`
    /// if the system has no random numbers.
    pub(crate) fn show(&self, to: &Account, now: Timestamp) -> Option<String> {
        let code = new_code()?;
        self.forget(&to.person);
        self.lock().shown.put(&to.person, now, Shown { code: code.clone(), to: to.clone() });
        Some(code)
    }

    /// Checks a code that somebody entered, as returned by [`read`]. Wrong codes of all who are `counted` alike count
    /// together.
    pub(crate) fn say(&self, person: &PersonId, counted: &PersonId, code: &str, now: Timestamp) -> CodeOutcome {
        let mut inner = self.lock();
        let wrong = inner.wrong.get_mut(counted, now).map_or(0, |wrong| *wrong);
        if wrong >= MAX_WRONG {
            return CodeOutcome::TooOften;
        }
        let shown = inner.shown.0.iter().find(|(_, (at, shown))| shown.code == code && is_valid(*at, now));
        let Some(of) = shown.map(|(whose, _)| whose.clone()) else {
            match inner.wrong.get_mut(counted, now) {
                Some(wrong) => *wrong += 1,
                None => inner.wrong.put(counted, now, 1),
            }
            return CodeOutcome::Wrong(MAX_WRONG - wrong - 1);
        };
        if of == *person {
            return CodeOutcome::Own;
        }
        match inner.shown.take(&of, now) {
            Some(Shown { to, .. }) => {
                inner.pending.put(person, now, to.clone());
                CodeOutcome::Of(to)
            }
            None => CodeOutcome::Wrong(MAX_WRONG - wrong),
        }
    }

    /// Confirms the pending link. Returns the account whose code the person entered.
    pub(crate) fn confirm(&self, person: &PersonId, now: Timestamp) -> Option<Account> {
        self.lock().pending.take(person, now)
    }

    /// Invalidates a code that was entered where others may have read it.
    pub(crate) fn spoil(&self, code: &str) {
        self.lock().shown.0.retain(|_, (_, shown)| shown.code != code);
    }

    /// Drops what is pending for an account, but keeps its count of wrong codes.
    pub(crate) fn forget(&self, person: &PersonId) {
        let mut inner = self.lock();
        inner.shown.0.remove(person);
        inner.pending.0.retain(|whose, (_, of)| whose != person && of.person != *person);
    }

    fn is_silent(&self, platform: &PlatformId, now: Timestamp) -> bool {
        let since = self.lock().silent.get(platform).copied();
        since.is_some_and(|since| (0..SILENT_S).contains(&(now.as_second() - since.as_second())))
    }
}

fn new_code() -> Option<String> {
    let mut chance = [0; CODE_CHARS];
    getrandom::fill(&mut chance).ok()?;
    // 256 is a multiple of 32, so each letter is equally likely.
    let letter = |byte: &u8| ALPHABET.as_bytes().get(usize::from(byte % 32)).copied().map(char::from);
    chance.iter().map(letter).collect()
}

/// Parses a code as people write it: in lower case, in groups, with an O for a 0. Returns `None` if it is not a code.
pub(crate) fn read(typed: &str) -> Option<String> {
    let meant = typed.chars().filter(|c| !c.is_whitespace() && !matches!(c, '-' | '`'));
    let letter = |c: char| match c.to_ascii_uppercase() {
        'O' => Some('0'),
        'I' | 'L' => Some('1'),
        c => ALPHABET.contains(c).then_some(c),
    };
    let code: Option<String> = meant.take(CODE_CHARS + 1).map(letter).collect();
    code.filter(|code| code.len() == CODE_CHARS)
}

impl AccessControl {
    /// Returns the other scopes that every reader of a place may read now. There are none unless one person alone reads
    /// the place; then there are all that this person may read, with this account or a linked one.
    pub(crate) async fn readable_scopes(
        &self,
        platform: &dyn Platform,
        place: &Place,
    ) -> Result<ReadableScopes, Error> {
        let PlaceKind::Dm(person) = &place.kind else { return Ok(ReadableScopes::default()) };
        let mut reach = platform.readable_scopes(person).await?;
        let of = person.clone();
        let (linked, projects) = self
            .services
            .blocking(move |memory| {
                let linked = memory.links().of(&of)?;
                let mut projects = memory.imports().projects_of(&of)?;
                for account in &linked {
                    projects.extend(memory.imports().projects_of(&account.person)?);
                }
                Ok((linked, projects))
            })
            .await?;
        // Nobody but the person who imported a project may read it.
        reach.realms.extend(projects.into_iter().map(|realm| (realm, None)));
        for other in futures::future::join_all(linked.iter().map(|account| self.readable_scopes_of(account))).await {
            reach.join(other);
        }
        // A direct message needs no platform's confirmation: the linked account has read what was said to it alone.
        reach.direct.extend(linked.into_iter().map(|account| account.person));
        Ok(reach)
    }

    /// Returns where a linked account may read, by its platform. Returns nothing if the platform does not answer.
    async fn readable_scopes_of(&self, account: &Account) -> ReadableScopes {
        let Account { platform: id, person, .. } = account;
        let (Ok(platform), now) = (self.services.platform(id), self.services.clock.now()) else {
            return ReadableScopes::default();
        };
        if self.codes.is_silent(id, now) {
            return ReadableScopes::default();
        }
        match tokio::time::timeout(REACH_WAIT, platform.readable_scopes(person)).await {
            Ok(Ok(reach)) => reach,
            Ok(Err(error)) => {
                tracing::debug!(platform = %id, %error, "cannot ask a platform where a linked account may read");
                ReadableScopes::default()
            }
            Err(_) => {
                tracing::warn!(platform = %id, "timed out asking a platform where a linked account may read");
                self.codes.lock().silent.insert(id.clone(), now);
                ReadableScopes::default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn account(id: &str) -> Account {
        let (platform, person) = (PlatformId::new("sim").unwrap(), PersonId::new(id).unwrap());
        Account { platform, person, name: id.into() }
    }

    fn says(links: &LinkCodes, id: &str, code: &str, second: i64) -> String {
        says_as(links, id, id, code, second)
    }

    fn says_as(links: &LinkCodes, id: &str, counted: &str, code: &str, second: i64) -> String {
        match links.say(&account(id).person, &account(counted).person, code, at(second)) {
            CodeOutcome::Of(account) => format!("of {}", account.name),
            CodeOutcome::Own => "own".into(),
            CodeOutcome::Wrong(left) => format!("wrong, {left} left"),
            CodeOutcome::TooOften => "too often".into(),
        }
    }

    fn confirms(links: &LinkCodes, id: &str, second: i64) -> Option<String> {
        links.confirm(&account(id).person, at(second)).map(|account| account.name)
    }

    #[test]
    fn codes_are_read_as_people_write_them() {
        let code = new_code().unwrap();
        assert_eq!(read(&code), Some(code.clone()));
        assert_eq!(read("`0i1l-oabz` "), Some("01110ABZ".into()));
        assert_eq!(read("0123 4567"), Some("01234567".into()));
        for none in ["", "list", "0123456", "012345678", "0123456U", "0123456\u{416}", "remove all"] {
            assert_eq!(read(none), None, "{none}");
        }
        assert_ne!(new_code().unwrap(), code);
    }

    #[test]
    fn a_code_works_once_in_time_and_for_another_account() {
        let links = LinkCodes::default();
        let code = links.show(&account("ann"), at(0)).unwrap();
        assert_eq!(says(&links, "ann", &code, 1), "own");
        assert_eq!(says(&links, "bob", &code, 600), "of ann");
        assert_eq!(says(&links, "cid", &code, 600), "wrong, 4 left", "it is used up");
        assert_eq!(confirms(&links, "cid", 600), None);
        assert_eq!(confirms(&links, "bob", 1_200), Some("ann".into()));
        assert_eq!(confirms(&links, "bob", 1_200), None, "once");
        let code = links.show(&account("ann"), at(0)).unwrap();
        assert_eq!(says(&links, "bob", &code, 601), "wrong, 4 left", "too late");
        let code = links.show(&account("ann"), at(1_000)).unwrap();
        assert_eq!(says(&links, "bob", &code, 1_000), "of ann");
        assert_eq!(confirms(&links, "bob", 1_601), None, "too late, too");
    }

    #[test]
    fn a_new_code_forgetting_and_publicity_invalidate_what_is_pending() {
        let links = LinkCodes::default();
        let first = links.show(&account("ann"), at(0)).unwrap();
        let second = links.show(&account("ann"), at(0)).unwrap();
        assert_eq!(says(&links, "bob", &first, 0), "wrong, 4 left");
        assert_eq!(says(&links, "bob", &second, 0), "of ann");
        links.show(&account("ann"), at(0)).unwrap();
        assert_eq!(confirms(&links, "bob", 0), None, "Ann wanted another code");
        let third = links.show(&account("ann"), at(0)).unwrap();
        assert_eq!(says(&links, "bob", &third, 0), "of ann");
        links.forget(&account("ann").person);
        assert_eq!(confirms(&links, "bob", 0), None);
        let read_by_others = links.show(&account("ann"), at(0)).unwrap();
        links.spoil(&read_by_others);
        assert_eq!(says(&links, "bob", &read_by_others, 0), "wrong, 3 left");
    }

    #[test]
    fn an_account_can_try_five_codes_in_ten_minutes() {
        let links = LinkCodes::default();
        let code = links.show(&account("ann"), at(60)).unwrap();
        for left in (0..MAX_WRONG).rev() {
            assert_eq!(says(&links, "bob", "00000000", 60), format!("wrong, {left} left"));
        }
        assert_eq!(says(&links, "bob", &code, 60), "too often");
        links.forget(&account("bob").person);
        assert_eq!(says(&links, "bob", &code, 660), "too often");
        assert_eq!(says(&links, "cid", &code, 60), "of ann", "others may");
        assert_eq!(says(&links, "bob", "00000000", 661), "wrong, 4 left", "after a while, too");
    }

    #[test]
    fn people_who_count_alike_have_five_tries_together() {
        let links = LinkCodes::default();
        let code = links.show(&account("ann"), at(0)).unwrap();
        for (name, left) in ["bob", "cid", "dot", "eve", "fay"].into_iter().zip((0..MAX_WRONG).rev()) {
            assert_eq!(says_as(&links, name, "machine", "00000000", 1), format!("wrong, {left} left"));
        }
        assert_eq!(says_as(&links, "gus", "machine", &code, 1), "too often");
        assert_eq!(says(&links, "bob", &code, 1), "of ann", "elsewhere they did not try");
    }

    #[test]
    fn the_oldest_code_goes_when_too_many_wait() {
        let links = LinkCodes::default();
        let first = links.show(&account("ann"), at(0)).unwrap();
        let second = links.show(&account("bob"), at(1)).unwrap();
        for number in 2..=MAX_WAITING {
            links.show(&account(&number.to_string()), at(2)).unwrap();
        }
        assert_eq!(links.lock().shown.0.len(), MAX_WAITING);
        assert_eq!(says(&links, "cid", &first, 3), "wrong, 4 left");
        assert_eq!(says(&links, "cid", &second, 3), "of bob");
    }
}
