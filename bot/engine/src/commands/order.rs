//! `/tag` and `/group`: tags of chats, and groups of chats.

use std::collections::BTreeMap;

use azera_adapter::CommandAnswer;
use azera_memory::ChatChange;

use super::chat::{ListedChat, here};
use super::mind::may_configure_place;
use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;

/// Maximum number of characters in a tag or a group's name.
const MAX_CHARS: usize = 40;

/// Maximum number of tags of one chat.
const MAX_TAGS: usize = 20;

impl Commands {
    pub(super) async fn tag_command(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        let (verb, tag) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let tag = tag.trim().to_lowercase();
        match verb {
            "add" | "remove" if !fits(&tag) => {
                Ok(refused(format!("`/tag add TAG` or `/tag remove TAG`, with {MAX_CHARS} characters at most.")))
            }
            "add" | "remove" if !may_configure_place(at) => {
                Ok(refused("Several people use this chat, so only admins can change its tags.".into()))
            }
            "add" if at.chat.tags.len() >= MAX_TAGS => Ok(refused(format!("A chat has {MAX_TAGS} tags at most."))),
            "add" => {
                self.change_order(at, ChatChange::Tag(tag.clone(), true)).await?;
                Ok(done(format!("This chat is tagged `{tag}`. `/tag find {tag}` lists those that are.")))
            }
            "remove" => {
                self.change_order(at, ChatChange::Tag(tag.clone(), false)).await?;
                Ok(done(format!("This chat is not tagged `{tag}` any more.")))
            }
            "find" if !tag.is_empty() => {
                let found = self.chats_of(at, |chat| chat.tags.contains(&tag)).await?;
                Ok(done(match found.iter().collect::<Vec<_>>().as_slice() {
                    [] => format!("No chat that may be named here is tagged `{tag}`."),
                    found => format!("Tagged `{tag}`:\n{}", listed(at, found)),
                }))
            }
            "" | "list" => {
                let tags: Vec<String> = at.chat.tags.iter().map(|tag| format!("`{tag}`")).collect();
                Ok(done(match tags.as_slice() {
                    [] => "This chat has no tags; `/tag add TAG` gives it one.".into(),
                    tags => format!("This chat is tagged {}.", tags.join(", ")),
                }))
            }
            _ => Ok(refused("`/tag list`, `/tag find TAG`, `/tag add TAG` or `/tag remove TAG`.".into())),
        }
    }

    pub(super) async fn group_command(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        let (verb, name) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let name = name.trim().to_owned();
        match verb {
            "join" if !fits(&name) => Ok(refused(format!("`/group join NAME`, with {MAX_CHARS} characters at most."))),
            "join" | "leave" if !may_configure_place(at) => {
                Ok(refused("Several people use this chat, so only admins can choose its group.".into()))
            }
            "join" => {
                self.change_order(at, ChatChange::Group(Some(name.clone()))).await?;
                Ok(done(format!("This chat belongs to the group {name}. `/group list` shows what else does.")))
            }
            "leave" => {
                self.change_order(at, ChatChange::Group(None)).await?;
                Ok(done("This chat belongs to no group any more.".into()))
            }
            "" | "list" => {
                let chats = self.chats_of(at, |chat| chat.group.is_some()).await?;
                let mut groups: BTreeMap<&str, Vec<&ListedChat>> = BTreeMap::new();
                for chat in &chats {
                    if let Some(group) = &chat.row.group {
                        groups.entry(group).or_default().push(chat);
                    }
                }
                if groups.is_empty() {
                    return Ok(done(
                        "There are no groups that may be named here; `/group join NAME` makes one.".into(),
                    ));
                }
                let lists = groups.iter().map(|(group, chats)| format!("**{group}**\n{}", listed(at, chats)));
                Ok(done(lists.collect()))
            }
            _ => Ok(refused("`/group list`, `/group join NAME` or `/group leave`.".into())),
        }
    }

    pub(super) async fn change_order(&self, at: &CommandContext<'_>, change: ChatChange) -> Result<(), Error> {
        let chat = at.chat.id.clone();
        let changes_personas = matches!(change, ChatChange::Persona(_) | ChatChange::Invited(..));
        self.services.blocking(move |memory| memory.chats().change(&chat, change)).await?;
        if let Some(voice) = at.adapter.voice().filter(|_| changes_personas) {
            voice.personas_changed(&at.chat.id).await;
        }
        Ok(())
    }
}

fn fits(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= MAX_CHARS && !name.chars().any(char::is_control)
}

fn listed(at: &CommandContext<'_>, chats: &[&ListedChat]) -> String {
    chats.iter().map(|chat| format!("- {}{}\n", chat.label("%F", &at.calendar.zone), here(at, chat))).collect()
}
