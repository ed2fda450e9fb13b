//! The greeting in a new server, attached files, and the presence.

use azera_fake_discord::{FakeDiscord, Invoked};

use crate::{WHOLE, answered, fake, record, square, start};

/// Returns the system channel of a server.
fn lobby(fake: &FakeDiscord, guild: u64) -> u64 {
    fake.world(|world| world.guilds[&guild].system)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bot_introduces_itself_once_in_each_server() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (first, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    let second = fake.world(|world| world.guild(ann, &[]));
    let greeting = |guild: u64| {
        let lobby = lobby(&fake, guild);
        fake.wait("a greeting", |world| world.bots_messages(lobby).first().map(|message| (*message).clone()))
    };
    for guild in [first, second] {
        let said = greeting(guild)["content"].as_str().unwrap().to_owned();
        for part in ["an AI", "What I keep", "/forget me"] {
            assert!(said.contains(part), "{part} is not in: {said}");
        }
    }
    // The greeting's buttons act in the channel of the greeting.
    let message = greeting(second);
    let custom_id = message["components"][0]["components"][1]["custom_id"].as_str().unwrap().to_owned();
    let id = message["id"].as_str().unwrap().parse().unwrap();
    let pressed =
        fake.world(|world| world.invoke(world.guilds[&second].system, ann, Invoked::Button { message: id, custom_id }));
    let answer = fake.wait("an answer", |world| world.interaction(pressed).answer.message.clone());
    assert_eq!(answer["content"], "/answer addressed by Ann");
    bot.stop().await;
    let bot = start(&fake, folder.path(), &record).await;
    let requests = fake.world(|world| world.say(square, ann, "Azera?"));
    answered(&fake, square, requests, WHOLE);
    bot.stop().await;
    for guild in [first, second] {
        let lobby = lobby(&fake, guild);
        assert_eq!(fake.world(|world| world.bots_messages(lobby).len()), 1);
    }
    fake.world(|world| assert!(world.violations.is_empty(), "{:#?}", world.violations));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_presence_shows_a_mood_that_everyone_may_know() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let dm = fake.world(|world| world.dm(ann));
    let bot = start(&fake, folder.path(), &record).await;
    let requests = fake.world(|world| world.say(dm, ann, "just between us"));
    answered(&fake, dm, requests, WHOLE);
    assert_eq!(fake.world(|world| world.presence.clone()), None);
    let requests = fake.world(|world| world.say(square, ann, "Azera?"));
    answered(&fake, square, requests, WHOLE);
    let presence = fake.wait("a presence", |world| world.presence.clone());
    assert_eq!(presence["activities"][0]["state"], "Azera feels curious");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attached_text_is_read_within_limits() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    let long = "lighthouse ".repeat(50_000);
    let files: [(&str, &[u8]); 4] = [
        ("note.txt", b"the ferry leaves at nine"),
        ("face.png", b"\x89PNG"),
        ("odd.txt", b"\xff\xfe"),
        ("long.log", long.as_bytes()),
    ];
    let requests = fake.world(|world| world.upload(square, ann, "Azera, look", &files));
    answered(&fake, square, requests, WHOLE);
    bot.stop().await;
    let heard = record.heard.lock().unwrap().clone();
    let (short, long) = heard.split_once("[attached: long.log").unwrap();
    let expected = "Azera, look\n\
        [attached: note.txt (text/plain; charset=utf-8, 24 bytes)]\nthe ferry leaves at nine\n\
        [attached: face.png (image/png, 4 bytes)]\n\
        [attached: odd.txt (text/plain; charset=utf-8, 2 bytes); it is no text]\n";
    assert_eq!(short, expected);
    assert!(long.contains("it goes on behind what follows"), "{}", long.chars().take(200).collect::<String>());
    assert!(heard.chars().count() < 5_000);
}
