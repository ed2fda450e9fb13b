//! Worlds that random play found failures in, and the faults behind them.

use std::sync::Arc;

use azera_adapter::Host;
use azera_types::{Clock, Text};

use crate::findings::{ANN, BOB, COMMONS, DM_ANN, GUILD, Scene};
use crate::pass_time;
use crate::test_engine::edit_to;
use crate::world::{Act, Change, Fate, Founding, PRIVATE, Target, Way, World};

fn founding(members: u8, admins: u8, joined: bool) -> Founding {
    Founding { members, admins, joined }
}

fn say(who: usize, chat: usize, way: Way, hostile: usize) -> Act {
    Act::Say { who, chat, way, hostile, fate: Fate::Delivered, called: false }
}

/// This world ended in two ways, half of the time each: it was up to chance whether a message or its file was
/// remembered first.
fn files_amid_answers() -> World {
    let join = Change::Join;
    World {
        careless: false,
        realms: vec![founding(0b00101, 0b00101, false), founding(0b11110, 0b01110, false)],
        private: vec![
            founding(0b11011, 0, false),
            founding(0b11101, 0, false),
            founding(0b10000, 0, true),
            founding(0b11011, 0, false),
        ],
        acts: vec![
            Act::Change(Change::Leave(0, Target::Realm(1))),
            Act::Command { who: 1, chat: 9, what: "/rules remove insult" },
            say(2, 7, Way::Silent, 5),
            Act::Import { who: 2, chat: 5, what: "/dream import" },
            Act::Import { who: 2, chat: 11, what: "/garden import" },
            Act::Point { who: 0, chat: 0, nth: 0, reply: false, what: "/forget" },
            Act::Say {
                who: 4,
                chat: 7,
                way: Way::Launder,
                hostile: 2,
                fate: Fate::Meanwhile(join(1, Target::Realm(1))),
                called: false,
            },
            say(1, 5, Way::Launder, 4),
            say(0, 10, Way::Launder, 3),
            say(3, 0, Way::Silent, 3),
            Act::Again { who: 2, chat: 11 },
            Act::Edit { nth: 5, way: Way::Silent },
            Act::Command { who: 0, chat: 7, what: "/rules remove brief" },
            say(3, 11, Way::Silent, 0),
            Act::Change(join(1, Target::Chat(3))),
            say(4, 3, Way::Launder, 9),
            Act::Change(join(1, Target::Realm(0))),
            Act::Change(join(2, Target::Realm(0))),
            Act::Change(join(4, Target::Chat(4))),
            Act::Change(join(3, Target::Chat(3))),
            Act::Again { who: 0, chat: 3 },
            Act::Command { who: 0, chat: 11, what: "/persona use luna" },
            Act::Remember { who: 0, chat: 7, hostile: 7 },
            say(1, 10, Way::Silent, 7),
            Act::Import { who: 4, chat: 0, what: "/journal import" },
            Act::Command { who: 2, chat: 7, what: "/garden publish 1" },
            Act::Point { who: 3, chat: 7, nth: 4, reply: true, what: "/swipe next" },
            Act::Delete { nth: 2 },
            say(2, 0, Way::Quiet, 1),
            Act::Command { who: 2, chat: 0, what: "/answer always" },
            Act::Wait { hours: 4 },
            Act::Forget { who: 3, chat: 7, what: 3 },
            say(2, 11, Way::Launder, 4),
            Act::Say {
                who: 1,
                chat: 7,
                way: Way::Launder,
                hostile: 0,
                fate: Fate::Meanwhile(join(3, Target::Chat(3))),
                called: false,
            },
            Act::Wait { hours: 14 },
            say(2, 3, Way::Silent, 4),
        ],
        observer: (0, 0),
    }
}

#[test]
fn posts_do_not_depend_on_whether_a_file_was_read_before_the_answer() {
    pass_time(&files_amid_answers(), &Arc::default()).unwrap();
}

/// What Bob deleted before his account was linked with Ann's had left a mood in his direct messages, which she reads in
/// hers since then.
fn deleted_before_they_were_linked() -> World {
    World {
        careless: false,
        realms: vec![founding(0b10110, 0b10110, false), founding(0, 0, false)],
        private: vec![
            founding(0, 0, false),
            founding(0b00010, 0, false),
            founding(0b11110, 0, false),
            founding(0b01010, 0, false),
        ],
        acts: vec![
            Act::Command { who: 4, chat: 7, what: "/garden publish 1" },
            Act::Branch { who: 0, chat: 0 },
            say(3, 11, Way::Silent, 3),
            Act::Command { who: 0, chat: 2, what: "/persona use luna" },
            Act::Remember { who: 0, chat: 7, hostile: 6 },
            Act::Point { who: 0, chat: 3, nth: 4, reply: true, what: "/why" },
            say(2, 1, Way::Launder, 5),
            say(4, 0, Way::Launder, 4),
            Act::Again { who: 2, chat: 10 },
            say(2, 0, Way::Launder, 3),
            say(2, 0, Way::Launder, 2),
            Act::Wait { hours: 2 },
            say(1, 0, Way::Parrot, 0),
            say(2, 0, Way::Quiet, 8),
            Act::Change(Change::Join(3, Target::Realm(0))),
            Act::Say { who: 3, chat: 11, way: Way::Launder, hostile: 3, fate: Fate::Delivered, called: true },
            say(0, 11, Way::Launder, 5),
            Act::Again { who: 2, chat: 7 },
            Act::Delete { nth: 4 },
            Act::Command { who: 3, chat: 3, what: "/garden publish 1" },
            say(3, 0, Way::Silent, 1),
            say(0, 0, Way::Silent, 0),
            Act::Delete { nth: 0 },
            Act::Branch { who: 4, chat: 11 },
            Act::Link { who: 0, other: 4 },
        ],
        observer: (7, 1),
    }
}

/// Nothing of the words is left. The mood stays, for everybody who reads the place, whenever they came.
#[test]
fn a_forgotten_message_leaves_its_mood_in_its_place() {
    pass_time(&deleted_before_they_were_linked(), &Arc::default()).unwrap();
}

/// A message whose file was read before the answer was not remembered, because the file stood in for it.
#[tokio::test]
async fn a_message_is_remembered_beside_its_file_until_it_is_edited() {
    const PIECE: &str = "log, 2: the heron is made of copper";
    let mut scene = Scene::open(false, false).await;
    let inbound = scene.message(ANN, COMMONS, "what does the zeppelin log say? quiet");
    let id = inbound.id.clone();
    let (memory, of) = (scene.engine.memory.clone(), id.clone());
    scene
        .engine
        .meanwhile
        .set(move || assert_eq!(memory.memories().store_chunks(&of, None, vec![Text::new(PIECE)]).unwrap(), 1));
    scene.submit(inbound).await.unwrap();
    scene.engine.azera.settle().await.unwrap();
    let both = ["what does the zeppelin log say? quiet", PIECE];
    let found = scene.find(ANN, COMMONS, "the zeppelin log, the copper heron").await;
    assert!(both.iter().all(|text| found.iter().any(|found| found == text)), "{found:?}");
    // The message now says only its new text, and of its file only what is attached again.
    let now = scene.engine.clock.now();
    scene.edit(&id, edit_to("where is the zeppelin? quiet", now)).await;
    scene.engine.azera.settle().await.unwrap();
    let query = "where is the zeppelin, and the copper heron?";
    assert_eq!(scene.find(ANN, COMMONS, query).await, ["where is the zeppelin? quiet"]);
    // The file of the earlier version comes too late.
    scene.attach(&id, None, PIECE).await;
    scene.engine.azera.settle().await.unwrap();
    assert_eq!(scene.find(ANN, COMMONS, query).await, ["where is the zeppelin? quiet"]);
    scene.attach(&id, Some(now), PIECE).await;
    scene.engine.azera.settle().await.unwrap();
    assert!(scene.find(ANN, COMMONS, query).await.iter().any(|found| found == PIECE));
    // Her export holds it once.
    assert_eq!(scene.command(ANN, DM_ANN, "/memory export").await.matches(PIECE).count(), 1);
}

/// A name at the beginning of a sentence calls, whoever wrote it and why.
#[test]
fn a_name_within_a_message_calls_its_persona() {
    let acts = [7, 0, 0, 0, 0].map(|hostile| say(2, 0, Way::Parrot, hostile));
    let world = World {
        careless: false,
        realms: vec![founding(0b10100, 0b10100, false), founding(0, 0, false)],
        private: PRIVATE.map(|_| founding(0, 0, false)).collect(),
        acts: std::iter::once(Act::Command { who: 2, chat: 0, what: "/persona invite azera" }).chain(acts).collect(),
        observer: (0, 2),
    };
    pass_time(&world, &Arc::default()).unwrap();
}

/// The time of the newest message in a chat used to be shown even to people who may not read that message.
#[tokio::test]
async fn the_time_of_a_message_is_shown_only_to_those_who_may_read_it() {
    const NOTHING: &str = "1. hall, with luna (here)\n2. realm:guild, with luna\n";
    let mut scene = Scene::open(true, false).await;
    scene.tell(ANN, COMMONS).await;
    scene.change(Change::Join(BOB, GUILD));
    let answer = scene.command(BOB, COMMONS, "/chats").await;
    assert!(answer.ends_with(NOTHING), "{answer}");
    let answer = scene.command(ANN, DM_ANN, "/chats").await;
    assert!(answer.contains("1. hall, 2025-06-15 15:08, with luna"), "{answer}");
    scene.tell(ANN, COMMONS).await;
    let answer = scene.command(BOB, COMMONS, "/chats").await;
    assert!(answer.contains("1. hall, 2025-06-15 15:1"), "{answer}");
    scene.command(ANN, COMMONS, "/forget chat quotes").await;
    let answer = scene.command(BOB, COMMONS, "/chats").await;
    assert!(answer.ends_with(NOTHING), "{answer}");
}

/// A chunk of a file goes with its message, so it counted as not stored; and pinning it twice stored it twice.
#[tokio::test]
async fn a_chunk_of_a_file_can_be_pinned_once() {
    const PIECE: &str = "log, 2: the heron is made of copper";
    let mut scene = Scene::open(false, false).await;
    let inbound = scene.message(ANN, COMMONS, "what does the zeppelin log say? quiet");
    let id = inbound.id.clone();
    scene.submit(inbound).await.unwrap();
    scene.attach(&id, None, PIECE).await;
    scene.engine.azera.settle().await.unwrap();
    let answer = scene.command(ANN, COMMONS, "/memory search the copper heron").await;
    let line = answer.lines().find(|line| line.contains(PIECE)).unwrap_or_else(|| panic!("{answer}"));
    let piece = line.split('`').nth(1).unwrap().to_owned();
    let pinned = scene.command(ANN, COMMONS, &format!("/memory pin {piece}")).await;
    assert!(pinned.starts_with("Kept for good as `m"), "{pinned}");
    assert_eq!(scene.command(ANN, COMMONS, &format!("/memory pin {piece}")).await, pinned);
    let fact = pinned.split('`').nth(1).unwrap();
    let again = scene.command(ANN, COMMONS, &format!("/memory pin {fact}")).await;
    assert!(again.contains("is kept already"), "{again}");
}
