/// Returns the command that a reaction to a reply stands for. `key` is an emoji, with or without a variation selector.
pub fn command_of(key: &str) -> Option<&'static str> {
    // Some clients add a variation selector to an emoji.
    let key = key.trim_end_matches(['\u{fe0f}', '\u{fe0e}']);
    Some(match key {
        "🔁" | "🔄" => "/regenerate",
        "⬅" | "◀" | "👈" => "/swipe previous",
        "➡" | "▶" | "👉" => "/swipe next",
        "🗑" => "/forget",
        "❓" | "❔" => "/why",
        "🎲" => "/picture again",
        "🎨" => "/picture vary",
        "🔍" | "🔎" => "/picture upscale",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variation_selector_is_ignored() {
        assert_eq!(command_of("🗑️"), Some("/forget"));
        assert_eq!(command_of("🗑"), Some("/forget"));
        assert_eq!(command_of("👍"), None);
    }
}
