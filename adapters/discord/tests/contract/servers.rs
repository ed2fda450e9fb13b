//! Servers that remove the bot.

use azera_adapter_discord::Settings;

use crate::{PATIENCE, WHOLE, answered, fake, record, settings, square, start_as};

#[tokio::test(flavor = "multi_thread")]
async fn other_servers_are_answered_while_one_is_forgotten_and_it_may_come_back() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let ((first, _, _), (second, _, _), (_, other_server, ann)) = (square(&fake), square(&fake), square(&fake));
    let at_once = Settings { keep_removed_days: 0, ..settings(&fake, folder.path(), &fake.token) };
    let bot = start_as(at_once, folder.path(), &record, None).await;
    let requests = fake.world(|world| world.say(other_server, ann, "Azera, one"));
    answered(&fake, other_server, requests, WHOLE);
    record.forget.send_replace(false);
    let gone = fake.world(|world| [world.evict(first), world.evict(second)]);
    let begun = tokio::time::timeout(PATIENCE, record.left.subscribe().wait_for(|left| *left == 1)).await.is_ok();
    assert!(begun, "the first server was not forgotten in time");
    let requests = fake.world(|world| world.say(other_server, ann, "Azera, two"));
    answered(&fake, other_server, requests, WHOLE);
    // Both are back before the first is forgotten and the other started.
    fake.world(|world| {
        for guild in gone {
            world.readmit(guild);
        }
    });
    let requests = fake.world(|world| world.say(other_server, ann, "Azera, three"));
    answered(&fake, other_server, requests, WHOLE);
    record.forget.send_replace(true);
    let requests = fake.world(|world| world.say(other_server, ann, "Azera, four"));
    answered(&fake, other_server, requests, WHOLE);
    bot.stop().await;
    assert_eq!(*record.left.borrow(), 1);
}
