//! `/gallery`: the pictures that may be shown here.

use azera_adapter::{AnswerFile, Choice, CommandAnswer, FileContent};
use azera_memory::PictureRow;
use azera_model_image::{Picture, PictureLimits};
use azera_types::{MessageId, Part};

use super::{CommandContext, Commands, done, refused};
use crate::error::Error;
use crate::pictures::{PictureLook, shortened};

/// Pictures of a page.
const PAGE: usize = 9;

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
        match (verb, rest) {
            ("" | "list", "") => self.list_pictures(at, "", 1).await,
            ("list" | "page", page) => match page.parse() {
                Ok(page) => self.list_pictures(at, "", page).await,
                Err(_) => Ok(refused("`/gallery list 2` shows the second page.".into())),
            },
            ("show", number) if !number.is_empty() => self.show_picture(at, number).await,
            ("search", words) if !words.is_empty() => {
                let (last, before) = words.rsplit_once(' ').map_or((words, ""), |(before, last)| (last, before));
                match last.strip_prefix("page:").and_then(|page| page.parse().ok()) {
                    Some(page) => self.list_pictures(at, before, page).await,
                    None => self.list_pictures(at, words, 1).await,
                }
            }
            _ => {
                Ok(refused("`/gallery list`, `/gallery list 2`, `/gallery show 7` or `/gallery search WORDS`.".into()))
            }
        }
    }

    /// Lists a page of pictures, with a contact sheet.
    async fn list_pictures(&self, at: &CommandContext<'_>, words: &str, page: usize) -> Result<CommandAnswer, Error> {
        let words: Vec<String> = words.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let mut found = self.pictures_here(at).await?;
        // A picture for adults is shown only where such pictures may be drawn.
        let rules = self.pictures.rules(at.adapter, &at.place).await?;
        found.retain(|row| rules.check(&[row.prompt.as_str(), row.name.as_deref().unwrap_or_default()]).is_ok());
        found.retain(|row| {
            let text = format!("{} {}", row.prompt.as_str(), row.name.as_deref().unwrap_or_default()).to_lowercase();
            words.iter().all(|word| text.contains(word))
        });
        let pages = found.len().div_ceil(PAGE);
        if found.is_empty() {
            return Ok(done("There are no pictures that may be shown here.".into()));
        }
        let rows: Vec<PictureRow> =
            found.into_iter().skip(page.saturating_sub(1).saturating_mul(PAGE)).take(PAGE).collect();
        if page == 0 || rows.is_empty() {
            return Ok(refused(format!("There are {pages} pages.")));
        }
        let mut text = format!("Pictures that may be shown here, newest first (page {page} of {pages}):\n");
        for row in &rows {
            let seed = serde_json::from_value::<PictureLook>(row.settings.clone()).map(|look| look.seed).unwrap_or(0);
            let by = if row.person == at.line.person { ", yours" } else { "" };
            let (what, day) = (shortened(row.prompt.as_str(), 90).replace('`', "'"), at.day(row.asked_at));
            text.push_str(&format!("- `{}` {what} ({day}, seed {seed}{by})\n", row.number));
        }
        text.push_str("`/gallery show NUMBER` shows it whole.");
        let mut choices = Vec::new();
        // A line of a button has at most 80 bytes.
        let turn = |page: usize| match words.as_slice() {
            [] => format!("/gallery list {page}"),
            words => format!("/gallery search {} page:{page}", words.join(" ")),
        };
        for (label, page, exists) in [("◀", page.saturating_sub(1), page > 1), ("▶", page + 1, page < pages)] {
            let line = turn(page);
            if exists && line.len() <= 80 {
                choices.push(Choice { label: label.into(), line });
            }
        }
        let files = self.contact_sheet(at, &rows).await?.into_iter().collect();
        Ok(CommandAnswer { choices, files, ..done(text) })
    }

    /// Returns thumbnails of the pictures as one file; `None` if no file of them is kept any more.
    async fn contact_sheet(&self, at: &CommandContext<'_>, rows: &[PictureRow]) -> Result<Option<AnswerFile>, Error> {
        let (read_scope, ids) = (at.read_scope.clone(), rows.iter().map(|row| row.message.clone()).collect::<Vec<_>>());
        let sheet = self
            .services
            .blocking(move |memory| {
                let mut pictures = Vec::new();
                for id in ids {
                    let Some((_, bytes)) = memory.pictures().file(&read_scope, &id)? else { continue };
                    // One picture is in memory at a time.
                    pictures.extend(
                        Picture::read(&bytes, &PictureLimits::default()).map(|one| one.thumbnail(THUMBNAIL)).ok(),
                    );
                }
                let sheet = Picture::contact_sheet(&pictures, COLUMNS, THUMBNAIL);
                Ok((!pictures.is_empty()).then(|| sheet.to_jpeg().ok()).flatten())
            })
            .await?;
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
        let id = number.parse::<u64>().ok().and_then(|number| MessageId::new(format!("post~{number}")).ok());
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
            return Ok(refused("There is no such picture that may be shown here; `/gallery` lists them.".into()));
        };
        let rules = self.pictures.rules(at.adapter, &at.place).await?;
        if rules.check(&[row.prompt.as_str(), row.name.as_deref().unwrap_or_default()]).is_err() {
            return Ok(refused("There is no such picture that may be shown here; `/gallery` lists them.".into()));
        }
        let text = format!("Picture {}, {}: {}", row.number, at.day(row.asked_at), shortened(row.prompt.as_str(), 400));
        let choices = [("Again", "again"), ("Variation", "vary"), ("Delete", "delete")];
        let choices = choices
            .map(|(label, verb)| Choice { label: label.into(), line: format!("/picture {verb} {}", row.number) });
        let files = vec![AnswerFile { part, content: FileContent(bytes) }];
        Ok(CommandAnswer { files, choices: choices.into(), ..done(text) })
    }
}
