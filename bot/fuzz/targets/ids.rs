//! Ids, scopes and texts: an accepted one prints as it was read, and a scope never parses as another one.
#![no_main]

use azera_types::{ChatId, MAX_TEXT_BYTES, MemoryId, Scope, Text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(scope) = text.parse::<Scope>() {
        assert_eq!(scope.to_string(), text);
    }
    if let Ok(id) = ChatId::new(text) {
        assert!(!id.as_str().contains(char::is_control));
        let scope = Scope::Chat(id);
        assert_eq!(scope.to_string().parse::<Scope>(), Ok(scope));
    }
    if let Ok(id) = text.parse::<MemoryId>() {
        assert_eq!(id.to_string().parse::<MemoryId>().ok(), Some(id));
    }
    let retained = Text::new(text);
    assert!(retained.len() <= MAX_TEXT_BYTES && !retained.contains('\0'));
});
