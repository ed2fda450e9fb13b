//! What the other projects of a person tell a session: commands that worked nearly always, preferences, and the
//! conventions that three of them or more have in common.
//!
//! A coding assistant sends what it is told to its maker, so this fails closed. A project tells others only where the
//! configuration shares it. Nothing is told that names a place on the machine or the network, that looks like a secret or
//! speaks of one, or that names a project which is not shared.

use std::cmp::Reverse;
use std::collections::HashSet;

use azera_config::Projects;
use azera_memory::{Error, Memory, MemoryRow, Procedure, ReadScope, project_name, project_owner};
use azera_types::{PersonId, RealmId, Scope, TimeZone, folded_project_name};

use crate::project_context::{MARKED, one_line, steps_of};
use crate::zones::day;

/// Every project, in the setting `projects.shared`.
const EVERY: &str = "*";

/// Most commands, and most conventions and preferences, that are told.
const PROCEDURES: usize = 5;
const PREFERENCES: usize = 8;

/// The kinds of memory that are told.
const PREFERENCE: &str = "preference";
const PATTERN: &str = "pattern";

/// Projects in which something was said, from which on it comes first, with their number.
const IN_MANY: usize = 3;

/// The least bound of a procedure that is told elsewhere, as of six tries that all worked. In its own project half as many
/// are enough.
const SURE: f64 = 0.6;

/// Longest text that is told. A longer one is not cut: its rest may say for what it holds.
const MAX_CHARS: usize = 300;

/// Words that speak of secrets, in English and German, and parts of such words.
const SECRETS: &[&str] = &["intern", "internal", "key", "keys", "nda", "pin", "privat", "private"];
const PARTS_OF_SECRETS: &[&str] = &[
    "apikey",
    "confidential",
    "credential",
    "geheim",
    "kennwort",
    "passphrase",
    "passwor",
    "passwör",
    "schlüssel",
    "secret",
    "token",
    "vertraulich",
];

/// Characters that paths, addresses and what was left out have.
const OF_PLACES: &[char] = &['/', '\\', '~', '@', '…', '$'];

/// Programs whose next word is a machine.
const OF_MACHINES: &[&str] = &["mosh", "ping", "scp", "sftp", "ssh", "telnet"];

/// The shortest word with letters and digits that may be a secret.
const MIN_SECRET_CHARS: usize = 12;

/// A convention or preference that one or more projects tell.
struct Convention {
    words: String,
    is_preference: bool,
    projects: HashSet<Scope>,
    newest: MemoryRow,
}

impl Convention {
    /// Returns what the newest memory of it tells.
    fn new(words: String, newest: MemoryRow) -> Self {
        let mut convention = Self { words, is_preference: false, projects: HashSet::new(), newest: newest.clone() };
        convention.note(&newest);
        convention
    }

    /// Notes a memory that says it.
    fn note(&mut self, row: &MemoryRow) {
        self.projects.insert(row.scope.clone());
        self.is_preference |= row.salience.as_ref().is_some_and(|mark| mark.kind.as_str() == PREFERENCE);
    }

    /// Returns the number of projects if it is that of many, otherwise 0.
    fn in_many(&self) -> usize {
        Some(self.projects.len()).filter(|projects| *projects >= IN_MANY).unwrap_or(0)
    }

    fn line(&self, zone: &TimeZone) -> String {
        let row = &self.newest;
        let (name, text, day, id) = (name_of(&row.scope), one_line(row.gist(), MAX_CHARS), day(row.at, zone), row.id);
        let many = match self.in_many() {
            0 => String::new(),
            projects => format!(", in {projects} projects"),
        };
        format!("- {name}: {text} ({day}{many}, {id})")
    }
}

/// What a session may hear of its person's other projects.
pub struct Elsewhere {
    /// `None` if no other project tells anything.
    read_scope: Option<ReadScope>,
    /// Names that must not be told: those of the person's projects that are not shared, and of private ones.
    unnamed: Vec<String>,
}

impl Elsewhere {
    /// Returns what a session in the project `own` may hear. `read_scope` says which projects its person may read there.
    pub fn new(projects: &Projects, read_scope: &ReadScope, own: &RealmId) -> Self {
        let (Some(owner), Some(name)) = (project_owner(own), project_name(own)) else { return Self::nothing() };
        let (shared, private) = (folded_names(&projects.shared), folded_names(&projects.private));
        let is_private = |name: &str| private.iter().any(|private| private == name);
        if is_private(name) {
            return Self::nothing();
        }
        let is_shared = |name: &str| shared.iter().any(|shared| shared == EVERY || shared == name) && !is_private(name);
        // Only the same account's: another account may be linked, and its projects are not this machine's.
        let tells = |realm: &RealmId| {
            project_owner(realm).as_ref() == Some(&owner) && project_name(realm).is_some_and(is_shared)
        };
        let others =
            read_scope.narrowed_to(|scope| matches!(scope, Scope::Realm(realm) if realm != own && tells(realm)));
        let unshared = read_scope.grants().iter().filter_map(|grant| match &grant.scope {
            Scope::Realm(realm) if !tells(realm) => project_name(realm),
            _ => None,
        });
        let unshared = unshared.filter(|unshared| *unshared != name).map(str::to_owned);
        let unnamed = unshared.chain(private.iter().cloned()).collect();
        Self { read_scope: others, unnamed }
    }

    /// Returns that a session hears nothing.
    pub fn nothing() -> Self {
        Self { read_scope: None, unnamed: Vec::new() }
    }

    /// Returns the lines to tell, the commands first, in the days of `zone`. What the project itself knows is left out.
    pub(crate) fn lines(
        &self,
        memory: &Memory,
        person: &PersonId,
        own: &[Procedure],
        own_marked: &[MemoryRow],
        zone: &TimeZone,
    ) -> Result<Vec<String>, Error> {
        let Some(read_scope) = &self.read_scope else { return Ok(Vec::new()) };
        let mut lines = self.commands(memory, read_scope, own, zone)?;
        lines.extend(self.conventions(memory, read_scope, person, own_marked, zone)?);
        Ok(lines)
    }

    fn commands(
        &self,
        memory: &Memory,
        read_scope: &ReadScope,
        own: &[Procedure],
        zone: &TimeZone,
    ) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        let mut told: Vec<String> = own.iter().map(steps_of).collect();
        for one in memory.sessions().learnt(read_scope)?.procedures {
            let steps = steps_of(&one);
            if lines.len() >= PROCEDURES {
                break;
            }
            if one.is_proven && one.sure >= SURE && self.is_general(&steps) && !told.contains(&steps) {
                let (name, worked, tries, last) = (name_of(&one.scope), one.worked, one.tries, day(one.span.1, zone));
                lines.push(format!("- {name}: {steps} (worked {worked} of {tries} times, last {last})"));
                told.push(steps);
            }
        }
        Ok(lines)
    }

    /// Returns the lines of conventions and preferences: first those of many projects, then the others in their order. A
    /// habit that was told in few projects stays there: it may tell of somebody's life and not of how they work.
    fn conventions(
        &self,
        memory: &Memory,
        read_scope: &ReadScope,
        person: &PersonId,
        own: &[MemoryRow],
        zone: &TimeZone,
    ) -> Result<Vec<String>, Error> {
        let own: HashSet<String> = own.iter().map(|row| folded(row.gist())).collect();
        let mut marked = Vec::new();
        // Each project has its share of the memories that are looked at, however much was marked in another one.
        for grant in read_scope.grants() {
            let project = read_scope.narrowed_to(|scope| *scope == grant.scope);
            let of_project = project.map(|project| memory.memories().salient(&project, person, MARKED)).transpose()?;
            marked.extend(of_project.unwrap_or_default());
        }
        marked.sort_by_key(|row| Reverse(row.id));
        let mut found: Vec<Convention> = Vec::new();
        for row in marked {
            let is_told = row.salience.as_ref().is_some_and(|mark| [PREFERENCE, PATTERN].contains(&mark.kind.as_str()));
            if !is_told || !self.is_general(row.gist()) || memory.memories().replaced(read_scope, &row)?.is_some() {
                continue;
            }
            let words = folded(row.gist());
            match found.iter_mut().find(|convention| convention.words == words) {
                Some(convention) => convention.note(&row),
                None if own.contains(&words) => {}
                None => found.push(Convention::new(words, row)),
            }
        }
        found.retain(|convention| convention.is_preference || convention.in_many() > 0);
        found.sort_by_key(|convention| Reverse(convention.in_many()));
        Ok(found.iter().take(PREFERENCES).map(|convention| convention.line(zone)).collect())
    }

    /// Returns true if a text holds for other projects and tells nobody where something is, how to get in, or which projects
    /// there are.
    fn is_general(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let words = || text.split(|c: char| !c.is_alphanumeric());
        let is_like_a_secret = |word: &str| {
            word.chars().count() >= MIN_SECRET_CHARS
                && word.chars().any(|c| c.is_ascii_digit())
                && word.chars().any(char::is_alphabetic)
        };
        text.chars().count() <= MAX_CHARS
            && !text.contains(OF_PLACES)
            && !words().any(|word| SECRETS.contains(&word) || PARTS_OF_SECRETS.iter().any(|part| word.contains(part)))
            && !words().any(is_like_a_secret)
            && !text.split_whitespace().any(is_of_a_machine)
            && !self.unnamed.iter().any(|name| names(&text, name))
    }
}

fn folded_names(names: &[String]) -> Vec<String> {
    names.iter().map(|name| folded_project_name(name)).collect()
}

/// Returns true if a text has a name as whole words.
fn names(text: &str, name: &str) -> bool {
    let is_outside = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(name).any(|(at, found)| {
        let (before, after) = (text.get(..at), text.get(at + found.len()..));
        is_outside(before.and_then(|before| before.chars().next_back()))
            && is_outside(after.and_then(|after| after.chars().next()))
    })
}

/// Returns true if a word, in small letters, may be the name, address or port of a machine, or goes before one, or is a
/// variable of Windows. Names of files look like names of machines, so they count, too.
fn is_of_a_machine(word: &str) -> bool {
    let chars: Vec<char> = word.chars().collect();
    let is_split = |by: char, after: fn(char) -> bool| {
        chars.windows(3).any(|three| matches!(three, [a, b, c] if a.is_alphanumeric() && *b == by && after(*c)))
    };
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-');
    is_split('.', char::is_alphanumeric)
        || is_split(':', |c| c.is_ascii_digit())
        || word.contains("::")
        || word.matches(':').count() > 1
        || chars.windows(2).any(|two| matches!(two, ['%', b] if b.is_alphanumeric() || *b == '_'))
        || bare.starts_with("-h")
        || bare.starts_with("--host")
        || OF_MACHINES.contains(&bare)
}

fn name_of(scope: &Scope) -> &str {
    match scope {
        Scope::Realm(realm) => project_name(realm).unwrap_or_default(),
        _ => "",
    }
}

/// Returns a text without what does not change its meaning.
fn folded(text: &str) -> String {
    let words: Vec<String> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use azera_types::{ChatId, PersonaId, Place, PlaceKind, ReadableScopes};

    use super::*;

    fn realm(id: &str) -> RealmId {
        RealmId::new(id).unwrap()
    }

    /// Returns the projects that tell Ann's session in the project `own`.
    fn tellers(shared: &[&str], private: &[&str], own: &str) -> Vec<String> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let projects = Projects { shared: names(shared), private: names(private) };
        let person = PersonId::new("console:ann").unwrap();
        let mine = ["boat", "gate", "acme"].map(|name| format!("project:console:ann:{name}"));
        let realms = mine.iter().map(String::as_str).chain(["project:console:ben:boat", "local"]);
        let reach =
            ReadableScopes { realms: realms.map(|id| (realm(id), None)).collect(), ..ReadableScopes::default() };
        let place = Place { chat: ChatId::new("console:ann:1").unwrap(), kind: PlaceKind::Dm(person), since: None };
        let all = ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &reach);
        let own = realm(&format!("project:console:ann:{own}"));
        let heard = Elsewhere::new(&projects, &all, &own).read_scope;
        let grants = heard.iter().flat_map(|heard| heard.grants());
        grants.map(|grant| grant.scope.to_string()).collect()
    }

    #[test]
    fn a_project_tells_others_of_its_person_only_where_it_is_shared_and_not_private() {
        let (boat, gate, acme) =
            ("realm:project:console:ann:boat", "realm:project:console:ann:gate", "realm:project:console:ann:acme");
        assert_eq!(tellers(&[], &[], "boat"), [""; 0], "nothing is told unless somebody allows it");
        assert_eq!(tellers(&[" Gate"], &[], "boat"), [gate]);
        assert_eq!(tellers(&["gate"], &[], "gate"), [""; 0]);
        assert_eq!(tellers(&["*"], &[], "boat"), [gate, acme]);
        assert_eq!(tellers(&["*", "acme"], &["Acme"], "gate"), [boat], "private has the last word");
        assert_eq!(tellers(&["*"], &["acme"], "acme"), [""; 0], "and hears nothing");
    }

    #[test]
    fn what_is_told_elsewhere_names_no_place_no_secret_and_no_other_project() {
        let elsewhere = Elsewhere { read_scope: None, unnamed: vec!["acme".to_owned(), "the gate".to_owned()] };
        for text in [
            "I prefer short commits with one reason each.",
            "`cargo clippy --all-targets`, then `cargo test`",
            "Ich mag Tests, die Sätze sind.",
            "I like acmeism.",
            "I prefer reviews: short ones, and 80 % of the code in tests.",
            "`npm run test:unit --help`",
        ] {
            assert!(elsewhere.is_general(text), "{text}");
        }
        for text in [
            "I prefer that builds go to /srv/build.",
            "I like C:\\work most.",
            "I prefer https://wiki.example.org to mails.",
            "Write to ann@example.org, I prefer that.",
            "`deploy … --now`",
            "I prefer to keep the password in the vault.",
            "I prefer Passwörter mit 20 Zeichen.",
            "I prefer API keys in files.",
            "Das ist vertraulich.",
            "I prefer tr0ub4dor3xkcd9 for that.",
            "I prefer how Acme does it.",
            "I prefer the gate to the boat.",
            "echo $HOME",
            "I prefer db7.example.org to the others.",
            "`psql --port=5432 10.0.0.5`",
            "I prefer build-host:5432.",
            "`psql -h db7`",
            "psql -hdb7",
            "`redis-cli --host=cache`, then `cargo test`",
            "redis-cli --host cache",
            "I prefer fe80::1.",
            "`ping [2001:db8:a:b:c:d:e:f]`",
            "echo %USERPROFILE%",
            "`ssh buildbox make`",
            "I prefer notes in plans.txt.",
            &"I prefer long texts. ".repeat(20),
        ] {
            assert!(!elsewhere.is_general(text), "{text}");
        }
    }
}
