//! Defects that end a turn.

use azera_adapter::{Host, HostError};
use azera_types::MessageId;

use crate::findings::{ANN, COMMONS, Scene};
use crate::index::DEFECT;

/// A turn that panics is tried this often.
const TRIES: usize = 3;

fn is_open(scene: &Scene, id: &MessageId) -> bool {
    scene.engine.memory.turns().open(id).unwrap().is_some()
}

#[tokio::test]
async fn a_message_whose_blocking_work_panics_is_given_up_like_any_other_panic() {
    let mut scene = Scene::open(false, false).await;
    let message = scene.message(ANN, COMMONS, &format!("what was {DEFECT}? quiet"));
    let outcome = scene.submit(message).await;
    assert!(matches!(outcome, Err(HostError::Internal(_))), "it is no interruption: {outcome:?}");
    let id = scene.last();
    assert!(is_open(&scene, &id), "a panic may have been chance");
    for _ in 1..TRIES {
        scene.engine.reopen().await;
        scene.engine.azera.settle().await.unwrap();
    }
    assert!(!is_open(&scene, &id), "it is never given up");
}
