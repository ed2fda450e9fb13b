//! The vault through its public interface: what it keeps, what it refuses, and what survives damage and crashes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod attacks;
mod files;
mod rotations;

use azera_memory_vault::{EntryName, Masters, Owner, SecretText, Vault};
use azera_types::{PersonId, Timestamp};

fn name(text: &str) -> EntryName {
    text.parse().unwrap()
}

fn secret(text: &str) -> SecretText {
    SecretText::new(text).unwrap()
}

fn person(id: &str) -> Owner {
    Owner::Person(PersonId::new(id).unwrap())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Returns a vault with these entries.
fn filled(owner: Owner, entries: &[(&str, &str)]) -> Vault {
    let mut vault = Vault::new(owner).unwrap();
    for (second, (entry, value)) in entries.iter().enumerate() {
        vault.set(name(entry), &secret(value), at(second as i64)).unwrap();
    }
    vault
}

fn value(vault: &Vault, entry: &str) -> Option<String> {
    vault.get(&name(entry)).unwrap().map(|secret| secret.expose().to_owned())
}

#[test]
fn a_sealed_vault_opens_with_what_was_put_in() {
    let masters = Masters::generate().unwrap();
    let mut vault = filled(Owner::Operator, &[("discord", "heliotrope"), ("matrix", "quagmire")]);
    let sealed = vault.seal(&masters).unwrap();
    let mut opened = Vault::open(&sealed, Owner::Operator, &masters).unwrap();
    assert_eq!(value(&opened, "discord").as_deref(), Some("heliotrope"));
    assert_eq!(value(&opened, "Discord"), None, "case counts");
    assert!(opened.set(name("discord"), &secret("obsidian"), at(9)).unwrap(), "it replaces the value");
    assert!(!opened.set(name("web"), &secret("zeppelin"), at(10)).unwrap());
    assert!(opened.remove(&name("matrix")) && !opened.remove(&name("matrix")));
    let again = Vault::open(&opened.seal(&masters).unwrap(), Owner::Operator, &masters).unwrap();
    let listed: Vec<_> = again.list().into_iter().map(|entry| (entry.name.to_string(), entry.changed_at)).collect();
    assert_eq!(listed, [("discord".to_owned(), at(9)), ("web".to_owned(), at(10))]);
    assert_eq!(value(&again, "discord").as_deref(), Some("obsidian"));
}

#[test]
fn neither_the_sealed_bytes_nor_debug_show_names_or_values() {
    let masters = Masters::generate().unwrap();
    let mut vault = filled(person("ann"), &[("lighthouse-code", "heliotrope")]);
    let sealed = vault.seal(&masters).unwrap();
    for word in ["lighthouse", "heliotrope"] {
        assert!(!sealed.windows(word.len()).any(|part| part == word.as_bytes()), "{word}");
    }
    let shown = format!(
        "{vault:?} {:?} {:?} {masters:?} {:?}",
        secret("heliotrope"),
        vault.list(),
        SecretText::new("heliotrope".repeat(9_999)).unwrap_err()
    );
    for word in ["lighthouse", "heliotrope"] {
        assert!(!shown.contains(word), "{shown}");
    }
}

#[test]
fn sizes_and_numbers_have_limits() {
    assert!(SecretText::new("").is_err() && SecretText::new("x".repeat(16 * 1024 + 1)).is_err());
    for wrong in ["", "-a", ".a", "a b", "a/b", "ä", "a\n", &"x".repeat(65)] {
        assert!(wrong.parse::<EntryName>().is_err(), "{wrong:?}");
    }
    let mut many = Vault::new(Owner::Operator).unwrap();
    for number in 0..200 {
        many.set(name(&format!("entry-{number}")), &secret("x"), at(0)).unwrap();
    }
    let says = many.set(name("one-more"), &secret("x"), at(0)).unwrap_err().to_string();
    assert!(says.contains("full") && says.contains("200"), "{says}");
    assert!(many.set(name("entry-7"), &secret("y"), at(1)).unwrap(), "a value can still be replaced");
    let mut large = Vault::new(Owner::Operator).unwrap();
    let big = secret(&"x".repeat(16 * 1024));
    let fitted = (0..200).take_while(|number| large.set(name(&format!("entry-{number}")), &big, at(0)).is_ok()).count();
    assert_eq!(fitted, 63, "a megabyte");
    assert_eq!(large.list().len(), 63);
    assert!(large.set(name("entry-7"), &big, at(1)).unwrap(), "a value can be replaced by one as large");
}
