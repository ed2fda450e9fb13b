//! Forgotten replies are retracted, also when the platform is away while they are forgotten.

use azera_adapter::{Host, PlatformError};
use azera_types::{MessageId, Timestamp};

use crate::findings::{ANN, COMMONS, Scene};

const HOUR: i64 = 3_600;

impl Scene {
    /// Forgets an exchange while replies cannot be retracted.
    async fn forget_while(&mut self, fails: fn() -> PlatformError) {
        self.say(ANN, COMMONS, "the zeppelin lands at noon").await;
        *self.engine.platform.retract_fails.lock().unwrap() = Some(fails);
        self.command(ANN, COMMONS, "/forget last quotes").await;
        assert!(self.retracted().is_empty() && self.waiting() == 1);
    }

    fn retracted(&self) -> Vec<MessageId> {
        self.engine.platform.retracted.lock().unwrap().clone()
    }

    /// Returns how many replies are still to be retracted.
    fn waiting(&self) -> usize {
        self.engine.memory.forgetting().retractions_due(Timestamp::MAX).unwrap().len()
    }
}

#[tokio::test]
async fn a_reply_forgotten_while_the_platform_is_away_is_retracted_after_a_restart() {
    let mut scene = Scene::open(false, false).await;
    scene.forget_while(|| PlatformError::Transient("no line".into())).await;
    *scene.engine.platform.retract_fails.lock().unwrap() = None;
    scene.pass(HOUR);
    scene.engine.reopen().await;
    scene.engine.azera.settle().await.unwrap();
    assert_eq!((scene.retracted().len(), scene.waiting()), (1, 0));
}

#[tokio::test]
async fn a_reply_that_the_platform_refuses_to_retract_is_given_up_after_some_tries() {
    let mut scene = Scene::open(false, false).await;
    scene.forget_while(|| PlatformError::Refused("the chat is gone".into())).await;
    for tries in 1..5 {
        assert_eq!(scene.waiting(), 1, "given up after {tries}");
        scene.pass(HOUR);
        scene.engine.azera.settle().await.unwrap();
    }
    assert_eq!(scene.waiting(), 0, "it is never given up");
}
