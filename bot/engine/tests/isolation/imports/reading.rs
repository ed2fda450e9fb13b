//! A chat model that is good enough reads imported conversations: only their person's words are kept, nothing is lost while
//! it is away, and an undo takes all of it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use azera_config::{ExtractWithModel, Gardener};
use azera_memory::{Forget, Memory};
use azera_types::{Clock, Scope};

use super::{import_of, in_dm_of_ann};
use crate::extracted::{Reader, item, items, quote_all, scene_read_by};
use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, GUILD, Scene};
use crate::look::look_up_all;
use crate::maintenance::DAY;
use crate::oracle::DEFAULT_PERSONA;
use crate::test_engine::person;
use crate::world::{Change, PEOPLE};

impl Scene {
    /// Ann imports messages of hers, which the classifiers find nothing in.
    fn import_dull(&self, chat: &str, texts: &[&str]) {
        let import = import_of(ANN, DEFAULT_PERSONA, Scope::Dm(person(ANN)), chat);
        self.import_own(&import, chat, 0, texts);
    }

    /// Returns the imported chats that no model read to their end.
    fn unread(&self) -> Vec<String> {
        self.pending(|import| !import.is_read)
    }

    /// Returns what is marked of Ann's words in her direct messages, the oldest first.
    fn gists_of_ann(&self) -> Vec<String> {
        let mut marked = self.marked_of_ann();
        marked.sort_by_key(|memory| (memory.at, memory.id));
        marked.iter().map(|memory| memory.gist().to_owned()).collect()
    }
}

/// The model lists what somebody else said, what nobody said, and what only repeats the assistant.
#[tokio::test]
async fn only_the_words_of_the_person_who_imported_are_kept() {
    let reader = Reader::new(Arc::new(|_| {
        items(&[
            item(1, "my zeppelin is green"),
            item(1, "my zeppelin is red"),
            item(2, "your zeppelin leaks"),
            item(1, "your zeppelin leaks"),
            item(77, "my zeppelin is green"),
            item(3, "your zeppelin leaks"),
        ])
    }));
    let scene = scene_read_by(&reader).await;
    scene.change(Change::Join(BOB, GUILD));
    let dm = Scope::Dm(person(ANN));
    let texts = ["my zeppelin is green".to_owned(), "your zeppelin leaks".to_owned()];
    let import = scene.import_texts(ANN, DEFAULT_PERSONA, dm, "zeppelin", texts);
    scene.import_own(&import, "zeppelin", 7, &["you say that your zeppelin leaks, ok then"]);
    scene.wait(3_600).await;
    let want = "[1] Ann: my zeppelin is green\n(reply) ChatGPT: your zeppelin leaks\n[3] Ann: you say that your \
                zeppelin leaks, ok then";
    assert_eq!(reader.transcripts(), [want], "it is read once, and alone");
    assert_eq!((scene.unread(), scene.unsearched()), (Vec::new(), Vec::new()));
    assert_eq!(scene.gists_of_ann(), ["my zeppelin is green"]);
    let learning = scene.engine.azera.measurements().learning;
    assert_eq!((learning.found, learning.untraceable, learning.repeated), (6, 4, 1));
    let me = scene.command(ANN, DM_ANN, "/me").await;
    assert!(me.contains("my zeppelin is green") && !me.contains("leaks"), "{me}");
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (AN, DM_AN), (BOB, COMMONS), (BOB, DM_BOB)] {
        let me = scene.command(who, place, "/me").await;
        assert!(!me.contains("zeppelin"), "{} in {place}: {me}", PEOPLE[who].0);
    }
    look_up_all(&scene.engine).await;
    scene.engine.watch.verdict().unwrap();
}

/// Longer than a conversation waits, which the classifiers search in the end.
#[tokio::test]
async fn an_import_waits_for_a_model_that_is_away() {
    let reader = Reader::new(Arc::new(quote_all));
    let mut scene = scene_read_by(&reader).await;
    reader.set_away(true);
    scene.import_dull("long", &["it was so quiet"]);
    for _ in 0..60 {
        scene.wait(10 * 60).await;
    }
    let learning = scene.engine.azera.measurements().learning;
    assert!(learning.retries > 36 && learning.fallbacks == 0, "{learning:?}");
    assert_eq!(scene.unread(), ["import:long"]);
    scene.engine.reopen().await;
    reader.set_away(false);
    scene.wait(3_600).await;
    assert_eq!((scene.gists_of_ann(), scene.unread()), (vec!["it was so quiet".to_owned()], Vec::new()));
    assert_eq!(reader.transcripts().len(), 1);
}

/// A model that compares nothing repeats no request about the import.
#[tokio::test]
async fn a_failed_comparison_reads_nothing_again() {
    let reader = Reader::new(Arc::new(quote_all));
    let scene = scene_read_by(&reader).await;
    reader.compares_nothing.store(true, Ordering::SeqCst);
    let said = ["my dentist appointment is on tuesday", "my dentist appointment is on friday now"];
    scene.import_dull("visits", &said);
    for _ in 0..12 {
        scene.wait(10 * 60).await;
    }
    assert_eq!((reader.transcripts().len(), scene.unread()), (1, Vec::new()));
    assert_eq!(scene.gists_of_ann().len(), 2);
    reader.compares_nothing.store(false, Ordering::SeqCst);
    scene.wait(3_600).await;
    assert_eq!((reader.transcripts().len(), scene.uncompared()), (1, Vec::new()));
}

/// Without a key the model reads nothing, so nothing counts as read.
#[tokio::test]
async fn an_import_waits_for_a_key() {
    let reader = Reader::new(Arc::new(quote_all));
    let scene = scene_read_by(&reader).await;
    reader.is_refused.store(true, Ordering::SeqCst);
    scene.import_dull("long", &["it was so quiet"]);
    scene.wait(3_600).await;
    assert_eq!((scene.unread(), scene.gists_of_ann()), (vec!["import:long".to_owned()], Vec::new()));
    reader.is_refused.store(false, Ordering::SeqCst);
    scene.wait(3_600).await;
    assert_eq!((scene.unread(), scene.gists_of_ann()), (Vec::new(), vec!["it was so quiet".to_owned()]));
}

/// A command searches an import in which the classifiers find nothing. The model reads it without a restart.
#[tokio::test]
async fn what_a_command_searched_is_read_soon() {
    let reader = Reader::new(Arc::new(quote_all));
    let scene = scene_read_by(&reader).await;
    scene.wait(3_600).await;
    scene.import_dull("long", &["it was so quiet"]);
    assert!(scene.search_imports().await);
    scene.wait(3_600).await;
    assert_eq!((scene.unread(), scene.gists_of_ann()), (Vec::new(), vec!["it was so quiet".to_owned()]));
}

/// An answer that was cut off covers the first messages. The model is asked about the others once more.
#[tokio::test]
async fn what_an_answer_does_not_cover_is_read_again() {
    let cut_off = |transcript: &str| {
        let whole = quote_all(transcript);
        match whole.match_indices("},{").nth(1) {
            Some((end, _)) => whole.chars().take(end + 2).collect(),
            None => whole,
        }
    };
    let reader = Reader::new(Arc::new(cut_off));
    let scene = scene_read_by(&reader).await;
    let said = [
        "one door is open",
        "two lamps are lit",
        "the third shelf is mine",
        "four cups are blue",
        "the fifth key is lost",
    ];
    scene.import_dull("dense", &said);
    for _ in 0..4 {
        scene.wait(3_600).await;
    }
    assert_eq!((scene.unread(), reader.transcripts().len()), (Vec::new(), 3));
    assert_eq!(scene.gists_of_ann(), said);
}

/// The model goes away after the first request, and the machine restarts.
#[tokio::test]
async fn a_restart_between_two_requests_repeats_and_loses_nothing() {
    let reader = Reader::new(Arc::new(quote_all));
    let mut scene = scene_read_by(&reader).await;
    let said: Vec<String> = (0..150).map(|number| format!("locker {number} is mine, ok then")).collect();
    scene.import_dull("long", &said.iter().map(String::as_str).collect::<Vec<_>>());
    reader.left.store(1, Ordering::SeqCst);
    // The classifiers search it in two turns.
    scene.pass_time(3 * 3_600).await;
    assert_eq!(reader.transcripts().len(), 1);
    assert_eq!(scene.unread(), ["import:long"]);
    scene.engine.reopen().await;
    reader.set_away(false);
    scene.pass_time(DAY).await;
    let transcripts = reader.transcripts();
    let read = |number: usize| {
        let line = format!("] Ann: locker {number} is mine");
        transcripts.iter().filter(|transcript| transcript.contains(&line)).count()
    };
    assert_eq!((0..150).map(read).collect::<Vec<_>>(), [1; 150]);
    assert_eq!(scene.unread(), [""; 0]);
    assert!(transcripts[1].starts_with("(1) Ann: locker 58 "), "with the lines before it: {}", transcripts[1]);
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

/// The day's requests run out. Nothing is given up for it, and a smaller model or the setting asks nothing at all.
#[tokio::test]
async fn an_import_is_read_over_days_if_the_requests_do_not_suffice() {
    let reader = Reader::new(Arc::new(quote_all));
    let mut scene = scene_read_by(&reader).await;
    for (setting, per_day) in [(ExtractWithModel::Never, 100), (ExtractWithModel::Always, 4)] {
        let garden = scene.engine.garden.clone();
        scene.engine.tended_by(Gardener { extract_with_model: setting, asks_per_day: per_day, ..garden }).await;
        if setting == ExtractWithModel::Never {
            for chat in ["a", "b", "c", "d", "e"] {
                scene.import_dull(chat, &[&format!("it was so quiet in {chat}")]);
            }
            scene.pass_time(DAY).await;
            assert_eq!((reader.transcripts().len(), scene.unsearched().len(), scene.unread().len()), (0, 0, 5));
        }
    }
    // A day has half of four requests for it, and these hours lie in at most two days.
    scene.pass_time(6 * 3_600).await;
    let read = reader.transcripts().len();
    assert!((2..=4).contains(&read), "{read}");
    scene.pass_time(3 * DAY).await;
    assert_eq!((reader.transcripts().len(), scene.unread()), (5, Vec::new()));
    assert_eq!(scene.engine.azera.measurements().learning.fallbacks, 0);
}

/// What the classifiers marked and something newer replaced stays replaced.
#[tokio::test]
async fn reading_brings_back_nothing_that_was_replaced() {
    const OLD: &str = "my gate code is 4471";
    const NEW: &str = "my gate code is 4472";
    let reader = Reader::new(Arc::new(quote_all));
    let mut scene = scene_read_by(&reader).await;
    let garden = scene.engine.garden.clone();
    scene.engine.tended_by(Gardener { extract_with_model: ExtractWithModel::Never, ..garden.clone() }).await;
    scene.import_dull("codes", &[OLD, NEW]);
    scene.wait(3_600).await;
    let replaced = |scene: &Scene| {
        let marked = scene.marked_of_ann();
        let old = marked.iter().find(|memory| memory.text.as_str() == OLD);
        old.and_then(|memory| memory.salience.as_ref()).is_some_and(|salience| salience.superseded.is_some())
    };
    assert!(replaced(&scene), "the classifiers marked both");
    scene.engine.tended_by(Gardener { extract_with_model: ExtractWithModel::Always, ..garden }).await;
    scene.wait(3_600).await;
    assert_eq!(reader.transcripts().len(), 1);
    assert!(replaced(&scene));
}

/// An undo comes while the model reads. Nothing is marked, and no row and no cached vector is left.
#[tokio::test]
async fn an_undo_takes_what_the_model_reads() {
    const SAID: &str = "my berth is number twelve, by the marzipan";
    let memory = Arc::<OnceLock<Arc<Memory>>>::default();
    let opened = memory.clone();
    let reader = Reader::new(Arc::new(move |transcript: &str| {
        memory.get().unwrap().forgetting().forget(&Forget::Import("of-undone".into()), false).unwrap();
        quote_all(transcript)
    }));
    let scene = scene_read_by(&reader).await;
    opened.set(scene.engine.memory.clone()).unwrap();
    scene.import_dull("undone", &[SAID]);
    scene.wait(3_600).await;
    assert_eq!(reader.transcripts().len(), 1);
    assert_eq!((scene.gists_of_ann(), scene.unread(), scene.unsearched()), (Vec::new(), Vec::new(), Vec::new()));
    assert!(!scene.names("marzipan"), "a row is left");
    let memory = &scene.engine.memory;
    assert_eq!(memory.imports().list(&person(ANN)).unwrap(), []);
    assert!(memory.check().unwrap().is_sound());
}

/// What was marked and compared goes with its import: the marks, the vectors of the comparison, and the place of the reading.
#[tokio::test]
async fn an_undo_takes_what_was_learnt_and_cached() {
    const SAID: [&str; 2] = ["my berth is number twelve, by the marzipan", "my boat lies by the marzipan"];
    let reader = Reader::new(Arc::new(quote_all));
    let scene = scene_read_by(&reader).await;
    scene.import_dull("undone", &SAID);
    scene.wait(3_600).await;
    assert_eq!(scene.gists_of_ann(), SAID);
    let memory = &scene.engine.memory;
    let is_cached = |text: &str| memory.embeddings().get(text, scene.engine.clock.now()).unwrap().is_some();
    assert!(SAID.into_iter().all(is_cached));
    memory.forgetting().forget(&Forget::Import("of-undone".into()), false).unwrap();
    scene.engine.azera.index_all().await.unwrap();
    assert!(scene.engine.azera.scrub().await.unwrap());
    assert!(!SAID.into_iter().any(is_cached));
    assert!(!scene.names("marzipan"), "a row is left");
    assert_eq!(memory.memories().salient(&in_dm_of_ann(), &person(ANN), 500).unwrap(), []);
    assert!(memory.check().unwrap().is_sound());
}
