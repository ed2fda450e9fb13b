//! Training on another machine: what is sent there, and which results are accepted.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use azera_adapter::Host;
use azera_engine::{
    JOB_EXTENSION, LossChange as Loss, OFFLOAD_FOLDER, OffloadError, OffloadResult, OffloadTransport, RESULT_EXTENSION,
    TrainError, TrainingJob, TrainingResult,
};
use azera_memory::Kind;
use azera_types::MessageId;

use crate::fake_trainer::{HOUR, Learning, WANTED, id, weights};
use crate::findings::{ANN, COMMONS, DM_ANN, LOBBY};

/// A transport that stores jobs as they are, without sealing them, and opens results put beside them.
#[derive(Default)]
struct FakeTransport {
    sent: Mutex<HashMap<PathBuf, TrainingJob>>,
    /// Whether opening fails although the results are fine, as without the key.
    has_no_key: Mutex<bool>,
}

impl OffloadTransport for FakeTransport {
    fn send(&self, job: &TrainingJob, base_fingerprint: &str, file: &Path) -> Result<(), TrainError> {
        assert_eq!(base_fingerprint, "ground");
        std::fs::write(file, "sealed").unwrap();
        self.sent.lock().unwrap().insert(file.to_owned(), job.clone());
        Ok(())
    }

    fn receive(&self, job: &Path, learned: &Path, to: &Path) -> Result<OffloadResult, OffloadError> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        if *self.has_no_key.lock().unwrap() {
            std::fs::write(to, "half")?;
            return Err(OffloadError::Io(io::ErrorKind::NotFound.into()));
        }
        if std::fs::read(job)? != b"sealed" {
            return Err(OffloadError::NoJob(invalid()));
        }
        let TrainingJob { training_examples, older, .. } = self.sent.lock().unwrap()[job].clone();
        let result = std::fs::read(learned)?;
        let (number, evaluation) = result.split_first().ok_or_else(|| OffloadError::NotOfIt(invalid()))?;
        let evaluation = serde_json::from_slice(evaluation).map_err(|_| OffloadError::NotOfIt(invalid()))?;
        std::fs::write(to, weights(*number))?;
        Ok(OffloadResult { training_examples, older, trained: TrainingResult { id: id(*number), evaluation } })
    }
}

/// Opens an engine that trains on another machine, and returns its transport.
async fn open() -> (Learning, Arc<FakeTransport>, Arc<Mutex<Option<Arc<dyn OffloadTransport>>>>) {
    let post = Arc::new(FakeTransport::default());
    let transport: Arc<Mutex<Option<Arc<dyn OffloadTransport>>>> = Arc::new(Mutex::new(Some(post.clone())));
    let it = Learning::open_with(false, transport.clone()).await;
    it.scene.command(ANN, DM_ANN, "/persona use azera").await;
    let answer = it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    assert!(answer.contains("another machine"), "{answer}");
    (it, post, transport)
}

/// Returns the files of offloaded jobs with this extension.
fn offloaded(it: &Learning, extension: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(it.folder.path().join(OFFLOAD_FOLDER)).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|it| it == extension)).collect()
}

fn all_offloaded(it: &Learning) -> usize {
    std::fs::read_dir(it.folder.path().join(OFFLOAD_FOLDER)).unwrap().count()
}

/// Puts a result beside a job.
fn put_result(it: &Learning, job: &Path, number: u8) {
    let evaluation = serde_json::to_vec(&*it.fake_trainer.evaluation.lock().unwrap()).unwrap();
    std::fs::write(job.with_extension(RESULT_EXTENSION), [&[number], evaluation.as_slice()].concat()).unwrap();
}

#[tokio::test]
async fn a_lora_trained_on_another_machine_serves_in_its_place() {
    let (mut it, post, _) = open().await;
    it.talk(ANN, DM_ANN, "lantern").await;
    assert_eq!(it.fake_trainer.count(), 0, "nothing is learned here");
    let jobs = offloaded(&it, JOB_EXTENSION);
    assert_eq!(jobs.len(), 1);
    {
        let sent = post.sent.lock().unwrap();
        let job = &sent[&jobs[0]];
        assert_eq!((job.training_examples.len(), job.older.len()), (WANTED, 1));
        assert!(job.training_examples.iter().all(|training_example| training_example.words.starts_with("lantern ")));
        assert!(!job.voice.is_empty() && job.beside.is_none());
        let name = jobs[0].file_stem().unwrap().to_str().unwrap();
        assert!(name.len() == 16 && name.chars().all(|c| c.is_ascii_hexdigit()), "a name that tells nothing: {name}");
    }
    let status = it.scene.command(ANN, DM_ANN, "/hearth").await;
    assert!(
        status.contains("a training job has waited for that machine") && status.contains("**Learned:** nothing yet")
    );
    assert!(!it.scene.command(ANN, COMMONS, "/hearth").await.contains("training job has waited"), "another place");
    // No second job is sent while the first is away, not even after a restart.
    it.scene.engine.reopen().await;
    it.talk(ANN, DM_ANN, "magpie").await;
    assert_eq!(offloaded(&it, JOB_EXTENSION), jobs);
    assert_eq!(it.reply(ANN, DM_ANN).await, []);
    put_result(&it, &jobs[0], 1);
    it.scene.wait(HOUR).await;
    assert_eq!((all_offloaded(&it), it.files().len()), (0, 2));
    assert_eq!(it.reply(ANN, DM_ANN).await, [id(1)]);
    assert_eq!(it.reply(ANN, COMMONS).await, []);
    let history = it.scene.command(ANN, DM_ANN, "/hearth history").await;
    assert!(history.contains("training 1, 4 exchanges: kept (loss 2.00, then 1.00)"), "{history}");
    assert!(history.contains("waits for another machine"), "{history}");
    // The next job continues from there.
    it.scene.wait(7 * HOUR).await;
    let next = offloaded(&it, JOB_EXTENSION);
    assert_eq!(next.len(), 1);
    let beside = post.sent.lock().unwrap()[&next[0]].beside.clone();
    assert_eq!(beside, Some(it.folder.path().join(format!("{}.gguf", id(1)))));
    // After a rollback it has nothing to train beside.
    assert!(it.scene.command(ANN, DM_ANN, "/hearth rollback").await.contains("training 1"));
    assert_eq!((all_offloaded(&it), it.files().len()), (0, 0));
}

#[tokio::test]
async fn a_result_is_rejected_if_a_source_was_forgotten_meanwhile() {
    // Four of the five messages are trained on; the other is only compared, and is in the job, too.
    for gone in 0..5 {
        let (mut it, _, _) = open().await;
        let said = it.talk(ANN, DM_ANN, "lantern").await;
        let job = offloaded(&it, JOB_EXTENSION).remove(0);
        it.scene.delete(&said[gone]).await;
        it.scene.engine.azera.settle().await.unwrap();
        assert_eq!(all_offloaded(&it), 0, "the course goes at once");
        put_result(&it, &job, 1);
        it.scene.wait(HOUR).await;
        assert_eq!((it.files().len(), it.reply(ANN, DM_ANN).await), (0, Vec::new()));
        it.scene.engine.reopen().await;
        assert!(!job.with_extension(RESULT_EXTENSION).exists(), "what belongs to nothing is removed");
        let history = it.scene.command(ANN, DM_ANN, "/hearth history").await;
        assert!(history.contains("something that it rested on was forgotten"), "{history}");
    }

    let (mut it, _, _) = open().await;
    it.talk(ANN, DM_ANN, "lantern").await;
    put_result(&it, &offloaded(&it, JOB_EXTENSION)[0], 1);
    it.scene.command(ANN, COMMONS, "/hearth opt-out").await;
    assert_eq!(all_offloaded(&it), 0, "she does not want it any more");
    it.scene.wait(HOUR).await;
    assert_eq!((it.files().len(), it.reply(ANN, DM_ANN).await), (0, Vec::new()));
}

#[tokio::test]
async fn results_are_evaluated_here() {
    let (mut it, _, _) = open().await;
    it.talk(ANN, COMMONS, "lantern").await;
    let job = offloaded(&it, JOB_EXTENSION).remove(0);
    // A result that cannot be opened is removed, and the job is waited for as before.
    std::fs::write(job.with_extension(RESULT_EXTENSION), [1, b'?']).unwrap();
    it.scene.wait(HOUR).await;
    assert_eq!((offloaded(&it, JOB_EXTENSION).len(), offloaded(&it, RESULT_EXTENSION).len()), (1, 0));
    it.fake_trainer.evaluation.lock().unwrap().voice = Some(Loss { before: 2.0, after: 2.1 });
    put_result(&it, &job, 1);
    it.scene.wait(HOUR).await;
    assert_eq!((all_offloaded(&it), it.files().len()), (0, 0));
    assert_eq!(it.reply(ANN, COMMONS).await, []);
    let history = it.scene.command(ANN, COMMONS, "/hearth history").await;
    assert!(history.contains("dropped, because it made me lose my own voice"), "{history}");
    // Not in quiet hours.
    it.scene.wait(9 * HOUR).await;
    let journal = it.scene.written(ANN, COMMONS, Kind::Reflection).await;
    assert_eq!(journal.iter().filter(|entry| entry.text.contains("voice")).count(), 1, "{journal:?}");
}

#[tokio::test]
async fn a_job_without_a_result_is_given_up_in_the_end() {
    let (mut it, _, transport) = open().await;
    it.talk(ANN, DM_ANN, "lantern").await;
    let job = offloaded(&it, JOB_EXTENSION).remove(0);
    it.scene.wait(29 * 24 * HOUR).await;
    assert!(job.exists());
    // Nobody says anything there meanwhile, and Azera restarts.
    it.scene.engine.reopen().await;
    it.scene.wait(2 * 24 * HOUR).await;
    assert!(!job.exists());
    let history = it.scene.command(ANN, DM_ANN, "/hearth history").await;
    assert!(history.contains("nothing of use came back from the other machine"), "{history}");
    // Turned off, no sealed job stays, either.
    it.talk(ANN, DM_ANN, "magpie").await;
    it.scene.wait(24 * HOUR).await;
    assert_eq!(offloaded(&it, JOB_EXTENSION).len(), 1);
    *transport.lock().unwrap() = None;
    it.scene.engine.reopen().await;
    assert_eq!(all_offloaded(&it), 0);
    it.scene.say(ANN, DM_ANN, "and here quiet").await;
    it.scene.wait(24 * HOUR).await;
    assert_eq!(it.fake_trainer.count(), 1, "it is learned here again");
}

#[tokio::test]
async fn a_result_that_cannot_be_evaluated_is_given_up_in_the_end() {
    let (mut it, post, _) = open().await;
    it.talk(ANN, DM_ANN, "lantern").await;
    let job = offloaded(&it, JOB_EXTENSION).remove(0);
    put_result(&it, &job, 1);
    // First another model answers, then the key is missing: either may be fixed tomorrow.
    *it.fake_trainer.base_fingerprint.lock().unwrap() = Some("another".to_owned());
    it.scene.wait(HOUR).await;
    *it.fake_trainer.base_fingerprint.lock().unwrap() = Some("ground".to_owned());
    *post.has_no_key.lock().unwrap() = true;
    it.scene.wait(29 * 24 * HOUR).await;
    assert_eq!(
        (offloaded(&it, RESULT_EXTENSION).len(), it.files().len()),
        (1, 0),
        "it waits, and no draft of it is left"
    );
    it.scene.wait(2 * 24 * HOUR).await;
    assert_eq!(all_offloaded(&it), 0);
    let history = it.scene.command(ANN, DM_ANN, "/hearth history").await;
    assert!(history.contains("nothing of use came back from the other machine"), "{history}");
    assert_eq!(it.reply(ANN, DM_ANN).await, []);
    // Later exchanges are sent again.
    it.talk(ANN, DM_ANN, "magpie").await;
    it.scene.wait(24 * HOUR).await;
    assert_eq!(offloaded(&it, JOB_EXTENSION).len(), 1);
}

#[tokio::test]
async fn data_of_people_who_consented_to_local_training_is_not_sent() {
    let transport: Arc<Mutex<Option<Arc<dyn OffloadTransport>>>> = Arc::default();
    let mut it = Learning::open_with(false, transport.clone()).await;
    it.scene.command(ANN, DM_ANN, "/persona use azera").await;
    it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    it.talk(ANN, DM_ANN, "lantern").await;
    assert_eq!(it.files().len(), 2, "one lesson is learned here");
    let post = Arc::new(FakeTransport::default());
    *transport.lock().unwrap() = Some(post.clone());
    it.scene.engine.reopen().await;
    it.talk(ANN, DM_ANN, "magpie").await;
    it.talk(ANN, COMMONS, "barley").await;
    it.scene.wait(24 * HOUR).await;
    assert_eq!(
        (all_offloaded(&it), it.fake_trainer.count()),
        (0, 1),
        "neither what she said nor what was learned of it goes away"
    );
    let status = it.scene.command(ANN, DM_ANN, "/hearth").await;
    assert!(status.contains("Your data stays here unless") && status.contains("Held up"), "{status}");
    let privacy = it.scene.command(ANN, DM_ANN, "/privacy").await;
    assert!(privacy.contains("you agreed to local training only"), "{privacy}");
    // Now she knows. Her consent counts from the first time, and the LoRA stays.
    let answer = it.scene.command(ANN, DM_ANN, "/hearth opt-in").await;
    assert!(answer.contains("another machine") && answer.contains("Since "), "{answer}");
    let status = it.scene.command(ANN, DM_ANN, "/hearth").await;
    assert!(!status.contains("Your data stays here unless") && !status.contains("Held up"), "{status}");
    let privacy = it.scene.command(ANN, DM_ANN, "/privacy").await;
    assert!(privacy.contains("a copy that was left there is beyond my reach"), "{privacy}");
    assert_eq!(it.files().len(), 2);
    it.talk(ANN, DM_ANN, "thimble").await;
    it.scene.wait(24 * HOUR).await;
    let sent = post.sent.lock().unwrap();
    assert!(sent.values().any(|job| job.beside.is_some()), "it goes on from what was learned here");
}

#[tokio::test]
async fn a_result_is_evaluated_after_weeks_of_silence() {
    let (mut it, _, _) = open().await;
    it.talk(ANN, DM_ANN, "lantern").await;
    let job = offloaded(&it, JOB_EXTENSION).remove(0);
    it.scene.wait(20 * 24 * HOUR).await;
    it.scene.engine.reopen().await;
    put_result(&it, &job, 1);
    it.scene.wait(HOUR).await;
    assert_eq!((all_offloaded(&it), it.files().len()), (0, 2));
    assert_eq!(it.reply(ANN, DM_ANN).await, [id(1)]);
}

#[tokio::test]
async fn a_job_that_cannot_be_opened_any_more_is_given_up_at_once() {
    let (mut it, _, _) = open().await;
    it.talk(ANN, DM_ANN, "lantern").await;
    let job = offloaded(&it, JOB_EXTENSION).remove(0);
    put_result(&it, &job, 1);
    std::fs::write(&job, "damaged").unwrap();
    it.scene.wait(HOUR).await;
    assert_eq!((all_offloaded(&it), it.files().len()), (0, 0));
    let history = it.scene.command(ANN, DM_ANN, "/hearth history").await;
    assert!(history.contains("nothing of use came back from the other machine"), "{history}");
}

#[tokio::test]
async fn forgetting_a_message_that_is_only_compared_removes_the_job() {
    let (mut it, _, _) = open().await;
    // The message in the other channel is recalled here, but its reply is in no prompt of this channel.
    it.scene.say(ANN, LOBBY, "umbrella drips quiet").await;
    let first = MessageId::new(format!("{}~r0", it.scene.last())).unwrap();
    for thing in ["kettle whistles quiet", "bicycle squeaks quiet", "harbour freezes quiet", "library closes quiet"] {
        it.scene.say(ANN, COMMONS, thing).await;
    }
    it.scene.wait(2 * 60).await;
    it.scene.wait(4 * HOUR).await;
    let [record] = offloaded(&it, "json").try_into().unwrap();
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    let names = |part: &serde_json::Value| part["messages"].as_object().unwrap().contains_key(first.as_str());
    assert!(names(&record["holds"]) && !names(&record["learnt"]["roots"]), "{record:#}");
    it.scene.delete(&first).await;
    it.scene.engine.azera.settle().await.unwrap();
    assert_eq!(all_offloaded(&it), 0);
}

#[tokio::test]
async fn no_result_is_evaluated_during_a_conversation() {
    let (mut it, _, _) = open().await;
    it.talk(ANN, DM_ANN, "lantern").await;
    let job = offloaded(&it, JOB_EXTENSION).remove(0);
    it.scene.wait(2 * HOUR).await;
    put_result(&it, &job, 1);
    it.scene.wait(20 * 60).await;
    it.scene.say(ANN, DM_ANN, "are you there quiet").await;
    it.scene.wait(15 * 60).await;
    assert_eq!(
        (offloaded(&it, RESULT_EXTENSION).len(), it.files().len()),
        (1, 0),
        "a look was due, and she was there just now"
    );
    it.scene.wait(HOUR).await;
    assert_eq!((all_offloaded(&it), it.files().len()), (0, 2));
}

#[tokio::test]
async fn an_offloaded_job_can_be_rolled_back() {
    let (mut it, _, _) = open().await;
    it.talk(ANN, DM_ANN, "lantern").await;
    let job = offloaded(&it, JOB_EXTENSION).remove(0);
    assert!(it.scene.command(ANN, DM_ANN, "/hearth rollback").await.contains("training 1"));
    assert_eq!(all_offloaded(&it), 0);
    put_result(&it, &job, 1);
    it.scene.wait(24 * HOUR).await;
    assert_eq!((it.files().len(), it.reply(ANN, DM_ANN).await), (0, Vec::new()));
    let status = it.scene.command(ANN, DM_ANN, "/hearth").await;
    assert!(!status.contains("training job has waited"), "{status}");
    assert!(it.scene.command(ANN, DM_ANN, "/hearth rollback").await.contains("learned nothing here"));
}

#[tokio::test]
async fn a_late_result_has_a_day_to_be_evaluated() {
    let (mut it, _, _) = open().await;
    it.talk(ANN, DM_ANN, "lantern").await;
    let job = offloaded(&it, JOB_EXTENSION).remove(0);
    put_result(&it, &job, 1);
    *it.fake_trainer.base_fingerprint.lock().unwrap() = Some("another".to_owned());
    it.scene.engine.reopen().await;
    it.scene.wait(31 * 24 * HOUR).await;
    assert_eq!(offloaded(&it, RESULT_EXTENSION).len(), 1, "another model answers, for an hour");
    *it.fake_trainer.base_fingerprint.lock().unwrap() = Some("ground".to_owned());
    it.scene.wait(HOUR).await;
    assert_eq!((all_offloaded(&it), it.files().len()), (0, 2));
}
