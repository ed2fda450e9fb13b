//! `/gallery`: the pictures that may be shown here.

use std::collections::HashMap;

use azera_adapter::{AnswerFile, Choice, CommandAnswer, FileContent};
use azera_memory::{Memory, PictureRow};
use azera_model_image::{Picture, PictureLimits};
use azera_types::{ChatId, Part, PersonId, Scope};

use super::pictures::{NO_SUCH, message_of};
use super::{CommandContext, Commands, done, refused};
use crate::error::Error;
use crate::pictures::{By, PictureLook, holds_words, is_suitable, shortened, words_of};

/// Pictures of a page.
const PAGE: usize = 9;

/// Columns of a contact sheet.
const COLUMNS: u32 = 3;

/// The side of a thumbnail, in pixels.
const THUMBNAIL: u32 = 256;

/// Which pictures are listed.
#[derive(Clone, Default)]
struct Listed {
    /// Words that prompt or name hold, in lower case.
    words: Vec<String>,
    is_pinned: bool,
    by: Option<By>,
}

impl Listed {
    fn with(words: &str) -> Self {
        Self { words: words_of(words), ..Self::default() }
    }

    /// Returns those of a person: of `asker` for `me`.
    fn by(name: &str, asker: &PersonId) -> Self {
        Self { by: Some(By::of(name, asker)), ..Self::default() }
    }

    fn wants(&self, row: &PictureRow) -> bool {
        let is_theirs = self.by.as_ref().is_none_or(|by| by.asked_for(row));
        is_theirs && (!self.is_pinned || row.is_pinned) && holds_words(row, &self.words)
    }

    fn title(&self) -> &'static str {
        if self.is_pinned { "Pinned pictures that may be shown here" } else { "Pictures that may be shown here" }
    }

    /// Returns what is said of an empty list.
    fn none(&self) -> &'static str {
        match (self.is_pinned, self.words.as_slice()) {
            _ if self.by.is_some() => "No picture that may be shown here is by them.",
            (true, _) => "No pictures that may be shown here are pinned.",
            (false, []) => "There are no pictures that may be shown here.",
            (false, _) => "No picture that may be shown here has these words in its prompt or name.",
        }
    }

    /// Returns the buttons that turn the page.
    fn turns(&self, page: usize, has_more: bool) -> Vec<Choice> {
        let line = |page: usize| match (&self.by, self.words.as_slice()) {
            (Some(By::Asker(_)), _) => format!("/gallery by me page:{page}"),
            (Some(By::Named(name)), _) => format!("/gallery by {name} page:{page}"),
            (None, []) if self.is_pinned => format!("/gallery pinned {page}"),
            (None, []) => format!("/gallery list {page}"),
            (None, words) => format!("/gallery search {} page:{page}", words.join(" ")),
        };
        let turns = [("◀", page.saturating_sub(1), page > 1), ("▶", page.saturating_add(1), has_more)];
        let turns = turns.into_iter().filter(|(_, _, exists)| *exists).map(|(label, page, _)| (label, line(page)));
        // A line of a button has at most 80 bytes.
        turns.filter(|(_, line)| line.len() <= 80).map(|(label, line)| Choice { label: label.into(), line }).collect()
    }
}

impl Commands {
    pub(super) async fn gallery_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let (verb, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let rest = rest.trim();
        let all = Listed::default();
        match (verb, rest) {
            ("" | "list", "") => self.list_pictures(at, all, 1).await,
            ("list" | "page", page) => match page.parse() {
                Ok(page) => self.list_pictures(at, all, page).await,
                Err(_) => Ok(refused("`/gallery list 2` shows the second page.".into())),
            },
            ("pinned", "") => self.list_pictures(at, Listed { is_pinned: true, ..all }, 1).await,
            ("pinned", page) => match page.parse() {
                Ok(page) => self.list_pictures(at, Listed { is_pinned: true, ..all }, page).await,
                Err(_) => Ok(refused("`/gallery pinned 2` shows the second page.".into())),
            },
            ("show", number) if !number.is_empty() => self.show_picture(at, number).await,
            ("search", words) if !words.is_empty() => {
                let (words, page) = split_page(words);
                self.list_pictures(at, Listed::with(words), page).await
            }
            ("by", name) if !name.is_empty() => {
                let (name, page) = split_page(name);
                self.list_pictures(at, Listed::by(name, &at.line.person), page).await
            }
            _ => Ok(refused(
                "`/gallery list`, `/gallery list 2`, `/gallery pinned`, `/gallery show 7`, `/gallery by NAME`, `/gallery by me` or \
                 `/gallery search WORDS`."
                    .into(),
            )),
        }
    }

    /// Lists a page of pictures, with a contact sheet.
    async fn list_pictures(
        &self,
        at: &CommandContext<'_>,
        listed: Listed,
        page: usize,
    ) -> Result<CommandAnswer, Error> {
        // A picture for adults is shown only where such pictures may be drawn.
        let rules = self.pictures.rules(at.adapter, &at.place).await?;
        let (read_scope, wanted) = (at.read_scope.clone(), listed.clone());
        let part = (page.saturating_sub(1).saturating_mul(PAGE), PAGE);
        let found = move |memory: &Memory| {
            memory.pictures().page(&read_scope, part, |row| is_suitable(&rules, row) && wanted.wants(row))
        };
        let found = self.services.blocking(found).await?;
        if page == 0 || found.rows.is_empty() && page > 1 {
            return Ok(refused("There is no such page.".into()));
        }
        let cut = if found.is_cut { "\nOlder pictures were not looked at." } else { "" };
        if found.rows.is_empty() {
            return Ok(done(format!("{}{cut}", listed.none())));
        }
        let mut text = format!("{}, newest first (page {page}):\n", listed.title());
        let mut chats = HashMap::new();
        for row in &found.rows {
            let seed = serde_json::from_value::<PictureLook>(row.settings.clone()).map(|look| look.seed).unwrap_or(0);
            let by = self.asked_by(at, row, &mut chats).await;
            let pin = if row.is_pinned { "📌 " } else { "" };
            let (what, day) = (shortened(row.prompt.as_str(), 90).replace('`', "'"), at.day(row.asked_at));
            text.push_str(&format!("- `{}` {pin}{what} ({day}, seed {seed}{by})\n", row.number));
        }
        text.push_str(&format!("`/gallery show NUMBER` shows it whole.{cut}"));
        let choices = listed.turns(page, found.has_more);
        let files = self.contact_sheet(at, &found.rows).await?.into_iter().collect();
        Ok(CommandAnswer { choices, files, ..done(text) })
    }

    /// Returns who asked for a picture, and where, if that is another chat with a name. The chat is named only while whoever
    /// may see the picture can read it. `chats` holds the names that were looked up, by chat.
    async fn asked_by(
        &self,
        at: &CommandContext<'_>,
        row: &PictureRow,
        chats: &mut HashMap<ChatId, Option<(Scope, String)>>,
    ) -> String {
        let by = match &row.by {
            _ if row.person == at.line.person => ", yours".to_owned(),
            Some(by) => format!(", by {}", shortened(by.as_str(), 40).replace(['`', '*', '_'], "")),
            None => String::new(),
        };
        if row.chat == at.chat.id || row.platform != *at.platform {
            return by;
        }
        if !chats.contains_key(&row.chat) {
            chats.insert(row.chat.clone(), self.named_chat(at, &row.chat).await);
        }
        match chats.get(&row.chat).and_then(Option::as_ref).filter(|(scope, _)| *scope == row.scope) {
            Some((_, chat)) => format!("{by}, in {}", shortened(chat, 40).replace(['`', '*', '_'], "")),
            None => by,
        }
    }

    /// Returns the scope and the name of a chat that the person reads. A chat that cannot be looked up has no name.
    async fn named_chat(&self, at: &CommandContext<'_>, chat: &ChatId) -> Option<(Scope, String)> {
        let place = self.services.place(at.adapter, chat, &at.line.person).await.ok().flatten()?;
        Some((place.scope(), at.adapter.place_names()?.chat_name(chat).await?))
    }

    /// Returns thumbnails of the pictures as one file; `None` if no file of them is kept any more.
    async fn contact_sheet(&self, at: &CommandContext<'_>, rows: &[PictureRow]) -> Result<Option<AnswerFile>, Error> {
        let mut pictures = Vec::new();
        for row in rows {
            let (read_scope, id) = (at.read_scope.clone(), row.message.clone());
            let file = self.services.blocking(move |memory| memory.pictures().file(&read_scope, &id)).await?;
            let Some((_, bytes)) = file else { continue };
            // One picture is in memory at a time.
            let small = |bytes: Vec<u8>| {
                Picture::read(&bytes, &PictureLimits::default()).map(|one| one.thumbnail(THUMBNAIL)).ok()
            };
            pictures.extend(self.pictures.decode(bytes, small).await?);
        }
        let sheet = Picture::contact_sheet(&pictures, COLUMNS, THUMBNAIL);
        let sheet = (!pictures.is_empty()).then(|| sheet.to_jpeg().ok()).flatten();
        Ok(sheet.map(|bytes| {
            let part = Part::new("gallery.jpg", Some("image/jpeg"), bytes.len() as u64);
            AnswerFile {
                part: part.described(Some("Thumbnails of the pictures in the list")),
                content: FileContent(bytes),
            }
        }))
    }

    /// Gives the person a picture.
    async fn show_picture(&self, at: &CommandContext<'_>, number: &str) -> Result<CommandAnswer, Error> {
        let id = number.parse().ok().and_then(message_of);
        let read_scope = at.read_scope.clone();
        let found = match id {
            None => None,
            Some(id) => {
                self.services
                    .blocking(move |memory| {
                        let Some(row) = memory.pictures().get(&read_scope, &id)? else { return Ok(None) };
                        Ok(memory.pictures().file(&read_scope, &id)?.map(|file| (row, file)))
                    })
                    .await?
            }
        };
        let Some((row, (part, bytes))) = found else {
            return Ok(refused(NO_SUCH.into()));
        };
        let rules = self.pictures.rules(at.adapter, &at.place).await?;
        if !is_suitable(&rules, &row) {
            return Ok(refused(NO_SUCH.into()));
        }
        let pin = if row.is_pinned { "📌 " } else { "" };
        let text =
            format!("{pin}Picture {}, {}: {}", row.number, at.day(row.asked_at), shortened(row.prompt.as_str(), 400));
        let choices = [("Again", "again"), ("Variation", "vary"), ("Delete", "delete")];
        let choices = choices
            .map(|(label, verb)| Choice { label: label.into(), line: format!("/picture {verb} {}", row.number) });
        let files = vec![AnswerFile { part, content: FileContent(bytes) }];
        Ok(CommandAnswer { files, choices: choices.into(), ..done(text) })
    }
}

/// Splits `page:2` from the end of a text; the first page if there is none.
fn split_page(text: &str) -> (&str, usize) {
    let (before, last) = text.rsplit_once(' ').unwrap_or(("", text));
    match last.strip_prefix("page:").and_then(|page| page.parse().ok()) {
        Some(page) => (before, page),
        None => (text, 1),
    }
}
