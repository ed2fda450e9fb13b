//! Asks for a picture: rules first, then limits, then the queue.

use azera_adapter::Platform;
use azera_memory::{Asked, Memory, NewPicture, PictureRow, SourceScope};
use azera_personas::PictureStyle;
use azera_pictures::{PromptRules, Refusal, Traits, Waiting, Wish, fair_order};
use azera_types::{ChatId, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, Scope, Text, Timestamp};

use super::naming::Besides;
use super::start::StartBytes;
use super::{Basis, MAX_SERVED, NO_BACKEND, PictureLook, PictureSettings, Pictures, PlaceWishes, Start, Unknown};
use crate::error::Error;
use crate::turn::{any_seed, derived_seed};

/// Said where the server draws from words alone.
const NO_REFERENCE: &str = "The server that draws cannot start from a picture.";

/// Said where only other models of the server start from pictures.
const NO_EDITING: &str = "That model cannot start from a picture. Choose another one.";

/// A picture that somebody wants.
pub(crate) struct PictureRequest<'a> {
    pub(crate) platform: &'a dyn Platform,
    pub(crate) place: &'a Place,
    pub(crate) persona: &'a PersonaId,
    pub(crate) persona_name: &'a str,
    /// How the persona's pictures look.
    pub(crate) style: PictureStyle,
    pub(crate) person: &'a PersonId,
    /// The person's displayed name; `None` if it is not known.
    pub(crate) by: Option<&'a str>,
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
    /// It does not, because there is no such model or sampler.
    Unknown(Unknown),
    /// It does not, by a rule about what is drawn.
    Forbidden(Refusal),
    /// It does not, because of a limit that passes. The text says which.
    TooMany(String),
}

/// Checks a request, and returns what it names.
fn named(request: &PictureRequest<'_>, style: &PictureStyle, rules: &PromptRules) -> Result<Traits, Refusal> {
    // The words about a start are no prompt.
    if request.wish.prompt.trim().is_empty() {
        return Err(Refusal::Empty);
    }
    let besides = Besides {
        name: request.name.as_deref(),
        negative: request.wish.negative.as_deref(),
        style: style.style.as_deref(),
        style_negative: style.negative.as_deref(),
    };
    let start = request.start.as_ref();
    let about_start = start.into_iter().flat_map(|start| &start.words).map(String::as_str);
    let texts: Vec<&str> = besides.texts(&request.wish.prompt).into_iter().chain(about_start).collect();
    let start_traits = start.map(|start| start.traits).unwrap_or_default();
    rules.check_from(&texts, start_traits)?;
    Ok(Traits::of(&texts).and(start_traits))
}

/// What a wanted picture is based on besides its prompt.
#[derive(Default)]
pub(crate) struct Base {
    /// What it is called.
    pub(crate) name: Option<String>,
    /// The picture whose prompt and settings it takes over.
    pub(crate) original: Option<Basis>,
    /// The picture that the drawing starts from.
    pub(crate) start: Option<Start>,
    /// True if it is that picture, drawn larger.
    pub(crate) is_upscaled: bool,
    /// The persona that it portrays.
    pub(crate) portrait_of: Option<PersonaId>,
}

/// A request that the rules allow.
pub(crate) struct Allowed {
    pub(crate) picture: NewPicture,
    /// The id of the picture that came with it, which is kept for it alone.
    upload: Option<String>,
}

impl Pictures {
    /// Queues a picture.
    pub(crate) async fn ask(&self, request: PictureRequest<'_>) -> Result<Queued, Error> {
        let Allowed { picture, upload } = match self.allow(request).await? {
            Ok(allowed) => allowed,
            Err(refused) => return Ok(refused),
        };
        let asked = self.services.blocking(move |memory| memory.pictures().ask(picture)).await;
        if let Some(id) = upload.filter(|_| !matches!(asked, Ok(Asked::Waits(_)))) {
            self.services.references.remove(&id);
        }
        self.queued(asked?).await
    }

    /// Returns what the answer to a request means for the person, and begins to draw.
    pub(crate) async fn queued(&self, asked: Asked) -> Result<Queued, Error> {
        Ok(match (asked, self.settings()) {
            (Asked::Waits(row), _) => {
                // It is drawn, even if its place in the queue cannot be told.
                self.wake.notify_one();
                let position = self.position(&row).await?;
                self.note_place(&row, position);
                Queued::Waits(row, position)
            }
            (limit, Some(settings)) => Queued::TooMany(settings.told_of(&limit)),
            (_, None) => Queued::Refused(NO_BACKEND.into()),
        })
    }

    /// Checks a request by the rules. The inner error says why it is refused.
    pub(crate) async fn allow(&self, mut request: PictureRequest<'_>) -> Result<Result<Allowed, Queued>, Error> {
        let Some(settings) = self.settings() else { return Ok(Err(Queued::Refused(NO_BACKEND.into()))) };
        let rules = self.rules(request.platform, request.place).await?;
        let style = if request.wish.is_plain { PictureStyle::default() } else { request.style.clone() };
        let named = match named(&request, &style, &rules) {
            Ok(named) => named,
            Err(refusal) => {
                tracing::info!(chat = %request.place.chat, "a picture is refused by a rule");
                return Ok(Err(Queued::Forbidden(refusal)));
            }
        };
        if let Err(unknown) = self.check_choices(settings, &mut request.wish).await {
            return Ok(Err(Queued::Unknown(unknown)));
        }
        if let Some(why) = self.unable(settings, &request) {
            return Ok(Err(Queued::Refused(why.to_owned())));
        }
        if let Some(start) = &request.start {
            request.wish.size = request.wish.size.or(Some(settings.size_like(start.size)));
        }
        let mut row = self.row(&request)?;
        let mut look = PictureLook {
            is_upscaled: request.is_upscaled,
            portrait_of: request.portrait_of,
            style: style.style,
            style_negative: style.negative,
            traits: named,
            ..settings.look(&request.wish, self.seed(&row))
        };
        let mut upload = None;
        if let Some(mut start) = request.start {
            if let StartBytes::Given(png) = start.bytes {
                match self.keep(request.person, png).await? {
                    Ok(id) => (start.bytes, upload) = (StartBytes::Uploaded(id.clone()), Some(id)),
                    Err(why) => return Ok(Err(Queued::TooMany(format!("I cannot keep that picture: {why}.")))),
                }
            }
            start.under(&mut row, &mut look);
        }
        // RAM alone would lose it with the next start.
        let largest = self.services.memory.files().largest();
        let given = look.uploaded.as_ref();
        let given = given.and_then(|id| self.services.references.get(request.person, id, self.services.clock.now()));
        let start = given.filter(|png| png.len() as u64 <= largest);
        row.settings = serde_json::to_value(look).unwrap_or_default();
        let picture = NewPicture { row, quota: settings.quota(request.day), start };
        Ok(Ok(Allowed { picture, upload }))
    }

    /// Returns why a person cannot start a drawing from a picture in a place now: nothing draws, or a limit.
    pub(crate) async fn obstacle(
        &self,
        person: &PersonId,
        (platform, scope): (&PlatformId, Scope),
        day: String,
    ) -> Result<Option<String>, Error> {
        let Some(settings) = self.settings() else { return Ok(Some(NO_BACKEND.to_owned())) };
        if !settings.model.limits().takes_reference {
            return Ok(Some(NO_REFERENCE.to_owned()));
        }
        let (quota, person, platform) = (settings.quota(day), person.clone(), platform.clone());
        let limit = move |memory: &Memory| memory.pictures().limit(&person, (&platform, &scope), &quota);
        Ok(self.services.blocking(limit).await?.map(|limit| settings.told_of(&limit)))
    }

    /// Returns why the server cannot draw this, or its file could not be kept.
    fn unable(&self, settings: &PictureSettings, request: &PictureRequest<'_>) -> Option<&'static str> {
        let limits = settings.model.limits();
        let start = request.start.as_ref()?;
        if !request.is_upscaled {
            return match limits.takes_reference {
                false => Some(NO_REFERENCE),
                true => (!settings.model.can_edit(request.wish.model.as_deref())).then_some(NO_EDITING),
            };
        }
        if !limits.upscales {
            return Some("The server that draws cannot draw pictures larger.");
        }
        // Four times the pixels have more than twice the bytes.
        let is_too_large = start.file_bytes.saturating_mul(2) > self.services.memory.files().largest();
        is_too_large.then_some("Drawn larger, the picture would be larger than the files that are kept here.")
    }

    fn seed(&self, row: &PictureRow) -> u32 {
        match self.services.config.seed {
            None => any_seed(),
            // Reproducible: the same request at the same time draws the same picture.
            Some(seed) => {
                derived_seed(seed, &MessageId::new(row.asked_at.to_string()).unwrap_or(row.message.clone()), 0)
            }
        }
    }

    pub(super) fn row(&self, request: &PictureRequest<'_>) -> Result<PictureRow, Error> {
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
            by: request.by.map(Text::new),
            prompt: Text::new(&request.wish.prompt),
            name: request.name.as_deref().map(Text::new),
            settings: serde_json::Value::Null,
            starts_from: None,
            start: None,
            asked_at: self.services.clock.now(),
            day: String::new(),
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
        let mut rules = wishes.rules(is_for_adults);
        rules.forbidden.extend(self.forbidden_by_server(platform, place).await?);
        rules.forbidden.sort();
        rules.forbidden.dedup();
        Ok(rules)
    }

    /// Returns the words that the server of a private channel forbids: its list holds there, too.
    pub(crate) async fn forbidden_by_server(
        &self,
        platform: &dyn Platform,
        place: &Place,
    ) -> Result<Vec<String>, Error> {
        let PlaceKind::Private { realm: Some(realm), .. } = &place.kind else { return Ok(Vec::new()) };
        Ok(self.wishes(platform.id(), &Scope::Realm(realm.clone())).await?.forbidden)
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
        self.recall_served().await?;
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

    /// Reads once for whom the last pictures were drawn, so that the order stays fair after a restart.
    async fn recall_served(&self) -> Result<(), Error> {
        if self.progress().knows_served {
            return Ok(());
        }
        let served = self.services.blocking(|memory| memory.pictures().served(MAX_SERVED)).await?;
        let mut progress = self.progress();
        if !progress.knows_served {
            // What was drawn since the start is among them.
            (progress.served, progress.knows_served) = (served.into(), true);
        }
        Ok(())
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
        if row.person == *person {
            self.give_up(platform, row).await?;
        } else {
            self.give_up_saying(platform, row, "An admin took it back.").await?;
        }
        Ok(Some(row.number))
    }

    /// Removes a picture from the queue, stops drawing it, and removes the message about its progress. Returns true if it
    /// waited until now.
    pub(super) async fn give_up(&self, platform: &dyn Platform, row: &PictureRow) -> Result<bool, Error> {
        let message = row.message.clone();
        let given_up = self.services.blocking(move |memory| {
            let waited = memory.pictures().cancel(&message)?.is_some();
            Ok((waited, memory.pictures().is_told(&message)?))
        });
        let (waited, is_told) = given_up.await?;
        self.stop(row);
        if is_told {
            // The message about its progress says already why it is not drawn.
            return Ok(waited);
        }
        self.placed().await;
        if let Err(error) = platform.retract(&row.chat, &row.message, row.asked_at).await {
            tracing::warn!(message = %row.message, %error, "cannot remove the message about a picture");
        }
        Ok(waited)
    }
}
