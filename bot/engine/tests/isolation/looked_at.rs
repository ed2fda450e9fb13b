//! Pictures to start from that nobody described are looked at before anything is drawn, and what a drawing was asked for
//! with counts for everything made of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use azera_adapter::{CommandAnswer, FileContent, GivenPicture};
use azera_types::MessageId;

use crate::findings::{ANN, COMMONS, Scene};
use crate::pictures::{Painter, number};
use crate::remix::photo;
use crate::shown_pictures::{CHILD, TORN, UNANSWERED};

const MIRA: &str = "---\nid: mira\nname: Mira\npictures: {STYLE}\n---\n\n## Intent\n\nMira keeps the harbour log.\n\n\
                    ## Core Identity\n\nYou are Mira.\n";

fn given(shade: u8) -> Option<GivenPicture> {
    Some(GivenPicture { description: None, content: FileContent(photo(shade)) })
}

/// Opens a scene in which the commons are for adults.
pub async fn adults() -> (Scene, Arc<Painter>) {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    scene.engine.platform.adults.store(true, Ordering::SeqCst);
    let rules = scene.command(ANN, COMMONS, "/picture adult on").await;
    assert!(rules.contains("are allowed here"), "{rules}");
    (scene, painter)
}

impl Scene {
    async fn start_from(&self, shade: u8, command: &str) -> CommandAnswer {
        self.give((ANN, COMMONS), command, None, given(shade)).await
    }

    fn last_post(&self) -> String {
        self.posts().pop().map(|(text, _)| text).unwrap_or_default()
    }

    /// Gives the commons a persona whose pictures have this style.
    async fn styled(&self, style: &str) {
        let file = MIRA.replace("STYLE", style);
        self.command(ANN, COMMONS, &format!("/persona upload {file}")).await;
        self.command(ANN, COMMONS, "/persona confirm").await;
        self.command(ANN, COMMONS, "/persona use mira").await;
    }
}

#[tokio::test]
async fn a_child_in_a_picture_that_nobody_described_counts_for_every_word_of_the_request() {
    let (scene, painter) = adults().await;
    let check = async |command: &str| {
        let before = scene.posts().len();
        let answer = scene.start_from(CHILD, command).await;
        assert!(answer.ok, "{command}: {}", answer.text);
        let posts = scene.posts();
        assert_eq!(posts.len(), before + 1, "{command}");
        assert!(posts[before].0.contains("under 18") && posts[before].1 == 0, "{command}: {posts:?}");
    };
    check("/imagine a nude person on a beach").await;
    check("/imagine a person on a beach --negative clothes").await;
    scene.styled("style: nude").await;
    check("/imagine a person on a beach").await;
    scene.styled("negative: clothes").await;
    check("/imagine a person on a beach").await;
    assert!(painter.asked.lock().unwrap().is_empty());
    assert!(scene.start_from(5, "/imagine a person on a beach").await.ok);
    assert_eq!(painter.asked.lock().unwrap().len(), 1, "{}", scene.last_post());
}

#[tokio::test]
async fn nothing_starts_from_a_picture_that_could_not_be_looked_at() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    assert!(scene.start_from(UNANSWERED, "/imagine a knight").await.ok);
    assert!(scene.posts().is_empty(), "it is tried again");
    for _ in 0..3 {
        scene.settled().await;
    }
    assert!(scene.last_post().contains("the model that sees does not answer"), "{}", scene.last_post());
    assert!(scene.start_from(TORN, "/imagine a knight").await.ok);
    assert!(scene.last_post().contains("I cannot read the picture"), "{}", scene.last_post());
    assert!(painter.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_negative_prompt_is_remembered_with_its_picture() {
    let (scene, painter) = adults().await;
    let drawn = number(&scene.give((ANN, COMMONS), "/imagine a woman on a beach --negative clothes", None, None).await);
    let answer = scene.command(ANN, COMMONS, &format!("/picture remix {drawn} as a schoolgirl")).await;
    assert!(answer.contains("under 18"), "{answer}");
    assert!(scene.command(ANN, COMMONS, "/gallery").await.contains("on a beach"));
    scene.command(ANN, COMMONS, "/picture adult off").await;
    let answer = scene.command(ANN, COMMONS, &format!("/picture remix {drawn} as a queen")).await;
    assert!(answer.contains("marks for adults"), "{answer}");
    for command in ["/gallery".to_owned(), format!("/gallery show {drawn}"), format!("/picture edit {drawn}")] {
        let answer = scene.give((ANN, COMMONS), &command, None, None).await;
        assert!(!answer.text.contains("beach") && answer.form.is_none(), "{command}: {}", answer.text);
    }
    assert_eq!(painter.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_waiting_picture_is_not_drawn_once_the_place_is_no_longer_for_adults() {
    let (scene, painter) = adults().await;
    let drawn = number(&scene.give((ANN, COMMONS), "/imagine a woman on a beach --negative clothes", None, None).await);
    painter.hangs.store(true, Ordering::SeqCst);
    let first = scene.command_meanwhile(ANN, COMMONS, "/imagine a hut").await;
    let first = first.split("picture ").nth(1).and_then(|rest| rest.split('.').next()).unwrap().to_owned();
    for waiting in ["/imagine a violet --negative clothes".to_owned(), format!("/picture remix {drawn} as a violet")] {
        let answer = scene.command_meanwhile(ANN, COMMONS, &waiting).await;
        assert!(answer.contains("takes it back"), "{answer}");
    }
    scene.command_meanwhile(ANN, COMMONS, "/picture adult off").await;
    painter.hangs.store(false, Ordering::SeqCst);
    scene.command(ANN, COMMONS, &format!("/picture cancel {first}")).await;
    assert!(scene.command(ANN, COMMONS, "/picture queue").await.contains("No pictures"));
    let asked = painter.asked.lock().unwrap().clone();
    assert!(asked.iter().all(|one| !one.prompt.contains("violet")), "{asked:?}");
}

#[tokio::test]
async fn what_a_persona_does_not_draw_is_checked_like_its_style() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    scene.styled("negative: clothes").await;
    let answer = scene.command(ANN, COMMONS, "/imagine a person on a beach").await;
    assert!(answer.contains("marks for adults"), "{answer}");
    assert!(painter.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_prompt_may_begin_with_a_number() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    let first = number(&scene.give((ANN, COMMONS), "/imagine a lighthouse", None, None).await);
    let second = number(&scene.give((ANN, COMMONS), "/imagine a mill", None, None).await);
    let shown = MessageId::new(format!("post~{second}")).unwrap();
    for (command, about, prompt) in [
        ("/picture vary 987654 boats".to_owned(), None, "a mill, 987654 boats".to_owned()),
        (format!("/picture vary {first} boats"), None, "a lighthouse, boats".to_owned()),
        (format!("/picture vary {first} boats"), Some(&shown), format!("a mill, {first} boats")),
        (format!("/picture vary {second} boats"), Some(&shown), "a mill, boats".to_owned()),
        (format!("/picture vary {first}"), Some(&shown), "a lighthouse".to_owned()),
        ("/picture remix 987654 boats".to_owned(), None, "987654 boats".to_owned()),
        (format!("/picture remix {first} boats"), Some(&shown), format!("{first} boats")),
    ] {
        let answer = scene.give((ANN, COMMONS), &command, about, None).await;
        assert!(answer.ok, "{command}: {}", answer.text);
        assert_eq!(painter.asked.lock().unwrap().last().unwrap().prompt, prompt, "{command}");
        if command.contains("987654") {
            // What it made is the newest no more.
            scene.give((ANN, COMMONS), &format!("/picture delete {}", number(&answer)), None, None).await;
        }
    }
    for command in ["/picture delete 987654 boats", "/picture pin 987654 boats"] {
        assert!(!scene.give((ANN, COMMONS), command, None, None).await.ok, "{command}");
    }
    assert!(scene.command(ANN, COMMONS, "/gallery pinned").await.contains("are pinned"));
    assert!(scene.command(ANN, COMMONS, "/gallery search zebra").await.contains("these words"));
}
