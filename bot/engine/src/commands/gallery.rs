//! `/gallery`: the pictures that may be shown here.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use azera_adapter::{AnswerFile, Choice, CommandAnswer, FileContent};
use azera_memory::{Memory, PicturePage, PictureRow};
use azera_model_image::{Picture, PictureLimits};
use azera_types::{ChatId, Part, Scope};

use super::listed_pictures::{HERE, Listed};
use super::pictures::{NO_SUCH, message_of};
use super::{CommandContext, Commands, done, refused};
use crate::error::Error;
use crate::pictures::{PictureLook, is_suitable, mentions, shortened};

/// Pictures of a page.
const PAGE: usize = 9;

/// Pictures that are read at once while those of a chat are looked for.
const LOOKED_AT: usize = 100;

/// Columns of a contact sheet.
const COLUMNS: u32 = 3;

/// The side of a thumbnail, in pixels.
const THUMBNAIL: u32 = 256;

impl Commands {
    pub(super) async fn gallery_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let (verb, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let rest = rest.trim();
        if let ("show", number) = (verb, rest)
            && !number.is_empty()
        {
            return self.show_picture(at, number).await;
        }
        match Listed::parse(verb, rest, &at.line.person) {
            Some((listed, page)) => self.list_pictures(at, listed, page).await,
            None => Ok(refused(
                "`/gallery list`, `/gallery list 2`, `/gallery pinned`, `/gallery show 7`, `/gallery by NAME`, `/gallery by me`, `/gallery in \
                 CHANNEL`, `/gallery in here` or `/gallery search WORDS`. Behind it may stand `--by NAME`, `--in CHANNEL`, `--search \
                 WORDS` and `--pinned`."
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
        let part = (page.saturating_sub(1).saturating_mul(PAGE), PAGE);
        let wanted = listed.clone();
        let wants = Arc::new(move |row: &PictureRow| is_suitable(&rules, row) && wanted.wants(row));
        let found = match &listed.place {
            Some(place) => self.pictures_in(at, place, part, wants).await?,
            None => {
                let read_scope = at.read_scope.clone();
                self.services
                    .blocking(move |memory| memory.pictures().page(&read_scope, part, |row| wants(row)))
                    .await?
            }
        };
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

    /// Returns a page of the pictures that were asked for in a chat whose name holds these words, as far as the person reads
    /// that chat. The platform names the chats, so a page of the record may hold less than is wanted.
    async fn pictures_in(
        &self,
        at: &CommandContext<'_>,
        place: &str,
        (skip, limit): (usize, usize),
        wants: Arc<dyn Fn(&PictureRow) -> bool + Send + Sync>,
    ) -> Result<PicturePage, Error> {
        let (mut chats, mut from, mut skipped) = (HashMap::new(), 0, 0);
        let mut found = PicturePage { rows: Vec::new(), has_more: false, is_cut: false };
        loop {
            let (read_scope, wants) = (at.read_scope.clone(), Arc::clone(&wants));
            let part = (from, LOOKED_AT);
            let page = move |memory: &Memory| memory.pictures().page(&read_scope, part, |row| wants(row));
            let page = self.services.blocking(page).await?;
            from += page.rows.len();
            for row in page.rows {
                if !self.was_asked_in(at, &row, place, &mut chats).await {
                    continue;
                }
                if skipped < skip {
                    skipped += 1;
                } else if found.rows.len() < limit {
                    found.rows.push(row);
                } else {
                    found.has_more = true;
                    return Ok(found);
                }
            }
            if !page.has_more {
                found.is_cut = page.is_cut;
                return Ok(found);
            }
        }
    }

    /// Returns true if a picture was asked for in a chat whose name holds these words, or that they mention. `chats` holds the names that were
    /// looked up, by chat.
    async fn was_asked_in(
        &self,
        at: &CommandContext<'_>,
        row: &PictureRow,
        place: &str,
        chats: &mut HashMap<ChatId, Option<(Scope, String)>>,
    ) -> bool {
        if row.platform != *at.platform {
            return false;
        }
        if place == HERE {
            return row.chat == at.chat.id;
        }
        if !chats.contains_key(&row.chat) {
            chats.insert(row.chat.clone(), self.named_chat(at, &row.chat).await);
        }
        let named = chats.get(&row.chat).and_then(Option::as_ref).filter(|(scope, _)| *scope == row.scope);
        named.is_some_and(|(_, name)| name.to_lowercase().contains(place) || mentions(place, row.chat.as_str()))
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
        if pictures.is_empty() {
            return Ok(None);
        }
        let sheet = move || Picture::contact_sheet(&pictures, COLUMNS, THUMBNAIL).to_jpeg().ok();
        let sheet = tokio::task::spawn_blocking(sheet).await?;
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
        let choices = self.actions_on(&row);
        let files = vec![AnswerFile { part, content: FileContent(bytes) }];
        Ok(CommandAnswer { files, choices, ..done(text) })
    }
}

impl Commands {
    /// Returns everything that can be done with a picture.
    fn actions_on(&self, row: &PictureRow) -> Vec<Choice> {
        let upscales = self.services.upscales.load(Ordering::Relaxed);
        let pin = if row.is_pinned { ("Unpin", "unpin") } else { ("Pin", "pin") };
        let verbs = [("Again", "again"), ("Variation", "vary"), ("Upscale", "upscale"), ("Edit", "edit"), pin];
        let verbs = verbs.into_iter().chain([("Delete", "delete")]);
        let verbs = verbs.filter(|(_, verb)| upscales || *verb != "upscale");
        verbs
            .map(|(label, verb)| Choice { label: label.into(), line: format!("/picture {verb} {}", row.number) })
            .collect()
    }
}
