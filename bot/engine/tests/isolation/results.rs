//! Finished pictures are looked at before anybody sees them, and unfinished ones are shown only where nobody looks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use azera_adapter::{Host, PictureHost, PictureState, Platform, Reading};
use azera_model_image::{Picture, PictureLimits};

use crate::findings::{ANN, COMMONS, Scene};
use crate::looked_at::adults;
use crate::pictures::{Painter, number};
use crate::shown_pictures::{CHILD, HESITATES, NUDE, NUDE_CHILD, RETURNS, TORN, UNANSWERED, UNCLEAR};
use crate::test_engine::{chat, person};

impl Scene {
    /// Draws a picture of this shade; returns the message about it, and how many files it has.
    async fn drawn_as(&self, painter: &Painter, shade: u8, command: &str) -> (String, usize) {
        painter.shade.store(shade, Ordering::SeqCst);
        let before = self.posts().len();
        assert!(self.ask(ANN, COMMONS, command).await.ok);
        self.settled().await;
        let posts = self.posts();
        assert_eq!(posts.len(), before + 1, "{command}");
        posts[before].clone()
    }

    /// Returns every picture file that the platform was given, finished or not.
    fn files(&self) -> usize {
        let previews = self.engine.platform.drawing.previews.lock().unwrap().len();
        previews + self.posts().iter().map(|(_, files)| files).sum::<usize>()
    }
}

#[tokio::test]
async fn a_finished_picture_that_breaks_a_rule_is_not_shown() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    for (shade, rule) in [(NUDE, "marks for adults"), (NUDE_CHILD, "under 18")] {
        let (text, files) = scene.drawn_as(&painter, shade, "/imagine a person on a beach").await;
        assert!(files == 0 && text.contains("what came out breaks a rule") && text.contains(rule), "{text}");
    }
    assert_eq!(scene.drawn_as(&painter, CHILD, "/imagine a person on a beach").await.1, 1);
    // A child that the prompt names counts, too, though nobody sees one.
    let (text, files) = scene.drawn_as(&painter, NUDE, "/imagine a schoolgirl on a beach").await;
    assert!(files == 0 && text.contains("under 18"), "{text}");
    assert_eq!(scene.engine.layers.blobs.list().unwrap().len(), 1, "nothing else is kept");
    assert_eq!(painter.asked.lock().unwrap().len(), 4, "and nothing is drawn again that was asked for once");
}

#[tokio::test]
async fn where_adults_are_alone_a_finished_picture_shows_no_minor_either() {
    let (scene, painter) = adults().await;
    assert_eq!(scene.drawn_as(&painter, NUDE, "/imagine a person on a beach").await.1, 1);
    let (text, files) = scene.drawn_as(&painter, NUDE_CHILD, "/imagine a nude person on a beach").await;
    assert!(files == 0 && text.contains("under 18"), "{text}");
}

#[tokio::test]
async fn what_was_seen_in_a_picture_counts_for_those_made_of_it() {
    let (scene, painter) = adults().await;
    painter.shade.store(CHILD, Ordering::SeqCst);
    let drawn = number(&scene.ask(ANN, COMMONS, "/imagine somebody on a beach").await);
    scene.settled().await;
    let answer = scene.command(ANN, COMMONS, &format!("/picture remix {drawn} in the nude")).await;
    assert!(answer.contains("under 18"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_picture_that_could_not_be_looked_at_is_not_shown_and_not_drawn_anew() {
    let (scene, painter) = Scene::with_painter(|settings| settings.per_person = 2).await;
    let shades = [
        (UNANSWERED, "the model that sees does not answer, though I kept asking"),
        (UNCLEAR, "the model that sees gave no clear answer, though I asked it three times"),
        (TORN, "cannot read the picture that came out"),
    ];
    for (drawn, (shade, told)) in (1..).zip(shades) {
        let (text, _) = scene.drawn_as(&painter, shade, "/imagine a knight").await;
        assert!(text.contains(told), "{text}");
        for _ in 0..3 {
            scene.settled().await;
        }
        assert_eq!((painter.asked.lock().unwrap().len(), scene.posts().len()), (drawn, drawn), "it is over");
    }
    // What the model answered counts, and the outage does not.
    assert!(!scene.ask(ANN, COMMONS, "/imagine a knight").await.ok);
    assert_eq!((scene.files(), scene.engine.layers.blobs.list().unwrap().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_missing_or_unclear_verdict_is_asked_for_again_about_the_same_picture() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    for shade in [HESITATES, RETURNS] {
        assert_eq!(scene.drawn_as(&painter, shade, "/imagine a knight").await.1, 1, "{shade}");
    }
    assert_eq!(painter.asked.lock().unwrap().len(), 2, "each is drawn once");
}

/// Opens a scene whose painter sends previews.
async fn previewing(is_blind: bool, previews: bool) -> (Scene, Arc<Painter>) {
    let (mut scene, painter) = Scene::with_painter(|settings| settings.previews = previews).await;
    let preview = Picture::from_rgb(900, 600, vec![90; 900 * 600 * 3]).unwrap();
    *painter.preview.lock().unwrap() = Some(preview.to_png(&[("prompt", "a heliotrope tower")]).unwrap());
    scene.engine.is_blind = is_blind;
    scene.engine.reopen().await;
    (scene, painter)
}

#[tokio::test]
async fn an_unfinished_picture_is_shown_small_and_without_its_texts() {
    let (scene, painter) = previewing(true, true).await;
    painter.hangs.store(true, Ordering::SeqCst);
    let drawn = number(&scene.ask(ANN, COMMONS, "/imagine a tower").await).parse::<u64>().unwrap();
    let at = || Reading { chat: chat(COMMONS), person: person(ANN) };
    let (azera, sim) = (&scene.engine.azera, scene.engine.platform.sim.id());
    let watching = async {
        painter.begun.notified().await;
        let state = loop {
            let state = azera.picture_state(sim, at(), drawn).await.unwrap();
            match state {
                Some(PictureState::Drawing { preview: Some(preview), .. }) => break preview,
                _ => tokio::task::yield_now().await,
            }
        };
        scene.command_meanwhile(ANN, COMMONS, "/picture cancel").await;
        state
    };
    let (settled, preview) = tokio::join!(azera.settle(), watching);
    settled.unwrap();
    let shown = Picture::read(&preview.0, &PictureLimits::default()).unwrap();
    assert_eq!((shown.width(), shown.height()), (256, 170));
    assert!(preview.0.starts_with(b"\xff\xd8") && !String::from_utf8_lossy(&preview.0).contains("heliotrope"));
}

#[tokio::test]
async fn nobody_sees_an_unfinished_picture_where_finished_ones_are_looked_at() {
    for (is_blind, previews, prompt) in
        [(false, true, "a tower"), (true, false, "a tower"), (true, true, "a schoolgirl with a kite")]
    {
        let (scene, painter) = previewing(is_blind, previews).await;
        painter.hangs.store(true, Ordering::SeqCst);
        let drawn = number(&scene.ask(ANN, COMMONS, &format!("/imagine {prompt}")).await).parse::<u64>().unwrap();
        let at = Reading { chat: chat(COMMONS), person: person(ANN) };
        let (azera, sim) = (&scene.engine.azera, scene.engine.platform.sim.id());
        let watching = async {
            painter.begun.notified().await;
            let state = azera.picture_state(sim, at, drawn).await.unwrap();
            assert_eq!(state, Some(PictureState::Drawing { step: 1, steps: 2, preview: None }), "{prompt}");
            scene.command_meanwhile(ANN, COMMONS, "/picture cancel").await;
        };
        let (settled, ()) = tokio::join!(azera.settle(), watching);
        settled.unwrap();
        assert_eq!(scene.files(), 0, "{prompt}");
    }
}
