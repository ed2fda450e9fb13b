//! Asks for a picture: rules first, then limits, then the queue.

use azera_adapter::Platform;
use azera_memory::{Asked, NewPicture, PictureRow, SourceScope};
use azera_pictures::{PromptRules, Waiting, Wish, fair_order};
use azera_types::{ChatId, MessageId, PersonId, PersonaId, Place, PlatformId, Scope, Text, Timestamp};

use super::{NO_BACKEND, PictureLook, Pictures, PlaceWishes};
use crate::error::Error;
use crate::turn::{any_seed, derived_seed};

/// A picture that somebody wants.
pub(crate) struct PictureRequest<'a> {
    pub(crate) platform: &'a dyn Platform,
    pub(crate) place: &'a Place,
    pub(crate) persona: &'a PersonaId,
    pub(crate) persona_name: &'a str,
    pub(crate) person: &'a PersonId,
    /// The day for the limits, such as `2026-03-01`.
    pub(crate) day: String,
    pub(crate) wish: Wish,
    pub(crate) name: Option<String>,
    /// The picture whose prompt and settings it takes over.
    pub(crate) original: Option<PictureRow>,
    /// True if the drawing starts from that picture, as a variation does.
    pub(crate) is_varied: bool,
    /// The uploaded picture that the drawing starts from.
    pub(crate) uploaded: Option<String>,
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
        let original = request.original.as_ref().map(|row| row.prompt.as_str()).unwrap_or_default();
        let negative = request.wish.negative.as_deref().unwrap_or_default();
        let texts = [
            request.wish.prompt.as_str(),
            request.name.as_deref().unwrap_or_default(),
            original,
            // Some servers read it as part of the prompt. What it excludes can ask for the opposite.
            negative,
            opposite_of(negative),
        ];
        if let Err(refusal) = rules.check(&texts) {
            tracing::info!(chat = %request.place.chat, "a picture is refused by a rule");
            return Ok(Queued::Refused(refusal.to_string()));
        }
        if (request.is_varied || request.uploaded.is_some()) && !settings.model.limits().takes_reference {
            return Ok(Queued::Refused("The server that draws cannot start from a picture.".into()));
        }
        let mut row = self.row(&request)?;
        let seed = match self.services.config.seed {
            None => any_seed(),
            // Reproducible: the same request at the same time draws the same picture.
            Some(seed) => {
                derived_seed(seed, &MessageId::new(row.asked_at.to_string()).unwrap_or(row.message.clone()), 0)
            }
        };
        let look = PictureLook {
            uploaded: request.uploaded,
            portrait_of: request.portrait_of,
            ..settings.look(&request.wish, seed)
        };
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
            starts_from: request.original.as_ref().filter(|_| request.is_varied).map(|row| row.message.clone()),
            asked_at: self.services.clock.now(),
            tries: 0,
            drawn_at: None,
            model: None,
            scope,
        };
        if let Some(original) = &request.original {
            row.sources.push(original.message.clone());
            row.from = row.from.min(original.from);
            row.source_scopes.extend(original.source_scopes.iter().cloned());
            if original.scope != row.scope {
                row.source_scopes.push(SourceScope { scope: original.scope.clone(), from: original.from });
            }
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
