//! Pictures that are not drawn: the person who asked is told why, once, and nothing of what it was to show.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use azera_model_api::ScriptedModel;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, GUILD, Scene};
use crate::pictures::{Painter, number, settings};
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
async fn whoever_is_answered_with_a_refused_tag_is_told_once_a_day_without_the_word() {
    let (mut scene, painter) = Scene::with_painter(|settings| settings.per_person = 1).await;
    scene.engine.answered_by(Arc::new(ScriptedModel::saying(TAG))).await;
    assert!(scene.ask(ANN, COMMONS, "/picture forbid tower").await.ok);
    scene.say(AN, COMMONS, "Luna, show me something, quiet").await;
    scene.say(AN, COMMONS, "Luna, show me something, quiet").await;
    let rule = "No picture: Something in it is on the list of words that this place does not want in pictures.";
    assert_eq!(scene.reasons(), [rule]);
    scene.ask(ANN, COMMONS, "/picture permit tower").await;
    scene.say(AN, COMMONS, "Luna, show me something, quiet").await;
    assert_eq!((painter.asked.lock().unwrap().len(), scene.reasons().len()), (1, 1));
    scene.say(AN, COMMONS, "Luna, and another, quiet").await;
    let limit = "No picture: You have asked for 1 pictures today, and that is the most. Ask again tomorrow.";
    assert_eq!(scene.reasons()[1..], [limit]);
}

#[tokio::test]
async fn a_refused_tag_is_told_with_its_rule() {
    for (prompt, rule) in [
        ("a nude schoolgirl", "I never draw anything sexual with somebody under 18 in it."),
        ("a nude woman", "Nothing sexual is drawn here."),
        ("I want to kill myself", "I do not draw how somebody harms or kills themselves."),
    ] {
        let (mut scene, painter) = Scene::with_painter(|_| {}).await;
        let tag = format!("Look. [IMAGE_GEN: prompt=\"{prompt}\"]");
        scene.engine.answered_by(Arc::new(ScriptedModel::new(Arc::new(move |_: &[_]| tag.clone())))).await;
        scene.say(AN, COMMONS, "Luna, show me something, quiet").await;
        assert_eq!(scene.reasons(), [format!("No picture: {rule}")], "{prompt}");
        assert!(painter.asked.lock().unwrap().is_empty(), "{prompt}");
    }
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
    assert_eq!(scene.reasons(), ["No picture: Nothing draws pictures here."]);
    scene.say(ANN, DM_ANN, "show me a tower").await;
    assert_eq!(scene.reasons().len(), 1, "once a day");
    scene.pass(24 * 3_600);
    scene.say(ANN, DM_ANN, "show me a tower").await;
    assert_eq!(scene.reasons().len(), 2, "the next day");
    let (mut scene, _) = Scene::with_painter(|settings| settings.in_replies = false).await;
    scene.engine.answered_by(Arc::new(ScriptedModel::saying(LOOK))).await;
    scene.say(ANN, DM_ANN, "show me a tower").await;
    assert_eq!(scene.reasons(), ["No picture: I do not draw by myself here. `/imagine` draws."]);
}

#[tokio::test]
async fn pictures_wait_while_what_draws_is_configured_wrong() {
    let (mut scene, painter) = Scene::with_painter(|_| {}).await;
    painter.hangs.store(true, Ordering::SeqCst);
    scene.ask(ANN, COMMONS, "/imagine a violet boat").await;
    scene.engine.azera.stop().await;
    painter.hangs.store(false, Ordering::SeqCst);
    painter.asked.lock().unwrap().clear();
    let drawing = scene.engine.pictures.take();
    scene.engine.are_pictures_set_aside = true;
    scene.engine.reopen().await;
    scene.settled().await;
    assert_eq!((scene.reasons().len(), scene.posts().len()), (0, 0));
    assert_eq!(scene.engine.memory.pictures().waiting().unwrap().len(), 1);
    scene.engine.pictures = drawing;
    scene.engine.reopen().await;
    scene.settled().await;
    assert_eq!((painter.asked.lock().unwrap().len(), scene.posts().len()), (1, 1));
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
async fn a_picture_that_the_rules_overtake_ends_with_a_word_without_its_prompt() {
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
    let retracted = scene.engine.platform.retracted.lock().unwrap().clone();
    assert_eq!(retracted, [home.message], "an edited message would still show the prompt in its history");
}

#[tokio::test]
async fn a_picture_that_new_readers_may_not_see_ends_with_a_word_without_its_prompt() {
    let mut scene = Scene::open(true, false).await;
    let painter = Arc::new(Painter::default());
    scene.engine.pictures = Some(settings(painter.clone()));
    scene.engine.answered_by(Arc::new(ScriptedModel::saying(LOOK))).await;
    scene.pass(3 * 3_600);
    painter.hangs.store(true, Ordering::SeqCst);
    let asked = scene.message(ANN, COMMONS, "Luna, show me a tower, quiet");
    scene.submit(asked).await.unwrap();
    painter.begun.notified().await;
    scene.engine.azera.stop().await;
    painter.hangs.store(false, Ordering::SeqCst);
    scene.change(Change::Join(BOB, GUILD));
    scene.engine.reopen().await;
    scene.settled().await;
    let reasons = scene.reasons();
    assert!(reasons.len() == 1 && reasons[0].contains("Other people read here now"), "{:?}", scene.delivered());
    assert!(!reasons[0].contains("violet"));
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

#[tokio::test]
async fn a_picture_waits_half_an_hour_for_a_server_that_is_away_and_then_says_so() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    painter.is_away.store(true, Ordering::SeqCst);
    scene.ask(ANN, COMMONS, "/imagine a violet boat").await;
    for _ in 0..6 {
        scene.settled().await;
    }
    assert_eq!((scene.posts(), scene.reasons()), (Vec::new(), Vec::new()), "tries that reach nobody do not count");
    painter.is_away.store(false, Ordering::SeqCst);
    scene.settled().await;
    assert_eq!(scene.posts().iter().map(|(_, files)| *files).collect::<Vec<_>>(), [1]);
    painter.is_away.store(true, Ordering::SeqCst);
    scene.ask(ANN, COMMONS, "/imagine a ship").await;
    scene.settled().await;
    scene.pass(31 * 60);
    scene.settled().await;
    let (text, files) = scene.posts().pop().unwrap();
    assert!(text.contains("could not be reached for 30 minutes") && files == 0, "{text}");
    assert!(scene.engine.memory.pictures().waiting().unwrap().is_empty());
}

#[tokio::test]
async fn one_place_holds_half_of_the_queue() {
    let limit = |settings: &mut azera_engine::PictureSettings| (settings.queue, settings.queue_per_person) = (4, 2);
    let (scene, painter) = Scene::with_painter(limit).await;
    painter.hangs.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        assert!(scene.ask(ANN, COMMONS, "/imagine a boat").await.ok);
    }
    let refused = scene.ask(AN, COMMONS, "/imagine a boat").await;
    assert!(!refused.ok && refused.text.contains("Half"), "{}", refused.text);
    assert!(scene.ask(AN, DM_AN, "/imagine a boat").await.ok);
    for _ in 0..2 {
        assert!(scene.ask(ANN, COMMONS, "/picture cancel").await.ok);
    }
    assert!(scene.ask(AN, COMMONS, "/imagine a boat").await.ok);
}

#[tokio::test]
async fn the_words_that_a_server_forbids_are_drawn_in_none_of_its_channels() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    assert!(scene.ask(ANN, COMMONS, "/picture forbid spiders").await.ok);
    let refused = scene.ask(ANN, DEN, "/imagine violet spiders").await;
    assert!(!refused.ok && refused.text.contains("`spiders`"), "{}", refused.text);
    let rules = scene.ask(ANN, DEN, "/picture rules").await.text;
    assert!(rules.ends_with("This place forbids no words. Words that its server forbids: spiders."), "{rules}");
    let permitted = scene.ask(ANN, DEN, "/picture permit spiders").await;
    assert!(!permitted.ok && permitted.text.contains("The server forbids"), "{}", permitted.text);
    assert!(scene.ask(ANN, DM_ANN, "/imagine violet spiders").await.ok, "it is no channel of the server");
    scene.settled().await;
    assert_eq!(painter.asked.lock().unwrap().len(), 1);
}
