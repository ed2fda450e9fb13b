//! The law of reading: a memory is shown only where everyone who can read the answer can, at that moment, also read
//! the place it came from. A [`Right`] is what that law gives for one persona and one place at one moment, and every
//! read of memory takes one. It can be made from the platform's word alone; without it there is no read.

use azera_types::{PersonaId, Place, PlaceKind, Reach, Scope, Timestamp};

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
pub struct Right {
    persona: PersonaId,
    place: Scope,
    grants: Vec<Grant>,
}

impl Right {
    /// The right to show memories of `persona` to everybody who reads `place`. In a DM, `reach` says where else its
    /// person may read; elsewhere it must not widen anything and is ignored.
    ///
    /// - DM with P: `dm:P`, the realms and private chats P may read now, `global`
    /// - private chat: that chat, its realm if all its members belong to it, `global`
    /// - public chat: its realm, `global`
    pub fn in_place(persona: PersonaId, place: &Place, reach: &Reach) -> Self {
        let mut grants = vec![Grant { scope: place.scope(), since: place.since }];
        match &place.kind {
            PlaceKind::Public(_) => {}
            PlaceKind::Private { realm, all_in_realm } => {
                if let (Some(realm), true) = (realm, all_in_realm) {
                    grants.push(Grant { scope: Scope::Realm(realm.clone()), since: place.since });
                }
            }
            PlaceKind::Dm(_) => {
                let realms = reach.realms.iter().map(|(id, since)| (Scope::Realm(id.clone()), *since));
                let chats = reach.private_chats.iter().map(|(id, since)| (Scope::Chat(id.clone()), *since));
                grants.extend(realms.chain(chats).map(|(scope, since)| Grant { scope, since }));
            }
        }
        grants.push(Grant { scope: Scope::Global, since: None });
        Self { persona, place: place.scope(), grants }
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

    /// Whether something of `persona`, said in `scope` at `at` and built on what was said in `needs`, may be shown.
    /// What was built on other places needs the right to each of them.
    pub fn allows(&self, persona: &PersonaId, scope: &Scope, needs: &[Scope], at: Timestamp) -> bool {
        let may = |scope: &Scope| {
            self.grants.iter().any(|grant| grant.scope == *scope && grant.since.is_none_or(|since| at >= since))
        };
        *persona == self.persona && may(scope) && needs.iter().all(may)
    }
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
        let reach = Reach {
            realms: vec![(RealmId::new("guild").unwrap(), None)],
            private_chats: vec![(ChatId::new("den").unwrap(), None)],
        };
        let right = Right::in_place(PersonaId::new("azera").unwrap(), &place(kind), &reach);
        let scopes: Vec<_> = right.grants().iter().map(|grant| grant.scope.to_string()).collect();
        assert_eq!(scopes, want);
    }

    #[test]
    fn each_place_grants_what_all_its_readers_may_read() {
        let guild = RealmId::new("guild").unwrap();
        check(PlaceKind::Public(guild.clone()), &["realm:guild", "global"]);
        let inside = PlaceKind::Private { realm: Some(guild.clone()), all_in_realm: true };
        check(inside, &["chat:here", "realm:guild", "global"]);
        let with_outsider = PlaceKind::Private { realm: Some(guild), all_in_realm: false };
        check(with_outsider, &["chat:here", "global"]);
        check(PlaceKind::Private { realm: None, all_in_realm: false }, &["chat:here", "global"]);
        let dm = PlaceKind::Dm(PersonId::new("ann").unwrap());
        check(dm, &["dm:ann", "realm:guild", "chat:den", "global"]);
    }

    #[test]
    fn derived_text_needs_every_source_and_the_newcomers_horizon_counts() {
        let persona = PersonaId::new("azera").unwrap();
        let guild = RealmId::new("guild").unwrap();
        let mut here = place(PlaceKind::Public(guild.clone()));
        here.since = Some(at(100));
        let right = Right::in_place(persona.clone(), &here, &Reach::default());
        let realm = Scope::Realm(guild);
        let dm = Scope::Dm(PersonId::new("ann").unwrap());
        assert!(right.allows(&persona, &realm, &[], at(100)));
        assert!(!right.allows(&persona, &realm, &[], at(99)));
        assert!(!right.allows(&persona, &realm, &[dm], at(100)));
        assert!(right.allows(&persona, &Scope::Global, &[realm], at(100)));
        assert!(!right.allows(&PersonaId::new("areza").unwrap(), &Scope::Global, &[], at(100)));
    }
}
