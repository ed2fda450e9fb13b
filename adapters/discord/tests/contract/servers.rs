//! Servers that remove the bot.

use azera_adapter_discord::Settings;

use crate::{PATIENCE, WHOLE, answered, peer, record, settings, square, start_as};

#[tokio::test(flavor = "multi_thread")]
async fn while_a_server_is_forgotten_the_others_are_answered_and_it_may_come_back() {
    let (peer, folder, record) = (peer(), tempfile::tempdir().unwrap(), record());
    let ((first, _, _), (second, _, _), (_, elsewhere, ann)) = (square(&peer), square(&peer), square(&peer));
    let at_once = Settings { keep_removed_days: 0, ..settings(&peer, folder.path(), &peer.token) };
    let bot = start_as(at_once, folder.path(), &record, None).await;
    let asked = peer.world(|world| world.say(elsewhere, ann, "Azera, one"));
    answered(&peer, elsewhere, asked, WHOLE);
    record.forget.send_replace(false);
    let gone = peer.world(|world| [world.evict(first), world.evict(second)]);
    let begun = tokio::time::timeout(PATIENCE, record.left.subscribe().wait_for(|left| *left == 1)).await.is_ok();
    assert!(begun, "waited in vain for the first to be forgotten");
    let asked = peer.world(|world| world.say(elsewhere, ann, "Azera, two"));
    answered(&peer, elsewhere, asked, WHOLE);
    // Both are back before the one is forgotten and the other begun with.
    peer.world(|world| {
        for guild in gone {
            world.readmit(guild);
        }
    });
    let asked = peer.world(|world| world.say(elsewhere, ann, "Azera, three"));
    answered(&peer, elsewhere, asked, WHOLE);
    record.forget.send_replace(true);
    let asked = peer.world(|world| world.say(elsewhere, ann, "Azera, four"));
    answered(&peer, elsewhere, asked, WHOLE);
    bot.stop().await;
    assert_eq!(*record.left.borrow(), 1);
}
