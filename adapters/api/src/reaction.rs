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

/// The command that takes back the picture whose progress a message shows.
pub const TAKE_BACK: &str = "/picture cancel";

/// Returns true for a reaction that means [`TAKE_BACK`], below the progress of a picture.
pub fn takes_back(key: &str) -> bool {
    matches!(key.trim_end_matches(['\u{fe0f}', '\u{fe0e}']), "❌" | "✖" | "🚫")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variation_selector_is_ignored() {
        assert_eq!(command_of("🗑️"), Some("/forget"));
        assert_eq!(command_of("🗑"), Some("/forget"));
        assert_eq!(command_of("👍"), None);
        assert!(takes_back("❌") && takes_back("✖️") && !takes_back("👍"));
        assert_eq!(command_of("❌"), None, "it takes back what is being made, and nothing that is there");
    }
}
