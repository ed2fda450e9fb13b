//! Pictures over [`PictureHost`] that are drawn larger, and what models are told about drawing.

use azera_adapter::{PictureAsked, PictureHost, Platform, Reading};

use crate::findings::{AN, ANN, BOB, COMMONS, DM_AN, DM_ANN, DM_BOB, Scene};
use crate::passages::watching_model;
use crate::pictures::number;
use crate::test_engine::{chat, person};

impl Scene {
    async fn enlarge(&self, (who, place): (usize, usize), number: u64) -> Option<PictureAsked> {
        self.pass(90);
        let at = Reading { chat: chat(place), person: person(who) };
        let asked = self.engine.azera.upscale(self.engine.platform.sim.id(), at, number).await.unwrap();
        self.settled().await;
        asked
    }
}

#[tokio::test]
async fn a_picture_is_drawn_larger_only_where_it_may_be_shown() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    let asked = scene.give((ANN, DM_ANN), "/imagine a violet tower", None, None).await;
    let drawn = number(&asked).parse::<u64>().unwrap();
    for at in [(AN, DM_AN), (BOB, DM_BOB), (ANN, COMMONS)] {
        let answer = scene.enlarge(at, drawn).await;
        assert_eq!(answer, scene.enlarge(at, 987_654).await, "{at:?}");
        assert_eq!(answer, None, "{at:?}");
    }
    assert!(painter.enlarged.lock().unwrap().is_empty());
    let answer = scene.enlarge((ANN, DM_ANN), drawn).await;
    let Some(PictureAsked::Waits(larger)) = answer else { panic!("{answer:?}") };
    assert!(larger > drawn);
    assert_eq!(painter.enlarged.lock().unwrap().len(), 1);
    // It rests on the first one, and goes with it.
    let answer = scene.give((ANN, DM_ANN), &format!("/picture delete {drawn}"), None, None).await;
    assert!(answer.ok, "{}", answer.text);
    assert_eq!(scene.enlarge((ANN, DM_ANN), larger).await, None);
}

#[tokio::test]
async fn a_model_of_unknown_size_is_told_how_to_draw_only_where_the_operator_says_so() {
    for tells in [false, true] {
        let (mut scene, _) = Scene::with_painter(|settings| settings.tells_every_model = tells).await;
        let (model, prompts) = watching_model();
        scene.engine.answered_by(model).await;
        scene.say(ANN, DM_ANN, "show me a tower").await;
        let prompts = prompts.lock().unwrap();
        let prompt = prompts.iter().find(|prompt| prompt.contains("show me a tower")).unwrap();
        assert_eq!(prompt.contains("[IMAGE_GEN: prompt="), tells, "{prompt}");
        assert_eq!(prompt.contains("you can only talk and draw:"), tells, "{prompt}");
        assert_eq!(prompt.contains("you can only talk:"), !tells, "{prompt}");
    }
}
