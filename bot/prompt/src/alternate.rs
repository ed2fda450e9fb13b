//! Turns that alternate, for templates that accept no others.

use azera_model_api::{ChatMessage, Role};

/// The person's turn between two turns of the persona, whose own words are not shown any more.
const NOTHING: &str = "(...)";

/// Joins neighbouring turns of the person after the first `shared` messages, which stay as they are. Between two turns
/// of the persona, the person gets an empty one.
pub(crate) fn alternate(messages: Vec<ChatMessage>, shared: usize) -> Vec<ChatMessage> {
    let mut out: Vec<ChatMessage> = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        let after_shared = index > shared;
        match out.last_mut() {
            Some(last) if after_shared && last.role == Role::User && message.role == Role::User => {
                last.content.push_str("\n\n");
                last.content.push_str(&message.content);
            }
            Some(last) if index >= shared && last.role != Role::User && message.role == Role::Assistant => {
                out.push(ChatMessage::new(Role::User, NOTHING));
                out.push(message);
            }
            _ => out.push(message),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_alternate_and_shared_ones_stay() {
        let message = |role: Role, text: &str| ChatMessage::new(role, text);
        let messages = vec![
            message(Role::System, "s"),
            message(Role::User, "u"),
            message(Role::Assistant, "a"),
            message(Role::Assistant, "b"),
            message(Role::User, "c"),
            message(Role::User, "d"),
        ];
        let shown: Vec<String> = alternate(messages, 3)
            .iter()
            .map(|message| format!("{}: {}", message.role.as_str(), message.content))
            .collect();
        assert_eq!(shown, ["system: s", "user: u", "assistant: a", "user: (...)", "assistant: b", "user: c\n\nd"]);
    }
}
