/// The command that a reaction to a reply stands for: an emoji, with a variation selector behind it or without.
pub fn command_of(key: &str) -> Option<&'static str> {
    // Clients put a variation selector behind an emoji, or do not.
    let key = key.trim_end_matches(['\u{fe0f}', '\u{fe0e}']);
    Some(match key {
        "🔁" | "🔄" => "/regenerate",
        "⬅" | "◀" | "👈" => "/swipe previous",
        "➡" | "▶" | "👉" => "/swipe next",
        "🗑" => "/forget",
        "❓" | "❔" => "/why",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_a_variation_selector_or_without() {
        assert_eq!(command_of("🗑️"), Some("/forget"));
        assert_eq!(command_of("🗑"), Some("/forget"));
        assert_eq!(command_of("👍"), None);
    }
}
