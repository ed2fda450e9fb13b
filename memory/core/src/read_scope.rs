//! The rule for reading: a memory is shown only where everyone who can read the reply can also, at that moment, read
//! the place that the memory comes from. A [`ReadScope`] applies this rule to one persona, place and moment. It is made
//! only from the platform's answer, and every read that shows content takes one.

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
    /// The oldest moment that may be shown, where a reader cannot scroll back further.
    pub since: Option<Timestamp>,
}

/// What one persona may show in one place at one moment. Unless it was narrowed, it contains that place. It is never stored, and it is
/// never reused for another message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadScope {
    persona: PersonaId,
    place: Scope,
    grants: Vec<Grant>,
}

impl ReadScope {
    /// Returns the read scope of `persona` for everyone who reads `place`. In a DM, `reach` lists the other places that
    /// its person may read. Elsewhere `reach` must not widen the scope and is ignored.
    ///
    /// - DM with P: `dm:P`, the realms and private chats that P may read now, `global`; for each account Q that P
    ///   linked, also `dm:Q` and the realms and private chats that Q may read now, because one human reads all of them
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

    /// Returns the persona whose memories may be shown.
    pub fn persona(&self) -> &PersonaId {
        &self.persona
    }

    /// Returns the scope of messages in this place.
    pub fn place(&self) -> &Scope {
        &self.place
    }

    /// Returns the places that may be shown, this place first unless the read scope was narrowed.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Returns true if text of `persona` may be shown that was said in `scope` at `at` and built on `source_scopes`.
    /// Every source scope must be allowed, as far back as the text was built on it.
    pub fn allows(&self, persona: &PersonaId, scope: &Scope, source_scopes: &[SourceScope], at: Timestamp) -> bool {
        *persona == self.persona && self.covers(scope, source_scopes, at)
    }

    /// Returns [`ReadScope::allows`] for any persona: true if everyone here may read the place and all source scopes.
    /// Use it for counting, never for showing.
    pub(crate) fn covers(&self, scope: &Scope, source_scopes: &[SourceScope], at: Timestamp) -> bool {
        let may = |scope: &Scope, at: Timestamp| {
            self.grants.iter().any(|grant| grant.scope == *scope && grant.since.is_none_or(|since| at >= since))
        };
        may(scope, at) && source_scopes.iter().all(|source_scope| may(&source_scope.scope, source_scope.from))
    }

    /// Returns the part of this read scope that is about some places; `None` if it allows none of them. It never allows
    /// more than this one. It is still about an answer in this place, even if that is none of them.
    pub fn narrowed_to(&self, wanted: impl Fn(&Scope) -> bool) -> Option<Self> {
        let grants: Vec<Grant> = self.grants.iter().filter(|grant| wanted(&grant.scope)).cloned().collect();
        grants.first()?;
        Some(Self { persona: self.persona.clone(), place: self.place.clone(), grants })
    }

    /// Moves every horizon `reach` later. Turns up to `reach` before an allowed memory are then also allowed. Returns
    /// `None` if there is no horizon.
    pub(crate) fn after_horizons(&self, reach: Duration) -> Option<Self> {
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

/// Returns each scope once, in order, with the earliest start of its grants. One of two linked accounts may see further
/// back than the other.
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
    fn of_two_linked_accounts_in_a_realm_the_earlier_horizon_counts() {
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
    fn messages_with_a_linked_account_are_shown_in_direct_messages_only() {
        let [ann, other] = ["ann", "@ann:hs"].map(|id| PersonId::new(id).unwrap());
        let persona = PersonaId::new("azera").unwrap();
        let reach = ReadableScopes { direct: vec![other.clone()], ..ReadableScopes::default() };
        let linked = Scope::Dm(other);
        let may = |kind: PlaceKind, reach: &ReadableScopes| {
            let read_scope = ReadScope::in_place(persona.clone(), &place(kind), reach);
            let here = read_scope.place().clone();
            let built =
                read_scope.allows(&persona, &here, &[SourceScope { scope: linked.clone(), from: at(1) }], at(2));
            assert_eq!(built, read_scope.allows(&persona, &linked, &[], at(1)), "derived text follows the same rule");
            built
        };
        let guild = RealmId::new("guild").unwrap();
        assert!(may(PlaceKind::Dm(ann.clone()), &reach));
        assert!(!may(PlaceKind::Dm(ann), &ReadableScopes::default()), "the accounts are no longer linked");
        assert!(!may(PlaceKind::Public(guild.clone()), &reach));
        let private = PlaceKind::Private { realm: Some(guild), all_in_realm: true, realm_since: None };
        assert!(!may(private, &reach));
    }

    #[test]
    fn derived_text_needs_access_to_every_source_up_to_the_horizon() {
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
            "a source is hidden"
        );
        assert!(!read_scope.allows(&PersonaId::new("areza").unwrap(), &Scope::Global, &[], at(100)));
    }

    #[test]
    fn a_private_chat_reads_its_realm_as_far_back_as_all_its_members() {
        let persona = PersonaId::new("azera").unwrap();
        let guild = RealmId::new("guild").unwrap();
        let kind = PlaceKind::Private { realm: Some(guild.clone()), all_in_realm: true, realm_since: Some(at(100)) };
        let read_scope = ReadScope::in_place(persona.clone(), &place(kind), &ReadableScopes::default());
        assert!(read_scope.allows(&persona, read_scope.place(), &[], at(50)), "newcomers read the whole chat itself");
        assert!(!read_scope.allows(&persona, &Scope::Realm(guild.clone()), &[], at(50)));
        assert!(read_scope.allows(&persona, &Scope::Realm(guild), &[], at(100)));
    }

    #[test]
    fn moving_horizons_later_leaves_global_alone() {
        let mut here = place(PlaceKind::Private { realm: None, all_in_realm: false, realm_since: None });
        let read_scope =
            |place: &Place| ReadScope::in_place(PersonaId::new("azera").unwrap(), place, &ReadableScopes::default());
        assert_eq!(read_scope(&here).after_horizons(Duration::from_secs(50)), None);
        here.since = Some(at(100));
        let beyond = read_scope(&here).after_horizons(Duration::from_secs(50)).unwrap();
        let since: Vec<_> = beyond.grants().iter().map(|grant| grant.since).collect();
        assert_eq!(since, [Some(at(150)), None]);
    }
}
