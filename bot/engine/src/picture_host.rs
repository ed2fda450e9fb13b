//! The [`PictureHost`] interface: pictures for platforms that show more than messages. Every read makes its read scope from
//! what the platform reports at that moment.

use std::collections::HashSet;

use async_trait::async_trait;
use azera_adapter::{
    FileContent, HostError, PictureAsked, PictureChoices, PictureHost, PictureModel, PictureSearch, PictureStart,
    PictureState, PictureWish, Reading, ShownPicture, WaitingPicture,
};
use azera_memory::PictureRow;
use azera_model_image::MAX_PROMPT_CHARS;
use azera_pictures::Wish;
use azera_types::{ChatId, MessageId, PersonId, PlatformId};

use crate::engine::Engine;
use crate::error::Error;
use crate::pictures::{
    AS_LARGE_AS_CAN_BE, Base, Basis, NO_BACKEND, PictureLook, PictureRequest, Queued, REMIX_STRENGTH, Unknown,
    VARIATION_STRENGTH, Writer, is_suitable, style_of,
};
use crate::reading::Here;
use crate::zones;

/// Returns the message of a picture.
fn message_of(number: u64) -> Option<MessageId> {
    MessageId::new(format!("post~{number}")).ok()
}

pub(crate) fn shown(row: PictureRow) -> Option<ShownPicture> {
    let look: PictureLook = serde_json::from_value(row.settings).ok()?;
    let (width, height) = look.drawn.unwrap_or((look.width, look.height));
    Some(ShownPicture {
        number: row.number,
        message: row.message,
        prompt: row.prompt,
        negative: look.negative,
        name: row.name,
        width,
        height,
        steps: look.steps,
        seed: look.seed,
        chosen_model: look.model,
        sampler: look.sampler,
        model: row.model,
        by: row.by,
        place: None,
        at: row.drawn_at?,
        is_pinned: row.is_pinned,
    })
}

impl Engine {
    async fn ask_for_picture(
        &self,
        platform: &PlatformId,
        at: Reading,
        wish: PictureWish,
    ) -> Result<PictureAsked, Error> {
        let inner = &self.0;
        if inner.pictures.settings().is_none() {
            return Ok(PictureAsked::Refused(NO_BACKEND.to_owned()));
        }
        let Some(here) = self.here(platform, &at).await? else { return Err(Error::NotAllowed) };
        let refused = |why: &str| Ok(PictureAsked::Refused(why.to_owned()));
        if wish.prompt.trim().is_empty() {
            return refused("Say what to draw.");
        }
        if wish.prompt.chars().count() > MAX_PROMPT_CHARS {
            return Ok(PictureAsked::Refused(format!("A prompt has at most {MAX_PROMPT_CHARS} characters.")));
        }
        let (start, strength) = match wish.start {
            None => (None, None),
            Some(PictureStart::Drawn(number)) => {
                let Some(row) = self.drawn(&here, number).await? else {
                    return refused("There is no such picture to start from.");
                };
                match inner.pictures.start_of_message(&here.read_scope, row.message).await? {
                    Ok(Some(start)) => (Some(start), Some(VARIATION_STRENGTH)),
                    Ok(None) => return refused("There is no such picture to start from."),
                    Err(why) => return refused(&why),
                }
            }
            Some(PictureStart::Uploaded(id)) => match inner.pictures.uploaded_start(&at.person, &id) {
                Some(start) => (Some(start), Some(REMIX_STRENGTH)),
                None => return refused("The picture to start from is not kept any more. Upload it again."),
            },
        };
        let drawing = Wish {
            prompt: wish.prompt,
            negative: wish.negative,
            size: wish.size,
            seed: wish.seed,
            steps: wish.steps,
            guidance: wish.guidance,
            model: wish.model,
            sampler: wish.sampler,
            strength: wish.strength.or(strength),
            earlier_model: None,
            earlier_sampler: None,
            from: None,
            is_plain: false,
        };
        let base = Base { name: wish.name, start, ..Base::default() };
        self.queue_picture(platform, (&here, &at), drawing, base).await
    }

    /// Asks for a drawn picture at twice its size.
    async fn ask_for_upscale(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<PictureAsked>, Error> {
        let pictures = &self.0.pictures;
        let refused = |why: &str| Ok(Some(PictureAsked::Refused(why.to_owned())));
        if pictures.settings().is_none() {
            return refused(NO_BACKEND);
        }
        let Some(here) = self.here(platform, &at).await? else { return Err(Error::NotAllowed) };
        let Some(row) = self.drawn(&here, number).await? else { return Ok(None) };
        let start = match pictures.start_of_message(&here.read_scope, row.message.clone()).await? {
            Ok(Some(start)) => start,
            Ok(None) => return Ok(None),
            Err(why) => return refused(&why),
        };
        let Ok(look) = serde_json::from_value::<PictureLook>(row.settings.clone()) else {
            return refused("How that picture was made is no longer known.");
        };
        let Some(wish) = look.wish_for_upscale(&row, start.size) else { return refused(AS_LARGE_AS_CAN_BE) };
        let base = Base {
            name: None,
            original: Some(Basis::drawn(&row)),
            start: Some(start),
            is_upscaled: true,
            portrait_of: look.portrait_of,
        };
        Ok(Some(self.queue_picture(platform, (&here, &at), wish, base).await?))
    }

    async fn queue_picture(
        &self,
        platform: &PlatformId,
        (here, at): (&Here, &Reading),
        wish: Wish,
        base: Base,
    ) -> Result<PictureAsked, Error> {
        let inner = &self.0;
        let now = inner.services.clock.now();
        let persona = inner.services.persona(here.place.shared_realm(), &here.persona).await?;
        let calendar = inner.minds.calendar(&inner.access, platform, &here.place.scope()).await?;
        let request = PictureRequest {
            platform: here.adapter.as_ref(),
            place: &here.place,
            persona: &here.persona,
            persona_name: &persona.persona.name,
            style: style_of(&persona.persona, &wish.prompt, Writer::Person),
            person: &at.person,
            by: None,
            day: zones::day(now, &calendar.zone),
            wish,
            name: base.name,
            original: base.original,
            start: base.start,
            is_upscaled: base.is_upscaled,
            portrait_of: base.portrait_of,
            sources: Vec::new(),
            source_scopes: Vec::new(),
            from: now,
        };
        Ok(match inner.pictures.ask(request).await? {
            Queued::Waits(row, _) => PictureAsked::Waits(row.number),
            Queued::Refused(why) => PictureAsked::Refused(why),
            Queued::Forbidden(refusal) => PictureAsked::Refused(refusal.to_string()),
            Queued::TooMany(why) => PictureAsked::TooMany(why),
            Queued::Unknown(Unknown { kind, why }) => PictureAsked::Unknown { kind, why },
        })
    }

    /// Returns a drawn picture that may be shown here.
    pub(crate) async fn drawn(&self, here: &Here, number: u64) -> Result<Option<PictureRow>, Error> {
        let Some(message) = message_of(number) else { return Ok(None) };
        let read_scope = here.read_scope.clone();
        let row = self.0.services.blocking(move |memory| memory.pictures().get(&read_scope, &message)).await?;
        Ok(self.suitable(here, row.into_iter().collect()).await?.pop())
    }

    /// Returns the pictures whose prompts the rules of this place allow: a picture for adults is shown only where such
    /// pictures may be drawn.
    async fn suitable(&self, here: &Here, mut rows: Vec<PictureRow>) -> Result<Vec<PictureRow>, Error> {
        let rules = self.0.pictures.rules(here.adapter.as_ref(), &here.place).await?;
        rows.retain(|row| is_suitable(&rules, row));
        Ok(rows)
    }

    async fn state_of_picture(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<PictureState>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(None) };
        let Some(message) = message_of(number) else { return Ok(None) };
        // What waits has no message yet, so it is for the person who asked. The order matters: what ends meanwhile is drawn
        // or has a message.
        let waiting = self.0.pictures.queue().await?;
        let is_own = |row: &PictureRow| row.message == message && row.person == at.person && row.chat == at.chat;
        if let Some(before) = waiting.iter().position(is_own) {
            return Ok(Some(self.state_in_queue(&waiting, before)));
        }
        if let Some(row) = self.drawn(&here, number).await? {
            return Ok(shown(row).map(PictureState::Drawn));
        }
        let read_scope = here.read_scope;
        let told = self.0.services.blocking(move |memory| memory.messages().get(&read_scope, &message)).await?;
        // A picture that may not be shown here has a message, too.
        let why = told.filter(|told| told.parts.is_empty());
        Ok(why.and_then(|told| Some(PictureState::Failed(told.text.lines().last()?.to_owned()))))
    }

    /// Returns how far the picture is that has so many before it in the queue. Those that are being drawn do not wait.
    fn state_in_queue(&self, queue: &[PictureRow], before: usize) -> PictureState {
        let progress_of = |row: &PictureRow| self.0.pictures.progress_of(&row.message);
        let Some(progress) = queue.get(before).and_then(progress_of) else {
            let waiting = queue.iter().take(before).filter(|&row| progress_of(row).is_none()).count();
            return PictureState::Waits { place: waiting + 1 };
        };
        if let Some(downloaded) = progress.loading {
            return PictureState::Loading { downloaded };
        }
        PictureState::Drawing {
            step: progress.step.min(progress.steps),
            steps: progress.steps,
            preview: progress.preview.map(FileContent),
        }
    }

    async fn waiting_of(&self, platform: &PlatformId, person: &PersonId) -> Result<Vec<WaitingPicture>, Error> {
        let queue = self.0.pictures.queue().await?;
        let is_own = |row: &PictureRow| row.platform == *platform && row.person == *person;
        let chats: HashSet<ChatId> = queue.iter().filter(|&row| is_own(row)).map(|row| row.chat.clone()).collect();
        let mut readable = HashSet::new();
        for chat in chats {
            let at = Reading { chat, person: person.clone() };
            if self.here(platform, &at).await?.is_some() {
                readable.insert(at.chat);
            }
        }
        let own = queue.iter().enumerate().filter(|&(_, row)| is_own(row) && readable.contains(&row.chat));
        let own = own.map(|(before, row)| WaitingPicture {
            chat: row.chat.clone(),
            number: row.number,
            prompt: row.prompt.clone(),
            state: self.state_in_queue(&queue, before),
        });
        Ok(own.collect())
    }

    async fn keep_upload(
        &self,
        platform: &PlatformId,
        at: Reading,
        file: FileContent,
    ) -> Result<Result<String, String>, Error> {
        if self.here(platform, &at).await?.is_none() {
            return Err(Error::NotAllowed);
        }
        self.0.pictures.keep_upload(&at.person, file.0).await
    }

    async fn read_upload(&self, platform: &PlatformId, at: Reading, id: &str) -> Result<Option<FileContent>, Error> {
        if self.here(platform, &at).await?.is_none() {
            return Ok(None);
        }
        let services = &self.0.services;
        Ok(services.references.get(&at.person, id, services.clock.now()).map(FileContent))
    }
}

#[async_trait]
impl PictureHost for Engine {
    fn picture_models(&self) -> Vec<PictureModel> {
        let models = self.0.pictures.settings().into_iter().map(|settings| {
            let limits = settings.model.limits();
            PictureModel {
                name: settings.model.title().to_owned(),
                server: settings.model.name().to_owned(),
                max_side: limits.max_side,
                max_steps: limits.max_steps,
                takes_reference: limits.takes_reference,
                takes_seed: limits.takes_seed,
                upscales: limits.upscales,
            }
        });
        models.collect()
    }

    async fn picture_choices(&self) -> PictureChoices {
        let offer = self.0.pictures.choices().await;
        PictureChoices { models: offer.models, samplers: offer.samplers }
    }

    async fn ask(&self, platform: &PlatformId, at: Reading, wish: PictureWish) -> Result<PictureAsked, HostError> {
        self.for_adapter(self.ask_for_picture(platform, at, wish).await)
    }

    async fn upscale(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<PictureAsked>, HostError> {
        self.for_adapter(self.ask_for_upscale(platform, at, number).await)
    }

    async fn picture_state(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<PictureState>, HostError> {
        self.for_adapter(self.state_of_picture(platform, at, number).await)
    }

    async fn waiting_pictures(
        &self,
        platform: &PlatformId,
        person: &PersonId,
    ) -> Result<Vec<WaitingPicture>, HostError> {
        self.for_adapter(self.waiting_of(platform, person).await)
    }

    async fn pictures(
        &self,
        platform: &PlatformId,
        at: Reading,
        search: &PictureSearch,
    ) -> Result<Vec<ShownPicture>, HostError> {
        self.for_adapter(self.list_pictures(platform, at, search).await)
    }

    async fn picture(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<(ShownPicture, FileContent)>, HostError> {
        self.for_adapter(self.read_picture(platform, at, number).await)
    }

    async fn thumbnail(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<(ShownPicture, FileContent)>, HostError> {
        self.for_adapter(self.small_picture(platform, at, number).await)
    }

    async fn keep_reference(
        &self,
        platform: &PlatformId,
        at: Reading,
        file: FileContent,
    ) -> Result<Result<String, String>, HostError> {
        self.for_adapter(self.keep_upload(platform, at, file).await)
    }

    async fn reference(&self, platform: &PlatformId, at: Reading, id: &str) -> Result<Option<FileContent>, HostError> {
        self.for_adapter(self.read_upload(platform, at, id).await)
    }
}
