use std::collections::{BTreeMap, BTreeSet, HashMap};

use azera_adapter::Access;
use azera_types::{ChatId, MessageId, PersonId, Place, PlaceKind, Reach, RealmId};
use thiserror::Error;

use crate::{ChatKind, ChatLine, MessageLine, RealmLine, Target};

/// Why something cannot happen in the world as it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorldError {
    /// No line made this realm.
    #[error("there is no realm {0}")]
    NoRealm(RealmId),
    /// No line made this chat.
    #[error("there is no chat {0}")]
    NoChat(ChatId),
    /// The person may not read, so neither write.
    #[error("{person} cannot read {chat}")]
    NotReadable {
        /// Who.
        person: PersonId,
        /// Where.
        chat: ChatId,
    },
    /// A public chat is read by its realm: who is not in the realm cannot join it.
    #[error("{person} cannot join the public chat {chat} without joining its realm")]
    NotInRealm {
        /// Who.
        person: PersonId,
        /// Where.
        chat: ChatId,
    },
    /// Nobody joins or leaves a direct message.
    #[error("nobody can join or leave the direct message {0}")]
    FixedMembers(ChatId),
    /// A second line for a chat changed more than its members.
    #[error("{0} cannot change its kind, realm or person")]
    Moved(ChatId),
}

/// A guild or a space.
#[derive(Debug, Clone, PartialEq)]
pub struct Realm {
    members: BTreeSet<PersonId>,
    admins: BTreeSet<PersonId>,
    /// The IANA name of its time zone.
    pub time_zone: Option<String>,
    /// The chat that dreams and journal entries go to.
    pub journal: Option<ChatId>,
}

/// Who is where at this moment, and who may read what. Pure: it changes by what a timeline tells it and answers
/// questions.
///
/// Who leaves a realm loses the realm's private chats and the right to manage it; coming back restores neither. Guests
/// in a private chat, who never belonged to the realm, stay. History is visible to newcomers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct World {
    realms: BTreeMap<RealmId, Realm>,
    chats: BTreeMap<ChatId, ChatKind>,
    said: HashMap<MessageId, Said>,
}

/// Where a message stands and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    pub(crate) chat: ChatId,
    pub(crate) person: PersonId,
}

impl World {
    /// Makes a realm, or sets one anew: those it no longer names have left.
    pub fn set_realm(&mut self, line: &RealmLine) {
        let admins: BTreeSet<_> = match &line.admins {
            Some(admins) => admins.iter().cloned().collect(),
            None => line.members.first().cloned().into_iter().collect(),
        };
        let members: BTreeSet<_> = line.members.iter().chain(&admins).cloned().collect();
        let gone: Vec<_> =
            self.realm(&line.realm).map_or_else(Vec::new, |old| old.members.difference(&members).cloned().collect());
        for person in &gone {
            self.leave_private_chats(&line.realm, person);
        }
        let realm = Realm { members, admins, time_zone: line.time_zone.clone(), journal: line.journal.clone() };
        self.realms.insert(line.realm.clone(), realm);
    }

    /// Makes a chat, or gives a private one other members.
    pub fn set_chat(&mut self, line: &ChatLine) -> Result<(), WorldError> {
        if let ChatKind::Public { realm } | ChatKind::Private { realm: Some(realm), .. } = &line.kind
            && !self.realms.contains_key(realm)
        {
            return Err(WorldError::NoRealm(realm.clone()));
        }
        let same = match (self.chats.get(&line.chat), &line.kind) {
            (None, _) => true,
            (Some(ChatKind::Private { realm: old, .. }), ChatKind::Private { realm: new, .. }) => old == new,
            (Some(old), new) => old == new,
        };
        if !same {
            return Err(WorldError::Moved(line.chat.clone()));
        }
        self.chats.insert(line.chat.clone(), line.kind.clone());
        Ok(())
    }

    /// Somebody comes; who is there already stays.
    pub fn join(&mut self, target: &Target, person: &PersonId) -> Result<(), WorldError> {
        match target {
            Target::Realm(id) => {
                let realm = self.realms.get_mut(id).ok_or_else(|| WorldError::NoRealm(id.clone()))?;
                realm.members.insert(person.clone());
            }
            Target::Chat(id) => match self.chats.get_mut(id) {
                None => return Err(WorldError::NoChat(id.clone())),
                Some(ChatKind::Dm { .. }) => return Err(WorldError::FixedMembers(id.clone())),
                Some(ChatKind::Private { members, .. }) => {
                    members.insert(person.clone());
                }
                Some(ChatKind::Public { realm }) => {
                    if !self.realms.get(realm).is_some_and(|realm| realm.members.contains(person)) {
                        return Err(WorldError::NotInRealm { person: person.clone(), chat: id.clone() });
                    }
                }
            },
        }
        Ok(())
    }

    /// Somebody goes; who was not there is not missed. Leaving a public chat changes nothing, for everybody of the realm
    /// can still read it.
    pub fn leave(&mut self, target: &Target, person: &PersonId) -> Result<(), WorldError> {
        match target {
            Target::Realm(id) => {
                let realm = self.realms.get_mut(id).ok_or_else(|| WorldError::NoRealm(id.clone()))?;
                realm.admins.remove(person);
                if realm.members.remove(person) {
                    self.leave_private_chats(id, person);
                }
            }
            Target::Chat(id) => match self.chats.get_mut(id) {
                None => return Err(WorldError::NoChat(id.clone())),
                Some(ChatKind::Dm { .. }) => return Err(WorldError::FixedMembers(id.clone())),
                Some(ChatKind::Private { members, .. }) => {
                    members.remove(person);
                }
                Some(ChatKind::Public { .. }) => {}
            },
        }
        Ok(())
    }

    fn leave_private_chats(&mut self, left: &RealmId, person: &PersonId) {
        for chat in self.chats.values_mut() {
            if let ChatKind::Private { realm: Some(realm), members } = chat
                && realm == left
            {
                members.remove(person);
            }
        }
    }

    /// A realm as it is now.
    pub fn realm(&self, realm: &RealmId) -> Option<&Realm> {
        self.realms.get(realm)
    }

    /// Whether a person can read, and so write in, a chat now.
    pub fn can_read(&self, chat: &ChatId, person: &PersonId) -> bool {
        match self.chats.get(chat) {
            None => false,
            Some(ChatKind::Public { realm }) => self.is_member(realm, person),
            Some(ChatKind::Private { members, .. }) => members.contains(person),
            Some(ChatKind::Dm { person: owner }) => owner == person,
        }
    }

    fn is_member(&self, realm: &RealmId, person: &PersonId) -> bool {
        self.realms.get(realm).is_some_and(|realm| realm.members.contains(person))
    }

    /// [`World::can_read`], with the reason if not.
    pub fn check_read(&self, chat: &ChatId, person: &PersonId) -> Result<(), WorldError> {
        if !self.chats.contains_key(chat) {
            return Err(WorldError::NoChat(chat.clone()));
        }
        if !self.can_read(chat, person) {
            return Err(WorldError::NotReadable { person: person.clone(), chat: chat.clone() });
        }
        Ok(())
    }

    /// What a chat is for somebody who asks there; `None` if they cannot read it.
    pub fn place(&self, chat: &ChatId, asker: &PersonId) -> Option<Place> {
        if !self.can_read(chat, asker) {
            return None;
        }
        let kind = match self.chats.get(chat)? {
            ChatKind::Public { realm } => PlaceKind::Public(realm.clone()),
            ChatKind::Private { realm, members } => PlaceKind::Private {
                realm: realm.clone(),
                all_in_realm: realm
                    .as_ref()
                    .is_some_and(|realm| members.iter().all(|member| self.is_member(realm, member))),
            },
            ChatKind::Dm { person } => PlaceKind::Dm(person.clone()),
        };
        Some(Place { chat: chat.clone(), kind, since: None })
    }

    /// Where else a person can read now.
    pub fn reach(&self, person: &PersonId) -> Reach {
        let realms = self.realms.iter().filter(|(_, realm)| realm.members.contains(person));
        let chats = self
            .chats
            .iter()
            .filter(|(_, kind)| matches!(kind, ChatKind::Private { members, .. } if members.contains(person)));
        Reach {
            realms: realms.map(|(id, _)| (id.clone(), None)).collect(),
            private_chats: chats.map(|(id, _)| (id.clone(), None)).collect(),
        }
    }

    /// What a person may do in a chat now. A direct message, and a private chat outside any realm, is managed by those
    /// who are in it.
    pub fn access(&self, chat: &ChatId, person: &PersonId) -> Access {
        let manages = match self.chats.get(chat) {
            None => false,
            Some(ChatKind::Public { realm } | ChatKind::Private { realm: Some(realm), .. }) => {
                self.realms.get(realm).is_some_and(|realm| realm.admins.contains(person))
            }
            Some(ChatKind::Private { realm: None, .. } | ChatKind::Dm { .. }) => self.can_read(chat, person),
        };
        if manages { Access::Admin } else { Access::Member }
    }

    /// Takes note of a message, if its author may write there.
    pub fn say(&mut self, line: &MessageLine) -> Result<(), WorldError> {
        self.check_read(&line.chat, &line.person)?;
        let said = Said { chat: line.chat.clone(), person: line.person.clone() };
        // A message sent twice is the first one.
        self.said.entry(line.id.clone()).or_insert(said);
        Ok(())
    }

    /// Where a message stands, if its author can still reach it. Messages of before this world are unknown to it, and not
    /// an error.
    pub(crate) fn reachable(&self, id: &MessageId) -> Result<Option<&Said>, WorldError> {
        let said = self.said.get(id);
        if let Some(said) = said {
            self.check_read(&said.chat, &said.person)?;
        }
        Ok(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Timeline};

    /// A world made by lines of a timeline, written without their times, and what it refused.
    fn world(lines: &[&str]) -> (World, Vec<String>) {
        let text: Vec<_> =
            lines.iter().map(|line| line.replacen('{', r#"{"at":"2026-01-01T00:00:00Z","type":"#, 1)).collect();
        let timeline = Timeline::read(text.join("\n").as_bytes()).unwrap();
        let (mut world, mut refused) = (World::default(), Vec::new());
        for line in timeline.lines() {
            let done = match &line.event {
                Event::Realm(line) => {
                    world.set_realm(line);
                    Ok(())
                }
                Event::Chat(line) => world.set_chat(line),
                Event::Join(line) => world.join(&line.target, &line.person),
                Event::Leave(line) => world.leave(&line.target, &line.person),
                Event::Message(line) => world.say(line),
                other => panic!("{other:?}"),
            };
            refused.extend(done.err().map(|e| e.to_string()));
        }
        (world, refused)
    }

    const GUILD: &str = r#"{"realm","realm":"guild","members":["ann","bob","cid"]}"#;
    const PUBLIC: &str = r#"{"chat","chat":"hall","kind":"public","realm":"guild"}"#;
    const PRIVATE: &str = r#"{"chat","chat":"den","kind":"private","realm":"guild","members":["ann","bob"]}"#;
    const DM: &str = r#"{"chat","chat":"dm-ann","kind":"dm","members":["ann"]}"#;

    fn person(id: &str) -> PersonId {
        PersonId::new(id).unwrap()
    }

    fn chat(id: &str) -> ChatId {
        ChatId::new(id).unwrap()
    }

    /// One word for what a place is to somebody.
    fn place(world: &World, id: &str, asker: &str) -> String {
        let Some(place) = world.place(&chat(id), &person(asker)) else { return "none".into() };
        assert_eq!(place.since, None, "history is visible to newcomers");
        match place.kind {
            PlaceKind::Public(realm) => format!("public {realm}"),
            PlaceKind::Private { realm, all_in_realm } => {
                format!("private {} {all_in_realm}", realm.map_or("-".into(), |realm| realm.to_string()))
            }
            PlaceKind::Dm(person) => format!("dm {person}"),
        }
    }

    fn reach(world: &World, who: &str) -> String {
        let reach = world.reach(&person(who));
        let ids =
            reach.realms.iter().map(|(id, _)| id.as_str()).chain(reach.private_chats.iter().map(|(id, _)| id.as_str()));
        ids.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn places_follow_who_is_where() {
        #[track_caller]
        fn check(then: &[&str], id: &str, asker: &str, want: &str) {
            let (world, refused) = world(&[&[GUILD, PUBLIC, PRIVATE, DM], then].concat());
            assert!(refused.is_empty(), "{refused:?}");
            assert_eq!(place(&world, id, asker), want);
        }
        let bob_leaves = r#"{"leave","realm":"guild","person":"bob"}"#;
        let bob_back = r#"{"join","realm":"guild","person":"bob"}"#;
        let eve_joins_den = r#"{"join","chat":"den","person":"eve"}"#;
        check(&[], "hall", "cid", "public guild");
        check(&[], "hall", "eve", "none");
        check(&[], "den", "bob", "private guild true");
        check(&[], "den", "cid", "none");
        check(&[], "dm-ann", "ann", "dm ann");
        check(&[], "dm-ann", "bob", "none");
        check(&[], "nowhere", "ann", "none");
        check(&[bob_leaves], "hall", "bob", "none");
        check(&[bob_leaves], "den", "bob", "none");
        check(&[bob_leaves], "den", "ann", "private guild true");
        check(&[bob_leaves, bob_back], "hall", "bob", "public guild");
        check(&[bob_leaves, bob_back], "den", "bob", "none");
        check(&[bob_leaves, bob_back, r#"{"join","chat":"den","person":"bob"}"#], "den", "bob", "private guild true");
        // A guest from outside keeps the realm's memories out of the room, until the guest goes or joins the realm.
        check(&[eve_joins_den], "den", "ann", "private guild false");
        check(&[eve_joins_den], "den", "eve", "private guild false");
        check(&[eve_joins_den], "hall", "eve", "none");
        check(&[eve_joins_den, r#"{"leave","chat":"den","person":"eve"}"#], "den", "ann", "private guild true");
        check(&[eve_joins_den, r#"{"join","realm":"guild","person":"eve"}"#], "den", "ann", "private guild true");
        check(&[r#"{"leave","chat":"den","person":"ann"}"#], "den", "ann", "none");
        check(&[r#"{"leave","chat":"hall","person":"ann"}"#], "hall", "ann", "public guild");
        check(&[r#"{"chat","chat":"room","kind":"private","members":["ann"]}"#], "room", "ann", "private - false");
        // Setting a realm anew is leaving it for those it leaves out.
        check(&[r#"{"realm","realm":"guild","members":["ann"]}"#, GUILD], "den", "bob", "none");
    }

    #[test]
    fn reach_is_what_a_person_reads_apart_from_dms() {
        #[track_caller]
        fn check(then: &[&str], who: &str, want: &str) {
            let (world, _) = world(&[&[GUILD, PUBLIC, PRIVATE, DM], then].concat());
            assert_eq!(reach(&world, who), want);
        }
        check(&[], "ann", "guild den");
        check(&[], "cid", "guild");
        check(&[], "eve", "");
        check(&[r#"{"leave","realm":"guild","person":"ann"}"#], "ann", "");
        check(&[r#"{"join","chat":"den","person":"eve"}"#], "eve", "den");
    }

    #[test]
    fn what_cannot_happen_is_refused() {
        #[track_caller]
        fn check(line: &str, want: &str) {
            let (_, refused) = world(&[GUILD, PUBLIC, PRIVATE, DM, line]);
            assert_eq!(refused, [want]);
        }
        check(r#"{"join","realm":"other","person":"ann"}"#, "there is no realm other");
        check(r#"{"leave","chat":"nowhere","person":"ann"}"#, "there is no chat nowhere");
        check(r#"{"chat","chat":"x","kind":"public","realm":"other"}"#, "there is no realm other");
        check(r#"{"join","chat":"dm-ann","person":"bob"}"#, "nobody can join or leave the direct message dm-ann");
        check(
            r#"{"join","chat":"hall","person":"eve"}"#,
            "eve cannot join the public chat hall without joining its realm",
        );
        check(
            r#"{"chat","chat":"hall","kind":"private","realm":"guild"}"#,
            "hall cannot change its kind, realm or person",
        );
        check(
            r#"{"chat","chat":"dm-ann","kind":"dm","members":["bob"]}"#,
            "dm-ann cannot change its kind, realm or person",
        );
        check(r#"{"message","id":"m","chat":"den","person":"cid","text":"hi"}"#, "cid cannot read den");
        check(r#"{"message","id":"m","chat":"nowhere","person":"cid","text":"hi"}"#, "there is no chat nowhere");
    }

    #[test]
    fn access_is_the_owner_s_the_admins_and_one_s_own() {
        #[track_caller]
        fn check(realm: &str, then: &[&str], id: &str, who: &str, want: Access) {
            let (world, _) = world(&[&[realm, PUBLIC, PRIVATE, DM], then].concat());
            assert_eq!(world.access(&chat(id), &person(who)), want);
        }
        let named = r#"{"realm","realm":"guild","members":["ann","bob"],"admins":["bob"]}"#;
        let bob_leaves = r#"{"leave","realm":"guild","person":"bob"}"#;
        let bob_back = r#"{"join","realm":"guild","person":"bob"}"#;
        check(GUILD, &[], "hall", "ann", Access::Admin);
        check(GUILD, &[], "hall", "bob", Access::Member);
        check(named, &[], "den", "bob", Access::Admin);
        check(named, &[], "hall", "ann", Access::Member);
        check(named, &[bob_leaves, bob_back], "hall", "bob", Access::Member);
        check(GUILD, &[], "dm-ann", "ann", Access::Admin);
        check(GUILD, &[], "dm-ann", "bob", Access::Member);
        check(GUILD, &[], "nowhere", "ann", Access::Member);
    }

    #[test]
    fn what_was_said_can_be_changed_only_from_within() {
        let told = r#"{"message","id":"m","chat":"den","person":"bob","text":"hi"}"#;
        let (mut world, _) = world(&[GUILD, PRIVATE, told]);
        let id = MessageId::new("m").unwrap();
        assert_eq!(world.reachable(&id).unwrap().unwrap().chat, chat("den"));
        world.leave(&Target::Chat(chat("den")), &person("bob")).unwrap();
        assert!(matches!(world.reachable(&id), Err(WorldError::NotReadable { .. })));
        assert_eq!(world.reachable(&MessageId::new("earlier").unwrap()), Ok(None));
    }
}
