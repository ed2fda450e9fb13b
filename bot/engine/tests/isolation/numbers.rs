//! Two tellings of a world are compared without the numbers of memories and messages.

/// What is looked up by the numbers of memories.
pub const BY_NUMBER: [&str; 5] = [
    "Memory::memories().get",
    "Memory::memories().may_be_replaced",
    "MemoryReader::memory",
    "MemoryReader::memories_by_id",
    "Memory::writings().written",
];

/// Removes the numbers of memories and messages from a text. They count up over all places, and by how much depends on
/// the order in which forgetting proceeds.
pub fn without_numbers(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let own = !result.ends_with(|c: char| c.is_alphanumeric());
        let mark = ["\"id\":", "\"seq\":", "\"number\":", "\"memory\":", "MemoryId(", "post~", "picture ", "- `", "m"]
            .into_iter()
            .find(|mark| own && rest.starts_with(mark));
        let (head, tail) = rest.split_at(mark.map_or(first.len_utf8(), str::len));
        result.push_str(head);
        rest = if mark.is_some() { tail.trim_start_matches(|c: char| c.is_ascii_digit()) } else { tail };
    }
    result
}

#[test]
fn numbers_are_left_out_and_secrets_are_not() {
    assert_eq!(
        without_numbers("`m12` zq3v \"id\":77,\"seq\":4 m1~r0 am5 post~9 [MemoryId(7)]"),
        "`m` zq3v \"id\":,\"seq\": m~r0 am5 post~ [MemoryId()]"
    );
}
