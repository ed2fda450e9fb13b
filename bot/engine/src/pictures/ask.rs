//! Asks for a picture: rules first, then limits, then the queue.

use azera_adapter::Platform;
use azera_memory::{Asked, NewPicture, PictureRow, SourceScope};
use azera_personas::PictureStyle;
use azera_pictures::{PromptRules, Waiting, Wish, fair_order};
use azera_types::{ChatId, MessageId, PersonId, PersonaId, Place, PlatformId, Scope, Text, Timestamp};

use super::{Basis, NO_BACKEND, PictureLook, Pictures, PlaceWishes, Start};
use crate::error::Error;
use crate::turn::{any_seed, derived_seed};

/// A picture that somebody wants.
pub(crate) struct PictureRequest<'a> {
    pub(crate) platform: &'a dyn Platform,
    pub(crate) place: &'a Place,
    pub(crate) persona: &'a PersonaId,
    pub(crate) persona_name: &'a str,
    /// How the persona's pictures look.
    pub(crate) style: &'a PictureStyle,
    pub(crate) person: &'a PersonId,
    /// The day for the limits, such as `2026-03-01`.
    pub(crate) day: String,
    pub(crate) wish: Wish,
    pub(crate) name: Option<String>,
    /// The picture whose prompt and settings it takes over.
    pub(crate) original: Option<Basis>,
    /// The picture that the drawing starts from.
    pub(crate) start: Option<Start>,
    /// True if it is the picture that the drawing starts from, drawn larger.
    pub(crate) is_upscaled: bool,
    /// The persona that it portrays.
    pub(crate) portrait_of: Option<PersonaId>,
    /// The messages that it is built on, and what may be read with them.
    pub(crate) sources: Vec<MessageId>,
    pub(crate) source_scopes: Vec<SourceScope>,
    pub(crate) from: Timestamp,
}

/// The answer to a request.
pub(crate) enum Queued {
    /// It waits, with its place in the queue from 1.
    Waits(Box<PictureRow>, usize),
    /// It does not. The text says why.
    Refused(String),
    /// It does not, because of a limit that passes. The text says which.
    TooMany(String),
}

/// Returns what a picture shows that excludes these words: excluded clothes ask for a naked person, and excluded age for
/// a child.
fn opposite_of(negative: &str) -> &'static str {
    const CLOTHES: [&str; 16] = [
        "cloth",
        "dress",
        "shirt",
        "pants",
        "trousers",
        "underwear",
        "lingerie",
        "bra",
        "bikini",
        "swimsuit",
        "skirt",
        "covered",
        "censor",
        "jeans",
        "uniform",
        "garment",
    ];
    const AGE: [&str; 9] = ["adult", "mature", "grown", "old", "aged", "elder", "wrinkle", "woman", "man"];
    let negative = negative.to_lowercase();
    let words: Vec<&str> = negative.split(|c: char| !c.is_alphanumeric()).collect();
    let excludes = |list: &[&str]| words.iter().any(|word| list.iter().any(|listed| word.starts_with(listed)));
    match (excludes(&CLOTHES), excludes(&AGE)) {
        (true, true) => "nude child",
        (true, false) => "nude",
        (false, true) => "child",
        (false, false) => "",
    }
}

impl Pictures {
    /// Queues a picture.
    pub(crate) async fn ask(&self, request: PictureRequest<'_>) -> Result<Queued, Error> {
        let Some(settings) = self.settings() else { return Ok(Queued::Refused(NO_BACKEND.into())) };
        let rules = self.rules(request.platform, request.place).await?;
        let start = request.start.as_ref();
        let negative = request.wish.negative.as_deref().unwrap_or_default();
        let style = if request.wish.is_plain { PictureStyle::default() } else { request.style.clone() };
        let texts = [
            request.wish.prompt.as_str(),
            request.name.as_deref().unwrap_or_default(),
            start.map(|start| start.prompt.as_str()).unwrap_or_default(),
            style.style.as_deref().unwrap_or_default(),
            // Some servers read it as part of the prompt. What it excludes can ask for the opposite.
            negative,
            opposite_of(negative),
        ];
        let start_traits = start.map(|start| start.traits).unwrap_or_default();
        if let Err(refusal) = rules.check_from(&texts, start_traits) {
            tracing::info!(chat = %request.place.chat, "a picture is refused by a rule");
            return Ok(Queued::Refused(refusal.to_string()));
        }
        let limits = settings.model.limits();
        if request.is_upscaled && !limits.upscales {
            return Ok(Queued::Refused("The server that draws cannot draw pictures larger.".into()));
        }
        if start.is_some() && !request.is_upscaled && !limits.takes_reference {
            return Ok(Queued::Refused("The server that draws cannot start from a picture.".into()));
        }
        let mut request = request;
        if let Some(start) = &request.start {
            request.wish.size = request.wish.size.or(Some(settings.size_like(start.size)));
        }
        let mut row = self.row(&request)?;
        let seed = match self.services.config.seed {
            None => any_seed(),
            // Reproducible: the same request at the same time draws the same picture.
            Some(seed) => {
                derived_seed(seed, &MessageId::new(row.asked_at.to_string()).unwrap_or(row.message.clone()), 0)
            }
        };
        let (is_upscaled, portrait_of) = (request.is_upscaled, request.portrait_of);
        let mut look = PictureLook {
            is_upscaled,
            portrait_of,
            style: style.style,
            style_negative: style.negative,
            ..settings.look(&request.wish, seed)
        };
        if let Some(start) = request.start {
            start.under(&mut row, &mut look);
        }
        row.settings = serde_json::to_value(look).unwrap_or_default();
        let new = NewPicture {
            row,
            day: request.day,
            most_by_person: settings.per_person,
            most_in_place: settings.per_place,
            most_waiting: settings.queue,
            most_waiting_by_person: settings.queue_per_person,
        };
        Ok(match self.services.blocking(move |memory| memory.pictures().ask(new)).await? {
            Asked::Waits(row) => {
                let position = self.position(&row).await?;
                self.wake.notify_one();
                Queued::Waits(row, position)
            }
            Asked::QueueFull => Queued::TooMany("Too many pictures are waiting. Ask again in a few minutes.".into()),
            Asked::PersonWaits => Queued::TooMany(format!(
                "You have {} pictures waiting, and that is the most. `/picture cancel` takes one back.",
                settings.queue_per_person
            )),
            Asked::PersonHadEnough => Queued::TooMany(format!(
                "You have asked for {} pictures today, and that is the most. Ask again tomorrow.",
                settings.per_person
            )),
            Asked::PlaceHadEnough => Queued::TooMany(format!(
                "This place has had {} pictures today, and that is the most. Ask again tomorrow.",
                settings.per_place
            )),
        })
    }

    fn row(&self, request: &PictureRequest<'_>) -> Result<PictureRow, Error> {
        let scope = request.place.scope();
        let mut row = PictureRow {
            number: 0,
            message: MessageId::new("post~0").map_err(|error| azera_memory::Error::Invalid(error.to_string()))?,
            platform: request.platform.id().clone(),
            chat: request.place.chat.clone(),
            persona: request.persona.clone(),
            persona_name: request.persona_name.to_owned(),
            source_scopes: request.source_scopes.clone(),
            from: request.from,
            sources: request.sources.clone(),
            person: request.person.clone(),
            prompt: Text::new(&request.wish.prompt),
            name: request.name.as_deref().map(Text::new),
            settings: serde_json::Value::Null,
            starts_from: None,
            asked_at: self.services.clock.now(),
            tries: 0,
            drawn_at: None,
            model: None,
            is_pinned: false,
            scope,
        };
        if let Some(original) = &request.original {
            original.clone().under(&mut row);
        }
        Ok(row)
    }

    /// Returns the rules for prompts in a place, by what the platform and the place say now.
    pub(crate) async fn rules(&self, platform: &dyn Platform, place: &Place) -> Result<PromptRules, Error> {
        let wishes = self.wishes(platform.id(), &place.scope()).await?;
        let is_for_adults = wishes.adult && platform.is_for_adults(&place.chat).await?;
        Ok(wishes.rules(is_for_adults))
    }

    /// Returns what a place wants of pictures.
    pub(crate) async fn wishes(&self, platform: &PlatformId, home: &Scope) -> Result<PlaceWishes, Error> {
        let (platform, home) = (platform.clone(), home.clone());
        let saved = self.services.blocking(move |memory| memory.pictures().wishes(&platform, &home)).await?;
        Ok(saved.and_then(|saved| serde_json::from_value(saved).ok()).unwrap_or_default())
    }

    /// Stores what a place wants of pictures.
    pub(crate) async fn set_wishes(
        &self,
        platform: &PlatformId,
        home: &Scope,
        wishes: &PlaceWishes,
    ) -> Result<(), Error> {
        let (platform, home) = (platform.clone(), home.clone());
        let wishes = serde_json::to_value(wishes).unwrap_or_default();
        self.services.blocking(move |memory| memory.pictures().set_wishes(&platform, &home, &wishes)).await
    }

    /// Returns the waiting pictures in the order in which they are drawn.
    pub(crate) async fn queue(&self) -> Result<Vec<PictureRow>, Error> {
        let mut rows = self.services.blocking(|memory| memory.pictures().waiting()).await?;
        let waiting: Vec<Waiting<Scope, PersonId>> = rows
            .iter()
            .map(|row| Waiting { number: row.number, place: row.scope.clone(), person: row.person.clone() })
            .collect();
        let (served, running): (Vec<_>, Vec<_>) = {
            let progress = self.progress();
            (progress.served.iter().cloned().collect(), progress.running.keys().cloned().collect())
        };
        let order = fair_order(&waiting, &served);
        let is_running = |row: &PictureRow| running.contains(&row.message);
        rows.sort_by_key(|row| (!is_running(row), order.iter().position(|number| *number == row.number)));
        Ok(rows)
    }

    async fn position(&self, row: &PictureRow) -> Result<usize, Error> {
        let queue = self.queue().await?;
        Ok(queue.iter().position(|other| other.number == row.number).map_or(queue.len().max(1), |at| at + 1))
    }

    /// Takes a picture back that waits or is being drawn: the newest of the person in the chat, or the one of that
    /// number. With `of_all`, pictures of others too. Returns its number.
    pub(crate) async fn cancel(
        &self,
        platform: &dyn Platform,
        chat: &ChatId,
        person: &PersonId,
        number: Option<u64>,
        of_all: bool,
    ) -> Result<Option<u64>, Error> {
        let waiting = self.services.blocking(|memory| memory.pictures().waiting()).await?;
        let is_theirs = |row: &&PictureRow| row.chat == *chat && (of_all || row.person == *person);
        let found = waiting.iter().rev().filter(is_theirs).find(|row| match number {
            Some(number) => row.number == number,
            None => row.person == *person,
        });
        let Some(row) = found else { return Ok(None) };
        self.give_up(platform, row).await?;
        Ok(Some(row.number))
    }

    /// Removes a picture from the queue, stops drawing it, and removes the message about its progress.
    pub(super) async fn give_up(&self, platform: &dyn Platform, row: &PictureRow) -> Result<(), Error> {
        let message = row.message.clone();
        self.services.blocking(move |memory| memory.pictures().cancel(&message)).await?;
        if let Some(running) = self.progress().running.get(&row.message) {
            running.token.cancel();
        }
        if let Err(error) = platform.retract(&row.chat, &row.message, row.asked_at).await {
            tracing::warn!(message = %row.message, %error, "cannot remove the message about a picture");
        }
        Ok(())
    }
}
