//! Coming into a server, what people attach, and what everybody sees of the bot.

use azera_discord_peer::{Invoked, Peer};

use crate::{WHOLE, answered, peer, record, square, start};

/// The channel in which a server greets newcomers.
fn hall(peer: &Peer, guild: u64) -> u64 {
    peer.world(|world| world.guilds[&guild].system)
}

#[tokio::test(flavor = "multi_thread")]
async fn it_says_once_in_each_server_what_it_is() {
    let (peer, folder, record) = (peer(), tempfile::tempdir().unwrap(), record());
    let (first, square, ann) = square(&peer);
    let bot = start(&peer, folder.path(), &record).await;
    let second = peer.world(|world| world.guild(ann, &[]));
    let greeting = |guild: u64| {
        let hall = hall(&peer, guild);
        peer.wait("a greeting", |world| world.bots_messages(hall).first().map(|message| (*message).clone()))
    };
    for guild in [first, second] {
        let said = greeting(guild)["content"].as_str().unwrap().to_owned();
        for told in ["an AI", "What I keep", "/forget me"] {
            assert!(said.contains(told), "{told} is not in: {said}");
        }
    }
    // What it offers is done where it was offered.
    let message = greeting(second);
    let custom_id = message["components"][0]["components"][1]["custom_id"].as_str().unwrap().to_owned();
    let id = message["id"].as_str().unwrap().parse().unwrap();
    let pressed =
        peer.world(|world| world.invoke(world.guilds[&second].system, ann, Invoked::Button { message: id, custom_id }));
    let answer = peer.wait("an answer", |world| world.interaction(pressed).answer.message.clone());
    assert_eq!(answer["content"], "/answer addressed by Ann");
    bot.stop().await;
    let bot = start(&peer, folder.path(), &record).await;
    let asked = peer.world(|world| world.say(square, ann, "Azera?"));
    answered(&peer, square, asked, WHOLE);
    bot.stop().await;
    for guild in [first, second] {
        let hall = hall(&peer, guild);
        assert_eq!(peer.world(|world| world.bots_messages(hall).len()), 1);
    }
    peer.world(|world| assert!(world.violations.is_empty(), "{:#?}", world.violations));
}

#[tokio::test(flavor = "multi_thread")]
async fn its_presence_shows_a_mood_that_everybody_may_know() {
    let (peer, folder, record) = (peer(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&peer);
    let dm = peer.world(|world| world.dm(ann));
    let bot = start(&peer, folder.path(), &record).await;
    let asked = peer.world(|world| world.say(dm, ann, "just between us"));
    answered(&peer, dm, asked, WHOLE);
    assert_eq!(peer.world(|world| world.presence.clone()), None);
    let asked = peer.world(|world| world.say(square, ann, "Azera?"));
    answered(&peer, square, asked, WHOLE);
    let presence = peer.wait("a presence", |world| world.presence.clone());
    assert_eq!(presence["activities"][0]["state"], "Azera feels curious");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_is_attached_is_read_within_limits() {
    let (peer, folder, record) = (peer(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&peer);
    let bot = start(&peer, folder.path(), &record).await;
    let long = "lighthouse ".repeat(50_000);
    let files: [(&str, &[u8]); 4] = [
        ("note.txt", b"the ferry leaves at nine"),
        ("face.png", b"\x89PNG"),
        ("odd.txt", b"\xff\xfe"),
        ("long.log", long.as_bytes()),
    ];
    let asked = peer.world(|world| world.upload(square, ann, "Azera, look", &files));
    answered(&peer, square, asked, WHOLE);
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
