//! Conversations and what people left open in them: who is shown what, and what dreams take up.

use azera_adapter::{ChatInfo, Host, InboundEvent, Platform, Reading, SessionReader};
use azera_memory::{Kind, MemoryRow};
use azera_types::MessageId;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_ANN, DM_BOB, Scene};
use crate::test_engine::{chat, person};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

#[tokio::test]
async fn conversations_are_listed_only_where_they_may_be_read() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, DEN, "I'm going to paint the zeppelin tomorrow because it is grey, quiet").await;
    let plan = "I'm going to paint the zeppelin tomorrow because it is grey, quiet";
    scene.pass(4 * HOUR);
    let open = scene.command(ANN, DEN, "/memory open").await;
    assert!(open.contains(&format!("open, plan of Ann: \"{plan}\" (`m")), "{open}");
    assert!(open.contains("why: \"because it is grey, quiet\""), "{open}");
    for (who, place) in [(BOB, DM_BOB), (ANN, COMMONS)] {
        let open = scene.command(who, place, "/memory open zeppelin").await;
        assert_eq!(open, "I know nothing open with these words that may be shown here.");
        let all = scene.command(who, place, "/memory episodes").await;
        assert!(!all.contains("zeppelin"), "{all}");
    }
    // What Ann says alone with the persona settles it for her, and not for the others.
    scene.pass(2 * DAY);
    scene.say(ANN, DM_ANN, "I painted the zeppelin in stripes, quiet").await;
    let own = scene.command(ANN, DM_ANN, "/memory episodes zeppelin").await;
    assert!(own.contains("resolved, plan of Ann:") && own.contains("in stripes"), "{own}");
    let den = scene.command(ANN, DEN, "/memory episodes zeppelin").await;
    assert!(den.contains("open, plan of Ann:") && !den.contains("stripes") && !den.contains("resolved"), "{den}");
    assert_eq!(scene.command(ANN, DM_ANN, "/memory open").await, "I know nothing that is open and may be shown here.");
}

/// A chat is named however many conversations another one had since.
#[tokio::test]
async fn many_conversations_in_one_chat_take_no_name_from_another() {
    let mut scene = Scene::open(false, false).await;
    let info = ChatInfo { chat: chat(COMMONS), title: Some("Village green".into()), persona: None };
    scene.engine.azera.submit(scene.engine.platform.sim.id(), InboundEvent::Chat(info)).await.unwrap();
    scene.say(ANN, COMMONS, "I paint the fence, quiet").await;
    for number in 0..66 {
        scene.pass(DAY);
        scene.say(ANN, DM_ANN, &format!("I paint shed number {number}, quiet")).await;
    }
    let at = Reading { chat: chat(DM_ANN), person: person(ANN) };
    let found = scene.engine.azera.conversations(scene.engine.platform.sim.id(), at).await.unwrap();
    assert!(found.len() > 64, "{}", found.len());
    assert!(found.iter().any(|one| one.place.as_deref() == Some("Village green")), "{found:?}");
}

/// The name of a chat is told to those who read the chat, and to nobody else.
#[tokio::test]
async fn conversations_name_their_chat_to_its_readers() {
    let mut scene = Scene::open(false, false).await;
    for (place, title) in [(DEN, "Zeppelin hangar"), (COMMONS, "Village green")] {
        let info = ChatInfo { chat: chat(place), title: Some(title.into()), persona: None };
        scene.engine.azera.submit(scene.engine.platform.sim.id(), InboundEvent::Chat(info)).await.unwrap();
    }
    scene.say(ANN, DEN, "I paint the gate, quiet").await;
    scene.say(ANN, COMMONS, "I paint the fence, quiet").await;
    scene.say(ANN, DM_ANN, "I paint the shed, quiet").await;
    let own = scene.command(ANN, DM_ANN, "/memory episodes").await;
    for place in ["(in Zeppelin hangar)", "(in Village green)", "(in direct messages)"] {
        assert!(own.contains(place), "{own}");
    }
    let read = async |scene: &Scene, who, place| {
        let at = Reading { chat: chat(place), person: person(who) };
        let found = scene.engine.azera.conversations(scene.engine.platform.sim.id(), at).await.unwrap();
        found.into_iter().filter_map(|one| one.place).collect::<Vec<_>>()
    };
    assert_eq!(read(&scene, ANN, DM_ANN).await, ["Village green", "Zeppelin hangar"]);
    for (who, place) in [(AN, COMMONS), (ANN, COMMONS)] {
        let there = scene.command(who, place, "/memory episodes").await;
        assert!(there.contains("(in Village green)") && !there.contains("hangar"), "{there}");
        assert_eq!(read(&scene, who, place).await, ["Village green"]);
    }
    let there = scene.command(BOB, DM_BOB, "/memory episodes").await;
    assert!(!there.contains("hangar") && !there.contains("green"), "{there}");
}

/// Returns what is written in later nights with a message among its sources.
async fn written_in_later_nights(scene: &mut Scene, message: &MessageId) -> Vec<MemoryRow> {
    let said = scene.engine.watch.oracle().now;
    let later = said.checked_add(azera_types::Span::new().hours(36)).unwrap();
    let mut taken_up = Vec::new();
    for _ in 0..4 {
        scene.wait(30 * HOUR).await;
        scene.tell(ANN, COMMONS).await;
        scene.tell(AN, COMMONS).await;
        scene.wait(HOUR).await;
        for kind in [Kind::Dream, Kind::Reflection] {
            let written = scene.written(ANN, COMMONS, kind).await;
            taken_up.extend(written.into_iter().filter(|one| one.at > later && one.sources.contains(message)));
        }
    }
    taken_up
}

#[tokio::test]
async fn a_dream_takes_up_what_somebody_left_open_and_is_forgotten_with_it() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, "I'm going to paint the zeppelin next week, quiet").await;
    let plan = scene.last();
    let taken_up = written_in_later_nights(&mut scene, &plan).await;
    assert!(!taken_up.is_empty(), "a later night takes up the plan");
    scene.delete(&plan).await;
    for kind in [Kind::Dream, Kind::Reflection] {
        let left = scene.written(ANN, COMMONS, kind).await;
        assert!(left.iter().all(|one| taken_up.iter().all(|gone| gone.id != one.id)));
    }
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

#[tokio::test]
async fn a_dream_takes_up_nothing_that_was_said_beside_words_of_danger() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, "I'm going to paint the zeppelin next week, quiet").await;
    let plan = scene.last();
    scene.say(ANN, COMMONS, "I want to kill myself. quiet").await;
    assert_eq!(written_in_later_nights(&mut scene, &plan).await, []);
}

/// A check-in takes up what the person left open here, among older words than it would read. What they left open elsewhere
/// stays there.
#[tokio::test]
async fn a_check_in_takes_up_what_the_person_left_open_in_the_same_place() {
    let mut scene = Scene::open(false, false).await;
    scene.command(ANN, DM_ANN, "/checkin on 2").await;
    scene.say(ANN, DM_ANN, "I'm going to paint the zeppelin next week, quiet").await;
    let plan = scene.last();
    scene.say(ANN, DEN, "I'm going to sell the submarine next week, quiet").await;
    let elsewhere = scene.last();
    scene.pass(4 * HOUR);
    for _ in 0..10 {
        scene.tell(ANN, DM_ANN).await;
    }
    scene.pass_time(3 * DAY).await;
    let asked = scene.written(ANN, DM_ANN, Kind::CheckIn).await;
    assert_eq!(asked.len(), 1);
    assert!(asked[0].sources.contains(&plan) && !asked[0].sources.contains(&elsewhere), "{asked:?}");
    // It goes with the plan.
    scene.delete(&plan).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await, []);
    // What is settled is not asked about.
    scene.say(ANN, DM_ANN, "I'm going to paint the zeppelin next week, quiet").await;
    let settled = scene.last();
    scene.pass(8 * DAY);
    scene.say(ANN, DM_ANN, "I painted the zeppelin, quiet").await;
    for _ in 0..10 {
        scene.tell(ANN, DM_ANN).await;
    }
    scene.pass_time(3 * DAY).await;
    let asked = scene.written(ANN, DM_ANN, Kind::CheckIn).await;
    assert!(!asked.is_empty() && asked.iter().all(|one| !one.sources.contains(&settled)), "{asked:?}");
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

/// The plan alone says nothing of the danger that stands behind it, in the same message or in the next one.
#[tokio::test]
async fn a_check_in_takes_up_nothing_that_was_said_beside_words_of_danger() {
    const PLAN: &str = "I'm going to paint the zeppelin next week";
    const HARD: &str = "I want to kill myself.";
    for (said, is_taken_up) in [
        (vec![format!("{PLAN}, quiet")], true),
        (vec![format!("{PLAN}. {HARD} quiet")], false),
        (vec![format!("{PLAN}, quiet"), format!("{HARD} quiet")], false),
    ] {
        let mut scene = Scene::open(false, false).await;
        scene.say(ANN, DM_ANN, &said[0]).await;
        let plan = scene.last();
        for more in &said[1..] {
            scene.say(ANN, DM_ANN, more).await;
        }
        // By then the check-in is no fixed text any more.
        scene.pass(16 * DAY);
        for _ in 0..10 {
            scene.tell(ANN, DM_ANN).await;
        }
        // Only now, so that none is due about the hard words themselves.
        scene.command(ANN, DM_ANN, "/checkin on 2").await;
        scene.pass_time(3 * DAY).await;
        let asked = scene.written(ANN, DM_ANN, Kind::CheckIn).await;
        assert_eq!(asked.len(), 1, "{said:?}");
        assert_eq!(asked[0].sources.contains(&plan), is_taken_up, "{said:?}");
    }
}

#[tokio::test]
async fn a_statement_is_shown_with_the_time_since_which_it_holds() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, "I have lived in Hull since 1950").await;
    let found = scene.command(ANN, COMMONS, "/memory search where do I live in Hull?").await;
    assert!(found.contains(", holds since 1950 (realm:"), "{found}");
    scene.command(ANN, COMMONS, "/remember I have had the zeppelin since 1951").await;
    let kept = scene.command(ANN, COMMONS, "/me").await;
    assert!(kept.contains(", holds since 1951: \"I have had the zeppelin"), "{kept}");
}
