use super::*;
use crate::{Event, Timeline};

/// Builds a world from timeline lines without their times; returns it with the errors.
fn world(lines: &[&str]) -> (World, Vec<String>) {
    let text: Vec<_> = lines
        .iter()
        .enumerate()
        .map(|(n, line)| line.replacen('{', &format!(r#"{{"at":"2026-01-01T00:{n:02}:00Z","type":"#), 1))
        .collect();
    let timeline = Timeline::read(text.join("\n").as_bytes()).unwrap();
    let (mut world, mut refused) = (World::default(), Vec::new());
    for line in timeline.lines() {
        let done = match &line.event {
            Event::Realm(line) => {
                world.set_realm(line);
                Ok(())
            }
            Event::Chat(line) => world.set_chat(line),
            Event::Join(line) => world.join(&line.target, &line.person, line.at),
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

/// Describes a place for an asker in one word.
fn place(world: &World, id: &str, asker: &str) -> String {
    let Some(place) = world.place(&chat(id), &person(asker)) else { return "none".into() };
    let since = |since: Option<Timestamp>| since.map_or_else(String::new, |at| at.strftime(" since %M").to_string());
    let kind = match place.kind {
        PlaceKind::Public(realm) => format!("public {realm}"),
        PlaceKind::Private { realm, all_in_realm, realm_since } => {
            let realm = realm.map_or("-".into(), |realm| realm.to_string());
            format!("private {realm}{} {all_in_realm}", since(realm_since))
        }
        PlaceKind::Dm(person) => format!("dm {person}"),
    };
    kind + &since(place.since)
}

fn readable_scopes(world: &World, who: &str) -> String {
    let reach = world.readable_scopes(&person(who));
    let ids =
        reach.realms.iter().map(|(id, _)| id.as_str()).chain(reach.private_chats.iter().map(|(id, _)| id.as_str()));
    ids.collect::<Vec<_>>().join(" ")
}

#[test]
fn places_depend_on_current_members() {
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
    // A guest from outside keeps the realm's memories out of the chat, until the guest leaves or joins the realm.
    check(&[eve_joins_den], "den", "ann", "private guild false");
    check(&[eve_joins_den], "den", "eve", "private guild false");
    check(&[eve_joins_den], "hall", "eve", "none");
    check(&[eve_joins_den, r#"{"leave","chat":"den","person":"eve"}"#], "den", "ann", "private guild true");
    check(&[eve_joins_den, r#"{"join","realm":"guild","person":"eve"}"#], "den", "ann", "private guild true");
    check(&[r#"{"leave","chat":"den","person":"ann"}"#], "den", "ann", "none");
    check(&[r#"{"leave","chat":"hall","person":"ann"}"#], "hall", "ann", "public guild");
    check(&[r#"{"chat","chat":"room","kind":"private","members":["ann"]}"#], "room", "ann", "private - false");
    // Members who are missing in a new line of a realm leave it.
    check(&[r#"{"realm","realm":"guild","members":["ann"]}"#, GUILD], "den", "bob", "none");
}

#[test]
fn with_joined_history_the_newest_member_sets_the_horizon() {
    #[track_caller]
    fn check(then: &[&str], id: &str, asker: &str, want: &str) {
        let guild = r#"{"realm","realm":"guild","members":["ann","bob"],"history":"joined"}"#;
        let den = r#"{"chat","chat":"den","kind":"private","realm":"guild","members":["ann"],"history":"joined"}"#;
        let attic = r#"{"chat","chat":"attic","kind":"private","realm":"guild","members":["ann"]}"#;
        let (world, refused) = world(&[&[guild, PUBLIC, den, attic], then].concat());
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(place(&world, id, asker), want);
    }
    let cid_comes = r#"{"join","realm":"guild","person":"cid"}"#;
    let cid_in_den = r#"{"join","chat":"den","person":"cid"}"#;
    let cid_in_attic = r#"{"join","chat":"attic","person":"cid"}"#;
    let cid_goes = r#"{"leave","realm":"guild","person":"cid"}"#;
    let relisted = r#"{"realm","realm":"guild","members":["ann","bob","cid"]}"#;
    check(&[], "hall", "ann", "public guild since 00");
    check(&[cid_comes], "hall", "ann", "public guild since 04");
    check(&[cid_comes, cid_comes], "hall", "ann", "public guild since 04");
    check(&[cid_comes, relisted], "hall", "ann", "public guild since 04");
    check(&[cid_comes, cid_goes], "hall", "ann", "public guild since 00");
    check(&[cid_comes, cid_goes, cid_comes], "hall", "ann", "public guild since 06");
    check(&[cid_comes], "den", "ann", "private guild since 00 true since 02");
    check(&[cid_comes, cid_in_den], "den", "ann", "private guild since 04 true since 05");
    check(&[cid_comes, cid_in_attic], "attic", "ann", "private guild since 04 true");
    check(&[cid_in_attic, cid_comes], "attic", "ann", "private guild since 05 true");
    let (world, _) = world(&[r#"{"realm","realm":"guild","members":["ann"],"history":"joined"}"#, cid_comes]);
    let since = |who: &str| world.readable_scopes(&person(who)).realms[0].1.map(|at| at.strftime("%M").to_string());
    assert_eq!((since("ann").as_deref(), since("cid").as_deref()), (Some("00"), Some("01")));
}

#[test]
fn readable_scopes_are_what_a_person_reads_except_dms() {
    #[track_caller]
    fn check(then: &[&str], who: &str, want: &str) {
        let (world, _) = world(&[&[GUILD, PUBLIC, PRIVATE, DM], then].concat());
        assert_eq!(readable_scopes(&world, who), want);
    }
    check(&[], "ann", "guild den");
    check(&[], "cid", "guild");
    check(&[], "eve", "");
    check(&[r#"{"leave","realm":"guild","person":"ann"}"#], "ann", "");
    check(&[r#"{"join","chat":"den","person":"eve"}"#], "eve", "den");
}

#[test]
fn impossible_events_are_refused() {
    #[track_caller]
    fn check(line: &str, want: &str) {
        let (_, refused) = world(&[GUILD, PUBLIC, PRIVATE, DM, line]);
        assert_eq!(refused, [want]);
    }
    check(r#"{"join","realm":"other","person":"ann"}"#, "there is no realm other");
    check(r#"{"leave","chat":"nowhere","person":"ann"}"#, "there is no chat nowhere");
    check(r#"{"chat","chat":"x","kind":"public","realm":"other"}"#, "there is no realm other");
    check(r#"{"join","chat":"dm-ann","person":"bob"}"#, "nobody can join or leave the direct message dm-ann");
    check(r#"{"join","chat":"hall","person":"eve"}"#, "eve cannot join the public chat hall without joining its realm");
    check(r#"{"chat","chat":"hall","kind":"private","realm":"guild"}"#, "hall cannot change its kind, realm or person");
    check(
        r#"{"chat","chat":"dm-ann","kind":"dm","members":["bob"]}"#,
        "dm-ann cannot change its kind, realm or person",
    );
    check(r#"{"message","id":"m","chat":"den","person":"cid","text":"hi"}"#, "cid cannot read den");
    check(r#"{"message","id":"m","chat":"nowhere","person":"cid","text":"hi"}"#, "there is no chat nowhere");
}

#[test]
fn owners_and_admins_manage_realms_and_people_their_own_chats() {
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
fn a_message_can_be_changed_only_by_a_member() {
    let message = r#"{"message","id":"m","chat":"den","person":"bob","text":"hi"}"#;
    let (mut world, _) = world(&[GUILD, PRIVATE, message]);
    let id = MessageId::new("m").unwrap();
    assert_eq!(world.reachable(&id).unwrap().unwrap().chat, chat("den"));
    world.leave(&Target::Chat(chat("den")), &person("bob")).unwrap();
    assert!(matches!(world.reachable(&id), Err(WorldError::NotReadable { .. })));
    assert_eq!(world.reachable(&MessageId::new("earlier").unwrap()), Ok(None));
}
