/// Returns true for a thumb up, and false for a thumb down; `None` for any other reaction.
pub fn thumb(key: &str) -> Option<bool> {
    // Some clients add a variation selector or the colour of a skin.
    match key.trim_end_matches(|c| matches!(c, '\u{fe0e}' | '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}')) {
        "👍" => Some(true),
        "👎" => Some(false),
        _ => None,
    }
}

/// Returns the command that a thumb below a reply stands for. Its answer is shown to nobody. `reaction` names the thumb on its
/// platform, so that [`InboundEvent::ReactionsRemoved`](crate::InboundEvent::ReactionsRemoved) takes back this one alone.
pub fn thumb_command(is_up: bool, reaction: &str) -> String {
    let rating = if is_up { "helpful" } else { "unhelpful" };
    format!("/memory rate reply {rating} by {reaction}")
}

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
        assert_eq!(["👍🏽", "👎\u{fe0f}", "🗑️"].map(thumb), [Some(true), Some(false), None]);
        assert!(takes_back("❌") && takes_back("✖️") && !takes_back("👍"));
        assert_eq!(command_of("❌"), None, "it takes back what is being made, and nothing that is there");
    }
}
