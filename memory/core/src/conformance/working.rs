use std::time::Duration;

use super::place::at;
use crate::Working;

/// Checks every requirement of [`Working`] except sweeping: see [`sweeping`].
///
/// # Panics
///
/// Panics if the working memory breaks one.
pub fn working<W: Working, O: FnMut() -> W>(mut fresh: impl FnMut() -> O) {
    let mut open = fresh();
    let working = open();
    let get = |key: &str, second: i64| working.get(key, at(second)).expect("a read");
    let put = |key: &str, value: &[u8], life: u64, second: i64| {
        working.put(key, value, Duration::from_secs(life), at(second)).expect("a write");
    };

    assert_eq!(get("a", 0), None, "a key that was never written");
    put("a", b"1", 10, 0);
    assert_eq!(get("a", 9), Some(b"1".to_vec()), "a value before its expiry");
    assert_eq!(get("a", 10), None, "a value at its expiry");
    put("a", b"2", 10, 5);
    assert_eq!(get("a", 14), Some(b"2".to_vec()), "a second write replaces the value and its expiry");
    put("a", b"", 100, 5);
    assert_eq!(get("a", 14), Some(Vec::new()), "an empty value is a value");

    put("b", b"short", 1, 5);
    put("c", b"shorter", 0, 5);
    assert_eq!(get("c", 5), None, "a value with a lifetime of zero");
    assert!(working.sweep(at(6)).expect("a sweep") <= 2, "number of values removed by a sweep");
    assert_eq!(get("a", 6), Some(Vec::new()), "a sweep removed a live value");

    working.remove("a").expect("a removal");
    working.remove("never written").expect("a removal of nothing");
    assert_eq!(get("a", 6), None, "a removed value");

    put("é\u{1f}", &vec![3; 100_000], 100, 0);
    put("d", b"1", 100, 0);
    working.clear().expect("a clearing");
    assert_eq!(get("d", 1), None, "a cleared value");
    put("d", b"2", 100, 0);
    assert_eq!(get("d", 1), Some(b"2".to_vec()), "a value written after clearing");
    put("never", b"ends", u64::MAX, 0);
    assert_eq!(get("never", 1_000_000_000), Some(b"ends".to_vec()), "a value with a very long lifetime");
}

/// Checks that a sweep removes expired values. Servers that expire values on their own need not pass this.
///
/// # Panics
///
/// Panics if the sweep leaves an expired value or removes a live one.
pub fn sweeping(working: &impl Working) {
    for (key, life) in [("lives", 100), ("ended", 1), ("never lived", 0)] {
        working.put(key, b"1", Duration::from_secs(life), at(5)).expect("a write");
    }
    assert_eq!(working.sweep(at(6)).expect("a sweep"), 2, "number of values removed by a sweep");
    assert_eq!(working.sweep(at(6)).expect("a sweep"), 0, "number of values removed by a second sweep");
    assert_eq!(working.get("lives", at(6)).expect("a read"), Some(b"1".to_vec()), "a sweep removed a live value");
}
