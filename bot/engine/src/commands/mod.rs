//! Commands, declared once for every platform: help, permissions and behaviour follow from the table in `declared`.
//! Each of the other modules implements one command or a few related ones. What the commands do with memories, minds
//! and training is in the other modules of this crate. Begin with `Commands::run_command`.

mod archive;
mod autocomplete;
mod captions;
mod charts;
mod chat;
mod checkin;
mod corrections;
mod days;
mod declared;
mod declared_pictures;
mod declared_voice;
mod diary;
mod episodes;
mod files;
mod forget;
mod gallery;
mod garden;
mod graph;
mod hearth;
mod help;
mod known;
mod learnt;
mod link;
mod listed_pictures;
mod memory;
mod mind;
mod model;
mod order;
mod persona;
mod pictures;
mod places;
mod portrait;
mod privacy;
mod recordings;
mod redraw;
mod settings;
mod themes;
mod upload;
mod voice;
mod voice_replies;
mod voice_samples;
mod voice_say;
mod why;
mod why_memory;
mod writings;

pub use declared::{COMMANDS, MESSAGE_ACTIONS};
pub use link::LinkStep;
pub(crate) use upload::Uploads;
pub(crate) use voice_say::{VOICE_FAILS, log_silence};

use std::sync::Arc;

use azera_adapter::{Access, CommandAnswer, CommandLine, Platform, suggestion};
use azera_memory::{Calendar, ChatRow, MemoryRow, ReadScope, Stretch};
use azera_types::{Place, PlatformId, Text, Timestamp, composed};

use crate::access::AccessControl;
use crate::background::Background;
use crate::error::Error;
use crate::forgetting::Forgetting;
use crate::hearth::Learning;
use crate::indexing::Indexer;
use crate::minds::MindService;
use crate::pictures::Pictures;
use crate::recall::{Asking, RecallService, Trace};
use crate::services::Services;
use crate::turn::{Judge, Turns};
use crate::zones;

/// Runs commands.
pub(crate) struct Commands {
    pub(crate) services: Arc<Services>,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) minds: Arc<MindService>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) recall: Arc<RecallService>,
    pub(crate) judge: Arc<Judge>,
    pub(crate) learning: Arc<Learning>,
    pub(crate) forgetting: Arc<Forgetting>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) background: Arc<Background>,
    pub(crate) pictures: Arc<Pictures>,
    /// Persona files that were shown to the uploader and wait for confirmation.
    pub(crate) uploads: Uploads,
}

/// The platform of `azera chat`.
const TERMINAL: &str = "console";

/// Where a command runs, who gave it, and what it may show.
struct CommandContext<'a> {
    platform: &'a PlatformId,
    adapter: &'a dyn Platform,
    place: Place,
    /// When and in which time zone the command was given.
    calendar: Calendar,
    read_scope: ReadScope,
    /// The chat, with the persona that the command is about.
    chat: ChatRow,
    access: Access,
    line: &'a CommandLine,
}

impl CommandContext<'_> {
    fn asking<'a>(&'a self, persona: &'a str) -> Asking<'a> {
        let (person, calendar) = (&self.line.person, &self.calendar);
        Asking { person, persona, calendar, known_by: None, trace: Trace::Cached }
    }

    /// Returns true if the command was given at the terminal, where its person is called "You".
    fn is_at_the_terminal(&self) -> bool {
        self.platform.as_str() == TERMINAL
    }

    /// Returns a moment's day in the place's time zone.
    fn day(&self, at: Timestamp) -> String {
        zones::day(at, &self.calendar.zone)
    }

    /// Returns since when a statement says that it holds, to follow the day on which it was said; nothing if it says no
    /// earlier time.
    fn since(&self, memory: &MemoryRow) -> String {
        let since = memory.valid_from(&self.calendar);
        since.map_or_else(String::new, |(from, to)| {
            format!(", holds since {}", zones::stretch(from, to, &self.calendar.zone))
        })
    }

    /// Returns until when a statement held, to follow the day of it; nothing while it holds.
    fn until(&self, when: Option<Stretch>) -> String {
        when.map_or_else(String::new, |(from, to)| format!(", until {}", zones::stretch(from, to, &self.calendar.zone)))
    }
}

impl Commands {
    /// Creates the part above the turns and the background work.
    pub(crate) fn over(turns: Arc<Turns>, background: Arc<Background>) -> Self {
        Self {
            services: Arc::clone(&turns.services),
            access: Arc::clone(&turns.access),
            minds: Arc::clone(&turns.minds),
            indexer: Arc::clone(&turns.indexer),
            recall: Arc::clone(&turns.recall),
            judge: Arc::clone(&turns.judge),
            learning: Arc::clone(&turns.learning),
            forgetting: Arc::clone(&turns.forgetting),
            pictures: Arc::clone(&turns.pictures),
            turns,
            background,
            uploads: Uploads::default(),
        }
    }

    pub(crate) async fn run_command(
        &self,
        platform: &PlatformId,
        mut line: CommandLine,
    ) -> Result<CommandAnswer, Error> {
        // A file in it may be long, and is limited where it is read.
        (line.name, line.text) = (composed(&line.name).into_owned(), Text::uncut(composed(&line.text)));
        let adapter = self.services.platform(platform)?;
        let at = self.load_command_context(platform, adapter.as_ref(), &line).await?;
        let access = at.access;
        let (name, arguments) = split(&line.text);
        let Some(command) = COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name)) else {
            return Ok(refused(suggestion(name, COMMANDS)));
        };
        if access < command.access {
            return Ok(refused(format!("`/{}` is for {}.", command.name, who(command.access))));
        }
        if !command.takes(arguments, COMMANDS) {
            return Ok(refused(help::takes_less(command)));
        }
        match command.name {
            "help" => Ok(help::help(arguments, access)),
            "new" => self.new_chat(&at).await,
            "chats" => self.list_chats(&at, arguments).await,
            "persona" => self.persona_command(&at, arguments).await,
            "as" => Ok(refused("`/as` works only in the terminal.".into())),
            "why" if !arguments.is_empty() => self.why_memory(&at, arguments).await,
            "why" => self.why_command(&at).await,
            "branch" => self.branch_command(&at, arguments).await,
            "forget" if arguments.is_empty() && self.is_about_a_picture(&at).await? => {
                self.picture_command(&at, "delete").await
            }
            "regenerate" if self.is_about_a_picture(&at).await? => self.picture_command(&at, "again").await,
            "regenerate" => self.regenerate_command(adapter.clone(), &at).await,
            "swipe" => self.swipe_command(&at, arguments).await,
            "remember" => self.remember_command(&at, arguments).await,
            "me" => self.me_command(&at).await,
            "memory" => self.memory_command(&at, arguments).await,
            "forget" => self.forget_command(&at, arguments).await,
            "dream" => self.dream_command(&at, arguments).await,
            "tag" => self.tag_command(&at, arguments).await,
            "group" => self.group_command(&at, arguments).await,
            "privacy" => self.privacy_command(&at, arguments).await,
            "notes" => self.notes_command(&at).await,
            "settings" => self.settings_command(&at, arguments).await,
            "status" => self.status_command(&at, arguments).await,
            "rules" => self.rules_command(&at, arguments).await,
            "tune" => self.tune_command(&at, arguments).await,
            "imagine" => self.imagine_command(&at, arguments).await,
            "picture" => self.picture_command(&at, arguments).await,
            "gallery" => self.gallery_command(&at, arguments).await,
            "graph" => self.graph_command(&at, arguments).await,
            "garden" => self.garden_command(&at, arguments).await,
            "hearth" => self.hearth_command(&at, arguments).await,
            "link" => self.link_command(&at, arguments).await,
            "checkin" => self.checkin_command(&at, arguments).await,
            "journal" => self.journal_command(&at, arguments).await,
            "answer" => self.answer_command(&at, arguments).await,
            "voice" => self.voice_command(&at, arguments).await,
            "model" => self.model_command(&at, arguments).await,
            "quit" => Ok(CommandAnswer { ok: true, leave: true, ..CommandAnswer::default() }),
            name => Err(Error::NotDispatched(name)),
        }
    }

    /// Loads the context of a command, as its platform reports it at this moment.
    async fn load_command_context<'a>(
        &self,
        platform: &'a PlatformId,
        adapter: &'a dyn Platform,
        line: &'a CommandLine,
    ) -> Result<CommandContext<'a>, Error> {
        let place = self.services.place(adapter, &line.chat, &line.person).await?.ok_or(Error::NotAllowed)?;
        let access = adapter.access(&line.chat, &line.person).await?;
        self.open_for(platform, line).await?;
        let mut chat = {
            let chat = line.chat.clone();
            self.services.blocking(move |memory| memory.chats().get(&chat)).await?.ok_or(Error::NotAllowed)?
        };
        chat.persona = self.access.spoken_of(&place, &chat, line.about.as_ref()).await?;
        let read_scope = self.access.read_scope(adapter, &place, &chat.persona).await?;
        let calendar = self.minds.calendar(&self.access, platform, &place.scope()).await?;
        Ok(CommandContext { platform, adapter, place, calendar, read_scope, chat, access, line })
    }

    async fn open_for(&self, platform: &PlatformId, line: &CommandLine) -> Result<(), Error> {
        let new = azera_memory::NewChat {
            id: line.chat.clone(),
            platform: platform.clone(),
            title: None,
            persona: self.services.config.persona.clone(),
        };
        let now = self.services.clock.now();
        self.services.blocking(move |memory| memory.chats().open(new, now)).await.map(drop)
    }
}

/// Splits a line into the command's name and its arguments.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let text = text.strip_prefix('/').unwrap_or(text);
    text.split_once(char::is_whitespace).map_or((text, ""), |(name, rest)| (name, rest.trim()))
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
    fn a_line_is_split_into_name_and_arguments() {
        assert_eq!(split("/memory search two words"), ("memory", "search two words"));
        assert_eq!(split("  /help  "), ("help", ""));
    }

    #[test]
    fn every_message_action_is_a_declared_command() {
        for action in MESSAGE_ACTIONS {
            let command = COMMANDS.iter().find(|command| command.name == split(action.line).0).expect(action.name);
            let declared_options = command.forms.iter().flat_map(|form| form.options);
            assert!(
                action.asks.is_none_or(|asks| declared_options.clone().any(|option| option.name == asks.name)),
                "{}",
                action.name
            );
        }
    }
}
