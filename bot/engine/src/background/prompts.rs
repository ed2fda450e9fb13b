//! The prompts of what is written between messages: files of the project, with a place for what they are about.

use azera_affect::Mood;
use azera_model_api::{ChatMessage, Role};

/// A dream.
pub(super) const DREAM: &str = include_str!("../../prompts/dream.md");

/// An entry of the diary, about one conversation.
pub(super) const DIARY: &str = include_str!("../../prompts/diary.md");

/// An entry of the journal, about a day.
pub(super) const REFLECTION: &str = include_str!("../../prompts/reflection.md");

/// Working notes about the other.
pub(super) const NOTES_OTHER: &str = include_str!("../../prompts/notes_other.md");

/// Working notes about itself.
pub(super) const NOTES_SELF: &str = include_str!("../../prompts/notes_self.md");

/// Something made up.
pub(super) const PIECE: &str = include_str!("../../prompts/piece.md");

/// An entry of the journal about how it is doing.
pub(super) const REVIEW: &str = include_str!("../../prompts/review.md");

/// An entry of the journal about something learnt that came to nothing.
pub(super) const SETBACK: &str = include_str!("../../prompts/setback.md");

/// A question to somebody who wants to be looked in on.
pub(super) const CHECK_IN: &str = include_str!("../../prompts/check_in.md");

/// What somebody says of one thing, as JSON.
pub(super) const CLAIM: &str = include_str!("../../prompts/claim.md");

/// What stands in the places of a prompt.
#[derive(Clone, Default)]
pub(super) struct Filling<'a> {
    /// The persona's name.
    pub(super) persona: &'a str,
    /// What it is about, a line each.
    pub(super) lines: &'a str,
    /// The persona's mood, if it is known.
    pub(super) mood: Option<&'a str>,
    /// Whom it is about or for.
    pub(super) other: &'a str,
}

/// What a persona writes between messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WritingKind {
    /// An entry of its diary.
    Diary,
    /// A dream.
    Dream,
    /// An entry of its journal.
    Reflection,
    /// Something made up.
    Piece,
    /// A question to somebody who wants to be looked in on.
    CheckIn,
    /// Notes about the other.
    NotesOther,
    /// Notes about itself.
    NotesSelf,
}

/// What the model is asked for it, for what was said by whom and in what mood, unless that is an even one; `other` is whom it is
/// about or for.
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

/// A line of what was said, as prompts show it.
pub(super) fn line(who: &str, text: &str) -> String {
    format!("- {who}: {text}")
}

/// A prompt as messages: each part begins with a line that names its role in brackets.
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
        // What people said comes last, so that no mark in it is taken for one of the prompt's.
        let text = message.content.trim().replace("{{persona}}", filling.persona).replace("{{mood}}", &mood);
        message.content = text.replace("{{other}}", filling.other).replace("{{lines}}", filling.lines);
    }
    messages
}

/// What a prompt says by itself: its instructions and its example, without what it is about.
pub(super) fn own_words(messages: &[ChatMessage]) -> String {
    let own = messages.len().saturating_sub(1);
    messages.iter().take(own).map(|message| format!("{}\n", message.content)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(prompt: &str) -> String {
        let filling = Filling {
            persona: "Engine",
            lines: "- Ann: the boat is called Petrichor {{mood}}\n- Bob: I bake",
            mood: Some("calm"),
            other: "Ann",
        };
        fill(prompt, &filling).iter().map(|it| format!("[{}] {}\n", it.role.as_str(), it.content)).collect()
    }

    #[test]
    fn what_the_model_is_asked() {
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
