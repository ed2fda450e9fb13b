//! The law of reading: a memory is shown only where everyone who can read the answer can, at that moment, also read
//! the place it came from. A [`ReadScope`] is what that law gives for one persona and one place at one moment, and every
//! read of memory takes one. It can be made from the platform's word alone; without it there is no read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use azera_types::{PersonaId, Place, PlaceKind, ReadableScopes, Scope, Timestamp};

use crate::rows::SourceScope;

/// One place whose memories may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The place.
    pub scope: Scope,
    /// Nothing older than this, where somebody cannot scroll back further.
    pub since: Option<Timestamp>,
}

/// What one persona may show in one place at one moment. Never empty by construction, never stored, never reused for
/// another message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadScope {
    persona: PersonaId,
    place: Scope,
    grants: Vec<Grant>,
}

impl ReadScope {
    /// The right to show memories of `persona` to everybody who reads `place`. In a DM, `reach` says where else its
    /// person may read; elsewhere it must not widen anything and is ignored.
    ///
    /// - DM with P: `dm:P`, the realms and private chats P may read now, `global`; of each account Q that P linked, `dm:Q` and the
    ///   realms and private chats Q may read now: it is one human who reads all of them
    /// - private chat: that chat, its realm if all its members belong to it, `global`
    /// - public chat: its realm, `global`
    pub fn in_place(persona: PersonaId, place: &Place, reach: &ReadableScopes) -> Self {
        let mut grants = vec![Grant { scope: place.scope(), since: place.since }];
        match &place.kind {
            PlaceKind::Public(_) => {}
            PlaceKind::Private { realm_since, .. } => {
                let realm = place.shared_realm().map(|realm| Scope::Realm(realm.clone()));
                grants.extend(realm.map(|scope| Grant { scope, since: *realm_since }));
            }
            PlaceKind::Dm(person) => {
                let direct = reach.direct.iter().filter(|other| *other != person);
                let direct = direct.map(|other| (Scope::Dm(other.clone()), None));
                let realms = reach.realms.iter().map(|(id, since)| (Scope::Realm(id.clone()), *since));
                let chats = reach.private_chats.iter().map(|(id, since)| (Scope::Chat(id.clone()), *since));
                grants.extend(realms.chain(chats).chain(direct).map(|(scope, since)| Grant { scope, since }));
            }
        }
        grants.push(Grant { scope: Scope::Global, since: None });
        Self { persona, place: place.scope(), grants: once_each(grants) }
    }

    /// The persona whose memories these are.
    pub fn persona(&self) -> &PersonaId {
        &self.persona
    }

    /// The scope of what is said in this place.
    pub fn place(&self) -> &Scope {
        &self.place
    }

    /// The places that may be shown, this one first.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Whether something of `persona`, said in `scope` at `at` and built on what was said in `source_scopes`, may be shown.
    /// What was built on other places needs the right to each of them, as far back as it was built on them.
    pub fn allows(&self, persona: &PersonaId, scope: &Scope, source_scopes: &[SourceScope], at: Timestamp) -> bool {
        *persona == self.persona && self.covers(scope, source_scopes, at)
    }

    /// [`ReadScope::allows`] whatever the persona: whether the place it comes from, and those it was built on, may be read
    /// by everybody here. For counting, never for showing.
    pub(crate) fn covers(&self, scope: &Scope, source_scopes: &[SourceScope], at: Timestamp) -> bool {
        let may = |scope: &Scope, at: Timestamp| {
            self.grants.iter().any(|grant| grant.scope == *scope && grant.since.is_none_or(|since| at >= since))
        };
        may(scope, at) && source_scopes.iter().all(|source_scope| may(&source_scope.scope, source_scope.from))
    }

    /// The right to what follows each horizon by more than `reach`, if there is a horizon: what is known of such a
    /// memory by the turns up to `reach` before it, is known by turns behind the horizon.
    pub(crate) fn behind_horizons(&self, reach: Duration) -> Option<Self> {
        if self.grants.iter().all(|grant| grant.since.is_none()) {
            return None;
        }
        let mut beyond = self.clone();
        for since in beyond.grants.iter_mut().filter_map(|grant| grant.since.as_mut()) {
            *since = since.checked_add(reach).unwrap_or(Timestamp::MAX);
        }
        Some(beyond)
    }
}

/// Each scope once, in order, as far back as any of its grants goes: of two accounts of one human, one may see further.
fn once_each(grants: Vec<Grant>) -> Vec<Grant> {
    let mut known: HashMap<Scope, usize> = HashMap::with_capacity(grants.len());
    let mut once: Vec<Grant> = Vec::with_capacity(grants.len());
    for grant in grants {
        match known.entry(grant.scope.clone()) {
            Entry::Vacant(new) => {
                new.insert(once.len());
                once.push(grant);
            }
            Entry::Occupied(known) => {
                if let Some(known) = once.get_mut(*known.get()) {
                    known.since = known.since.zip(grant.since).map(|(one, other)| one.min(other));
                }
            }
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use azera_types::{ChatId, PersonId, RealmId};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn place(kind: PlaceKind) -> Place {
        Place { chat: ChatId::new("here").unwrap(), kind, since: None }
    }

    #[track_caller]
    fn check(kind: PlaceKind, want: &[&str]) {
        let reach = ReadableScopes {
            realms: vec![(RealmId::new("guild").unwrap(), None)],
            private_chats: vec![(ChatId::new("den").unwrap(), None)],
            direct: vec![PersonId::new("ann").unwrap(), PersonId::new("@ann:hs").unwrap()],
        };
        let read_scope = ReadScope::in_place(PersonaId::new("azera").unwrap(), &place(kind), &reach);
        let scopes: Vec<_> = read_scope.grants().iter().map(|grant| grant.scope.to_string()).collect();
        assert_eq!(scopes, want);
    }

    #[test]
    fn each_place_grants_what_all_its_readers_may_read() {
        let guild = RealmId::new("guild").unwrap();
        check(PlaceKind::Public(guild.clone()), &["realm:guild", "global"]);
        let private = |realm, all_in_realm| PlaceKind::Private { realm, all_in_realm, realm_since: None };
        let inside = private(Some(guild.clone()), true);
        check(inside, &["chat:here", "realm:guild", "global"]);
        check(private(Some(guild), false), &["chat:here", "global"]);
        check(private(None, false), &["chat:here", "global"]);
        let dm = PlaceKind::Dm(PersonId::new("ann").unwrap());
        check(dm, &["dm:ann", "realm:guild", "chat:den", "dm:@ann:hs", "global"]);
    }

    #[test]
    fn of_two_accounts_in_one_realm_the_one_that_sees_further_counts() {
        #[track_caller]
        fn check(accounts: [Option<i64>; 2], want: Option<i64>) {
            let account = |since: Option<i64>| ReadableScopes {
                realms: vec![(RealmId::new("guild").unwrap(), since.map(at))],
                private_chats: vec![(ChatId::new("guild").unwrap(), Some(at(7)))],
                direct: Vec::new(),
            };
            let [mut reach, other] = accounts.map(account);
            reach.join(other);
            let dm = Place { since: Some(at(3)), ..place(PlaceKind::Dm(PersonId::new("ann").unwrap())) };
            let read_scope = ReadScope::in_place(PersonaId::new("azera").unwrap(), &dm, &reach);
            let grants: Vec<_> = read_scope
                .grants()
                .iter()
                .map(|grant| (grant.scope.to_string(), grant.since.map(|at| at.as_second())))
                .collect();
            let want = [("dm:ann", Some(3)), ("realm:guild", want), ("chat:guild", Some(7)), ("global", None)];
            assert_eq!(grants, want.map(|(scope, since)| (scope.to_owned(), since)));
        }
        check([Some(100), Some(50)], Some(50));
        check([Some(50), Some(100)], Some(50));
        check([None, Some(100)], None);
        check([Some(100), None], None);
    }

    #[test]
    fn what_was_told_to_a_linked_account_is_shown_in_direct_messages_alone() {
        let [ann, other] = ["ann", "@ann:hs"].map(|id| PersonId::new(id).unwrap());
        let persona = PersonaId::new("azera").unwrap();
        let reach = ReadableScopes { direct: vec![other.clone()], ..ReadableScopes::default() };
        let reported = Scope::Dm(other);
        let may = |kind: PlaceKind, reach: &ReadableScopes| {
            let read_scope = ReadScope::in_place(persona.clone(), &place(kind), reach);
            let here = read_scope.place().clone();
            let built =
                read_scope.allows(&persona, &here, &[SourceScope { scope: reported.clone(), from: at(1) }], at(2));
            assert_eq!(
                built,
                read_scope.allows(&persona, &reported, &[], at(1)),
                "what is built on it goes the same way"
            );
            built
        };
        let guild = RealmId::new("guild").unwrap();
        assert!(may(PlaceKind::Dm(ann.clone()), &reach));
        assert!(!may(PlaceKind::Dm(ann), &ReadableScopes::default()), "linked no more");
        assert!(!may(PlaceKind::Public(guild.clone()), &reach));
        let private = PlaceKind::Private { realm: Some(guild), all_in_realm: true, realm_since: None };
        assert!(!may(private, &reach));
    }

    #[test]
    fn derived_text_needs_every_source_and_the_newcomers_horizon_counts() {
        let persona = PersonaId::new("azera").unwrap();
        let guild = RealmId::new("guild").unwrap();
        let mut here = place(PlaceKind::Public(guild.clone()));
        here.since = Some(at(100));
        let read_scope = ReadScope::in_place(persona.clone(), &here, &ReadableScopes::default());
        let realm = Scope::Realm(guild);
        let dm = Scope::Dm(PersonId::new("ann").unwrap());
        assert!(read_scope.allows(&persona, &realm, &[], at(100)));
        assert!(!read_scope.allows(&persona, &realm, &[], at(99)));
        let source_scope = |scope: &Scope, from| SourceScope { scope: scope.clone(), from: at(from) };
        assert!(!read_scope.allows(&persona, &realm, &[source_scope(&dm, 100)], at(100)));
        assert!(read_scope.allows(&persona, &Scope::Global, &[source_scope(&realm, 100)], at(200)));
        assert!(
            !read_scope.allows(&persona, &Scope::Global, &[source_scope(&realm, 99)], at(200)),
            "built on what is hidden"
        );
        assert!(!read_scope.allows(&PersonaId::new("areza").unwrap(), &Scope::Global, &[], at(100)));
    }

    #[test]
    fn a_private_chat_sees_its_realm_as_far_back_as_all_of_its_members_do() {
        let persona = PersonaId::new("azera").unwrap();
        let guild = RealmId::new("guild").unwrap();
        let kind = PlaceKind::Private { realm: Some(guild.clone()), all_in_realm: true, realm_since: Some(at(100)) };
        let read_scope = ReadScope::in_place(persona.clone(), &place(kind), &ReadableScopes::default());
        assert!(read_scope.allows(&persona, read_scope.place(), &[], at(50)), "the chat itself is open to newcomers");
        assert!(!read_scope.allows(&persona, &Scope::Realm(guild.clone()), &[], at(50)));
        assert!(read_scope.allows(&persona, &Scope::Realm(guild), &[], at(100)));
    }

    #[test]
    fn what_lies_beyond_horizons_is_known_by_turns_behind_them() {
        let mut here = place(PlaceKind::Private { realm: None, all_in_realm: false, realm_since: None });
        let read_scope =
            |place: &Place| ReadScope::in_place(PersonaId::new("azera").unwrap(), place, &ReadableScopes::default());
        assert_eq!(read_scope(&here).behind_horizons(Duration::from_secs(50)), None);
        here.since = Some(at(100));
        let beyond = read_scope(&here).behind_horizons(Duration::from_secs(50)).unwrap();
        let since: Vec<_> = beyond.grants().iter().map(|grant| grant.since).collect();
        assert_eq!(since, [Some(at(150)), None]);
    }
}
