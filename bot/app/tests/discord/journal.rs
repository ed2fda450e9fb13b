//! What is written between messages reaches the channel that was chosen for it.

use azera_discord_peer::{Fault, Invoked, Peer, World};

use crate::bot::Bot;
use crate::commands::{give, square, told};
use crate::model::Model;
use crate::{answered_for_good, as_described, peer, text};

/// What the model writes into the journal.
const ENTRY: &str =
    "The lanterns over the bridge stay with me tonight; I would like to walk behind such a parade myself.";

/// Whether a message is the entry. The answer to who asked for it is shown to them alone and stands in no channel.
fn entries(world: &World, channel: u64) -> usize {
    world.bots_messages(channel).into_iter().filter(|message| text(message) == ENTRY).count()
}

/// Presses a button under the entry.
#[track_caller]
fn press(peer: &Peer, channel: u64, who: u64, label: &str) -> String {
    let pressed = peer.world(|world| {
        let entry = world.bots_messages(channel).into_iter().find(|message| text(message) == ENTRY);
        let message = entry.expect("the entry").clone();
        let buttons = message["components"][0]["components"].as_array().cloned().unwrap_or_default();
        let button = buttons.iter().find(|button| button["label"] == *label).expect("a button");
        let custom_id = button["custom_id"].as_str().expect("an id").to_owned();
        let message = message["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        world.invoke(channel, who, Invoked::Button { message, custom_id })
    });
    told(peer, pressed)
}

/// An archive comes as a file, by whoever keeps the place, and is for that place.
#[test]
fn an_archive_is_brought_as_a_file() {
    let peer = peer();
    let ([ann, bob, _], square) = square(&peer);
    let mut bot = Bot::new(&peer, None);
    bot.start(&peer);
    peer.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let file = "# 2026-03-01: The sea\nI swam far out.\n\n# 2026-03-02\nI flew home.";
    let refused = give(&peer, square, bob, "dream", "import", &[("file", file)]);
    assert!(refused.contains("by its admins"), "{refused}");
    let brought = give(&peer, square, ann, "dream", "import", &[("text", "a word on it"), ("file", file)]);
    assert!(brought.contains("Brought in: 2 dreams"), "{brought}");
    let listed = give(&peer, square, bob, "dream", "list", &[]);
    assert!(listed.contains("The sea: I swam far out.") && listed.contains("I flew home."), "{listed}");
    assert!(!listed.contains("a word on it"), "{listed}");
    let broken = give(&peer, square, ann, "garden", "import", &[("file", "[{]")]);
    assert!(broken.contains("Nothing was brought in") && broken.contains("line 1 column 3"), "{broken}");
    as_described(&peer);
}

/// One entry is posted once, where it was chosen, though the bot is killed when Discord has it and the bot does not know.
#[test]
fn an_entry_is_posted_once_where_it_was_chosen() {
    let peer = peer();
    let ([ann, bob, _], square) = square(&peer);
    let journal = peer.world(|world| {
        let guild = world.channels[&square].guild.expect("a server");
        world.channel(guild, "journal", Vec::new())
    });
    let model = Model::start(std::sync::Arc::new(|body| {
        let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let writes = last["content"].as_str().is_some_and(|text| text.ends_with("Write the journal entry."));
        (if writes { ENTRY } else { "Noted." }.to_owned(), String::new())
    }));
    let mut bot = Bot::new(&peer, Some(&model));
    bot.start(&peer);
    peer.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let refused = give(&peer, journal, bob, "journal", "here", &[]);
    assert!(refused.contains("the admins' choice"), "{refused}");
    let here = give(&peer, journal, ann, "journal", "here", &[]);
    assert!(here.contains("posted here"), "{here}");
    for (who, said) in [
        (ann, "Azera, a lantern parade crosses the old bridge tonight"),
        (bob, "Azera, the brass band plays under the bridge until midnight"),
    ] {
        let asked = peer.world(|world| world.say(square, who, said));
        answered_for_good(&peer, square, asked, "Noted.");
    }
    let path = format!("/channels/{journal}/messages");
    peer.world(|world| world.order(Fault::done_but_fails("POST", &path, 500)));
    give(&peer, square, ann, "journal", "trigger", &[]);
    peer.wait("the entry", |world| (entries(world, journal) == 1).then_some(()));
    bot.kill(&peer);
    peer.world(World::forget_nonces);
    bot.start(&peer);
    peer.wait("it to be found again", |world| {
        let found = world.asked.iter().any(|asked| asked.method == "PATCH" && asked.path.starts_with(&path));
        found.then_some(())
    });
    bot.stop(&peer);
    bot.start(&peer);
    let asked = peer.world(|world| world.say(journal, bob, "Azera, are you there?"));
    answered_for_good(&peer, journal, asked, "Noted.");
    peer.world(|world| assert_eq!((entries(world, journal), entries(world, square)), (1, 0)));
    // How it came to be is told, and it goes when an admin has it forgotten.
    let why = press(&peer, journal, bob, "Why?");
    assert!(why.contains("Written by") && why.contains("lantern parade"), "{why}");
    let refused = press(&peer, journal, bob, "Forget");
    assert!(refused.contains("somebody else's"), "{refused}");
    let receipt = press(&peer, journal, ann, "Forget");
    assert!(receipt.starts_with("Forgotten"), "{receipt}");
    peer.wait("the entry to go", |world| (entries(world, journal) == 0).then_some(()));
    as_described(&peer);
}
