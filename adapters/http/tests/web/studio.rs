//! The engine's pictures, voice and moods. A picture's file holds its prompt, so that a leak shows.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azera_adapter::{
    FileContent, GivenMood, HostError, MoodHost, PictureAsked, PictureChoices, PictureHost, PictureModel,
    PictureSearch, PictureState, PictureWish, Reading, ShownPicture, SpeechAnswer, SpeechHost, SpeechRequest,
    WaitingPicture,
};
use azera_adapter_http::{KeptSample, ListedSample, NewSample, SampleError, StoreError, VoiceSamples};
use azera_types::{ChatId, MessageId, PersonId, PlatformId, Text, Timestamp};

use crate::engine::Engine;

/// Everything that is drawn, uploaded and said.
#[derive(Default)]
pub struct Studio {
    pictures: Mutex<Vec<(ChatId, ShownPicture)>>,
    references: Mutex<HashMap<String, (PersonId, Vec<u8>)>>,
    samples: Mutex<HashMap<String, Vec<u8>>>,
    /// The states that a picture goes through, the last one first.
    steps: Mutex<Vec<PictureState>>,
    pub wishes: Mutex<Vec<PictureWish>>,
    pub moods: Mutex<Vec<(ChatId, GivenMood)>>,
    pub spoken: Mutex<Vec<SpeechRequest>>,
    /// How often a small copy of a picture was made.
    pub shrunk: AtomicUsize,
    /// Nothing draws, speaks or hears.
    pub is_closed: AtomicBool,
}

impl Studio {
    fn is_open(&self) -> bool {
        !self.is_closed.load(Ordering::SeqCst)
    }

    /// Lets the newest picture load its model, and go on to its end.
    pub fn begin_again(&self) {
        let newest = self.pictures.lock().unwrap().last().unwrap().1.clone();
        let drawing = PictureState::Drawing { step: 1, steps: 2, preview: None };
        *self.steps.lock().unwrap() =
            vec![PictureState::Drawn(newest), drawing, PictureState::Loading { downloaded: 0 }];
    }

    /// Deletes a picture by the line of a command.
    pub fn delete(&self, line: &str) {
        let number = line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        self.pictures.lock().unwrap().retain(|(_, picture)| picture.number != number);
    }

    /// Pins a picture or lets it go, by the line of a command.
    pub fn pin(&self, line: &str) {
        let number = line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        for (_, picture) in self.pictures.lock().unwrap().iter_mut().filter(|(_, picture)| picture.number == number) {
            picture.is_pinned = line.starts_with("/picture pin");
        }
    }

    /// Takes a picture back by the line of a command; returns false if it was not asked for in this chat.
    pub fn take_back(&self, chat: &ChatId, line: &str) -> bool {
        let number = line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        let mut pictures = self.pictures.lock().unwrap();
        let before = pictures.len();
        pictures.retain(|(of, picture)| of != chat || picture.number != number);
        pictures.len() < before
    }

    fn find(&self, number: u64) -> Option<(ChatId, ShownPicture)> {
        self.pictures.lock().unwrap().iter().find(|(_, picture)| picture.number == number).cloned()
    }
}

#[async_trait]
impl PictureHost for Engine {
    fn picture_models(&self) -> Vec<PictureModel> {
        let model = PictureModel {
            name: "grey".into(),
            server: "grey at http://10.0.0.7:7860".into(),
            max_side: 1_536,
            max_steps: 60,
            takes_reference: true,
            takes_seed: true,
            upscales: true,
        };
        self.studio.is_open().then_some(model).into_iter().collect()
    }

    async fn picture_choices(&self) -> PictureChoices {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        PictureChoices { models: names(["small", "large"]), samplers: names(["euler", "Euler a"]) }
    }

    async fn ask(&self, _: &PlatformId, at: Reading, wish: PictureWish) -> Result<PictureAsked, HostError> {
        if !self.may_read(&at.chat, &at.person).await {
            return Err(HostError::NotAllowed);
        }
        match wish.prompt.as_str() {
            "something forbidden" => return Ok(PictureAsked::Refused("That is never drawn.".into())),
            "one too many" => return Ok(PictureAsked::TooMany("That was the last one today.".into())),
            _ => {}
        }
        let choices = self.picture_choices().await;
        for (kind, wanted, has) in
            [("model", &wish.model, choices.models), ("sampler", &wish.sampler, choices.samplers)]
        {
            if wanted.as_ref().is_some_and(|wanted| !has.contains(wanted)) {
                return Ok(PictureAsked::Unknown { kind, why: format!("There are {}.", has.join(", ")) });
            }
        }
        let mut pictures = self.studio.pictures.lock().unwrap();
        let number = pictures.len() as u64 + 1;
        let message = MessageId::new(format!("post~{number}")).unwrap();
        let picture = ShownPicture {
            number,
            message,
            prompt: Text::new(&wish.prompt),
            negative: wish.negative.clone(),
            name: wish.name.as_deref().map(Text::new),
            width: wish.size.map_or(1_024, |size| size.0),
            height: wish.size.map_or(1_024, |size| size.1),
            steps: wish.steps.unwrap_or(28),
            seed: wish.seed.unwrap_or(7),
            model: Some("grey".into()),
            chosen_model: wish.model.clone(),
            sampler: wish.sampler.clone(),
            at: Timestamp::from_second(1_800_000_000).unwrap(),
            is_pinned: false,
            by: Some("Ann".into()),
            place: Some("Pictures".into()),
        };
        let last = match wish.prompt.as_str() {
            "something impossible" => PictureState::Failed("I could not draw that.".into()),
            _ => PictureState::Drawn(picture.clone()),
        };
        let preview = |step| (step == 1).then(|| FileContent(b"blurred".to_vec()));
        let drawing = |step| PictureState::Drawing { step, steps: 2, preview: preview(step) };
        *self.studio.steps.lock().unwrap() = vec![last, drawing(2), drawing(1), PictureState::Waits { place: 3 }];
        pictures.push((at.chat, picture));
        self.studio.wishes.lock().unwrap().push(wish);
        Ok(PictureAsked::Waits(number))
    }

    async fn upscale(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<PictureAsked>, HostError> {
        let Some((chat, picture)) = self.studio.find(number) else { return Ok(None) };
        if !self.may_read(&chat, &at.person).await {
            return Ok(None);
        }
        let size = Some((picture.width * 2, picture.height * 2));
        let wish = PictureWish { prompt: picture.prompt.to_string(), size, ..PictureWish::default() };
        self.ask(platform, at, wish).await.map(Some)
    }

    async fn picture_state(&self, _: &PlatformId, at: Reading, _: u64) -> Result<Option<PictureState>, HostError> {
        let may = self.may_read(&at.chat, &at.person).await;
        Ok(self.studio.steps.lock().unwrap().pop().filter(|_| may))
    }

    /// Every picture counts as one that waits, too, so that a leak shows.
    async fn waiting_pictures(&self, _: &PlatformId, person: &PersonId) -> Result<Vec<WaitingPicture>, HostError> {
        let all = self.studio.pictures.lock().unwrap().clone();
        let mut waiting = Vec::new();
        for (chat, picture) in all {
            if self.may_read(&chat, person).await {
                let state = PictureState::Loading { downloaded: 2_000_000_000 };
                waiting.push(WaitingPicture { chat, number: picture.number, prompt: picture.prompt, state });
            }
        }
        Ok(waiting)
    }

    async fn pictures(
        &self,
        _: &PlatformId,
        at: Reading,
        search: &PictureSearch,
    ) -> Result<Vec<ShownPicture>, HostError> {
        let all = self.studio.pictures.lock().unwrap().clone();
        let mut shown = Vec::new();
        for (chat, picture) in all.into_iter().rev() {
            let holds =
                |whole: Option<&str>, part: &str| part.is_empty() || whole.is_some_and(|whole| whole.contains(part));
            let is_found = holds(Some(picture.prompt.as_str()), &search.words)
                && holds(picture.by.as_deref(), &search.by)
                && holds(picture.place.as_deref(), &search.place);
            if is_found && self.may_read(&chat, &at.person).await {
                shown.push(picture);
            }
        }
        Ok(shown)
    }

    async fn picture(
        &self,
        _: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<(ShownPicture, FileContent)>, HostError> {
        let Some((chat, picture)) = self.studio.find(number) else { return Ok(None) };
        let may = self.may_read(&chat, &at.person).await;
        let file = FileContent(picture.prompt.as_bytes().to_vec());
        Ok(may.then_some((picture, file)))
    }

    async fn thumbnail(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<(ShownPicture, FileContent)>, HostError> {
        self.studio.shrunk.fetch_add(1, Ordering::SeqCst);
        let found = self.picture(platform, at, number).await?;
        Ok(found.map(|(picture, file)| (picture, FileContent([b"small ".as_slice(), &file.0].concat()))))
    }

    async fn keep_reference(
        &self,
        _: &PlatformId,
        at: Reading,
        file: FileContent,
    ) -> Result<Result<String, String>, HostError> {
        if !file.0.starts_with(b"\x89PNG") {
            return Ok(Err("it is no picture".into()));
        }
        let mut references = self.studio.references.lock().unwrap();
        let id = format!("{:032x}", references.len() + 1);
        references.insert(id.clone(), (at.person, file.0));
        Ok(Ok(id))
    }

    async fn reference(&self, _: &PlatformId, at: Reading, id: &str) -> Result<Option<FileContent>, HostError> {
        let references = self.studio.references.lock().unwrap();
        let found = references.get(id).filter(|(person, _)| *person == at.person);
        Ok(found.map(|(_, bytes)| FileContent(bytes.clone())))
    }
}

#[async_trait]
impl SpeechHost for Engine {
    fn silence(&self) -> Option<String> {
        (!self.studio.is_open()).then(|| "No voice is on this machine.".into())
    }

    fn deafness(&self) -> Option<String> {
        (!self.studio.is_open()).then(|| "No speech model is on this machine.".into())
    }

    async fn say(&self, _: &PlatformId, at: Reading, request: SpeechRequest) -> Result<SpeechAnswer, HostError> {
        if !self.may_read(&at.chat, &at.person).await {
            return Err(HostError::NotAllowed);
        }
        if !self.studio.is_open() {
            return Ok(SpeechAnswer::Unavailable("No voice is on this machine.".into()));
        }
        if request.voice.as_deref() == Some("nobody") {
            return Ok(SpeechAnswer::Refused("Nobody has that voice here.".into()));
        }
        let wav = FileContent(format!("RIFF {}", request.text).into_bytes());
        self.studio.spoken.lock().unwrap().push(request);
        Ok(SpeechAnswer::Sound { wav, duration: Duration::from_millis(1_250) })
    }
}

#[async_trait]
impl MoodHost for Engine {
    async fn give_mood(&self, _: &PlatformId, at: Reading, mood: GivenMood) -> Result<bool, HostError> {
        if !self.may_read(&at.chat, &at.person).await {
            return Err(HostError::NotAllowed);
        }
        self.studio.moods.lock().unwrap().push((at.chat, mood));
        Ok(true)
    }
}

#[async_trait]
impl VoiceSamples for Engine {
    async fn add(&self, sample: NewSample) -> Result<KeptSample, SampleError> {
        if !sample.bytes.starts_with(b"RIFF") {
            return Err(SampleError::Refused("It is no recording.".into()));
        }
        let kept = KeptSample { name: sample.name, bytes: sample.bytes.len() };
        let mut samples = self.studio.samples.lock().unwrap();
        samples.insert(kept.name.clone(), [sample.bytes, sample.consent.into_bytes()].concat());
        Ok(kept)
    }

    async fn list(&self) -> Result<Vec<ListedSample>, StoreError> {
        let samples = self.studio.samples.lock().unwrap();
        let listed = |name: &String| ListedSample {
            name: name.clone(),
            consent: "They agreed.".into(),
            seconds: 2.5,
            added_at: "2027-01-15T08:00:00Z".into(),
        };
        Ok(samples.keys().map(listed).collect())
    }

    async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.studio.samples.lock().unwrap().remove(name).is_some())
    }

    async fn wav(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.studio.samples.lock().unwrap().get(name).cloned())
    }
}
