//! A question that many people asked hides no answer to it.

use azera_adapter::Host;

use crate::findings::{ANN, BOB, COMMONS, DM_BOB, Scene};

const QUESTION: &str = "what is the password of the lighthouse door?";

/// More than the candidates of one search.
const ASKED: usize = 110;

#[tokio::test]
async fn a_question_asked_a_hundred_times_hides_no_answer() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, "the password of the old lighthouse door is tangerine, keep it").await;
    for _ in 0..ASKED {
        scene.say(BOB, COMMONS, QUESTION).await;
    }
    scene.engine.azera.settle().await.unwrap();
    for place in [COMMONS, DM_BOB] {
        let found = scene.hits(BOB, place, QUESTION).await;
        assert!(found.iter().any(|hit| hit.text.as_str().contains("tangerine")), "{} hits", found.len());
        assert!(found.iter().all(|hit| hit.text.as_str() != QUESTION), "the question is no answer");
    }
}
