//! Commands in rooms: how they are recognised, and where they are answered.

use azera_adapter::{Access, Command, GivenPicture, Host, Questions as _, Typed, typed};
use azera_types::{ChatId, MessageId, Part, PartKind, PersonId};
use matrix_sdk::ruma::{OwnedUserId, UserId};
use matrix_sdk::{Room, RoomState};

use crate::events::{RoomEvent, Said, heard};
use crate::ids::person_id;
use crate::media::{Attached, given_file, given_picture, given_recording};
use crate::{Error, Matrix};

/// Commands with personal answers, which go to the person's direct chat.
const PERSONAL: [&str; 4] = ["me", "memory", "why", "chats"];

/// Those of them that also run in the direct chat, whose read scope is wider than a room's.
const CONSOLE_ONLY: [&str; 3] = ["me", "memory", "chats"];

/// Commands for the terminal. On Matrix, people create rooms and threads themselves.
const CONSOLE_COMMANDS: [&str; 3] = ["new", "quit", "as"];

/// Commands whose `import` accepts a file.
const IMPORTS: [&str; 3] = ["/dream", "/journal", "/garden"];

/// Longest prefix of a room, in characters.
const MAX_PREFIX_CHARS: usize = 32;

/// The commands that only Matrix has.
const OWN_COMMANDS: [&str; 2] = ["prefix", "doctor"];

/// Help for them.
const OWN_HELP: &str = "- `/prefix [TEXT | off]`: how commands begin in this room; admins can change it\n\
                        - `/doctor`: whether I can read this room, and the state of my keys\n";

/// The bot's names.
pub(crate) struct Names<'a> {
    pub(crate) own: &'a UserId,
    pub(crate) display: Option<&'a str>,
}

impl Names<'_> {
    /// Returns the text after one of the names at its beginning.
    fn after<'t>(&self, text: &'t str) -> Option<&'t str> {
        let local = self.own.localpart();
        let at_local = format!("@{local}");
        let names = [Some(self.own.as_str()), self.display, Some(&at_local), Some(local)];
        names.into_iter().flatten().find_map(|name| {
            let (head, rest) = text.split_at_checked(name.len())?;
            let ends = rest.chars().next().is_none_or(|next| !next.is_alphanumeric());
            (head.eq_ignore_ascii_case(name) && ends).then(|| rest.trim_start_matches([':', ',']).trim_start())
        })
    }

    /// Returns true if a text mentions the bot's account.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        self.after(text).is_some() || text.contains(self.own.as_str())
    }
}

/// Returns the command in a text, with a leading slash. It follows the prefix, or the bot's name and a slash or
/// exclamation mark; in a direct chat a slash or exclamation mark is enough. What follows a slash may still be talk, as
/// in `/etc/hosts is wrong`; what follows the prefix is meant as a command.
pub(crate) fn line_in(
    text: &str,
    prefix: &str,
    names: &Names<'_>,
    direct: bool,
    commands: &[Command],
) -> Option<String> {
    let text = text.trim();
    let line = |rest: &str| format!("/{}", rest.trim());
    if let Some((head, rest)) = text.split_at_checked(prefix.len())
        && !prefix.is_empty()
        && head.eq_ignore_ascii_case(prefix)
        && (rest.is_empty() || rest.starts_with(char::is_whitespace) || !prefix.ends_with(char::is_alphanumeric))
    {
        let rest = rest.trim();
        return Some(if rest.is_empty() { "/help".into() } else { line(rest.trim_start_matches(['/', '!'])) });
    }
    let marked = |text: &str| {
        let line = line(text.strip_prefix(['/', '!'])?);
        (typed(&line, commands, &OWN_COMMANDS) != Typed::Talk).then_some(line)
    };
    match names.after(text) {
        Some(rest) => marked(rest),
        None if direct => marked(text),
        None => None,
    }
}

impl Matrix {
    /// Runs a command of a person and answers it.
    pub(crate) async fn run_command(
        &self,
        host: &dyn Host,
        said: &Said,
        line: String,
        about: Option<MessageId>,
    ) -> Result<(), Error> {
        let Some(room) = self.room_of(said) else { return Ok(()) };
        let here = self.succession.chat(room.room_id(), said.thread.as_deref())?;
        let name = line.trim_start_matches('/').split_whitespace().next().unwrap_or_default().to_lowercase();
        if CONSOLE_COMMANDS.contains(&name.as_str()) {
            let text = format!("`/{name}` is for the terminal. Here, open another room or a thread.");
            return self.tell(&here, Some(said), &text).await;
        }
        let line = match self.with_file(&room, said, line).await? {
            Ok(line) => line,
            Err(why) => return self.tell(&here, Some(said), &why).await,
        };
        let line = match self.with_recording(&room, said, line).await? {
            Ok(line) => line,
            Err(why) => return self.tell(&here, Some(said), &why).await,
        };
        let picture = match self.picture_with(said, &line).await {
            Ok(picture) => picture,
            Err(why) => return self.tell(&here, Some(said), &why).await,
        };
        if name == "doctor" {
            let text = self.doctor(&room).await?;
            return self.tell(&here, Some(said), &text).await;
        }
        if name == "prefix" {
            let text = self.prefix_command(&room, said, &line).await?;
            return self.tell(&here, Some(said), &text).await;
        }
        let direct = self.audience.is_direct(&room).await?;
        if name == "help" {
            let is_overview = line.split_whitespace().nth(1).is_none();
            let mut text = self.ask(host, said, here.clone(), line, (about, picture)).await.text;
            if is_overview {
                text.push_str(OWN_HELP);
            }
            if !direct {
                let prefix = self.prefix_in(&room).await;
                text.push_str(&format!("\nIn this room, write `{prefix} help` instead of `/help`."));
            }
            return self.tell(&here, Some(said), &text).await;
        }
        if direct || !is_personal(&line) {
            let answer = self.ask(host, said, here.clone(), line, (about, picture)).await;
            return self.show(&here, Some(said), answer).await;
        }
        let Some(there) = self.direct_chat(&said.by).await? else {
            let text = "That is for you alone: I have invited you to a direct chat. Come in and ask again.";
            return self.tell(&here, Some(said), text).await;
        };
        let typed_in = if CONSOLE_ONLY.contains(&name.as_str()) { there.clone() } else { here.clone() };
        let answer = self.ask(host, said, typed_in, line, (about, picture)).await;
        self.show(&there, None, answer).await?;
        self.tell(&here, Some(said), "I have told you in our direct chat.").await
    }

    /// Tells what somebody thinks of a reply. The answer is shown to nobody.
    pub(crate) async fn rate(&self, host: &dyn Host, said: &Said, line: &str, about: MessageId) -> Result<(), Error> {
        let Some(room) = self.room_of(said) else { return Ok(()) };
        let here = self.succession.chat(room.room_id(), said.thread.as_deref())?;
        self.ask(host, said, here, line.to_owned(), (Some(about), None)).await;
        Ok(())
    }

    /// Returns the command prefix of a room.
    pub(crate) async fn prefix_in(&self, room: &Room) -> String {
        let chosen = self.sync_state.prefix(&self.succession.origin(room.room_id())).await;
        chosen.ok().flatten().unwrap_or_else(|| self.settings.prefix.clone())
    }

    /// Shows or sets the command prefix of a room.
    async fn prefix_command(&self, room: &Room, said: &Said, line: &str) -> Result<String, Error> {
        let chosen = line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
        let origin = self.succession.origin(room.room_id());
        if chosen.is_empty() {
            return Ok(format!("Here a command begins with `{}`.", self.prefix_in(room).await));
        }
        let chat = self.succession.chat(room.room_id(), None)?;
        if self.audience.access(&chat, &person_id(&said.by)?).await? < Access::Admin {
            return Ok("Only admins can choose what a command begins with.".into());
        }
        let fits =
            chosen.chars().count() <= MAX_PREFIX_CHARS && chosen.chars().all(|c| c.is_ascii_graphic() && c != '`');
        if !fits {
            return Ok(format!("A prefix has at most {MAX_PREFIX_CHARS} letters, digits and signs, and no space."));
        }
        self.sync_state.set_prefix(&origin, Some(chosen.as_str()).filter(|chosen| *chosen != "off")).await?;
        Ok(format!("From now on a command here begins with `{}`.", self.prefix_in(room).await))
    }

    /// Returns the picture that a command was sent with, if the command takes one. The error says why it cannot be used.
    async fn picture_with(&self, said: &Said, line: &str) -> Result<Option<GivenPicture>, String> {
        let (name, arguments) = line.trim_start_matches('/').split_once(char::is_whitespace).unwrap_or((line, ""));
        let command = self.settings.commands.iter().find(|command| command.name.eq_ignore_ascii_case(name));
        let takes = command.is_some_and(|command| command.takes_picture(arguments));
        let is_picture = |file: &&Attached| Part::new(&file.name, file.mime.as_deref(), 0).kind == PartKind::Image;
        let Some(file) = said.file.as_ref().filter(is_picture).filter(|_| takes) else { return Ok(None) };
        let given = given_picture(&self.client, file).await;
        given.map(Some).map_err(|why| format!("{} cannot be used: {why}.", file.name))
    }

    /// Returns the file that a command was sent with, or the one that it replies to, with its sender.
    async fn file_with(&self, room: &Room, said: &Said) -> Result<Option<(Attached, OwnedUserId)>, Error> {
        Ok(match (&said.file, &said.reply_to) {
            (Some(file), _) => Some((file.clone(), said.by.clone())),
            (None, Some(target)) => match heard(&room.event(target, None).await?, room.room_id()) {
                Some(RoomEvent::Said(target)) => {
                    let Said { file, by, .. } = *target;
                    file.map(|file| (file, by))
                }
                _ => None,
            },
            (None, None) => None,
        })
    }

    /// Adds a recording to the line of a command that takes one. The inner error says why not.
    async fn with_recording(&self, room: &Room, said: &Said, line: String) -> Result<Result<String, String>, Error> {
        let (name, arguments) = line.trim_start_matches('/').split_once(char::is_whitespace).unwrap_or((&line, ""));
        let command = self.settings.commands.iter().find(|command| command.name.eq_ignore_ascii_case(name));
        let Some(before) = command.and_then(|command| command.words_before_sound(arguments)) else {
            return Ok(Ok(line));
        };
        let Some((file, sender)) = self.file_with(room, said).await? else { return Ok(Ok(line)) };
        let named = person_in(arguments, before).and_then(|words| self.person_named(&words));
        if let Some(why) = not_to_give(&sender, &said.by, &self.own, named.as_ref()) {
            return Ok(Err(why));
        }
        Ok(match given_recording(&self.client, &file).await {
            Ok(sound) => Ok(format!("{line} {sound}")),
            Err(why) => Err(format!("{} cannot be used: {why}.", file.name)),
        })
    }

    /// Adds a file to a command's line: the one it was sent with, or the one it replies to. The inner error says why
    /// not.
    async fn with_file(&self, room: &Room, said: &Said, line: String) -> Result<Result<String, String>, Error> {
        let mut words = line.split_whitespace();
        let (wanted, why) = match (words.next(), words.next(), words.next()) {
            (Some("/persona"), Some("upload"), None) => {
                ("/persona upload", "Only admins can add, change or remove personas here.")
            }
            (Some(command), Some("import"), _) if IMPORTS.contains(&command) => {
                (command, "Only admins can import here, because several people read this place.")
            }
            _ => return Ok(Ok(line)),
        };
        let is_upload = wanted == "/persona upload";
        let file = self.file_with(room, said).await?.map(|(file, _)| file);
        if file.is_none() && !is_upload {
            return Ok(Ok(line));
        }
        // A file is not downloaded for a person without permission.
        let chat = self.succession.chat(room.room_id(), None)?;
        let may = self.audience.access(&chat, &person_id(&said.by)?).await? >= Access::Admin;
        if !may && (is_upload || !self.audience.is_direct(room).await?) {
            return Ok(Err(why.into()));
        }
        let Some(file) = file else {
            return Ok(Err("Send the persona's file (.md, or a card as .json, .png or .charx) with `persona upload` as its caption, or reply \
                           `persona upload` to it."
                .into()));
        };
        Ok(match given_file(&self.client, &file).await {
            Ok(text) if is_upload => Ok(format!("{wanted} {text}")),
            Ok(text) => Ok(format!("{wanted} import {text}")),
            Err(why) => Err(format!("{} cannot be used: {why}.", file.name)),
        })
    }

    /// Returns the direct chat with a person; `None` if they were invited to one and have not joined yet.
    async fn direct_chat(&self, user: &OwnedUserId) -> Result<Option<ChatId>, Error> {
        let mut waiting = false;
        for room in self.client.joined_rooms() {
            if self.succession.is_over(room.room_id()) {
                continue;
            }
            let (people, invited) = self.audience.people(&room).await?;
            if people.len() == 1 && people.contains(user) && self.audience.is_direct(&room).await? {
                return Ok(Some(self.succession.chat(room.room_id(), None)?));
            }
            waiting |= people.is_empty()
                && invited > 0
                && room.direct_targets().iter().any(|target| target.as_str() == user.as_str());
        }
        if !waiting {
            self.client.create_dm(user).await?;
        }
        Ok(None)
    }

    pub(crate) fn room_of(&self, said: &Said) -> Option<Room> {
        self.client.get_room(&said.room).filter(|room| room.state() == RoomState::Joined)
    }

    /// Returns a person's name in a room, with the account if others have the same name.
    pub(crate) async fn name_in(&self, said: &Said) -> String {
        let member = match self.room_of(said) {
            Some(room) => room.get_member_no_sync(&said.by).await.ok().flatten(),
            None => None,
        };
        let name = match member {
            Some(member) if member.name_ambiguous() => format!("{} ({})", member.name(), said.by),
            Some(member) => member.name().to_owned(),
            None => said.by.localpart().to_owned(),
        };
        let name: String = name.chars().filter(|c| !c.is_control()).take(azera_types::MAX_NAME_CHARS).collect();
        if name.trim().is_empty() { said.by.localpart().to_owned() } else { name }
    }
}

/// Returns how a command names the person whose voice it is: what stands behind its first words.
fn person_in(arguments: &str, first: usize) -> Option<String> {
    let words: Vec<&str> = arguments.split_whitespace().skip(first).collect();
    let words = words.join(" ");
    let words = words.strip_prefix("of ").unwrap_or(&words);
    (!words.is_empty()).then(|| words.to_owned())
}

/// Says why somebody cannot give a recording that `sender` sent; `None` if they can. What others sent passes only as
/// their voice, so that they are asked.
fn not_to_give(sender: &UserId, by: &UserId, own: &UserId, named: Option<&PersonId>) -> Option<String> {
    if sender == own {
        return Some("I take no recordings of my own messages.".into());
    }
    if sender == by || person_id(sender).is_ok_and(|sender| named == Some(&sender)) {
        return None;
    }
    Some(format!(
        "{sender} sent that recording, so it can only be added as their voice, after I asked them: write `{sender}` at the end \
         of the command."
    ))
}

/// Returns true if the answer is for the person only.
fn is_personal(line: &str) -> bool {
    let mut words = line.trim_start_matches('/').split_whitespace();
    let name = words.next().unwrap_or_default().to_lowercase();
    // Forgetting concerns the memories of this room.
    let forgets = name == "memory" && words.next() == Some("forget");
    // Whose voices there are is for the person alone.
    let lists_voices = line.trim_start_matches('/').split_whitespace().eq(["voice", "samples"])
        || line.trim_start_matches('/').split_whitespace().eq(["voice", "samples", "list"]);
    (PERSONAL.contains(&name.as_str()) && !forgets) || lists_voices
}

#[cfg(test)]
mod tests {
    use azera_adapter::Form;

    use super::*;

    const fn command(name: &'static str) -> Command {
        const ALONE: &[Form] = &[Form { name: "", word: "", help: "", access: Access::Member, options: &[] }];
        Command { name, help: "", access: Access::Member, terminal: false, forms: ALONE }
    }

    const FORGET: Command = Command {
        forms: &[Form { name: "last", word: "last", help: "", access: Access::Member, options: &[] }],
        ..command("forget")
    };

    const COMMANDS: &[Command] = &[command("help"), command("why"), FORGET];

    #[test]
    fn a_recording_of_somebody_else_is_never_given_as_an_own_voice() {
        let user = |id: &str| OwnedUserId::try_from(id).unwrap();
        let (ann, bob, own) = (user("@ann:example.org"), user("@bob:example.org"), user("@azera:example.org"));
        let why = |sender, named: Option<&OwnedUserId>| {
            not_to_give(sender, &bob, &own, named.map(|named| person_id(named).unwrap()).as_ref())
        };
        assert!(why(&ann, None).unwrap().contains("@ann:example.org sent that recording"));
        assert!(why(&ann, Some(&bob)).is_some(), "he names himself");
        assert_eq!(why(&ann, Some(&ann)), None, "she is asked");
        assert_eq!((why(&bob, None), why(&bob, Some(&ann))), (None, None));
        assert!(why(&own, None).is_some() && why(&own, Some(&own)).is_some());
    }

    #[test]
    fn a_person_is_named_behind_the_words_that_a_command_needs() {
        assert_eq!(person_in("samples add x", 3), None);
        assert_eq!(person_in("samples add x  @ann:example.org", 3).as_deref(), Some("@ann:example.org"));
        assert_eq!(person_in("samples add x of @ann:example.org", 3).as_deref(), Some("@ann:example.org"));
    }

    #[test]
    fn commands_are_recognised() {
        let own = OwnedUserId::try_from("@azera:example.org").unwrap();
        let names = Names { own: &own, display: Some("Azera") };
        let check = |text: &str, prefix: &str, direct: bool, want: Option<&str>| {
            assert_eq!(line_in(text, prefix, &names, direct, COMMANDS).as_deref(), want, "{text:?}");
        };
        check("!azera persona list", "!azera", false, Some("/persona list"));
        check("!Azera /why", "!azera", false, Some("/why"));
        check("!azera", "!azera", false, Some("/help"));
        check("!azeraphone", "!azera", false, None);
        check("!help", "!", false, Some("/help"));
        check("!help", "!azera", false, None);
        check("!help", "!azera", true, Some("/help"));
        check("/help", "!azera", true, Some("/help"));
        check("/help", "!azera", false, None);
        check("Azera: /help", "!azera", false, Some("/help"));
        check("@azera:example.org !forget last", "!azera", false, Some("/forget last"));
        check("Azera, help me", "!azera", true, None);
        check("Azeraphone /help", "!azera", false, None);
        for talk in
            ["/var/log is full", "/r/boats", "// a note", "/s", "/9 lives", "/help me to pack", "!important: pack"]
        {
            check(talk, "!azera", true, None);
            check(&format!("Azera: {talk}"), "!azera", false, None);
        }
        check("/prefix !a", "!azera", true, Some("/prefix !a"));
        check("/shrug", "!azera", true, Some("/shrug"));
        check("!azera why did you go", "!azera", false, Some("/why did you go"));
        check("!!", "!azera", true, None);
        check("é!", "!azera", true, None);
    }
}
