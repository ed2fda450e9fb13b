//! Files in messages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use azera_fake_discord::FakeDiscord;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::bot::Bot;
use crate::commands::{find, give, kept_file, square};
use crate::model::Model;
use crate::{answered, answered_for_good, as_described, fake};

/// How long to wait for a change.
const LONGEST: Duration = Duration::from_secs(300);

/// The words to search for.
const SEARCH_WORDS: &str = "heliotrope key lighthouse keeper stair";

#[test]
fn the_end_of_a_long_file_is_found_by_its_readers_and_forgotten_with_its_message() {
    let fake = fake();
    let ([ann, bob, cid], square) = square(&fake);
    let den = fake.world(|world| {
        let guild = world.channels[&square].guild.expect("a server");
        world.private_channel(guild, "den", &[ann, bob])
    });
    let mut bot = Bot::new(&fake, None).recalling_at_once();
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let page = "The log of the harbour, of which nobody remembers a thing, goes on and on about ropes and tar.\n";
    let file =
        format!("{}The lighthouse keeper hides the heliotrope key under the third stair.\n{page}", page.repeat(150));
    let question = fake.world(|world| world.upload(den, bob, "Azera, keep this", &[("harbour.log", file.as_bytes())]));
    answered_for_good(&fake, den, question, "Noted.");
    let found = |channel: u64, who: u64| give(&fake, channel, who, "memory", "search", &[("words", SEARCH_WORDS)]);
    find(&fake, den, ann, SEARCH_WORDS, "heliotrope key under the third stair");
    assert!(!found(square, cid).contains("heliotrope"));
    fake.world(|world| world.delete(den, question));
    fake.wait("the answer to go", |world| world.answers(den, question).is_empty().then_some(()));
    assert!(!found(den, ann).contains("heliotrope"));
    as_described(&fake);
}

/// Waits until the record has the message without its file.
#[track_caller]
fn until_changed(fake: &FakeDiscord, dm: u64, who: u64) {
    let until = Instant::now() + LONGEST;
    loop {
        let export = give(fake, dm, who, "memory", "export", &[]);
        if export.contains("Azera, keep this") && !export.contains("a.log") {
            return;
        }
        assert!(Instant::now() < until, "{export}");
    }
}

#[test]
fn a_file_removed_while_its_message_is_answered_is_not_remembered() {
    let fake = fake();
    let ([_, bob, _], square) = square(&fake);
    let dm = fake.world(|world| world.dm(bob));
    let model = Model::start(Arc::new(|_| ("Half ".to_owned(), "and half.".to_owned())));
    let mut bot = Bot::new(&fake, Some(&model)).recalling_at_once();
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let file = |page: &str, secret: &str| format!("{}{secret}\n{page}", page.repeat(150));
    let page = "The log of the harbour, of which nobody remembers a thing, goes on and on about ropes and tar.\n";
    let first_file = file(page, "The lighthouse keeper hides the heliotrope key under the third stair.");
    model.close();
    let question =
        fake.world(|world| world.upload(square, bob, "Azera, keep this", &[("a.log", first_file.as_bytes())]));
    answered(&fake, square, question, "Half");
    fake.world(|world| world.remove_files(square, question));
    until_changed(&fake, dm, bob);
    model.open();
    answered_for_good(&fake, square, question, "Half and half.");
    // A later file is found, so the removed one would be found by now, too.
    let page = "Bread, butter, onions, two lemons and a sack of flour were bought, and nobody paid for any of it.\n";
    let other = file(page, "The ferryman keeps the obsidian spoon in his left boot.");
    let later = fake.world(|world| world.upload(square, bob, "Azera, and this", &[("b.log", other.as_bytes())]));
    answered_for_good(&fake, square, later, "Half and half.");
    find(&fake, square, bob, "obsidian spoon ferryman boot", "obsidian spoon");
    let found = give(&fake, square, bob, "memory", "search", &[("words", SEARCH_WORDS)]);
    assert!(!found.contains("heliotrope"), "{found}");
    as_described(&fake);
}

/// Waits until the list of kept files there is as wanted.
#[track_caller]
fn until_listed(fake: &FakeDiscord, channel: u64, who: u64, wanted: impl Fn(&str) -> bool) {
    let until = Instant::now() + LONGEST;
    loop {
        let list = give(fake, channel, who, "memory", "files", &[]);
        if wanted(&list) {
            return;
        }
        assert!(Instant::now() < until, "{list}");
    }
}

#[test]
fn a_kept_file_is_given_back_exported_and_forgotten_with_its_message() {
    let fake = fake();
    let ([_, bob, cid], square) = square(&fake);
    let (dm, other) = fake.world(|world| (world.dm(bob), world.dm(cid)));
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let secret: &[u8] = b"the heliotrope key lies under the third stair";
    let chunk = |kind: &[u8], data: &[u8]| [&(data.len() as u32).to_be_bytes()[..], kind, data, b"sums"].concat();
    let end = chunk(b"IEND", b"");
    let picture = [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"eXIf", b"52.5200N 13.4050E"), end.clone()].concat();
    let files: [(&str, &[u8]); 2] = [("notes.txt", secret), ("stair.png", &picture)];
    let question = fake.world(|world| world.upload(dm, bob, "keep this", &files));
    let unseen = "I cannot see pictures here, because no vision model is set up. Please tell me what it shows.";
    answered_for_good(&fake, dm, question, &format!("Noted.\n\n{unseen}"));
    until_listed(&fake, dm, bob, |list| list.contains("notes.txt") && list.contains("stair.png"));
    assert_eq!(kept_file(&fake, dm, bob, "notes.txt"), Some(("notes.txt".to_owned(), secret.to_vec())));
    let without_place = [b"\x89PNG\r\n\x1a\n".to_vec(), end].concat();
    assert_eq!(kept_file(&fake, dm, bob, "stair.png"), Some(("stair.png".to_owned(), without_place)));
    for (channel, who) in [(other, cid), (square, cid), (square, bob)] {
        assert_eq!(kept_file(&fake, channel, who, "notes.txt"), None);
    }
    assert!(give(&fake, dm, bob, "memory", "export", &[]).contains(&STANDARD.encode(secret)));
    assert!(!give(&fake, other, cid, "memory", "export", &[]).contains("notes.txt"));
    // Without one of its files, and then gone.
    fake.world(|world| world.remove_files(dm, question));
    until_listed(&fake, dm, bob, |list| list.contains("no files"));
    fake.world(|world| world.delete(dm, question));
    fake.wait("the answer to go", |world| world.answers(dm, question).is_empty().then_some(()));
    assert_eq!(kept_file(&fake, dm, bob, "notes.txt"), None);
    as_described(&fake);
}
