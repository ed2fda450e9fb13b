//! Commands: declared once, here, for every platform. Help, permissions and behaviour come from the same table.

mod archive;
mod chat;
mod forget;
mod memory;
mod persona;
mod why;
mod writings;

use azera_adapter::{Access, CommandAnswer, CommandLine, Platform};
use azera_memory::{ChatRow, Right};
use azera_types::{Place, PlatformId};

use crate::azera::Azera;
use crate::error::Error;

/// A command as it is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What may follow, for help.
    pub arguments: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// Who may use it at all; single forms may ask for more.
    pub access: Access,
}

/// Every command there is.
pub const COMMANDS: &[Command] = &[
    Command { name: "help", arguments: "", help: "what there is to say to me", access: Access::Member },
    Command {
        name: "new",
        arguments: "",
        help: "begin another chat; what was said stays remembered",
        access: Access::Member,
    },
    Command { name: "chats", arguments: "[NUMBER]", help: "list your chats, or go to one", access: Access::Member },
    Command {
        name: "persona",
        arguments: "[list | use NAME | show NAME]",
        help: "who answers in this chat",
        access: Access::Member,
    },
    Command {
        name: "as",
        arguments: "NAME",
        help: "speak as somebody else (in the terminal)",
        access: Access::Operator,
    },
    Command { name: "why", arguments: "", help: "what stood behind the last reply", access: Access::Member },
    Command {
        name: "branch",
        arguments: "[NAME [N messages back] | list | switch NAME]",
        help: "try another way on from here; the old one stays",
        access: Access::Member,
    },
    Command { name: "regenerate", arguments: "", help: "answer the last message again", access: Access::Member },
    Command {
        name: "swipe",
        arguments: "[next | previous]",
        help: "choose among the answers made",
        access: Access::Member,
    },
    Command { name: "remember", arguments: "TEXT", help: "keep something for good", access: Access::Member },
    Command {
        name: "memory",
        arguments: "[search WORDS | stats | export]",
        help: "what I remember that may be shown here",
        access: Access::Member,
    },
    Command {
        name: "forget",
        arguments: "[last | mNUMBER | me | chat] [quotes]",
        help: "forget for good, with a receipt; `quotes` takes along the replies built on it",
        access: Access::Member,
    },
    Command {
        name: "dream",
        arguments: "[list | show NUMBER | search WORDS | import TEXT | export]",
        help: "what I dreamt that may be told here; `import` takes Markdown or JSON",
        access: Access::Member,
    },
    Command {
        name: "journal",
        arguments: "[list | show NUMBER | search WORDS | trigger | import TEXT | export | channel [here | off]]",
        help: "my journal and diary; `trigger` has me write now, `channel` says where dreams and entries are posted",
        access: Access::Member,
    },
    Command {
        name: "answer",
        arguments: "[addressed | always | never]",
        help: "when I answer in this chat",
        access: Access::Admin,
    },
    Command { name: "model", arguments: "[list | use NAME]", help: "the model that answers", access: Access::Member },
    Command { name: "quit", arguments: "", help: "leave the terminal", access: Access::Member },
];

/// Where, by whom and with what right a command runs.
struct Setting<'a> {
    platform: &'a PlatformId,
    adapter: &'a dyn Platform,
    place: Place,
    right: Right,
    chat: ChatRow,
    access: Access,
    line: &'a CommandLine,
}

impl Azera {
    pub(crate) async fn run_command(&self, platform: &PlatformId, line: CommandLine) -> Result<CommandAnswer, Error> {
        let adapter = self.platform(platform)?;
        let at = self.setting_now(platform, adapter.as_ref(), &line).await?;
        let access = at.access;
        let (name, arguments) = split(&line.text);
        let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
            return Ok(refused(format!("There is no command `/{name}`. `/help` lists what there is.")));
        };
        if access < command.access {
            return Ok(refused(format!("`/{name}` is for {}.", who(command.access))));
        }
        match command.name {
            "help" => Ok(done(help(access))),
            "new" => self.new_chat(&at).await,
            "chats" => self.list_chats(&at, arguments).await,
            "persona" => self.persona_command(&at, arguments).await,
            "as" => Ok(refused("`/as` works in the terminal alone.".into())),
            "why" => self.why_command(&at).await,
            "branch" => self.branch_command(&at, arguments).await,
            "regenerate" => self.regenerate_command(adapter.clone(), &at).await,
            "swipe" => self.swipe_command(&at, arguments).await,
            "remember" => self.remember_command(&at, arguments).await,
            "memory" => self.memory_command(&at, arguments).await,
            "forget" => self.forget_command(&at, arguments).await,
            "dream" => self.dream_command(&at, arguments).await,
            "journal" => self.journal_command(&at, arguments).await,
            "answer" => self.answer_command(&at, arguments).await,
            "model" => self.model_command(&at, arguments).await,
            _ => Ok(CommandAnswer { ok: true, leave: true, ..CommandAnswer::default() }),
        }
    }

    /// Where and with what right a command runs, by the platform's word of this moment.
    async fn setting_now<'a>(
        &self,
        platform: &'a PlatformId,
        adapter: &'a dyn Platform,
        line: &'a CommandLine,
    ) -> Result<Setting<'a>, Error> {
        let place = self.place(adapter, &line.chat, &line.person).await?.ok_or(Error::NotAllowed)?;
        let access = adapter.access(&line.chat, &line.person).await?;
        self.open_for(platform, line).await?;
        let chat = {
            let chat = line.chat.clone();
            self.blocking(move |memory| memory.chat(&chat)).await?.ok_or(Error::NotAllowed)?
        };
        let right = self.right(adapter, &place, &chat.persona).await?;
        Ok(Setting { platform, adapter, place, right, chat, access, line })
    }

    async fn open_for(&self, platform: &PlatformId, line: &CommandLine) -> Result<(), Error> {
        let new = azera_memory::NewChat {
            id: line.chat.clone(),
            platform: platform.clone(),
            title: None,
            persona: self.0.config.persona.clone(),
        };
        let now = self.0.clock.now();
        self.blocking(move |memory| memory.open_chat(new, now)).await.map(drop)
    }
}

/// The command's name and what follows it.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let text = text.strip_prefix('/').unwrap_or(text);
    text.split_once(char::is_whitespace).map_or((text, ""), |(name, rest)| (name, rest.trim()))
}

fn help(access: Access) -> String {
    let mut text = String::from("Talk to me as you like. Besides that:\n");
    for command in COMMANDS.iter().filter(|command| command.access <= access) {
        let space = if command.arguments.is_empty() { "" } else { " " };
        text.push_str(&format!("- `/{}{space}{}`: {}\n", command.name, command.arguments, command.help));
    }
    text
}

fn who(access: Access) -> &'static str {
    match access {
        Access::Member => "everyone",
        Access::Admin => "admins",
        Access::Operator => "the operator",
    }
}

fn done(text: String) -> CommandAnswer {
    CommandAnswer { ok: true, text, ..CommandAnswer::default() }
}

fn refused(text: String) -> CommandAnswer {
    CommandAnswer { ok: false, text, ..CommandAnswer::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split() {
        assert_eq!(split("/memory search two words"), ("memory", "search two words"));
        assert_eq!(split("  /help  "), ("help", ""));
    }

    #[test]
    fn help_names_what_one_may_use() {
        assert!(!help(Access::Member).contains("`/answer"));
        assert!(help(Access::Admin).contains("`/answer"));
        assert!(COMMANDS.iter().all(|command| help(Access::Operator).contains(&format!("`/{}", command.name))));
    }
}
