//! Replies that people interrupt while they are spoken, and what is prepared while people speak.

use azera_adapter::{ExpectedMessage, Host, Platform, VoiceHost};
use azera_memory::{Order, Table};
use azera_types::{MessageId, Text};
use futures::FutureExt;

use crate::findings::{ANN, DM_ANN, Scene};
use crate::held::text_of;
use crate::test_engine::{chat, person};

impl Scene {
    /// Interrupts a reply as soon as its first piece is spoken.
    fn interrupt(&self, reply: MessageId, heard: &'static str) {
        let azera = self.engine.azera.clone();
        self.engine.platform.at_first_piece.set(move || {
            let mut told = Box::pin(async move { azera.heard(&reply, heard.into(), false).await });
            // The engine knows it before the model goes on.
            if told.as_mut().now_or_never().is_none() {
                tokio::spawn(told);
            }
        });
    }
}

#[tokio::test]
async fn a_reply_that_is_interrupted_before_it_is_stored_is_stored_as_it_was_heard() {
    let mut scene = Scene::open(false, false).await;
    let inbound = scene.message(ANN, DM_ANN, "the boats are back, launder");
    scene.interrupt(MessageId::new(format!("{}~r0", inbound.id)).unwrap(), "I");
    let outcome = scene.submit(inbound).await.unwrap();
    assert_eq!(text_of(&outcome), "I\u{2026}");
    assert_eq!(scene.delivered(), ["I\u{2026}"]);
    scene.engine.azera.settle().await.unwrap();
    assert!(scene.holds("the boats are back") && !scene.holds("recall musing"));
    // The next one is whole.
    scene.say(ANN, DM_ANN, "good morning, quiet").await;
    assert_eq!(scene.delivered(), ["I\u{2026}", "Noted."]);
}

#[tokio::test]
async fn a_call_that_is_over_does_not_take_back_what_was_heard() {
    let mut scene = Scene::open(false, false).await;
    let inbound = scene.message(ANN, DM_ANN, "good morning, quiet");
    let reply = MessageId::new(format!("{}~r0", inbound.id)).unwrap();
    scene.interrupt(reply.clone(), "Not");
    scene.submit(inbound).await.unwrap();
    scene.engine.azera.heard(&reply, "".into(), false).await.unwrap();
    scene.engine.azera.settle().await.unwrap();
    assert!(scene.holds("Not\u{2026}") && !scene.holds("Noted."));
}

#[tokio::test]
async fn what_is_not_said_to_its_end_leaves_no_trace() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, DM_ANN, "good morning, quiet").await;
    let store = scene.engine.layers.store.clone();
    let rows = || -> usize {
        let count = |table: &Table| store.scan(*table, b"", None, Order::Ascending, usize::MAX).unwrap().len();
        Table::ALL.iter().map(count).sum()
    };
    let before = rows();
    let text = Text::new("where did the lantern of the harbor go");
    let message = ExpectedMessage { chat: chat(DM_ANN), person: person(ANN), name: "Ann".into(), text };
    scene.engine.azera.expect(scene.engine.platform.sim.id(), message).await;
    assert_eq!(rows(), before);
}
