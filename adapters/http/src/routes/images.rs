//! Pictures: asking for them, the gallery, and uploaded pictures to start from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use azera_adapter::{ChatInfo, FileContent, InboundEvent, PictureSearch, Reading, ShownPicture};
use azera_types::PersonaId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::drawing::follow;
use super::picture_wish::NewPicture;
use super::{Done, List, Page};
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Files, Json, Need, Parameter, Params, Parted};
use crate::media::{self, File};
use crate::platform::suffix_of;
use crate::problem::Problem;
use crate::web::Shared;

/// The chat that pictures become messages of, and its title.
pub(super) const CHAT: &str = "pictures";
const TITLE: &str = "Pictures";

/// Characters of a digest that name a persona's chat.
const DIGEST_CHARS: usize = 32;

/// Largest uploaded picture.
const MAX_UPLOAD_BYTES: usize = 20 << 20;

/// Room for the other parts of an upload's body.
const FORM_BYTES: usize = 64 << 10;

/// The most characters of a text that is searched for.
const MAX_SEARCHED_CHARS: usize = 200;

/// The media type of every small copy.
const JPEG: &str = "image/jpeg";

/// The media type of every picture.
const PNG: &str = "image/png";

/// A drawn picture.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Image {
    /// The name of its file, which is unique.
    filename: String,
    /// Where the file is.
    url: String,
    /// Where a small copy of it is.
    thumbnail_url: String,
    /// What was to be drawn.
    prompt: String,
    /// What was not to be drawn.
    negative_prompt: Option<String>,
    /// Its width in pixels.
    width: u32,
    /// Its height in pixels.
    height: u32,
    /// Steps of the sampler.
    steps: u32,
    /// The seed.
    seed: u32,
    /// The model that drew it.
    model: Option<String>,
    /// The model that the person chose, if they chose one.
    chosen_model: Option<String>,
    /// The sampler, if it is not the server's usual one.
    sampler: Option<String>,
    /// Its number, as in `/gallery show 7`.
    number: u64,
    /// When it was drawn (RFC 3339).
    created_at: String,
    /// Whether its file is removed after others.
    pinned: bool,
    /// The name of the person who asked for it, if it is known. Pictures that were asked for over the web have none.
    by: Option<String>,
    /// The name of the chat in which it was asked for, in lists, if the caller reads that chat.
    place: Option<String>,
}

/// Which pictures are listed.
#[derive(Default, Deserialize)]
struct Wanted {
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
    #[serde(default)]
    q: String,
    #[serde(default)]
    by: String,
    #[serde(default)]
    place: String,
}

impl Wanted {
    /// The parameters of a query that lists pictures.
    const ASKS: &[Parameter] = &[
        Page::ASKS[0],
        Page::ASKS[1],
        Parameter { name: "q", help: "Words that the prompt or the name holds.", required: false },
        Parameter { name: "by", help: "A part of the name of the person who asked, or `me`.", required: false },
        Parameter { name: "place", help: "A part of the name of the chat.", required: false },
    ];
}

/// What draws.
#[derive(Debug, Serialize, JsonSchema)]
struct ImageModel {
    /// What it is.
    name: String,
    /// What it is and where; for callers with the scope `admin` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The models that one may choose as `model`.
    models: Vec<String>,
    /// The samplers that one may choose as `sampler`.
    samplers: Vec<String>,
    /// The longest side of a picture, in pixels.
    max_side: u32,
    /// The most steps.
    max_steps: u32,
    /// Whether it can start from a picture.
    takes_reference: bool,
    /// Whether the same seed draws the same picture.
    takes_seed: bool,
    /// Whether it can draw a picture at twice its size.
    upscales: bool,
}

/// An uploaded picture to start from.
#[derive(Debug, Serialize, JsonSchema)]
struct Reference {
    /// Its id, for `reference_image`.
    id: String,
    /// Where it is.
    url: String,
}

/// A picture that was deleted.
#[derive(Debug, Serialize, JsonSchema)]
struct Deleted {
    /// Always `deleted`.
    status: &'static str,
    /// The name of its file.
    filename: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let chat = Need::Scope(Scope::Chat);
    let none = &[(409, "Nothing is configured that draws. The body says how to change that.")];
    let mut upload =
        Endpoint::new(Method::POST, "/api/images/upload-reference", chat, "Upload a picture to start from", upload)
            .takes_file()
            .answers::<Reference>()
            .also(none);
    upload.body_bytes = MAX_UPLOAD_BYTES + FORM_BYTES;
    vec![
        Endpoint::new(Method::POST, "/api/images/generate", chat, "Ask for a picture, and follow it", generate)
            .takes::<NewPicture>()
            .sends("text/event-stream", "Events: progress, complete with the picture, error.")
            .also(none),
        Endpoint::new(Method::GET, "/api/images", chat, "List the pictures that one may see", list)
            .asks(Wanted::ASKS)
            .answers::<List<Image>>(),
        Endpoint::new(Method::GET, "/api/images/models", chat, "List what draws", models).answers::<List<ImageModel>>(),
        upload,
        Endpoint::new(
            Method::POST,
            "/api/images/{filename}/upscale",
            chat,
            "Ask for a picture at twice its size, and follow it",
            upscale,
        )
        .sends("text/event-stream", "Events: progress, complete with the new picture, error.")
        .also(none),
        Endpoint::new(
            Method::PUT,
            "/api/images/{filename}/pin",
            chat,
            "Pin a picture: its file is removed after those of others",
            pin,
        )
        .answers::<Done>(),
        Endpoint::new(Method::DELETE, "/api/images/{filename}/pin", chat, "Unpin a picture", unpin).answers::<Done>(),
        Endpoint::new(
            Method::GET,
            "/api/images/references/{filename}",
            chat,
            "Get a picture to start from that one uploaded oneself",
            reference,
        )
        .serves(PNG, "The picture, written anew without metadata."),
        Endpoint::new(
            Method::GET,
            "/api/images/{filename}/thumbnail",
            chat,
            "Get a small copy of a picture",
            show_thumbnail,
        )
        .serves(JPEG, "The small copy."),
        Endpoint::new(Method::GET, "/api/images/{filename}", chat, "Get a picture", show).serves(PNG, "The picture."),
        Endpoint::new(Method::DELETE, "/api/images/{filename}", chat, "Delete a picture", delete).answers::<Deleted>(),
    ]
}

/// Returns the name of a picture's file. It shows the picture's own name, if it has one, and never the prompt: names are in
/// the logs of proxies.
fn file_name(picture: &ShownPicture) -> String {
    format!(
        "{}-{}.png",
        super::form::plain_name(picture.name.as_deref().unwrap_or_default(), "picture"),
        picture.number
    )
}

/// Returns the beginning of a text that is searched for.
fn searched(text: &str) -> String {
    text.chars().take(MAX_SEARCHED_CHARS).collect::<String>().trim().to_owned()
}

/// Returns the number in the name of a picture's file.
pub(super) fn number_in(filename: &str) -> Option<u64> {
    filename.strip_suffix(".png")?.rsplit_once('-')?.1.parse().ok()
}

/// Returns where a picture's file is.
pub(super) fn url_of(picture: &ShownPicture) -> String {
    format!("/api/images/{}", file_name(picture))
}

impl From<ShownPicture> for Image {
    fn from(picture: ShownPicture) -> Self {
        Self {
            url: url_of(&picture),
            thumbnail_url: format!("{}/thumbnail", url_of(&picture)),
            filename: file_name(&picture),
            prompt: picture.prompt.to_string(),
            negative_prompt: picture.negative,
            width: picture.width,
            height: picture.height,
            steps: picture.steps,
            seed: picture.seed,
            model: picture.model,
            chosen_model: picture.chosen_model,
            sampler: picture.sampler,
            number: picture.number,
            created_at: picture.at.to_string(),
            pinned: picture.is_pinned,
            by: picture.by.map(|by| by.to_string()),
            place: picture.place.map(|place| place.to_string()),
        }
    }
}

impl Shared {
    /// Fails where nothing is configured that draws.
    fn check_drawing(&self) -> Result<(), Problem> {
        if !self.pictures()?.picture_models().is_empty() {
            return Ok(());
        }
        let detail = "I cannot draw: no server for pictures is configured. The operator can set one up in `[images]`; the \
                      page on pictures in the documentation says how.";
        Err(Problem::unconfigured("images_unavailable", detail))
    }

    /// Returns the chat of the caller in which a persona draws.
    async fn drawing_place(&self, caller: &Caller, persona: Option<&str>) -> Result<Reading, Problem> {
        let persona = persona.map(PersonaId::new).transpose()?;
        let id = match &persona {
            None => CHAT.to_owned(),
            Some(persona) => {
                if !self.answering(caller).await?.iter().any(|known| known.id == *persona) {
                    return Err(Problem::not_found("persona"));
                }
                // A persona's id may hold characters that the end of a chat's id may not.
                let digest: String = crate::secrets::digest(persona.as_str()).chars().take(DIGEST_CHARS).collect();
                format!("{CHAT}-{digest}")
            }
        };
        let at = self.reading(caller, &id)?;
        match (self.chat(caller, &id).await, persona) {
            (Ok(known), Some(persona)) if known.persona != persona => {
                self.perform(caller, at.chat.clone(), &format!("/persona use {persona}")).await?;
            }
            (Ok(_), _) => {}
            (Err(_), persona) => {
                let info = ChatInfo { chat: at.chat.clone(), title: Some(TITLE.to_owned()), persona };
                self.host()?.submit(&self.platform, InboundEvent::Chat(info)).await?;
            }
        }
        Ok(at)
    }

    /// Returns one chat of the caller for each persona that they talk with. A picture belongs to the persona that drew it.
    async fn galleries(&self, caller: &Caller) -> Result<Vec<Reading>, Problem> {
        let mut galleries = vec![self.reading(caller, "main")?];
        let mut personas = BTreeSet::new();
        for chat in self.chats(caller).await? {
            if personas.insert(chat.persona.clone()) {
                galleries.push(self.reading(caller, suffix_of(&chat.chat))?);
            }
        }
        Ok(galleries)
    }

    /// Returns a picture that the caller may see, its file, and where they see it.
    async fn picture(&self, caller: &Caller, filename: &str) -> Result<(Reading, FileContent), Problem> {
        let missing = || Problem::not_found("picture");
        let number = number_in(filename).ok_or_else(missing)?;
        for at in self.galleries(caller).await? {
            let found = self.pictures()?.picture(&self.platform, at.clone(), number).await?;
            if let Some((picture, file)) = found {
                // Each picture has one name.
                return if file_name(&picture) == filename { Ok((at, file)) } else { Err(missing()) };
            }
        }
        Err(missing())
    }

    /// Returns where the caller sees a picture, and its number.
    async fn numbered(&self, caller: &Caller, filename: &str) -> Result<(Reading, u64), Problem> {
        let (at, _) = self.picture(caller, filename).await?;
        Ok((at, number_in(filename).ok_or_else(|| Problem::not_found("picture"))?))
    }
}

async fn list(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Params(wanted): Params<Wanted>,
) -> Result<axum::Json<List<Image>>, Problem> {
    let page = Page { offset: wanted.offset, limit: wanted.limit };
    let [words, by, place] = [&wanted.q, &wanted.by, &wanted.place].map(|text| searched(text));
    let search = PictureSearch { words, by, place };
    let mut found = BTreeMap::new();
    for at in shared.galleries(&caller).await? {
        let pictures = shared.pictures()?.pictures(&shared.platform, at, &search).await?;
        found.extend(pictures.into_iter().map(|picture| (picture.number, picture)));
    }
    Ok(axum::Json(page.of(found.into_values().rev().map(Image::from).collect())))
}

async fn models(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<axum::Json<List<ImageModel>>, Problem> {
    let is_operator = caller.scopes.contains(&Scope::Admin);
    let models = shared.pictures()?.picture_models();
    if models.is_empty() {
        return Ok(axum::Json(Vec::<ImageModel>::new().into()));
    }
    let choices = shared.pictures()?.picture_choices().await;
    let models = models.into_iter().map(|model| ImageModel {
        name: model.name,
        models: choices.models.clone(),
        samplers: choices.samplers.clone(),
        server: is_operator.then_some(model.server),
        max_side: model.max_side,
        max_steps: model.max_steps,
        takes_reference: model.takes_reference,
        takes_seed: model.takes_seed,
        upscales: model.upscales,
    });
    Ok(axum::Json(models.collect::<Vec<_>>().into()))
}

async fn generate(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(new): Json<NewPicture>,
) -> Result<Response, Problem> {
    shared.check_drawing()?;
    let draws = shared.pictures()?.picture_models();
    let draws: Vec<&str> = draws.iter().map(|model| model.name.as_str()).collect();
    let wish = new.wish(&draws)?;
    shared.count_message(&caller)?;
    let at = shared.drawing_place(&caller, new.persona()).await?;
    let steps = wish.steps.unwrap_or(0);
    let asked = shared.pictures()?.ask(&shared.platform, at.clone(), wish).await?;
    follow(shared, at, asked, steps)
}

async fn upscale(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(filename): Parted<String>,
) -> Result<Response, Problem> {
    shared.check_drawing()?;
    let (seen_at, number) = shared.numbered(&caller, &filename).await?;
    shared.count_message(&caller)?;
    // The persona that drew the picture draws it again.
    let persona = shared.chat(&caller, suffix_of(&seen_at.chat)).await.ok().map(|chat| chat.persona);
    let at = match (shared.chat(&caller, CHAT).await, persona) {
        (Ok(usual), Some(persona)) if usual.persona != persona => {
            shared.drawing_place(&caller, Some(persona.as_str())).await?
        }
        _ => shared.drawing_place(&caller, None).await?,
    };
    let asked = shared.pictures()?.upscale(&shared.platform, at.clone(), number).await?;
    follow(shared, at, asked.ok_or_else(|| Problem::not_found("picture"))?, 0)
}

async fn pin(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(filename): Parted<String>,
) -> Result<axum::Json<Done>, Problem> {
    let (at, number) = shared.numbered(&caller, &filename).await?;
    shared.perform(&caller, at.chat, &format!("/picture pin {number}")).await?;
    Ok(axum::Json(Done { status: "pinned" }))
}

async fn unpin(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(filename): Parted<String>,
) -> Result<axum::Json<Done>, Problem> {
    let (at, number) = shared.numbered(&caller, &filename).await?;
    shared.perform(&caller, at.chat, &format!("/picture unpin {number}")).await?;
    Ok(axum::Json(Done { status: "unpinned" }))
}

async fn upload(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Files(files): Files,
) -> Result<axum::Json<Reference>, Problem> {
    shared.check_drawing()?;
    shared.count_message(&caller)?;
    let file = super::form::one_file(files, MAX_UPLOAD_BYTES).await?;
    let at = shared.reading(&caller, "main")?;
    let kept = shared.pictures()?.keep_reference(&shared.platform, at, FileContent(file.bytes)).await?;
    let refused = |why| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", format!("I cannot use that: {why}."));
    let id = kept.map_err(refused)?;
    Ok(axum::Json(Reference { url: format!("/api/images/references/{id}.png"), id }))
}

async fn reference(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    headers: HeaderMap,
    Parted(filename): Parted<String>,
) -> Result<Response, Problem> {
    let missing = || Problem::not_found("picture");
    let id = filename.strip_suffix(".png").ok_or_else(missing)?;
    let at = shared.reading(&caller, "main")?;
    let FileContent(bytes) = shared.pictures()?.reference(&shared.platform, at, id).await?.ok_or_else(missing)?;
    Ok(media::answer(&headers, File { bytes, media_type: PNG, name: filename }))
}

async fn show(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    headers: HeaderMap,
    Parted(filename): Parted<String>,
) -> Result<Response, Problem> {
    let (_, FileContent(bytes)) = shared.picture(&caller, &filename).await?;
    Ok(media::answer(&headers, File { bytes, media_type: PNG, name: filename }))
}

async fn show_thumbnail(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    headers: HeaderMap,
    Parted(filename): Parted<String>,
) -> Result<Response, Problem> {
    let missing = || Problem::not_found("picture");
    let number = number_in(&filename).ok_or_else(missing)?;
    let (at, FileContent(whole)) = shared.picture(&caller, &filename).await?;
    // The picture is decoded only for those who do not have its small copy yet.
    let tag = media::tag_of("thumbnail", &whole);
    if let Some(unchanged) = media::unchanged(&headers, &tag) {
        return Ok(unchanged);
    }
    let found = shared.pictures()?.thumbnail(&shared.platform, at, number).await?;
    let (_, FileContent(bytes)) = found.ok_or_else(missing)?;
    let name = format!("{}.jpg", filename.trim_end_matches(".png"));
    Ok(media::tagged(&headers, File { bytes, media_type: JPEG, name }, &tag))
}

async fn delete(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(filename): Parted<String>,
) -> Result<axum::Json<Deleted>, Problem> {
    let (at, number) = shared.numbered(&caller, &filename).await?;
    shared.perform(&caller, at.chat, &format!("/picture delete {number}")).await?;
    Ok(axum::Json(Deleted { status: "deleted", filename }))
}
