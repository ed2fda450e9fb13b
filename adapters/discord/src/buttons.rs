//! Buttons below replies. The id of a button says which part of which reply the message is. This is stored at Discord
//! and not here, so that it works for messages that are years old, and for a bot that lost its disk.

use serenity::all::{ActionRowComponent, ButtonKind, ButtonStyle, CreateActionRow, CreateButton, Message};

use crate::id::{ReplyKey, Spot};

/// Prefix of a button's id.
const PREFIX: &str = "azera";

/// A part of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartId {
    pub(crate) reply: ReplyKey,
    /// Number of the part, from 0.
    pub(crate) part: usize,
}

impl PartId {
    /// Returns the id of a button of this message, with its action.
    fn custom_id(self, verb: &str) -> String {
        format!("{PREFIX}.{}.{}.{}.{verb}", self.reply.spot, self.reply.number, self.part)
    }

    /// Parses a button's id into the part of the reply and the action.
    pub(crate) fn read(custom_id: &str) -> Option<(Self, &str)> {
        let mut fields = custom_id.splitn(5, '.');
        if fields.next() != Some(PREFIX) {
            return None;
        }
        let spot = Spot::read(fields.next()?)?;
        let number = fields.next()?.parse().ok()?;
        let part = fields.next()?.parse().ok()?;
        Some((Self { reply: ReplyKey { spot, number }, part }, fields.next()?))
    }

    /// Returns the part of a reply that a message of the bot shows, from its buttons.
    pub(crate) fn of(message: &Message) -> Option<Self> {
        let buttons = message.components.iter().flat_map(|row| &row.components);
        let marked = buttons.filter_map(|component| match component {
            ActionRowComponent::Button(button) => match &button.data {
                ButtonKind::NonLink { custom_id, .. } => Some(custom_id),
                _ => None,
            },
            _ => None,
        });
        marked.filter_map(|id| Self::read(id)).map(|(mark, _)| mark).next()
    }

    /// Returns the button of a part that is being generated: a placeholder, or for a picture the one that takes it back.
    /// Of all posts, only pictures are shown while they are made.
    pub(crate) fn making(self) -> Vec<CreateActionRow> {
        let button = match self.reply.spot {
            Spot::Post(_) => CreateButton::new(self.custom_id(CANCEL.verb)).label(CANCEL.label),
            Spot::Answers(_) => CreateButton::new(self.custom_id("making")).label("\u{2026}").disabled(true),
        };
        vec![CreateActionRow::Buttons(vec![button.style(ButtonStyle::Secondary)])]
    }

    /// Returns the buttons of this part out of `parts`: the page number, and below the last part the actions. A message
    /// with a picture has those of pictures.
    pub(crate) fn buttons(self, parts: usize, shown: Shown) -> Vec<CreateActionRow> {
        let button = |verb: &str, label: &str| {
            CreateButton::new(self.custom_id(verb)).label(label).style(ButtonStyle::Secondary)
        };
        let buttons = if self.part + 1 < parts {
            vec![button("page", &format!("{}/{parts}", self.part + 1)).disabled(true)]
        } else {
            let below: &[Kind] = match (shown, self.reply.spot) {
                (Shown::Picture { can_upscale: true }, _) => &[Kind::Picture, Kind::Upscalable],
                (Shown::Picture { can_upscale: false }, _) => &[Kind::Picture],
                (Shown::Text, Spot::Post(_)) => &[Kind::Post],
                (Shown::Text, Spot::Answers(_)) => &[Kind::Reply],
            };
            let actions = ACTIONS.iter().filter(|action| action.below.iter().any(|kind| below.contains(kind)));
            actions.map(|action| button(action.verb, action.label)).collect()
        };
        vec![CreateActionRow::Buttons(buttons)]
    }
}

/// An action of a button.
pub(crate) struct Action {
    verb: &'static str,
    label: &'static str,
    /// The command line that does the same.
    pub(crate) line: &'static str,
    /// The messages that have it. Posts have no alternatives.
    below: &'static [Kind],
}

/// What a message of the bot shows besides its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Nothing.
    Text,
    /// A picture.
    Picture {
        /// Whether it can be drawn larger.
        can_upscale: bool,
    },
}

/// A kind of messages with buttons of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reply,
    Post,
    Picture,
    /// A picture that can be drawn larger.
    Upscalable,
}

/// The action on a picture that is being drawn.
const CANCEL: Action = Action { verb: "cancel", label: "Cancel", line: "/picture cancel", below: &[] };

/// Returns the action of a button.
pub(crate) fn action_of(verb: &str) -> Option<&'static Action> {
    ACTIONS.iter().chain([&CANCEL]).find(|action| action.verb == verb)
}

/// The actions on a reply.
const ACTIONS: [Action; 10] = [
    Action { verb: "again", label: "Again", line: "/regenerate", below: &[Kind::Reply] },
    Action { verb: "previous", label: "\u{25c0}", line: "/swipe previous", below: &[Kind::Reply] },
    Action { verb: "next", label: "\u{25b6}", line: "/swipe next", below: &[Kind::Reply] },
    Action { verb: "why", label: "Why?", line: "/why", below: &[Kind::Reply, Kind::Post] },
    Action { verb: "forget", label: "Forget", line: "/forget", below: &[Kind::Reply, Kind::Post] },
    Action { verb: "reroll", label: "Again", line: "/picture again", below: &[Kind::Picture] },
    Action { verb: "vary", label: "Variation", line: "/picture vary", below: &[Kind::Picture] },
    Action { verb: "upscale", label: "Upscale", line: "/picture upscale", below: &[Kind::Upscalable] },
    Action { verb: "edit", label: "Edit", line: "/picture edit", below: &[Kind::Picture] },
    Action { verb: "delete", label: "Delete", line: "/picture delete", below: &[Kind::Picture] },
];

#[cfg(test)]
mod tests {
    use serenity::all::MessageId;

    use super::*;

    #[test]
    fn a_button_id_is_parsed_as_it_was_written() {
        #[track_caller]
        fn check(spot: Spot, number: u32) {
            let mark = PartId { reply: ReplyKey { spot, number }, part: usize::MAX };
            let id = mark.custom_id("previous");
            assert!(id.len() <= 100, "Discord accepts 100 characters: {id}");
            assert_eq!(PartId::read(&id), Some((mark, "previous")));
        }
        check(Spot::Answers(MessageId::new(u64::MAX)), u32::MAX);
        check(Spot::Post(u64::MAX), 0);
    }

    #[test]
    fn ids_of_other_buttons_are_ignored() {
        for id in ["", "azera", "azera.0.0.0.why", "azera.x.0.0.why", "azera.1.0.0", "other.1.0.0.why"] {
            assert_eq!(PartId::read(id), None, "{id}");
        }
    }
}
