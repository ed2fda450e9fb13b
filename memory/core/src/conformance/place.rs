use std::path::Path;

use azera_types::{ChatId, PersonId, PersonaId, Place, PlaceKind, ReadableScopes, RealmId, Scope, Timestamp};

use crate::{IndexMetadata, ReadScope};

/// Panics if any file under `dir` contains `needle`. Use it after data was removed and the store was rewritten.
///
/// # Panics
///
/// Panics if a file contains `needle`, or if `dir` cannot be read.
#[track_caller]
pub fn assert_no_bytes(dir: &Path, needle: &[u8]) {
    let found = files_with(dir, needle);
    assert!(found.is_empty(), "{:?} is still in {found:?}", String::from_utf8_lossy(needle));
}

/// Returns the files under `dir` that contain `needle`.
fn files_with(dir: &Path, needle: &[u8]) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("the directory can be read") {
        let path = entry.expect("the directory can be read").path();
        if path.is_dir() {
            found.extend(files_with(&path, needle));
        } else if std::fs::read(&path).expect("the file can be read").windows(needle.len()).any(|part| part == needle) {
            found.push(path);
        }
    }
    found
}

/// Copies a directory in the state that a crash at this moment would leave.
///
/// # Panics
///
/// Panics if the directory cannot be copied.
pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the directory can be made");
    for entry in std::fs::read_dir(from).expect("the directory can be read") {
        let path = entry.expect("the directory can be read").path();
        let target = to.join(path.file_name().expect("an entry has a name"));
        if path.is_dir() {
            copy_dir(&path, &target);
        } else {
            std::fs::copy(&path, target).expect("the file can be copied");
        }
    }
}

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a second within range")
}

pub(super) fn persona(id: &str) -> PersonaId {
    PersonaId::new(id).expect("a persona id")
}

pub(super) fn realm(id: &str) -> RealmId {
    RealmId::new(id).expect("a realm id")
}

pub(super) fn person(id: &str) -> PersonId {
    PersonId::new(id).expect("a person id")
}

pub(super) fn chat(id: &str) -> ChatId {
    ChatId::new(id).expect("a chat id")
}

pub(super) fn label(who: &str, scope: Scope, second: i64) -> IndexMetadata {
    IndexMetadata { persona: persona(who), scope, at: at(second) }
}

/// Returns the read scope of the persona `who` in a public chat of the realm `guild`. Everybody there can scroll back
/// to `since`.
pub(super) fn public(who: &str, guild: &str, since: Option<i64>) -> ReadScope {
    let place = Place { chat: chat("hall"), kind: PlaceKind::Public(realm(guild)), since: since.map(at) };
    ReadScope::in_place(persona(who), &place, &ReadableScopes::default())
}

/// Returns the read scope of the persona `who` in the DM with `ann`, who may read the private chat `den` from second
/// 100 on.
pub(super) fn dm(who: &str, ann: &str) -> ReadScope {
    let place = Place { chat: chat("dm"), kind: PlaceKind::Dm(person(ann)), since: None };
    let reach = ReadableScopes {
        realms: vec![(realm("guild"), None)],
        private_chats: vec![(chat("den"), Some(at(100)))],
        ..ReadableScopes::default()
    };
    ReadScope::in_place(persona(who), &place, &reach)
}

/// Returns each kind of scope twice, so that the suites catch a filter that compares only part of a scope. The suites
/// store a document for each under its number at second 50, and another one under the number plus 10 at second 150.
pub(super) fn scopes() -> Vec<(u64, Scope)> {
    vec![
        (1, Scope::Dm(person("ann"))),
        (2, Scope::Dm(person("ben"))),
        (3, Scope::Chat(chat("den"))),
        (4, Scope::Chat(chat("ann"))),
        (5, Scope::Realm(realm("guild"))),
        (6, Scope::Realm(realm("ann"))),
        (7, Scope::Global),
    ]
}

/// Returns read scopes with the ids that each may see. The ids are those of [`scopes`] for `azera`, and the same plus
/// 100 for `areza`.
pub(super) fn visible() -> Vec<(&'static str, ReadScope, i64, Vec<u64>)> {
    vec![
        ("a public chat", public("azera", "guild", None), 200, vec![5, 7, 15, 17]),
        ("a public chat of another persona", public("areza", "guild", None), 200, vec![105, 107, 115, 117]),
        ("a public chat with newcomers", public("azera", "guild", Some(100)), 200, vec![7, 15, 17]),
        ("a newcomer at that very second", public("azera", "guild", Some(150)), 200, vec![7, 15, 17]),
        ("a public chat at second 50", public("azera", "guild", None), 50, vec![5, 7]),
        ("a public chat at second 49", public("azera", "guild", None), 49, vec![]),
        ("a DM", dm("azera", "ann"), 200, vec![1, 5, 7, 11, 13, 15, 17]),
        ("a DM of somebody whose id is also a chat's", dm("azera", "den"), 200, vec![5, 7, 13, 15, 17]),
        ("a realm nobody spoke in", public("azera", "void", None), 200, vec![7, 17]),
        ("a persona nobody spoke to", public("nobody", "guild", None), 200, vec![]),
    ]
}
