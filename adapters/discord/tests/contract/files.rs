//! Files attached to messages.

use crate::host::UNANSWERABLE;
use crate::{PATIENCE, fake, record, square, start};

#[tokio::test(flavor = "multi_thread")]
async fn chunks_of_a_long_file_are_stored_even_if_the_message_cannot_be_answered() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    let file = "a page of the log of the harbour\n".repeat(300);
    for text in ["Azera, keep this", UNANSWERABLE] {
        let before = *record.brought.borrow();
        fake.world(|world| world.upload(square, ann, text, &[("harbour.log", file.as_bytes())]));
        let mut brought = record.brought.subscribe();
        let some = tokio::time::timeout(PATIENCE, brought.wait_for(|pieces| *pieces > before)).await.is_ok();
        assert!(some, "no text arrived after {text:?}");
    }
    bot.stop().await;
}
