//! The drawn pictures of [`azera_adapter::PictureHost`]: lists, files and thumbnails. Every read makes its read scope from
//! what the platform reports at that moment.

use std::collections::HashMap;
use std::sync::Arc;

use azera_adapter::{FileContent, PictureSearch, Reading, ShownPicture};
use azera_memory::{Memory, PictureRow};
use azera_model_image::{Picture, PictureLimits};
use azera_types::{ChatId, PersonId, PlatformId, Scope, Text};

use crate::engine::Engine;
use crate::error::Error;
use crate::picture_host::shown;
use crate::pictures::{By, holds_words, is_suitable, words_of};
use crate::reading::{Here, MAX_LISTED};

/// The longer side of a thumbnail, in pixels.
const THUMBNAIL: u32 = 320;

/// The chats that were looked up, each with its scope and its name if the person reads it.
type Places = HashMap<ChatId, Option<(Scope, Text)>>;

impl Engine {
    pub(crate) async fn list_pictures(
        &self,
        platform: &PlatformId,
        at: Reading,
        search: &PictureSearch,
    ) -> Result<Vec<ShownPicture>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(Vec::new()) };
        let rules = self.0.pictures.rules(here.adapter.as_ref(), &here.place).await?;
        let words = words_of(&search.words);
        let by = Some(search.by.trim()).filter(|by| !by.is_empty()).map(|by| By::of(by, &at.person));
        let is_wanted = Arc::new(move |row: &PictureRow| {
            is_suitable(&rules, row) && by.as_ref().is_none_or(|by| by.asked_for(row)) && holds_words(row, &words)
        });
        let (mut places, mut found) = (Places::new(), Vec::new());
        let wanted_place = search.place.trim().to_lowercase();
        let (mut skip, mut last) = (0, u64::MAX);
        // The platform names the places, so a page of the record may hold less than is wanted.
        loop {
            let (read_scope, is_wanted) = (here.read_scope.clone(), Arc::clone(&is_wanted));
            let page = move |memory: &Memory| {
                memory.pictures().page(&read_scope, (skip, MAX_LISTED), |row: &PictureRow| is_wanted(row))
            };
            let page = self.0.services.blocking(page).await?;
            skip += page.rows.len();
            for row in page.rows {
                // One that was drawn meanwhile moves the others on.
                if row.number >= last {
                    continue;
                }
                last = row.number;
                let place = self.asked_in(platform, (&here, &at.person), &row, &mut places).await?;
                let is_there = place.as_deref().is_some_and(|place| place.to_lowercase().contains(&wanted_place));
                if wanted_place.is_empty() || is_there {
                    found.extend(shown(row).map(|picture| ShownPicture { place, ..picture }));
                }
                if found.len() == MAX_LISTED {
                    return Ok(found);
                }
            }
            if wanted_place.is_empty() || !page.has_more {
                return Ok(found);
            }
        }
    }

    /// Returns the name of the chat in which a picture was asked for, if the person reads that chat and its scope is still
    /// that of the picture.
    async fn asked_in(
        &self,
        platform: &PlatformId,
        (here, person): (&Here, &PersonId),
        row: &PictureRow,
        places: &mut Places,
    ) -> Result<Option<Text>, Error> {
        if row.platform != *platform {
            return Ok(None);
        }
        if !places.contains_key(&row.chat) {
            let named = self.0.services.named_place(here.adapter.as_ref(), &row.chat, person).await?;
            places.insert(row.chat.clone(), named);
        }
        let named = places.get(&row.chat).and_then(Option::as_ref);
        Ok(named.filter(|(scope, _)| *scope == row.scope).map(|(_, name)| name.clone()))
    }

    pub(crate) async fn read_picture(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<(ShownPicture, FileContent)>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(None) };
        let Some(row) = self.drawn(&here, number).await? else { return Ok(None) };
        let (read_scope, message) = (here.read_scope, row.message.clone());
        let file = self.0.services.blocking(move |memory| memory.pictures().file(&read_scope, &message)).await?;
        Ok(file.and_then(|(_, bytes)| Some((shown(row)?, FileContent(bytes)))))
    }

    pub(crate) async fn small_picture(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<(ShownPicture, FileContent)>, Error> {
        let Some((picture, FileContent(bytes))) = self.read_picture(platform, at, number).await? else {
            return Ok(None);
        };
        let small = |bytes: Vec<u8>| Picture::read(&bytes, &PictureLimits::default())?.thumbnail(THUMBNAIL).to_jpeg();
        let small = self.0.pictures.decode(bytes, small).await?;
        Ok(small.ok().map(|jpeg| (picture, FileContent(jpeg))))
    }
}
