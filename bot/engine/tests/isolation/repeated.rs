//! A question that many people asked hides no answer to it.

use azera_adapter::Host;

use crate::findings::{AN, ANN, COMMONS, DM_AN, Scene};
use crate::passages::watching_model;

const QUESTION: &str = "what is the password of the lighthouse door?";

/// More than the candidates of one search.
const ASKED: usize = 110;

#[tokio::test]
async fn a_question_asked_a_hundred_times_hides_no_answer() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, "the password of the old lighthouse door is tangerine, keep it").await;
    for _ in 0..ASKED {
        scene.say(AN, COMMONS, QUESTION).await;
    }
    scene.engine.azera.settle().await.unwrap();
    for place in [COMMONS, DM_AN] {
        let found = scene.hits(AN, place, QUESTION).await;
        assert!(found.iter().any(|hit| hit.text.as_str().contains("tangerine")), "{} hits", found.len());
    }
    let (model, prompts) = watching_model();
    scene.engine.answered_by(model).await;
    scene.say(AN, DM_AN, QUESTION).await;
    assert!(prompts.lock().unwrap().iter().any(|prompt| prompt.contains("tangerine")), "no prompt had the answer");
}
