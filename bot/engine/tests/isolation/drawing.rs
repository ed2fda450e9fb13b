//! What a platform shows of pictures before they are drawn, and a gate that holds such a text on its way.

use std::sync::Mutex;

use azera_adapter::{Outbound, PictureProgress};
use azera_types::MessageId;
use tokio::sync::Notify;

use crate::findings::{AN, ANN, COMMONS, Scene};
use crate::pictures::number;

/// What is shown of drawings.
#[derive(Default)]
pub struct Drawing {
    /// How pictures looked while they were drawn.
    pub previews: Mutex<Vec<Vec<u8>>>,
    /// The message of which the next text is held.
    holds: Mutex<Option<MessageId>>,
    /// Told once it is held.
    held: Notify,
    goes_on: Notify,
    /// Texts that came behind the message that they were about.
    late: Mutex<Vec<String>>,
}

impl Drawing {
    /// Shows a text about a message, held before that if it is to be.
    pub async fn show(&self, delivered: &Mutex<Vec<Outbound>>, message: &MessageId, progress: PictureProgress<'_>) {
        let is_held = self.holds.lock().unwrap().take_if(|held| held == message).is_some();
        if is_held {
            self.held.notify_one();
            self.goes_on.notified().await;
        }
        if delivered.lock().unwrap().iter().any(|outbound| outbound.id == *message) {
            self.late.lock().unwrap().push(progress.text.to_owned());
        }
        self.previews.lock().unwrap().extend(progress.preview.map(<[u8]>::to_vec));
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_on_its_way_comes_before_the_message_that_ends_the_waiting() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    painter.hangs.store(true, std::sync::atomic::Ordering::SeqCst);
    let first = number(&scene.ask(AN, COMMONS, "/imagine a boat").await);
    painter.begun.notified().await;
    let second = number(&scene.ask(AN, COMMONS, "/imagine a mill").await);
    let third = number(&scene.ask(AN, COMMONS, "/imagine a hut").await);
    let message = MessageId::new(format!("post~{third}")).unwrap();
    let drawing = &scene.engine.platform.drawing;
    *drawing.holds.lock().unwrap() = Some(message.clone());
    // The third moves up, and is told so. That text is on its way when an admin takes the picture back.
    assert!(scene.ask(AN, COMMONS, &format!("/picture cancel {second}")).await.ok);
    drawing.held.notified().await;
    let line = format!("/picture cancel {third}");
    let taking_back = scene.ask(ANN, COMMONS, &line);
    let let_go = async {
        while !scene.engine.memory.pictures().is_told(&message).unwrap() {
            tokio::task::yield_now().await;
        }
        assert!(!scene.posts().iter().any(|(text, _)| text.contains("a hut")), "it is not behind the text");
        drawing.goes_on.notify_one();
    };
    let (answer, ()) = tokio::join!(taking_back, let_go);
    assert!(answer.ok, "{}", answer.text);
    painter.hangs.store(false, std::sync::atomic::Ordering::SeqCst);
    scene.ask(AN, COMMONS, &format!("/picture cancel {first}")).await;
    scene.settled().await;
    let delivered = scene.engine.platform.delivered.lock().unwrap();
    let ends: Vec<&str> = delivered.iter().filter(|it| it.id == message).map(|it| it.text.as_str()).collect();
    assert!(ends.len() == 1 && ends[0].contains("An admin took it back"), "{ends:?}");
    assert_eq!(*drawing.late.lock().unwrap(), Vec::<String>::new());
}
