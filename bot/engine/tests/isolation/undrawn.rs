//! Pictures that are not drawn: the person who asked is told why, once, and nothing of what it was to show.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use azera_model_api::ScriptedModel;

use crate::findings::{AN, ANN, BOB, COMMONS, DM_ANN, GUILD, Scene};
use crate::pictures::number;
use crate::world::Change;

const TAG: &str = "[IMAGE_GEN: prompt=\"a violet tower\"]";

const LOOK: &str = "Look. [IMAGE_GEN: prompt=\"a violet tower\"]";

impl Scene {
    /// Returns the messages that say why a picture is not drawn.
    fn reasons(&self) -> Vec<String> {
        let reasons = self.delivered().into_iter();
        reasons.filter(|text| text.starts_with("No picture") || text.contains("is not drawn: ")).collect()
    }
}

#[tokio::test]
async fn whoever_is_answered_with_a_refused_tag_is_told_the_rule() {
    let (mut scene, painter) = Scene::with_painter(|settings| settings.per_person = 1).await;
    scene.engine.answered_by(Arc::new(ScriptedModel::saying(TAG))).await;
    assert!(scene.ask(ANN, COMMONS, "/picture forbid tower").await.ok);
    scene.say(AN, COMMONS, "Luna, show me something, quiet").await;
    assert_eq!(scene.reasons(), ["No picture: This place does not want pictures of that: `tower` is on its list."]);
    scene.ask(ANN, COMMONS, "/picture permit tower").await;
    scene.say(AN, COMMONS, "Luna, show me something, quiet").await;
    assert_eq!((painter.asked.lock().unwrap().len(), scene.reasons().len()), (1, 1));
    scene.say(AN, COMMONS, "Luna, and another, quiet").await;
    let limit = "No picture: You have asked for 1 pictures today, and that is the most. Ask again tomorrow.";
    assert_eq!(scene.reasons()[1..], [limit]);
}

#[tokio::test]
async fn a_reply_of_a_tag_alone_is_no_riddle_where_nothing_draws() {
    let mut scene = Scene::open(false, false).await;
    scene.engine.pictures = None;
    let asked = AtomicUsize::new(0);
    let second_time = move |_: &[_]| {
        let is_first = asked.fetch_add(1, Ordering::SeqCst) == 0;
        if is_first { TAG } else { "A tower, in words." }.to_owned()
    };
    scene.engine.answered_by(Arc::new(ScriptedModel::new(Arc::new(second_time)))).await;
    scene.say(ANN, DM_ANN, "show me a tower").await;
    assert_eq!(scene.reasons(), [] as [&str; 0]);
    assert!(scene.delivered().last().unwrap().contains("in words"), "{:?}", scene.delivered());
    scene.engine.answered_by(Arc::new(ScriptedModel::saying(TAG))).await;
    scene.say(ANN, DM_ANN, "show me a tower").await;
    assert!(scene.reasons()[0].contains("no server for pictures"), "{:?}", scene.reasons());
    let (mut scene, _) = Scene::with_painter(|settings| settings.in_replies = false).await;
    scene.engine.answered_by(Arc::new(ScriptedModel::saying(LOOK))).await;
    scene.say(ANN, DM_ANN, "show me a tower").await;
    assert_eq!(scene.reasons(), ["No picture: I do not draw by myself here. `/imagine` draws."]);
}

#[tokio::test]
async fn pictures_that_wait_end_with_a_word_when_nothing_draws_any_more() {
    let (mut scene, painter) = Scene::with_painter(|_| {}).await;
    painter.hangs.store(true, Ordering::SeqCst);
    scene.ask(ANN, COMMONS, "/imagine a violet boat").await;
    scene.ask(AN, COMMONS, "/imagine a violet ship").await;
    scene.engine.azera.stop().await;
    scene.engine.pictures = None;
    scene.engine.reopen().await;
    scene.settled().await;
    let reasons = scene.reasons();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.iter().all(|text| text.contains("no server for pictures") && !text.contains("violet")));
    assert!(scene.engine.memory.pictures().waiting().unwrap().is_empty());
}

#[tokio::test]
async fn a_picture_that_rules_or_readers_overtake_ends_with_a_word_without_its_prompt() {
    let (mut scene, painter) = Scene::with_painter(|_| {}).await;
    painter.hangs.store(true, Ordering::SeqCst);
    scene.ask(ANN, COMMONS, "/imagine violet spiders").await;
    scene.engine.azera.stop().await;
    let home = scene.engine.memory.pictures().waiting().unwrap().remove(0);
    let wishes = serde_json::json!({ "forbidden": ["spiders"] });
    scene.engine.memory.pictures().set_wishes(&home.platform, &home.scope, &wishes).unwrap();
    scene.engine.reopen().await;
    scene.settled().await;
    let refused = "This place does not want pictures of that: `spiders` is on its list.";
    assert_eq!(scene.reasons(), [format!("Picture {} is not drawn: {refused}", home.number)]);
    // A reply asks for a picture, and then somebody comes who may not read what it is built on.
    scene.engine.answered_by(Arc::new(ScriptedModel::saying(LOOK))).await;
    let asked = scene.message(ANN, COMMONS, "Luna, show me a tower, quiet");
    scene.submit(asked).await.unwrap();
    scene.engine.azera.stop().await;
    scene.change(Change::Join(BOB, GUILD));
    scene.engine.reopen().await;
    scene.settled().await;
    assert!(scene.reasons()[1].contains("Other people read here now"), "{:?}", scene.reasons());
    assert!(!scene.reasons()[1].contains("violet"));
}

#[tokio::test]
async fn a_picture_that_was_begun_too_often_is_told_and_not_dropped() {
    let (mut scene, painter) = Scene::with_painter(|_| {}).await;
    painter.hangs.store(true, Ordering::SeqCst);
    scene.ask(ANN, COMMONS, "/imagine a violet boat").await;
    scene.engine.azera.stop().await;
    let message = scene.engine.memory.pictures().waiting().unwrap().remove(0).message;
    // Killed thrice in the middle of it.
    for _ in 0..3 {
        scene.engine.memory.pictures().tried(&message).unwrap();
    }
    scene.engine.reopen().await;
    scene.settled().await;
    let reasons = scene.reasons();
    assert!(reasons.len() == 1 && reasons[0].contains("three times") && !reasons[0].contains("violet"), "{reasons:?}");
}

#[tokio::test]
async fn a_person_is_told_that_an_admin_took_the_picture_back() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    painter.hangs.store(true, Ordering::SeqCst);
    let drawn = number(&scene.ask(AN, COMMONS, "/imagine a violet boat").await);
    painter.begun.notified().await;
    assert!(scene.ask(ANN, COMMONS, &format!("/picture cancel {drawn}")).await.ok);
    scene.settled().await;
    assert_eq!(scene.reasons(), [format!("Picture {drawn} is not drawn: An admin took it back.")]);
}
