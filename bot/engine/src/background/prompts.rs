//! The prompts of background writings: Markdown files with placeholders.

use azera_affect::Mood;
use azera_model_api::{ChatMessage, Role};

pub(super) const DREAM: &str = include_str!("../../prompts/dream.md");

/// A diary entry about one conversation.
pub(super) const DIARY: &str = include_str!("../../prompts/diary.md");

/// A journal entry about a day.
pub(super) const REFLECTION: &str = include_str!("../../prompts/reflection.md");

/// Working notes about the other person.
pub(super) const NOTES_OTHER: &str = include_str!("../../prompts/notes_other.md");

/// Working notes about itself.
pub(super) const NOTES_SELF: &str = include_str!("../../prompts/notes_self.md");

/// A garden piece.
pub(super) const PIECE: &str = include_str!("../../prompts/piece.md");

/// A journal entry that reviews the week.
pub(super) const REVIEW: &str = include_str!("../../prompts/review.md");

/// A journal entry about failed training.
pub(super) const SETBACK: &str = include_str!("../../prompts/setback.md");

pub(super) const CHECK_IN: &str = include_str!("../../prompts/check_in.md");

/// A claim in somebody's statement, as JSON.
pub(super) const CLAIM: &str = include_str!("../../prompts/claim.md");

/// What is worth keeping in a conversation, as JSON.
pub(super) const EXTRACT: &str = include_str!("../../prompts/extract.md");

/// Values for the placeholders of a prompt.
#[derive(Clone, Default)]
pub(super) struct Filling<'a> {
    /// The persona's name.
    pub(super) persona: &'a str,
    /// The source lines.
    pub(super) lines: &'a str,
    /// The persona's mood, if it is known.
    pub(super) mood: Option<&'a str>,
    /// The person whom it is about or for.
    pub(super) other: &'a str,
}

/// What a persona writes in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WritingKind {
    /// A diary entry.
    Diary,
    /// A dream.
    Dream,
    /// A journal entry.
    Reflection,
    /// A garden piece.
    Piece,
    /// A check-in.
    CheckIn,
    /// Working notes about the other person.
    NotesOther,
    /// Working notes about itself.
    NotesSelf,
}

/// Returns the prompt for a writing. `said` holds speakers and texts; `mood` is `None` if the mood is calm; `other` is
/// the person whom it is about or for.
pub fn writing_prompt(
    what: WritingKind,
    persona: &str,
    said: &[(String, String)],
    mood: Option<Mood>,
    other: &str,
) -> Vec<ChatMessage> {
    let prompt = match what {
        WritingKind::Diary => DIARY,
        WritingKind::Dream => DREAM,
        WritingKind::Reflection => REFLECTION,
        WritingKind::Piece => PIECE,
        WritingKind::CheckIn => CHECK_IN,
        WritingKind::NotesOther => NOTES_OTHER,
        WritingKind::NotesSelf => NOTES_SELF,
    };
    let lines: Vec<String> = said.iter().map(|(who, text)| line(who, text)).collect();
    fill(prompt, &Filling { persona, lines: &lines.join("\n"), mood: mood.map(Mood::name), other })
}

/// Formats a statement as one line of a prompt.
pub(super) fn line(who: &str, text: &str) -> String {
    format!("- {who}: {text}")
}

/// Fills a prompt and splits it into messages. Each part begins with a line that names its role in brackets.
pub(super) fn fill(prompt: &str, filling: &Filling<'_>) -> Vec<ChatMessage> {
    let mood = filling.mood.map_or_else(String::new, |mood| format!(" Your mood: {mood}."));
    let mut messages: Vec<ChatMessage> = Vec::new();
    for line in prompt.lines() {
        let role = match line.trim() {
            "[system]" => Role::System,
            "[user]" => Role::User,
            "[assistant]" => Role::Assistant,
            _ => {
                if let Some(message) = messages.last_mut() {
                    message.content.push_str(line);
                    message.content.push('\n');
                }
                continue;
            }
        };
        messages.push(ChatMessage::new(role, ""));
    }
    for message in &mut messages {
        // People's words come last, so that placeholders in them are not filled.
        let text = message.content.trim().replace("{{persona}}", filling.persona).replace("{{mood}}", &mood);
        message.content = text.replace("{{other}}", filling.other).replace("{{lines}}", filling.lines);
    }
    messages
}

/// Returns the prompt's own text: its instructions and its example, without the message with the source lines.
pub(super) fn own_words(messages: &[ChatMessage]) -> String {
    let own = messages.len().saturating_sub(1);
    messages.iter().take(own).map(|message| format!("{}\n", message.content)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(prompt: &str) -> String {
        let filling = Filling {
            persona: "Azera",
            lines: "- Ann: the boat is called Petrichor {{mood}}\n- Bob: I bake",
            mood: Some("calm"),
            other: "Ann",
        };
        fill(prompt, &filling).iter().map(|it| format!("[{}] {}\n", it.role.as_str(), it.content)).collect()
    }

    #[test]
    fn the_prompts_match_their_snapshots() {
        insta::assert_snapshot!("dream", shown(DREAM));
        insta::assert_snapshot!("diary", shown(DIARY));
        insta::assert_snapshot!("reflection", shown(REFLECTION));
        insta::assert_snapshot!("notes_other", shown(NOTES_OTHER));
        insta::assert_snapshot!("notes_self", shown(NOTES_SELF));
        insta::assert_snapshot!("piece", shown(PIECE));
        insta::assert_snapshot!("review", shown(REVIEW));
        insta::assert_snapshot!("check_in", shown(CHECK_IN));
        insta::assert_snapshot!("setback", shown(SETBACK));
    }
}
