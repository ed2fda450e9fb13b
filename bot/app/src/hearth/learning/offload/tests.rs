use azera_engine::LossChange;
use azera_model_api::{ChatMessage, Role};

use super::*;

fn training_example(reply: &str) -> TrainingExample {
    TrainingExample {
        messages: vec![ChatMessage::new(Role::User, "who keeps the lamp?")],
        words: String::new(),
        reply: reply.into(),
    }
}

/// Creates two waiting jobs in a data folder.
fn two_jobs(data: &Path) -> (FolderTransport, Key, [PathBuf; 2]) {
    let folder = data.join(FOLDER).join(OFFLOAD_FOLDER);
    fs::create_dir_all(&folder).unwrap();
    let transport = FolderTransport::new(data, Hearth::default());
    let jobs = ["00000000000000aa.course", "00000000000000bb.course"].map(|name| folder.join(name));
    for (job, reply) in jobs.iter().zip(["Ann keeps it", "Bob keeps it"]) {
        let (training_examples, older, voice) =
            (vec![training_example(reply)], vec![training_example("older")], Vec::new());
        let to = data.join("unused");
        let job_of = TrainingJob { model: "model".into(), training_examples, older, voice, beside: None, to, seed: 1 };
        transport.send(&job_of, "ground", job).unwrap();
    }
    (transport, Key::read(&folder.join(KEY)).unwrap(), jobs)
}

fn write_result(key: &Key, job: &Path, base_fingerprint: &str) {
    let same = LossChange { before: 2.0, after: 1.5 };
    let evaluation = Evaluation {
        learned: same,
        older: Some(same),
        voice: None,
        tasks: same,
        prose: same,
        tells_secrets: false,
        largest_cosine: 0.0,
        rank: 4,
        share: 1.0,
    };
    let learned = job.with_extension(RESULT_EXTENSION);
    let plain = payload(&ResultHeader { base_fingerprint: base_fingerprint.into(), evaluation }, b"weights").unwrap();
    write_whole(&learned, &key.seal(&purpose(&learned).unwrap(), &plain).unwrap()).unwrap();
}

#[test]
fn a_result_is_received_as_it_was_made() {
    let data = tempfile::tempdir().unwrap();
    let (transport, key, [job, _]) = two_jobs(data.path());
    let sealed = fs::read(&job).unwrap();
    assert!(!sealed.windows(18).any(|part| part == b"who keeps the lamp"), "nobody reads it without the key");
    write_result(&key, &job, "ground");
    let to = data.path().join("draft.part");
    let back = transport.receive(&job, &job.with_extension(RESULT_EXTENSION), &to).unwrap();
    assert_eq!(
        (back.training_examples, back.older),
        (vec![training_example("Ann keeps it")], vec![training_example("older")])
    );
    assert_eq!(back.trained.evaluation.learned, LossChange { before: 2.0, after: 1.5 });
    assert_eq!(fs::read(&to).unwrap(), b"weights");
    #[cfg(unix)]
    for file in [&job, &job.with_extension(RESULT_EXTENSION), &to] {
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn a_result_of_another_job_is_rejected() {
    let data = tempfile::tempdir().unwrap();
    let (transport, key, [job, other]) = two_jobs(data.path());
    let (learned, to) = (job.with_extension(RESULT_EXTENSION), data.path().join("draft.part"));
    let receive = || transport.receive(&job, &learned, &to);
    write_result(&key, &job, "another ground");
    assert!(matches!(receive(), Err(OffloadError::NotOfIt(_))));
    write_result(&key, &other, "ground");
    fs::copy(other.with_extension(RESULT_EXTENSION), &learned).unwrap();
    assert!(matches!(receive(), Err(OffloadError::NotOfIt(_))), "another's under its name");
    write_result(&key, &job, "ground");
    let whole = fs::read(&learned).unwrap();
    fs::write(&learned, &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(receive(), Err(OffloadError::NotOfIt(_))), "cut");
    fs::write(&learned, whole).unwrap();
    let sealed = fs::read(&job).unwrap();
    fs::copy(&other, &job).unwrap();
    assert!(matches!(receive(), Err(OffloadError::NoJob(_))), "the course is another's");
    fs::write(&job, sealed).unwrap();
    fs::remove_file(job.with_file_name(KEY)).unwrap();
    assert!(matches!(receive(), Err(OffloadError::Io(_))), "the key may be brought back");
    assert!(!to.exists());
}

#[test]
fn a_job_whose_header_is_cut_is_an_error() {
    let data = tempfile::tempdir().unwrap();
    let (_, key, [job, _]) = two_jobs(data.path());
    for plain in [vec![], vec![1; 7], 9_u64.to_le_bytes().to_vec(), u64::MAX.to_le_bytes().to_vec()] {
        fs::write(&job, key.seal(&purpose(&job).unwrap(), &plain).unwrap()).unwrap();
        let error = open_sealed::<JobHeader>(&key, &job).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    }
}
