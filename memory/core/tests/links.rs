//! Links between accounts: each account is linked with its whole group or with nobody, whatever is linked, unlinked or
//! forgotten.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{
    Account, Batch, DataSubject, Durability, Forget, LinkOutcome, MAX_LINKED, Memory, Order, RamStore, Store, Table,
};
use azera_types::{ChatId, PersonId, PlatformId};
use proptest::prelude::*;

/// Accounts whose ids look like scopes, or share a prefix.
const PEOPLE: [&str; 11] =
    ["ann", "an", "dm:ann", "linked", "@ann:hs", "there:4", "there:42", "a b", "realm:ann", "chat:ann", "bob"];

fn account(number: usize) -> Account {
    let person = PersonId::new(PEOPLE[number]).unwrap();
    Account {
        platform: PlatformId::new(["sim", "elsewhere"][number % 2]).unwrap(),
        person,
        name: format!("Ann {number}"),
    }
}

/// Returns the numbers of the accounts that an account is linked with.
fn linked(memory: &Memory, number: usize) -> BTreeSet<usize> {
    let found = memory.links().of(&account(number).person).unwrap();
    let found: Vec<usize> =
        found.into_iter().map(|other| (0..PEOPLE.len()).find(|number| account(*number) == other).unwrap()).collect();
    let once: BTreeSet<usize> = found.iter().copied().collect();
    assert_eq!(once.len(), found.len(), "each once");
    once
}

fn rows(store: &RamStore) -> usize {
    let all = store.scan(Table::Settings, b"linked\0", None, Order::Ascending, usize::MAX).unwrap();
    all.len()
}

#[derive(Debug, Clone)]
enum Act {
    Link(usize, usize),
    Unlink(usize),
    Forget(usize),
    ForgetChat(usize),
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    let who = || 0..PEOPLE.len();
    prop_oneof![
        8 => (who(), who()).prop_map(|(one, other)| Act::Link(one, other)),
        1 => who().prop_map(Act::Unlink),
        1 => who().prop_map(Act::Forget),
        1 => who().prop_map(Act::ForgetChat),
        1 => Just(Act::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn everybody_is_linked_with_their_whole_group_and_nobody_else(acts in prop::collection::vec(act(), 1..40)) {
        let store = RamStore::new();
        let mut memory = record(Arc::new(store.clone()));
        let mut groups: Vec<BTreeSet<usize>> = (0..PEOPLE.len()).map(|number| [number].into()).collect();
        let of = |groups: &[BTreeSet<usize>], who: usize| groups.iter().position(|group| group.contains(&who)).unwrap();
        for act in acts {
            match act {
                Act::Link(one, other) => {
                    let (left, read_scope) = (of(&groups, one), of(&groups, other));
                    let want = if left == read_scope {
                        LinkOutcome::Already
                    } else if groups[left].len() + groups[read_scope].len() > MAX_LINKED {
                        LinkOutcome::TooMany
                    } else {
                        let mut more = std::mem::take(&mut groups[read_scope]);
                        groups[left].append(&mut more);
                        LinkOutcome::Now
                    };
                    prop_assert_eq!(memory.links().link(&account(one), &account(other)).unwrap(), want);
                }
                Act::Unlink(who) => {
                    let group = of(&groups, who);
                    groups[group].remove(&who);
                    prop_assert_eq!(memory.links().unlink(&account(who).person).unwrap(), groups[group].len());
                    groups.push([who].into());
                }
                Act::Forget(who) => {
                    let group = of(&groups, who);
                    groups[group].remove(&who);
                    groups.push([who].into());
                    memory.forgetting().forget(&Forget::Person(account(who).person), false).unwrap();
                }
                Act::ForgetChat(number) => {
                    memory.forgetting().forget(&Forget::Chat(ChatId::new(PEOPLE[number]).unwrap()), true).unwrap();
                }
                Act::Reopen => memory = record(Arc::new(store.clone())),
            }
            for who in 0..PEOPLE.len() {
                let mut others = groups[of(&groups, who)].clone();
                others.remove(&who);
                prop_assert_eq!(linked(&memory, who), others, "{}", PEOPLE[who]);
            }
            prop_assert_eq!(rows(&store), groups.iter().map(|group| group.len() * group.len().saturating_sub(1)).sum::<usize>());
        }
        prop_assert!(memory.check().unwrap().is_sound());
    }
}

/// A damaged record may hold one row of a link only. This is no link, and it is forgotten with either account.
#[test]
fn a_link_with_one_row_is_no_link() {
    let store = RamStore::new();
    let memory = record(Arc::new(store.clone()));
    memory.links().link(&account(0), &account(1)).unwrap();
    let (key, _) = store.scan(Table::Settings, b"linked\0ann\0", None, Order::Ascending, 1).unwrap().remove(0);
    let mut batch = Batch::new();
    batch.remove(Table::Settings, key);
    store.commit(batch, Durability::Flushed).unwrap();
    assert_eq!((linked(&memory, 0), linked(&memory, 1)), (BTreeSet::new(), BTreeSet::new()));
    assert_eq!(memory.links().unlink(&account(0).person).unwrap(), 0);
    assert_eq!(rows(&store), 0);
}

#[test]
fn an_export_lists_the_linked_accounts() {
    let memory = record(Arc::new(RamStore::new()));
    memory.links().link(&account(0), &account(1)).unwrap();
    let export = memory.export(&DataSubject(account(0).person), u64::MAX).unwrap();
    assert_eq!(export["linked"], serde_json::json!([{"platform": "elsewhere", "person": "an", "name": "Ann 1"}]));
    assert_eq!(memory.export(&DataSubject(account(2).person), u64::MAX).unwrap()["linked"], serde_json::json!([]));
}
