//! Journal entries reach the channel chosen for them.

use azera_fake_discord::{FakeDiscord, Fault, Invoked, World};

use crate::bot::Bot;
use crate::commands::{answer_text, give, square};
use crate::model::Model;
use crate::{answered_for_good, as_described, fake, text};

/// The entry that the model writes.
const ENTRY: &str =
    "The lanterns over the bridge stay with me tonight; I would like to walk behind such a parade myself.";

/// Counts the posts of the entry in a channel. The answer to the command is ephemeral and does not count.
fn entries(world: &World, channel: u64) -> usize {
    world.bots_messages(channel).into_iter().filter(|message| text(message) == ENTRY).count()
}

/// Presses a button under the entry.
#[track_caller]
fn press(fake: &FakeDiscord, channel: u64, who: u64, label: &str) -> String {
    let pressed = fake.world(|world| {
        let entry = world.bots_messages(channel).into_iter().find(|message| text(message) == ENTRY);
        let message = entry.expect("the entry").clone();
        let buttons = message["components"][0]["components"].as_array().cloned().unwrap_or_default();
        let button = buttons.iter().find(|button| button["label"] == *label).expect("a button");
        let custom_id = button["custom_id"].as_str().expect("an id").to_owned();
        let message = message["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        world.invoke(channel, who, Invoked::Button { message, custom_id })
    });
    answer_text(fake, pressed)
}

/// Only an admin can import an archive, and it belongs to that place.
#[test]
fn an_admin_imports_an_archive_as_a_file() {
    let fake = fake();
    let ([ann, bob, _], square) = square(&fake);
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let file = "# 2026-03-01: The sea\nI swam far out.\n\n# 2026-03-02\nI flew home.";
    let refused = give(&fake, square, bob, "dream", "import", &[("file", file)]);
    assert!(refused.contains("Only admins can import"), "{refused}");
    let brought = give(&fake, square, ann, "dream", "import", &[("text", "a word on it"), ("file", file)]);
    assert!(brought.contains("Imported: 2 dreams"), "{brought}");
    let listed = give(&fake, square, bob, "dream", "list", &[]);
    assert!(listed.contains("The sea: I swam far out.") && listed.contains("I flew home."), "{listed}");
    assert!(!listed.contains("a word on it"), "{listed}");
    let broken = give(&fake, square, ann, "garden", "import", &[("file", "[{]")]);
    assert!(broken.contains("Nothing was imported") && broken.contains("line 1 column 3"), "{broken}");
    as_described(&fake);
}

/// An entry is posted once, in the chosen channel, even if the bot is killed after Discord stored it and before the bot
/// knows.
#[test]
fn an_entry_is_posted_once_in_the_chosen_channel() {
    let fake = fake();
    let ([ann, bob, _], square) = square(&fake);
    let journal = fake.world(|world| {
        let guild = world.channels[&square].guild.expect("a server");
        world.channel(guild, "journal", Vec::new())
    });
    let model = Model::start(std::sync::Arc::new(|body| {
        let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let writes = last["content"].as_str().is_some_and(|text| text.ends_with("Write the journal entry."));
        (if writes { ENTRY } else { "Noted." }.to_owned(), String::new())
    }));
    let mut bot = Bot::new(&fake, Some(&model));
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let refused = give(&fake, journal, bob, "journal", "here", &[]);
    assert!(refused.contains("Only admins"), "{refused}");
    let here = give(&fake, journal, ann, "journal", "here", &[]);
    assert!(here.contains("posted here"), "{here}");
    for (who, said) in [
        (ann, "Azera, a lantern parade crosses the old bridge tonight"),
        (bob, "Azera, the brass band plays under the bridge until midnight"),
    ] {
        let question = fake.world(|world| world.say(square, who, said));
        answered_for_good(&fake, square, question, "Noted.");
    }
    let path = format!("/channels/{journal}/messages");
    fake.world(|world| world.order(Fault::done_but_fails("POST", &path, 500)));
    give(&fake, square, ann, "journal", "trigger", &[]);
    fake.wait("the entry", |world| (entries(world, journal) == 1).then_some(()));
    bot.kill(&fake);
    fake.world(World::forget_nonces);
    bot.start(&fake);
    fake.wait("it to be found again", |world| {
        let found = world.requests.iter().any(|request| request.method == "PATCH" && request.path.starts_with(&path));
        found.then_some(())
    });
    bot.stop(&fake);
    bot.start(&fake);
    let question = fake.world(|world| world.say(journal, bob, "Azera, are you there?"));
    answered_for_good(&fake, journal, question, "Noted.");
    fake.world(|world| assert_eq!((entries(world, journal), entries(world, square)), (1, 0)));
    // The entry explains its sources, and only an admin can forget it.
    let why = press(&fake, journal, bob, "Why?");
    assert!(why.contains("Written by") && why.contains("lantern parade"), "{why}");
    let refused = press(&fake, journal, bob, "Forget");
    assert!(refused.contains("somebody else's"), "{refused}");
    let receipt = press(&fake, journal, ann, "Forget");
    assert!(receipt.starts_with("Forgotten"), "{receipt}");
    fake.wait("the entry to go", |world| (entries(world, journal) == 0).then_some(()));
    as_described(&fake);
}
