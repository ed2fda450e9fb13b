//! Pictures that people show: whose are looked at, who reads what they show, and that it goes with its message.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use azera_adapter::{Host, Outcome, SkipReason};
use azera_model_image::{Picture, PictureLimits, SeeError, Verdict, Viewer};
use azera_types::{InboundPart, Part};

use crate::findings::{AN, ANN, COMMONS, DEN, DM_AN, DM_ANN, Scene};
use crate::held::text_of;
use crate::remix::photo;

const SECRET: &str = "the lighthouse password is heliotrope, quiet";

/// The shade of a picture of a child.
pub const CHILD: u8 = 201;

/// The shade of a picture for which the model does not answer.
pub const UNANSWERED: u8 = 202;

/// The shade of a picture that the model cannot read.
pub const TORN: u8 = 203;

/// The shade of a picture of a naked person.
pub const NUDE: u8 = 204;

/// The shade of a picture of a naked child.
pub const NUDE_CHILD: u8 = 205;

/// The shade of a picture for which the model answers only when it is asked once more.
pub const HESITATES: u8 = 206;

/// The shade of a picture about which the model never says anything clear.
pub const UNCLEAR: u8 = 207;

/// The shade of a picture for which the model does not answer the first times.
pub const RETURNS: u8 = 208;

/// The shade of a picture that the model describes only when it is asked once more.
const BLINKS: u8 = 209;

/// How often the model was asked about a picture that it hesitates about, and about one for which it returns. One test asks.
static HESITATIONS: AtomicUsize = AtomicUsize::new(0);
static BLINKED: AtomicUsize = AtomicUsize::new(0);
static OUTAGES: AtomicUsize = AtomicUsize::new(0);

/// Sees the shade of a picture, or the words in its bytes where they are no picture.
pub struct Eye;

#[async_trait]
impl Viewer for Eye {
    fn max_bytes(&self) -> u64 {
        10_000
    }

    async fn describe(&self, file: Vec<u8>) -> Result<String, SeeError> {
        let unreadable = || SeeError::Unreadable("it is not a picture".to_owned());
        let Ok(picture) = Picture::read(&file, &PictureLimits::default()) else {
            return String::from_utf8(file).map_err(|_| unreadable());
        };
        match picture.pixels().first() {
            Some(&CHILD) => Ok("a child on a beach, quiet".to_owned()),
            Some(&UNANSWERED) => Err(SeeError::Unavailable("it does not answer".to_owned())),
            Some(&TORN) => Err(unreadable()),
            Some(&BLINKS) if BLINKED.fetch_add(1, Ordering::SeqCst) == 0 => {
                Err(SeeError::Unavailable("it does not answer".to_owned()))
            }
            _ => Ok("a plain wall, quiet".to_owned()),
        }
    }

    async fn judge(&self, file: Vec<u8>) -> Result<Verdict, SeeError> {
        let unreadable = || SeeError::Unreadable("it is not a picture".to_owned());
        let picture = Picture::read(&file, &PictureLimits::default()).map_err(|_| unreadable())?;
        match picture.pixels().first() {
            Some(&UNANSWERED) => Err(SeeError::Unavailable("it does not answer".to_owned())),
            Some(&TORN) => Err(unreadable()),
            Some(&UNCLEAR) => Err(SeeError::Unclear("it says neither yes nor no".to_owned())),
            Some(&HESITATES) if HESITATIONS.fetch_add(1, Ordering::SeqCst) < 2 => {
                Err(SeeError::Unclear("it says neither yes nor no".to_owned()))
            }
            Some(&RETURNS) if OUTAGES.fetch_add(1, Ordering::SeqCst) < 5 => {
                Err(SeeError::Unavailable("it does not answer".to_owned()))
            }
            shade => Ok(Verdict {
                is_sexual: matches!(shade, Some(&(NUDE | NUDE_CHILD))),
                has_minor: matches!(shade, Some(&(CHILD | NUDE_CHILD))),
            }),
        }
    }
}

/// Returns a picture that shows these words.
pub fn shown(words: &[u8]) -> InboundPart {
    let part = Part::new("photo.png", Some("image/png"), words.len() as u64);
    InboundPart { part, source: Arc::new(words.to_vec()) }
}

impl Scene {
    /// Lets somebody show a picture to the bot.
    async fn show(&mut self, who: usize, place: usize, text: &str, picture: &[u8], mentions_bot: bool) -> Outcome {
        self.show_all(who, place, text, &[picture], mentions_bot).await
    }

    async fn show_all(
        &mut self,
        who: usize,
        place: usize,
        text: &str,
        pictures: &[&[u8]],
        mentions_bot: bool,
    ) -> Outcome {
        let mut inbound = self.message(who, place, "");
        inbound.parts.extend(pictures.iter().map(|picture| shown(picture)));
        (inbound.text, inbound.mentions_bot) = (text.into(), mentions_bot);
        let outcome = self.submit(inbound).await.unwrap();
        self.engine.azera.settle().await.unwrap();
        outcome
    }
}

#[tokio::test]
async fn what_a_picture_shows_is_remembered_as_a_guess_and_only_where_it_was_shown() {
    let mut scene = Scene::open(false, false).await;
    assert_eq!(text_of(&scene.show(ANN, DM_ANN, "", SECRET.as_bytes(), true).await), "Noted.");
    let found = scene.find(ANN, DM_ANN, "what is the lighthouse password?").await;
    assert_eq!(found, [format!("[seen in photo.png, a guess] {SECRET}")]);
    for (who, place) in [(AN, DM_AN), (AN, COMMONS), (ANN, COMMONS), (ANN, DEN)] {
        assert!(scene.find(who, place, "lighthouse password heliotrope").await.is_empty(), "{who} in {place}");
    }
    assert!(scene.command(ANN, DM_ANN, "/memory export").await.contains("heliotrope"));
    scene.command(ANN, DM_ANN, "/forget last").await;
    assert!(!scene.holds("heliotrope"));
    assert!(scene.engine.layers.blobs.list().unwrap().is_empty());
}

#[tokio::test]
async fn only_a_picture_that_is_meant_for_the_persona_is_looked_at() {
    let mut scene = Scene::open(false, false).await;
    let aside = scene.show(ANN, COMMONS, "", b"Luna, a cat, quiet", false).await;
    assert_eq!(aside, Outcome::Skipped(SkipReason::NotAddressed));
    assert!(!scene.holds("a cat"));
    assert_eq!(text_of(&scene.show(ANN, COMMONS, "Luna, look", b"a grey cat, quiet", false).await), "Noted.");
    assert!(scene.holds("Luna, look\\n[seen in photo.png, a guess] a grey cat, quiet"));
}

#[tokio::test]
async fn a_picture_that_cannot_be_seen_is_answered_with_one_sentence() {
    let mut scene = Scene::open(false, false).await;
    let sentence = "I cannot read that picture. Please tell me what it shows.";
    assert_eq!(text_of(&scene.show(ANN, DM_ANN, "", b"\xff\xfe", true).await), sentence);
    // Beside words it is said once.
    let first = scene.show(ANN, DM_ANN, "look, quiet", b"\xff", true).await;
    assert_eq!(text_of(&first), format!("Noted.\n\n{sentence}"));
    assert_eq!(text_of(&scene.show(ANN, DM_ANN, "and this, quiet", b"\xff", true).await), "Noted.");
}

#[tokio::test]
async fn a_picture_that_was_missed_once_is_seen_when_the_answer_is_made_again() {
    let mut scene = Scene::open(false, false).await;
    // The platform has it no second time.
    let answer = scene.show(ANN, DM_ANN, "look, quiet", &photo(BLINKS), true).await;
    let missed = text_of(&answer);
    assert!(missed.contains("at the moment") && !scene.holds("plain wall"), "{missed}");
    let again = scene.command(ANN, DM_ANN, "/regenerate").await;
    assert!(scene.holds("look, quiet\\n[seen in photo.png, a guess] a plain wall, quiet"), "{again}");
}

#[tokio::test]
async fn one_picture_that_cannot_be_seen_hides_no_other() {
    let mut scene = Scene::open(false, false).await;
    let answer = scene.show_all(ANN, DM_ANN, "", &[b"\xff", b"a grey cat, quiet"], true).await;
    assert_eq!(text_of(&answer), "Noted.\n\nI cannot read that picture. Please tell me what it shows.");
    assert!(scene.holds("a grey cat"));
}

#[tokio::test]
async fn where_everything_is_answered_a_picture_for_nobody_is_told_of_once() {
    let mut scene = Scene::open(false, false).await;
    scene.command(ANN, COMMONS, "/answer always").await;
    let sentence = "I cannot read that picture. Please tell me what it shows.";
    assert_eq!(text_of(&scene.show(ANN, COMMONS, "", b"\xff", false).await), sentence);
    assert_eq!(scene.show(AN, COMMONS, "", b"\xff", false).await, Outcome::Skipped(SkipReason::Empty));
    assert_eq!(text_of(&scene.show(AN, COMMONS, "", b"\xff", true).await), sentence, "he asked");
}

#[tokio::test]
async fn the_description_of_a_picture_that_nobody_sees_is_answered_like_words() {
    let mut scene = Scene::open(false, false).await;
    for text in ["[attached: photo.png (image/png, 1 bytes, shows: my grey cat, quiet)]", ""] {
        let mut inbound = scene.message(ANN, DM_ANN, "");
        let mut picture = shown(b"\xff");
        picture.part = picture.part.described(Some("my grey cat, quiet"));
        inbound.parts.push(picture);
        (inbound.text, inbound.mentions_bot) = (text.into(), true);
        let outcome = scene.submit(inbound).await.unwrap();
        scene.engine.azera.settle().await.unwrap();
        // The model answers, and nobody is asked what the picture shows.
        let answer = text_of(&outcome);
        assert!(!answer.contains("that picture") && !answer.contains("tell me"), "{text:?}: {answer}");
    }
    assert!(scene.holds("[picture: my grey cat, quiet]"));
}
