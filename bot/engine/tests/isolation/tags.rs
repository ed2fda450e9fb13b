//! Pictures over a stop of the machine: those that a reply asks for are queued with the reply, and the order stays fair.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use azera_model_api::ScriptedModel;

use crate::findings::{AN, ANN, COMMONS, DM_ANN, Scene};

const TAGS: &str = "Look. [IMAGE_GEN: prompt=\"a violet tower\"] And [IMAGE_GEN: prompt=\"a violet boat\"]";

#[tokio::test]
async fn a_crash_behind_the_reply_loses_no_picture_of_it() {
    let (mut scene, painter) = Scene::with_painter(|_| {}).await;
    scene.engine.answered_by(Arc::new(ScriptedModel::saying(TAGS))).await;
    scene.crash(ANN, COMMONS, "Luna, show me a tower").await;
    assert!(painter.asked.lock().unwrap().is_empty(), "it stopped before anything was drawn");
    scene.engine.reopen().await;
    scene.settled().await;
    let mut asked: Vec<String> = painter.asked.lock().unwrap().iter().map(|one| one.prompt.clone()).collect();
    asked.sort();
    assert_eq!(asked, ["a violet boat", "a violet tower"], "each once");
    assert_eq!(scene.posts().iter().filter(|(_, files)| *files == 1).count(), 2);
    scene.engine.reopen().await;
    scene.settled().await;
    assert_eq!(painter.asked.lock().unwrap().len(), 2, "the next start draws none again");
}

#[tokio::test]
async fn pictures_of_a_reply_go_with_it_and_keep_to_the_limits() {
    let (mut scene, painter) = Scene::with_painter(|settings| settings.per_person = 1).await;
    scene.engine.answered_by(Arc::new(ScriptedModel::saying(TAGS))).await;
    scene.crash(ANN, DM_ANN, "show me a tower").await;
    let waiting = scene.engine.memory.pictures().waiting().unwrap();
    assert_eq!(waiting.len(), 1, "one a day");
    painter.hangs.store(true, Ordering::SeqCst);
    scene.engine.reopen().await;
    assert!(scene.ask(ANN, DM_ANN, "/forget last quotes").await.ok);
    scene.settled().await;
    assert!(scene.engine.memory.pictures().waiting().unwrap().is_empty());
    assert!(!scene.holds("violet"), "no word of the prompt is left");
    assert!(scene.posts().iter().all(|(_, files)| *files == 0), "{:?}", scene.posts());
}

#[tokio::test]
async fn whoever_had_the_last_picture_before_a_restart_waits_for_the_others_after_it() {
    let (mut scene, painter) = Scene::with_painter(|_| {}).await;
    scene.ask(ANN, COMMONS, "/imagine the first of Ann").await;
    scene.settled().await;
    painter.hangs.store(true, Ordering::SeqCst);
    scene.ask(ANN, COMMONS, "/imagine the second of Ann").await;
    scene.ask(AN, COMMONS, "/imagine one of An").await;
    scene.engine.azera.stop().await;
    painter.hangs.store(false, Ordering::SeqCst);
    painter.asked.lock().unwrap().clear();
    scene.engine.reopen().await;
    scene.settled().await;
    let asked: Vec<String> = painter.asked.lock().unwrap().iter().map(|one| one.prompt.clone()).collect();
    assert_eq!(asked, ["one of An", "the second of Ann"]);
}
