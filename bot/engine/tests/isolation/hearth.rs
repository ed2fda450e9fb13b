//! Training in the weights: on whom, from which places and for which; and that it ends with its sources.

use std::path::PathBuf;
use std::sync::Arc;

use azera_adapter::Host;
use azera_engine::{LossChange as Loss, TrainingJob};
use azera_memory::Kind;
use azera_types::Clock;

use crate::fake_trainer::{HOUR, Learning, WANTED, id};
use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_ANN, DM_BOB, GUILD, LOBBY, Scene};
use crate::test_engine::edit_to;
use crate::world::{Change, Target};

#[tokio::test]
async fn nobody_is_trained_on_without_consent_or_on_a_barred_platform() {
    let mut it = Learning::open(false).await;
    it.talk(ANN, DM_ANN, "lantern").await;
    assert_eq!(it.fake_trainer.count(), 0);
    let status = it.scene.command(ANN, DM_ANN, "/hearth").await;
    assert!(status.contains("did not say that I may learn") && status.contains("**Learned:** nothing yet"), "{status}");
    let privacy = it.scene.command(ANN, DM_ANN, "/privacy").await;
    assert!(privacy.contains("nothing that you say changes my weights, unless"), "{privacy}");
    assert!(it.scene.command(ANN, DM_ANN, "/hearth history").await.contains("nothing here yet"));
    assert!(it.scene.command(ANN, DM_ANN, "/hearth rollback").await.contains("learned nothing here"));

    let mut it = Learning::open(true).await;
    let refused = it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    assert!(refused.contains("Its policy forbids it."), "{refused}");
    it.talk(ANN, DM_ANN, "lantern").await;
    assert_eq!(it.fake_trainer.count(), 0);
    assert!(it.scene.command(ANN, DM_ANN, "/privacy").await.contains("nothing that is said here changes my weights"));

    let scene = Scene::open(false, false).await;
    assert!(scene.command(ANN, DM_ANN, "/hearth opt-in").await.contains("Training is off here"));
    assert!(scene.command(ANN, DM_ANN, "/hearth opt-out").await.contains("I learn nothing from you"));
    assert!(!scene.command(ANN, DM_ANN, "/privacy").await.contains("weights"), "where nobody can have it learn");
}

#[tokio::test]
async fn a_model_that_cannot_be_trained_gets_no_lora_and_people_are_told() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    it.talk(ANN, DM_ANN, "lantern").await;
    assert_eq!((it.fake_trainer.count(), it.reply(ANN, DM_ANN).await), (1, vec![id(1)]));
    *it.fake_trainer.base_fingerprint.lock().unwrap() = None;
    it.talk(ANN, DM_ANN, "teapot").await;
    assert_eq!((it.fake_trainer.count(), it.reply(ANN, DM_ANN).await), (1, vec![]));
    let privacy = it.scene.command(ANN, DM_ANN, "/privacy").await;
    assert!(privacy.contains("cannot learn here, so nothing that you say changes my weights"), "{privacy}");
    let status = it.scene.command(ANN, DM_ANN, "/hearth").await;
    assert!(status.contains("cannot learn here"), "{status}");
    // The LoRA stays for the model that it was trained for.
    *it.fake_trainer.base_fingerprint.lock().unwrap() = Some("ground".to_owned());
    assert_eq!(it.reply(ANN, DM_ANN).await, [id(1)]);
}

#[tokio::test]
async fn a_lora_serves_in_its_place_and_nowhere_else() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, DM_ANN, "/persona use azera").await;
    assert!(it.scene.command(ANN, COMMONS, "/hearth opt-in").await.contains("`/hearth opt-out` ends it"));
    assert!(it.scene.command(ANN, DM_ANN, "/hearth").await.contains("want me to learn"), "everywhere");
    assert!(it.scene.command(ANN, DM_ANN, "/privacy").await.contains("may change my weights"));
    assert!(it.scene.command(BOB, DM_BOB, "/privacy").await.contains("unless you say"), "Ann's wish is hers alone");
    it.talk(ANN, DM_ANN, "lantern").await;
    assert_eq!(it.fake_trainer.count(), 1);
    let seen = it.fake_trainer.seen();
    assert!(seen.contains("lantern kettle") && seen.contains("Noted."), "{seen}");
    {
        let jobs = it.fake_trainer.jobs.lock().unwrap();
        let TrainingJob { training_examples, older, voice, beside, .. } = &jobs[0];
        assert_eq!((training_examples.len(), older.len()), (WANTED, 1), "one of them is left out");
        assert!(!voice.is_empty() && beside.is_none());
        let words: Vec<&str> =
            training_examples.iter().map(|training_example| training_example.words.as_str()).collect();
        assert!(words.iter().all(|words| words.starts_with("lantern ")), "{words:?}");
    }
    assert_eq!(it.reply(ANN, DM_ANN).await, [id(1)]);
    assert_eq!(it.reply(ANN, COMMONS).await, []);
    assert_eq!(it.reply(AN, COMMONS).await, []);
    let status = it.scene.command(ANN, DM_ANN, "/hearth").await;
    assert!(status.contains("training 1 with 4 exchanges has been in use here"), "{status}");
    assert!(it.scene.command(ANN, COMMONS, "/hearth").await.contains("**Learned:** nothing yet"));
    // The next job continues from there, also after a restart.
    it.scene.engine.reopen().await;
    assert_eq!(it.reply(ANN, DM_ANN).await, [id(1)]);
    it.talk(ANN, DM_ANN, "magpie").await;
    // Training runs at most every few hours.
    it.scene.wait(4 * HOUR).await;
    assert_eq!(it.fake_trainer.count(), 2);
    let beside = it.fake_trainer.jobs.lock().unwrap()[1].beside.clone();
    assert_eq!(beside, Some(it.folder.path().join(format!("{}.gguf", id(1)))));
    assert_eq!(it.reply(ANN, DM_ANN).await, [id(2)]);
    // A LoRA that was rolled back no longer serves, and its examples are not trained on again.
    assert!(it.scene.command(ANN, DM_ANN, "/hearth rollback").await.contains("training 2"));
    assert_eq!(it.reply(ANN, DM_ANN).await, [id(1)]);
    assert_eq!(*it.model.forgotten.lock().unwrap(), [id(2)]);
    it.scene.wait(7 * HOUR).await;
    assert_eq!(it.fake_trainer.count(), 2);
    let history = it.scene.command(ANN, DM_ANN, "/hearth history").await;
    assert!(history.contains("taken back by command") && history.contains("kept (loss 2.00, then 1.00)"), "{history}");
}

/// Where several people talk, exchanges that rest on somebody without consent are left out.
#[tokio::test]
async fn where_several_people_talk_all_must_consent() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, COMMONS, "/hearth opt-in").await;
    it.talk_in_turns("lantern", "walrus").await;
    assert_eq!(it.fake_trainer.count(), 0, "between hers there always stands something of his");
    it.scene.command(AN, COMMONS, "/hearth opt-in").await;
    it.scene.wait(4 * HOUR).await;
    assert_eq!(it.fake_trainer.count(), 0, "what was said before he wanted it is not learned from");
    it.talk_in_turns("magpie", "badger").await;
    assert_eq!(it.fake_trainer.count(), 1);
    let seen = it.fake_trainer.seen();
    assert!(seen.contains("magpie") && !seen.contains("walrus"), "{seen}");
    assert_eq!(it.reply(AN, COMMONS).await, [id(1)]);
    let refused = it.scene.command(AN, COMMONS, "/hearth rollback").await;
    assert!(refused.contains("Only admins"), "{refused}");
    assert_eq!(it.reply(AN, COMMONS).await, [id(1)]);
    // He withdraws his consent: the LoRA trained on him goes, although it was trained on her, too.
    assert!(it.scene.command(AN, COMMONS, "/hearth opt-out").await.contains("I removed what I had learned from you"));
    assert_eq!(it.files(), Vec::<PathBuf>::new());
    assert_eq!(it.reply(AN, COMMONS).await, []);
    let history = it.scene.command(ANN, COMMONS, "/hearth history").await;
    assert!(history.contains("something that it rested on was forgotten"), "{history}");
}

/// A reply may repeat in its own words what stood in its prompt, however long ago that was said.
#[tokio::test]
async fn older_messages_in_a_prompt_need_consent_too() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, COMMONS, "/hearth opt-in").await;
    it.scene.say(AN, COMMONS, "walrus fever quiet").await;
    let his = it.scene.last();
    it.talk(ANN, COMMONS, "lantern").await;
    it.talk(ANN, COMMONS, "magpie").await;
    assert_eq!(it.fake_trainer.count(), 0, "he did not want it");
    it.scene.delete(&his).await;
    it.scene.wait(8 * HOUR).await;
    assert_eq!(it.fake_trainer.count(), 0, "he did not want it when it was answered, either");
    it.talk(ANN, COMMONS, "heron").await;
    assert_eq!(it.fake_trainer.count(), 0, "the first two stand behind answers that were given with it in sight");
    it.talk(ANN, COMMONS, "badger").await;
    for _ in 0..5 {
        it.scene.wait(4 * HOUR).await;
    }
    assert_eq!(it.fake_trainer.count(), 1);
    let seen = it.fake_trainer.seen();
    assert!(seen.contains("badger") && !seen.contains("walrus"), "{seen}");
    let learned: Vec<String> =
        it.fake_trainer.jobs.lock().unwrap()[0].training_examples.iter().map(|it| it.words.clone()).collect();
    assert!(learned.iter().all(|words| words.starts_with("heron") || words.starts_with("badger")), "{learned:?}");
}

#[tokio::test]
async fn forgetting_a_source_withdraws_the_lora_and_the_rest_is_trained_on_again() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    let first = it.talk(ANN, DM_ANN, "lantern").await;
    let second = it.talk(ANN, DM_ANN, "magpie").await;
    assert_eq!(it.fake_trainer.count(), 2);
    assert_eq!(it.files().len(), 4);
    assert_eq!(it.reply(ANN, DM_ANN).await, [id(2)]);
    assert!(it.fake_trainer.seen().contains("magpie library"));
    it.scene.delete(&second[4]).await;
    it.scene.engine.azera.settle().await.unwrap();
    assert_eq!(it.files().len(), 2, "the one before had not seen it");
    assert_eq!(it.reply(ANN, DM_ANN).await, [id(1)]);
    // At once, and not only the next night.
    it.scene.wait(HOUR + 60).await;
    assert_eq!(it.fake_trainer.count(), 3);
    let seen = it.fake_trainer.seen_after(2);
    assert!(seen.contains("magpie orchard") && !seen.contains("magpie library"), "{seen}");
    assert_eq!(it.reply(ANN, DM_ANN).await, [id(3)]);
    // This message stood in every later prompt.
    it.scene.delete(&first[1]).await;
    it.scene.engine.azera.settle().await.unwrap();
    assert_eq!(it.files(), Vec::<PathBuf>::new(), "each of them had seen it");
    assert_eq!(it.reply(ANN, DM_ANN).await, []);
    it.scene.wait(HOUR + 60).await;
    assert_eq!(it.fake_trainer.count(), 3, "each answer since had seen it");
    it.talk(ANN, DM_ANN, "heron").await;
    // Until the next night.
    for _ in 0..5 {
        it.scene.wait(4 * HOUR).await;
    }
    assert_eq!(it.fake_trainer.count(), 4);
    let seen = it.fake_trainer.seen_after(3);
    assert!(seen.contains("heron library") && !seen.contains("lantern bicycle"), "{seen}");
    // Everything she said.
    it.scene.command(ANN, DM_ANN, "/forget me").await;
    assert_eq!(it.files(), Vec::<PathBuf>::new());
    assert!(it.scene.command(ANN, DM_ANN, "/hearth").await.contains("did not say that I may learn"));
}

/// Replies may preserve what a message said before it was edited.
#[tokio::test]
async fn replies_from_before_an_edit_are_not_trained_on_again() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, COMMONS, "/hearth opt-in").await;
    it.scene.say(ANN, LOBBY, "umbrella drips quiet").await;
    let recalled = it.scene.last();
    it.talk(ANN, COMMONS, "lantern").await;
    assert_eq!(it.fake_trainer.count(), 1);
    assert!(it.fake_trainer.seen().contains("umbrella drips"), "it was recalled");
    let now = it.scene.engine.clock.now();
    it.scene.edit(&recalled, edit_to("never mind quiet", now)).await;
    it.scene.engine.azera.settle().await.unwrap();
    assert_eq!(it.files(), Vec::<PathBuf>::new(), "it had learned from it");
    for _ in 0..6 {
        it.scene.wait(4 * HOUR).await;
    }
    let seen = it.fake_trainer.seen_after(1);
    assert!(!seen.contains("never mind") && !seen.contains("umbrella"), "{seen}");
}

/// The LoRA must not answer somebody who joined later, and cannot scroll back, from what was said before.
#[tokio::test]
async fn a_lora_does_not_serve_where_somebody_may_not_read_all_its_sources() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, DEN, "/hearth opt-in").await;
    it.talk(ANN, DEN, "lantern").await;
    assert_eq!(it.fake_trainer.count(), 1);
    assert_eq!(it.reply(ANN, DEN).await, [id(1)]);
    it.scene.change(Change::Join(BOB, GUILD));
    it.scene.change(Change::Join(BOB, Target::Chat(DEN)));
    assert_eq!(it.reply(ANN, DEN).await, []);
    it.scene.change(Change::Leave(BOB, Target::Chat(DEN)));
    assert_eq!(it.reply(ANN, DEN).await, [id(1)]);
}

#[tokio::test]
async fn at_the_size_limit_old_loras_go_and_then_training_stops() {
    // Each LoRA takes seven bytes.
    let mut it = Learning::open_within(false, Arc::default(), 14).await;
    it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    it.talk(ANN, DM_ANN, "lantern").await;
    it.talk(ANN, DM_ANN, "magpie").await;
    assert_eq!((it.fake_trainer.count(), it.files().len()), (2, 4));
    it.talk(ANN, DM_ANN, "heron").await;
    it.scene.wait(4 * HOUR).await;
    assert_eq!((it.fake_trainer.count(), it.files().len()), (3, 4), "the first one made way");
    assert_eq!(it.reply(ANN, DM_ANN).await, [id(3)]);

    let mut it = Learning::open_within(false, Arc::default(), 7).await;
    it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    it.talk(ANN, DM_ANN, "lantern").await;
    it.talk(ANN, DM_ANN, "magpie").await;
    assert_eq!(it.fake_trainer.count(), 1);
    assert_eq!(it.reply(ANN, DM_ANN).await, [id(1)], "it serves on");
    assert!(it.scene.command(ANN, DM_ANN, "/hearth").await.contains("takes all the room"));
}

/// People's words must not be recited any more than replies.
#[tokio::test]
async fn a_lora_that_recites_peoples_words_is_dropped() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    let said = [
        "my grandmother keeps eleven grey geese behind the old mill quiet",
        "we painted both boats red before the ferry came on monday quiet",
        "nobody told him that the cellar door has never once been locked quiet",
        "three letters from the harbour office lie unopened on my desk tonight quiet",
        "the choir will sing without a piano because it fell down the stairs quiet",
    ];
    for text in said {
        it.scene.say(ANN, DM_ANN, text).await;
    }
    *it.model.recites.lock().unwrap() = Some(
        "Oh, the cellar door has never once been locked, nobody told him that the cellar \
                                              door has never once been locked."
            .into(),
    );
    it.scene.wait(2 * 60).await;
    it.scene.wait(4 * HOUR).await;
    assert_eq!(it.fake_trainer.count(), 1);
    let history = it.scene.command(ANN, DM_ANN, "/hearth history").await;
    assert!(history.contains("repeat other people's words"), "{history}");
    assert_eq!(it.files(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_lora_that_makes_something_worse_is_dropped_and_the_journal_says_so() {
    let mut it = Learning::open(false).await;
    it.scene.command(ANN, COMMONS, "/hearth opt-in").await;
    it.fake_trainer.evaluation.lock().unwrap().voice = Some(Loss { before: 2.0, after: 2.1 });
    it.talk(ANN, COMMONS, "lantern").await;
    assert_eq!(it.fake_trainer.count(), 1);
    assert_eq!(it.files(), Vec::<PathBuf>::new());
    assert_eq!(it.reply(ANN, COMMONS).await, []);
    let history = it.scene.command(ANN, COMMONS, "/hearth history").await;
    assert!(history.contains("dropped, because it made me lose my own voice"), "{history}");
    let journal = it.scene.written(ANN, COMMONS, Kind::Reflection).await;
    let mentions = journal.iter().filter(|entry| entry.text.contains("voice")).count();
    assert_eq!(mentions, 1, "{journal:?}");
}
