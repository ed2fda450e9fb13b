//! Each audience has a LoRA of its own; surprising exchanges are trained on first; and nothing is trained on without
//! consent, or after it was rolled back or forgotten.

use std::path::PathBuf;
use std::sync::Arc;

use azera_model_api::LoraId;
use tokio::sync::Notify;

use crate::fake_trainer::{HOUR, Learning, THINGS, WANTED, id};
use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, GUILD, LOBBY};
use crate::world::{Change, Target};

/// Public and private channels of the other realm, a second private channel of the guild, and a room without a realm.
const BAR: usize = 2;
const CELLAR: usize = 4;
const BACK_ROOM: usize = 5;
const ATTIC: usize = 6;

#[tokio::test]
async fn each_audience_has_its_own_lora() {
    let mut it = Learning::open(false).await;
    for place in [Target::Realm(1), Target::Chat(CELLAR), Target::Chat(BACK_ROOM), Target::Chat(ATTIC)] {
        it.scene.change(Change::Join(ANN, place));
    }
    it.scene.change(Change::Join(BOB, GUILD));
    it.scene.command(ANN, COMMONS, "/hearth opt-in").await;
    // From the most private to the most public: with one wrong check, a later LoRA would hold an earlier one's
    // examples.
    let taught = [(DM_ANN, "lantern"), (CELLAR, "magpie"), (BACK_ROOM, "heron"), (BAR, "badger"), (COMMONS, "walrus")];
    for (place, about) in taught {
        it.talk(ANN, place, about).await;
    }
    assert_eq!(it.fake_trainer.count(), taught.len());
    for (number, (_, own)) in taught.iter().enumerate() {
        let seen = it.fake_trainer.seen_after(number);
        let later = it.fake_trainer.seen_after(number + 1);
        let seen = seen.strip_suffix(later.as_str()).unwrap();
        assert!(seen.contains(&format!("{own} kettle")), "{number}: {seen}");
        for (_, private) in &taught[..number.min(3)] {
            assert!(!seen.contains(private), "{number}: {seen}");
        }
    }
    let none: [LoraId; 0] = [];
    for (who, place, wanted) in [
        (ANN, DM_ANN, &[id(1)][..]),
        (ANN, CELLAR, &[id(2)]),
        (ANN, BACK_ROOM, &[id(3)]),
        (ANN, BAR, &[id(4)]),
        (ANN, COMMONS, &[id(5)]),
        (AN, COMMONS, &[id(5)]),
        // The public channels of a realm are one audience.
        (ANN, LOBBY, &[id(5)]),
        (ANN, DEN, &none),
        (ANN, ATTIC, &none),
        (AN, DM_AN, &none),
        (BOB, DM_BOB, &none),
    ] {
        assert_eq!(it.reply(who, place).await, wanted, "{who} in {place}");
    }
    // Another persona there has no LoRA.
    it.scene.command(ANN, COMMONS, "/persona use luna").await;
    assert_eq!(it.reply(ANN, COMMONS).await, none);
}

#[tokio::test]
async fn surprising_exchanges_are_trained_on_first_and_repeated_ones_once() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    it.talk(ANN, DM_ANN, "lantern").await;
    assert_eq!(it.fake_trainer.count(), 1);
    it.scene.say(ANN, DM_ANN, "a zeppelin landed on our roof quiet").await;
    for said in ["the soup boils", "the gate creaks", "the paper yellows", "a tap drips", "a tap drips"] {
        it.scene.say(ANN, DM_ANN, &format!("magpie {said} quiet")).await;
    }
    it.scene.wait(2 * 60).await;
    for _ in 0..3 {
        it.scene.wait(4 * HOUR).await;
    }
    assert_eq!(it.fake_trainer.count(), 2);
    let jobs = it.fake_trainer.jobs.lock().unwrap();
    let words = |training_examples: &[azera_engine::TrainingExample]| {
        training_examples.iter().map(|it| it.words.clone()).collect::<Vec<_>>()
    };
    let (learned, older) = (words(&jobs[1].training_examples), words(&jobs[1].older));
    assert_eq!(learned.len(), WANTED);
    // Among unsurprising exchanges, newer ones come first, so this one is first only because it is surprising.
    assert!(learned[0].contains("zeppelin"), "{learned:?}");
    let again = learned.iter().chain(&older).filter(|words| words.contains("drips")).count();
    assert_eq!(again, 1, "{learned:?} {older:?}");
}

#[tokio::test]
async fn forgetting_an_example_ends_the_running_job() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    let [begun, go_on] = [Arc::new(Notify::new()), Arc::new(Notify::new())];
    *it.fake_trainer.held.lock().unwrap() = Some([begun.clone(), go_on.clone()]);
    let mut said = Vec::new();
    for thing in THINGS {
        it.scene.say(ANN, DM_ANN, &format!("lantern {thing} quiet")).await;
        said.push(it.scene.last());
    }
    it.scene.wait(2 * 60).await;
    let forgotten = async {
        begun.notified().await;
        it.scene.delete(&said[2]).await;
        go_on.notify_one();
    };
    tokio::join!(it.scene.wait(4 * HOUR), forgotten);
    assert_eq!((it.fake_trainer.count(), it.files()), (0, Vec::<PathBuf>::new()), "nobody goes on learning it");
    // The rest is trained on another night, as soon as there is enough.
    it.talk(ANN, DM_ANN, "magpie").await;
    it.scene.wait(8 * HOUR).await;
    assert_eq!(it.fake_trainer.count(), 1);
    assert!(!it.fake_trainer.seen().contains("lantern harbour"));
}

#[tokio::test]
async fn a_rollback_ends_the_job_that_trains_beside_the_lora() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    it.talk(ANN, DM_ANN, "lantern").await;
    assert_eq!(it.fake_trainer.count(), 1);
    let [begun, go_on] = [Arc::new(Notify::new()), Arc::new(Notify::new())];
    *it.fake_trainer.held.lock().unwrap() = Some([begun.clone(), go_on.clone()]);
    for thing in THINGS {
        it.scene.say(ANN, DM_ANN, &format!("magpie {thing} quiet")).await;
    }
    it.scene.wait(2 * 60).await;
    let taken_back = async {
        begun.notified().await;
        let said = it.scene.command_meanwhile(ANN, DM_ANN, "/hearth rollback").await;
        assert!(said.contains("training 1"), "{said}");
        go_on.notify_one();
    };
    let nights = async {
        for _ in 0..3 {
            it.scene.wait(4 * HOUR).await;
        }
    };
    tokio::join!(nights, taken_back);
    // Its examples may be trained on another night, without a LoRA beside them.
    let jobs = it.fake_trainer.jobs.lock().unwrap();
    assert!(jobs.iter().all(|job| job.beside.is_none()), "nobody goes on learning it");
}

#[tokio::test]
async fn live_chat_takes_precedence_over_training() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    for thing in THINGS {
        it.scene.say(ANN, DM_ANN, &format!("lantern {thing} quiet")).await;
    }
    it.scene.wait(2 * 60).await;
    let [begun, go_on] = [Arc::new(Notify::new()), Arc::new(Notify::new())];
    *it.fake_trainer.held.lock().unwrap() = Some([begun.clone(), go_on.clone()]);
    // The trainer asks whether it may go on while this is being answered.
    *it.model.begins.lock().unwrap() = Some(go_on);
    let question = it.scene.message(BOB, DM_BOB, "is anybody awake? quiet");
    let talk = async {
        begun.notified().await;
        it.scene.submit(question).await.unwrap()
    };
    tokio::join!(it.scene.wait(4 * HOUR), talk);
    assert_eq!(*it.model.overtaken.lock().unwrap(), Some(false), "it waits for the end of that");
    assert_eq!(it.fake_trainer.count(), 1, "and is not broken off by it");
}

#[tokio::test]
async fn a_rollback_excludes_only_the_examples_of_its_lora() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    it.talk(ANN, DM_ANN, "lantern").await;
    let learned: Vec<String> =
        it.fake_trainer.jobs.lock().unwrap()[0].training_examples.iter().map(|it| it.words.clone()).collect();
    for said in ["the soup boils", "the gate creaks", "the paper yellows"] {
        it.scene.say(ANN, DM_ANN, &format!("magpie {said} quiet")).await;
    }
    assert!(it.scene.command(ANN, DM_ANN, "/hearth rollback").await.contains("training 1"));
    it.scene.say(ANN, DM_ANN, "magpie a tap drips quiet").await;
    it.scene.wait(2 * 60).await;
    for _ in 0..3 {
        it.scene.wait(4 * HOUR).await;
    }
    assert_eq!(it.fake_trainer.count(), 2);
    let jobs = it.fake_trainer.jobs.lock().unwrap();
    let words: Vec<&String> = jobs[1].training_examples.iter().chain(&jobs[1].older).map(|it| &it.words).collect();
    assert!(words.iter().any(|words| words.contains("soup")) && words.len() == WANTED + 1, "{words:?}");
    assert!(words.iter().all(|words| !learned.contains(words)), "{words:?}");
}
