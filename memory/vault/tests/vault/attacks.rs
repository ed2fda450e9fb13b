//! Changed, cut, moved and mixed bytes.

use azera_memory_vault::{Error, Masters, Owner, Vault};

use crate::{at, filled, name, person, secret, value};

fn is_refused(bytes: &[u8], masters: &Masters) -> bool {
    Vault::open(bytes, Owner::Operator, masters).is_err()
}

#[test]
fn no_bit_of_a_sealed_vault_can_be_changed() {
    let masters = Masters::generate().unwrap();
    let sealed = filled(Owner::Operator, &[("a", "heliotrope"), ("b", "quagmire")]).seal(&masters).unwrap();
    for place in 0..sealed.len() {
        for bit in 0..8 {
            let mut changed = sealed.clone();
            changed[place] ^= 1 << bit;
            assert!(is_refused(&changed, &masters), "bit {bit} of byte {place}");
        }
    }
    assert!(!is_refused(&sealed, &masters));
}

#[test]
fn a_cut_or_longer_vault_is_refused() {
    let masters = Masters::generate().unwrap();
    let sealed = filled(Owner::Operator, &[("a", "heliotrope")]).seal(&masters).unwrap();
    for length in 0..sealed.len() {
        assert!(is_refused(&sealed[..length], &masters), "{length} bytes");
    }
    for more in [&b"\0"[..], &sealed] {
        assert!(is_refused(&[&sealed, more].concat(), &masters));
    }
}

#[test]
fn sealed_values_cannot_be_swapped_or_replaced_by_older_ones() {
    let masters = Masters::generate().unwrap();
    let mut vault = filled(Owner::Operator, &[("a", "heliotrope"), ("b", "greengages")]);
    let sealed = vault.seal(&masters).unwrap();
    // A nonce, ten bytes and a tag.
    let size = 12 + 10 + 16;
    let (rest, values) = sealed.split_at(sealed.len() - 2 * size);
    let (first, second) = values.split_at(size);
    assert!(is_refused(&[rest, second, first].concat(), &masters), "swapped");
    assert!(is_refused(&[rest, first, first].concat(), &masters), "doubled");
    vault.set(name("a"), &secret("tangerines"), at(5)).unwrap();
    let newer = vault.seal(&masters).unwrap();
    let (rest, _) = newer.split_at(newer.len() - 2 * size);
    assert!(is_refused(&[rest, values].concat(), &masters), "an older value in a newer vault");
}

#[test]
fn a_vault_opens_for_its_owner_alone() {
    let masters = Masters::generate().unwrap();
    let sealed = filled(person("ann"), &[("a", "heliotrope")]).seal(&masters).unwrap();
    assert_eq!(value(&Vault::open(&sealed, person("ann"), &masters).unwrap(), "a").as_deref(), Some("heliotrope"));
    for other in [person("bob"), Owner::Operator, person("an"), person("person ann")] {
        assert!(matches!(Vault::open(&sealed, other, &masters), Err(Error::Damaged(_))));
    }
}

#[test]
fn another_master_is_named_in_a_clear_error() {
    let (masters, others) = (Masters::generate().unwrap(), Masters::generate().unwrap());
    let sealed = filled(Owner::Operator, &[("a", "heliotrope")]).seal(&masters).unwrap();
    let error = Vault::open(&sealed, Owner::Operator, &others).unwrap_err();
    let says = error.to_string();
    assert!(matches!(error, Error::WrongMaster(id) if id == masters.current_id()), "{says}");
    assert!(says.contains(&masters.current_id().to_string()) && says.contains("nothing was changed"), "{says}");
    assert!(!is_refused(&sealed, &masters));
}
